//! Counts the cells of a netlist by resource and by module, and compares them with a part.

use super::board::Board;
use super::family::{CellKind, CellKinds, Family, Logic};
use super::netlist::{Netlist, signal};
use super::resources::{Cells, Resource};
use std::collections::BTreeMap;

/// The instance of the core, at any level.
const CORE: &str = "u_core";
/// Levels of hierarchy outside the core by which cells are listed: top module, shell, and unit of the shell.
const SHELL_LEVELS: usize = 3;

impl Cells {
    fn add(&mut self, kind: &str, family: Family) {
        let CellKinds { luts, registers, brams, dsps, sprams } = &family.definition().cells;
        let count = |kinds: &[CellKind]| {
            let named = |name: &str| name.strip_suffix('*').map_or(name == kind, |begin| kind.starts_with(begin));
            kinds.iter().find(|kind| named(kind.name)).map_or(0, |kind| kind.units)
        };
        self.luts += count(luts);
        self.registers += count(registers);
        self.brams += count(brams);
        self.dsps += count(dsps);
        self.sprams += count(sprams);
    }
}

impl Netlist {
    /// Counts all cells.
    pub fn total(&self, family: Family) -> Cells {
        let mut total = Cells::default();
        self.cells().iter().for_each(|cell| total.add(&cell.kind, family));
        total
    }

    /// Returns the use of the resources of a board's part.
    pub(super) fn resources(&self, board: &Board) -> Vec<Resource> {
        let Some(part) = board.family.part(&board.device) else { return Vec::new() };
        let Cells { luts, registers, brams, dsps, sprams } = self.total(board.family);
        let resource = |name: &str, used, available| Resource { name: name.into(), used, available };
        let mut resources = vec![
            resource("block RAMs", brams, part.brams),
            resource("multiplier blocks", dsps, part.dsps),
            resource("single-port RAMs", sprams, part.sprams),
        ];
        match board.family.definition().logic {
            Logic::Cells(count) => resources.insert(0, resource("logic cells", count(self), part.luts)),
            Logic::Tables { added } => {
                resources.insert(0, resource("look-up tables", luts + added(self), part.luts));
                resources.insert(1, resource("registers", registers, part.registers));
            }
        }
        resources.retain(|resource| resource.available > 0 || resource.used > 0);
        resources
    }

    /// Counts cells by the module whose signals they drive: the units of the core and of the shell.
    pub(super) fn by_module(&self, family: Family) -> BTreeMap<String, Cells> {
        let mut modules: BTreeMap<String, Cells> = BTreeMap::new();
        for cell in self.cells() {
            let signal = signal(&cell.name);
            let path: Vec<&str> = signal.split('.').collect();
            let path = &path[..path.len() - 1];
            let levels = path.iter().position(|part| *part == CORE).map_or(SHELL_LEVELS, |core| core + 2);
            let module = path.iter().take(levels).copied().collect::<Vec<_>>().join(".");
            modules.entry(module).or_default().add(&cell.kind, family);
        }
        modules.retain(|_, cells| *cells != Cells::default());
        modules
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::netlist::cell;
    use serde_json::json;

    #[test]
    fn single_port_rams_are_counted_where_the_part_has_them() {
        let netlist = Netlist::of_json(json!({ "cells": {
            "a": cell("SB_SPRAM256KA", &[("CLOCK", 1)], ("DATAOUT", 2)),
            "b": cell("SB_SPRAM256KA", &[("CLOCK", 1)], ("DATAOUT", 3)),
        } }));
        let of = |board: &str| {
            let found = netlist.resources(&Board::load(board).unwrap());
            found
                .into_iter()
                .find(|resource| resource.name == "single-port RAMs")
                .map(|found| (found.used, found.available))
        };
        assert_eq!([of("upduino"), of("hx8k-evn")], [Some((2, 4)), Some((2, 0))]);
    }
}
