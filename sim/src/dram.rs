//! The memory on the bus: one function from an address handshake to the cycles of its beats.
//!
//! It is called only at address handshakes, reads before writes within a cycle, and uses integers only. Every caller
//! with the same handshakes therefore gets the same cycles.

use tilewright_hw::config::DramSection;

/// Bytes of a DRAM row.
const ROW_BYTES: u64 = DramSection::ROW_BYTES as u64;

/// Direction of a burst.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Direction {
    /// From memory.
    Read,
    /// To memory.
    Write,
}

/// When a burst's beats transfer, and whether it fails.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
#[repr(C)]
pub struct Burst {
    /// Earliest cycle of the first beat: one after the previous beat on the same channel.
    pub first: u64,
    /// Time at which the server offers the first beat, in sixteenths of a cycle from cycle 0.
    pub slot: u64,
    /// Time between two offers, in sixteenths of a cycle.
    pub step: u64,
    /// Cycle of the write response; 0 for reads.
    pub response: u64,
    /// 1 if the range passes the end of memory. Beats and response then keep their timing but carry an error code.
    pub error: u32,
}

impl Burst {
    /// Returns the cycle in which beat `n` transfers.
    pub fn beat(&self, n: u64) -> u64 {
        (self.first + n).max((self.slot + n * self.step).div_ceil(16))
    }

    /// Returns the cycles of its `beats` beats as runs of consecutive cycles, each `(first, count)`.
    pub(crate) fn runs(self, beats: u32) -> impl Iterator<Item = (u64, u32)> {
        // The first beat never precedes its offer, so a server with at least one beat per cycle leaves no gap.
        let whole = self.step <= 16;
        (0..if whole { 1 } else { beats }).map(move |n| (self.beat(n.into()), if whole { beats } else { 1 }))
    }
}

/// A server: when it is free, and the row it has open.
#[derive(Debug, Clone, Copy, Default)]
struct Server {
    free: u64,
    row: Option<u64>,
}

/// The state of the DRAM model.
#[derive(Debug, Clone)]
pub struct Dram {
    section: DramSection,
    memory_bytes: u64,
    beat_bytes: u64,
    servers: [Server; 2],
    /// The cycle after the last beat of reads, and of writes.
    next_beat: [u64; 2],
}

impl Dram {
    /// Creates an idle memory of `memory_bytes` on a bus of `beat_bytes`.
    pub fn new(section: DramSection, memory_bytes: u64, beat_bytes: u32) -> Dram {
        Dram {
            section,
            memory_bytes,
            beat_bytes: beat_bytes.into(),
            servers: Default::default(),
            next_beat: Default::default(),
        }
    }

    /// Forgets all requests and the open rows.
    pub fn reset(&mut self) {
        self.servers = Default::default();
        self.next_beat = Default::default();
    }

    /// Schedules a burst of `beats` beats whose address was accepted in `cycle`.
    ///
    /// The burst reaches the server in the next cycle, or when the server is free. The server first spends the fixed
    /// time per burst and the time to open each 2 KiB row, then the time of the beats. Read beats are offered `latency`
    /// cycles after the server reaches them. Write beats enter at the server; their response comes `latency` + 1 cycles
    /// after the last beat. No two beats of the same direction share a cycle.
    pub fn request(&mut self, cycle: u64, addr: u64, beats: u32, direction: Direction) -> Burst {
        let channel = direction as usize;
        let server = &mut self.servers[if self.section.shared { 0 } else { channel }];
        let bytes = u64::from(beats) * self.beat_bytes;
        let begin = addr & !(self.beat_bytes - 1);
        let mut before = u64::from(self.section.burst_sixteenths);
        if self.section.row_open_sixteenths > 0 {
            let (first_row, last_row) = (begin / ROW_BYTES, (begin + bytes - 1) / ROW_BYTES);
            let opened = last_row - first_row + u64::from(server.row != Some(first_row));
            server.row = Some(last_row);
            before += opened * u64::from(self.section.row_open_sixteenths);
        }
        let place = server.free.max((cycle + 1) * 16) + before;
        let step = u64::from(self.section.beat_sixteenths.max(1));
        server.free = place + u64::from(beats) * step;

        let latency = u64::from(self.section.latency);
        let mut burst = Burst {
            first: self.next_beat[channel],
            slot: place + if direction == Direction::Read { latency * 16 } else { 0 },
            step,
            response: 0,
            error: u32::from(begin + bytes > self.memory_bytes),
        };
        burst.first = burst.beat(0);
        let last = burst.beat(u64::from(beats) - 1);
        self.next_beat[channel] = last + 1;
        if direction == Direction::Write {
            burst.response = last + 1 + latency;
        }
        burst
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn dram(latency: u32, beat_sixteenths: u32, shared: bool, row_open_sixteenths: u32) -> Dram {
        let section = DramSection { latency, beat_sixteenths, shared, row_open_sixteenths, burst_sixteenths: 0 };
        Dram::new(section, 1 << 20, 8)
    }

    fn beats(burst: &Burst, n: u64) -> Vec<u64> {
        (0..n).map(|i| burst.beat(i)).collect()
    }

    #[test]
    fn bursts_queue_behind_one_server() {
        let mut d = dram(10, 16, true, 0);
        assert_eq!(beats(&d.request(0, 0, 4, Direction::Read), 4), [11, 12, 13, 14]);
        assert_eq!(beats(&d.request(1, 64, 2, Direction::Read), 2), [15, 16]);
        let write = d.request(1, 128, 2, Direction::Write);
        assert_eq!((beats(&write, 2), write.response), (vec![7, 8], 19));
        assert_eq!(beats(&d.request(20, 64, 1, Direction::Read), 1), [31]);
    }

    #[test]
    fn apart_reads_and_writes_do_not_wait_for_each_other() {
        let mut d = dram(10, 16, false, 0);
        d.request(0, 0, 4, Direction::Read);
        assert_eq!(beats(&d.request(0, 128, 2, Direction::Write), 2), [1, 2]);
    }

    #[test]
    fn slow_and_fast_memories_keep_beats_apart() {
        let mut slow = dram(0, 24, true, 0);
        assert_eq!(beats(&slow.request(0, 0, 4, Direction::Read), 4), [1, 3, 4, 6]);
        assert_eq!(beats(&slow.request(0, 0, 2, Direction::Read), 2), [7, 9]);
        let mut fast = dram(0, 8, true, 0);
        assert_eq!(beats(&fast.request(0, 0, 4, Direction::Read), 4), [1, 2, 3, 4]);
        // The server is free after two cycles, the channel after four.
        assert_eq!(beats(&fast.request(2, 0, 2, Direction::Read), 2), [5, 6]);
    }

    #[test]
    fn runs_are_the_beats() {
        for sixteenths in [1, 8, 15, 16, 17, 24, 40] {
            let mut d = dram(3, sixteenths, true, 5);
            for (cycle, n) in [(0, 1), (1, 16), (2, 7), (40, 32)] {
                let burst = d.request(cycle, 64 * cycle, n, Direction::Read);
                let runs = burst.runs(n).flat_map(|(first, n)| first..first + u64::from(n));
                assert_eq!(runs.collect::<Vec<_>>(), beats(&burst, n.into()), "{sixteenths}");
            }
        }
    }

    #[test]
    fn opening_rows_takes_time() {
        let mut d = dram(0, 16, true, 32);
        assert_eq!(d.request(0, 0, 1, Direction::Read).beat(0), 3);
        assert_eq!(d.request(10, 8, 1, Direction::Read).beat(0), 11);
        // It spans two rows, so the second is opened too.
        assert_eq!(d.request(20, 2040, 2, Direction::Read).beat(0), 23);
        assert_eq!(d.request(30, 2048, 1, Direction::Read).beat(0), 31);
    }

    #[test]
    fn what_each_burst_takes_keeps_the_server() {
        let section = DramSection { latency: 10, burst_sixteenths: 3 * 16, ..DramSection::default() };
        let mut d = Dram::new(section, 1 << 20, 8);
        assert_eq!(beats(&d.request(0, 0, 2, Direction::Read), 2), [14, 15]);
        // The previous beats leave the server in cycle 6.
        assert_eq!(beats(&d.request(1, 64, 1, Direction::Read), 1), [19]);
        let write = d.request(100, 0, 2, Direction::Write);
        assert_eq!((beats(&write, 2), write.response), (vec![104, 105], 116));
    }

    #[test]
    fn ranges_past_the_end_fail() {
        let mut d = dram(0, 16, true, 0);
        assert_eq!(d.request(0, (1 << 20) - 8, 1, Direction::Read).error, 0);
        assert_eq!(d.request(0, (1 << 20) - 8, 2, Direction::Read).error, 1);
        assert_eq!(d.request(0, 1 << 39, 1, Direction::Write).error, 1);
    }
}
