//! A queue of small values in a ring. Unlike `VecDeque`, its length is a power of two, which keeps its code short.

/// A queue.
#[derive(Debug, Clone)]
pub(super) struct Ring<T> {
    /// No places, or a power of two.
    places: Vec<T>,
    first: usize,
    len: usize,
}

impl<T> Default for Ring<T> {
    fn default() -> Ring<T> {
        Ring { places: Vec::new(), first: 0, len: 0 }
    }
}

impl<T: Copy> Ring<T> {
    #[inline]
    fn place(&self, index: usize) -> usize {
        self.first.wrapping_add(index) & self.places.len().wrapping_sub(1)
    }

    #[inline]
    pub(super) fn len(&self) -> usize {
        self.len
    }

    #[inline]
    pub(super) fn is_empty(&self) -> bool {
        self.len == 0
    }

    /// Returns the value at `index`, counted from the oldest.
    #[inline]
    pub(super) fn get(&self, index: usize) -> Option<&T> {
        if index < self.len { self.places.get(self.place(index)) } else { None }
    }

    /// Returns the oldest value.
    #[inline]
    pub(super) fn front(&self) -> Option<&T> {
        self.get(0)
    }

    #[inline]
    pub(super) fn front_mut(&mut self) -> Option<&mut T> {
        let place = self.place(0);
        if self.len > 0 { self.places.get_mut(place) } else { None }
    }

    /// Returns the newest value.
    #[inline]
    pub(super) fn back_mut(&mut self) -> Option<&mut T> {
        let place = self.place(self.len.wrapping_sub(1));
        if self.len > 0 { self.places.get_mut(place) } else { None }
    }

    #[inline]
    pub(super) fn push_back(&mut self, value: T) {
        if self.len == self.places.len() {
            self.grow(value);
        }
        let place = self.place(self.len);
        if let Some(free) = self.places.get_mut(place) {
            *free = value;
            self.len += 1;
        }
    }

    #[inline]
    pub(super) fn pop_front(&mut self) -> Option<T> {
        let value = *self.front()?;
        (self.first, self.len) = (self.first.wrapping_add(1), self.len - 1);
        Some(value)
    }

    /// Iterates from the oldest value to the newest.
    pub(super) fn iter(&self) -> impl Iterator<Item = &T> {
        (0..self.len).filter_map(|index| self.get(index))
    }

    #[cold]
    fn grow(&mut self, any: T) {
        let mut places = Vec::with_capacity((2 * self.len).max(8));
        let (behind, front) = self.places.split_at(self.place(0).min(self.places.len()));
        places.extend_from_slice(front);
        places.extend_from_slice(behind);
        places.resize((2 * self.len).max(8), any);
        (self.places, self.first) = (places, 0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn values_come_out_in_order() {
        let mut ring = Ring::default();
        let (mut pushed, mut popped) = (0, 0);
        for step in 0..100u32 {
            for _ in 0..step % 7 {
                ring.push_back(pushed);
                pushed += 1;
            }
            assert_eq!(ring.iter().copied().collect::<Vec<_>>(), (popped..pushed).collect::<Vec<_>>());
            assert_eq!((ring.front().copied(), ring.len()), ((popped < pushed).then_some(popped), pushed - popped));
            for _ in 0..step % 5 {
                assert_eq!(ring.pop_front(), (popped < pushed).then_some(popped));
                popped = pushed.min(popped + 1);
            }
        }
        assert!(ring.back_mut().is_some_and(|last| *last == pushed - 1));
    }
}
