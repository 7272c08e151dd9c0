//! The modules that a part may want in place of others, beside what they stand for, and the models of its cells, beside what data
//! sheets and other models say of them.

use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright_hw::flow::family::Family;
use tilewright_hw::flow::tools;

/// Builds a bench of `tests/cells` around sources and demands that it finds nothing wrong.
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

/// The proofs of equivalence join registers by their names, and those inside a block have none: with more than one stage the cell is
/// compared here.
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

#[test]
fn the_model_of_an_ice40s_memory_does_what_that_of_yosys_does() {
    let share = match tools::find(Family::Ice40) {
        Ok(tools) => tools.share,
        Err(error) => return tilewright_testing::skip(&error.to_string()),
    };
    let module = |path: &Path| -> String {
        let text = std::fs::read_to_string(path).unwrap_or_else(|error| panic!("{}: {error}", path.display()));
        let begin = text.find("\nmodule SB_RAM40_4K (").expect("it has the module") + 1;
        let end = begin + text[begin..].find("endmodule").expect("it ends");
        text[begin..end].to_string() + "endmodule\n"
    };
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("ice40_ram_models");
    std::fs::create_dir_all(&dir).expect("a folder");
    let own = module(&root().join("cells/ice40.v"));
    let other = module(&share.join(Family::Ice40.cell_models())).replace("module SB_", "module yosys_SB_");
    // What inputs are that nobody connects, of which there are none here.
    let other = other.replace("`ICE40_DEFAULT_ASSIGNMENT_V(16'h 0000)", "");
    let other = other.replace("`ICE40_DEFAULT_ASSIGNMENT_1", "").replace("`ICE40_DEFAULT_ASSIGNMENT_0", "");
    let models = dir.join("models.v");
    std::fs::write(&models, own + &other).expect("a file");
    checks("ice40_ram_check", &[models]);
}
