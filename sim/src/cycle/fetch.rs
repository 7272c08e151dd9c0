//! Fetch: bursts of the stream, beats joined into instructions, queues that fill.

use super::bursts::{Cut, Request, Row};
use super::slots::{Slots, Time, Words};
use super::states::Layers;
use crate::dram::Burst;
use std::collections::VecDeque;
use tilewright_hw::HwConfig;
use tilewright_hw::isa::INSN_BYTES;
use tilewright_hw::regs::UnitState;

/// Layers of what fetch does, the first that holds.
pub(super) mod layer {
    pub const EMPTY: usize = 0;
    pub const INSTRUCTION: usize = 1;
    pub const REQUEST: usize = 2;
    pub const REST: usize = 3;
    pub const COUNT: usize = 4;
}

/// An instruction that stands to be decoded.
#[derive(Debug, Clone, Copy)]
pub(super) struct Joined {
    /// Its place in the stream.
    pub(super) place: u32,
    /// The cycle in which it stands there first.
    pub(super) at: Time,
    /// The bus answered one of its beats with an error.
    pub(super) error: bool,
}

pub(super) struct Fetch {
    cut: Cut,
    insns: u32,
    /// The rest of the stream that is to be requested.
    stream: Row,
    /// The cycle of the last beat so far.
    last_beat: Time,
    places: Slots,
    words: Words,
    /// Whether each beat that is under way came with an error.
    errors: VecDeque<bool>,
    /// Instructions joined, and the beat or the part of the next.
    joined: u32,
    part: u32,
    last_pop: Time,
    /// When the place before decoding is free.
    slot: Option<Time>,
    /// Whether all beats of an instruction need its place, not its last alone.
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
            stream: Row::new(stream_addr, u64::from(insns) * INSN_BYTES as u64, 1),
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

    /// The next burst and the first cycle in which it is requested, where that is known.
    pub(super) fn request(&self) -> Option<(Time, Request)> {
        if self.stream.is_empty() {
            return None;
        }
        let request = self.stream.next(self.cut);
        Some((self.stream.stands.max(self.places.ready(request.beats as usize)?), request))
    }

    /// The request is granted in cycle `at`, and these are the cycles of its beats.
    pub(super) fn granted(&mut self, asked: Time, at: Time, request: Request, burst: Burst) {
        self.states.add(layer::REQUEST, asked, at, UnitState::Request);
        self.places.take(request.beats as usize);
        self.stream.granted(request, self.cut, at);
        self.last_beat = burst.beat(u64::from(request.beats) - 1);
        for run in burst.runs(request.beats) {
            self.words.enter_run(run, &mut self.places);
        }
        self.errors.extend(std::iter::repeat_n(burst.error != 0, request.beats as usize));
    }

    /// The next instruction, where its beats and its place are known. Nothing follows one with an error.
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

    /// Takes the beats of the next instruction, but for the last, which needs its place.
    pub(super) fn gather(&mut self) {
        while self.part + 1 < self.beats_of_insn()
            && let Some(usable) = self.words.usable(0)
        {
            if self.errors[0] {
                // Its trap comes when the instruction before has gone, as for the last beat.
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
        // An error is seen at the buffer's head, an instruction behind it.
        Joined { place, at: if self.failed { at } else { at + 1 }, error: self.failed }
    }

    /// The instruction that stands since `since` is handed on from cycle `at` on, and is in its queue in cycle `there`.
    pub(super) fn handed_on(&mut self, since: Time, at: Time, there: Time) {
        self.states.add(layer::INSTRUCTION, since, at, UnitState::Space);
        self.states.add(layer::INSTRUCTION, at, there, UnitState::Busy);
        // Where it moves word by word, its place is free when the last has gone.
        self.slot = Some(if self.lean { there } else { at });
        if self.joined == self.insns {
            self.done = Some(there);
        }
    }

    /// The instruction that stands in cycle `at` cannot be decoded; it waits for its queue all the same, where that is full.
    pub(super) fn refused(&mut self, at: Time, full: bool) {
        let state = if full { UnitState::Space } else { UnitState::Busy };
        self.states.add(layer::INSTRUCTION, at, at + 1, state);
    }

    /// The cycle of the last beat.
    pub(super) fn last_beat(&self) -> Time {
        self.last_beat
    }

    /// The run ends before cycle `end`, in the middle of things: what goes on until then, with an instruction that stands
    /// since a cycle.
    pub(super) fn cut(&mut self, standing: Option<Time>, end: Time) {
        if let Some(since) = standing {
            self.states.add(layer::INSTRUCTION, since, end, UnitState::Space);
        }
        if let Some((asked, _)) = self.request() {
            self.states.add(layer::REQUEST, asked, end, UnitState::Request);
        }
    }

    /// Counts states as far as all is known, but not behind `now`.
    pub(super) fn settle(&mut self, now: Time) {
        if let Some(slot) = self.slot {
            self.states.settle(self.stream.stands.min(slot + 1).min(now));
        }
    }

    /// The cycle from which all instructions are handed out.
    pub(super) fn done(&self) -> Option<Time> {
        self.done
    }

    /// Cycles by state of a run of so many cycles.
    pub(super) fn finish(&mut self, cycles: Time) -> [u64; UnitState::ALL.len()] {
        if let Some(done) = self.done {
            self.states.add(layer::EMPTY, done, Time::MAX, UnitState::Empty);
        }
        self.states.finish(cycles)
    }
}
