//! Reads poolings of the graph, and other nodes that work channel by channel, as layers.

use super::op::{Pool, PoolFinish, Reduce};
use crate::codegen::accel::finish::Finish;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::view::View;
use crate::graph::op::{self, Layout, Op};
use crate::graph::{Node, NodeId};

/// Reads a pooling.
pub fn pool(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<(Layer, Pool)> {
    let data = node.inputs[0];
    reader.int8(data)?;
    let mut nodes = vec![id];
    let (layout, mut pool) = match &node.op {
        Op::MaxPool2d(op) => {
            let window = Window { kernel: op.kernel, strides: op.strides, pads: op.pads, dilations: op.dilations };
            (op.layout, window_pool(window, Reduce::Max, i8::MIN, PoolFinish::Clip { lo: -128, hi: 127 }))
        }
        Op::AvgPool2d(op) => {
            let finish =
                PoolFinish::Mean { count_pads: op.count_include_pad, lo: op.lo, hi: op.hi, unsigned: op.unsigned };
            (op.layout, window_pool(Window::new(op.kernel, op.strides, op.pads), Reduce::Sum, 0, finish))
        }
        Op::GlobalAvgPool(op) => {
            let view = reader.image(data, op.layout)?;
            let finish = PoolFinish::Mean { count_pads: true, lo: op.lo, hi: op.hi, unsigned: false };
            (op.layout, window_pool(Window::of_image(view), Reduce::Sum, 0, finish))
        }
        Op::SumPool2d(op) => {
            let (next, mut finish) = reader.requantize(node, op.layout.channel_axis())?;
            nodes.push(next);
            let taps = (op.kernel[0] * op.kernel[1]) as i32;
            for bias in &mut finish.bias {
                *bias = bias.wrapping_sub(op.data_zero_point.wrapping_mul(taps));
            }
            let window = Window::new(op.kernel, op.strides, op.pads);
            (op.layout, window_pool(window, Reduce::Sum, op.data_zero_point as i8, PoolFinish::Requant(finish)))
        }
        Op::QAvgPool2d(op) => {
            let window = Window::new(op.kernel, op.strides, op.pads);
            (op.layout, window_pool(window, Reduce::Sum, 0, PoolFinish::Count(op.clone())))
        }
        other => return Err(format!("{} is not a pooling", other.name())),
    };
    if let PoolFinish::Mean { unsigned, .. } = pool.finish {
        let (count, most) = (pool.kernel[0] * pool.kernel[1], if unsigned { 2048 } else { 2952 });
        if count > most {
            return Err(format!("it averages {count} elements, but the multiplier is only exact up to {most}"));
        }
    }
    let (PoolFinish::Clip { lo, hi }
    | PoolFinish::Mean { lo, hi, .. }
    | PoolFinish::Count(op::QAvgPool2d { lo, hi, .. })
    | PoolFinish::Requant(Finish { lo, hi, .. })) = &mut pool.finish;
    reader.fuse_clip(&mut nodes, lo, hi);
    let (input, output) = (reader.image(data, layout)?, reader.image(node.output(), layout)?);
    Ok((reader.layer(nodes, vec![(data, input)], output)?, pool))
}

/// Reads the maximum over height and width as a pooling whose window is the image.
pub fn reduce(reader: &Reader<'_>, id: NodeId, node: &Node, op: &op::Reduce) -> Read<(Layer, Pool)> {
    let data = node.inputs[0];
    reader.int8(data)?;
    let layout = [Layout::Nhwc, Layout::Nchw].into_iter().find(|l| op.axes == l.spatial_axes());
    let (Some(layout), op::ReduceKind::Max) = (layout, op.kind) else {
        return Err("the accelerator only reduces images to the maximum over height and width".into());
    };
    let input = reader.image(data, layout)?;
    if !op.keep_dims && input.n > 1 {
        return Err("without keep_dims, the results of several images are not contiguous".into());
    }
    let window = Window::of_image(input);
    let mut nodes = vec![id];
    let (mut lo, mut hi) = (-128, 127);
    reader.fuse_clip(&mut nodes, &mut lo, &mut hi);
    let pool = window_pool(window, Reduce::Max, i8::MIN, PoolFinish::Clip { lo, hi });
    Ok((reader.layer(nodes, vec![(data, input)], input.resized(input.c, 1, 1))?, pool))
}

/// Reads clip, pad and rescale as poolings whose window is one element.
pub fn pointwise(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<(Layer, Pool)> {
    let data = node.inputs[0];
    reader.int8(data)?;
    if reader.graph.constant(data).is_some() {
        return Err("its operand is a constant".into());
    }
    let shape = reader.shape(data)?;
    let mut input = (reader.known)(data).unwrap_or_else(|| View::any(&shape));
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
                .ok_or("the accelerator only pads height and width of images")?;
            (input, output) = (reader.image(data, layout)?, reader.image(node.output(), layout)?);
            let [y, x] = layout.spatial_axes();
            pads = [op.before[y], op.before[x], op.after[y], op.after[x]];
            (Reduce::Max, op.value as i8, PoolFinish::Clip { lo: -128, hi: 127 })
        }
        other => return Err(format!("the accelerator has no {}", other.name())),
    };
    let pool = window_pool(Window::new([1, 1], [1, 1], pads), reduce, pad_value, finish);
    Ok((reader.layer(vec![id], vec![(data, input)], output)?, pool))
}

/// The windows of a pooling.
struct Window {
    kernel: [usize; 2],
    strides: [usize; 2],
    pads: [usize; 4],
    dilations: [usize; 2],
}

impl Window {
    /// Windows without dilation.
    fn new(kernel: [usize; 2], strides: [usize; 2], pads: [usize; 4]) -> Window {
        Window { kernel, strides, pads, dilations: [1, 1] }
    }

    /// One window that covers the image.
    fn of_image(view: View) -> Window {
        Window::new([view.h, view.w], [1, 1], [0; 4])
    }
}

fn window_pool(window: Window, reduce: Reduce, pad_value: i8, finish: PoolFinish) -> Pool {
    let Window { kernel, strides, pads, dilations } = window;
    Pool { kernel, strides, pads, dilations, reduce, pad_value, finish }
}
