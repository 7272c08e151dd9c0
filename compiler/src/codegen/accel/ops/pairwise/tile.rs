//! An operator of two tensors on one piece, as a tensor expression.

use super::op::PairOp;
use crate::codegen::accel::emit::TileWork;
use crate::te::{Builder, DType, Program, ops};
use crate::tir::{Buffer, Intrinsic, Scope, TirError, lower};
use tilewright_hw::config::HwConfig;
use tilewright_tensor::mapping::mapped::{MapError, Mapped};

/// The sizes of a piece of an operator of two tensors.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PairwiseTile {
    /// Entries.
    pub entries: u32,
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
    let [n, bo, entries] = [config.batch, config.block_out, t.entries].map(i64::from);
    let op = t.op.graph_op();
    // The same operator on different shapes gives the expression for a piece and the one for a single entry.
    let on = |name: &str, shape: &[i64]| -> Result<Program, TirError> {
        let mut b = Builder::new(name);
        let operands = ["a", "b"].map(|operand| b.input(operand, DType::I8, shape));
        let missing = || TirError::Lower { program: name.into(), problem: "the operator has no expression".into() };
        let result = ops::build(&mut b, &op, &operands, shape).ok_or_else(missing)?;
        Ok(b.finish(&[result]))
    };
    let entry = lower(&on("entry", &[n, bo])?)?;
    let scopes = [t.sources[0], t.sources[1], Scope::Out];
    let params = entry.params.into_iter().zip(scopes).map(|(p, scope)| Buffer { scope, ..p }).collect();
    Ok(Mapped {
        program: on("pair", &[entries, n, bo])?,
        stage: op.name(),
        reads: vec![("a", t.sources[0]), ("b", t.sources[1])],
        result: Scope::Out,
        loops: [vec!["i0"], vec![], vec!["i1", "i2"]],
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
    use tilewright_hw::num::Qadd;
    use tilewright_tensor::testing::check_nest as check;

    #[test]
    fn additions_walk_their_entries() {
        use tilewright_hw::num::QaddOperand;
        let config = HwConfig { block_in: 2, block_out: 2, ..HwConfig::default() };
        let operand = |zero_point, shift| QaddOperand { zero_point, multiplier: 1_518_500_250, shift };
        let params =
            Qadd { a: operand(-3, 0), b: operand(5, -1), out: operand(7, -19), left_shift: 20, lo: -128, hi: 90 };
        let op = PairOp::Add(params);
        let t = PairwiseTile { entries: 6, op, sources: [Scope::Inp, Scope::Out] };
        check(&pairwise(&config, &t).unwrap(), &[[0; 3]], &[(6, [1, 1, 1])]);
    }
}
