//! The product of one tile with weights, as a tensor expression.

use tilewright_hw::config::HwConfig;

use super::emit::TileWork;
use super::scheduled::intrinsics::{Entry, gemm_intrinsic};
use crate::te::{Builder, Combiner, DType};
use crate::tir::{Scope, TirError};
use tilewright_tensor::mapping::mapped::{MapError, Mapped};

/// The sizes of a tile's product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct ProductTile {
    /// Blocks of output channels.
    pub blocks: u32,
    /// Entries of acc per pixel of a block.
    pub out_ratio: u32,
    /// Output rows and columns.
    pub pixels: [u32; 2],
    /// Input tiles that are summed.
    pub tiles: u32,
    /// Index of the first of these input tiles in the window.
    pub first: u32,
    /// Entries of inp per pixel of a block.
    pub in_ratio: u32,
    /// Blocks, rows and columns of the window, padding included.
    pub window: [u32; 3],
    /// Height and width of the kernel.
    pub kernel: [u32; 2],
    /// Rows and columns of the window from one output to the next.
    pub steps: [u32; 2],
    /// Rows and columns of the window from one tap to the next.
    pub dilations: [u32; 2],
}

/// Returns the product of a tile. The micro-op's indices are entries of acc, inp and wgt.
///
/// # Errors
/// None for a legal configuration.
fn product(config: &HwConfig, t: &ProductTile) -> Result<Mapped, TirError> {
    let [n, bi, bo] = [config.batch, config.block_in, config.block_out].map(i64::from);
    let wide = |v: u32| i64::from(v);
    let [blocks, rows, columns] = t.window.map(wide);
    let (in_ratio, out_ratio) = (wide(t.in_ratio), wide(t.out_ratio));
    let mut b = Builder::new("product");
    let x = b.input("window", DType::I8, &[blocks, rows, columns, in_ratio, n, bi]);
    let outputs = wide(t.blocks) * out_ratio;
    let taps = [wide(t.tiles), wide(t.kernel[0]), wide(t.kernel[1])];
    let w = b.input("weights", DType::I8, &[outputs, taps[0], taps[1], taps[2], bo, bi]);
    let shape = [wide(t.blocks), wide(t.pixels[0]), wide(t.pixels[1]), out_ratio, n, bo];
    let reduce = [("t", taps[0]), ("y", taps[1]), ("x", taps[2]), ("i", bi)];
    let sum = b.reduce("sum", DType::I32, &shape, &reduce, Combiner::Sum, |o, r| {
        let tile = r[0].clone() + wide(t.first);
        let place = |k: usize| o[k + 1].clone() * wide(t.steps[k]) + r[k + 1].clone() * wide(t.dilations[k]);
        let (block, entry) = (tile.clone() / in_ratio, tile % in_ratio);
        let value = x.at(&[block, place(0), place(1), entry, o[4].clone(), r[3].clone()]);
        let output = o[0].clone() * out_ratio + o[3].clone();
        let weight = w.at(&[output, r[0].clone(), r[1].clone(), r[2].clone(), o[5].clone(), r[3].clone()]);
        value.cast(DType::I32) * weight.cast(DType::I32)
    });
    Ok(Mapped {
        program: b.finish(&[sum]),
        stage: "sum",
        reads: vec![("window", Scope::Inp), ("weights", Scope::Wgt)],
        result: Scope::Acc,
        loops: [vec!["i0", "i3", "i1", "i2"], vec!["t", "y", "x"], vec!["i4", "i5", "i"]],
        intrinsic: gemm_intrinsic(config, Entry::of_batch(config), 0)?,
        operands: [&[2], &[0], &[1]],
    })
}

impl TileWork for ProductTile {
    fn mapped(&self, config: &HwConfig) -> Result<Mapped, MapError> {
        Ok(product(config, self)?)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Numbers;
    use crate::te::{Array, Scalar};
    use crate::tir::{evaluate, run};

    fn random_tile(n: &mut Numbers) -> ProductTile {
        let mut pick = |lo: i64, hi: i64| n.int(lo, hi) as u32;
        let (kernel, steps, dilations) = ([pick(1, 3), pick(1, 3)], [pick(1, 2), pick(1, 2)], [pick(1, 2), pick(1, 2)]);
        let (pixels, in_ratio, first, tiles) = ([pick(1, 3), pick(1, 3)], 1 << pick(0, 1), pick(0, 2), pick(1, 3));
        let reach = |i: usize| (pixels[i] - 1) * steps[i] + (kernel[i] - 1) * dilations[i] + 1;
        let window = [(first + tiles).div_ceil(in_ratio), reach(0) + pick(0, 1), reach(1) + pick(0, 1)];
        ProductTile {
            blocks: pick(1, 3),
            out_ratio: 1 << pick(0, 1),
            pixels,
            tiles,
            first,
            in_ratio,
            window,
            kernel,
            steps,
            dilations,
        }
    }

    fn random_array(n: &mut Numbers, shape: &[i64]) -> Array {
        let mut a = Array::zeros(DType::I8, shape);
        for i in 0..a.len() {
            a.set(i, Scalar::I(n.int(-128, 127)));
        }
        a
    }

    #[test]
    fn nests_compute_the_expression() {
        let mut n = Numbers::new(9);
        for (block_in, block_out) in [(4, 2), (2, 4), (2, 2)] {
            let config = HwConfig { block_in, block_out, ..HwConfig::default() };
            for _ in 0..6 {
                let t = random_tile(&mut n);
                let mapped = product(&config, &t).unwrap();
                let program = &mapped.program;
                let inputs: Vec<Array> = program.inputs().map(|i| random_array(&mut n, &i.shape())).collect();
                let want = evaluate(program, &inputs).unwrap().remove(0);
                let f = mapped.scheduled().unwrap();
                assert_eq!(run(&f, &inputs).unwrap()[0], want, "{f}");

                let nest = mapped.nest().unwrap();
                let (bi, bo) = (block_in as usize, block_out as usize);
                let mut acc = vec![0i64; want.len()];
                let turns: u32 = nest.dims.iter().map(|d| d.count).product();
                for turn in 0..turns {
                    let (mut at, mut rest) = (nest.at, turn);
                    for d in nest.dims.iter().rev() {
                        at.iter_mut().zip(d.steps).for_each(|(a, s)| *a += rest % d.count * s);
                        rest /= d.count;
                    }
                    for op in &nest.body {
                        let [a, x, w] = [0, 1, 2].map(|i| (at[i] + op[i]) as usize);
                        for (o, i) in (0..bo).flat_map(|o| (0..bi).map(move |i| (o, i))) {
                            let value = |k: usize, at: usize| inputs[k].get(at).unwrap().int();
                            acc[a * bo + o] += value(0, x * bi + i) * value(1, (w * bo + o) * bi + i);
                        }
                    }
                }
                let want: Vec<i64> = (0..want.len()).map(|i| want.get(i).unwrap().int()).collect();
                assert_eq!(acc, want, "{t:?}");
            }
        }
    }

    #[test]
    fn a_window_too_small_is_an_error() {
        let config = HwConfig { block_in: 2, block_out: 2, ..HwConfig::default() };
        let t = random_tile(&mut Numbers::new(1));
        let small = ProductTile { window: [0; 3], ..t };
        let mapped = product(&config, &small).unwrap();
        let empty: Vec<Array> = mapped.program.inputs().map(|i| Array::zeros(DType::I8, &i.shape())).collect();
        assert!(run(&mapped.scheduled().unwrap(), &empty).is_err());
    }
}
