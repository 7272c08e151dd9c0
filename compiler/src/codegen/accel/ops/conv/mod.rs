//! Convolutions and fully connected layers: products with weights and their requantization.
//!
//! A depthwise convolution has a second kind of plan, which splits its taps between the array and the vector unit
//! ([`depthwise`]). The plan with fewer estimated cycles is used. Operators on the results can be fused into the tiles
//! ([`epilogue`]).

mod columns;
mod depthwise;
pub mod emit;
pub mod epilogue;
pub mod extract;
pub mod need;
mod op;
mod pooled;
pub mod rest;
mod sizes;
pub mod space;
pub mod tail;
pub mod tiles;
mod windows;

pub use op::Conv;

use crate::codegen::accel::emit::Emit;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom, WindowBorder, WindowShape};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::space::{Decisions, Space};
use crate::codegen::accel::view::View;
use crate::graph::{Node, NodeId, Op, ValueId};
use depthwise::DepthwiseTile;
use need::Need;
use std::ops::RangeInclusive;
use tiles::{ConvTile, Search, Wanted};
use tilewright_driver::DriverError;
use tilewright_hw::config::HwConfig;

/// How a convolution is cut into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvPlan {
    /// Tiles of a product on the array.
    Tiles(ConvTile),
    /// Steps of a depthwise product that the array and the vector unit share.
    Depthwise(DepthwiseTile),
}

impl ConvPlan {
    fn cycles(&self) -> u64 {
        match self {
            ConvPlan::Tiles(tile) => tile.cycles,
            ConvPlan::Depthwise(tile) => tile.cycles,
        }
    }
}

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
        let shared = self.depthwise(layer, config, 1).into_iter().next();
        let tile = tiles::best(self, Search { apart: false, need, wanted }, views, config);
        match (shared, tile) {
            (Some(shared), Ok(tile)) if tile.cycles <= shared.cycles => Ok(ConvPlan::Tiles(tile)),
            (Some(shared), _) => Ok(ConvPlan::Depthwise(shared)),
            (None, tile) => tile.map(ConvPlan::Tiles),
        }
    }

    /// Returns the plans with the fewest estimated cycles, and the first plan that fits, which often differs from them.
    fn plans(&self, layer: &Layer, config: &HwConfig, most: usize) -> Vec<ConvPlan> {
        let Ok(need) = Need::of(self, layer, config) else { return Vec::new() };
        let views = [layer.input_view(), self.results(layer)];
        let products =
            tiles::tiles(self, Search { apart: false, need, wanted: Wanted::All }, views, config).unwrap_or_default();
        let first = products.first().copied().map(ConvPlan::Tiles);
        let shared = self.depthwise(layer, config, most).into_iter().map(ConvPlan::Depthwise);
        let mut all: Vec<ConvPlan> = products.into_iter().map(ConvPlan::Tiles).chain(shared).collect();
        all.sort_by_key(ConvPlan::cycles);
        all.truncate(most.saturating_sub(1));
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
                "depthwise {rows}x{columns}, with {:.1} taps of an output on the array and the others on the vector \
                 unit at the same time",
                t.array_taps()
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

    fn emit(&self, plan: &ConvPlan, layer: &Layer, e: &mut Emit) -> Result<(), DriverError> {
        match plan {
            ConvPlan::Tiles(tile) => emit::emit(e, layer, self, *tile),
            ConvPlan::Depthwise(tile) => depthwise::emit(e, layer, self, *tile),
        }
    }
}

impl Conv {
    /// The shares of the array in a product that it shares with the vector unit; `None` if they cannot share it.
    fn shares(&self, layer: &Layer, config: &HwConfig) -> Option<RangeInclusive<usize>> {
        if !self.epilogue.is_empty() || self.slope.is_some() {
            return None;
        }
        depthwise::shares(self, [layer.input_view(), self.results(layer)], layer.on_chip, config)
    }

    /// Returns at most `most` plans that share the product between the array and the vector unit.
    fn depthwise(&self, layer: &Layer, config: &HwConfig, most: usize) -> Vec<DepthwiseTile> {
        if !self.epilogue.is_empty() || self.slope.is_some() {
            return Vec::new();
        }
        depthwise::tiles(self, [layer.input_view(), self.results(layer)], layer.on_chip, most, config)
    }
}
