//! Convolutions whose tiles pass the stages of a software pipeline: a tensor expression and its schedule in the making.
//!
//! A depthwise convolution takes two stages: the array sums some taps with diagonal weight tiles, then the vector unit adds
//! the others with `mac` and requantizes the sums.

use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::ops::conv::Conv;
use crate::codegen::accel::ops::conv::rest::{stored, stored_zero_point};
use crate::codegen::accel::requant::Parameters;
use crate::codegen::accel::scheduled::LayerInput;
use crate::codegen::accel::view::View;
use crate::te::{Array, Builder, DType, Expr, TensorRef};
use tilewright_hw::config::HwConfig;

/// Returns the number of the tile that computes an output. For each dimension, the outermost first: an index of the output,
/// the tile's size along it, and the number of tiles.
pub fn tile_number(first: (&Expr, usize), others: &[(&Expr, usize, usize)]) -> Expr {
    let part =
        |(index, size): (&Expr, usize)| if size == 1 { index.clone() } else { index.clone() / Expr::int(size as i64) };
    others
        .iter()
        .filter(|(.., count)| *count > 1)
        .fold(part(first), |number, &(index, size, count)| number * count as i64 + part((index, size)))
}

/// How many taps the array sums.
pub struct Share<'s> {
    /// The least and the greatest number over all outputs.
    pub range: [usize; 2],
    /// The number for an output, given its indices.
    pub of: &'s dyn Fn(&[Expr]) -> Expr,
}

/// An expression and its schedule in the making.
pub struct Stages<'a> {
    config: &'a HwConfig,
    constants: Constants,
    /// The expression.
    pub b: Builder,
    /// What its inputs are.
    pub inputs: Vec<LayerInput>,
    /// The first steps.
    pub steps: String,
    /// The blocks of an iteration, in order. Each has the name of its buffer.
    pub blocks: Vec<String>,
    /// Copies of weights.
    pub weights: Vec<String>,
    /// Copies of parameters to param, with the stage that reads them.
    pub parameters: Vec<(String, u32)>,
    /// The steps that make instructions of blocks.
    pub tensorized: String,
    /// The steps that say in which stage a block runs.
    pub stages: String,
}

impl<'a> Stages<'a> {
    /// Begins with the first tensor of the layer.
    pub fn new(b: Builder, config: &'a HwConfig, constants: Constants) -> Stages<'a> {
        Stages {
            config,
            constants,
            b,
            inputs: vec![LayerInput::Tensor(0)],
            steps: String::new(),
            blocks: Vec::new(),
            weights: Vec::new(),
            parameters: Vec::new(),
            tensorized: String::new(),
            stages: String::new(),
        }
    }

    /// Adds a copy of weights to wgt.
    pub fn kept(&mut self, sums: &TensorRef, weights: &TensorRef) {
        self.steps += &format!("cache_read {} {} wgt; ", sums.name, weights.name);
        self.weights.push(format!("{}.wgt", weights.name));
    }

    /// Adds the copies of a requantization's parameters.
    pub fn parameters(&mut self, parameters: &Parameters, reader: &TensorRef, stage: u32) {
        self.steps += &parameters.steps(reader.name.as_str());
        self.parameters.extend(parameters.copies().map(|copy| (copy, stage)));
    }

    /// Adds the requantization of a layer's sums.
    pub fn requantized(&mut self, sums: &TensorRef, conv: &Conv, prefix: &str, stage: u32) -> TensorRef {
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

    /// Adds a constant of bytes, for which `bytes` are needed only if the program gets the constants of the layer.
    fn constant(&mut self, name: &str, shape: &[i64], bytes: impl FnOnce() -> Vec<u8>) -> TensorRef {
        let bytes = match self.constants {
            Constants::Zeros => vec![0; shape.iter().product::<i64>() as usize],
            Constants::Given => bytes(),
        };
        self.inputs.push(LayerInput::Constant(Array { dtype: DType::I8, shape: shape.to_vec(), bytes }));
        self.b.input(name, DType::I8, shape)
    }

    /// Adds the sums of a depthwise convolution of `data`, padding included. The array sums the first taps in stage
    /// `stage`, and the vector unit adds the others in the next one.
    pub fn depthwise(&mut self, conv: &Conv, data: &TensorRef, depth: View, share: &Share, stage: u32) -> TensorRef {
        let [images, blocks, _, _, lanes] = data.shape[..] else { unreachable!("data have five dimensions") };
        let [kernel_rows, kernel_columns] = conv.kernel.map(|n| n as i64);
        let taps = kernel_rows * kernel_columns;
        let [least, most] = share.range.map(|n| n as i64);
        let [row_step, column_step] = conv.strides.map(|n| n as i64);
        let [row_tap, column_tap] = conv.dilations.map(|n| n as i64);
        let zero_point = stored_zero_point(conv, self.config);
        let weights = stored(conv, self.config);
        let weight =
            |channel: i64, tap: i64| weights.get((channel * taps + tap) as usize).copied().unwrap_or(zero_point) as u8;
        let less = |w: Expr| if zero_point == 0 { w } else { w - Expr::i32(zero_point.into()) };
        let x = |i: &[Expr], row: Expr, column: Expr, lane: &Expr| {
            let row = i[2].clone() * row_step + row * row_tap;
            let column = i[3].clone() * column_step + column * column_tap;
            data.at(&[i[0].clone(), i[1].clone(), row, column, lane.clone()]).cast(DType::I32)
        };
        // The array's taps are counted in rows of the kernel; those of the last rows that are not its own do not count.
        let array_rows = (most + kernel_columns - 1) / kernel_columns;
        let shape = [blocks, most, lanes, lanes];
        let diagonal = self.constant("diagonal", &shape, || {
            let mut bytes = Vec::new();
            for (block, tap) in (0..shape[0]).flat_map(|b| (0..shape[1]).map(move |t| (b, t))) {
                for (o, i) in (0..lanes).flat_map(|o| (0..lanes).map(move |i| (o, i))) {
                    bytes.push(if o == i { weight(block * lanes + o, tap) } else { zero_point as u8 });
                }
            }
            bytes
        });
        let results = [images, blocks, depth.h as i64, depth.w as i64, lanes];
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
                match least == array_rows * kernel_columns {
                    true => term,
                    false => tap.lt((share.of)(i)).select(term, Expr::i32(0)),
                }
            },
        );
        // The vector unit's taps in whole rows of the kernel, likewise.
        let first_row = least / kernel_columns;
        let first_tap = first_row * kernel_columns;
        let shape = [blocks, taps - first_tap, lanes];
        let rest = self.constant("taps", &shape, || {
            let rows = (0..blocks).flat_map(|block| (first_tap..taps).map(move |tap| (block, tap)));
            rows.flat_map(|(block, tap)| (0..lanes).map(move |lane| weight(block * lanes + lane, tap))).collect()
        });
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
                if most == first_tap {
                    return term;
                }
                let others = match first_tap {
                    _ if least == most => Expr::int(least - first_tap),
                    0 => (share.of)(i),
                    first => (share.of)(i) - Expr::int(first),
                };
                others.le(tap).select(term, Expr::i32(0))
            },
        );
        let next = stage + 1;
        self.steps += "set_scope array acc; set_scope both acc; cache_read both taps param; ";
        self.kept(&summed, &diagonal);
        self.parameters.push(("taps.param".into(), next));
        self.blocks.extend(["array".into(), "both".into()]);
        self.tensorized += "reorder array.i0 array.i1 array.i2 array.i3 array.r array.s array.i4 array.k; \
                            decompose_reduction array array.i0; tensorize array.i4 gemm; \
                            reorder both.i0 both.i1 both.i2 both.i3 both.r both.s both.i4; \
                            decompose_reduction both both.i0; tensorize both.i4 mac; ";
        self.stages +=
            &format!("stage array {stage}; stage array.init {stage}; stage both {next}; stage both.init {next}; ");
        both
    }
}
