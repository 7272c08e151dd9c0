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
    /// Entries of the scratchpad that the window fills; 0 if rows are packed.
    pub entries: u32,
    /// Whether the rest of a row's last entry must hold the value of padding.
    pub is_filled: bool,
    /// If rows begin at any byte: bytes of the scratchpad from row to row and from plane to plane. Pads of rows are then
    /// bytes.
    pub packed: Option<[u32; 2]>,
}

/// What the loads and stores of a memory can do.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Abilities {
    /// Write padding.
    pub pad: bool,
    /// Begin a row at any byte.
    pub pack: bool,
    /// Whether rows and planes of whole entries are apart in the scratchpad.
    pub apart: bool,
    /// Bytes of the scratchpad's buffer from the first one on, if the rest of an entry is filled after a row.
    pub filled: Option<i64>,
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

/// Returns the window of a copy whose loops are `axes`, with elements of `size` bytes. `first` is the first byte in the
/// scratchpad.
pub fn window(axes: &[CopyAxis], size: i64, first: i64, entry: i64, can: Abilities) -> Copied {
    match joined(axes).map(|axes| window_of(&axes, size, first, entry, can)) {
        Some(Copied::Window(w)) => Copied::Window(w),
        _ => window_of(axes, size, first, entry, can),
    }
}

/// Joins loops without padding if a step of the outer one is a full run of the inner one in both memories; `None` if there
/// are none.
fn joined(axes: &[CopyAxis]) -> Option<Vec<CopyAxis>> {
    let mut axes = axes.to_vec();
    let before = axes.len();
    let follows = |o: &CopyAxis, i: &CopyAxis| o.memory == i.count * i.memory && o.scratchpad == i.count * i.scratchpad;
    let joins =
        |o: &CopyAxis, i: &CopyAxis| o.count > 1 && i.count > 1 && o.is_whole() && i.is_whole() && follows(o, i);
    let pair = |axes: &[CopyAxis]| {
        let all = (0..axes.len()).flat_map(|o| (0..axes.len()).map(move |i| (o, i)));
        all.into_iter().find(|&(o, i)| o != i && joins(&axes[o], &axes[i]))
    };
    while let Some((outer, inner)) = pair(&axes) {
        let count = axes[outer].count * axes[inner].count;
        axes[inner] = CopyAxis { count, data: (0, count), ..axes[inner] };
        axes.remove(outer);
    }
    (axes.len() < before).then_some(axes)
}

fn window_of(axes: &[CopyAxis], size: i64, first: i64, entry: i64, can: Abilities) -> Copied {
    let plain = if first % entry == 0 { plain(axes, size, entry, can) } else { Copied::Never(PART) };
    match plain {
        Copied::Never(PART) if can.pack => packed(axes, size, can.pad),
        // A part of an entry can be a single byte.
        Copied::Never(APART) if can.pack && can.apart => packed(axes, size, can.pad),
        // Between rows that begin at entries there may be others that do not.
        Copied::Several if can.pack => match packed(axes, size, can.pad) {
            Copied::Window(w) if can.apart || i64::from(w.row_bytes) % entry != 0 => Copied::Window(w),
            _ => plain,
        },
        _ => plain,
    }
}

/// Returns a window whose rows begin at any byte.
fn packed(axes: &[CopyAxis], size: i64, can_pad: bool) -> Copied {
    let mut axes: Vec<CopyAxis> = axes.iter().copied().filter(|a| a.count > 1).collect();
    axes.sort_by_key(|a| std::cmp::Reverse(a.scratchpad));
    if axes.iter().any(|a| a.inside() <= 0 || a.scratchpad <= 0) {
        return Copied::Several;
    }
    let mut w = CopyWindow { rows: 1, planes: 1, packed: Some([0; 2]), ..CopyWindow::default() };
    let (mut row, mut data) = (size, size);
    while let Some(a) = axes.last().copied() {
        let joins = a.scratchpad == row && (a.memory == data || a.inside() == 1) && data == row;
        if !joins || !(a.is_whole() || can_pad) {
            break;
        }
        w.x = [a.data.0 * row, a.after() * row].map(|n| u32::try_from(n).unwrap_or(u32::MAX));
        w.skip += a.data.0 * a.memory;
        data = a.inside() * row;
        row *= a.count;
        axes.pop();
    }
    if data > i64::from(MOST_ROW_BYTES) || w.x.iter().any(|&n| n > MOST_PAD_ENTRIES) {
        return Copied::Several;
    }
    w.row_bytes = data as u32;
    let mut strides = [0; 2];
    for (level, stride) in strides.iter_mut().enumerate() {
        let Some(a) = axes.pop() else { break };
        let pads = [a.data.0, a.after()];
        let few = a.inside() <= i64::from(MOST_ROWS) && pads.iter().all(|&n| n <= i64::from(MOST_PAD_ROWS));
        let Ok(step) = u32::try_from(a.scratchpad) else { return Copied::Several };
        if !few || !(a.is_whole() || can_pad) {
            return Copied::Several;
        }
        *stride = step;
        w.set_level(level, &a);
    }
    w.packed = Some(strides);
    if axes.is_empty() { Copied::Window(w) } else { Copied::Several }
}

impl CopyWindow {
    /// Makes a loop that of rows (`level` 0) or planes.
    fn set_level(&mut self, level: usize, a: &CopyAxis) {
        let (count, pads) = (a.inside() as u32, [a.data.0, a.after()].map(|n| n as u32));
        self.skip += a.data.0 * a.memory;
        match level {
            0 => (self.rows, self.row_stride, self.y) = (count, a.memory, pads),
            _ => (self.planes, self.plane_stride, self.z) = (count, a.memory, pads),
        }
    }
}

/// Returns a window whose rows begin at entries.
fn plain(axes: &[CopyAxis], size: i64, entry: i64, can: Abilities) -> Copied {
    let mut axes: Vec<CopyAxis> = axes.to_vec();
    if axes.iter().any(|a| a.count > 1 && a.scratchpad <= 0) {
        return Copied::Several;
    }
    axes.retain(|a| a.count > 1);
    axes.sort_by_key(|a| std::cmp::Reverse(a.scratchpad));
    let mut w = CopyWindow { rows: 1, planes: 1, ..CopyWindow::default() };
    // Bytes of a row in the scratchpad, padding included, and in device memory.
    let (mut row, mut data) = (size, size);
    while let Some(a) = axes.last().copied() {
        let joins = a.scratchpad == row && (a.memory == data || a.inside() == 1) && data == row;
        if !joins {
            break;
        }
        if !a.is_whole() {
            let (before, whole, bytes) = (a.data.0 * row, a.count * row, a.inside() * row);
            // The rest of the last entry with data is filled with the pad value.
            let after = whole - before - (bytes + entry - 1) / entry * entry;
            let pads = before != 0 || after != 0;
            if before % entry != 0 || whole % entry != 0 || (pads && !can.pad) {
                return if row % entry == 0 { Copied::Several } else { Copied::Never(PART) };
            }
            w.x = [before, after].map(|n| u32::try_from(n / entry).unwrap_or(u32::MAX));
            w.is_filled = bytes % entry != 0;
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
        if a.scratchpad != whole * entry || !few || !(a.is_whole() || can.pad) {
            return Copied::Several;
        }
        w.set_level(level, &a);
        whole *= a.count;
    }
    if !axes.is_empty() {
        return Copied::Several;
    }
    // Nothing else may be in the rest of a partial entry.
    let last = w.rows == 1 && w.planes == 1 && can.filled.is_none_or(|bytes| whole * entry >= bytes);
    if can.filled.is_some() && data % entry != 0 && !w.is_filled && !last {
        return Copied::Never(PART);
    }
    w.entries = whole as u32;
    Copied::Window(w)
}

/// Returns a copy without data.
pub fn padding(axes: &[CopyAxis], size: i64, entry: i64) -> Copied {
    let mut axes: Vec<CopyAxis> = axes.iter().copied().filter(|a| a.count > 1).collect();
    axes.sort_by_key(|a| std::cmp::Reverse(a.scratchpad));
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

/// Returns rows of padding that begin at any byte; `None` if there is no single window. The rows are read from constants.
pub fn packed_padding(axes: &[CopyAxis], size: i64) -> Option<CopyWindow> {
    let mut bytes = size;
    let mut sorted = axes.to_vec();
    sorted.sort_by_key(|a| a.scratchpad);
    // Bytes of a row are next to each other; all rows are the same.
    for a in sorted.iter_mut().filter(|a| a.count > 1) {
        a.data = (0, a.count);
        a.memory = if a.scratchpad == bytes { a.scratchpad } else { 0 };
        if a.scratchpad == bytes {
            bytes *= a.count;
        }
    }
    match packed(&sorted, size, false) {
        Copied::Window(window) => Some(window),
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const PAD: Abilities = Abilities { pad: true, pack: false, apart: false, filled: None };
    const NONE: Abilities = Abilities { pad: false, ..PAD };

    fn axis(count: i64, memory: i64, scratchpad: i64) -> CopyAxis {
        CopyAxis { count, memory, scratchpad, data: (0, count) }
    }

    #[test]
    fn dense_axes_become_one_row() {
        let Copied::Window(w) = window(&[axis(4, 64, 64), axis(4, 16, 16), axis(16, 1, 1)], 1, 0, 16, PAD) else {
            panic!("a window")
        };
        assert_eq!((w.row_bytes, w.rows, w.planes, w.entries), (256, 1, 1, 16));
    }

    #[test]
    fn rows_that_follow_each_other_are_of_one_plane() {
        let can = Abilities { pack: true, ..PAD };
        // A row of each entry of 64 bytes, from three blocks of four rows of five pixels.
        let axes = [axis(3, 1000, 1280), axis(4, 80, 320), axis(5, 16, 64), axis(16, 1, 1)];
        let Copied::Window(w) = window(&axes, 1, 16, 64, can) else { panic!("a window") };
        assert_eq!((w.row_bytes, w.rows, w.planes, w.packed), (16, 20, 3, Some([64, 1280])));
    }

    #[test]
    fn strided_axes_become_rows_and_planes() {
        let axes = [axis(3, 1000, 96), axis(2, 100, 48), axis(3, 16, 16), axis(16, 1, 1)];
        let Copied::Window(w) = window(&axes, 1, 0, 16, PAD) else { panic!("a window") };
        assert_eq!((w.row_bytes, w.rows, w.planes), (48, 2, 3));
        assert_eq!((w.row_stride, w.plane_stride, w.entries), (100, 1000, 18));
        let axes = [axis(2, 9000, 288), axes[0], axes[1], axes[2], axes[3]];
        assert_eq!(window(&axes, 1, 0, 16, PAD), Copied::Several);
    }

    #[test]
    fn iterations_without_data_become_padding() {
        let rows = CopyAxis { data: (1, 5), ..axis(6, 64, 96) };
        let columns = CopyAxis { data: (1, 5), ..axis(6, 16, 16) };
        let Copied::Window(w) = window(&[rows, columns, axis(16, 1, 1)], 1, 0, 16, PAD) else { panic!("a window") };
        assert_eq!((w.row_bytes, w.rows, w.x, w.y), (64, 4, [1, 1], [1, 1]));
        assert_eq!((w.skip, w.entries), (80, 36));
        assert_eq!(window(&[rows, columns, axis(16, 1, 1)], 1, 0, 16, NONE), Copied::Several);
        let none = CopyAxis { data: (0, 0), ..rows };
        assert_eq!(padding(&[none, columns, axis(16, 1, 1)], 1, 16), Copied::Padding(36));
        assert_eq!(padding(&[axis(8, 1, 1)], 1, 16), Copied::Never(PART));
    }

    #[test]
    fn the_rest_of_an_entry_is_padding() {
        let row = CopyAxis { data: (0, 40), ..axis(64, 1, 1) };
        for can in [PAD, NONE] {
            let short = CopyAxis { count: 48, ..row };
            let Copied::Window(w) = window(&[axis(3, 40, 48), short], 1, 0, 16, can) else { panic!("a window") };
            assert_eq!((w.row_bytes, w.rows, w.x, w.is_filled, w.entries), (40, 3, [0, 0], true, 9));
        }
        let Copied::Window(w) = window(&[row], 1, 0, 16, PAD) else { panic!("a window") };
        assert_eq!((w.row_bytes, w.x, w.is_filled, w.entries), (40, [0, 1], true, 4));
        assert_eq!(window(&[row], 1, 0, 16, NONE), Copied::Never(PART));
    }

    #[test]
    fn transposed_and_broken_rows_are_none() {
        assert_eq!(window(&[axis(16, 1, 16), axis(16, 16, 1)], 1, 0, 16, PAD), Copied::Never(APART));
        assert_eq!(window(&[axis(4, 100, 3), axis(3, 1, 1)], 1, 0, 16, PAD), Copied::Never(PART));
    }

    #[test]
    fn rows_within_entries_are_packed() {
        let can = Abilities { pack: true, ..PAD };
        // Four copies of 16 bytes in each of three entries of 64.
        let Copied::Window(w) = window(&[axis(3, 16, 64), axis(4, 0, 16), axis(16, 1, 1)], 1, 0, 64, can) else {
            panic!("a window")
        };
        assert_eq!((w.row_bytes, w.rows, w.planes, w.packed), (16, 4, 3, Some([16, 64])));
        assert_eq!((w.row_stride, w.plane_stride), (0, 16));
        // Rows of three bytes of four, from the second byte of an entry on, with a byte of padding after each.
        let inner = CopyAxis { data: (0, 3), ..axis(4, 1, 1) };
        let Copied::Window(w) = window(&[axis(5, 10, 4), inner], 1, 1, 16, can) else { panic!("a window") };
        assert_eq!((w.row_bytes, w.rows, w.x, w.packed), (3, 5, [0, 1], Some([4, 0])));
        assert_eq!(window(&[axis(5, 10, 4), inner], 1, 1, 16, PAD), Copied::Never(PART));
    }
}
