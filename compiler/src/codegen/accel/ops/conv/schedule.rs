//! Convolutions as scheduled tensor expressions.
//!
//! The expression copies the data with their padding to inp, multiplies them with the weights tile by tile, requantizes
//! the sums, and applies the fused element-wise operators. The schedule is made from the sizes of a [`ConvTile`].

use super::depth::Depth;
use super::epilogue::Epilogue;
use super::frame::{Frame, Loops, Operand};
use super::op::Conv;
use super::packed::windows_as_channels;
use super::phases::{Phases, joined};
use super::rest::{pack, stored, stored_zero_point};
use super::sizes::{Sizes, column_span, row_span, skips_rows};
use super::tiles::ConvTile;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::finish::{Finish, Slope};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::MOST_SLOTS;
use crate::codegen::accel::padded_range::{inside, less, within};
use crate::codegen::accel::requant::{Parameters, keeps_params, requantized};
use crate::codegen::accel::scheduled::{LayerInput, LayerSchedule, template};
use crate::codegen::accel::view::View;
use crate::graph::op::{self, Op};
use crate::te::{Array, Builder, DType, Expr, TensorRef, ops};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::VecOp;

/// Entries of a row of weights from which on its load takes much longer than a further instruction.
const LONG_ROW: usize = 16;

/// Most slots of the weights if nothing else is loaded.
const MOST_OF_WEIGHTS: usize = 64;

/// Most slots of an operand that is combined with the results.
const MOST_WAITING: usize = 4;

/// Results of a second requantization.
const BELOW: &str = "below";

/// Returns a convolution in tiles.
pub fn schedule(
    conv: &Conv,
    tile: &ConvTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let mut b = Builder::new("conv");
    let frame = Frame::new(conv, [layer.input_view(), layer.output_view()], [tile.rows, tile.columns], config);
    let data = frame.data(&mut b, conv).unwrap_or_else(|| data(&mut b, conv, &frame, config));
    let data = Data { tensor: data, rows: None };
    product(b, std::slice::from_ref(conv), &frame, data, tile, layer, config, constants)
}

/// Returns the phases of a transposed convolution in tiles. `convs` are their products, `views` those of the input and of a
/// phase.
pub fn of_phases(
    convs: &[Conv],
    phases: &Phases,
    views: [View; 2],
    tile: &ConvTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let (mut b, conv) = (Builder::new("conv_transpose"), convs.first()?);
    let frame = Frame::of_phases(phases, views, [tile.rows, tile.columns], config);
    let data = frame.data(&mut b, conv).unwrap_or_else(|| data(&mut b, conv, &frame, config));
    product(b, convs, &frame, Data { tensor: data, rows: None }, tile, layer, config, constants)
}

/// Returns a convolution in tiles whose loads turn whole windows into channels.
pub fn packed(
    conv: &Conv,
    tile: &ConvTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let input = layer.input_view();
    let (flat, view) = windows_as_channels(conv, [input, layer.output_view()], config)?;
    let mut b = Builder::new("conv");
    let data = windows(&mut b, conv, input, layer.output_view(), config)?;
    let frame = Frame::of_one_row([view, layer.output_view()], config);
    let data = Data { tensor: data, rows: Some(input.c) };
    product(b, std::slice::from_ref(&flat), &frame, data, tile, layer, config, constants)
}

/// The data as they are in inp.
pub struct Data {
    /// The tensor.
    pub tensor: TensorRef,
    /// Bytes of a row of a window, if whole windows are channels.
    pub rows: Option<usize>,
}

/// Returns products of data and weights in tiles: one, or one for each phase.
#[allow(clippy::too_many_arguments)]
fn product(
    mut b: Builder,
    convs: &[Conv],
    frame: &Frame,
    data: Data,
    tile: &ConvTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let [input, output] = frame.views;
    let conv = convs.first()?;
    let sizes = Sizes::new(conv, input, output, config);
    let own_channels = sizes.out_blocks * sizes.out_ratio;
    let out_channels = (frame.products() * own_channels) as i64;
    let (finish, slope) = joined(convs, own_channels * config.block_out as usize);
    let (sums, w, weights) = sums(&mut b, "", convs, &data, frame, config, constants);
    let Data { tensor: data, rows: window_row } = data;
    let results = sums.shape.clone();
    let mut done = requantized(&mut b, &finish, &sums, out_channels, |i| frame.out_tile(i));
    let mut inputs = vec![LayerInput::Tensor(0), LayerInput::Constant(weights)];
    inputs.extend(done.inputs.clone());
    let mut last = done.result.clone();
    let mut operands = Vec::new();
    let mut instructions = frame.instruction(&last, "requant");
    let mut between = Vec::new();
    if let Some(slope) = &slope {
        let Second { below, choice, parameters } = second(&mut b, &finish, slope, [&sums, &last], out_channels, frame);
        instructions += &(frame.instruction(&below, "requant") + &frame.instruction(&choice, slope.op.name()));
        between.extend([(last.name.clone(), Mem::Out), (below.name.clone(), Mem::Acc)]);
        done.steps += &parameters.steps(below.name.as_str());
        done.copies.extend(parameters.copies());
        inputs.extend(parameters.inputs);
        last = choice;
    }
    for step in &conv.epilogue {
        between.push((last.name.clone(), Mem::Out));
        last = match step {
            Epilogue::Pool { .. } => return None,
            Epilogue::Pair { op, input } => {
                let other = frame.operand(&mut b, &results);
                let next = ops::build(&mut b, &op.graph_op(), &[last, other.tensor.clone()], &results)?;
                inputs.push(LayerInput::Tensor(*input));
                operands.push((next.name.clone(), other));
                instructions += &frame.instruction(&next, op.operation().name());
                next
            }
            Epilogue::Lookup(table) => {
                let entries = b.input("table", DType::I8, &[table.len() as i64]);
                let next = ops::build(&mut b, &Op::Lookup(op::Lookup {}), &[last, entries.clone()], &results)?;
                inputs.push(LayerInput::Constant(Array::of_bytes(&entries.shape, table)));
                instructions +=
                    &format!("cache_read {} {} param; {}", next.name, entries.name, frame.instruction(&next, "lut"));
                next
            }
        };
    }
    let output_tensor = frame.output(&mut b, &last);
    let (name, is_stored) = (&last.name, output_tensor.name == last.name);
    let write = if is_stored { format!("{name}.write") } else { output_tensor.name.to_string() };
    let Loops { steps: divided, blocks: block_tiles, pixels, phases } = frame.loops(&write, is_stored, tile);
    let column_tiles = pixels.last()?.clone();
    // Results that stay in inp are written there. If they are also stored, they are moved there from out.
    let results_in = if layer.on_chip.hides_output() { Mem::Inp } else { Mem::Out }.name();
    let mut steps = frame.omit(&data);
    operands.iter().filter(|(_, o)| o.is_copy).for_each(|(_, operand)| steps += &frame.omit(&operand.tensor));
    steps += &format!(
        "set_scope {data} inp; cache_read sums weights wgt; set_scope sums acc; {params}{to} {name} {results_in}; ",
        data = data.name,
        params = done.steps,
        to = if is_stored { "cache_write" } else { "set_scope" }
    );
    for (name, mem) in &between {
        steps += &format!("set_scope {name} {}; ", mem.name());
    }
    let scope = tile.operands.name();
    // The buffer of each operand, which its reader reads.
    let mut waiting_operands = Vec::new();
    for (reader, Operand { tensor, is_copy }) in &operands {
        if *is_copy {
            steps += &format!("set_scope {} {scope}; ", tensor.name);
            instructions += &frame.rows_apart(tensor);
            waiting_operands.push((reader, tensor.name.to_string()));
        } else {
            steps += &format!("cache_read {reader} {} {scope}; ", tensor.name);
            waiting_operands.push((reader, format!("{}.{scope}", tensor.name)));
        }
    }
    steps += &divided;
    let order = match tile.pixels_inside {
        true => [phases, vec![block_tiles.clone()], pixels].concat(),
        false => [pixels, phases, vec![block_tiles.clone()]].concat(),
    };
    let inner = order.last()?;
    // A block that is moved to the start of a loop runs before those that were moved there earlier.
    let mut compacted: Vec<String> = vec![sums.name.to_string()];
    if !layer.on_chip.hides_output() {
        compacted.push(if is_stored { format!("{name}.out") } else { name.to_string() });
    }
    for stage in between.iter().map(|(stage, _)| stage).chain([name]).rev() {
        steps += &format!("compute_at {stage} {inner}; ");
        if stage != name {
            compacted.push(stage.to_string());
        }
        for (_, operand) in waiting_operands.iter().filter(|(reader, _)| *reader == stage) {
            steps += &format!("compute_at {operand} {inner}; ");
            compacted.push(operand.clone());
        }
    }
    steps += &format!("compute_at sums {inner}; ");
    if layer.on_chip.output.is_some() && layer.on_chip.stored {
        steps += &format!("keep {name}.write {inner} inp; ");
        instructions += &format!("tensorize {name}.keep.i{} move; ", frame.entry(&last));
    }
    let mut slotted: Vec<(String, usize)> = Vec::new();
    let passes = sizes.in_blocks.div_ceil(tile.in_blocks);
    let out_tiles = frame.products() * sizes.out_blocks.div_ceil(tile.out_blocks);
    let pixel_tiles = frame.pixel_tiles(tile);
    // A tile of blocks reads its own part of the data.
    let grouped = conv.groups > 1 && sizes.first_blocks(conv, input, config).is_even();
    let (data_at, weights_at) = if grouped {
        (inner.as_str(), block_tiles.as_str())
    } else if passes > 1 {
        let ([outer, entry], within) = (frame.result_loops(&sums), frame.depth_loops("sums"));
        steps += &format!(
            "split sums.d {}; reorder sums.d.0 {outer} sums.d.1 {within} {entry} sums.k; \
             decompose_reduction sums sums.d.0; ",
            tile.in_blocks
        );
        ("sums.d.0", "sums.d.0")
    } else {
        (column_tiles.as_str(), block_tiles.as_str())
    };
    // What is read again stays, if all of it fits.
    let room = |mem: Mem| match (mem, layer.on_chip.room) {
        (Mem::Inp, Some((_, entries))) => entries,
        _ => config.entries(mem),
    };
    let again = |times: bool, t: &TensorRef, mem: Mem| {
        let bytes = t.shape.iter().product::<i64>() as u64;
        times && bytes <= u64::from(room(mem)) * u64::from(config.entry_bytes(mem))
    };
    let reads_data_again = (tile.pixels_inside || passes > 1) && out_tiles > 1 && !grouped;
    let reads_weights_again = (!tile.pixels_inside || passes > 1) && pixel_tiles > 1;
    let keeps_data = layer.on_chip.input.is_some() || again(reads_data_again, &data, Mem::Inp);
    let keeps_weights = again(reads_weights_again, &w, Mem::Wgt);
    steps += &format!("compute_at {} {data_at}; compute_at weights.wgt {weights_at}; ", data.name);
    // Loads run ahead as far as the memory allows.
    let slots = |entries: usize, iterations: usize, mem: Mem| {
        let shared = if mem == tile.operands { 1 + operands.len() } else { 1 };
        (room(mem) as usize / shared / entries.max(1)).min(iterations).max(1)
    };
    let (data_iterations, weights_iterations) = match (passes > 1, tile.pixels_inside) {
        (false, false) if grouped => (out_tiles * pixel_tiles, out_tiles * pixel_tiles),
        (true, _) => (passes * out_tiles * pixel_tiles, passes * out_tiles * pixel_tiles),
        (false, true) => (out_tiles * pixel_tiles, out_tiles),
        (false, false) => (pixel_tiles, out_tiles * pixel_tiles),
    };
    if !keeps_data {
        compacted.push(data.name.to_string());
        let window = [row_span(conv, 0, tile.rows, input).0, column_span(conv, 0, tile.columns, input)];
        let blocks = match grouped {
            true => sizes.blocks_for(conv, 0..tile.out_blocks.min(sizes.out_blocks), input, config).1,
            false => tile.in_blocks,
        };
        let entries = blocks * sizes.in_ratio * window.map(|span| span.padded()).iter().product::<usize>();
        slotted.push((data.name.to_string(), slots(entries, data_iterations, Mem::Inp).min(MOST_SLOTS)));
    }
    if !keeps_weights {
        compacted.push("weights.wgt".into());
        let in_tiles = (tile.in_blocks * sizes.in_ratio).min(sizes.in_tiles);
        let entries = tile.out_blocks * sizes.out_ratio * in_tiles * conv.taps();
        // If the data stay in inp, only weights are loaded, and long rows as soon as there is room for each.
        let most = if layer.on_chip.input.is_some() { MOST_OF_WEIGHTS } else { MOST_SLOTS };
        if layer.on_chip.input.is_some() && passes > 1 && tile.in_blocks * conv.taps() >= LONG_ROW {
            steps += "annotate weights.wgt.i0 unrolled; ";
        }
        slotted.push(("weights.wgt".into(), slots(entries, weights_iterations, Mem::Wgt).min(most)));
    }
    let requantizations = 1 + usize::from(slope.is_some());
    if !keeps_params(requantizations * out_channels as usize, config) {
        for copy in &done.copies {
            steps += &format!("compute_at {copy} {block_tiles}; ");
            compacted.push(copy.clone());
        }
    }
    let tiles = out_tiles * pixel_tiles;
    let entries = tile.out_blocks * sizes.out_ratio * tile.rows * tile.columns;
    let waiting = slots(entries, tiles, tile.operands).min(MOST_WAITING);
    slotted.extend(waiting_operands.into_iter().map(|(_, operand)| (operand, waiting)));
    // Sums in banks of their own, so that gemm writes one bank while the vector unit reads another.
    let bank = (config.entries(Mem::Acc) / config.banks(Mem::Acc)) as usize;
    let of_sums = slots(entries.next_multiple_of(bank), tiles, Mem::Acc).min(MOST_SLOTS);
    slotted.push(("sums".into(), of_sums));
    // The second requantization writes over the sums.
    slotted.extend(slope.iter().map(|_| (BELOW.into(), of_sums)));
    if layer.on_chip.output.is_some() {
        slotted.push((format!("{name}.inp"), 1));
    } else if between.is_empty() {
        // Nothing reads the results in out except stores.
        let results = if is_stored { format!("{name}.out") } else { name.to_string() };
        slotted.push((results, slots(entries, tiles, Mem::Out).min(MOST_SLOTS)));
    }
    for buffer in &compacted {
        steps += &format!("compact {buffer}; ");
    }
    for (buffer, slots) in &slotted {
        steps += &format!("slots {buffer} {slots}; ");
    }
    if let Some(bytes) = window_row {
        // Each row of the kernel is a load of its own.
        steps += &format!("split data.i3 {bytes}; reorder data.i0 data.i3.0 data.i1 data.i2 data.i3.1; ");
    }
    for at in &order {
        steps += &format!("annotate {at} pipeline; ");
    }
    steps += &frame.rows_apart(&data);
    if passes > 1 {
        steps += &format!("annotate sums.d.0 pipeline; tensorize sums.i{} gemm; ", frame.entry(&sums));
    } else {
        steps += &gemm(&sums, frame);
    }
    steps += &instructions;
    Some(LayerSchedule { program: b.finish(&[output_tensor]), inputs, steps: template(&steps)? })
}

/// A second requantization in a layer's expression.
struct Second {
    /// Its results.
    below: TensorRef,
    /// The maximum or the minimum of both requantizations.
    choice: TensorRef,
    parameters: Parameters,
}

/// Adds a second requantization of the sums to an expression. Its results are in 32 bits, so that they can take the place
/// of the sums.
fn second(
    b: &mut Builder,
    finish: &Finish,
    slope: &Slope,
    [sums, result]: [&TensorRef; 2],
    tiles: i64,
    frame: &Frame,
) -> Second {
    let finish = slope.finish(finish);
    let last = sums.shape.len() - 1;
    let parameters = Parameters::new(b, &finish, [tiles, sums.shape[last]], "slope_");
    let below =
        b.compute(BELOW, &sums.shape, |i| parameters.wide(&finish, sums.at(i), &[frame.out_tile(i), i[last].clone()]));
    let choice = b.compute("choice", &sums.shape, |i| {
        let (a, b) = (result.at(i).cast(DType::I32), below.at(i));
        let value = if slope.op == VecOp::Max { a.max(b) } else { a.min(b) };
        value.max(Expr::i32(i8::MIN.into())).min(Expr::i32(i8::MAX.into())).cast(DType::I8)
    });
    Second { below, choice, parameters }
}

/// Adds the sums of products of data and weights to an expression. Returns them, the input of weights and its value.
/// `prefix` distinguishes the names of several products. `convs` are the products: one, or one for each phase.
pub fn sums(
    b: &mut Builder,
    prefix: &str,
    convs: &[Conv],
    data: &Data,
    frame: &Frame,
    config: &HwConfig,
    constants: Constants,
) -> (TensorRef, TensorRef, Array) {
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
            let w = w.at(&[frame.out_tile(i), tile, r.clone(), s.clone(), o, k.clone()]).cast(DType::I32);
            let term = x * if zero_point == 0 { w } else { w - Expr::i32(zero_point.into()) };
            let taps = frame.phases.iter().flat_map(|p| {
                [p.condition(0, phase, r, conv.kernel[0]), p.condition(1, phase, s, conv.kernel[1])]
                    .into_iter()
                    .flatten()
            });
            within(depth.exists(&t[0], &entry).into_iter().chain(taps).collect(), term, Expr::i32(0))
        },
    );
    (sums, w, weights)
}

/// Adds the data with a whole window as the channels of a pixel.
fn windows(b: &mut Builder, conv: &Conv, input: View, output: View, config: &HwConfig) -> Option<TensorRef> {
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
pub fn gemm(sums: &TensorRef, frame: &Frame) -> String {
    let s = &sums.name;
    let ([outer, entry], within) = (frame.result_loops(sums), frame.depth_loops(s.as_str()));
    format!(
        "reorder {outer} {s}.d {within} {entry} {s}.k; decompose_reduction {s} {s}.i0; tensorize {s}.i{} gemm; ",
        frame.entry(sums)
    )
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
            if input.c as i64 % block != 0 {
                conditions.push(channel.clone().lt(Expr::int(input.c as i64)));
            }
            within(conditions, x.at(&[i[0].clone(), row, i[3].clone() * pixel + channel]))
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

#[cfg(test)]
pub mod tests;
