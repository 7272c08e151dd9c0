//! AMD Zynq-7000. Synthesis counts its resources; Vivado makes the bitstream.

use super::definition::{
    CellKinds, CoreClock, Definition, Files, Logic, Multipliers, OpenInputs, Part, Programs, kind, no_arguments,
};
use super::processor::Processor;

pub static XC7: Definition = Definition {
    name: "xc7",
    parts: PARTS,
    synthesis: |_, top| synthesis("xc7", top),
    processor: Some(&PROCESSOR),
    ..ZYNQ
};

const PARTS: &[Part] = &[Part {
    name: "xc7z020clg400-1",
    option: "xc7",
    packages: &[],
    luts: 53200,
    registers: 106_400,
    brams: 280,
    dsps: 220,
    sprams: 0,
}];

const PROCESSOR: Processor = Processor {
    master: "M_AXI_GP0",
    master_clock: "M_AXI_GP0_ACLK",
    clock: "FCLK_CLK0",
    reset: "FCLK_RESET0_N",
    port: "S_AXI_HP0",
    port_clock: "S_AXI_HP0_ACLK",
    interrupts: "IRQ_F2P",
    clock_settings: "CONFIG.PCW_EN_CLK0_PORT 1 CONFIG.PCW_FPGA0_PERIPHERAL_FREQMHZ",
    port_settings: "CONFIG.PCW_USE_M_AXI_GP0 1 CONFIG.PCW_USE_S_AXI_HP0 1 CONFIG.PCW_USE_FABRIC_INTERRUPT 1 CONFIG.PCW_IRQ_F2P_INTR 1",
    rule: "processing_system7",
    rule_settings: "make_external {FIXED_IO, DDR} apply_board_preset 1",
    controller: "intc",
    wide: false,
};

/// The common part of the definitions of Zynq families.
pub const ZYNQ: Definition = Definition {
    name: "",
    parts: &[],
    speeds: &[],
    delays: |_| None,
    bram_bytes: 2048,
    processor: None,
    programs: Programs { router: None, packer: "vivado", install: "use the vendor's tool" },
    files: Files { constraints: "pins.xdc", routed: "", bitstream: "board.bit" },
    route_options: no_arguments,
    pack_options: no_arguments,
    synthesis: |_, _| Vec::new(),
    synthesis_files: &[],
    own_modules: &[],
    cell_models: "xilinx/cells_sim.v",
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
            kind("LUT5", 1),
            kind("LUT6", 1),
            kind("RAM32M", 4),
            kind("RAM64M", 4),
            kind("RAM32M16", 8),
            kind("RAM64M8", 8),
            kind("RAM32X1D", 2),
            kind("RAM64X1D", 2),
            kind("RAM128X1D", 4),
            kind("RAM256X1D", 8),
            kind("RAM64X8SW", 8),
            kind("RAM32X16DR8", 8),
            kind("SRL*", 1),
        ],
        registers: &[kind("FD*", 1)],
        brams: &[kind("RAMB18*", 1), kind("RAMB36*", 2)],
        dsps: &[kind("DSP48*", 1)],
        sprams: &[],
    },
    multipliers: Multipliers { wide: 1, one_for_each_product: false },
    logic: Logic::Tables { added: |_| 0 },
    pin_constraints: |_| String::new(),
    clock_constraints: |_| String::new(),
    clock: CoreClock::Processor,
    sdram_cells: None,
};

/// Returns the synthesis commands for a family, as Yosys names it. `autoname` names cells after their outputs, as the
/// commands of the other families do.
pub fn synthesis(family: &str, top: &str) -> Vec<String> {
    vec![format!("synth_xilinx -family {family} -noiopad -flatten -top {top}"), "autoname".into()]
}
