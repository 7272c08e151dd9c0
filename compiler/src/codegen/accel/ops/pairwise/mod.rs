//! Element-wise operators of two tensors: quantized sums and products, and functions for which there is a vector
//! operation.

mod extract;
mod op;
mod schedule;

pub use op::{Other, PairOp, Pairwise};

use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::pieces::piece_entries;
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::space::{Decisions, Knob, Space};
use crate::codegen::accel::view::View;
use crate::codegen::accel::work::{UnitWork, beats, entries, overhead, simple_row};
use crate::graph::{Node, NodeId, Op, ValueId};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::VecOp;

/// The plan of an operator of two tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct PairwisePlan {
    /// Entries of a piece.
    pub entries: u32,
}

impl AccelOperator for Pairwise {
    type Plan = PairwisePlan;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        matches!(op, Op::QAdd(_) | Op::QMul(_) | Op::Binary(_)).then_some(LayoutFreedom::Any)
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<Pairwise>> {
        let (layer, pair) = extract::pair(reader, id, node)?;
        Ok(Extracted::Layer(layer, pair))
    }

    fn preferred_views(reader: &Reader<'_>, node: &Node, operand: ValueId) -> Vec<View> {
        if matches!(node.op, Op::Binary(_)) {
            return Vec::new();
        }
        node.inputs.iter().filter(|v| **v != operand).filter_map(|v| (reader.known)(*v)).collect()
    }

    fn plan(&self, _: &Layer, config: &HwConfig, _search: bool) -> Result<PairwisePlan, String> {
        piece_entries(self.op.operation(), config).map(|entries| PairwisePlan { entries })
    }

    fn space(&self, layer: &Layer, config: &HwConfig) -> Space {
        let most = piece_entries(self.op.operation(), config).unwrap_or(0);
        Space::of(vec![Knob::size("entries", (most as usize).min(entries(layer.output_view(), config) as usize))])
    }

    fn decisions(&self, plan: &PairwisePlan) -> Decisions {
        Decisions::new([("entries", (plan.entries as usize).into())])
    }

    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<PairwisePlan, String> {
        let PairwisePlan { entries } = self.plan(layer, config, false)?;
        Ok(PairwisePlan { entries: decisions.size("entries", entries as usize)? as u32 })
    }

    fn cycles(&self, plan: &PairwisePlan, layer: &Layer, config: &HwConfig) -> u64 {
        let output = layer.output_view();
        let out = entries(output, config);
        let bytes = output.layout(config).bytes() as u64;
        let tiles = out.div_ceil(u64::from(plan.entries).max(1));
        let cycles = match self.op.operation() {
            VecOp::Qadd => config.deep_row_cycles(3).into(),
            VecOp::Mul => config.deep_row_cycles(1).into(),
            _ => simple_row(config),
        };
        let work = UnitWork {
            tiles,
            insns: 4 * tiles,
            load: layer.inputs.len().max(1) as u64 * beats(bytes, config),
            vector: out * cycles + overhead::VECTOR_TILE * tiles,
            store: beats(bytes, config),
            ..UnitWork::default()
        };
        work.cycles(config)
    }

    fn describe(&self, plan: &PairwisePlan, _: &Layer) -> String {
        format!("on the vector unit, {} entries at a time", plan.entries)
    }

    fn inp_use(&self, _: &Layer) -> InpUse {
        InpUse::All
    }

    fn timing_key(&self) -> String {
        let per_channel = matches!(self.b, Other::Channels | Other::ConstantChannels(_));
        format!("{} {per_channel}", self.op.operation().name())
    }

    fn schedule(&self, plan: &PairwisePlan, layer: &Layer, config: &HwConfig, _: Constants) -> Option<LayerSchedule> {
        schedule::schedule(self, plan.entries, layer, config)
    }
}
