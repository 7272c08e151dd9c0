//! The expression of a convolution: its data with their padding, the sums of products, and a second requantization.

use super::depth::Depth;
use super::frame::Frame;
use super::further::{Further, Term};
use super::op::Conv;
use super::rest::{pack, stored, stored_zero_point};
use super::sizes::{Sizes, skips_rows};
use crate::codegen::accel::border::{Border, computed};
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::finish::{Finish, Slope};
use crate::codegen::accel::padded_range::{inside, less, within};
use crate::codegen::accel::requant::Parameters;
use crate::codegen::accel::scheduled::LayerInput;
use crate::codegen::accel::view::View;
use crate::te::{Array, Builder, DType, Expr, TensorRef};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::VecOp;

/// Results of a second requantization.
pub const BELOW: &str = "below";

/// The data as they are in inp.
pub struct Data {
    /// The tensor.
    pub tensor: TensorRef,
    /// Bytes of a row of a window, if whole windows are channels.
    pub rows: Option<usize>,
}

/// A second requantization in a layer's expression.
pub struct Second {
    /// Its results.
    pub below: TensorRef,
    /// The maximum or the minimum of both requantizations.
    pub choice: TensorRef,
    /// Its parameters.
    pub parameters: Parameters,
}

/// Adds a second requantization of the sums to an expression. Its results are in 32 bits, so that they can take the place
/// of the sums.
pub fn second(
    b: &mut Builder,
    finish: &Finish,
    slope: &Slope,
    [sums, result]: [&TensorRef; 2],
    tiles: i64,
    (border, frame): (Option<&Border>, &Frame),
) -> Second {
    let finish = slope.finish(finish);
    let last = sums.shape.len() - 1;
    let parameters = Parameters::new(b, &finish, [tiles, sums.shape[last]], "slope_");
    let below =
        b.compute(BELOW, &sums.shape, |i| parameters.wide(&finish, sums.at(i), &[frame.out_tile(i), i[last].clone()]));
    let choice = computed(b, border, "choice", &sums.shape, |i| {
        let (a, b) = (result.at(i).cast(DType::I32), below.at(i));
        let value = if slope.op == VecOp::Max { a.max(b) } else { a.min(b) };
        value.max(Expr::i32(i8::MIN.into())).min(Expr::i32(i8::MAX.into())).cast(DType::I8)
    });
    Second { below, choice, parameters }
}

/// What products multiply.
pub struct Factors<'f> {
    /// The products: one, or one for each phase.
    pub convs: &'f [Conv],
    /// Their data.
    pub data: &'f Data,
    /// The entries of data and results.
    pub frame: &'f Frame,
    /// Weights beyond 8 bits.
    pub further: Option<&'f Further>,
}

/// Sums of products.
pub struct Sums {
    /// The sums.
    pub tensor: TensorRef,
    /// The input of weights.
    pub weights: TensorRef,
    /// Weights beyond 8 bits in wgt.
    pub further: Option<TensorRef>,
    /// The values of the inputs: weights, and those beyond 8 bits.
    pub inputs: Vec<LayerInput>,
}

/// Adds the sums of products of data and weights to an expression. `prefix` distinguishes the names of several products.
pub fn sums(b: &mut Builder, prefix: &str, factors: &Factors, config: &HwConfig, constants: Constants) -> Sums {
    let Factors { convs, data, frame, further } = factors;
    let ([input, output], conv) = (frame.views, &convs[0]);
    let sizes = Sizes::new(conv, input, output, config);
    let [kh, kw, bi, bo] =
        [conv.kernel[0], conv.kernel[1], config.block_in as usize, config.block_out as usize].map(|n| n as i64);
    let out_tiles = (convs.len() * sizes.out_blocks * sizes.out_ratio) as i64;
    let shape = [out_tiles, sizes.in_tiles as i64, kh, kw, bo, bi];
    let zero_point = stored_zero_point(conv, config);
    let weights = match constants {
        Constants::Given => {
            let packed = |conv: &Conv| pack(conv, &stored(conv, config), zero_point, &sizes, input, config);
            Array::of_bytes(&shape, &convs.iter().flat_map(packed).collect::<Vec<_>>())
        }
        Constants::Zeros => Array::zeros(DType::I8, &shape),
    };
    let w = b.input(&format!("{prefix}weights"), DType::I8, &shape);
    let mut inputs = vec![LayerInput::Constant(weights)];
    let more = further.map(|further| {
        let (tensor, value) = further.tensors(b, prefix, constants);
        inputs.push(LayerInput::Constant(value));
        (further, tensor)
    });
    let [row_step, column_step] = if skips_rows(conv) { [1, conv.strides[1]] } else { conv.strides };
    let [row_step, column_step] = [row_step, column_step].map(|n| n as i64);
    let [row_tap, column_tap] = conv.dilations.map(|n| n as i64);
    let depth = Depth::new(conv, &sizes, input, config);
    let mut reduce = vec![("d", depth.blocks)];
    reduce.extend((sizes.in_ratio > 1).then_some(("e", depth.entries)));
    reduce.extend([("r", kh), ("s", kw), ("k", bi)]);
    let sums = b.sum_from(
        &format!("{prefix}sums"),
        &frame.results(sizes.out_blocks as i64),
        &reduce,
        |_| Expr::i32(0),
        |i, t| {
            let [.., r, s, k] = t else { unreachable!("there are at least four axes") };
            let (phase, own) = frame.split(i);
            let (row, column) = (own[2].clone() * row_step, own[3].clone() * column_step);
            let [row, column] = match &frame.phases {
                None => [row + r.clone() * row_tap, column + s.clone() * column_tap],
                Some(phases) => [row + phases.position(0, phase, r), column + phases.position(1, phase, s)],
            };
            let entry = if sizes.in_ratio > 1 { t[1].clone() } else { Expr::int(0) };
            let x = match data.rows {
                None => {
                    let block = depth.block(&own[1], &frame.own_tile(own), &t[0]);
                    data.tensor.at(&frame.data_at(i, [block, entry.clone()], [row, column], k))
                }
                Some(_) => data.tensor.at(&[i[0].clone(), row, column, t[0].clone() * bi + k.clone()]),
            };
            let x = x.cast(DType::I32);
            let (tile, o) = (depth.tile(&t[0], &entry), i[i.len() - 1].clone());
            let second = more.as_ref().map(|(further, tensor)| {
                let term = Term {
                    phase: frame.phases.as_ref().map(|phases| phases.number(phase)),
                    out: [&own[1], &frame.out_tile(i)],
                    input: [&t[0], &tile],
                    tap: [r, s],
                    channels: [&o, k],
                };
                let (w, exists) = further.weight(tensor, &term);
                within(exists.into_iter().collect(), x.clone() * w.cast(DType::I32), Expr::i32(0))
            });
            let w = w.at(&[frame.out_tile(i), tile, r.clone(), s.clone(), o, k.clone()]).cast(DType::I32);
            let term = x * if zero_point == 0 { w } else { w - Expr::i32(zero_point.into()) };
            let taps = frame.phases.iter().flat_map(|p| {
                [p.condition(0, phase, r, conv.kernel[0]), p.condition(1, phase, s, conv.kernel[1])]
                    .into_iter()
                    .flatten()
            });
            let first = within(depth.exists(&t[0], &entry).into_iter().chain(taps).collect(), term, Expr::i32(0));
            match second {
                Some(second) => first + second,
                None => first,
            }
        },
    );
    Sums { tensor: sums, weights: w, further: more.map(|(_, tensor)| tensor), inputs }
}

/// Adds the data with a whole window as the channels of a pixel.
pub fn windows(b: &mut Builder, conv: &Conv, input: View, output: View, config: &HwConfig) -> Option<TensorRef> {
    let windows = input.windows()?;
    let (layout, row_bytes) = (input.layout(config), input.c as i64);
    let [images, height, kernel_rows] = [input.n, input.h, conv.kernel[0]].map(|n| n as i64);
    let channels = (conv.kernel[0] * input.c).next_multiple_of(config.block_in as usize) as i64;
    let x = b.input("x", DType::I8, &[images, height, layout.row_stride() as i64]);
    let [step, tap, top] = [conv.strides[0], conv.dilations[0], conv.pads[0]].map(|n| n as i64);
    let pixel = (windows.step * windows.c) as i64;
    let shape = [images, output.h as i64, output.w as i64, channels];
    Some(b.compute("data", &shape, |i| {
        let kernel_row = i[3].clone() / Expr::int(row_bytes);
        let row = i[1].clone() * step + kernel_row * tap;
        let byte = i[2].clone() * pixel + i[3].clone() % Expr::int(row_bytes);
        let mut inside = i[3].clone().lt(Expr::int(kernel_rows * row_bytes));
        if top > 0 {
            inside = inside.and(Expr::int(top).le(row.clone()));
        }
        if (output.h as i64 - 1) * step + (kernel_rows - 1) * tap >= top + height {
            inside = inside.and(row.clone().lt(Expr::int(top + height)));
        }
        let element = x.at(&[i[0].clone(), if top == 0 { row } else { row - Expr::int(top) }, byte]);
        inside.select(element, Expr::Int(conv.pad_value.into(), DType::I8))
    }))
}

/// Returns the steps that make instructions of a product's sums, if all input channels are summed at once.
pub fn gemm(sums: &Sums, frame: &Frame) -> String {
    let s = &sums.tensor.name;
    let ([outer, entry], within) = (frame.result_loops(&sums.tensor), frame.depth_loops(s.as_str()));
    format!("reorder {outer} {s}.d {within} {entry} {s}.k; decompose_reduction {s} {s}.i0; ") + &products(sums, frame)
}

/// Returns the steps that make instructions of the terms of a product's sums, whose loops are in order.
pub fn products(sums: &Sums, frame: &Frame) -> String {
    let (s, entry) = (&sums.tensor.name, frame.entry(&sums.tensor));
    match sums.further {
        None => format!("tensorize {s}.i{entry} gemm; "),
        Some(_) => format!("split_sum {s} {s}.i0; tensorize {s}.i{entry} gemm; tensorize {s}.i{entry}.more gemm; "),
    }
}

/// Adds the data as the windows read them: with padding, and without rows that no window reads.
pub fn data(b: &mut Builder, conv: &Conv, frame: &Frame, config: &HwConfig) -> TensorRef {
    let [input, output] = frame.views;
    let block = i64::from(config.block());
    let [images, height] = [input.n, input.h].map(|n| n as i64);
    let blocks = input.c.div_ceil(config.block() as usize) as i64;
    let [top, left] = [conv.pads[0], conv.pads[1]].map(|n| n as i64);
    let (skips, step) = (skips_rows(conv), conv.strides[0] as i64);
    let rows = if skips { output.h } else { conv.span(0, output.h) } as i64;
    let columns = conv.span(1, output.w) as i64;
    let shape = frame.of_image([blocks, rows, columns]);
    let pad = Expr::Int(conv.pad_value.into(), DType::I8);
    let within = |inside: Vec<Expr>, element: Expr| within(inside, element, pad.clone());
    // The row of the tensor, and the conditions for it to be inside.
    let row = |at: &Expr| match skips {
        true => (at.clone() * step, Vec::new()),
        false => (less(at, top), inside(at, rows, top, height)),
    };
    if let Some(windows) = input.windows() {
        let layout = input.layout(config);
        let x = b.input("x", DType::I8, &[images, height, layout.row_stride() as i64]);
        let pixel = (windows.step * windows.c) as i64;
        return b.compute("data", &shape, |i| {
            let (row, mut conditions) = row(&i[2]);
            let channel = i[1].clone() * block + i[4].clone();
            let element = x.at(&[i[0].clone(), row, i[3].clone() * pixel + channel.clone()]);
            if input.c as i64 % block == 0 {
                return within(conditions, element);
            }
            let counts = channel.lt(Expr::int(input.c as i64));
            if config.dma_pad || conv.pad_value == 0 {
                conditions.push(counts);
                return within(conditions, element);
            }
            // Loads that cannot pad fill the rest of an entry with zeros. No weight but 0 is for these channels.
            within(conditions, counts.select(element, Expr::Int(0, DType::I8)))
        });
    }
    let width = input.w as i64;
    let x = b.input("x", DType::I8, &[&[images, blocks, height, width], &shape[4..]].concat());
    b.compute("data", &shape, |i| {
        let (row, mut conditions) = row(&i[2]);
        conditions.extend(inside(&i[3], columns, left, width));
        within(conditions, x.at(&[&[i[0].clone(), i[1].clone(), row, less(&i[3], left)], &i[4..]].concat()))
    })
}
