//! Transposes, read as walks over whole blocks.

use super::extract::{Found, Read, Reader, matrices};
use super::layer::Kind;
use super::view::View;
use super::walk::walk;
use crate::graph::op::{self, Layout, Op};
use crate::graph::{DType, Node, NodeId, ValueId};

/// Reshapes between a value and a reader that says how it wants it.
const MOST_RESHAPES: usize = 4;

impl Reader<'_> {
    /// A transpose as what moves least: nothing, where some view of the result has the bytes of the data as they lie; else a
    /// walk over blocks.
    pub(super) fn transpose(&self, id: NodeId, node: &Node, op: &op::Transpose, block: usize) -> Read<Found> {
        let data = node.inputs[0];
        if self.graph.ty(data).dtype != DType::I8 {
            return Err("the accelerator moves bytes alone".into());
        }
        let from = (self.known)(data).ok_or("its data are on the CPU")?;
        let (shape, result) = (self.shape(data)?, self.shape(node.output())?);
        let wanted = self.wanted(node.output(), MOST_RESHAPES);
        let images = [Layout::Nhwc, Layout::Nchw].into_iter().filter_map(|layout| View::image(&result, layout));
        let matrices = (result.len() > 2).then(|| matrices(&result, &result)[0]);
        let others = images.filter(|_| result.len() == 4).chain(matrices).chain([View::rows(&result)]);
        let source = |i: usize| source(&shape, &result, &op.perm, i);
        let mut walks = Vec::new();
        for view in wanted.iter().copied().chain(others) {
            let Some(walk) = walk(from, view, &source, block) else { continue };
            if walk.is_nothing() {
                return Ok(Found::Recast(view));
            }
            // What nobody wants is not worth a walk: the host changes layouts at borders anyway.
            if wanted.is_empty() || wanted.contains(&view) {
                walks.push((view, walk));
            }
        }
        let (view, walk) =
            walks.into_iter().next().ok_or("elements change their places in blocks of channels, which no load does")?;
        self.layer(vec![id], vec![(data, from)], view, Kind::Walk(walk)).map(|layer| Found::Layer(Box::new(layer)))
    }

    /// How the readers of a value take it, as far as they say.
    fn wanted(&self, value: ValueId, reshapes: usize) -> Vec<View> {
        let mut found = Vec::new();
        for &user in &self.users[value.0] {
            let node = self.graph.node(user);
            let image = |layout| self.image(value, layout).ok();
            match &node.op {
                Op::Conv2d(op) => found.extend(image(op.layout)),
                Op::MaxPool2d(op) => found.extend(image(op.layout)),
                Op::AvgPool2d(op) => found.extend(image(op.layout)),
                Op::GlobalAvgPool(op) => found.extend(image(op.layout)),
                Op::Dense(_) => found.extend(self.shape(value).ok().map(|shape| View::rows(&shape))),
                Op::QMatMul(_) => {
                    let [Ok(a), Ok(b)] = [self.shape(node.inputs[0]), self.shape(node.inputs[1])] else { continue };
                    let views = matrices(&a, &b);
                    found.extend(
                        views.into_iter().zip(&node.inputs).filter(|(_, v)| **v == value).map(|(view, _)| view),
                    );
                }
                Op::Reshape(_) if reshapes > 0 => found.extend(self.wanted(node.output(), reshapes - 1)),
                Op::QAdd(_) | Op::QMul(_) => {
                    let other = node.inputs.iter().filter(|v| **v != value);
                    found.extend(other.filter_map(|v| (self.known)(*v)));
                }
                _ => {}
            }
        }
        found
    }
}

/// The element of the data that is element `i` of the result.
fn source(data: &[usize], result: &[usize], perm: &[usize], i: usize) -> usize {
    let mut at = vec![0; data.len()];
    let mut left = i;
    for (axis, &size) in result.iter().enumerate().rev() {
        at[perm[axis]] = left % size;
        left /= size;
    }
    at.iter().zip(data).fold(0, |sum, (place, size)| sum * size + place)
}
