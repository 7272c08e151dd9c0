//! Vector's work on one tile: windows reduced channel by channel, requantization and operators of two tensors.

use tilewright_hw::config::HwConfig;
use tilewright_hw::num::Rounding;

use super::layer::{PairOp, Reduce};
use super::mapped::{Mapped, intrinsic};
use crate::graph::op::{self, Op};
use crate::te::{Builder, Combiner, DType, Expr, Func, Program, ops};
use crate::tir::{Buffer, Intrinsic, Scope, TirError, lower};

/// The sizes of a tile of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Windows {
    /// Blocks of channels.
    pub blocks: u32,
    /// Entries in a block's pixel.
    pub ratio: u32,
    /// Output rows and columns.
    pub pixels: [u32; 2],
    /// Rows and columns of the data, padding included.
    pub window: [u32; 2],
    /// Height and width of the kernel.
    pub kernel: [u32; 2],
    /// Rows and columns of the data from one output to the next.
    pub steps: [u32; 2],
    /// Rows and columns of the data from one tap to the next.
    pub dilations: [u32; 2],
    /// The reduction.
    pub reduce: Reduce,
    /// Where the data lie: inp or out.
    pub source: Scope,
}

/// Windows reduced into acc: indices of the result, of what is joined with it, which is itself, and of the data.
///
/// # Errors
/// None for a legal configuration.
pub fn windows(config: &HwConfig, t: &Windows) -> Result<Mapped, TirError> {
    let [n, bo] = [config.batch, config.block_out].map(i64::from);
    let wide = |v: u32| i64::from(v);
    let mut b = Builder::new("windows");
    let shape = [wide(t.blocks), wide(t.window[0]), wide(t.window[1]), wide(t.ratio), n, bo];
    let x = b.input("data", DType::I8, &shape);
    let shape = [wide(t.blocks), wide(t.pixels[0]), wide(t.pixels[1]), wide(t.ratio), n, bo];
    let (combiner, joined) = match t.reduce {
        Reduce::Max => (Combiner::Max, "max(acc[n, o], i32(data[n, o]))"),
        Reduce::Sum => (Combiner::Sum, "acc[n, o] + i32(data[n, o])"),
    };
    let reduce = [("y", wide(t.kernel[0])), ("x", wide(t.kernel[1]))];
    let result = b.reduce("result", DType::I32, &shape, &reduce, combiner, |o, r| {
        let place = |k: usize| o[k + 1].clone() * wide(t.steps[k]) + r[k].clone() * wide(t.dilations[k]);
        x.at(&[o[0].clone(), place(0), place(1), o[3].clone(), o[4].clone(), o[5].clone()]).cast(DType::I32)
    });
    Ok(Mapped {
        program: b.finish(&[result]),
        stage: "result",
        reads: vec![("data", t.source)],
        result: Scope::Acc,
        loops: [vec!["i0", "i3", "i1", "i2"], vec!["y", "x"], vec!["i4", "i5"]],
        intrinsic: intrinsic(&format!(
            "intrinsic join {{ param acc: i32[{n}, {bo}] in acc param data: i8[{n}, {bo}] in {}
               for n in {n} {{ for o in {bo} {{ block lane {{ acc[n, o] = {joined} }} }} }} }}",
            t.source.name()
        ))?,
        operands: [&[0], &[0], &[1]],
    })
}

/// The sizes of a tile of accumulators, and how they are requantized.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Requant {
    /// Blocks of channels.
    pub blocks: u32,
    /// Entries in a block's pixel, each with parameters of its own.
    pub ratio: u32,
    /// Pixels.
    pub pixels: u32,
    /// Zero point, least and greatest result.
    pub bounds: [i32; 3],
    /// Rounding.
    pub mode: Rounding,
}

/// Requantization from acc to out: indices of the result, of the sums and of the parameters.
///
/// # Errors
/// None for a legal configuration.
pub fn requant(config: &HwConfig, t: &Requant) -> Result<Mapped, TirError> {
    let [n, bo] = [config.batch, config.block_out].map(i64::from);
    let (blocks, ratio) = (i64::from(t.blocks), i64::from(t.ratio));
    let (scale, name) = match t.mode {
        Rounding::Double => (Func::ScaleDouble, "scale_double"),
        Rounding::Single => (Func::ScaleSingle, "scale_single"),
    };
    let mut b = Builder::new("requant");
    let shape = [blocks, i64::from(t.pixels), ratio, n, bo];
    let sums = b.input("sums", DType::I32, &shape);
    let [bias, multiplier, shift] =
        ["bias", "multiplier", "shift"].map(|name| b.input(name, DType::I32, &[blocks * ratio, bo]));
    let result = b.compute("result", &shape, |i| {
        let c = [i[0].clone() * ratio + i[2].clone(), i[4].clone()];
        let scaled = Expr::call(scale, vec![sums.at(i) + bias.at(&c), multiplier.at(&c), shift.at(&c)]);
        let [zero, lo, hi] = t.bounds.map(Expr::i32);
        Expr::call(Func::OffsetClamp, vec![scaled, zero, lo, hi]).cast(DType::I8)
    });
    let [zero, lo, hi] = t.bounds;
    Ok(Mapped {
        program: b.finish(&[result]),
        stage: "result",
        reads: vec![
            ("sums", Scope::Acc),
            ("bias", Scope::Param),
            ("multiplier", Scope::Param),
            ("shift", Scope::Param),
        ],
        result: Scope::Out,
        loops: [vec!["i0", "i2", "i1"], vec![], vec!["i3", "i4"]],
        intrinsic: intrinsic(&format!(
            "intrinsic requant {{ param acc: i32[{n}, {bo}] in acc
               param bias: i32[{bo}] in param param multiplier: i32[{bo}] in param param shift: i32[{bo}] in param
               param out: i8[{n}, {bo}] in out
               for n in {n} {{ for o in {bo} {{ block lane {{
                 out[n, o] = i8(offset_clamp({name}(acc[n, o] + bias[o], multiplier[o], shift[o]),
                   {zero}i32, {lo}i32, {hi}i32)) }} }} }} }}"
        ))?,
        operands: [&[4], &[0], &[1, 2, 3]],
    })
}

/// The sizes of a piece of an operator of two tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Pairwise {
    /// Pixels of a block; entries where nothing is shared.
    pub pixels: u32,
    /// Entries in a block's pixel.
    pub ratio: u32,
    /// All pixels have one second operand.
    pub shared: bool,
    /// What becomes of two elements.
    pub op: PairOp,
    /// Where the operands lie: inp or out.
    pub sources: [Scope; 2],
}

/// An operator of two tensors into out: indices of the result and of both operands.
///
/// # Errors
/// None for a legal configuration.
pub fn pairwise(config: &HwConfig, t: &Pairwise) -> Result<Mapped, TirError> {
    let [n, bo, pixels, ratio] = [config.batch, config.block_out, t.pixels, t.ratio].map(i64::from);
    let op = match t.op {
        PairOp::Add(params) => Op::QAdd(op::QAdd { params }),
        PairOp::Mul { zero_points: [a_zero_point, b_zero_point], requant: r } => Op::QMul(op::QMul {
            a_zero_point,
            b_zero_point,
            multiplier: r.multiplier,
            shift: r.shift,
            zero_point: r.zero_point,
            lo: r.lo,
            hi: r.hi,
            mode: r.mode,
        }),
        PairOp::Plain(kind, _) => Op::Binary(op::Binary { kind }),
    };
    // A piece and a single entry are the same operator on different shapes.
    let on = |name: &str, a: &[i64], other: &[i64]| -> Result<Program, TirError> {
        let mut b = Builder::new(name);
        let operands = [b.input("a", DType::I8, a), b.input("b", DType::I8, other)];
        let missing = || TirError::Lower { program: name.into(), problem: "the operator has no expression".into() };
        let result = ops::build(&mut b, &op, &operands, a).ok_or_else(missing)?;
        Ok(b.finish(&[result]))
    };
    let entry = lower(&on("entry", &[n, bo], &[n, bo])?)?;
    let scopes = [t.sources[0], t.sources[1], Scope::Out];
    let params = entry.params.into_iter().zip(scopes).map(|(p, scope)| Buffer { scope, ..p }).collect();
    let (program, loops) = if t.shared {
        (on("pair", &[pixels, ratio, n, bo], &[ratio, n, bo])?, [vec!["i0", "i1"], vec![], vec!["i2", "i3"]])
    } else {
        let shape = [pixels * ratio, n, bo];
        (on("pair", &shape, &shape)?, [vec!["i0"], vec![], vec!["i1", "i2"]])
    };
    Ok(Mapped {
        program,
        stage: op.name(),
        reads: vec![("a", t.sources[0]), ("b", t.sources[1])],
        result: Scope::Out,
        loops,
        intrinsic: Intrinsic { name: "two".into(), params, body: entry.body },
        operands: [&[2], &[0], &[1]],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::accel::mapped::tests::check;
    use tilewright_hw::num::Qadd;

    #[test]
    fn windows_walk_results_and_data() {
        let config = HwConfig { block_in: 4, block_out: 2, ..HwConfig::default() };
        for (reduce, source) in [(Reduce::Max, Scope::Inp), (Reduce::Sum, Scope::Out)] {
            let t = Windows {
                blocks: 2,
                ratio: 2,
                pixels: [2, 3],
                window: [5, 8],
                kernel: [2, 2],
                steps: [2, 3],
                dilations: [1, 1],
                reduce,
                source,
            };
            let body = [[0, 0, 0], [0, 0, 2], [0, 0, 16], [0, 0, 18]];
            let dims = [(2, [12, 12, 80]), (2, [1, 1, 1]), (2, [6, 6, 32]), (3, [2, 2, 6])];
            check(&windows(&config, &t).unwrap(), &body, &dims);
        }
    }

    #[test]
    fn requantization_walks_sums_and_parameters() {
        let config = HwConfig { block_in: 2, block_out: 2, ..HwConfig::default() };
        for mode in [Rounding::Double, Rounding::Single] {
            let t = Requant { blocks: 3, ratio: 2, pixels: 5, bounds: [-3, -128, 100], mode };
            let dims = [(3, [10, 10, 2]), (2, [1, 1, 1]), (5, [2, 2, 0])];
            check(&requant(&config, &t).unwrap(), &[[0; 3]], &dims);
        }
    }

    #[test]
    fn additions_walk_their_entries() {
        use tilewright_hw::num::QaddOperand;
        let config = HwConfig { block_in: 2, block_out: 2, ..HwConfig::default() };
        let operand = |zero_point, shift| QaddOperand { zero_point, multiplier: 1_518_500_250, shift };
        let params =
            Qadd { a: operand(-3, 0), b: operand(5, -1), out: operand(7, -19), left_shift: 20, lo: -128, hi: 90 };
        let op = PairOp::Add(params);
        let t = Pairwise { pixels: 6, ratio: 1, shared: false, op, sources: [Scope::Inp, Scope::Out] };
        check(&pairwise(&config, &t).unwrap(), &[[0; 3]], &[(6, [1, 1, 1])]);
        let t = Pairwise { ratio: 2, shared: true, op: PairOp::plain(op::BinaryKind::Max).unwrap(), ..t };
        check(&pairwise(&config, &t).unwrap(), &[[0; 3]], &[(6, [2, 2, 0]), (2, [1, 1, 1])]);
    }
}
