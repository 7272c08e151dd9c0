//! What a row of a load or a store takes where rows of its kind follow each other, by the rules of `hw/TIMING.md`.

use tilewright_hw::config::{HwConfig, Mem};

/// Cycles for which a burst has its slot, beside the memory's latency and its beats.
const SLOT: u64 = 2;

/// Cycles between the walk of a load's row and its writing, beside the memory's latency and its beats.
const WALKED: u64 = 6;

/// Beats of the bus in which so many bytes lie, from this byte of device memory on.
pub fn beats(bytes: u64, at: u64, config: &HwConfig) -> u64 {
    let bus = u64::from(config.bus_bytes());
    (at % bus + bytes).div_ceil(bus)
}

/// Cycles a row in which memory answers, where so many rows at once wait for it and for so many cycles of their own.
fn answer(beats: u64, own: u64, at_once: u64, config: &HwConfig) -> u64 {
    (u64::from(config.dram.latency) + own + beats).div_ceil(at_once.max(1))
}

/// Bursts of one row each that are under way at once: as many as have slots, and room for their beats.
fn bursts(beats: u64, buffer: u32, config: &HwConfig) -> u64 {
    u64::from(config.outstanding).min(u64::from(buffer) / beats.max(1))
}

/// Cycles in which the writing side takes up a load's row, whose beats it waits for.
///
/// With lean control the memory behind the bus gives a beat when the one but one before it is used up, three cycles before it can
/// be used: two whole beats take three cycles, and a chunk that lies in two beats holds both.
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

/// Cycles of a load's row of so many bytes, whose first lies at this byte of device memory, without padding.
pub fn load_row(bytes: u64, at: u64, mem: Mem, config: &HwConfig) -> u64 {
    let beats = beats(bytes, at, config);
    let written = written(bytes, at, mem, config);
    // The row that is being written has left the queue of those that wait for it.
    let own = if config.lean { written.max(beats + 1) - 1 } else { beats };
    let walked = answer(own, WALKED, u64::from(config.load_rows()) + 1, config);
    let answered = answer(beats, SLOT, bursts(beats, config.load_buffer_beats, config), config);
    written.max(answered).max(walked)
}

/// Cycles of a store's row of so many bytes from an entry's beginning, whose first goes to this byte of device memory.
pub fn store_row(bytes: u64, at: u64, mem: Mem, config: &HwConfig) -> u64 {
    let bus = u64::from(config.bus_bytes());
    let beats = beats(bytes, at, config);
    let step = u64::from(config.chunk_bytes(mem)).min(bus);
    // A move ends where a beat ends, and after a chunk's bytes.
    let first = (bus - at % bus).min(bytes);
    let moves = first.div_ceil(step) + (bytes - first) / bus * (bus / step) + ((bytes - first) % bus).div_ceil(step);
    let chunks = bytes.div_ceil(u64::from(config.chunk_bytes(mem)));
    moves.max(chunks).max(answer(beats, SLOT, bursts(beats, config.store_buffer_beats, config), config))
}

#[cfg(test)]
mod tests;
