//! Convolutions and fully connected layers: products with weights and their requantization.
//!
//! A depthwise convolution has a second kind of plan, which splits its taps between the array and the vector unit
//! ([`depthwise`]). The plan with fewer estimated cycles is used. Operators on the results can be fused into the tiles
//! ([`epilogue`]).

mod columns;
mod depth;
pub mod depthwise;
pub mod epilogue;
pub mod expression;
pub mod extract;
mod first_blocks;
pub mod frame;
mod further;
pub mod need;
mod op;
mod operands;
mod packed;
pub mod phases;
mod plan;
mod product;
pub mod rest;
pub mod schedule;
pub mod sizes;
pub mod space;
pub mod tiles;
mod windows;

pub use op::Conv;
pub use plan::ConvPlan;

use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom, WindowBorder, WindowShape};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::space::{Decisions, Space};
use crate::codegen::accel::view::View;
use crate::graph::{Node, NodeId, Op, ValueId};
use need::Need;
use tiles::{ConvTile, Search, Wanted};
use tilewright_hw::config::HwConfig;

/// Number of further plans to compare of each kind: with whole windows as channels, and with operands of fused operators
/// in the second memory that can hold them.
const FURTHER: usize = 3;

impl AccelOperator for Conv {
    type Plan = ConvPlan;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        match op {
            Op::Conv2d(_) => Some(LayoutFreedom::Fixed),
            Op::Dense(_) => Some(LayoutFreedom::Any),
            _ => None,
        }
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<Conv>> {
        let (layer, conv) = match &node.op {
            Op::Dense(op) => extract::dense(reader, id, node, op)?,
            Op::Conv2d(op) => extract::conv(reader, id, node, op)?,
            other => return Err(format!("{} is not a convolution", other.name())),
        };
        Ok(Extracted::Layer(layer, conv))
    }

    fn preferred_views(reader: &Reader<'_>, node: &Node, operand: ValueId) -> Vec<View> {
        match &node.op {
            Op::Conv2d(op) => reader.image(operand, op.layout).into_iter().collect(),
            _ => reader.shape(operand).map(|shape| View::rows(&shape)).into_iter().collect(),
        }
    }

    fn host_form(&self, layer: &Layer, config: &HwConfig) -> Option<(Layer, Conv)> {
        columns::columns_as_channels(self, layer, config)
    }

    fn plan(&self, layer: &Layer, config: &HwConfig, search: bool) -> Result<ConvPlan, String> {
        let wanted = if search { Wanted::All } else { Wanted::First };
        let need = Need::of(self, layer, config)?;
        let views = [layer.input_view(), self.results(layer)];
        let shared = self.depthwise(layer, config, 1);
        let tile = tiles::best(self, Search { apart: false, need, pixel_load: None, wanted }, views, config);
        let others = self.packed(layer, config).map(ConvPlan::Packed).chain(shared);
        let other = others.min_by_key(ConvPlan::cycles);
        match (other, tile) {
            (Some(other), Ok(tile)) if other.cycles() < tile.cycles => Ok(other),
            (Some(other), Err(_)) => Ok(other),
            (_, tile) => tile.map(ConvPlan::Tiles),
        }
    }

    /// Returns the plans with the fewest estimated cycles, and the first plan that fits, which often differs from them.
    fn plans(&self, layer: &Layer, config: &HwConfig, most: usize) -> Vec<ConvPlan> {
        let Ok(need) = Need::of(self, layer, config) else { return Vec::new() };
        let views = [layer.input_view(), self.results(layer)];
        let search = Search { apart: false, need, pixel_load: None, wanted: Wanted::All };
        let products = tiles::tiles(self, search, views, config).unwrap_or_default();
        let first = products.first().copied().map(ConvPlan::Tiles);
        let shared = self.depthwise(layer, config, most);
        let mut all: Vec<ConvPlan> = products.into_iter().map(ConvPlan::Tiles).chain(shared).collect();
        all.extend(self.packed(layer, config).map(ConvPlan::Packed));
        all.sort_by_key(ConvPlan::cycles);
        // The estimate is not exact enough to compare different kinds of plans.
        let mut left = [most.saturating_sub(1), FURTHER, FURTHER];
        all.retain(|plan| {
            let left = &mut left[match plan {
                ConvPlan::Packed(_) => 2,
                ConvPlan::Tiles(tile) if tile.operands != need.operand_memories[0] => 1,
                ConvPlan::Tiles(_) | ConvPlan::Depthwise(_) => 0,
            }];
            let wanted = *left > 0;
            *left = left.saturating_sub(1);
            wanted
        });
        let first = first.filter(|first| !all.contains(first));
        all.into_iter().chain(first).collect()
    }

    fn space(&self, layer: &Layer, config: &HwConfig) -> Space {
        space::space(self, layer, config)
    }

    fn decisions(&self, plan: &ConvPlan) -> Decisions {
        space::decisions(plan)
    }

    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<ConvPlan, String> {
        space::plan_of(self, decisions, layer, config)
    }

    fn cycles(&self, plan: &ConvPlan, _: &Layer, _: &HwConfig) -> u64 {
        plan.cycles()
    }

    fn describe(&self, plan: &ConvPlan, layer: &Layer) -> String {
        let fused = match (self.epilogue.is_empty(), self.pooling()) {
            (true, _) => "",
            (false, Some((pool, _))) if pool.kernel != [1, 1] => ", fused with the pooling of its results",
            (false, _) => ", fused with the operators on its results",
        };
        let note = format!("{fused}{}", layer.on_chip_note());
        let [rows, columns] = self.kernel;
        match plan {
            ConvPlan::Packed(t) => format!(
                "product of a window of {rows} rows, loaded with its columns as {} channels, with its requantization, in \
                 tiles of {}x{} pixels and {} blocks of channels{note}",
                rows * layer.input_view().c,
                t.rows,
                t.columns,
                t.out_blocks
            ),
            ConvPlan::Tiles(t) if layer.input_view().has_windows() => format!(
                "product of a window of {rows} rows, its columns loaded as {} channels, with its requantization, in \
                 tiles of {}x{} pixels and {} by {} blocks of channels{note}",
                layer.input_view().c,
                t.rows,
                t.columns,
                t.in_blocks,
                t.out_blocks
            ),
            ConvPlan::Tiles(t) => format!(
                "product of a {rows}x{columns} window with its requantization, in tiles of {}x{} pixels and {} by {} \
                 blocks of channels{note}",
                t.rows, t.columns, t.in_blocks, t.out_blocks
            ),
            ConvPlan::Depthwise(t) => format!(
                "depthwise {rows}x{columns}, with {} and {} taps of an output on the array and the others on the vector \
                 unit at the same time, in tiles of {}x{} pixels and {} blocks of channels{note}",
                t.array_taps.even, t.array_taps.odd, t.rows, t.columns, t.blocks
            ),
        }
    }

    fn inp_use(&self, layer: &Layer) -> InpUse {
        let window = WindowShape { kernel: self.kernel, strides: self.strides, dilations: self.dilations };
        let views = [layer.input_view(), self.results(layer)];
        InpUse::Kept(WindowBorder::of_windows(window, self.pads, self.pad_value, views))
    }

    fn timing_key(&self) -> String {
        let window = (self.kernel, self.strides, self.pads, self.dilations, self.groups, self.weights.len());
        let epilogue: String = self.epilogue.iter().map(epilogue::Epilogue::timing_key).collect();
        let zero_point = self.weight_zero_point.is_some();
        format!("{epilogue}{window:?} {zero_point} {:?} {}", self.rest, self.slope.is_some())
    }

    fn schedule(
        &self,
        plan: &ConvPlan,
        layer: &Layer,
        config: &HwConfig,
        constants: Constants,
    ) -> Option<LayerSchedule> {
        match plan {
            ConvPlan::Packed(tile) => schedule::packed(self, tile, layer, config, constants),
            ConvPlan::Tiles(tile) => schedule::schedule(self, tile, layer, config, constants),
            ConvPlan::Depthwise(tile) => depthwise::schedule(self, tile, layer, config, constants),
        }
    }
}

impl Conv {
    /// Returns tiles of the product with whole windows as channels, if it can run so.
    fn packed(&self, layer: &Layer, config: &HwConfig) -> std::vec::IntoIter<ConvTile> {
        let found = || {
            let (flat, search, views) = self.packed_search(layer, config)?;
            tiles::tiles(&flat, search, views, config).ok()
        };
        found().unwrap_or_default().into_iter()
    }

    /// Returns the product with whole windows as channels, and what its tiles need; `None` if it cannot run so.
    fn packed_search(&self, layer: &Layer, config: &HwConfig) -> Option<(Conv, Search<'_>, [View; 2])> {
        let [input, output] = [layer.input_view(), self.results(layer)];
        let (flat, view) = packed::windows_as_channels(self, [input, output], config)?;
        let need = Need::of(self, layer, config).ok()?;
        let pixel_load = Some(packed::pixel_load(self, input, config));
        Some((flat, Search { apart: false, need, pixel_load, wanted: Wanted::All }, [view, output]))
    }

    /// Returns at most `most` plans of each kind that share the product between the array and the vector unit.
    fn depthwise(&self, layer: &Layer, config: &HwConfig, most: usize) -> Vec<ConvPlan> {
        let views = [layer.input_view(), self.results(layer)];
        if !depthwise::is_shared(self, views, layer.on_chip, config) {
            return Vec::new();
        }
        depthwise::tiles(self, views, layer.on_chip, most, config).into_iter().map(ConvPlan::Depthwise).collect()
    }
}
