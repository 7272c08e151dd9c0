//! What a row of a load or a store takes where rows of its kind follow each other, by the rules of `hw/TIMING.md`.

use tilewright_hw::config::{HwConfig, Mem};

/// Cycles between a burst's request and its first beat, beside the memory's latency, until its place is free again.
const ANSWER: u64 = 6;

/// Beats of the bus in which so many bytes lie, from this byte of device memory on.
pub(super) fn beats(bytes: u64, at: u64, config: &HwConfig) -> u64 {
    let bus = u64::from(config.bus_bytes());
    (at % bus + bytes).div_ceil(bus)
}

/// Cycles in which memory answers one row: as many are asked for at once as bursts, rows and beats of the buffer allow.
fn answer(beats: u64, rows: u32, buffer: u32, config: &HwConfig) -> u64 {
    let under_way = u64::from(config.outstanding.min(rows)).min(u64::from(buffer) / beats.max(1)).max(1);
    (u64::from(config.dram.latency) + ANSWER + beats).div_ceil(under_way)
}

/// Cycles of a load's row of so many bytes, whose first lies at this byte of device memory, without padding.
pub(super) fn load_row(bytes: u64, at: u64, mem: Mem, config: &HwConfig) -> u64 {
    let beats = beats(bytes, at, config);
    let chunks = bytes.div_ceil(u64::from(config.chunk_bytes(mem).min(config.bus_bytes())));
    beats.max(chunks).max(answer(beats, config.load_rows(), config.load_buffer_beats, config))
}

/// Cycles of a store's row of so many bytes from an entry's beginning, whose first goes to this byte of device memory.
pub(super) fn store_row(bytes: u64, at: u64, mem: Mem, config: &HwConfig) -> u64 {
    let bus = u64::from(config.bus_bytes());
    let beats = beats(bytes, at, config);
    let step = u64::from(config.chunk_bytes(mem)).min(bus);
    // A move ends where a beat ends, and after a chunk's bytes.
    let first = (bus - at % bus).min(bytes);
    let moves = first.div_ceil(step) + (bytes - first) / bus * (bus / step) + ((bytes - first) % bus).div_ceil(step);
    let chunks = bytes.div_ceil(u64::from(config.chunk_bytes(mem)));
    moves.max(chunks).max(answer(beats, u32::MAX, config.store_buffer_beats, config))
}

#[cfg(test)]
mod tests;
