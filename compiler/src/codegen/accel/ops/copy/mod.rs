//! Copies of elements with loads and stores: concatenation, slices, splits and nearest resizing.

mod extract;
mod op;
mod plan;
mod runs;
mod schedule;

pub use op::Copy;

use crate::codegen::accel::dma::load_row;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::space::{Decisions, Knob, Space};
use crate::codegen::accel::view::View;
use crate::codegen::accel::work::{UnitWork, beats};
use crate::graph::{Node, NodeId, Op};
use tilewright_hw::config::{HwConfig, Mem};

/// The plan of a copy.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyPlan {
    /// Rows per tile.
    pub rows: usize,
}

impl AccelOperator for Copy {
    type Plan = CopyPlan;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        matches!(op, Op::Concat(_) | Op::Slice(_) | Op::Gather(_)).then_some(LayoutFreedom::Any)
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<Copy>> {
        let (layer, copy) = match &node.op {
            Op::Concat(op) => extract::concat(reader, id, node, op.axis)?,
            Op::Slice(op) => extract::slice(reader, id, node, op)?,
            Op::Gather(op) => extract::gather(reader, id, node, op.axis)?,
            other => return Err(format!("{} is not a copy", other.name())),
        };
        Ok(Extracted::Layer(layer, copy))
    }

    fn plan(&self, layer: &Layer, config: &HwConfig, _search: bool) -> Result<CopyPlan, String> {
        let inputs: Vec<View> = layer.inputs.iter().map(|(_, v)| *v).collect();
        plan::rows(self, &inputs, layer.output_view(), config).map(|rows| CopyPlan { rows })
    }

    fn space(&self, layer: &Layer, config: &HwConfig) -> Space {
        let inputs: Vec<View> = layer.inputs.iter().map(|(_, v)| *v).collect();
        let most = plan::rows(self, &inputs, layer.output_view(), config);
        most.map_or_else(|_| Space::default(), |most| Space::of(vec![Knob::size("rows", most)]))
    }

    fn decisions(&self, plan: &CopyPlan) -> Decisions {
        Decisions::new([("rows", plan.rows.into())])
    }

    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<CopyPlan, String> {
        let inputs: Vec<View> = layer.inputs.iter().map(|(_, v)| *v).collect();
        let most = plan::most_rows(layer.output_view(), config)?;
        let rows = decisions.size("rows", most)?;
        plan::check(self, &inputs, layer.output_view(), config)?;
        Ok(CopyPlan { rows })
    }

    fn cycles(&self, plan: &CopyPlan, layer: &Layer, config: &HwConfig) -> u64 {
        let (block, output) = (config.block() as usize, layer.output_view());
        let mut load = 0;
        for s in &self.segments {
            let (h, w) = (s.rows.sources.len(), s.columns.sources.len());
            let whole = s.c_from % block == 0 && s.c_to % block == 0;
            let neighbors = s.columns.sources.windows(2).all(|c| c[1] == c[0] + 1);
            let blocks = s.c.div_ceil(block);
            // Parts of blocks are loaded pixel by pixel, and cut at the end of a block of either tensor.
            let (lines, bytes) = match whole && neighbors {
                true => (blocks * h, w * block),
                false if whole => (blocks * h * w, block),
                false => ((blocks + 1) * h * w, s.c.div_ceil(blocks + 1)),
            };
            // A row that begins within a block can begin anywhere in a beat.
            let at = if whole { 0 } else { u64::from(config.bus_bytes()) - 1 };
            load += (output.n * lines) as u64 * load_row(bytes as u64, at, Mem::Out, config);
        }
        let tiles = (output.n * output.layout(config).blocks() * output.h.div_ceil(plan.rows)) as u64;
        let lines = self.segments.len() as u64;
        let work = UnitWork {
            tiles,
            insns: tiles * (1 + lines),
            load,
            store: beats(output.layout(config).bytes() as u64, config),
            ..UnitWork::default()
        };
        work.cycles(config)
    }

    fn describe(&self, plan: &CopyPlan, _: &Layer) -> String {
        format!("by loads and stores, {} rows at a time", plan.rows)
    }

    fn inp_use(&self, _: &Layer) -> InpUse {
        InpUse::None
    }

    fn schedule(&self, plan: &CopyPlan, layer: &Layer, config: &HwConfig, _: Constants) -> Option<LayerSchedule> {
        schedule::schedule(self, plan.rows, layer, config)
    }
}
