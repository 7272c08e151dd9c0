//! Products in tiles: a block of threads computes a tile of the result. The steps of the sum pass through shared memory
//! a few at a time, and every thread keeps its sums in registers.
//!
//! Results have rows, dimensions that only the first factor has, and columns, the dimension that only the second factor
//! has. The last two row dimensions are tiled, so that neighboring windows of a convolution share what they read.

use tilewright_compiler::schedule::{Schedule, ScheduleError};
use tilewright_compiler::te::{BinOp, Expr, Name};
use tilewright_compiler::tir::{Action, Affine, Function, LoopKind, Scope};

use super::{inline, loops_of, names, reads};

/// Steps of a sum that are in shared memory at the same time.
const STEPS: i64 = 16;
/// Sums per thread along columns, and along each row dimension.
const COLUMN_SUMS: i64 = 4;
const ROW_SUMS: i64 = 2;
/// Smallest sizes for which tiles are worth their barriers.
const LEAST: Sizes = Sizes { rows: 8, columns: 16, steps: 8 };

struct Sizes {
    rows: i64,
    columns: i64,
    steps: i64,
}

/// How a dimension of the result is tiled: threads next to each other, each with several sums.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Cut {
    sums: i64,
    threads: i64,
}

/// Describes a product to tile.
struct Product {
    block: Name,
    /// The buffer of the sums.
    buffer: Name,
    /// The stage that reads the sums, with one element per sum.
    last: Option<Name>,
    /// The buffers of the two factors.
    factors: [Name; 2],
    /// The tiling of each result dimension. Dimensions without one stay outer loops.
    cuts: Vec<Option<Cut>>,
}

/// Returns the schedule of a function with its product in tiles. Returns `None` if it does not have exactly one
/// worthwhile product, or if a step does not apply.
pub(crate) fn tiled(f: Function) -> Option<Schedule> {
    try_tiled(f).ok()
}

/// Does the same as [`tiled`] and gives the reason for a failure.
pub(crate) fn try_tiled(f: Function) -> Result<Schedule, String> {
    let mut s = Schedule::new(f);
    inline(&mut s, false);
    let product = find(s.function()).ok_or("it has no product that is worth tiling")?;
    match tile(&mut s, &product) {
        Ok(Some(())) => Ok(s),
        Ok(None) => Err("a name was not found".into()),
        Err(error) => Err(error.to_string()),
    }
}

/// Finds the only reduction, if it sums products of elements of two buffers.
fn find(f: &Function) -> Option<Product> {
    let mut sums = names(f).into_iter().filter(|n| f.body.find_block(n).is_some_and(|b| !b.reduce.is_empty()));
    let (block, None) = (sums.next()?, sums.next()) else { return None };
    let found = f.body.find_block(&block)?;
    let Action::Store { buffer, indices, value: Expr::Binary(BinOp::Add, _, step) } = &found.action else {
        return None;
    };
    let mut loads: Vec<(Name, Vec<Expr>)> = Vec::new();
    step.visit(&mut |e| {
        if let Expr::Load { buffer, indices, .. } = e {
            loads.push((buffer.clone(), indices.clone()));
        }
    });
    let [(a, at), (b, to)] = &loads[..] else { return None };
    let affine = |list: &[Expr]| list.iter().map(Affine::of).collect::<Option<Vec<_>>>();
    let (at, to) = (affine(at)?, affine(to)?);
    let has = |list: &[Affine], v: &Name| list.iter().any(|a| a.coefficient(v) != 0);
    let loops = loops_of(f, &block);
    let extent = |v: &Name| loops.iter().find(|l| &l.0 == v).map_or(1, |l| l.1);
    let dims: Vec<&Name> =
        indices.iter().map(|e| if let Expr::Var(v) = e { Some(v) } else { None }).collect::<Option<_>>()?;
    let rows: Vec<usize> = (0..dims.len()).filter(|&d| has(&at, dims[d]) && !has(&to, dims[d])).collect();
    let columns: Vec<usize> = (0..dims.len()).filter(|&d| has(&to, dims[d]) && !has(&at, dims[d])).collect();
    let (size, &[column]) = (|list: &[usize]| list.iter().map(|&d| extent(dims[d])).product::<i64>(), &columns[..])
    else {
        return None;
    };
    let steps: i64 = found.reduce.iter().map(&extent).product();
    if size(&rows) < LEAST.rows || size(&columns) < LEAST.columns || steps < LEAST.steps || a == b {
        return None;
    }
    let mut cuts = vec![None; dims.len()];
    let near = |n: i64, most: i64| (n as u64).next_power_of_two().min(most as u64) as i64;
    let columns_wide = near(extent(dims[column]), 64);
    cuts[column] = Some(Cut { sums: COLUMN_SUMS, threads: columns_wide / COLUMN_SUMS });
    // Tile the last row dimension, then the previous one with what is left of 64.
    let mut left = 64;
    for (place, &d) in rows.iter().rev().take(2).enumerate() {
        let alone = rows.len() == 1 || place == 1 || extent(dims[rows[rows.len() - 2]]) == 1;
        let tile = near(extent(dims[d]), if alone { left } else { 8 });
        left /= tile;
        let sums = if alone && place == 0 { 2 * ROW_SUMS } else { ROW_SUMS }.min(tile);
        cuts[d] = Some(Cut { sums, threads: tile / sums });
    }
    let users = reads(f, &block, buffer);
    let last = match users.first() {
        None => None,
        Some((reader, place)) => {
            let outer = loops_of(f, &reader.name);
            let plain = place.iter().zip(&outer).all(|(e, l)| matches!(e, Expr::Var(v) if *v == l.0));
            let once = users.iter().all(|(r, p)| r.name == reader.name && p == place);
            if !plain || !once || place.len() != outer.len() || !reader.reduce.is_empty() {
                return None;
            }
            Some(reader.name.clone())
        }
    };
    Some(Product { block, buffer: buffer.clone(), last, factors: [a.clone(), b.clone()], cuts })
}

/// Tiles the product. Returns `None` if a name is not found.
fn tile(s: &mut Schedule, p: &Product) -> Result<Option<()>, ScheduleError> {
    let block = p.block.as_str();
    let (buffer, last) = match &p.last {
        Some(last) => (p.buffer.clone(), last.clone()),
        None => s.cache_write(block, Scope::Local)?.into(),
    };
    // Tile the last stage: loops over tiles, over threads, and over a thread's sums.
    let stage = loops_of(s.function(), &last);
    let [mut tiles, mut threads, mut sums]: [Vec<Name>; 3] = Default::default();
    for ((var, ..), cut) in stage.iter().zip(&p.cuts) {
        match cut {
            Some(cut) => {
                let parts = s.split(var.as_str(), &[cut.sums, cut.threads])?;
                tiles.push(parts[0].clone());
                sums.push(parts[1].clone());
                threads.push(parts[2].clone());
            }
            None => tiles.push(var.clone()),
        }
    }
    s.reorder(&[tiles.clone(), threads.clone(), sums.clone()].concat().iter().map(Name::as_str).collect::<Vec<_>>())?;
    let Some(place) = tiles.last() else { return Ok(None) };
    let inner_of_last = (threads, sums);
    s.compute_at(block, place.as_str())?;
    s.compact(buffer.as_str())?;
    s.set_scope(buffer.as_str(), Scope::Local)?;

    // Load the factors through shared memory. Factors that a stage computes, such as padded images, are computed there
    // directly.
    let mut shared = Vec::new();
    for factor in &p.factors {
        let made =
            s.function().body.find_block(factor).is_some() && s.function().locals.iter().any(|b| &b.name == factor);
        shared.push(if made { factor.clone() } else { s.cache_read(block, factor.as_str(), Scope::Shared)? });
    }
    let Some(found) = s.function().body.find_block(&p.block).cloned() else { return Ok(None) };
    let own: Vec<(Name, i64)> = loops_of(s.function(), &p.block).into_iter().map(|l| (l.0, l.1)).collect();
    let own = &own[tiles.len()..];
    let spatial: Vec<&Name> = own.iter().map(|l| &l.0).filter(|v| !found.reduce.contains(v)).collect();
    let [mut alone, mut threads, mut sums]: [Vec<Name>; 3] = Default::default();
    for (var, cut) in spatial.into_iter().zip(&p.cuts) {
        match cut {
            Some(cut) => {
                let parts = s.split(var.as_str(), &[cut.threads])?;
                sums.push(parts[0].clone());
                threads.push(parts[1].clone());
            }
            None => alone.push(var.clone()),
        }
    }
    let mut outer: Vec<Name> = found.reduce.clone();
    let Some(deep) = outer.pop() else { return Ok(None) };
    let parts = s.split(deep.as_str(), &[STEPS.min(own.iter().find(|l| l.0 == deep).map_or(1, |l| l.1))])?;
    outer.push(parts[0].clone());
    let step = parts[1].clone();
    let order = [alone.clone(), outer.clone(), threads.clone(), vec![step.clone()], sums.clone()].concat();
    s.reorder(&order.iter().map(Name::as_str).collect::<Vec<_>>())?;
    for buffer in &shared {
        s.compute_at(buffer.as_str(), parts[0].as_str())?;
        s.compact(buffer.as_str())?;
        s.set_scope(buffer.as_str(), Scope::Shared)?;
    }
    let first = s.decompose_reduction(block, outer[0].as_str())?;

    // Bind loops to threads. The columns use the first dimension of a block.
    bind_threads(s, &threads)?;
    bind_threads(s, &inner_of_last.0)?;
    let begun: Vec<Name> = loops_of(s.function(), &first).into_iter().map(|l| l.0).collect();
    let renamed = |v: &Name| begun.iter().find(|b| b.as_str().strip_suffix(".init") == Some(v.as_str())).cloned();
    bind_threads(s, &threads.iter().filter_map(renamed).collect::<Vec<_>>())?;
    for v in
        sums.iter().chain(&inner_of_last.1).chain([&step]).chain(&sums.iter().filter_map(renamed).collect::<Vec<_>>())
    {
        s.annotate(v.as_str(), LoopKind::Unrolled)?;
    }
    let sizes: Vec<i64> = p.cuts.iter().flatten().map(|c| c.threads).collect();
    for buffer in &shared {
        load_together(s, buffer, &outer, &sizes)?;
    }
    for v in &tiles {
        s.annotate(v.as_str(), LoopKind::Parallel)?;
    }
    let mut all = tiles[0].clone();
    for v in &tiles[1..] {
        all = s.fuse(all.as_str(), v.as_str())?;
    }
    s.bind(all.as_str(), LoopKind::BlockX)?;
    Ok(Some(()))
}

/// Binds loops to threads, the last loop to the first dimension.
fn bind_threads(s: &mut Schedule, loops: &[Name]) -> Result<(), ScheduleError> {
    loops.iter().rev().zip(LoopKind::THREADS).try_for_each(|(v, kind)| s.bind(v.as_str(), kind))
}

/// Spreads writes to a shared buffer over all threads of a block. `sizes` are the block's dimensions, last one first.
fn load_together(s: &mut Schedule, block: &Name, around: &[Name], sizes: &[i64]) -> Result<(), ScheduleError> {
    let loops = loops_of(s.function(), block);
    let from = loops.iter().rposition(|l| around.contains(&l.0)).map_or(0, |at| at + 1);
    let own: Vec<Name> = loops[from..].iter().map(|l| l.0.clone()).collect();
    for v in &own {
        s.annotate(v.as_str(), LoopKind::Parallel)?;
    }
    let Some(mut all) = own.first().cloned() else { return Ok(()) };
    for v in &own[1..] {
        all = s.fuse(all.as_str(), v.as_str())?;
    }
    let parts = s.split(all.as_str(), sizes)?;
    bind_threads(s, &parts[1..])
}
