//! AMD Zynq UltraScale+. Made as Zynq-7000 is.

use super::definition::{Definition, Part};
use super::processor::Processor;
use super::xc7::{ZYNQ, synthesis};

pub static XCUP: Definition = Definition {
    name: "xcup",
    parts: PARTS,
    synthesis: |_, top| synthesis("xcup", top),
    processor: Some(&PROCESSOR),
    ..ZYNQ
};

const PARTS: &[Part] = &[
    Part {
        name: "xczu3eg-sbva484-1-e",
        option: "xcup",
        packages: &[],
        luts: 70560,
        registers: 141_120,
        brams: 432,
        dsps: 360,
        sprams: 0,
    },
    Part {
        name: "xczu7ev-ffvc1156-2-e",
        option: "xcup",
        packages: &[],
        luts: 230_400,
        registers: 460_800,
        brams: 624,
        dsps: 1728,
        sprams: 0,
    },
];

const PROCESSOR: Processor = Processor {
    master: "M_AXI_HPM0_FPD",
    master_clock: "maxihpm0_fpd_aclk",
    clock: "pl_clk0",
    reset: "pl_resetn0",
    port: "S_AXI_HP0_FPD",
    port_clock: "saxihp0_fpd_aclk",
    interrupts: "pl_ps_irq0",
    clock_settings: "CONFIG.PSU__FPGA_PL0_ENABLE 1 CONFIG.PSU__CRL_APB__PL0_REF_CTRL__FREQMHZ",
    port_settings: "CONFIG.PSU__USE__M_AXI_GP0 1 CONFIG.PSU__USE__M_AXI_GP1 0 CONFIG.PSU__USE__M_AXI_GP2 0 \
                    CONFIG.PSU__USE__S_AXI_GP2 1 CONFIG.PSU__USE__IRQ0 1",
    rule: "zynq_ultra_ps_e",
    rule_settings: "apply_board_preset 1",
    controller: "gic",
    wide: true,
};
