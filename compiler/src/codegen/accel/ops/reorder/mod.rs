//! Puts whole blocks of channels in another order, for transposes.

mod extract;
mod op;
mod plan;
mod schedule;

pub use op::{Piece, Reorder};

use crate::codegen::accel::dma::load_row;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::space::{Decisions, Knob, Space};
use crate::codegen::accel::work::{UnitWork, beats};
use crate::graph::{Node, NodeId, Op};
use tilewright_hw::config::{HwConfig, Mem};

/// The plan of a reorder.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct ReorderPlan {
    /// Maximum number of blocks per load.
    pub blocks: usize,
}

impl AccelOperator for Reorder {
    type Plan = ReorderPlan;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        matches!(op, Op::Transpose(_)).then_some(LayoutFreedom::Fixed)
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<Reorder>> {
        match &node.op {
            Op::Transpose(op) => extract::transpose(reader, id, node, op),
            other => Err(format!("{} is not a transpose", other.name())),
        }
    }

    fn plan(&self, _: &Layer, config: &HwConfig, _search: bool) -> Result<ReorderPlan, String> {
        plan::blocks(self, config).map(|blocks| ReorderPlan { blocks })
    }

    fn space(&self, _: &Layer, config: &HwConfig) -> Space {
        let most = plan::blocks(self, config);
        most.map_or_else(|_| Space::default(), |most| Space::of(vec![Knob::size("blocks", most)]))
    }

    fn decisions(&self, plan: &ReorderPlan) -> Decisions {
        Decisions::new([("blocks", plan.blocks.into())])
    }

    fn plan_of(&self, decisions: &Decisions, _: &Layer, config: &HwConfig) -> Result<ReorderPlan, String> {
        let blocks = decisions.size("blocks", plan::blocks(self, config)?)?;
        plan::check(self, blocks, config)?;
        Ok(ReorderPlan { blocks })
    }

    fn cycles(&self, plan: &ReorderPlan, layer: &Layer, config: &HwConfig) -> u64 {
        let block = config.block() as usize;
        let pieces = self.pieces(plan.blocks, block);
        let load = |p: &Piece| {
            let [planes, rows, run] = p.loops;
            (planes.count * rows.count) as u64 * load_row((run.count * block) as u64, 0, Mem::Out, config)
        };
        let work = UnitWork {
            tiles: pieces.len() as u64,
            insns: 2 * pieces.len() as u64,
            load: pieces.iter().map(load).sum(),
            store: beats(layer.output_view().layout(config).bytes() as u64, config),
            ..UnitWork::default()
        };
        work.cycles(config)
    }

    fn describe(&self, plan: &ReorderPlan, _: &Layer) -> String {
        format!("whole blocks in another order, by loads and stores of at most {}", plan.blocks)
    }

    fn inp_use(&self, _: &Layer) -> InpUse {
        InpUse::None
    }

    fn schedule(&self, plan: &ReorderPlan, layer: &Layer, config: &HwConfig, _: Constants) -> Option<LayerSchedule> {
        schedule::schedule(self, plan.blocks, layer, config)
    }
}
