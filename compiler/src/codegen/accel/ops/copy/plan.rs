//! Sizes of a copy's tiles.

use super::op::{Copy, Segment};
use super::runs::runs;
use crate::codegen::accel::limits::{ROW_BYTES, ROWS};
use crate::codegen::accel::view::View;
use tilewright_hw::config::{HwConfig, Mem};

/// Returns the rows per tile: as many as possible.
///
/// # Errors
/// The reason why the configuration cannot do the copy.
pub fn rows(copy: &Copy, inputs: &[View], output: View, config: &HwConfig) -> Result<usize, String> {
    let most = most_rows(output, config)?;
    check(copy, inputs, output, config)?;
    Ok(most)
}

/// Returns the maximum number of rows per tile.
///
/// # Errors
/// A single row does not fit.
pub fn most_rows(output: View, config: &HwConfig) -> Result<usize, String> {
    let ratio = (config.block() / config.block_out) as usize;
    let room = config.entries(Mem::Out) as usize / 4;
    // With several batch rows, entries are filled with consecutive bytes, so that the store of a tile has one row.
    let row_bytes = output.w * config.block() as usize;
    let whole = if config.batch == 1 { ROWS } else { ROW_BYTES / row_bytes };
    let most = (room * config.batch as usize / (output.w * ratio)).min(ROWS).min(output.h).min(whole);
    if most == 0 || row_bytes > ROW_BYTES || output.w > ROWS {
        return Err(format!("a row of {} pixels does not fit a quarter of out ({} entries)", output.w, room * 4));
    }
    Ok(most)
}

/// Checks the loads of tiles.
///
/// # Errors
/// The reason why the configuration cannot do them.
pub fn check(copy: &Copy, inputs: &[View], output: View, config: &HwConfig) -> Result<(), String> {
    let block = config.block() as usize;
    for s in &copy.segments {
        let input = inputs[s.input];
        if !config.dma_pack && (config.batch > 1 || !moves_blocks(s, input, output, block)) {
            return Err(
                "copying parts of rows or blocks needs dma_pack, which the configuration is built without".into()
            );
        }
        let layout = input.layout(config);
        let step = |map: &[usize], bytes: usize| runs(0, map).iter().map(|r| r.stride * bytes).max().unwrap_or(0);
        let strides = step(&s.rows.sources, layout.row_stride()).max(step(&s.columns.sources, block));
        if strides >= 1 << config.stride_bits {
            return Err("a part of it exceeds the fields of a load".into());
        }
        // Parts begin at the first channel, and where blocks of the result or of the input begin.
        let crosses = s.c_to / block != (s.c_to + s.c - 1) / block;
        let first = [Some(s.c_from % block), crosses.then_some((s.c_from + block - s.c_to % block) % block)];
        if first.into_iter().flatten().any(|byte| !byte.is_multiple_of(config.dma_align as usize)) {
            return Err(format!("the offset of a part is not a multiple of dma_align ({} bytes)", config.dma_align));
        }
    }
    Ok(())
}

/// Whether a segment consists of neighboring pixels with whole blocks of channels.
fn moves_blocks(s: &Segment, input: View, output: View, block: usize) -> bool {
    let last = s.c_from + s.c == input.c && s.c_to + s.c == output.c;
    let whole = s.c_from.is_multiple_of(block) && s.c_to.is_multiple_of(block) && (s.c.is_multiple_of(block) || last);
    whole && runs(0, &s.columns.sources).iter().all(|r| r.step == 1 && (r.stride == 1 || r.count == 1))
}
