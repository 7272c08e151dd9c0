//! Whole blocks in another order, by loads and stores alone.
//!
//! A block of a pixel's channels lies in device memory as one piece. A transpose that moves no element to another place in
//! its block is a walk over blocks: some loops over the result's blocks in their order, with a distance in the data for each.
//! Where that is the order in which they lie already, there is nothing to do but to look at the bytes in another way.

use crate::codegen::accel::limits::{ROW_BYTES, ROWS};
use crate::codegen::accel::view::View;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::Load;

/// Blocks of channels of a tensor in another order: loops over those of the result as they lie in device memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reorder {
    /// Count, and distance in blocks of the data, the outermost loop first.
    pub loops: Vec<(usize, usize)>,
}

/// Loops of a load over rows of bytes: their bytes, rows and planes.
const LOOPS: usize = 3;

/// The walk over the blocks of `from` that gives `to`, element `source(i)` of the data being element `i` of the result, both
/// counted in their dense form. None where elements change their places in blocks, or where no loops say the order.
pub fn reorder(from: View, to: View, source: &dyn Fn(usize) -> usize, block: usize) -> Option<Reorder> {
    if from.has_windows() || to.has_windows() || from.elements() != to.elements() {
        return None;
    }
    let mut order = Vec::new();
    let image = to.c * to.h * to.w;
    for n in 0..to.n {
        for first in (0..to.c).step_by(block) {
            for (y, x) in (0..to.h).flat_map(|y| (0..to.w).map(move |x| (y, x))) {
                let place = |c: usize| place(from, source(n * image + to.index(c, y, x)), block);
                let (at, lane) = place(first);
                let channels = first + 1..to.c.min(first + block);
                if lane != 0 || channels.into_iter().any(|c| place(c) != (at, c - first)) {
                    return None;
                }
                order.push(at);
            }
        }
    }
    loops(&order).map(|loops| Reorder { loops })
}

/// The block, and the place in it, of an element of a tensor's dense form.
fn place(view: View, element: usize, block: usize) -> (usize, usize) {
    let View { c, h, w, .. } = view;
    let (n, at) = (element / (c * h * w), element % (c * h * w));
    let [channel, y, x] = view.position(at);
    (((n * c.div_ceil(block) + channel / block) * h + y) * w + x, channel % block)
}

/// Loops that give these numbers in their order, the outermost first: counts and steps. None where there are no few.
fn loops(order: &[usize]) -> Option<Vec<(usize, usize)>> {
    let first = *order.first()?;
    if first != 0 {
        return None;
    }
    let (mut list, mut found) = (order.to_vec(), Vec::new());
    while list.len() > 1 {
        let step = list[1].checked_sub(list[0])?;
        let along = |run: &[usize]| run.iter().enumerate().all(|(i, &at)| at == run[0] + i * step);
        let count = (2..=list.len()).take_while(|&n| list[n - 1] == list[0] + (n - 1) * step).last()?;
        if !list.len().is_multiple_of(count) || !list.chunks(count).all(along) {
            return None;
        }
        found.insert(0, (count, step));
        list = list.into_iter().step_by(count).collect();
    }
    Some(found)
}

impl Reorder {
    /// Whether the blocks lie in their order already.
    pub fn is_nothing(&self) -> bool {
        matches!(self.loops[..], [] | [(_, 1)])
    }

    /// The walk as loads of at most `room` blocks: the first block of the result and of the data, and the loops within.
    pub fn pieces(&self, room: usize, block: usize) -> Vec<Piece> {
        let mut all = self.loops.clone();
        if all.last().is_none_or(|&(_, step)| step != 1) {
            all.push((1, 1));
        }
        let mut found = Vec::new();
        split(&all, (0, 0), (room.clamp(1, ROW_BYTES / block), block), &mut found);
        found
    }
}

/// A load of a walk, and the store of what it brings.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// DeviceTensor of the first block in the result and in the data.
    pub to: usize,
    pub from: usize,
    /// Counts and steps in blocks, the outermost first: planes, rows, and blocks beside one another.
    pub loops: [(usize, usize); LOOPS],
}

impl Piece {
    pub fn blocks(&self) -> usize {
        self.loops.iter().map(|l| l.0).product()
    }

    /// The load of the piece to out, but for its places.
    pub fn load(&self, block: usize) -> Load {
        let [planes, rows, run] = self.loops;
        let stride = |(count, step): (usize, usize)| if count > 1 { (step * block) as u64 } else { 0 };
        Load {
            mem: Mem::Out,
            row_bytes: (run.0 * block) as u32,
            rows: rows.0 as u32,
            planes: planes.0 as u32,
            row_stride: stride(rows),
            plane_stride: stride(planes),
            ..Load::default()
        }
    }
}

/// Cuts loops into pieces, the outermost loop first.
fn split(loops: &[(usize, usize)], (to, from): (usize, usize), (room, block): (usize, usize), found: &mut Vec<Piece>) {
    let [(count, step), inner @ ..] = loops else { return };
    let inside: usize = inner.iter().map(|l| l.0).product();
    let rows = inner.split_last().map_or(&[][..], |(_, rows)| rows);
    if loops.len() > LOOPS || inside > room || rows.iter().any(|&(count, _)| count > ROWS) {
        for i in 0..*count {
            split(inner, (to + i * inside, from + i * step), (room, block), found);
        }
        return;
    }
    let most = if inner.is_empty() { room } else { (room / inside).min(ROWS) };
    for first in (0..*count).step_by(most) {
        let mut piece = [(1, 0); LOOPS];
        let start = LOOPS - loops.len();
        piece[start..].copy_from_slice(loops);
        piece[start].0 = most.min(count - first);
        found.push(Piece { to: to + first * inside, from: from + first * step, loops: piece });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(pieces: &[Piece]) -> Vec<usize> {
        let mut found = Vec::new();
        for p in pieces {
            assert_eq!(p.to, found.len());
            let [planes, rows, run] = p.loops;
            for (z, y, x) in
                (0..planes.0).flat_map(|z| (0..rows.0).flat_map(move |y| (0..run.0).map(move |x| (z, y, x))))
            {
                found.push(p.from + z * planes.1 + y * rows.1 + x * run.1);
            }
        }
        found
    }

    #[test]
    fn loops_and_their_pieces_say_the_order() {
        // Four dimensions of blocks in every order, cut to every size.
        let sizes = [2usize, 3, 4, 5];
        let strides = [60usize, 20, 5, 1];
        for perm in [[0, 1, 2, 3], [0, 2, 1, 3], [3, 2, 1, 0], [1, 3, 0, 2], [2, 3, 0, 1]] {
            let mut wanted = vec![0];
            for &d in &perm {
                wanted = wanted.iter().flat_map(|&at| (0..sizes[d]).map(move |i| at + i * strides[d])).collect();
            }
            let reorder = Reorder { loops: loops(&wanted).unwrap() };
            assert_eq!(reorder.is_nothing(), perm == [0, 1, 2, 3]);
            for room in [1, 2, 7, 16, 60, 1000] {
                let pieces = reorder.pieces(room, 16);
                assert!(pieces.iter().all(|p| p.blocks() <= room));
                assert_eq!(order(&pieces), wanted, "{perm:?}, {room} at a time");
            }
        }
        // More rows than a load has, below and in the outermost loop.
        for counts in [[3, 2 * ROWS + 5], [2 * ROWS + 5, 3]] {
            let wanted: Vec<usize> =
                (0..counts[0]).flat_map(|y| (0..counts[1]).map(move |x| y + x * counts[0])).collect();
            let pieces = Reorder { loops: loops(&wanted).unwrap() }.pieces(ROW_BYTES, 1);
            assert!(pieces.iter().all(|p| p.loops[0].0 <= ROWS && p.loops[1].0 <= ROWS));
            assert_eq!(order(&pieces), wanted, "{counts:?}");
        }
        assert_eq!(loops(&[0, 2, 1, 3, 5]), None);
        assert_eq!(loops(&[0, 1, 3]), None);
        assert_eq!(loops(&[1, 2, 3]), None);
    }
}
