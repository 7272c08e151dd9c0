//! The loops of a tile's product: a tensor expression over the scratchpads' windows, scheduled and tensorized.
//!
//! The expression says what the tile computes from a window of input and the tiles of weights. Its operands are read
//! through `inp` and `wgt`, its sums stand in `acc`, and the innermost loops become calls of the gemm intrinsic, which
//! [`gemm`] describes from the configuration. What is left are affine loops around one call: those of the result become
//! the instruction's loops, those of the sum its micro-ops.

use std::collections::HashMap;

use tilewright_driver::{Dim, Nest};
use tilewright_hw::config::HwConfig;

use crate::schedule::{Schedule, ScheduleError};
use crate::te::{Builder, Combiner, DType, Expr, Name, Program};
use crate::tir::{
    Action, Affine, Block, Bounds, For, Function, Intrinsic, Scope, TirError, View, lower, parse, simplify,
};

/// The sizes of a tile's product.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Tile {
    /// Blocks of output channels.
    pub blocks: u32,
    /// Entries of acc in a block's pixel.
    pub out_ratio: u32,
    /// Output rows and columns.
    pub pixels: [u32; 2],
    /// Input tiles that are summed.
    pub tiles: u32,
    /// The first of them in the window.
    pub first: u32,
    /// Entries of inp in a block's pixel.
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

/// Why a tile did not become loops.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum ProductError {
    /// The expression is not well formed.
    #[error(transparent)]
    Tir(#[from] TirError),
    /// The schedule does not apply.
    #[error(transparent)]
    Schedule(#[from] ScheduleError),
    /// The scheduled program is no nest of the accelerator's.
    #[error("the tile's product does not map to gemm: {0}")]
    Shape(String),
}

/// Gemm as an intrinsic: `acc[batch, block_out] += inp[batch, block_in] x wgt[block_out, block_in]`.
///
/// # Errors
/// None for a legal configuration.
pub fn gemm(config: &HwConfig) -> Result<Intrinsic, TirError> {
    let (n, bi, bo) = (config.batch, config.block_in, config.block_out);
    let text = format!(
        "function isa {{ intrinsic gemm {{
           param inp: i8[{n}, {bi}] in inp
           param wgt: i8[{bo}, {bi}] in wgt
           param acc: i32[{n}, {bo}] in acc
           for n in {n} {{ for o in {bo} {{ for i in {bi} {{
             block mac reduce(i) {{ acc[n, o] = acc[n, o] + i32(inp[n, i]) * i32(wgt[o, i]) }} }} }} }} }} }}"
    );
    let mut isa = parse(&text)?;
    Ok(isa.intrinsics.remove(0))
}

/// What a tile computes.
fn expression(config: &HwConfig, t: &Tile) -> Program {
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
    b.finish(&[sum])
}

/// The tile's program with its loops in the accelerator's order and gemm in their middle.
///
/// # Errors
/// [`ProductError`]; none for a window that the tile's indices stay within.
pub fn scheduled(config: &HwConfig, t: &Tile) -> Result<Function, ProductError> {
    let mut s = Schedule::with_intrinsics(lower(&expression(config, t))?, &[gemm(config)?]);
    s.cache_read("sum", "window", Scope::Inp)?;
    s.cache_read("sum", "weights", Scope::Wgt)?;
    s.cache_write("sum", Scope::Acc)?;
    let [block, row, column, ratio, n, o] = [0, 1, 2, 3, 4, 5].map(|i| format!("sum.i{i}"));
    let around = [block, ratio, row, column];
    let sums = ["sum.t", "sum.y", "sum.x"].map(String::from);
    let inside = [n, o, "sum.i".to_string()];
    let order: Vec<&String> = around.iter().chain(&sums).chain(&inside).collect();
    s.reorder(&order)?;
    s.decompose_reduction("sum", "sum.t")?;
    s.tensorize(&inside[0], "gemm")?;
    Ok(s.into_function())
}

/// The nest that runs the product: instruction loops around micro-ops, with the indices of acc, inp and wgt.
///
/// The first micro-op begins the sum, and may overwrite instead of adding to what [`scheduled`] stores first, 0.
///
/// # Errors
/// [`ProductError`].
pub fn nest(config: &HwConfig, t: &Tile) -> Result<Nest, ProductError> {
    let f = scheduled(config, t)?;
    let wrong = |what: &str| ProductError::Shape(what.to_string());
    let mut found: Option<(Vec<For>, Block)> = None;
    f.body.visit_blocks(&mut |loops, b| {
        if let Action::Call { .. } = b.action {
            found = Some((loops.iter().map(|l| (*l).clone()).collect(), b.clone()));
        }
    });
    let (loops, block) = found.ok_or_else(|| wrong("there is no call"))?;
    let Action::Call { args, .. } = &block.action else { return Err(wrong("there is no call")) };
    let [inp, wgt, acc] = args.as_slice() else { return Err(wrong("gemm has three operands")) };
    let (sums, around): (Vec<For>, Vec<For>) = loops.into_iter().partition(|l| block.reduce.contains(&l.var));
    let mut bounds = Bounds::new();
    for l in around.iter().chain(&sums) {
        bounds.insert(l.var.clone(), (0, l.extent - 1));
    }
    let mut nest = Nest::default();
    for l in &around {
        nest.dims.push(Dim::new(l.extent as u32, [0; 3]));
    }
    let total: i64 = sums.iter().map(|l| l.extent).product();
    for k in 0..total {
        // The micro-op's place among the sum's loops.
        let mut rest = k;
        let mut place: HashMap<Name, i64> = HashMap::new();
        for l in sums.iter().rev() {
            place.insert(l.var.clone(), rest % l.extent);
            rest /= l.extent;
        }
        let mut op = [0; 3];
        for (slot, view) in [acc, inp, wgt].into_iter().enumerate() {
            let entry = entry(&f, view, &place, &bounds).ok_or_else(|| wrong("an index is not affine"))?;
            op[slot] = u32::try_from(entry.constant).map_err(|_| wrong("an index is negative"))?;
            for (l, d) in around.iter().zip(&mut nest.dims) {
                let step = u32::try_from(entry.coefficient(&l.var)).map_err(|_| wrong("a loop runs backwards"))?;
                if k > 0 && d.steps[slot] != step {
                    return Err(wrong("a loop's step changes with the micro-op"));
                }
                d.steps[slot] = step;
            }
        }
        nest.body.push(op);
    }
    Ok(nest)
}

/// The entry of a scratchpad that a view begins at, with some variables known; its last dimensions are the entry's.
fn entry(f: &Function, view: &View, known: &HashMap<Name, i64>, bounds: &Bounds) -> Option<Affine> {
    let shape = &f.buffer(&view.buffer)?.shape;
    let outer = shape.len().checked_sub(view.dims.len())?;
    // The view covers whole entries: its own dimensions stand last, in order, from 0 on.
    let whole = view.indices[outer..].iter().zip(&view.dims).all(|(e, d)| *e == Expr::Var(d.clone()));
    if !whole {
        return None;
    }
    let mut at = Affine::default();
    for (e, &n) in view.indices[..outer].iter().zip(shape) {
        let e = simplify(&e.substitute(&|v| known.get(v).map(|&k| Expr::int(k))), bounds);
        at = at.times(n).plus(&Affine::of(&e)?, 1);
    }
    Some(at)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::suite::Numbers;
    use crate::te::{Array, Scalar};
    use crate::tir::{evaluate, run};

    fn random_tile(n: &mut Numbers) -> Tile {
        let mut pick = |lo: i64, hi: i64| n.int(lo, hi) as u32;
        let (kernel, steps, dilations) = ([pick(1, 3), pick(1, 3)], [pick(1, 2), pick(1, 2)], [pick(1, 2), pick(1, 2)]);
        let (pixels, in_ratio, first, tiles) = ([pick(1, 3), pick(1, 3)], 1 << pick(0, 1), pick(0, 2), pick(1, 3));
        let reach = |i: usize| (pixels[i] - 1) * steps[i] + (kernel[i] - 1) * dilations[i] + 1;
        let window = [(first + tiles).div_ceil(in_ratio), reach(0) + pick(0, 1), reach(1) + pick(0, 1)];
        Tile {
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
                let program = expression(&config, &t);
                let inputs: Vec<Array> = program.inputs().map(|i| random_array(&mut n, &i.shape())).collect();
                let want = evaluate(&program, &inputs).unwrap().remove(0);
                let f = scheduled(&config, &t).unwrap();
                assert_eq!(run(&f, &inputs).unwrap()[0], want, "{f}");

                let nest = nest(&config, &t).unwrap();
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
        let small = Tile { window: [0; 3], ..t };
        let empty: Vec<Array> =
            expression(&config, &small).inputs().map(|i| Array::zeros(DType::I8, &i.shape())).collect();
        assert!(run(&scheduled(&config, &small).unwrap(), &empty).is_err());
    }
}
