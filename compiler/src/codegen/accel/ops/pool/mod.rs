//! Poolings and other operators that work channel by channel: clip, pad, rescale and the maximum over an image.

mod divisors;
mod extract;
mod op;
mod plan;
mod schedule;
mod steps;

pub use op::{Pool, PoolFinish};
pub use plan::PoolTile;
#[cfg(test)]
pub use schedule::tests::random_pool;
pub use schedule::{PoolExpression, WINDOWS};

use crate::codegen::accel::dma::load_row;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom, WindowBorder, WindowShape};
use crate::codegen::accel::padded_range::reach;
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::space::{Decisions, Knob, Space};
use crate::codegen::accel::view::View;
use crate::codegen::accel::work::{UnitWork, beats, entries, overhead, simple_row};
use crate::graph::{Node, NodeId, Op, ValueId};
use tilewright_hw::config::{HwConfig, Mem};

impl AccelOperator for Pool {
    type Plan = PoolTile;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        match op {
            Op::MaxPool2d(_) | Op::AvgPool2d(_) | Op::GlobalAvgPool(_) | Op::SumPool2d(_) | Op::QAvgPool2d(_) => {
                Some(LayoutFreedom::Fixed)
            }
            Op::Reduce(_) => Some(LayoutFreedom::Fixed),
            Op::Clip(_) | Op::Pad(_) | Op::Rescale(_) => Some(LayoutFreedom::Any),
            _ => None,
        }
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<Pool>> {
        let (layer, pool) = match &node.op {
            Op::Reduce(op) => extract::reduce(reader, id, node, op)?,
            Op::Clip(_) | Op::Pad(_) | Op::Rescale(_) => extract::pointwise(reader, id, node)?,
            _ => extract::pool(reader, id, node)?,
        };
        Ok(Extracted::Layer(layer, pool))
    }

    fn preferred_views(reader: &Reader<'_>, node: &Node, operand: ValueId) -> Vec<View> {
        let layout = match &node.op {
            Op::MaxPool2d(op) => op.layout,
            Op::AvgPool2d(op) => op.layout,
            Op::GlobalAvgPool(op) => op.layout,
            _ => return Vec::new(),
        };
        reader.image(operand, layout).into_iter().collect()
    }

    fn plan(&self, layer: &Layer, config: &HwConfig, _search: bool) -> Result<PoolTile, String> {
        let found = plan::tiles(self, layer.input_view(), layer.output_view(), &layer.on_chip, config)?;
        found.into_iter().next().ok_or_else(|| "it has no tiles".into())
    }

    fn plans(&self, layer: &Layer, config: &HwConfig, most: usize) -> Vec<PoolTile> {
        let mut found = plan::tiles(self, layer.input_view(), layer.output_view(), &layer.on_chip, config);
        found.iter_mut().for_each(|found| found.truncate(most));
        found.unwrap_or_default()
    }

    fn space(&self, layer: &Layer, config: &HwConfig) -> Space {
        let Ok(found) = plan::tiles(self, layer.input_view(), layer.output_view(), &layer.on_chip, config) else {
            return Space::default();
        };
        let most = |size: fn(&PoolTile) -> usize| found.iter().map(size).max().unwrap_or(1);
        Space::of(vec![
            Knob::size("blocks", most(|t| t.blocks)),
            Knob::size("rows", most(|t| t.rows)),
            Knob::size("columns", most(|t| t.columns)),
        ])
    }

    fn decisions(&self, plan: &PoolTile) -> Decisions {
        Decisions::new([("blocks", plan.blocks.into()), ("rows", plan.rows.into()), ("columns", plan.columns.into())])
    }

    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<PoolTile, String> {
        let [input, output] = [layer.input_view(), layer.output_view()];
        let tile = |[blocks, most_rows, most_columns]: [usize; 3]| {
            Ok::<_, String>(PoolTile {
                blocks: decisions.size("blocks", blocks)?,
                rows: decisions.size("rows", most_rows)?,
                columns: decisions.size("columns", most_columns)?,
            })
        };
        plan::check(self, [input, output], &layer.on_chip, &tile, config)
    }

    fn cycles(&self, tile: &PoolTile, layer: &Layer, config: &HwConfig) -> u64 {
        let (input, output, on_chip) = (layer.input_view(), layer.output_view(), &layer.on_chip);
        let (data, blocks) = (input.layout(config), output.layout(config).blocks());
        let cuts = output.h.div_ceil(tile.rows) * output.w.div_ceil(tile.columns);
        let tiles = (output.n * blocks.div_ceil(tile.blocks) * cuts) as u64;
        // Rows that two tiles read are loaded twice.
        let halo = reach(self.kernel[0], self.dilations[0]).saturating_sub(self.strides[0]);
        let rows = (input.h + (output.h.div_ceil(tile.rows) - 1) * halo) as u64;
        let all_rows = (output.n * blocks) as u64 * rows * output.w.div_ceil(tile.columns) as u64;
        let width = data.row_stride().div_ceil(output.w.div_ceil(tile.columns)) as u64;
        let out = entries(output, config);
        let work = UnitWork {
            tiles,
            insns: 4 * tiles,
            load: if on_chip.input.is_some() { 0 } else { all_rows * load_row(width, 0, Mem::Out, config) },
            vector: out * self.entry_cycles(config) + overhead::VECTOR_TILE * tiles,
            store: if on_chip.hides_output() { 0 } else { beats(output.layout(config).bytes() as u64, config) },
            crowded: on_chip.crowds(config),
            ..UnitWork::default()
        };
        work.cycles(config)
    }

    fn describe(&self, tile: &PoolTile, layer: &Layer) -> String {
        let note = layer.on_chip_note();
        format!("on the vector unit, in tiles of {} rows and {} blocks of channels{note}", tile.rows, tile.blocks)
    }

    fn inp_use(&self, layer: &Layer) -> InpUse {
        let window = WindowShape { kernel: self.kernel, strides: self.strides, dilations: self.dilations };
        let views = [layer.input_view(), layer.output_view()];
        InpUse::Kept(WindowBorder::of_windows(window, self.pads, self.pad_value, views))
    }

    fn timing_key(&self) -> String {
        let finish = match &self.finish {
            PoolFinish::Clip { .. } => "clip".to_string(),
            PoolFinish::Requant(_) => "requant".to_string(),
            PoolFinish::Mean { count_pads, .. } => format!("mean {count_pads}"),
            PoolFinish::Count(_) => "count".to_string(),
        };
        let Pool { kernel, strides, pads, dilations, reduce, .. } = self;
        format!("{kernel:?} {strides:?} {pads:?} {dilations:?} {reduce:?} {finish}")
    }

    fn schedule(&self, tile: &PoolTile, layer: &Layer, config: &HwConfig, _: Constants) -> Option<LayerSchedule> {
        schedule::schedule(self, *tile, layer, config)
    }
}

impl Pool {
    /// Cycles of the vector unit per entry of the results.
    pub fn entry_cycles(&self, config: &HwConfig) -> u64 {
        let simple = simple_row(config);
        let finish = match self.finish {
            PoolFinish::Clip { .. } => simple,
            PoolFinish::Requant(_) | PoolFinish::Mean { .. } | PoolFinish::Count(_) => config.deep_row_cycles(1).into(),
        };
        (self.kernel[0] * self.kernel[1]) as u64 * simple + finish
    }
}
