//! The reduction of windows, channel by channel, on the vector unit as a tensor expression.

use super::op::Reduce;
use crate::codegen::accel::emit::TileWork;
use crate::te::{Builder, Combiner, DType};
use crate::tir::{Scope, TirError};
use tilewright_hw::config::HwConfig;
use tilewright_tensor::mapping::mapped::{MapError, Mapped, intrinsic};

/// The sizes of a tile of windows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct PoolWindows {
    /// Blocks of channels.
    pub blocks: u32,
    /// Entries per pixel of a block.
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
    /// How a window is reduced.
    pub reduce: Reduce,
    /// The memory of the data: inp or out.
    pub source: Scope,
}

/// Returns the reduction of windows into acc. The micro-op's indices are entries of the result, of the first operand
/// (again the result), and of the data.
///
/// # Errors
/// None for a legal configuration.
fn windows(config: &HwConfig, t: &PoolWindows) -> Result<Mapped, TirError> {
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

impl TileWork for PoolWindows {
    fn mapped(&self, config: &HwConfig) -> Result<Mapped, MapError> {
        Ok(windows(config, self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_tensor::testing::check_nest as check;

    #[test]
    fn windows_walk_results_and_data() {
        let config = HwConfig { block_in: 4, block_out: 2, ..HwConfig::default() };
        for (reduce, source) in [(Reduce::Max, Scope::Inp), (Reduce::Sum, Scope::Out)] {
            let t = PoolWindows {
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
}
