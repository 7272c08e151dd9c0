//! Groups of tiles in expressions: all rows of an entry have the pixel at the same position in a tile of their own.
//!
//! Tiles are numbered by image, row and column. With `batch` rows, tile `t` is in row `t % batch` of group `t / batch`.

use super::view::View;
use crate::te::Expr;
use tilewright_hw::config::HwConfig;

/// The tiles of an output, in groups of as many as an entry has rows.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct TileGroups {
    output: View,
    /// Rows and columns of a tile.
    size: [usize; 2],
    batch: usize,
}

/// Where a pixel of the output is in entries.
pub struct GroupPlace {
    /// Its group.
    pub group: Expr,
    /// Its row and column in the tile.
    pub pixel: [Expr; 2],
    /// The row of its entry.
    pub lane: Expr,
}

/// Loops over tiles of pixels.
pub struct TileLoops {
    /// Steps that divide the loops over pixels.
    pub steps: String,
    /// Loops over images, rows of tiles, and tiles of a row.
    pub outer: [String; 3],
    /// Loops over the rows and columns of a tile.
    pub inner: Vec<String>,
}

/// Loops over groups of tiles.
pub struct GroupLoops {
    /// Steps that make them.
    pub steps: String,
    /// Loops over groups, outermost first.
    pub groups: Vec<String>,
    /// The loop over the tiles of a group.
    pub lanes: String,
}

impl TileGroups {
    /// Cuts an output into tiles of `size` rows and columns.
    pub fn new(output: View, size: [usize; 2], config: &HwConfig) -> TileGroups {
        TileGroups { output, size, batch: config.batch as usize }
    }

    /// Images, rows of tiles, and tiles of a row.
    fn tiles(&self) -> [usize; 3] {
        [self.output.n, self.output.h.div_ceil(self.size[0]), self.output.w.div_ceil(self.size[1])]
    }

    /// Number of groups.
    pub fn count(&self) -> usize {
        self.tiles().iter().product::<usize>().div_ceil(self.batch)
    }

    /// Whether elements that no result needs can be left out: there are some, and each group has a tile with all pixels, so
    /// that all of its entries are written.
    pub fn can_omit(&self) -> bool {
        let whole = |all: usize, size: usize, tile: usize| (tile + 1) * size <= all;
        let [_, rows, columns] = self.tiles();
        let all = self.tiles().iter().product::<usize>();
        let is_whole = |tile: usize| {
            whole(self.output.h, self.size[0], tile / columns % rows)
                && whole(self.output.w, self.size[1], tile % columns)
        };
        let mut groups = (0..self.count()).map(|group| group * self.batch..((group + 1) * self.batch).min(all));
        (self.is_partial() || !(0..all).all(is_whole)) && groups.all(|mut tiles| tiles.any(is_whole))
    }

    /// Whether rows of the last group's entries have no tile.
    fn is_partial(&self) -> bool {
        !self.tiles().iter().product::<usize>().is_multiple_of(self.batch)
    }

    /// Number of rows of tiles, or of tiles of a row.
    pub fn along(&self, k: usize) -> usize {
        self.tiles()[1 + k]
    }

    /// Returns image, row and column of the tile in a row of a group's entries, and the conditions for that tile to exist.
    pub fn tile(&self, group: &Expr, lane: &Expr) -> ([Expr; 3], Vec<Expr>) {
        let [images, rows, columns] = self.tiles();
        let all = images * rows * columns;
        let number = times(group.clone(), self.batch) + lane.clone();
        let image = if images == 1 { Expr::int(0) } else { quotient(&number, rows * columns) };
        let row = if rows == 1 { Expr::int(0) } else { rest(&quotient(&number, columns), rows, images * rows) };
        let column = rest(&number, columns, all);
        let exists = self.is_partial().then(|| number.lt(Expr::int(all as i64)));
        ([image, row, column], exists.into_iter().collect())
    }

    /// Returns the row (`k` = 0) or column that is `own` rows behind the first one of a tile. Tiles begin `step` rows apart.
    pub fn position(&self, k: usize, tile: Expr, own: &Expr, step: usize) -> Expr {
        if self.along(k) == 1 { own.clone() } else { times(tile, step) + own.clone() }
    }

    /// Returns the row and the column of the tile of a pixel.
    pub fn tile_of(&self, [row, column]: [&Expr; 2]) -> [Expr; 2] {
        [quotient(row, self.size[0]), quotient(column, self.size[1])]
    }

    /// Returns where a pixel of the output is.
    pub fn place(&self, image: &Expr, pixel: [&Expr; 2]) -> GroupPlace {
        let [images, rows, columns] = self.tiles();
        let [row, column] = self.tile_of(pixel);
        let number = times(times(image.clone(), rows) + row, columns) + column;
        let [row, column] = pixel;
        GroupPlace {
            group: quotient(&number, self.batch),
            pixel: [rest(row, self.size[0], self.output.h), rest(column, self.size[1], self.output.w)],
            lane: rest(&number, self.batch, images * rows * columns),
        }
    }

    /// Returns the loops over tiles of a block that stores the output. Its loop over images is `i0`, those over rows and
    /// columns are given.
    pub fn loops(&self, write: &str, [rows, columns]: [&str; 2]) -> TileLoops {
        let (mut steps, mut inner) = (String::new(), Vec::new());
        let tiled = [(rows, self.size[0]), (columns, self.size[1])].map(|(name, size)| {
            // A loop over tiles of one row is the loop over rows.
            if size == 1 {
                return format!("{write}.{name}");
            }
            steps += &format!("split {write}.{name} {size}; ");
            inner.push(format!("{write}.{name}.1"));
            format!("{write}.{name}.0")
        });
        let [rows, columns] = tiled;
        TileLoops { steps, outer: [format!("{write}.i0"), rows, columns], inner }
    }

    /// Divides loops over tiles, one inside the other, into loops over groups and over the tiles of a group. Groups go
    /// across rows of tiles and images, unless they end where these end.
    pub fn grouped(&self, [image, rows, columns]: &[String; 3]) -> GroupLoops {
        let [_, of_row, of_column] = self.tiles();
        let (around, fused) = match [of_column, of_row * of_column].map(|tiles| tiles.is_multiple_of(self.batch)) {
            [true, _] => (vec![image, rows], vec![columns]),
            [_, true] => (vec![image], vec![rows, columns]),
            _ => (Vec::new(), vec![image, rows, columns]),
        };
        let (mut steps, mut all) = (String::new(), fused[0].clone());
        for next in &fused[1..] {
            steps += &format!("fuse {all} {next}; ");
            all = format!("{all}_{}", next.rsplit('.').next().unwrap_or(next));
        }
        steps += &format!("split {all} {}; ", self.batch);
        let groups = around.into_iter().cloned().chain([format!("{all}.0")]).collect();
        GroupLoops { steps, groups, lanes: format!("{all}.1") }
    }
}

/// Returns `e / d`.
fn quotient(e: &Expr, d: usize) -> Expr {
    if d == 1 { e.clone() } else { e.clone() / Expr::int(d as i64) }
}

/// Returns `e % d`, where `e` is less than `most`.
fn rest(e: &Expr, d: usize, most: usize) -> Expr {
    match d {
        1 => Expr::int(0),
        _ if most <= d => e.clone(),
        _ => e.clone() % Expr::int(d as i64),
    }
}

/// Returns `e * d`.
pub fn times(e: Expr, d: usize) -> Expr {
    if d == 1 { e } else { e * d as i64 }
}
