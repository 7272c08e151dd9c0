//! Products in registers: tiles of sums stay there over all steps, and their results are processed right after them.

use tilewright_compiler::schedule::{Schedule, ScheduleError};
use tilewright_compiler::te::{Expr, Name};
use tilewright_compiler::tir::{Action, Function, LoopKind, Scope};

use super::{Outer, ProductKind, Tile, dot, nest, readers};

/// Largest image or packed weights, in bytes, that stay in a core's cache while rows are processed.
const CACHED: i64 = 512 << 10;

/// Largest window, in elements, that is unrolled.
const MOST_TAPS: i64 = 25;

/// Schedules the product of a function whose weights are packed in the tile's blocks. The stages between it and the
/// last one must already be computed where they are read.
///
/// # Errors
/// If a step does not apply. The function is then scheduled in another way.
pub fn tile(s: &mut Schedule, tile: &Tile) -> Result<(), ScheduleError> {
    let Some((product, buffer)) = product(s) else { return Ok(()) };
    if tile.kind == ProductKind::Window {
        inline_border(s, &product);
    }
    let reader = readers(s.function(), &product, &buffer).last().map(|block| block.name.clone());
    let (buffer, last) = match reader {
        Some(reader) => (buffer, reader),
        None => s.cache_write(product.as_str(), Scope::Local)?.into(),
    };
    let (loops, reduce) = nest(s.function(), &product);
    let sum: Vec<String> = reduce.iter().map(|r| r.as_str().to_string()).collect();
    let spatial: Vec<String> =
        loops.iter().filter(|l| !reduce.contains(&l.0)).map(|l| l.0.as_str().to_string()).collect();

    // Tile the last stage: outer loops, then blocks of channels, then a tile's rows and channels.
    let stage = nest(s.function(), &last).0;
    let Some(((channels, _), outer)) = stage.split_last() else { return Ok(()) };
    let channel = s.split(channels.as_str(), &[tile.vectors * tile.lanes])?;
    let mut tiles = Vec::new();
    let mut inner = Vec::new();
    for (back, (var, _)) in outer.iter().rev().enumerate() {
        match tile.rows.iter().rev().nth(back) {
            Some(&rows) => {
                let parts = s.split(var.as_str(), &[rows])?;
                tiles.insert(0, parts[0].clone());
                inner.insert(0, parts[1].clone());
            }
            None => tiles.insert(0, var.clone()),
        }
    }
    // If a cache holds the weights and the image, read the weights again for each row of tiles. Otherwise keep a block
    // of weights for all rows. Even weights of some ten kilobytes need this: layers with a large image were a quarter
    // slower without it.
    let weights_again = tiles.len().saturating_sub(1);
    let at = match (tile.kind, tile.outer) {
        (ProductKind::Window, _) => tiles.len(),
        (_, Outer::Channels) => 0,
        (_, Outer::Rows) => weights_again,
        (_, Outer::BySize) if most_read(s.function(), &product) > CACHED => 0,
        (_, Outer::BySize) => weights_again,
    };
    tiles.insert(at, channel[0].clone());
    let order: Vec<&str> = tiles.iter().chain(&inner).chain([&channel[1]]).map(Name::as_str).collect();
    s.reorder(&order)?;
    let place = tiles.last().map_or("", Name::as_str);
    s.compute_at(product.as_str(), place)?;
    s.compact(buffer.as_str())?;
    s.set_scope(buffer.as_str(), Scope::Local)?;

    // Put the sum's loops around the tile and its initialization in front of them. The products of one instruction stay
    // inside.
    let (around, inside) = sum.split_at(sum.len() - usize::from(matches!(tile.kind, ProductKind::Fours { .. })));
    let order: Vec<&String> = around.iter().chain(&spatial).chain(inside).collect();
    s.reorder(&order)?;
    let first = s.decompose_reduction(product.as_str(), &sum[0])?;
    let taps: i64 = nest(s.function(), &product).0.iter().filter(|l| reduce.contains(&l.0)).map(|l| l.1).product();
    if tile.kind == ProductKind::Window && taps <= MOST_TAPS {
        sum.iter().try_for_each(|step| s.annotate(step, LoopKind::Unrolled))?;
    }
    for block in [&product, &first, &last] {
        let loops = nest(s.function(), block).0;
        let Some((channels, outer)) =
            loops.iter().rposition(|l| !reduce.contains(&l.0)).map(|i| (&loops[i].0, &loops[..i]))
        else {
            continue;
        };
        let parts = s.split(channels.as_str(), &[tile.lanes])?;
        s.annotate(parts[0].as_str(), LoopKind::Unrolled)?;
        match tile.kind {
            // There is no instruction for a single sum at a time.
            ProductKind::Fours { .. } if block == &product && tile.lanes == 1 => {
                inside.iter().try_for_each(|step| s.annotate(step, LoopKind::Unrolled))?;
                s.annotate(parts[1].as_str(), LoopKind::Unrolled)?;
            }
            ProductKind::Fours { signed } if block == &product => {
                s.tensorize(parts[1].as_str(), &dot::name(tile.lanes, signed))?;
            }
            _ => s.annotate(parts[1].as_str(), LoopKind::Vectorized)?,
        }
        // The tile's rows: in the last stage the loops within the tile, in others all loops that are not part of the
        // sum.
        for (var, _) in outer {
            if !tiles.contains(var) && !reduce.contains(var) {
                s.annotate(var.as_str(), LoopKind::Unrolled)?;
            }
        }
    }
    Ok(())
}

/// Computes the padding around an image where its window is read. So little is done with each element that a padded
/// copy of the image would take as long as the sums.
fn inline_border(s: &mut Schedule, product: &Name) {
    let mut local = Vec::new();
    if let Some(block) = s.function().body.find_block(product) {
        block.each_expr(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load { buffer, .. } = e {
                    local.push(buffer.clone());
                }
            });
        });
    }
    for name in local {
        // Rejected for buffers that are not stages, such as inputs and the sum itself.
        let _ = s.compute_inline(name.as_str());
    }
}

/// Returns the size in bytes of the largest parameter that a block reads.
fn most_read(f: &Function, block: &Name) -> i64 {
    let mut most = 0;
    if let Some(block) = f.body.find_block(block) {
        block.each_expr(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load { buffer, .. } = e {
                    let param = f.params.iter().find(|param| &param.name == buffer);
                    most = param.map_or(0, |param| param.size_bytes() as i64).max(most);
                }
            });
        });
    }
    most
}

/// Returns the block that sums up products, and the buffer of the sums.
fn product(s: &Schedule) -> Option<(Name, Name)> {
    let mut found = None;
    s.function().body.visit_blocks(&mut |_, b| {
        if let (false, Action::Store { buffer, .. }) = (b.reduce.is_empty(), &b.action) {
            found = Some((b.name.clone(), buffer.clone()));
        }
    });
    found
}
