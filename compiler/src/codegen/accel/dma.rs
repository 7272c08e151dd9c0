//! Estimated cycles per row of a load or store in a sequence of equal rows, by the rules of `hw/TIMING.md`.

use tilewright_hw::config::{HwConfig, Mem};

/// Cycles for which a burst occupies its slot, in addition to the memory latency and its beats.
const SLOT: u64 = 2;

/// Cycles from address generation of a load's row to its writing, in addition to the memory latency and its beats.
const WALKED: u64 = 6;

/// Number of bus beats that `bytes` bytes from byte `at` of device memory on touch.
pub fn beats(bytes: u64, at: u64, config: &HwConfig) -> u64 {
    let bus = u64::from(config.bus_bytes());
    (at % bus + bytes).div_ceil(bus)
}

/// Cycles per row that waiting for memory takes, if `at_once` rows wait at the same time and each needs `own` further
/// cycles.
fn answer(beats: u64, own: u64, at_once: u64, config: &HwConfig) -> u64 {
    (u64::from(config.dram.latency) + own + beats).div_ceil(at_once.max(1))
}

/// Number of bursts, of one row each, that are in flight at once. The slots and the buffer for their beats limit it.
fn bursts(beats: u64, buffer: u32, config: &HwConfig) -> u64 {
    u64::from(config.outstanding).min(u64::from(buffer) / beats.max(1))
}

/// Cycles that the writing side of load needs for a row, including the wait for its beats.
///
/// With lean control, the memory behind the bus delivers a beat when the beat two before it is used up, three cycles
/// before the new can be used. So two whole beats take three cycles, and a chunk that spans two beats holds both.
fn written(bytes: u64, at: u64, mem: Mem, config: &HwConfig) -> u64 {
    let chunk = u64::from(config.chunk_bytes(mem).min(config.bus_bytes()));
    let beats = beats(bytes, at, config);
    let a_beat = u64::from(config.bus_bytes()) / chunk;
    let plain = beats.max(bytes.div_ceil(chunk));
    match config.lean {
        true if !at.is_multiple_of(chunk) => plain.max(a_beat.max(3) * (beats - 1) + 1),
        true if a_beat == 1 => (3 * beats).div_ceil(2),
        _ => plain,
    }
}

/// Cycles of a load's row of `bytes` bytes from byte `at` of device memory on, without padding.
pub fn load_row(bytes: u64, at: u64, mem: Mem, config: &HwConfig) -> u64 {
    let beats = beats(bytes, at, config);
    let written = written(bytes, at, mem, config);
    // The row that is being written has left the queue of waiting rows.
    let own = if config.lean { written.max(beats + 1) - 1 } else { beats };
    let walked = answer(own, WALKED, u64::from(config.load_rows()) + 1, config);
    let answered = answer(beats, SLOT, bursts(beats, config.load_buffer_beats, config), config);
    written.max(answered).max(walked)
}

/// Cycles of a store's row of `bytes` bytes from the beginning of an entry to byte `at` of device memory.
pub fn store_row(bytes: u64, at: u64, mem: Mem, config: &HwConfig) -> u64 {
    let bus = u64::from(config.bus_bytes());
    let beats = beats(bytes, at, config);
    let step = u64::from(config.chunk_bytes(mem)).min(bus);
    // A move ends at the end of a beat and at the end of a chunk.
    let first = (bus - at % bus).min(bytes);
    let moves = first.div_ceil(step) + (bytes - first) / bus * (bus / step) + ((bytes - first) % bus).div_ceil(step);
    let chunks = bytes.div_ceil(u64::from(config.chunk_bytes(mem)));
    moves.max(chunks).max(answer(beats, SLOT, bursts(beats, config.store_buffer_beats, config), config))
}

#[cfg(test)]
mod tests;
