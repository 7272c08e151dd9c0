//! Resources that are taken and given back, as times: places in queues and buffers, outstanding bursts.

use std::collections::VecDeque;

/// A cycle, counted from the doorbell's write.
pub(crate) type Time = u64;

/// A run of consecutive cycles: the first, and how many.
pub(super) type CycleRun = (Time, u32);

/// Cycles in non-decreasing order, stored as runs.
#[derive(Debug, Default)]
struct Runs {
    runs: VecDeque<CycleRun>,
}

impl Runs {
    #[inline]
    fn push(&mut self, (from, n): CycleRun) {
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

    fn get(&self, mut index: usize) -> Option<Time> {
        for (first, n) in &self.runs {
            if index < *n as usize {
                return Some(first + index as Time);
            }
            index -= *n as usize;
        }
        None
    }

    fn drop_first(&mut self, mut n: usize) {
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

/// A number of places that are given back in the order in which they were taken. A place given back in one cycle can be
/// taken in the next.
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

    /// Uses up to `most` words, one per cycle, from `clock` or the first cycle after it that has a word. Returns the
    /// cycles. Works only for four or more words without a pause in between, or for all remaining words.
    #[inline]
    pub(super) fn use_run(&mut self, clock: Time, most: u32, places: &mut Slots) -> Option<CycleRun> {
        let from = clock.max(self.usable[0]);
        let Some(&(enters, n)) = self.entering.runs.front() else {
            let count = self.held.min(most as usize);
            if (1..count).any(|k| self.usable[k] > from + k as Time) || count == 0 {
                return None;
            }
            self.leave(from, count);
            return Some((from, count as u32));
        };
        let pause = (1..4).any(|k| self.usable[k as usize] > from + k) || enters + 3 > from + 4;
        let count = most.min(n);
        if self.front < 4 || self.held < 4 || pause || count < 4 {
            return None;
        }
        // A word is read three cycles after the use of the fourth word before it, or as soon as it has entered.
        let read = (enters + 1).max(self.last_read + 1).max(from + 1);
        self.entering.drop_first(count as usize);
        places.give_run((read, count));
        let all = Time::from(count);
        self.last_read = read + all - 1;
        for k in 0..4 {
            self.usable[k as usize] = read + all - 4 + k + 2;
            self.used[k as usize] = from + all - 4 + k;
        }
        Some((from, count))
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
        self.leave(t, 1);
        self.read(places);
    }

    /// Removes `count` words from the registers, one per cycle from cycle `from` on.
    #[inline(always)]
    fn leave(&mut self, from: Time, count: usize) {
        self.usable.copy_within(count.., 0);
        self.held -= count;
        self.used.copy_within(count.., 0);
        for k in 0..count {
            self.used[4 - count + k] = from + k as Time;
        }
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
