//! Resources that are taken and given back, as times: places in queues and buffers, outstanding bursts.

use super::ring::Ring;

/// A cycle, counted from the doorbell's write.
pub(crate) type Time = u64;

/// A run of consecutive cycles: the first, and how many.
pub(super) type CycleRun = (Time, u32);

/// Cycles in non-decreasing order, stored as runs.
#[derive(Debug, Default)]
pub(super) struct Runs {
    runs: Ring<CycleRun>,
}

impl Runs {
    #[inline]
    pub(super) fn push(&mut self, (from, n): CycleRun) {
        match self.runs.back_mut() {
            Some((first, known)) if *first + Time::from(*known) == from => *known += n,
            _ => self.runs.push_back((from, n)),
        }
    }

    #[inline]
    fn pop(&mut self) -> Option<Time> {
        let (first, n) = self.runs.front_mut()?;
        let at = *first;
        (*first, *n) = (at + 1, *n - 1);
        if *n == 0 {
            self.runs.pop_front();
        }
        Some(at)
    }

    #[inline]
    pub(super) fn get(&self, mut index: usize) -> Option<Time> {
        for (first, n) in self.runs.iter() {
            if index < *n as usize {
                return Some(first + index as Time);
            }
            index -= *n as usize;
        }
        None
    }

    #[inline]
    pub(super) fn drop_first(&mut self, mut n: usize) {
        while let Some((first, known)) = self.runs.front_mut() {
            let all = *known as usize;
            if n < all {
                (*first, *known) = (*first + n as Time, *known - n as u32);
                return;
            }
            n -= all;
            self.runs.pop_front();
        }
    }
}

/// Like [`Places`], for places that are taken many at a time and given back in consecutive cycles.
#[derive(Debug)]
pub(super) struct Slots {
    free: usize,
    given: Runs,
}

impl Slots {
    pub(super) fn new(places: u32) -> Slots {
        Slots { free: places as usize, given: Runs::default() }
    }

    /// Creates an unlimited number of places.
    pub(super) fn endless() -> Slots {
        Slots { free: usize::MAX, given: Runs::default() }
    }

    /// Returns the first cycle with `n` free places, if known.
    #[inline]
    pub(super) fn ready(&self, n: usize) -> Option<Time> {
        if n <= self.free { Some(0) } else { self.given.get(n - self.free - 1).map(|t| t + 1) }
    }

    /// Returns the first cycle with a free place, and how many places at least are free one by one from then on.
    #[inline]
    pub(super) fn ready_run(&self) -> Option<CycleRun> {
        match self.free {
            0 => self.given.runs.front().map(|(first, n)| (first + 1, *n)),
            free => Some((0, free.min(u32::MAX as usize) as u32)),
        }
    }

    /// Forgets when places were given back, if in cycle `now` or before. Later, only places for later cycles may be
    /// asked for.
    #[inline]
    pub(super) fn forget(&mut self, now: Time) {
        while let Some((first, n)) = self.given.runs.front()
            && first + Time::from(*n) <= now + 1
        {
            self.free += *n as usize;
            self.given.runs.pop_front();
        }
    }

    /// Takes `n` places. They must be ready.
    #[inline]
    pub(super) fn take(&mut self, n: usize) {
        if self.free == usize::MAX {
            return;
        }
        let known = n.min(self.free);
        self.free -= known;
        if known < n {
            self.given.drop_first(n - known);
        }
    }

    /// Gives a place back. Times must not decrease.
    #[inline]
    pub(super) fn give(&mut self, t: Time) {
        self.give_run((t, 1));
    }

    /// Gives a place back in each of these cycles.
    #[inline]
    pub(super) fn give_run(&mut self, run: CycleRun) {
        if self.free != usize::MAX {
            self.given.push(run);
        }
    }

    /// Drains the cycles of places that were given back and not taken since.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Time> + '_ {
        std::iter::from_fn(|| self.given.pop())
    }
}

/// Places that are taken and given back one at a time, in the same order. A place given back in one cycle can be taken
/// in the next.
#[derive(Debug)]
pub(super) struct Places {
    /// The cycles from which places are free, by the number of times that a place was given back before. The length is
    /// a power of two.
    free_from: Box<[Time]>,
    /// How often places were taken, and how often given back, those at the start included. Both wrap.
    taken: usize,
    given: usize,
}

impl Places {
    pub(super) fn new(places: u32) -> Places {
        let length = places.max(1).next_power_of_two() as usize;
        Places { free_from: vec![0; length].into(), taken: 0, given: places as usize }
    }

    /// Returns the first cycle with a free place, if known.
    #[inline]
    pub(super) fn ready(&self) -> Option<Time> {
        (self.taken != self.given).then(|| self.free_from[self.taken & (self.free_from.len() - 1)])
    }

    /// Takes a place. It must be ready.
    #[inline]
    pub(super) fn take(&mut self) {
        self.taken = self.taken.wrapping_add(1);
    }

    /// Gives a place back. Times must not decrease.
    #[inline]
    pub(super) fn give(&mut self, t: Time) {
        let last = self.free_from.len() - 1;
        self.free_from[self.given & last] = t + 1;
        self.given = self.given.wrapping_add(1);
    }
}

/// A buffer whose oldest words are visible: a memory with a registered read, followed by a few registers. A word that
/// enters in cycle t leaves the memory in t + 1 at the earliest, and can be used two cycles after that.
#[derive(Debug)]
pub(super) struct Words {
    /// Number of registers, at most four.
    front: usize,
    /// Words in the memory or on their way to it: the cycles in which they enter.
    entering: Runs,
    last_read: Time,
    /// Cycles from which the words in the registers can be used, oldest first.
    usable: [Time; 4],
    held: usize,
    /// Cycles of the last four uses, oldest first.
    used: [Time; 4],
}

impl Words {
    /// Creates a buffer with `front` registers, at most four.
    pub(super) fn new(front: u32) -> Words {
        Words { front: front as usize, entering: Runs::default(), last_read: 0, usable: [0; 4], held: 0, used: [0; 4] }
    }

    /// Adds a word that enters in cycle `t`. Gives back to `places` the memory places that words leave.
    #[inline]
    pub(super) fn enter(&mut self, t: Time, places: &mut Slots) {
        self.enter_run((t, 1), places);
    }

    /// Adds a word in each of these cycles.
    #[inline]
    pub(super) fn enter_run(&mut self, run: CycleRun, places: &mut Slots) {
        self.entering.push(run);
        self.read(places);
    }

    /// Returns the first cycle in which a word that enters in cycle `t` can be used, if there are four registers and no
    /// other words.
    #[inline]
    pub(super) fn usable_after(&self, t: Time) -> Time {
        t.max(self.last_read).max(self.used[0]) + 3
    }

    /// Returns whether there are no words.
    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.held == 0 && self.entering.runs.is_empty()
    }

    /// Returns whether [`Words::pass`] applies to words, if the first of them has entered by cycle `enters`. It applies
    /// if each of the last four words was used at least four cycles before the word that takes its register.
    #[inline]
    pub(super) fn can_pass(&self, enters: Time, clock: Time) -> bool {
        let from = clock.max(enters.max(self.last_read) + 3);
        self.used[0] + 4 <= from && self.used[1] + 3 <= from && self.used[2] + 2 <= from
    }

    /// Uses words that have entered by these cycles, one per cycle, as soon as possible but not before `clock`, which is
    /// after all earlier uses. Returns the cycle of the first use. Needs four registers, no other words, and
    /// [`Words::can_pass`].
    #[inline]
    pub(super) fn pass(&mut self, (enters, n): CycleRun, clock: Time, places: &mut Slots) -> Time {
        debug_assert!(self.can_pass(enters, clock) && self.is_empty(), "checked by the caller");
        let all = Time::from(n);
        let read = enters.max(self.last_read) + 1;
        let from = clock.max(read + 2);
        let in_a_row = (0..4).all(|k| self.used[k as usize] + 4 == clock + k);
        // A word is read when it has entered, the one before it is read, and the fourth before it was used.
        if from == read + 2 {
            // Nothing but the first word delays reads: registers are free in time.
            places.give_run((read, n));
            self.last_read = read + all - 1;
        } else if in_a_row {
            // Registers delay all reads: each is three cycles before the word's use.
            places.give_run((clock - 3, n));
            self.last_read = clock - 4 + all;
        } else {
            // The same from the fifth word on, but the registers of the first four are free at other times.
            for (k, used) in self.used.into_iter().enumerate().take(n as usize) {
                self.last_read = (enters + k as Time).max(self.last_read).max(used) + 1;
                places.give(self.last_read);
            }
            if n > 4 {
                places.give_run((clock + 1, n - 4));
                self.last_read = clock + all - 4;
            }
        }
        if n >= 4 {
            self.used = [0, 1, 2, 3].map(|k| from + all - 4 + k);
        } else {
            self.used.copy_within(n as usize.., 0);
            for k in 0..n as usize {
                self.used[4 - n as usize + k] = from + k as Time;
            }
        }
        from
    }

    /// Reads a word that entered in cycle `t`, while `held` words are read but not used, at most one. Returns the first
    /// cycle in which it can be used. Needs four registers and no other words.
    #[inline]
    pub(super) fn read_one(&mut self, t: Time, held: usize, places: &mut Slots) -> Time {
        self.last_read = t.max(self.last_read).max(self.used[held & 3]) + 1;
        places.give(self.last_read);
        self.last_read + 2
    }

    /// Records that a word is used in cycle `t`. For words that [`Words::read_one`] read.
    #[inline]
    pub(super) fn use_one(&mut self, t: Time) {
        let [_, a, b, c] = self.used;
        self.used = [a, b, c, t];
    }

    /// Returns when the last word left the memory, if all have.
    #[inline]
    pub(super) fn all_read(&self) -> Option<Time> {
        self.entering.runs.is_empty().then_some(self.last_read)
    }

    /// Returns the cycle from which word `n` can be used, if known.
    #[inline]
    pub(super) fn usable(&self, n: usize) -> Option<Time> {
        (n < self.held).then(|| self.usable[n])
    }

    /// Uses up the oldest word in cycle `t`.
    #[inline]
    pub(super) fn use_up(&mut self, t: Time, places: &mut Slots) {
        let [_, a, b, c] = self.usable;
        self.usable = [a, b, c, 0];
        self.held -= 1;
        self.use_one(t);
        self.read(places);
    }

    /// Moves words out of the memory as soon as a register is free. Words already on their way count as occupying one.
    #[inline]
    fn read(&mut self, places: &mut Slots) {
        while self.held < self.front
            && let Some(entered) = self.entering.pop()
        {
            let read = entered.max(self.last_read).max(self.used[4 - self.front + self.held]) + 1;
            self.last_read = read;
            places.give(read);
            self.usable[self.held] = read + 2;
            self.held += 1;
        }
    }
}
