//! Nodes of the graph to layers, or the reason why not.

use super::keep::OnChip;
use super::layer::{Conv, Finish, Kind, Layer, MatMul, PairOp, Pool, PoolFinish, Reduce, Slope};
use super::rest::split;
use super::view::View;
use crate::graph::op::{self, Layout, Op};
use crate::graph::{DType, Graph, Node, NodeId, ValueId};
use tilewright_hw::num::average_multiplier;

/// What a node is to the accelerator.
#[derive(Debug, Clone, PartialEq)]
pub enum Found {
    /// The first node of a layer.
    Layer(Box<Layer>),
    /// The same bytes under another shape.
    Alias,
    /// The same bytes, seen in another way.
    Recast(View),
    /// Nothing that the accelerator computes, and why.
    Refused(String),
}

/// Reads the layer that begins at a node.
///
/// `known` gives the view under which a value lies in device memory, where it does; `block` is the number of channels that lie
/// together there.
pub fn extract(graph: &Graph, id: NodeId, known: &dyn Fn(ValueId) -> Option<View>, block: usize) -> Found {
    let reader = Reader { graph, users: graph.users(), known };
    let node = graph.node(id);
    let read = match &node.op {
        Op::Conv2d(op) => reader.conv(id, node, op),
        Op::Dense(op) => reader.dense(id, node, op),
        Op::QAdd(_) | Op::QMul(_) | Op::Binary(_) => reader.pair(id, node),
        Op::ConvTranspose2d(op) => reader.transposed(id, node, op),
        Op::Lookup(_) => reader.lookup(id, node),
        Op::Reduce(op) => reader.reduce(id, node, op),
        Op::QMatMul(op) => reader.matmul(id, node, op),
        Op::MaxPool2d(_) | Op::AvgPool2d(_) | Op::GlobalAvgPool(_) => reader.pool(id, node),
        Op::SumPool2d(_) | Op::QAvgPool2d(_) => reader.pool(id, node),
        Op::Clip(_) | Op::Pad(_) | Op::Rescale(_) => reader.pointwise(id, node),
        Op::Concat(op) => reader.concat(id, node, op.axis),
        Op::Slice(op) => reader.slice(id, node, op),
        Op::Gather(op) => reader.gather(id, node, op.axis),
        Op::Reshape(_) if graph.ty(node.output()).dtype == DType::I8 => return Found::Alias,
        Op::Transpose(op) => match reader.transpose(id, node, op, block) {
            Ok(found) => return found,
            Err(reason) => Err(reason),
        },
        Op::Requantize(_) => Err("its sums are not computed on the accelerator".into()),
        other => Err(format!("the accelerator has no {}", other.name())),
    };
    match read {
        Ok(layer) => Found::Layer(Box::new(layer)),
        Err(reason) => Found::Refused(reason),
    }
}

pub(super) struct Reader<'a> {
    pub(super) graph: &'a Graph,
    pub(super) users: &'a [Vec<NodeId>],
    pub(super) known: &'a dyn Fn(ValueId) -> Option<View>,
}

pub(super) type Read<T> = Result<T, String>;

impl Reader<'_> {
    pub(super) fn shape(&self, value: ValueId) -> Read<Vec<usize>> {
        let ty = self.graph.ty(value);
        let shape = ty.shape().ok_or_else(|| format!("{} has the open shape {ty}", self.graph.value_name(value)))?;
        if shape.contains(&0) {
            return Err(format!("{} has no elements", self.graph.value_name(value)));
        }
        Ok(shape)
    }

    pub(super) fn int8(&self, value: ValueId) -> Read<()> {
        match self.graph.ty(value).dtype {
            DType::I8 => Ok(()),
            other => Err(format!("its data are {other}; the accelerator takes i8")),
        }
    }

    pub(super) fn image(&self, value: ValueId, layout: Layout) -> Read<View> {
        View::image(&self.shape(value)?, layout).ok_or_else(|| "its data are no image".into())
    }

    /// The only reader of a node's value that stays inside the graph.
    fn only_user(&self, node: &Node) -> Option<(NodeId, &Node)> {
        let value = node.output();
        match self.users[value.0].as_slice() {
            [user] if !self.graph.is_output(value) => Some((*user, self.graph.node(*user))),
            _ => None,
        }
    }

    /// The requantization of a node's sums.
    pub(super) fn requantize(&self, node: &Node, axis: usize) -> Read<(NodeId, Finish)> {
        let alone = "its 32-bit sums are read elsewhere than by one requantize, as where a scale or zero point is known \
                     at run time alone, or no multiplier of 31 bits rounds as TFLite does; the accelerator stores 8 bits";
        let (id, user) = self.only_user(node).ok_or(alone)?;
        if !matches!(user.op, Op::Requantize(_)) {
            return Err(alone.into());
        }
        Ok((id, self.finish(node, user, axis)?))
    }

    /// What a requantize does to a node's sums.
    fn finish(&self, node: &Node, user: &Node, axis: usize) -> Read<Finish> {
        let Op::Requantize(op) = &user.op else { return Err(format!("the accelerator has no {}", user.op.name())) };
        if user.inputs[0] != node.output() || op.axis != axis {
            return Err("its requantize does not run along the channels".into());
        }
        let vector = |i: usize| -> Read<Vec<i32>> {
            let constant = self.graph.constant(user.inputs[i]).ok_or("its requantization is no constant")?;
            Ok(constant.as_slice::<i32>().map_err(|e| e.to_string())?.to_vec())
        };
        let finish = Finish {
            bias: vector(1)?,
            multiplier: vector(2)?,
            shift: vector(3)?.into_iter().map(|s| s.clamp(-128, 127) as i8).collect(),
            zero_point: op.zero_point,
            lo: op.lo,
            hi: op.hi,
            mode: op.mode,
        };
        Ok(finish)
    }

    /// A product's node and those of its requantization: one, or two of which the greater or lesser result is taken.
    pub(super) fn finished(&self, id: NodeId, node: &Node, axis: usize) -> Read<(Vec<NodeId>, Finish, Option<Slope>)> {
        if let Some((nodes, finish, slope)) = self.sloped(node, axis) {
            return Ok(([&[id][..], &nodes].concat(), finish, Some(slope)));
        }
        let (next, finish) = self.requantize(node, axis)?;
        Ok((vec![id, next], finish, None))
    }

    /// Two requantizations of a node's sums with the same zero point and bounds, and the operator that takes their results.
    fn sloped(&self, node: &Node, axis: usize) -> Option<([NodeId; 3], Finish, Slope)> {
        let &[a, b] = self.users[node.output().0].as_slice() else { return None };
        if a == b || self.graph.is_output(node.output()) {
            return None;
        }
        let (above, below) = (self.graph.node(a), self.graph.node(b));
        let (taken, user) = self.only_user(above)?;
        let Op::Binary(op::Binary { kind }) = user.op else { return None };
        let op = match PairOp::plain(kind)? {
            PairOp::Plain(_, op) => op,
            _ => return None,
        };
        if self.only_user(below)?.0 != taken || user.inputs.len() != 2 || user.inputs[0] == user.inputs[1] {
            return None;
        }
        let (first, second) = (self.finish(node, above, axis).ok()?, self.finish(node, below, axis).ok()?);
        let Finish { bias, multiplier, shift, mode, .. } = second.clone();
        let slope = Slope { bias, multiplier, shift, mode, op };
        (slope.finish(&first) == second).then_some(([a, b, taken], first, slope))
    }

    /// Takes a clip behind the last node into its bounds.
    pub(super) fn fuse_clip(&self, nodes: &mut Vec<NodeId>, lo: &mut i32, hi: &mut i32) {
        while let Some((id, user)) = nodes.last().and_then(|&last| self.only_user(self.graph.node(last))) {
            let Op::Clip(clip) = &user.op else { return };
            let (least, greatest) = (clip.lo as i32, clip.hi as i32);
            *lo = (*lo).clamp(least, greatest);
            *hi = (*hi).clamp(least, greatest);
            nodes.push(id);
        }
    }

    pub(super) fn layer(
        &self,
        nodes: Vec<NodeId>,
        inputs: Vec<(ValueId, View)>,
        view: View,
        kind: Kind,
    ) -> Read<Layer> {
        let last = nodes.last().ok_or("it has no nodes")?;
        let node = self.graph.node(*last);
        let output = (node.output(), view);
        Ok(Layer { name: node.name.clone(), nodes, inputs, output, kind, then: Vec::new(), on_chip: OnChip::default() })
    }

    pub(super) fn bytes(&self, value: ValueId) -> Read<&[i8]> {
        let tensor = self.graph.constant(value).ok_or("its weights are no constant")?;
        tensor.as_slice::<i8>().map_err(|e| e.to_string())
    }

    /// Weights less their zero point, and the zero point; none where they have it less in the graph.
    pub(super) fn weights(&self, value: ValueId, zero_point: i32) -> Read<(Vec<i32>, Option<i32>)> {
        let tensor = self.graph.constant(value).ok_or("its weights are no constant")?;
        let Ok(wide) = tensor.as_slice::<i32>() else {
            let less = self.bytes(value)?.iter().map(|&w| i32::from(w) - zero_point).collect();
            return Ok((less, Some(zero_point)));
        };
        match wide.iter().find(|w| !(-255..=255).contains(*w)) {
            Some(far) => Err(format!("a weight is {far}; weights of bytes lie within 255 of their zero point")),
            None => Ok((wide.to_vec(), None)),
        }
    }

    fn conv(&self, id: NodeId, node: &Node, op: &op::Conv2d) -> Read<Layer> {
        self.int8(node.inputs[0])?;
        let input = self.image(node.inputs[0], op.layout)?;
        let output = self.image(node.output(), op.layout)?;
        let shape = self.shape(node.inputs[1])?;
        let (weights, weight_zero_point) = self.weights(node.inputs[1], op.weight_zero_point)?;
        let (weights, rest) = split(&weights);
        let (mut nodes, mut finish, mut slope) = self.finished(id, node, op.layout.channel_axis())?;
        fold_zero_point((&mut finish, slope.as_mut()), (&weights, &rest), op.data_zero_point);
        self.fuse_clip(&mut nodes, &mut finish.lo, &mut finish.hi);
        let conv = Conv {
            kernel: [shape[1], shape[2]],
            strides: op.strides,
            pads: op.pads,
            dilations: op.dilations,
            groups: op.groups,
            weights,
            rest,
            weight_zero_point,
            pad_value: op.data_zero_point as i8,
            finish,
            slope,
        };
        self.layer(nodes, vec![(node.inputs[0], input)], output, Kind::Conv(conv))
    }

    /// A fully connected layer is a convolution over columns; over a flattened image, one whose window is the image.
    fn dense(&self, id: NodeId, node: &Node, op: &op::Dense) -> Read<Layer> {
        let data = node.inputs[0];
        self.int8(data)?;
        let (shape, weight) = (self.shape(data)?, self.shape(node.inputs[1])?);
        let (raw, weight_zero_point) = self.weights(node.inputs[1], op.weight_zero_point)?;
        let (m, k, n) = (shape[0], shape[1], weight[0]);
        let held = (self.known)(data).filter(|v| v.n == m && v.c * v.h * v.w == k);
        let input = held.unwrap_or_else(|| View::rows(&shape));
        let (kernel, output) = match held {
            Some(v) => ([v.h, v.w], View::new(Layout::Nhwc, v.n, n, 1, 1)),
            None => ([1, 1], View::rows(&[m, n])),
        };
        let mut weights = Vec::with_capacity(raw.len());
        for o in 0..n {
            for y in 0..kernel[0] {
                for x in 0..kernel[1] {
                    weights.extend((0..input.c).map(|c| raw[o * k + input.index(c, y, x) % k]));
                }
            }
        }
        let (weights, rest) = split(&weights);
        let (mut nodes, mut finish, mut slope) = self.finished(id, node, 1)?;
        fold_zero_point((&mut finish, slope.as_mut()), (&weights, &rest), op.data_zero_point);
        self.fuse_clip(&mut nodes, &mut finish.lo, &mut finish.hi);
        let conv = Conv {
            kernel,
            strides: [1, 1],
            pads: [0; 4],
            dilations: [1, 1],
            groups: 1,
            weights,
            rest,
            weight_zero_point,
            pad_value: op.data_zero_point as i8,
            finish,
            slope,
        };
        self.layer(nodes, vec![(data, input)], output, Kind::Conv(conv))
    }

    /// A product for each matrix of the first operand; the second has as many, or one.
    fn matmul(&self, id: NodeId, node: &Node, op: &op::QMatMul) -> Read<Layer> {
        let [a, b] = [node.inputs[0], node.inputs[1]];
        let (sa, sb, out) = (self.shape(a)?, self.shape(b)?, self.shape(node.output())?);
        let images = |s: &[usize]| s[..s.len() - 2].iter().product::<usize>();
        let (m, k, n) = (sa[sa.len() - 2], sa[sa.len() - 1], sb[sb.len() - 1]);
        let (na, nb) = (images(&sa), images(&sb));
        let alike = nb == 1 || sb[..sb.len() - 2] == sa[..sa.len() - 2];
        if images(&out) != na || !alike {
            return Err("its operands' outer dimensions broadcast".into());
        }
        if [a, b].iter().any(|v| self.graph.constant(*v).is_some()) {
            return Err("an operand is a constant".into());
        }
        let [view_a, view_b] = matrices(&sa, &sb);
        if self.sloped(node, out.len() - 1).is_some() {
            return Err("its results are the greater or lesser of two, which the accelerator makes of products with constants alone".into());
        }
        let (next, mut finish) = self.requantize(node, out.len() - 1)?;
        let both = i32::try_from(k).map_err(|_| "its depth is too large")?;
        let both = both.wrapping_mul(op.a_zero_point.wrapping_mul(op.b_zero_point));
        finish.bias.iter_mut().for_each(|b| *b = b.wrapping_add(both));
        let mut nodes = vec![id, next];
        self.fuse_clip(&mut nodes, &mut finish.lo, &mut finish.hi);
        let on_device = (self.known)(a) == Some(view_a) || (self.known)(b) == Some(view_b);
        let (a_zero_point, b_zero_point) = (op.a_zero_point, op.b_zero_point);
        let work = MatMul { a_zero_point, b_zero_point, finish, on_device };
        let view = View::new(Layout::Nhwc, na, n, 1, m);
        self.layer(nodes, vec![(a, view_a), (b, view_b)], view, Kind::MatMul(work))
    }

    fn pool(&self, id: NodeId, node: &Node) -> Read<Layer> {
        let data = node.inputs[0];
        self.int8(data)?;
        let mut nodes = vec![id];
        let (layout, mut pool) = match &node.op {
            Op::MaxPool2d(op) => {
                let window = (op.kernel, op.strides, op.pads, op.dilations);
                (op.layout, pool(window, Reduce::Max, i8::MIN, PoolFinish::Clip { lo: -128, hi: 127 }))
            }
            Op::AvgPool2d(op) => {
                let finish =
                    PoolFinish::Mean { count_pads: op.count_include_pad, lo: op.lo, hi: op.hi, unsigned: op.unsigned };
                (op.layout, pool((op.kernel, op.strides, op.pads, [1, 1]), Reduce::Sum, 0, finish))
            }
            Op::GlobalAvgPool(op) => {
                let view = self.image(data, op.layout)?;
                let finish = PoolFinish::Mean { count_pads: true, lo: op.lo, hi: op.hi, unsigned: false };
                (op.layout, pool(([view.h, view.w], [1, 1], [0; 4], [1, 1]), Reduce::Sum, 0, finish))
            }
            Op::SumPool2d(op) => {
                let (next, mut finish) = self.requantize(node, op.layout.channel_axis())?;
                nodes.push(next);
                let taps = (op.kernel[0] * op.kernel[1]) as i32;
                for bias in &mut finish.bias {
                    *bias = bias.wrapping_sub(op.data_zero_point.wrapping_mul(taps));
                }
                let window = (op.kernel, op.strides, op.pads, [1, 1]);
                (op.layout, pool(window, Reduce::Sum, op.data_zero_point as i8, PoolFinish::Requant(finish)))
            }
            Op::QAvgPool2d(op) => {
                let window = (op.kernel, op.strides, op.pads, [1, 1]);
                (op.layout, pool(window, Reduce::Sum, 0, PoolFinish::Count(op.clone())))
            }
            other => return Err(format!("{} is no pooling", other.name())),
        };
        if let PoolFinish::Mean { unsigned, .. } = pool.finish {
            let (count, most) = (pool.kernel[0] * pool.kernel[1], if unsigned { 2048 } else { 2952 });
            if count > most {
                return Err(format!("a mean of {count} elements; the multiplier is exact up to {most}"));
            }
        }
        let (PoolFinish::Clip { lo, hi }
        | PoolFinish::Mean { lo, hi, .. }
        | PoolFinish::Count(op::QAvgPool2d { lo, hi, .. })
        | PoolFinish::Requant(Finish { lo, hi, .. })) = &mut pool.finish;
        self.fuse_clip(&mut nodes, lo, hi);
        let (input, output) = (self.image(data, layout)?, self.image(node.output(), layout)?);
        self.layer(nodes, vec![(data, input)], output, Kind::Pool(pool))
    }

    /// The greatest element over height and width: a pooling whose window is the image.
    fn reduce(&self, id: NodeId, node: &Node, op: &op::Reduce) -> Read<Layer> {
        let data = node.inputs[0];
        self.int8(data)?;
        let layout = [Layout::Nhwc, Layout::Nchw].into_iter().find(|l| op.axes == l.spatial_axes());
        let (Some(layout), op::ReduceKind::Max) = (layout, op.kind) else {
            return Err("only the greatest element over height and width is found by the accelerator".into());
        };
        let input = self.image(data, layout)?;
        if !op.keep_dims && input.n > 1 {
            return Err("the results of several images lie apart".into());
        }
        let window = ([input.h, input.w], [1, 1], [0; 4], [1, 1]);
        let mut nodes = vec![id];
        let (mut lo, mut hi) = (-128, 127);
        self.fuse_clip(&mut nodes, &mut lo, &mut hi);
        let pool = pool(window, Reduce::Max, i8::MIN, PoolFinish::Clip { lo, hi });
        self.layer(nodes, vec![(data, input)], input.resized(input.c, 1, 1), Kind::Pool(pool))
    }

    /// Clip, pad and rescale: poolings whose window is one element.
    fn pointwise(&self, id: NodeId, node: &Node) -> Read<Layer> {
        let data = node.inputs[0];
        self.int8(data)?;
        if self.graph.constant(data).is_some() {
            return Err("its operand is a constant".into());
        }
        let shape = self.shape(data)?;
        let mut input = (self.known)(data).unwrap_or_else(|| any_view(&shape));
        let (mut output, mut pads) = (input, [0; 4]);
        let (reduce, pad_value, finish) = match &node.op {
            Op::Clip(op) => (Reduce::Max, 0, PoolFinish::Clip { lo: op.lo as i32, hi: op.hi as i32 }),
            Op::Rescale(op) => {
                let r = op.requant();
                let finish = Finish {
                    bias: vec![r.bias; input.c],
                    multiplier: vec![r.multiplier; input.c],
                    shift: vec![r.shift; input.c],
                    zero_point: r.zero_point,
                    lo: r.lo,
                    hi: r.hi,
                    mode: r.mode,
                };
                (Reduce::Sum, 0, PoolFinish::Requant(finish))
            }
            Op::Pad(op) => {
                let flat = |axis: usize| op.before.get(axis) == Some(&0) && op.after.get(axis) == Some(&0);
                let layout = [input.order(), Layout::Nhwc, Layout::Nchw]
                    .into_iter()
                    .find(|l| shape.len() == 4 && flat(0) && flat(l.channel_axis()))
                    .ok_or("only height and width of images are padded on the accelerator")?;
                (input, output) = (self.image(data, layout)?, self.image(node.output(), layout)?);
                let [y, x] = layout.spatial_axes();
                pads = [op.before[y], op.before[x], op.after[y], op.after[x]];
                (Reduce::Max, op.value as i8, PoolFinish::Clip { lo: -128, hi: 127 })
            }
            other => return Err(format!("the accelerator has no {}", other.name())),
        };
        let pool = Pool { pads, ..pool(([1, 1], [1, 1], [0; 4], [1, 1]), reduce, pad_value, finish) };
        self.layer(vec![id], vec![(data, input)], output, Kind::Pool(pool))
    }
}

/// The views of two matrices, or of as many as their outer dimensions say, that are multiplied.
pub(super) fn matrices(a: &[usize], b: &[usize]) -> [View; 2] {
    let count = |s: &[usize]| s[..s.len() - 2].iter().product::<usize>();
    let [m, k] = [a[a.len() - 2], a[a.len() - 1]];
    [View::new(Layout::Nhwc, count(a), k, 1, m), View::new(Layout::Nchw, count(b), k, 1, b[b.len() - 1])]
}

type Window = ([usize; 2], [usize; 2], [usize; 4], [usize; 2]);

fn pool((kernel, strides, pads, dilations): Window, reduce: Reduce, pad_value: i8, finish: PoolFinish) -> Pool {
    Pool { kernel, strides, pads, dilations, reduce, pad_value, finish }
}

/// Some view of a tensor that is only read element by element.
pub(super) fn any_view(shape: &[usize]) -> View {
    View::image(shape, Layout::Nhwc).filter(|_| shape.len() == 4).unwrap_or_else(|| View::rows(shape))
}

/// `sum (x - z) w = sum x w - z sum w`: padding with the zero point then adds nothing.
pub(super) fn fold_zero_point(
    (finish, slope): (&mut Finish, Option<&mut Slope>),
    (weights, rest): (&[i8], &[i16]),
    zero: i32,
) {
    let channels = finish.bias.len().max(1);
    let mut biases = vec![&mut finish.bias];
    biases.extend(slope.map(|s| &mut s.bias));
    for bias in biases {
        fold(bias, channels, weights, zero);
        fold(bias, channels, rest, zero);
    }
}

fn fold<T: Copy + Into<i32>>(biases: &mut [i32], channels: usize, weights: &[T], zero: i32) {
    let depth = weights.len() / channels;
    for (bias, row) in biases.iter_mut().zip(weights.chunks(depth.max(1))) {
        let sum = row.iter().fold(0i32, |sum, &w| sum.wrapping_add(w.into()));
        *bias = bias.wrapping_sub(zero.wrapping_mul(sum));
    }
}

/// Multiplier, shift and mode that divide a sum by `count`, ties away from zero.
pub(super) fn division(count: usize) -> (i32, i8, tilewright_hw::num::Rounding) {
    use tilewright_hw::num::Rounding;
    match count {
        // Twice the value times a half: unchanged.
        0 | 1 => (1 << 30, 1, Rounding::Double),
        _ => (average_multiplier(count as u32), 0, Rounding::Single),
    }
}
