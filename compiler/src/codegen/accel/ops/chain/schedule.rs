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
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::ops::conv::Conv;
use crate::codegen::accel::ops::conv::rest::{stored, stored_zero_point};
use crate::codegen::accel::ops::conv::schedule::{Data, data, gemm, sums};
use crate::codegen::accel::padded_range::reach;
use crate::codegen::accel::padded_range::{inside, less};
use crate::codegen::accel::requant::Parameters;
use crate::codegen::accel::scheduled::{LayerInput, LayerSchedule, template};
use crate::te::{Array, Builder, DType, Expr, TensorRef};
use tilewright_hw::config::HwConfig;

/// Returns a chain in strips.
pub fn schedule(
    chain: &Chain,
    tile: &ChainTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let mut made = Stages::new(chain, layer, config, constants);
    let depth = made.depthwise(tile.array_taps);
    let result = match &chain.last {
        None => depth.clone(),
        Some(last) => {
            let data = Data { tensor: depth.clone(), rows: None };
            let views = [chain.depth, layer.output_view()];
            let (sums, w, weights) = sums(&mut made.b, "last_", last, &data, views, config, constants);
            made.inputs.push(LayerInput::Constant(weights));
            made.steps += &format!("set_scope {} inp; set_scope {} acc; ", depth.name, sums.name);
            made.kept(&sums, &w);
            made.tensorized += &gemm(&sums);
            let result = made.requantized(&sums, last, "last_", 6);
            made.blocks.extend([depth.name.to_string(), sums.name.to_string()]);
            made.stages += &format!("stage {0} 5; stage {0}.init 5; ", sums.name);
            result
        }
    };
    made.finish(&result, tile, layer)
}

/// A chain's expression and schedule in the making.
struct Stages<'a> {
    chain: &'a Chain,
    config: &'a HwConfig,
    constants: Constants,
    b: Builder,
    inputs: Vec<LayerInput>,
    wide: TensorRef,
    /// The first steps.
    steps: String,
    /// The blocks of an iteration, in order. Each has the name of its buffer.
    blocks: Vec<String>,
    /// Copies of weights, which stay.
    weights: Vec<String>,
    /// Copies of parameters to param, with the stage that reads them.
    parameters: Vec<(String, u32)>,
    /// The steps that make instructions of blocks.
    tensorized: String,
    /// The steps that say in which stage a block runs.
    stages: String,
}

impl<'a> Stages<'a> {
    /// Begins with the first product and its requantization.
    fn new(chain: &'a Chain, layer: &Layer, config: &'a HwConfig, constants: Constants) -> Stages<'a> {
        let (first, input) = (&chain.first, layer.input_view());
        let mut b = Builder::new("chain");
        let data = Data { tensor: data(&mut b, first, input, chain.wide, config), rows: None };
        let (sums, w, weights) = sums(&mut b, "", first, &data, [input, chain.wide], config, constants);
        let [images, blocks, height, width, lanes] = sums.shape[..] else { unreachable!("sums have five dimensions") };
        let parameters = Parameters::new(&mut b, &first.finish, [blocks, lanes], "");
        let c = &chain.depthwise;
        let span =
            |k: usize, outputs: usize| ((outputs - 1) * c.strides[k] + reach(c.kernel[k], c.dilations[k])) as i64;
        let (rows, columns) = (span(0, chain.depth.h), span(1, chain.depth.w));
        let [top, left] = [c.pads[0], c.pads[1]].map(|n| n as i64);
        let mut padding = 0;
        let wide = b.compute("wide", &[images, blocks, rows, columns, lanes], |i| {
            let conditions = [inside(&i[2], rows, top, height), inside(&i[3], columns, left, width)].concat();
            padding = conditions.len();
            let sum = sums.at(&[i[0].clone(), i[1].clone(), less(&i[2], top), less(&i[3], left), i[4].clone()]);
            let value = parameters.apply(&first.finish, sum, &[i[1].clone(), i[4].clone()]);
            match conditions.into_iter().reduce(Expr::and) {
                Some(inside) => inside.select(value, Expr::Int(c.pad_value.into(), DType::I8)),
                None => value,
            }
        });
        let mut made = Stages {
            chain,
            config,
            constants,
            b,
            inputs: vec![LayerInput::Tensor(0), LayerInput::Constant(weights)],
            wide: wide.clone(),
            steps: format!("set_scope {} inp; set_scope {} acc; set_scope wide inp; ", data.tensor.name, sums.name),
            blocks: vec![data.tensor.name.to_string(), sums.name.to_string(), "wide".into()],
            weights: Vec::new(),
            parameters: Vec::new(),
            tensorized: gemm(&sums),
            stages: format!("stage {0} 1; stage {0}.init 1; stage wide 2; ", sums.name),
        };
        made.kept(&sums, &w);
        made.parameters(&parameters, &wide, 2);
        made.inputs.extend(parameters.inputs);
        if padding > 0 {
            made.tensorized += "decompose_padding wide wide.i0; ";
        }
        made.tensorized += "tensorize wide.i4 requant; ";
        made.stages.extend((0..padding).map(|i| format!("stage wide.pad{i} 2; ")));
        made
    }

    /// Adds a copy of weights that stays in wgt.
    fn kept(&mut self, sums: &TensorRef, weights: &TensorRef) {
        self.steps += &format!("cache_read {} {} wgt; ", sums.name, weights.name);
        self.weights.push(format!("{}.wgt", weights.name));
    }

    /// Adds the copies of a requantization's parameters.
    fn parameters(&mut self, parameters: &Parameters, reader: &TensorRef, stage: u32) {
        self.steps += &parameters.steps(reader.name.as_str());
        self.parameters.extend(parameters.copies().map(|copy| (copy, stage)));
    }

    /// Adds the requantization of a layer's sums.
    fn requantized(&mut self, sums: &TensorRef, conv: &Conv, prefix: &str, stage: u32) -> TensorRef {
        let [_, blocks, .., lanes] = sums.shape[..] else { unreachable!("sums have five dimensions") };
        let parameters = Parameters::new(&mut self.b, &conv.finish, [blocks, lanes], prefix);
        let result = self.b.compute(&format!("{prefix}result"), &sums.shape, |i| {
            parameters.apply(&conv.finish, sums.at(i), &[i[1].clone(), i[4].clone()])
        });
        self.parameters(&parameters, &result, stage);
        self.inputs.extend(parameters.inputs);
        self.tensorized += &format!("tensorize {}.i4 requant; ", result.name);
        self.stages += &format!("stage {} {stage}; ", result.name);
        result
    }

    /// Adds the depthwise convolution: the array sums the first taps, and the vector unit adds the others.
    fn depthwise(&mut self, array_taps: usize) -> TensorRef {
        let (conv, depth, config) = (&self.chain.depthwise, self.chain.depth, self.config);
        let [_, blocks, _, _, lanes] = self.wide.shape[..] else { unreachable!("wide has five dimensions") };
        let [kernel_rows, kernel_columns] = conv.kernel.map(|n| n as i64);
        let (taps, array) = (kernel_rows * kernel_columns, array_taps as i64);
        let [row_step, column_step] = conv.strides.map(|n| n as i64);
        let [row_tap, column_tap] = conv.dilations.map(|n| n as i64);
        let zero_point = stored_zero_point(conv, config);
        let weights = stored(conv, config);
        let weight =
            |channel: i64, tap: i64| weights.get((channel * taps + tap) as usize).copied().unwrap_or(zero_point) as u8;
        let less = |w: Expr| if zero_point == 0 { w } else { w - Expr::i32(zero_point.into()) };
        let wide = self.wide.clone();
        let x = |i: &[Expr], row: Expr, column: Expr, lane: &Expr| {
            let row = i[2].clone() * row_step + row * row_tap;
            let column = i[3].clone() * column_step + column * column_tap;
            wide.at(&[i[0].clone(), i[1].clone(), row, column, lane.clone()]).cast(DType::I32)
        };
        let given = matches!(self.constants, Constants::Given);
        // The array's taps in whole rows of the kernel; those of the last row that are not its own do not count.
        let array_rows = (array + kernel_columns - 1) / kernel_columns;
        let shape = [blocks, array_rows * kernel_columns, lanes, lanes];
        let diagonal = self.b.input("diagonal", DType::I8, &shape);
        let bytes = match given {
            false => vec![0; shape.iter().product::<i64>() as usize],
            true => {
                let mut bytes = Vec::new();
                for (block, tap) in (0..shape[0]).flat_map(|b| (0..shape[1]).map(move |t| (b, t))) {
                    for (o, i) in (0..lanes).flat_map(|o| (0..lanes).map(move |i| (o, i))) {
                        bytes.push(if o == i { weight(block * lanes + o, tap) } else { zero_point as u8 });
                    }
                }
                bytes
            }
        };
        self.inputs.push(LayerInput::Constant(Array { dtype: DType::I8, shape: shape.to_vec(), bytes }));
        let results = [wide.shape[0], blocks, depth.h as i64, depth.w as i64, lanes];
        let reduce = [("r", array_rows), ("s", kernel_columns), ("k", lanes)];
        let summed = self.b.sum_from(
            "array",
            &results,
            &reduce,
            |_| Expr::i32(0),
            |i, t| {
                let tap = t[0].clone() * kernel_columns + t[1].clone();
                let w = diagonal.at(&[i[1].clone(), tap.clone(), i[4].clone(), t[2].clone()]).cast(DType::I32);
                let term = x(i, t[0].clone(), t[1].clone(), &t[2]) * less(w);
                match array % kernel_columns {
                    0 => term,
                    _ => tap.lt(Expr::int(array)).select(term, Expr::i32(0)),
                }
            },
        );
        // The vector unit's taps in whole rows of the kernel, likewise.
        let first_row = array / kernel_columns;
        let first_tap = first_row * kernel_columns;
        let shape = [blocks, taps - first_tap, lanes];
        let rest = self.b.input("taps", DType::I8, &shape);
        let bytes = match given {
            false => vec![0; shape.iter().product::<i64>() as usize],
            true => {
                let rows = (0..blocks).flat_map(|block| (first_tap..taps).map(move |tap| (block, tap)));
                rows.flat_map(|(block, tap)| (0..lanes).map(move |lane| weight(block * lanes + lane, tap))).collect()
            }
        };
        self.inputs.push(LayerInput::Constant(Array { dtype: DType::I8, shape: shape.to_vec(), bytes }));
        let reduce = [("r", kernel_rows - first_row), ("s", kernel_columns)];
        let both = self.b.sum_from(
            "both",
            &results,
            &reduce,
            |i| summed.at(i),
            |i, t| {
                let row = if first_row == 0 { t[0].clone() } else { t[0].clone() + Expr::int(first_row) };
                let tap = t[0].clone() * kernel_columns + t[1].clone();
                let w = rest.at(&[i[1].clone(), tap.clone(), i[4].clone()]).cast(DType::I32);
                let term = x(i, row, t[1].clone(), &i[4]) * less(w);
                match array - first_tap {
                    0 => term,
                    others => Expr::int(others).le(tap).select(term, Expr::i32(0)),
                }
            },
        );
        self.steps += "set_scope array acc; set_scope both acc; cache_read both taps param; ";
        self.kept(&summed, &diagonal);
        self.parameters.push(("taps.param".into(), 4));
        self.blocks.extend(["array".into(), "both".into()]);
        self.tensorized += "reorder array.i0 array.i1 array.i2 array.i3 array.r array.s array.i4 array.k; \
                            decompose_reduction array array.i0; tensorize array.i4 gemm; \
                            reorder both.i0 both.i1 both.i2 both.i3 both.r both.s both.i4; \
                            decompose_reduction both both.i0; tensorize both.i4 mac; ";
        self.stages += "stage array 3; stage array.init 3; stage both 4; stage both.init 4; ";
        self.requantized(&both, conv, "depth_", 4)
    }

    /// Returns the schedule.
    fn finish(mut self, result: &TensorRef, tile: &ChainTile, layer: &Layer) -> Option<LayerSchedule> {
        let name = result.name.to_string();
        let (blocks, stage) = match &self.chain.last {
            Some(_) => (result.shape[1], 6),
            None => (tile.blocks as i64, 4),
        };
        let [image, block_tiles, row_tiles, column_tiles] =
            ["i0", "i1.0", "i2.0", "i3.0"].map(|axis| format!("{name}.write.{axis}"));
        let mut steps = std::mem::take(&mut self.steps);
        steps += &format!(
            "cache_write {name} out; split {name}.write.i1 {blocks}; split {name}.write.i2 {}; split {name}.write.i3 {}; \
             reorder {image} {row_tiles} {column_tiles} {block_tiles} {name}.write.i1.1 {name}.write.i2.1 {name}.write.i3.1; \
             compute_at {name} {block_tiles}; ",
            tile.rows, tile.columns
        );
        // A block that is moved to the start of a loop runs before those that were moved there earlier.
        for block in self.blocks.iter().rev() {
            steps += &format!("compute_at {block} {block_tiles}; ");
        }
        for copy in &self.weights {
            steps += &format!("compute_at {copy} {block_tiles}; ");
        }
        let sized = Sized::new(self.chain, layer, self.config);
        let (keeps_params, keeps_weights) = (sized.keeps_params(), sized.keeps_weights(tile.array_taps));
        for copy in self.weights.iter().filter(|_| !keeps_weights) {
            steps += &format!("compact {copy}; ");
        }
        if !keeps_params {
            for (copy, _) in &self.parameters {
                steps += &format!("compute_at {copy} {block_tiles}; compact {copy}; ");
            }
        }
        for buffer in &self.blocks {
            steps += &format!("compact {buffer}; ");
        }
        steps += &format!("compact {name}.out; ");
        for at in [&image, &row_tiles, &column_tiles, &block_tiles] {
            steps += &format!("annotate {at} pipeline; ");
        }
        for copy in self.weights.iter().filter(|_| !keeps_weights) {
            steps += &format!("slots {copy} {WEIGHT_SLOTS}; ");
        }
        if !keeps_params {
            for (copy, stage) in &self.parameters {
                steps += &format!("slots {copy} {stage}; ");
            }
        }
        steps += &self.tensorized;
        steps += &self.stages;
        steps += &format!("stage {name}.write {stage}; ");
        let program = self.b.finish(std::slice::from_ref(result));
        Some(LayerSchedule { program, inputs: self.inputs, steps: template(&steps)? })
    }
}
