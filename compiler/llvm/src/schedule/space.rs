//! The space of a product's tiles on a processor, for `tilewright tune --device cpu`.

use tilewright_compiler::codegen::accel::space::{Choice, Decisions, Knob, Space};

use super::tile::{MOST_VECTORS, Outer, ProductKind, Tile, TileSpace};

/// What `Tile::outer` decides.
const OUTER: [(Outer, &str); 3] = [(Outer::BySize, "by_size"), (Outer::Channels, "channels"), (Outer::Rows, "rows")];

/// Most rows or columns of a tile.
const MOST_ROWS: i64 = 32;

impl TileSpace {
    /// Returns the decisions for tiles of the same kind, with their possible values.
    pub fn space(&self, tile: &Tile) -> Space {
        let knob = |name: &str, values: Vec<i64>| Knob {
            name: name.into(),
            values: values.into_iter().map(|n| Choice::Number(n as usize)).collect(),
        };
        let divisors = |n: i64| (1..=n.min(MOST_ROWS)).filter(|d| n % d == 0).collect();
        let vectors = (1..=MOST_VECTORS).filter(|vectors| self.fits_channels(tile, *vectors)).collect();
        let mut knobs = vec![knob("columns", divisors(self.rows[1])), knob("vectors", vectors)];
        if tile.kind != ProductKind::Window {
            knobs.push(knob("rows", divisors(self.rows[0])));
            knobs.push(Knob::words("outer", &OUTER.map(|(_, word)| word)));
        }
        Space::of(knobs)
    }

    /// Whether the kind of tile can have this many vectors: windows have no channels beyond the last one.
    fn fits_channels(&self, tile: &Tile, vectors: i64) -> bool {
        tile.kind != ProductKind::Window || vectors == 1 || self.channels % (vectors * self.lanes) == 0
    }

    /// Returns the decisions of a tile.
    pub fn decisions(&self, tile: &Tile) -> Decisions {
        let number = |n: i64| Choice::Number(n as usize);
        let all = Decisions::new([("columns", number(tile.rows[1])), ("vectors", number(tile.vectors))]);
        if tile.kind == ProductKind::Window {
            return all;
        }
        let word = OUTER.iter().find(|(outer, _)| *outer == tile.outer).map_or(OUTER[0].1, |(_, word)| word);
        all.and(Decisions::new([("rows", number(tile.rows[0])), ("outer", word.into())]))
    }

    /// Returns the tile of some decisions, which is of the same kind as `tile`.
    ///
    /// # Errors
    /// The reason why it does not fit, or which decision is missing or wrong.
    pub fn tile(&self, tile: &Tile, decisions: &Decisions) -> Result<Tile, String> {
        let part = |name: &str, whole: i64| {
            let size = decisions.size(name, whole.clamp(1, MOST_ROWS) as usize)? as i64;
            match whole % size {
                0 => Ok(size),
                _ => Err(format!("the decision {name} is {size}, but must divide {whole}")),
            }
        };
        let columns = part("columns", self.rows[1])?;
        let vectors = decisions.size("vectors", MOST_VECTORS as usize)? as i64;
        if !self.fits_channels(tile, vectors) {
            return Err(format!("{vectors} vectors of {} channels do not divide {}", self.lanes, self.channels));
        }
        let found = match tile.kind {
            ProductKind::Window => Tile { rows: [1, columns], vectors, ..*tile },
            _ => {
                let outer = OUTER[decisions.word("outer", &OUTER.map(|(_, word)| word))?].0;
                Tile { rows: [part("rows", self.rows[0])?, columns], vectors, outer, ..*tile }
            }
        };
        let sums = found.rows[0] * found.rows[1] * vectors;
        // The sums, the weights of a step, and one number of the data.
        if sums + vectors + 1 > self.registers && found != *tile {
            return Err(format!("{sums} sums do not fit the {} registers", self.registers));
        }
        match self.decisions(&found) {
            read if read == *decisions => Ok(found),
            read => Err(format!("the decisions are {decisions}, but the tile reads only {read}")),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn tiles_are_written_as_decisions_and_read_back() {
        let space = TileSpace { rows: [14, 28], channels: 64, lanes: 16, registers: 32 };
        let plain = Tile { rows: [2, 7], vectors: 2, lanes: 16, kind: ProductKind::Plain, outer: Outer::Rows };
        let window = Tile { rows: [1, 4], vectors: 2, kind: ProductKind::Window, outer: Outer::BySize, ..plain };
        for tile in [plain, window] {
            let decisions = space.decisions(&tile);
            assert_eq!(space.tile(&tile, &decisions), Ok(tile));
            let inside = |knob: &Knob| knob.values.contains(&decisions.0[&knob.name]);
            let knobs = &space.space(&tile).forms[0];
            assert!(knobs.len() == decisions.0.len() && knobs.iter().all(inside));
        }
        let refused = |name: &str, value: Choice| {
            let mut decisions = space.decisions(&plain);
            decisions.0.insert(name.into(), value);
            space.tile(&plain, &decisions).unwrap_err()
        };
        assert_eq!(refused("columns", 6.into()), "the decision columns is 6, but must divide 28");
        assert_eq!(refused("vectors", 4.into()), "56 sums do not fit the 32 registers");
        let words = "the decision outer is inner, but must be one of: by_size, channels, rows";
        assert_eq!(refused("outer", "inner".into()), words);
        assert!(refused("blocks", 1.into()).contains("the tile reads only"));
        let three = Decisions::new([("columns", 4.into()), ("vectors", 3.into())]);
        assert_eq!(space.tile(&window, &three).unwrap_err(), "3 vectors of 16 channels do not divide 64");
    }
}
