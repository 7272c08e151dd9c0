//! Chains as scheduled tensor expressions.
//!
//! | stage | array | vector unit |
//! |---|---|---|
//! | 0 (loads) | | |
//! | 1 | the first product | |
//! | 2 | | its requantization, to inp |
//! | 3 | some taps of the depthwise convolution, with diagonal weights | |
//! | 4 | | the other taps, and the requantization |
//! | 5 | the last product | |
//! | 6 | | its requantization |

use super::op::Chain;
use super::plan::{ChainTile, Sized, WEIGHT_SLOTS};
use crate::codegen::accel::border::Border;
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::conv::depthwise::{Share, Stages, tile_number};
use crate::codegen::accel::ops::conv::expression::{Data, Factors, data, gemm, sums};
use crate::codegen::accel::ops::conv::frame::Frame;
use crate::codegen::accel::requant::Parameters;
use crate::codegen::accel::scheduled::{LayerSchedule, template};
use crate::te::{Builder, Expr, TensorRef};
use tilewright_hw::config::HwConfig;

/// Returns a chain in strips.
pub fn schedule(
    chain: &Chain,
    tile: &ChainTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let (mut made, wide) = begun(chain, layer, config, constants);
    made.blocks.push(wide.name.to_string());
    let share = Share { range: tile.tap_range(), of: &|i| array_taps(i, tile, chain, wide.shape[1] as usize) };
    let both = made.depthwise(&chain.depthwise, &wide, chain.depth, &share, 3);
    let depth = made.requantized(&both, &chain.depthwise, "depth_", 4);
    let result = match &chain.last {
        None => depth,
        Some(last) => {
            let data = Data { tensor: depth.clone(), rows: None };
            let views = [chain.depth, layer.output_view()];
            let frame = Frame::of_one_row(views, config);
            let factors = Factors { convs: std::slice::from_ref(last), data: &data, frame: &frame, further: None };
            let product = sums(&mut made.b, "last_", &factors, config, constants);
            made.tensorized += &gemm(&product, &frame);
            made.inputs.extend(product.inputs);
            let sums = product.tensor;
            made.steps += &format!("set_scope {} inp; set_scope {} acc; ", depth.name, sums.name);
            made.kept(&sums, &product.weights);
            let result = made.requantized(&sums, last, "last_", 6);
            made.blocks.extend([depth.name.to_string(), sums.name.to_string()]);
            made.stages += &format!("stage {0} 5; stage {0}.init 5; ", sums.name);
            result
        }
    };
    finish(made, &result, (chain, tile), layer, config)
}

/// Returns the number of the array's taps of an output. The depthwise convolution has that many blocks of channels.
fn array_taps(i: &[Expr], tile: &ChainTile, chain: &Chain, blocks: usize) -> Expr {
    let [even, odd] = tile.array_taps.map(|taps| Expr::int(taps as i64));
    if even == odd {
        return even;
    }
    // Strips of channels are the innermost, those of images the outermost.
    let blocks = blocks.div_ceil(tile.blocks);
    let (rows, columns) = (chain.depth.h.div_ceil(tile.rows), chain.depth.w.div_ceil(tile.columns));
    let others = [(&i[2], tile.rows, rows), (&i[3], tile.columns, columns), (&i[1], tile.blocks, blocks)];
    let number = tile_number((&i[0], 1), &others);
    (number % Expr::int(2)).lt(Expr::int(1)).select(even, odd)
}

/// Begins with the first product and its requantization, the data of the depthwise convolution.
fn begun<'a>(chain: &Chain, layer: &Layer, config: &'a HwConfig, constants: Constants) -> (Stages<'a>, TensorRef) {
    let (first, input) = (&chain.first, layer.input_view());
    let mut made = Stages::new(Builder::new("chain"), config, constants);
    let frame = Frame::of_one_row([input, chain.wide], config);
    let data = Data { tensor: data(&mut made.b, first, &frame, config), rows: None };
    let factors = Factors { convs: std::slice::from_ref(first), data: &data, frame: &frame, further: None };
    let product = sums(&mut made.b, "", &factors, config, constants);
    made.tensorized = gemm(&product, &frame);
    let (sums, w) = (product.tensor, product.weights);
    let [_, blocks, height, width, lanes] = sums.shape[..] else { unreachable!("sums have five dimensions") };
    let parameters = Parameters::new(&mut made.b, &first.finish, [blocks, lanes], "");
    let c = &chain.depthwise;
    let border = Border {
        image: [height, width].map(|n| n as usize),
        size: [c.span(0, chain.depth.h), c.span(1, chain.depth.w)],
        before: [c.pads[0], c.pads[1]],
        value: c.pad_value,
    };
    let wide = border.compute(&mut made.b, "wide", &sums.shape, |i| {
        parameters.apply(&first.finish, sums.at(i), &[i[1].clone(), i[4].clone()])
    });
    let padding = border.sides();
    made.inputs.extend(product.inputs);
    made.steps = format!("set_scope {} inp; set_scope {} acc; set_scope wide inp; ", data.tensor.name, sums.name);
    made.blocks = vec![data.tensor.name.to_string(), sums.name.to_string()];
    made.stages = format!("stage {0} 1; stage {0}.init 1; stage wide 2; ", sums.name);
    made.kept(&sums, &w);
    made.parameters(&parameters, &wide, 2);
    made.inputs.extend(parameters.inputs);
    if padding > 0 {
        made.tensorized += "decompose_padding wide wide.i0; ";
    }
    made.tensorized += "tensorize wide.i4 requant; ";
    made.stages.extend((0..padding).map(|i| format!("stage wide.pad{i} 2; ")));
    (made, wide)
}

/// Returns the schedule.
fn finish(
    made: Stages,
    result: &TensorRef,
    (chain, tile): (&Chain, &ChainTile),
    layer: &Layer,
    config: &HwConfig,
) -> Option<LayerSchedule> {
    let name = result.name.to_string();
    let (blocks, stage) = match &chain.last {
        Some(_) => (result.shape[1], 6),
        None => (tile.blocks as i64, 4),
    };
    let [image, block_tiles, row_tiles, column_tiles] =
        ["i0", "i1.0", "i2.0", "i3.0"].map(|axis| format!("{name}.write.{axis}"));
    let mut steps = made.steps.clone();
    steps += &format!(
        "cache_write {name} out; split {name}.write.i1 {blocks}; split {name}.write.i2 {}; split {name}.write.i3 {}; \
         reorder {image} {row_tiles} {column_tiles} {block_tiles} {name}.write.i1.1 {name}.write.i2.1 {name}.write.i3.1; \
         compute_at {name} {block_tiles}; ",
        tile.rows, tile.columns
    );
    // A block that is moved to the start of a loop runs before those that were moved there earlier.
    for block in made.blocks.iter().rev() {
        steps += &format!("compute_at {block} {block_tiles}; ");
    }
    for copy in &made.weights {
        steps += &format!("compute_at {copy} {block_tiles}; ");
    }
    let sized = Sized::new(chain, layer, config);
    let (keeps_params, keeps_weights) = (sized.keeps_params(), sized.keeps_weights(tile.tap_range()[1]));
    for copy in made.weights.iter().filter(|_| !keeps_weights) {
        steps += &format!("compact {copy}; ");
    }
    if !keeps_params {
        for (copy, _) in &made.parameters {
            steps += &format!("compute_at {copy} {block_tiles}; compact {copy}; ");
        }
    }
    for buffer in &made.blocks {
        steps += &format!("compact {buffer}; ");
    }
    steps += &format!("compact {name}.out; ");
    for at in [&image, &row_tiles, &column_tiles, &block_tiles] {
        steps += &format!("annotate {at} pipeline; ");
    }
    for copy in made.weights.iter().filter(|_| !keeps_weights) {
        steps += &format!("slots {copy} {WEIGHT_SLOTS}; ");
    }
    if !keeps_params {
        for (copy, stage) in &made.parameters {
            steps += &format!("slots {copy} {stage}; ");
        }
    }
    steps += &made.tensorized;
    steps += &made.stages;
    steps += &format!("stage {name}.write {stage}; ");
    let program = made.b.finish(std::slice::from_ref(result));
    Some(LayerSchedule { program, inputs: made.inputs, steps: template(&steps)? })
}
