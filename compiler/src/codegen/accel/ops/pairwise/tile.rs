//! An operator of two tensors on one piece, as a tensor expression.

use super::op::PairOp;
use crate::codegen::accel::emit::TileWork;
use crate::codegen::accel::mapped::{MapError, Mapped};
use crate::te::{Builder, DType, Program, ops};
use crate::tir::{Buffer, Intrinsic, Scope, TirError, lower};
use tilewright_hw::config::HwConfig;

/// The sizes of a piece of an operator of two tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PairwiseTile {
    /// Pixels of a block; entries if not `shared`.
    pub pixels: u32,
    /// Entries per pixel of a block.
    pub ratio: u32,
    /// Whether all pixels have the same second operand.
    pub shared: bool,
    /// The function of two elements.
    pub op: PairOp,
    /// Memories of the operands: inp or out.
    pub sources: [Scope; 2],
}

/// Returns the operator, with its result in out. The micro-op's indices are entries of the result and of both operands.
///
/// # Errors
/// None for a legal configuration.
fn pairwise(config: &HwConfig, t: &PairwiseTile) -> Result<Mapped, TirError> {
    let [n, bo, pixels, ratio] = [config.batch, config.block_out, t.pixels, t.ratio].map(i64::from);
    let op = t.op.graph_op();
    // The same operator on different shapes gives the expression for a piece and the one for a single entry.
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

impl TileWork for PairwiseTile {
    fn mapped(&self, config: &HwConfig) -> Result<Mapped, MapError> {
        Ok(pairwise(config, self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::accel::mapped::tests::check;
    use crate::graph::op::BinaryKind;
    use tilewright_hw::num::Qadd;

    #[test]
    fn additions_walk_their_entries() {
        use tilewright_hw::num::QaddOperand;
        let config = HwConfig { block_in: 2, block_out: 2, ..HwConfig::default() };
        let operand = |zero_point, shift| QaddOperand { zero_point, multiplier: 1_518_500_250, shift };
        let params =
            Qadd { a: operand(-3, 0), b: operand(5, -1), out: operand(7, -19), left_shift: 20, lo: -128, hi: 90 };
        let op = PairOp::Add(params);
        let t = PairwiseTile { pixels: 6, ratio: 1, shared: false, op, sources: [Scope::Inp, Scope::Out] };
        check(&pairwise(&config, &t).unwrap(), &[[0; 3]], &[(6, [1, 1, 1])]);
        let t = PairwiseTile { ratio: 2, shared: true, op: PairOp::plain(BinaryKind::Max).unwrap(), ..t };
        check(&pairwise(&config, &t).unwrap(), &[[0; 3]], &[(6, [2, 2, 0]), (2, [1, 1, 1])]);
    }
}
