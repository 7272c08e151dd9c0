//! The recipe for the library of the Verilated design.

use crate::verilate::{Flags, Recipe};
use std::path::PathBuf;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::config_package;
use tilewright_hw::regs::UnitState;
use tilewright_hw::rtl::SOURCES;

/// Verilator's name for the design inside the bench.
const BENCH_CORE: &str = "tw_bench__DOT__u_core";

/// Returns the recipe of a configuration: the design wrapped in `tw_bench`.
pub(super) fn recipe(config: &HwConfig, flags: Flags, verilator: Option<PathBuf>) -> Recipe<'static> {
    let states = [("TW_STATE_EMPTY", UnitState::Empty), ("TW_STATE_BUSY", UnitState::Busy)];
    let mut defines = vec![("TW_BUS_BYTES", config.bus_bytes())];
    defines.extend(states.map(|(name, state)| (name, state as u32)));
    Recipe {
        kind: "rtl",
        top: "tw_bench",
        class: "Vtw_bench",
        // The name and the file's comments do not affect the hardware.
        package: Some(("tw_cfg_pkg.sv", config_package(&HwConfig { name: String::new(), ..config.clone() }))),
        sources: SOURCES.to_vec(),
        bench: Some(("tw_bench.sv", include_str!("tw_bench.sv"))),
        shim: include_str!("shim.cpp"),
        header: Some(("scratchpads.h", scratchpads(config))),
        defines,
        flags,
        long_runs: true,
        verilator,
    }
}

/// Generates the C function that finds an entry of a memory in the design's banks.
fn scratchpads(config: &HwConfig) -> String {
    let mut s = String::from(
        "static const void* tw_entry(const Vtw_bench___024root* r, uint32_t mem, uint32_t entry) {\n    switch (mem) {\n",
    );
    for mem in Mem::ALL {
        let rows = config.rows_of_entry(mem);
        let banks = config.banks(mem);
        let depth = config.entries(mem) / rows / banks;
        s.push_str(&format!("    case {}: switch (entry / {depth}) {{\n", mem as u32));
        for bank in 0..banks {
            let name = mem.name();
            s.push_str(&format!(
                "        case {bank}: return &r->{BENCH_CORE}__DOT__u_{name}__DOT__gen_bank__BRA__{bank}__KET____DOT__u_bank__DOT__u_ram__DOT__mem\
                 [entry % {depth}];\n"
            ));
        }
        s.push_str("        default: return nullptr;\n    }\n");
    }
    s.push_str("    default: return nullptr;\n    }\n}\n");
    s
}
