//! Chains of convolutions around a depthwise one, computed in strips whose data stay on the chip.
//!
//! A product widens the data (or is the first of a network), a depthwise convolution reads its results, and perhaps a
//! pointwise product narrows them again, as in the blocks of MobileNet. One by one, the layers would move the wide tensors
//! to device memory and back. Here only a strip of them exists at a time, in inp. The strips pass the stages of a software
//! pipeline, in which the array and the vector unit work on different strips at the same time.

mod op;
mod plan;
mod schedule;

pub use op::Chain;
pub use plan::ChainTile;

use super::conv::Conv;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::space::{Decisions, Knob, Space};
use crate::graph::{Node, NodeId, Op};
use plan::Sized;
use tilewright_hw::config::HwConfig;

impl AccelOperator for Chain {
    type Plan = ChainTile;

    /// A chain is made of layers that were read one by one.
    fn takes(_: &Op) -> Option<LayoutFreedom> {
        None
    }

    fn extract(_: &Reader<'_>, _: NodeId, node: &Node) -> Read<Extracted<Chain>> {
        Err(format!("{} does not begin a chain", node.op.name()))
    }

    fn plan(&self, layer: &Layer, config: &HwConfig, _search: bool) -> Result<ChainTile, String> {
        let found = self.plans(layer, config, 1).into_iter().next();
        found.ok_or_else(|| "no strip fits the scratchpads".into())
    }

    fn plans(&self, layer: &Layer, config: &HwConfig, most: usize) -> Vec<ChainTile> {
        Sized::new(self, layer, config).tiles(most)
    }

    fn space(&self, layer: &Layer, config: &HwConfig) -> Space {
        let sized = Sized::new(self, layer, config);
        let blocks = match self.last {
            Some(_) => Knob { name: "blocks".into(), values: vec![sized.blocks().into()] },
            None => Knob::size("blocks", sized.blocks()),
        };
        Space::of(vec![
            Knob::size("rows", self.depth.h),
            Knob::size("columns", self.depth.w),
            blocks,
            Knob { name: "array_taps".into(), values: (1..self.depthwise.taps()).map(Into::into).collect() },
            Knob { name: "odd_taps".into(), values: (1..self.depthwise.taps()).map(Into::into).collect() },
        ])
    }

    fn decisions(&self, plan: &ChainTile) -> Decisions {
        Decisions::new([
            ("rows", plan.rows.into()),
            ("columns", plan.columns.into()),
            ("blocks", plan.blocks.into()),
            ("array_taps", plan.array_taps[0].into()),
            ("odd_taps", plan.array_taps[1].into()),
        ])
    }

    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<ChainTile, String> {
        let sized = Sized::new(self, layer, config);
        let taps = |name: &str| decisions.size(name, self.depthwise.taps() - 1);
        let tile = ChainTile {
            rows: decisions.size("rows", self.depth.h)?,
            columns: decisions.size("columns", self.depth.w)?,
            blocks: decisions.size("blocks", sized.blocks())?,
            array_taps: [taps("array_taps")?, taps("odd_taps")?],
            cycles: 0,
        };
        if self.last.is_some() && tile.blocks != sized.blocks() {
            return Err(format!("blocks must be {}: the last product reads all channels", sized.blocks()));
        }
        sized.cost(tile).map_err(|limit| format!("the strip needs {limit}"))
    }

    fn cycles(&self, plan: &ChainTile, _: &Layer, _: &HwConfig) -> u64 {
        plan.cycles
    }

    fn describe(&self, plan: &ChainTile, _: &Layer) -> String {
        let [rows, columns] = self.depthwise.kernel;
        format!(
            "strips of {}x{} pixels and {} blocks of channels, whose data stay on the chip from the first product through a \
             depthwise {rows}x{columns}{}; the array sums {} of its taps",
            plan.rows,
            plan.columns,
            plan.blocks,
            if self.last.is_some() { " to the last product" } else { "" },
            match plan.array_taps {
                [even, odd] if even == odd => even.to_string(),
                [even, odd] => format!("{even} or {odd}"),
            }
        )
    }

    fn inp_use(&self, _: &Layer) -> InpUse {
        InpUse::All
    }

    fn timing_key(&self) -> String {
        let views = [self.wide, self.depth].map(|view| view.without_values());
        let last = self.last.as_ref().map(Conv::timing_key).unwrap_or_default();
        format!("{} {} {} {last}", self.first.timing_key(), self.depthwise.timing_key(), views.join(" "))
    }

    fn schedule(
        &self,
        plan: &ChainTile,
        layer: &Layer,
        config: &HwConfig,
        constants: Constants,
    ) -> Option<LayerSchedule> {
        schedule::schedule(self, plan, layer, config, constants)
    }
}
