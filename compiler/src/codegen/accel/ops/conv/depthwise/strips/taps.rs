//! Tensor expressions for some taps of a depthwise convolution: products with diagonal weight tiles, or the vector
//! unit's `mac`.

use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{PARAM_ROWS, TAP_STRIDE};

use crate::codegen::accel::emit::TileWork;
use crate::codegen::accel::scheduled::intrinsics::{Entry, gemm_intrinsic, mac_intrinsic};
use crate::te::{Builder, Combiner, DType, Expr};
use crate::tir::{Scope, TirError};
use tilewright_tensor::mapping::mapped::{MapError, Mapped};

/// The sizes of a tile, and the taps that are summed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Taps {
    /// Blocks of channels.
    pub blocks: u32,
    /// Output rows and columns.
    pub pixels: [u32; 2],
    /// Rows and columns of the data, padding included.
    pub window: [u32; 2],
    /// Columns of the kernel.
    pub kernel_columns: u32,
    /// Rows and columns of the data from one output to the next.
    pub steps: [u32; 2],
    /// Rows and columns of the data from one tap to the next.
    pub dilations: [u32; 2],
    /// Index of the first tap; taps are ordered by row, then column.
    pub first: u32,
    /// Number of taps.
    pub count: u32,
    /// Distance from one block's first tap to the next block's: in weight tiles, or in rows of param rounded up to
    /// entries.
    pub stored: u32,
}

impl Taps {
    /// Row (`k` = 0) or column (`k` = 1) of the data for a tap of an output.
    fn place(&self, k: usize, output: &Expr, tap: &Expr) -> Expr {
        let (tap, columns) = (tap.clone() + i64::from(self.first), i64::from(self.kernel_columns));
        let tap = if k == 0 { tap / columns } else { tap % columns };
        output.clone() * i64::from(self.steps[k]) + tap * i64::from(self.dilations[k])
    }

    /// Shape of the tile: blocks, rows and columns, then the dimensions of an entry.
    fn shape(&self, [rows, columns]: [u32; 2], entry: [i64; 2]) -> [i64; 5] {
        [i64::from(self.blocks), i64::from(rows), i64::from(columns), entry[0], entry[1]]
    }
}

/// Work of the array: the taps that it sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Diagonal(pub Taps);

impl TileWork for Diagonal {
    fn mapped(&self, config: &HwConfig) -> Result<Mapped, MapError> {
        Ok(diagonal(config, &self.0)?)
    }
}

/// Work of the vector unit: the taps that it sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Mac {
    /// The taps.
    pub taps: Taps,
    /// Zero point of the weights.
    pub zero_point: i8,
}

impl TileWork for Mac {
    fn mapped(&self, config: &HwConfig) -> Result<Mapped, MapError> {
        Ok(mac(config, &self.taps, self.zero_point)?)
    }
}

/// Returns the taps on the array. The micro-op's indices are entries of acc, inp and wgt. Each weight tile holds the
/// weights of a block on its diagonal.
///
/// # Errors
/// None for a legal configuration.
fn diagonal(config: &HwConfig, t: &Taps) -> Result<Mapped, TirError> {
    let [n, bi, bo] = [config.batch, config.block_in, config.block_out].map(i64::from);
    let mut b = Builder::new("diagonal");
    let x = b.input("window", DType::I8, &t.shape(t.window, [n, bi]));
    let w = b.input("weights", DType::I8, &[i64::from(t.blocks), i64::from(t.stored), bo, bi]);
    let reduce = [("t", i64::from(t.count)), ("i", bi)];
    let sum = b.reduce("sum", DType::I32, &t.shape(t.pixels, [n, bo]), &reduce, Combiner::Sum, |o, r| {
        let place = |k: usize| t.place(k, &o[k + 1], &r[0]);
        let value = x.at(&[o[0].clone(), place(0), place(1), o[3].clone(), r[1].clone()]);
        let tap = r[0].clone() + i64::from(t.first);
        value.cast(DType::I32) * w.at(&[o[0].clone(), tap, o[4].clone(), r[1].clone()]).cast(DType::I32)
    });
    Ok(Mapped {
        program: b.finish(&[sum]),
        stage: "sum",
        reads: vec![("window", Scope::Inp), ("weights", Scope::Wgt)],
        result: Scope::Acc,
        loops: [vec!["i0", "i1", "i2"], vec!["t"], vec!["i3", "i4", "i"]],
        intrinsic: gemm_intrinsic(config, Entry::of_batch(config), 0)?,
        operands: [&[2], &[0], &[1]],
    })
}

/// Returns the taps on the vector unit. The micro-op's indices are entries of acc and inp, and rows of param for the
/// taps, from which `zero_point` is subtracted.
///
/// # Errors
/// None for a legal configuration.
fn mac(config: &HwConfig, t: &Taps, zero_point: i8) -> Result<Mapped, TirError> {
    let [n, bo] = [config.batch, config.block_out].map(i64::from);
    let (rows, stride) = (i64::from(PARAM_ROWS), i64::from(TAP_STRIDE));
    let mut b = Builder::new("mac");
    let x = b.input("data", DType::I8, &t.shape(t.window, [n, bo]));
    let entries = i64::from(t.stored) / rows;
    let w = b.input("taps", DType::I8, &[i64::from(t.blocks), entries, stride, bo]);
    // Both the intrinsic's text and the expression omit a zero point of 0.
    let zero = (zero_point != 0).then_some(zero_point);
    let reduce = [("t", i64::from(t.count))];
    let sum = b.reduce("sum", DType::I32, &t.shape(t.pixels, [n, bo]), &reduce, Combiner::Sum, |o, r| {
        let place = |k: usize| t.place(k, &o[k + 1], &r[0]);
        let value = x.at(&[o[0].clone(), place(0), place(1), o[3].clone(), o[4].clone()]).cast(DType::I32);
        let tap = r[0].clone() + i64::from(t.first);
        let weight = w.at(&[o[0].clone(), tap.clone() / rows, tap % rows, o[4].clone()]).cast(DType::I32);
        value * zero.map_or(weight.clone(), |z| weight - Expr::i32(i32::from(z)))
    });
    Ok(Mapped {
        program: b.finish(&[sum]),
        stage: "sum",
        reads: vec![("data", Scope::Inp), ("taps", Scope::Param)],
        result: Scope::Acc,
        loops: [vec!["i0", "i1", "i2"], vec!["t"], vec!["i3", "i4"]],
        intrinsic: mac_intrinsic(config, Entry::of_batch(config), zero_point)?,
        operands: [&[0], &[1], &[2]],
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_tensor::testing::check_nest as check;

    const TILE: Taps = Taps {
        blocks: 2,
        pixels: [2, 3],
        window: [7, 8],
        kernel_columns: 3,
        steps: [1, 2],
        dilations: [2, 1],
        first: 2,
        count: 3,
        stored: 18,
    };

    #[test]
    fn products_walk_diagonal_tiles() {
        let config = HwConfig { block_in: 2, block_out: 2, ..HwConfig::default() };
        let body = [[0, 2, 2], [0, 16, 3], [0, 17, 4]];
        check(&diagonal(&config, &TILE).unwrap(), &body, &[(2, [6, 56, 18]), (2, [3, 8, 0]), (3, [1, 2, 0])]);
    }

    #[test]
    fn macs_walk_rows_of_param() {
        let config = HwConfig { block_in: 2, block_out: 2, ..HwConfig::default() };
        for zero_point in [0, -5] {
            let t = Taps { first: 8, count: 2, window: [9, 8], ..TILE };
            let body = [[0, 34, 8], [0, 48, 16]];
            let dims = [(2, [6, 72, 32]), (2, [3, 8, 0]), (3, [1, 2, 0])];
            check(&mac(&config, &t, zero_point).unwrap(), &body, &dims);
        }
    }
}
