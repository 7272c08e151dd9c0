//! Puts whole blocks in another order, with only loads and stores.
//!
//! In device memory a pixel's channels of one block are contiguous. If a transpose moves no element to another place
//! within its block, it is a reorder of these: nested loops over the result's blocks, each with a stride in the data.
//! If the order does not change, the result is an alias of the data with another view.

use crate::codegen::accel::limits::{ROW_BYTES, ROWS};
use crate::codegen::accel::view::View;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::Load;

/// A tensor's blocks of channels in another order, as loops over the result's blocks in the order of device memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Reorder {
    /// The loops, the outermost first.
    pub loops: Vec<BlockLoop>,
}

/// A loop over blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct BlockLoop {
    /// Number of iterations.
    pub count: usize,
    /// Distance in the data from one iteration to the next, in blocks.
    pub step: usize,
}

/// Number of loops of a load: planes, rows, and bytes of a row.
const LOOPS: usize = 3;

/// Returns the reorder of the blocks of `from` that gives `to`.
///
/// Element `i` of the result is element `source(i)` of the data, both counted in their dense form. `None` if elements
/// change their places within blocks, or if nested loops cannot describe the order.
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

/// Returns the block that holds an element of a tensor's dense form, and the element's position in the block.
fn place(view: View, element: usize, block: usize) -> (usize, usize) {
    let View { c, h, w, .. } = view;
    let (n, at) = (element / (c * h * w), element % (c * h * w));
    let [channel, y, x] = view.position(at);
    (((n * c.div_ceil(block) + channel / block) * h + y) * w + x, channel % block)
}

/// Returns nested loops, the outermost first, that produce these numbers in this order; `None` if there are none.
fn loops(order: &[usize]) -> Option<Vec<BlockLoop>> {
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
        found.insert(0, BlockLoop { count, step });
        list = list.into_iter().step_by(count).collect();
    }
    Some(found)
}

impl Reorder {
    /// Whether the blocks are already in order.
    pub fn is_nothing(&self) -> bool {
        matches!(self.loops[..], [] | [BlockLoop { step: 1, .. }])
    }

    /// Returns the loops; the last one moves adjacent blocks.
    pub fn whole_loops(&self) -> Vec<BlockLoop> {
        let mut all = self.loops.clone();
        if all.last().is_none_or(|l| l.step != 1) {
            all.push(BlockLoop { count: 1, step: 1 });
        }
        all
    }

    /// Returns which loop is cut so that at most `room` blocks of `block` bytes are moved at once, and how many of its
    /// iterations. Loops around it run one iteration after the other.
    pub fn cut(&self, room: usize, block: usize) -> (usize, usize) {
        let loops = self.whole_loops();
        let room = room.clamp(1, ROW_BYTES / block);
        let inside = |k: usize| loops[k + 1..].iter().map(|l| l.count).product::<usize>();
        let fits = |k: &usize| {
            let rows = &loops[k + 1..loops.len().max(k + 2) - 1];
            loops.len() - k <= LOOPS && inside(*k) <= room && rows.iter().all(|l| l.count <= ROWS)
        };
        let last = loops.len() - 1;
        let k = (0..last).find(fits).unwrap_or(last);
        let most = if k == last { room } else { (room / inside(k)).min(ROWS) };
        (k, most.min(loops[k].count))
    }

    /// Returns the reorder in pieces of at most `room` blocks of `block` bytes.
    pub fn pieces(&self, room: usize, block: usize) -> Vec<Piece> {
        let (cut, most) = self.cut(room, block);
        let mut found = Vec::new();
        split(&self.whole_loops(), cut, most, 0, 0, &mut found);
        found
    }
}

/// A part of a reorder that one load and one store move.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Index of the first block in the result.
    pub to: usize,
    /// Index of the first block in the data.
    pub from: usize,
    /// Loops over the data, the outermost first: planes, rows, and adjacent blocks.
    pub loops: [BlockLoop; LOOPS],
}

impl Piece {
    /// Number of blocks.
    pub fn blocks(&self) -> usize {
        self.loops.iter().map(|l| l.count).product()
    }

    /// Returns the load of the piece to out, without its offset and entry.
    pub fn load(&self, block: usize) -> Load {
        let [planes, rows, run] = self.loops;
        let stride = |l: BlockLoop| if l.count > 1 { (l.step * block) as u64 } else { 0 };
        Load {
            mem: Mem::Out,
            row_bytes: (run.count * block) as u32,
            rows: rows.count as u32,
            planes: planes.count as u32,
            row_stride: stride(rows),
            plane_stride: stride(planes),
            ..Load::default()
        }
    }
}

/// Cuts loop number `cut` into parts of at most `most` iterations. `to` and `from` are the first block in the result and
/// in the data.
fn split(loops: &[BlockLoop], cut: usize, most: usize, to: usize, from: usize, found: &mut Vec<Piece>) {
    let [BlockLoop { count, step }, inner @ ..] = loops else { return };
    let inside: usize = inner.iter().map(|l| l.count).product();
    if cut > 0 {
        for i in 0..*count {
            split(inner, cut - 1, most, to + i * inside, from + i * step, found);
        }
        return;
    }
    for first in (0..*count).step_by(most) {
        let mut piece = [BlockLoop { count: 1, step: 0 }; LOOPS];
        let start = LOOPS - loops.len();
        piece[start..].copy_from_slice(loops);
        piece[start].count = most.min(count - first);
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
            for (z, y, x) in (0..planes.count)
                .flat_map(|z| (0..rows.count).flat_map(move |y| (0..run.count).map(move |x| (z, y, x))))
            {
                found.push(p.from + z * planes.step + y * rows.step + x * run.step);
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
        // More rows than a load can have, in an inner loop and in the outermost loop.
        for counts in [[3, 2 * ROWS + 5], [2 * ROWS + 5, 3]] {
            let wanted: Vec<usize> =
                (0..counts[0]).flat_map(|y| (0..counts[1]).map(move |x| y + x * counts[0])).collect();
            let pieces = Reorder { loops: loops(&wanted).unwrap() }.pieces(ROW_BYTES, 1);
            assert!(pieces.iter().all(|p| p.loops[0].count <= ROWS && p.loops[1].count <= ROWS));
            assert_eq!(order(&pieces), wanted, "{counts:?}");
        }
        assert_eq!(loops(&[0, 2, 1, 3, 5]), None);
        assert_eq!(loops(&[0, 1, 3]), None);
        assert_eq!(loops(&[1, 2, 3]), None);
    }
}
