//! Tensors in device memory as runs of entries of a scratchpad, for operators that use each element by itself.
//!
//! The elements of a run are next to each other. If its last entry is not full, the expression pads the tensor with
//! zeros to whole entries, and stores only the run's own elements.

use crate::te::{Builder, DType, Expr, TensorRef};
use crate::tir::Scope;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::layout::Activation;

/// A tensor as runs of entries.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Runs {
    /// Images and blocks, if each block is a run; empty if the whole tensor is one run.
    outer: Vec<i64>,
    /// Bytes of a run.
    bytes: i64,
    /// Bytes of a pixel, if each block is a run.
    pixel: i64,
    /// Entries of a pixel that takes more than one.
    ratio: i64,
    /// Dimensions of an entry: batch rows, if there are several, and channels.
    entry: Vec<i64>,
}

/// An operand.
#[derive(Debug, Clone)]
pub struct RunTensor {
    /// Shape of the input.
    pub shape: Vec<i64>,
    /// The operand in whole entries.
    pub tensor: TensorRef,
    /// Whether this is a copy of the input.
    pub is_copy: bool,
    /// Whether all pixels of a block share it.
    is_shared: bool,
}

impl RunTensor {
    /// An input that already is in whole entries.
    fn plain(tensor: TensorRef, is_shared: bool) -> RunTensor {
        RunTensor { shape: tensor.shape.clone(), tensor, is_copy: false, is_shared }
    }
}

impl Runs {
    /// One run of all bytes.
    pub fn of_bytes(bytes: usize, config: &HwConfig) -> Runs {
        let [batch, block_out] = [config.batch, config.block_out].map(i64::from);
        let entry = if batch == 1 { vec![block_out] } else { vec![batch, block_out] };
        Runs { outer: Vec::new(), bytes: bytes as i64, pixel: 1, ratio: 1, entry }
    }

    /// A run for each block of each image: its pixels.
    pub fn of_blocks(layout: &Activation, config: &HwConfig) -> Runs {
        let all = Runs::of_bytes(layout.block_stride(), config);
        let pixel = layout.block as i64;
        let ratio = (pixel / i64::from(config.entry_bytes(Mem::Out))).max(1);
        Runs { outer: vec![layout.n as i64, layout.blocks() as i64], pixel, ratio, ..all }
    }

    fn entry_bytes(&self) -> i64 {
        self.entry.iter().product()
    }

    /// Whether the last entry is full.
    fn is_even(&self) -> bool {
        self.bytes % self.entry_bytes() == 0
    }

    /// Dimensions of a run: groups of `ratio` entries, and the entries of a group if each block is a run.
    fn inner(&self) -> Vec<i64> {
        let groups = self.bytes.div_euclid(self.entry_bytes() * self.ratio) + i64::from(!self.is_even());
        if self.outer.is_empty() { vec![groups] } else { vec![groups, self.ratio] }
    }

    /// Dimensions of a tensor of whole entries.
    pub fn shape(&self) -> Vec<i64> {
        [self.outer.clone(), self.inner(), self.entry.clone()].concat()
    }

    /// Adds an input of the same size.
    pub fn input(&self, b: &mut Builder, name: &str) -> RunTensor {
        if self.is_even() {
            return RunTensor::plain(b.input(name, DType::I8, &self.shape()), false);
        }
        let input = b.input(name, DType::I8, &[self.outer.as_slice(), &[self.bytes]].concat());
        let entries = b.compute(&format!("{name}.entries"), &self.shape(), |i| {
            let (outer, inner) = i.split_at(self.outer.len());
            let at = self.position(inner);
            let element = input.at(&[outer, std::slice::from_ref(&at)].concat());
            at.lt(Expr::int(self.bytes)).select(element, Expr::Int(0, DType::I8))
        });
        RunTensor { shape: input.shape, tensor: entries, is_copy: true, is_shared: false }
    }

    /// Adds an input with a value for each channel, which all pixels of a block share.
    pub fn channels(&self, b: &mut Builder, name: &str, blocks: usize) -> RunTensor {
        let blocks = blocks as i64;
        let whole = [&[blocks, 1, self.ratio], self.entry.as_slice()].concat();
        if self.pixel >= self.entry_bytes() {
            return RunTensor::plain(b.input(name, DType::I8, &whole), true);
        }
        // An entry holds several pixels, which need as many copies of the channels.
        let input = b.input(name, DType::I8, &[blocks, self.pixel]);
        let entries = b.compute(&format!("{name}.entries"), &whole, |i| {
            let within = self.position(&i[1..]) % Expr::int(self.pixel);
            input.at(&[i[0].clone(), within])
        });
        RunTensor { shape: input.shape, tensor: entries, is_copy: true, is_shared: true }
    }

    /// Returns the byte of a run at an element of a whole entry.
    fn position(&self, inner: &[Expr]) -> Expr {
        let dims = [self.inner(), self.entry.clone()].concat();
        let step = |k: usize| dims[k + 1..].iter().product::<i64>();
        let terms = inner.iter().enumerate().filter(|(k, _)| dims[*k] > 1);
        let sum = terms.map(|(k, e)| e.clone() * Expr::int(step(k))).reduce(|a, b| a + b);
        sum.unwrap_or_else(|| Expr::int(0))
    }

    /// Adds the tensor of the results' own elements.
    pub fn output(&self, b: &mut Builder, result: &TensorRef) -> TensorRef {
        if self.is_even() {
            return result.clone();
        }
        b.compute("output", &[self.outer.as_slice(), &[self.bytes]].concat(), |i| {
            let (outer, at) = i.split_at(self.outer.len());
            let dims = [self.inner(), self.entry.clone()].concat();
            let mut indices = outer.to_vec();
            for k in 0..dims.len() {
                let step = dims[k + 1..].iter().product::<i64>();
                let whole = at[0].clone() / Expr::int(step);
                indices.push(if k == 0 { whole } else { whole % Expr::int(dims[k]) });
            }
            result.at(&indices)
        })
    }

    /// Returns the steps with which `result` is computed in tiles of at most `count` entries by an instruction. Each
    /// operand is loaded to its scratchpad.
    pub fn steps(&self, result: &TensorRef, count: u32, operands: &[(&RunTensor, Scope)], instruction: &str) -> String {
        let (name, dim) = (&result.name, self.outer.len());
        let groups = self.inner()[0];
        let count = (i64::from(count) / self.ratio).clamp(1, groups);
        let mut steps = String::new();
        let (write, tile, own) = if self.is_even() {
            steps += &format!("cache_write {name} out; split {name}.write.i{dim} {count}; ");
            (format!("{name}.write"), format!("{name}.write.i{dim}.0"), format!("{name}.out"))
        } else {
            let entry = self.entry_bytes();
            steps += &format!("set_scope {name} out; split output.i{dim} {entry}; split output.i{dim}.0 {count}; ");
            if let [_, channels] = self.entry[..] {
                steps += &format!("split output.i{dim}.1 {channels}; ");
            }
            ("output".into(), format!("output.i{dim}.0.0"), name.to_string())
        };
        steps += &format!("annotate {tile} pipeline; compute_at {name} {tile}; compact {own}; ");
        if !self.outer.is_empty() {
            steps += &format!("annotate {write}.i1 pipeline; ");
        }
        let mut moves = Vec::new();
        for (operand, scope) in operands {
            let (input, scope) = (&operand.tensor.name, scope.name());
            let at = if operand.is_shared { format!("{write}.i1") } else { tile.clone() };
            let copy = if operand.is_copy {
                steps += &format!("set_scope {input} {scope}; ");
                input.to_string()
            } else {
                steps += &format!("cache_read {name} {input} {scope}; ");
                format!("{input}.{scope}")
            };
            moves.push(format!("compute_at {copy} {at}; compact {copy}; "));
        }
        // The block that is moved last runs first.
        moves.reverse();
        steps += &moves.concat();
        let first = dim + self.inner().len();
        steps + &format!("tensorize {name}.i{first} {instruction}")
    }
}
