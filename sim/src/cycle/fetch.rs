//! The fetch unit: requests bursts of the stream, joins beats into instructions, and fills the queues.

use super::bursts::{BurstRequest, Cut, PendingBytes};
use super::slots::{Slots, Time, Words};
use super::states::Layers;
use crate::dram::Burst;
use std::collections::VecDeque;
use tilewright_hw::HwConfig;
use tilewright_hw::isa::INSN_BYTES;
use tilewright_hw::regs::UnitState;

/// Layers of the unit's states. The first layer with a state wins.
pub(super) mod layer {
    pub const EMPTY: usize = 0;
    pub const INSTRUCTION: usize = 1;
    pub const REQUEST: usize = 2;
    pub const REST: usize = 3;
    pub const COUNT: usize = 4;
}

/// An instruction that waits to be decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joined {
    /// Its place in the stream.
    pub(super) place: u32,
    /// The first cycle in which it waits there.
    pub(super) at: Time,
    /// Whether the bus answered one of its beats with an error.
    pub(super) error: bool,
}

pub(super) struct Fetch {
    cut: Cut,
    insns: u32,
    /// The part of the stream that is not requested yet.
    stream: PendingBytes,
    /// The cycle of the last beat that is known.
    last_beat: Time,
    places: Slots,
    words: Words,
    /// Whether each beat under way has an error.
    errors: VecDeque<bool>,
    /// Number of joined instructions, and the beat of the next instruction, or its place in a wide beat.
    joined: u32,
    part: u32,
    last_pop: Time,
    /// The cycle from which the place in front of the decoder is free, if known.
    slot: Option<Time>,
    /// Whether all beats of an instruction need that place, not just its last.
    lean: bool,
    failed: bool,
    done: Option<Time>,
    pub(super) states: Layers<{ layer::COUNT }>,
}

impl Fetch {
    pub(super) fn new(config: &HwConfig, stream_addr: u64, insns: u32) -> Fetch {
        let cut = Cut { longest: config.fetch_burst_beats(), ..Cut::new(config) };
        Fetch {
            cut,
            insns,
            stream: PendingBytes::new(stream_addr, u64::from(insns) * INSN_BYTES as u64, 1),
            last_beat: 0,
            places: Slots::new(config.fetch_buffer_beats()),
            words: Words::new(config.front_words()),
            errors: VecDeque::new(),
            joined: 0,
            part: (stream_addr % cut.beat_bytes) as u32 / INSN_BYTES as u32,
            last_pop: 0,
            slot: Some(0),
            lean: config.lean,
            failed: false,
            done: (insns == 0).then_some(1),
            states: {
                let mut states = Layers::new();
                states.add(layer::REST, 1, Time::MAX, UnitState::Data);
                states
            },
        }
    }

    /// Returns the next burst and the first cycle in which it is requested, if known.
    pub(super) fn request(&self) -> Option<(Time, BurstRequest)> {
        if self.stream.is_empty() {
            return None;
        }
        let request = self.stream.next(self.cut);
        Some((self.stream.stands.max(self.places.ready(request.beats as usize)?), request))
    }

    /// Records that the request is granted in cycle `at`, with the beats of `burst`.
    pub(super) fn granted(&mut self, asked: Time, at: Time, request: BurstRequest, burst: Burst) {
        self.states.add(layer::REQUEST, asked, at, UnitState::Request);
        // The next request comes later.
        self.places.forget(at);
        self.places.take(request.beats as usize);
        self.stream.granted(request, self.cut, at);
        self.last_beat = burst.beat(u64::from(request.beats) - 1);
        for run in burst.runs(request.beats) {
            self.words.enter_run(run, &mut self.places);
        }
        self.errors.extend(std::iter::repeat_n(burst.error != 0, request.beats as usize));
    }

    /// Joins the next instruction, if its beats and its place are known. An instruction with an error is the last.
    pub(super) fn join(&mut self) -> Option<Joined> {
        if self.joined == self.insns || self.failed {
            return None;
        }
        if self.cut.beat_bytes > INSN_BYTES as u64 {
            let at = self.words.usable(0)?.max(self.last_pop + 1).max(self.slot?);
            self.failed = self.errors[0];
            self.last_pop = at;
            self.part = (self.part + 1) % (self.cut.beat_bytes / INSN_BYTES as u64) as u32;
            if self.part == 0 || self.joined + 1 == self.insns {
                self.use_word(at);
            }
            return Some(self.stand(at));
        }
        self.gather();
        if self.part + 1 != self.beats_of_insn() {
            return None;
        }
        let at = self.words.usable(0)?.max(self.last_pop + 1).max(self.slot?);
        self.failed = self.errors[0];
        if !self.failed {
            self.last_pop = at;
            self.part = 0;
            self.use_word(at);
        }
        Some(self.stand(at))
    }

    fn beats_of_insn(&self) -> u32 {
        (INSN_BYTES as u64 / self.cut.beat_bytes) as u32
    }

    /// Takes the beats of the next instruction, except the last, which needs the place in front of the decoder.
    pub(super) fn gather(&mut self) {
        while self.part + 1 < self.beats_of_insn()
            && let Some(usable) = self.words.usable(0)
        {
            if self.errors[0] {
                // It traps when the previous instruction has left, like an error in the last beat.
                self.part = self.beats_of_insn() - 1;
                return;
            }
            let mut at = usable.max(self.last_pop + 1);
            if self.lean {
                let Some(slot) = self.slot else { return };
                at = at.max(slot);
            }
            self.last_pop = at;
            self.part += 1;
            self.use_word(at);
        }
    }

    fn use_word(&mut self, at: Time) {
        self.words.use_up(at, &mut self.places);
        self.errors.pop_front();
    }

    fn stand(&mut self, at: Time) -> Joined {
        let place = self.joined;
        self.joined += 1;
        self.slot = None;
        // An error is visible at the buffer's head; an instruction appears one cycle later.
        Joined { place, at: if self.failed { at } else { at + 1 }, error: self.failed }
    }

    /// Records that the instruction waiting since `since` leaves from cycle `at` on and is in its queue in cycle
    /// `there`.
    pub(super) fn handed_on(&mut self, since: Time, at: Time, there: Time) {
        self.states.add(layer::INSTRUCTION, since, at, UnitState::Space);
        self.states.add(layer::INSTRUCTION, at, there, UnitState::Busy);
        // If it moves word by word, its place is free after the last word.
        self.slot = Some(if self.lean { there } else { at });
        if self.joined == self.insns {
            self.done = Some(there);
        }
    }

    /// Records that the instruction in cycle `at` cannot be decoded. It still waits for its queue if that is `full`.
    pub(super) fn refused(&mut self, at: Time, full: bool) {
        let state = if full { UnitState::Space } else { UnitState::Busy };
        self.states.add(layer::INSTRUCTION, at, at + 1, state);
    }

    /// Returns the cycle of the last beat.
    pub(super) fn last_beat(&self) -> Time {
        self.last_beat
    }

    /// Records what is going on until the run ends at cycle `end`, with an instruction waiting since `standing`.
    pub(super) fn cut(&mut self, standing: Option<Time>, end: Time) {
        if let Some(since) = standing {
            self.states.add(layer::INSTRUCTION, since, end, UnitState::Space);
        }
        if let Some((asked, _)) = self.request() {
            self.states.add(layer::REQUEST, asked, end, UnitState::Request);
        }
    }

    /// Counts the states that are final, up to `now` at most.
    pub(super) fn settle(&mut self, now: Time) {
        if let Some(slot) = self.slot {
            self.states.settle(self.stream.stands.min(slot + 1).min(now));
        }
    }

    /// Returns the cycle from which all instructions are dispatched, if known.
    pub(super) fn done(&self) -> Option<Time> {
        self.done
    }

    /// Returns the cycles of each state in a run of `cycles`.
    pub(super) fn finish(&mut self, cycles: Time) -> [u64; UnitState::ALL.len()] {
        if let Some(done) = self.done {
            self.states.add(layer::EMPTY, done, Time::MAX, UnitState::Empty);
        }
        self.states.finish(cycles)
    }
}
