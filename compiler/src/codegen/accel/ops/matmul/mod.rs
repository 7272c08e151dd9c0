//! Products of two activations.
//!
//! The second operand takes the role of weights. Its columns are pixels in device memory, where `block_out` neighboring
//! pixels of a block already have the form of a weight tile. Channels past the depth are 0 in both operands.

mod op;
mod plan;
mod schedule;

pub use op::MatMul;
pub use plan::MatMulTile;

use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::scheduled::LayerSchedule;
use crate::codegen::accel::space::{Decisions, Space};
use crate::codegen::accel::view::View;
use crate::graph::op::{Layout, QMatMul};
use crate::graph::{Node, NodeId, Op, ValueId};
use tilewright_hw::config::HwConfig;

impl AccelOperator for MatMul {
    type Plan = MatMulTile;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        matches!(op, Op::QMatMul(_)).then_some(LayoutFreedom::Fixed)
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<MatMul>> {
        match &node.op {
            Op::QMatMul(op) => extract(reader, id, node, op),
            other => Err(format!("{} is not a product of two activations", other.name())),
        }
    }

    fn preferred_views(reader: &Reader<'_>, node: &Node, operand: ValueId) -> Vec<View> {
        let [Ok(a), Ok(b)] = [reader.shape(node.inputs[0]), reader.shape(node.inputs[1])] else { return Vec::new() };
        let views = [View::matrices(&a), View::transposed_matrices(&b)].into_iter().zip(&node.inputs);
        views.filter(|(_, value)| **value == operand).map(|(view, _)| view).collect()
    }

    fn plan(&self, layer: &Layer, config: &HwConfig, _search: bool) -> Result<MatMulTile, String> {
        plan::tiles(self, layer, config).map(|tiles| tiles[0])
    }

    fn plans(&self, layer: &Layer, config: &HwConfig, most: usize) -> Vec<MatMulTile> {
        let mut found = plan::tiles(self, layer, config).unwrap_or_default();
        found.truncate(most);
        found
    }

    fn space(&self, layer: &Layer, config: &HwConfig) -> Space {
        plan::space(layer, config)
    }

    fn decisions(&self, plan: &MatMulTile) -> Decisions {
        plan::decisions(plan)
    }

    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<MatMulTile, String> {
        plan::tile_of(self, decisions, layer, config)
    }

    fn cycles(&self, tile: &MatMulTile, layer: &Layer, config: &HwConfig) -> u64 {
        plan::cycles(self, tile, layer, config)
    }

    fn describe(&self, tile: &MatMulTile, _: &Layer) -> String {
        format!("product of two activations, in tiles of {} rows and {} blocks of columns", tile.rows, tile.blocks)
    }

    fn inp_use(&self, _: &Layer) -> InpUse {
        InpUse::All
    }

    fn timing_key(&self) -> String {
        // A zero point of -128 needs two products where another needs one.
        let zero_point = |zero: i32| (zero != 0, zero == -128);
        format!("{:?} {:?}", zero_point(self.a_zero_point), zero_point(self.b_zero_point))
    }

    fn schedule(&self, tile: &MatMulTile, layer: &Layer, config: &HwConfig, _: Constants) -> Option<LayerSchedule> {
        schedule::schedule(self, tile, layer, config)
    }
}

/// Reads a product for each matrix of the first operand. The second operand has as many matrices, or one.
fn extract(reader: &Reader<'_>, id: NodeId, node: &Node, op: &QMatMul) -> Read<Extracted<MatMul>> {
    let [a, b] = [node.inputs[0], node.inputs[1]];
    let (sa, sb, out) = (reader.shape(a)?, reader.shape(b)?, reader.shape(node.output())?);
    let images = |s: &[usize]| s[..s.len() - 2].iter().product::<usize>();
    let (m, n) = (sa[sa.len() - 2], sb[sb.len() - 1]);
    let (na, nb) = (images(&sa), images(&sb));
    let alike = nb == 1 || sb[..sb.len() - 2] == sa[..sa.len() - 2];
    if images(&out) != na || !alike {
        return Err("its operands' outer dimensions broadcast".into());
    }
    if [a, b].iter().any(|v| reader.graph.constant(*v).is_some()) {
        return Err("an operand is a constant".into());
    }
    let [view_a, view_b] = [View::matrices(&sa), View::transposed_matrices(&sb)];
    if reader.sloped(node, out.len() - 1).is_some() {
        return Err("its sums are requantized twice, which is only supported for products with constants".into());
    }
    let (next, mut finish) = reader.requantize(node, out.len() - 1)?;
    let mut nodes = vec![id, next];
    reader.fuse_clip(&mut nodes, &mut finish.lo, &mut finish.hi);
    let on_device = (reader.known)(a) == Some(view_a) || (reader.known)(b) == Some(view_b);
    let (a_zero_point, b_zero_point) = (op.a_zero_point, op.b_zero_point);
    let work = MatMul { a_zero_point, b_zero_point, finish, on_device };
    let view = View::new(Layout::Nhwc, na, n, 1, m);
    Ok(Extracted::Layer(reader.layer(nodes, vec![(a, view_a), (b, view_b)], view)?, work))
}
