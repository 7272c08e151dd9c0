//! Transposed convolutions, as one convolution per phase of the strides.
//!
//! The phases are one product with tiles of each phase ([`product`]), which runs as a scheduled tensor expression.
//!
//! Results that are a stride apart use the same taps of the kernel. So they are a convolution with only these taps,
//! whose results are stored a stride apart. A phase gets additional taps of weight 0 if it has no taps, or if its
//! window would not contain the row at the position of the result.

mod phase;
mod product;

pub use phase::ConvTranspose;

use super::conv::Conv;
use super::conv::extract::{fold_zero_point, weights};
use super::conv::rest::split;
use super::conv::schedule;
use super::conv::space::{tile_decisions, tile_knobs, tile_of};
use super::conv::tiles::{ConvTile, Wanted};
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::finish::{Finish, Slope};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::space::{Decisions, Space};
use crate::codegen::accel::view::View;
use crate::graph::{Node, NodeId, Op, op};
use phase::{Phase, TOO_MANY, Taps, choose, most_taps, searched};
use product::{Product, views};
use tilewright_hw::config::HwConfig;

/// The plan of a transposed convolution.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ConvTransposePlan {
    /// The tile of the product of all phases.
    pub tile: ConvTile,
}

impl AccelOperator for ConvTranspose {
    type Plan = ConvTransposePlan;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        matches!(op, Op::ConvTranspose2d(_)).then_some(LayoutFreedom::Fixed)
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<ConvTranspose>> {
        match &node.op {
            Op::ConvTranspose2d(op) => extract(reader, id, node, op),
            other => Err(format!("{} is not a transposed convolution", other.name())),
        }
    }

    fn plan(&self, layer: &Layer, config: &HwConfig, search: bool) -> Result<ConvTransposePlan, String> {
        let mut tiles = self.product(layer, config)?.tiles(config)?;
        tiles.truncate(if search { usize::MAX } else { 1 });
        let fewest = tiles.into_iter().reduce(|a, b| if b.cycles < a.cycles { b } else { a });
        fewest.map(|tile| ConvTransposePlan { tile }).ok_or_else(|| "it has no tiles".into())
    }

    fn plans(&self, layer: &Layer, config: &HwConfig, most: usize) -> Vec<ConvTransposePlan> {
        let mut tiles = self.product(layer, config).and_then(|p| p.tiles(config)).unwrap_or_default();
        tiles.sort_by_key(|tile| tile.cycles);
        tiles.into_iter().take(most).map(|tile| ConvTransposePlan { tile }).collect()
    }

    fn space(&self, layer: &Layer, config: &HwConfig) -> Space {
        let Ok(product) = self.product(layer, config) else { return Space::default() };
        let (conv, views) = product.searched();
        tile_knobs(conv, searched(Wanted::All), views, config).map_or_else(Space::default, Space::of)
    }

    fn decisions(&self, plan: &ConvTransposePlan) -> Decisions {
        tile_decisions(&plan.tile)
    }

    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<ConvTransposePlan, String> {
        let product = self.product(layer, config)?;
        let (conv, views) = product.searched();
        let tile = tile_of(conv, searched(Wanted::All), views, decisions, config)?;
        Ok(ConvTransposePlan { tile: product.within(tile) })
    }

    fn cycles(&self, plan: &ConvTransposePlan, _: &Layer, _: &HwConfig) -> u64 {
        plan.tile.cycles
    }

    fn describe(&self, _: &ConvTransposePlan, _: &Layer) -> String {
        format!("a convolution for each of {} phases, stored {} columns apart", self.phases.len(), self.strides[1])
    }

    fn inp_use(&self, _: &Layer) -> InpUse {
        InpUse::All
    }

    fn timing_key(&self) -> String {
        let phase = |p: &Phase| format!("{} {} {:?}", p.conv.timing_key(), p.view.without_values(), p.first);
        format!("{:?} {}", self.strides, self.phases.iter().map(phase).collect::<Vec<_>>().join("; "))
    }

    fn schedule(
        &self,
        plan: &ConvTransposePlan,
        layer: &Layer,
        config: &HwConfig,
        constants: Constants,
    ) -> Option<LayerSchedule> {
        let Product { convs, phases, views, .. } = Product::new(self, views(layer), config)?;
        schedule::of_phases(&convs, &phases, views, &plan.tile, layer, config, constants)
    }
}

impl ConvTranspose {
    /// Returns the product of all phases.
    fn product(&self, layer: &Layer, config: &HwConfig) -> Result<Product, String> {
        Product::new(self, views(layer), config).ok_or_else(|| "it has no phases".into())
    }
}

/// Reads a transposed convolution.
fn extract(reader: &Reader<'_>, id: NodeId, node: &Node, op: &op::ConvTranspose2d) -> Read<Extracted<ConvTranspose>> {
    let data = node.inputs[0];
    reader.int8(data)?;
    let (input, output) = (reader.image(data, op.layout)?, reader.image(node.output(), op.layout)?);
    let &[outputs, kh, kw, depth] = reader.shape(node.inputs[1])?.as_slice() else {
        return Err("its weights are not four-dimensional".into());
    };
    let (weights, weight_zero_point) = weights(reader, node.inputs[1], op.weight_zero_point)?;
    let (mut nodes, mut finish, slope) = reader.finished(id, node, op.layout.channel_axis())?;
    reader.fuse_clip(&mut nodes, &mut finish.lo, &mut finish.hi);
    let values = Values { shape: [outputs, kh, kw, depth], weights, weight_zero_point, finish, slope };
    let transposed = phases(op, [input, output], &values)?;
    Ok(Extracted::Layer(reader.layer(nodes, vec![(data, input)], output)?, transposed))
}

/// The constants of a transposed convolution.
struct Values {
    /// Of the weights, `[O, KH, KW, I/groups]`.
    shape: [usize; 4],
    /// Weights minus their zero point.
    weights: Vec<i32>,
    /// Their zero point; `None` if channels have their own zero points.
    weight_zero_point: Option<i32>,
    finish: Finish,
    slope: Option<Slope>,
}

/// Divides a transposed convolution into its phases.
fn phases(op: &op::ConvTranspose2d, [input, output]: [View; 2], values: &Values) -> Read<ConvTranspose> {
    let [outputs, kh, kw, depth] = values.shape;
    let (weights, rest) = split(&values.weights);
    let strides = [op.strides[0].min(output.h), op.strides[1].min(output.w)];
    if strides[0].saturating_mul(strides[1]) > most_taps(kh * kw) {
        return Err(TOO_MANY.into());
    }
    let mut phases = Vec::new();
    let mut built = 0;
    for y in 0..strides[0] {
        for x in 0..strides[1] {
            let rows = Taps::new(y, [op.strides[0], op.dilations[0], op.pads[0], kh])?;
            let columns = Taps::new(x, [op.strides[1], op.dilations[1], op.pads[1], kw])?;
            built += rows.taps.len() * columns.taps.len();
            if built > most_taps(kh * kw) {
                return Err(TOO_MANY.into());
            }
            let pairs = rows.taps.iter().flat_map(|r| columns.taps.iter().map(move |c| r.zip(*c)));
            let taps: Vec<Option<usize>> = pairs.map(|pair| pair.map(|(r, c)| r * kw + c)).collect();
            let shape = [outputs, kh * kw, depth];
            let (weights, mut rest) = (choose(&weights, shape, &taps), choose(&rest, shape, &taps));
            if rest.iter().all(|&w| w == 0) {
                rest.clear();
            }
            let (mut finish, mut slope) = (values.finish.clone(), values.slope.clone());
            fold_zero_point(&mut finish, slope.as_mut(), &weights, &rest, op.data_zero_point);
            let view = output.resized(
                output.c,
                (output.h - y).div_ceil(op.strides[0]),
                (output.w - x).div_ceil(op.strides[1]),
            );
            // Padding after the data, as far as the windows reach.
            let behind = [rows.behind(view.h, input.h), columns.behind(view.w, input.w)];
            let conv = Conv {
                kernel: [rows.taps.len(), columns.taps.len()],
                strides: [1, 1],
                pads: [rows.before, columns.before, behind[0], behind[1]],
                dilations: [rows.dilation, columns.dilation],
                groups: op.groups,
                weights,
                rest,
                weight_zero_point: values.weight_zero_point,
                pad_value: op.data_zero_point as i8,
                finish,
                slope,
                epilogue: Vec::new(),
            };
            phases.push(Phase { conv, view, first: [y, x], taps: [rows.clone(), columns] });
        }
    }
    Ok(ConvTranspose { strides, phases })
}

#[cfg(test)]
mod tests;
