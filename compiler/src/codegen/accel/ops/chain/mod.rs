//! Chains of convolutions around a depthwise one, computed in strips whose data stay on the chip.
//!
//! A product widens the data (or is the first of a network), a depthwise convolution reads its results, and perhaps a
//! pointwise product narrows them again, as in the blocks of MobileNet. One by one, the layers would move the wide tensors
//! to device memory and back. Here only a strip of them exists at a time, in inp. The strips pass the stages of a software
//! pipeline, in which the array and the vector unit work on different strips at the same time.

mod plan;
mod schedule;

pub use plan::ChainTile;

use super::conv::Conv;
use super::conv::depthwise_shares;
use super::conv::rest::array_subtracts;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::space::{Decisions, Knob, Space};
use crate::codegen::accel::view::View;
use crate::graph::{Node, NodeId, Op};
use plan::Sized;
use tilewright_hw::config::{HwConfig, Mem};

/// A product, a depthwise convolution of its results, and perhaps a pointwise product of the results of that.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// The first product.
    pub first: Conv,
    /// The depthwise convolution.
    pub depthwise: Conv,
    /// The last product.
    pub last: Option<Conv>,
    /// View of the first product's results.
    pub wide: View,
    /// View of the depthwise convolution's results.
    pub depth: View,
}

impl Chain {
    /// Returns a chain that begins with a product and a depthwise convolution of its results.
    ///
    /// # Errors
    /// The reason why the accelerator cannot compute both together.
    pub fn new(first: &Conv, depthwise: &Conv, views: [View; 3], config: &HwConfig) -> Result<Chain, String> {
        let [input, wide, depth] = views;
        let square = config.batch == 1 && config.block_in == config.block_out && config.block() == config.block_in;
        if !square || !config.vector_reaches_inp() {
            return Err("strips of several layers need batch = 1, and block_in equal to block_out".into());
        }
        if config.banks(Mem::Inp) < 2 || config.banks(Mem::Acc) < 2 {
            return Err("strips of several layers need two banks of inp and of acc".into());
        }
        check_product(first, input, config)?;
        if depthwise_shares(depthwise, [wide, depth], config).is_none() || !depthwise.epilogue.is_empty() {
            return Err("the array and the vector unit cannot share the depthwise convolution".into());
        }
        Ok(Chain { first: first.clone(), depthwise: depthwise.clone(), last: None, wide, depth })
    }

    /// Returns the chain with a pointwise product of its results.
    ///
    /// # Errors
    /// The reason why the accelerator cannot compute it together with the others.
    pub fn with(&self, last: &Conv, config: &HwConfig) -> Result<Chain, String> {
        if self.last.is_some() {
            return Err("the chain already ends with a product".into());
        }
        if !last.is_pointwise() {
            return Err("only a pointwise product can end a chain".into());
        }
        check_product(last, self.depth, config)?;
        Ok(Chain { last: Some(last.clone()), ..self.clone() })
    }

    /// Number of layers that are computed together.
    pub fn layers(&self) -> usize {
        if self.last.is_some() { 3 } else { 2 }
    }
}

/// Checks that a product can be a part of a chain.
fn check_product(conv: &Conv, input: View, config: &HwConfig) -> Result<(), String> {
    let subtracted = conv.rest.is_empty() || array_subtracts(conv, config).is_some();
    if conv.groups != 1 || conv.slope.is_some() || !conv.epilogue.is_empty() || !subtracted {
        return Err(
            "a product of a chain has no groups, no second requantization, no fused operators, and weights of 8 bits"
                .into(),
        );
    }
    // The rest of an entry with data is filled with zeros.
    let filled = input.has_windows() && !input.c.is_multiple_of(config.block() as usize);
    if filled && conv.pad_value != 0 && !config.dma_pad {
        return Err("the configuration is built without dma_pad".into());
    }
    Ok(())
}

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
        ])
    }

    fn decisions(&self, plan: &ChainTile) -> Decisions {
        Decisions::new([
            ("rows", plan.rows.into()),
            ("columns", plan.columns.into()),
            ("blocks", plan.blocks.into()),
            ("array_taps", plan.array_taps.into()),
        ])
    }

    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<ChainTile, String> {
        let sized = Sized::new(self, layer, config);
        let tile = ChainTile {
            rows: decisions.size("rows", self.depth.h)?,
            columns: decisions.size("columns", self.depth.w)?,
            blocks: decisions.size("blocks", sized.blocks())?,
            array_taps: decisions.size("array_taps", self.depthwise.taps() - 1)?,
            cycles: 0,
        };
        if self.last.is_some() && tile.blocks != sized.blocks() {
            return Err(format!("blocks must be {}: the last product reads all channels", sized.blocks()));
        }
        sized.cost(tile).ok_or_else(|| "the strip does not fit the scratchpads".into())
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
            plan.array_taps
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
