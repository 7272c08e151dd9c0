//! Compares the modules that a part uses in place of others with the originals, and the models of its cells with data
//! sheets and other models.

use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright_hw::flow::family::Family;
use tilewright_hw::flow::tools;

/// Builds a bench of `tests/cells` around sources and asserts that it finds nothing wrong.
fn checks(bench: &str, sources: &[PathBuf]) {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(bench);
    let mut verilator = Command::new("verilator");
    verilator.args(["--binary", "-Wno-fatal", "--top-module", bench, "--Mdir"]).arg(&dir).args(sources);
    verilator.arg(root().join(format!("tests/cells/{bench}.sv")));
    let built = verilator.output().unwrap_or_else(|error| panic!("{verilator:?}: {error}; run `make setup`"));
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let run = Command::new(dir.join(format!("V{bench}"))).output().expect("the check runs");
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.lines().any(|line| line == "0 wrong"), "{text}");
}

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_gemm_lane_of_lookup_tables_gives_every_product() {
    let sources = ["tw_mul.sv", "tw_gemm_lane.sv", "tw_gemm_table_lane.sv"];
    checks("tw_gemm_table_lane_check", &sources.map(|file| root().join("rtl").join(file)));
}

#[test]
fn the_models_of_an_ecp5s_blocks_do_what_the_data_sheet_says() {
    checks(
        "ecp5_cells_check",
        &["cells/ecp5.v", "cells/ecp5_board.v", "tests/cells/gates.v"].map(|file| root().join(file)),
    );
}

/// The equivalence proofs match registers by their names, and those inside a block have none. So with more than one
/// stage the cell is compared here, by simulation.
#[test]
fn the_multiplier_of_an_ecp5_is_the_cell_for_which_it_stands() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ecp5_multiplier");
    std::fs::create_dir_all(&dir).expect("a folder");
    let map = std::fs::read_to_string(root().join("cells/ecp5_mul.map")).expect("the map is there");
    let mapped = dir.join("mapped.v");
    std::fs::write(&mapped, map.replace("module tw_mul ", "module mapped_mul ")).expect("a file");
    let own =
        ["rtl/tw_mul.sv", "cells/ecp5.v", "cells/ecp5_board.v", "tests/cells/gates.v"].map(|file| root().join(file));
    checks("ecp5_mul_check", &[&own[..], &[mapped]].concat());
}

/// Yosys's folder of shared files; without Yosys the calling test skips.
fn share(family: Family) -> Option<PathBuf> {
    match tools::find(family) {
        Ok(tools) => Some(tools.share),
        Err(error) => {
            tilewright_testing::skip(&error.to_string());
            None
        }
    }
}

/// The text of one module of a file.
fn module(path: &Path, name: &str) -> String {
    let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
    let heads = [" ", "("].map(|next| format!("\nmodule {name}{next}"));
    let begin = heads.iter().find_map(|head| text.find(head)).unwrap_or_else(|| panic!("{name} in {}", path.display()));
    let end = begin + text[begin..].find("endmodule").expect("it ends");
    text[begin..end].to_string() + "endmodule\n"
}

/// Writes a file of models to a folder of its own.
fn models(name: &str, text: &str) -> PathBuf {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join(name);
    std::fs::create_dir_all(&dir).expect("a folder");
    let file = dir.join("models.v");
    std::fs::write(&file, text).expect("a file");
    file
}

#[test]
fn the_models_of_an_ecp5s_routed_cells_do_what_those_of_yosys_do() {
    let Some(share) = share(Family::Ecp5) else { return };
    let common = share.join("lattice/common_sim.vh");
    let tables = ["LUT2", "LUT4", "PFUMX", "L6MUX21", "TRELLIS_DPR16X4"].map(|name| module(&common, name)).concat();
    let carry = module(&share.join("lattice/ccu2c_sim.vh"), "CCU2C");
    let register = module(&common, "TRELLIS_FF").replace("module TRELLIS_FF", "module yosys_TRELLIS_FF");
    let others = models("ecp5_logic_models", &[tables, carry, register].concat());
    let own = ["cells/ecp5.v", "cells/ecp5_board.v", "tests/cells/gates.v"].map(|file| root().join(file));
    checks("ecp5_logic_check", &[&own[..], &[others]].concat());
}

#[test]
fn the_model_of_an_ice40s_logic_cell_does_what_that_of_yosys_does() {
    let Some(share) = share(Family::Ice40) else { return };
    let own = module(&root().join("cells/ice40.v"), "ICESTORM_LC");
    let other = module(&share.join(Family::Ice40.cell_models()), "ICESTORM_LC");
    // No input is open here, so the comparison with z can go: Verilator takes such an input for a bidirectional pin.
    let other = other.replace("module ICESTORM_LC", "module yosys_ICESTORM_LC").replace("=== 1'bz", "=== 1'bx");
    let text = models("ice40_logic_models", &(own + &other));
    checks("ice40_logic_check", &[text, root().join("tests/cells/gates.v")]);
}

#[test]
fn the_model_of_an_ice40s_memory_does_what_that_of_yosys_does() {
    let Some(share) = share(Family::Ice40) else { return };
    let own = module(&root().join("cells/ice40.v"), "SB_RAM40_4K");
    let other =
        module(&share.join(Family::Ice40.cell_models()), "SB_RAM40_4K").replace("module SB_", "module yosys_SB_");
    // Defaults of unconnected inputs; no input is unconnected here.
    let other = other.replace("`ICE40_DEFAULT_ASSIGNMENT_V(16'h 0000)", "");
    let other = other.replace("`ICE40_DEFAULT_ASSIGNMENT_1", "").replace("`ICE40_DEFAULT_ASSIGNMENT_0", "");
    checks("ice40_ram_check", &[models("ice40_ram_models", &(own + &other))]);
}
