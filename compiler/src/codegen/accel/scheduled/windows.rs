//! Copies between device memory and scratchpads as rows and planes of one load or store.

use tilewright_hw::isa::{MOST_PAD_ENTRIES, MOST_PAD_ROWS, MOST_ROW_BYTES, MOST_ROWS};

/// A loop of a copy, in bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct CopyAxis {
    /// Iterations.
    pub count: i64,
    /// Bytes from iteration to iteration in device memory.
    pub memory: i64,
    /// Bytes from iteration to iteration in the scratchpad.
    pub scratchpad: i64,
    /// Iterations with data; in the others the scratchpad gets padding.
    pub data: (i64, i64),
}

impl CopyAxis {
    fn is_whole(&self) -> bool {
        self.data == (0, self.count)
    }

    fn inside(&self) -> i64 {
        self.data.1 - self.data.0
    }

    fn after(&self) -> i64 {
        self.count - self.data.1
    }
}

/// Rows and planes of a load or store.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct CopyWindow {
    /// Bytes of device memory before the first row, from the start of the copy.
    pub skip: i64,
    /// Bytes of a row.
    pub row_bytes: u32,
    /// Rows of a plane.
    pub rows: u32,
    /// Planes.
    pub planes: u32,
    /// Bytes from row to row.
    pub row_stride: i64,
    /// Bytes from plane to plane.
    pub plane_stride: i64,
    /// Pad entries before and after a row.
    pub x: [u32; 2],
    /// Pad rows before and after the rows of a plane.
    pub y: [u32; 2],
    /// Pad planes before and after the planes.
    pub z: [u32; 2],
    /// Entries of the scratchpad that the window fills.
    pub entries: u32,
}

/// What a copy is.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Copied {
    /// A window with data.
    Window(CopyWindow),
    /// Only padding, for so many entries.
    Padding(u32),
    /// More than one window. The outermost loop must run on its own.
    Several,
    /// Not a copy of rows, with the reason.
    Never(&'static str),
}

/// The error of a copy whose innermost elements are apart.
const APART: &str = "its innermost elements are not next to each other in both memories; reorder the dimensions of a \
                     tensor so that those of an entry come last";
/// The error of a copy whose rows do not begin at entries.
pub const PART: &str = "each row must begin at an entry of the scratchpad, and one of its rows begins within an entry; \
                        make the last dimensions of the tensor those of an entry";

/// Returns the window of a copy whose loops are `axes`, with elements of `size` bytes.
pub fn window(axes: &[CopyAxis], size: i64, entry: i64, can_pad: bool) -> Copied {
    let mut axes: Vec<CopyAxis> = axes.to_vec();
    if axes.iter().any(|a| a.count > 1 && a.scratchpad <= 0) {
        return Copied::Several;
    }
    let empty = axes.iter().any(|a| a.inside() <= 0);
    axes.retain(|a| a.count > 1);
    axes.sort_by_key(|a| std::cmp::Reverse(a.scratchpad));
    if empty {
        return padding(axes, size, entry);
    }
    let mut w = CopyWindow { rows: 1, planes: 1, ..CopyWindow::default() };
    // Bytes of a row in the scratchpad, padding included, and in device memory.
    let (mut row, mut data) = (size, size);
    while let Some(a) = axes.last().copied() {
        let joins = a.scratchpad == row && (a.memory == data || a.inside() == 1) && data == row;
        if !joins {
            break;
        }
        if !a.is_whole() {
            let (before, after) = (a.data.0 * row, a.after() * row);
            if before % entry != 0 || after % entry != 0 || !can_pad {
                return if row % entry == 0 { Copied::Several } else { Copied::Never(PART) };
            }
            w.x = [(before / entry) as u32, (after / entry) as u32];
        }
        w.skip += a.data.0 * a.memory;
        data = a.inside() * row;
        row *= a.count;
        axes.pop();
    }
    // Every row begins at a new entry.
    if axes.iter().any(|a| a.scratchpad % entry != 0) {
        return Copied::Never(if row == size { APART } else { PART });
    }
    if data > i64::from(MOST_ROW_BYTES) || w.x.iter().any(|&n| n > MOST_PAD_ENTRIES) {
        return Copied::Several;
    }
    w.row_bytes = data as u32;
    let mut whole = (data + entry - 1) / entry + i64::from(w.x[0] + w.x[1]);
    for level in 0..2 {
        let Some(a) = axes.pop() else { break };
        let pads = [a.data.0, a.after()];
        let few = a.inside() <= i64::from(MOST_ROWS) && pads.iter().all(|&n| n <= i64::from(MOST_PAD_ROWS));
        if a.scratchpad != whole * entry || !few || !(a.is_whole() || can_pad) {
            return Copied::Several;
        }
        let (count, pads) = (a.inside() as u32, pads.map(|n| n as u32));
        w.skip += a.data.0 * a.memory;
        match level {
            0 => (w.rows, w.row_stride, w.y) = (count, a.memory, pads),
            _ => (w.planes, w.plane_stride, w.z) = (count, a.memory, pads),
        }
        whole *= a.count;
    }
    if !axes.is_empty() {
        return Copied::Several;
    }
    w.entries = whole as u32;
    Copied::Window(w)
}

/// Returns a copy without data.
fn padding(axes: Vec<CopyAxis>, size: i64, entry: i64) -> Copied {
    let mut bytes = size;
    for a in axes.iter().rev() {
        if a.scratchpad != bytes {
            return Copied::Several;
        }
        bytes *= a.count;
    }
    if bytes % entry != 0 {
        return Copied::Never(PART);
    }
    Copied::Padding((bytes / entry) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn axis(count: i64, memory: i64, scratchpad: i64) -> CopyAxis {
        CopyAxis { count, memory, scratchpad, data: (0, count) }
    }

    #[test]
    fn dense_axes_become_one_row() {
        let Copied::Window(w) = window(&[axis(4, 64, 64), axis(4, 16, 16), axis(16, 1, 1)], 1, 16, true) else {
            panic!("a window")
        };
        assert_eq!((w.row_bytes, w.rows, w.planes, w.entries), (256, 1, 1, 16));
    }

    #[test]
    fn strided_axes_become_rows_and_planes() {
        let axes = [axis(3, 1000, 96), axis(2, 100, 48), axis(3, 16, 16), axis(16, 1, 1)];
        let Copied::Window(w) = window(&axes, 1, 16, true) else { panic!("a window") };
        assert_eq!((w.row_bytes, w.rows, w.planes), (48, 2, 3));
        assert_eq!((w.row_stride, w.plane_stride, w.entries), (100, 1000, 18));
        let axes = [axis(2, 9000, 288), axes[0], axes[1], axes[2], axes[3]];
        assert_eq!(window(&axes, 1, 16, true), Copied::Several);
    }

    #[test]
    fn iterations_without_data_become_padding() {
        let rows = CopyAxis { data: (1, 5), ..axis(6, 64, 96) };
        let columns = CopyAxis { data: (1, 5), ..axis(6, 16, 16) };
        let Copied::Window(w) = window(&[rows, columns, axis(16, 1, 1)], 1, 16, true) else { panic!("a window") };
        assert_eq!((w.row_bytes, w.rows, w.x, w.y), (64, 4, [1, 1], [1, 1]));
        assert_eq!((w.skip, w.entries), (80, 36));
        assert_eq!(window(&[rows, columns, axis(16, 1, 1)], 1, 16, false), Copied::Several);
        let none = CopyAxis { data: (0, 0), ..rows };
        assert_eq!(window(&[none, columns, axis(16, 1, 1)], 1, 16, true), Copied::Padding(36));
    }

    #[test]
    fn transposed_and_broken_rows_are_none() {
        assert_eq!(window(&[axis(16, 1, 16), axis(16, 16, 1)], 1, 16, true), Copied::Never(APART));
        assert_eq!(window(&[axis(4, 100, 3), axis(3, 1, 1)], 1, 16, true), Copied::Never(PART));
    }
}
