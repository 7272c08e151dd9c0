//! Places that are taken and given back, as times: queues, buffers, outstanding bursts.

use std::collections::VecDeque;

/// A cycle, counted from the doorbell's write.
pub(crate) type Time = u64;

/// A number of places that are given back in the order in which they were taken. What is given back in one cycle can be
/// taken in the next.
#[derive(Debug)]
pub(super) struct Slots {
    free: usize,
    given: VecDeque<Time>,
}

impl Slots {
    pub(super) fn new(places: u32) -> Slots {
        Slots { free: places as usize, given: VecDeque::new() }
    }

    /// So many places that nobody counts them.
    pub(super) fn endless() -> Slots {
        Slots { free: usize::MAX, given: VecDeque::new() }
    }

    /// The first cycle with `n` free places, where it is known.
    #[inline]
    pub(super) fn ready(&self, n: usize) -> Option<Time> {
        if n <= self.free { Some(0) } else { self.given.get(n - self.free - 1).map(|t| t + 1) }
    }

    /// Takes `n` places that are ready.
    #[inline]
    pub(super) fn take(&mut self, n: usize) {
        if self.free == usize::MAX {
            return;
        }
        let known = n.min(self.free);
        self.free -= known;
        self.given.drain(..n - known);
    }

    /// Gives a place back; times never fall.
    #[inline]
    pub(super) fn give(&mut self, t: Time) {
        if self.free != usize::MAX {
            self.given.push_back(t);
        }
    }

    /// The cycles in which places were given back, of those that nobody has taken.
    pub(super) fn drain(&mut self) -> impl Iterator<Item = Time> + '_ {
        self.given.drain(..)
    }
}

/// A buffer whose oldest words are visible: a memory with a registered read, and four registers behind it. A word that
/// enters in cycle t leaves the memory in t + 1 at the earliest, and can be used two cycles later.
#[derive(Debug)]
pub(super) struct Words {
    /// Words in the memory or on their way to it: the cycles in which they enter.
    entering: VecDeque<Time>,
    last_read: Time,
    /// Cycles from which the words in the registers can be used, oldest first.
    usable: [Time; 4],
    held: usize,
    /// The last four uses, oldest first.
    used: [Time; 4],
}

impl Words {
    pub(super) fn new() -> Words {
        Words { entering: VecDeque::new(), last_read: 0, usable: [0; 4], held: 0, used: [0; 4] }
    }

    /// A word enters in cycle `t`. The memory's places that words leave are given back to `places`.
    #[inline]
    pub(super) fn enter(&mut self, t: Time, places: &mut Slots) {
        self.entering.push_back(t);
        self.read(places);
    }

    /// When the last word so far left the memory, where all have.
    #[inline]
    pub(super) fn all_read(&self) -> Option<Time> {
        self.entering.is_empty().then_some(self.last_read)
    }

    /// The cycle from which the word at place `n` can be used, where it is known.
    #[inline]
    pub(super) fn usable(&self, n: usize) -> Option<Time> {
        (n < self.held).then(|| self.usable[n])
    }

    /// Uses up the oldest word in cycle `t`.
    #[inline]
    pub(super) fn use_up(&mut self, t: Time, places: &mut Slots) {
        self.usable.copy_within(1.., 0);
        self.held -= 1;
        self.used.copy_within(1.., 0);
        self.used[3] = t;
        self.read(places);
    }

    /// Words leave the memory as soon as at most three are in the registers or on their way there.
    #[inline]
    fn read(&mut self, places: &mut Slots) {
        while self.held < 4
            && let Some(entered) = self.entering.pop_front()
        {
            let read = entered.max(self.last_read).max(self.used[self.held]) + 1;
            self.last_read = read;
            places.give(read);
            self.usable[self.held] = read + 2;
            self.held += 1;
        }
    }
}
