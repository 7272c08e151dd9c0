//! The RTL's sources, embedded in the library so that an installed binary can build a simulator or a netlist.

macro_rules! sources {
    ($($name:literal),* $(,)?) => {
        /// Name and text of every SystemVerilog source, packages first. [`crate::isa::config_package`] writes
        /// `tw_cfg_pkg` for each configuration; it comes before all of them.
        pub const SOURCES: &[(&str, &str)] = &[$(($name, include_str!(concat!("../rtl/", $name)))),*];
    };
}

sources!(
    "tw_assert.svh",
    "tw_fields.svh",
    "gen/tw_isa_pkg.sv",
    "tw_part_pkg.sv",
    "tw_fifo.sv",
    "tw_queue.sv",
    "tw_front.sv",
    "tw_words.sv",
    "tw_bursts.sv",
    "tw_rows.sv",
    "tw_realign.sv",
    "tw_ram.sv",
    "tw_bank.sv",
    "tw_spad.sv",
    "tw_walk.sv",
    "tw_mul.sv",
    "tw_gemm_lane.sv",
    "tw_gemm_table_lane.sv",
    "tw_gemm_zero.sv",
    "tw_gemm.sv",
    "tw_requant_lane.sv",
    "tw_requant_serial.sv",
    "tw_vector_lane.sv",
    "tw_vector_deep.sv",
    "tw_vector.sv",
    "tw_vector_serial.sv",
    "tw_load.sv",
    "tw_store.sv",
    "tw_decode.sv",
    "tw_fetch.sv",
    "tw_tokens.sv",
    "tw_turns.sv",
    "tw_regs.sv",
    "tw_core.sv",
    "tw_axi_lite.sv",
    "tw_axi.sv",
);

/// The package of part-specific settings among [`SOURCES`], with `gemm_table_lanes` gemm lanes of lookup tables.
#[must_use]
pub fn part_package(gemm_table_lanes: u32) -> String {
    let (_, text) = SOURCES.iter().find(|(path, _)| *path == PART).expect("it is among the sources");
    text.replace("GemmTableLanes = 0;", &format!("GemmTableLanes = {gemm_table_lanes};"))
}

/// File name of [`part_package`].
pub const PART: &str = "tw_part_pkg.sv";

/// The top module.
pub const TOP: &str = "tw_core";

/// The core as an AXI peripheral; this module contains [`TOP`].
pub const PERIPHERAL: &str = "tw_axi";
