//! The modules that a part may want in place of others, beside what they stand for.

use std::path::Path;
use std::process::Command;

#[test]
fn a_gemm_lane_of_lookup_tables_gives_every_product() {
    let dir = Path::new(env!("CARGO_TARGET_TMPDIR")).join("tw_gemm_table_lane_check");
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let mut verilator = Command::new("verilator");
    verilator.args(["--binary", "-Wno-fatal", "--top-module", "tw_gemm_table_lane_check", "--Mdir"]).arg(&dir);
    verilator.arg(root.join("rtl/tw_gemm_table_lane.sv")).arg(root.join("tests/cells/tw_gemm_table_lane_check.sv"));
    let built = verilator.output().unwrap_or_else(|error| panic!("{verilator:?}: {error}; run `make setup`"));
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    let run = Command::new(dir.join("Vtw_gemm_table_lane_check")).output().expect("the check runs");
    let text = String::from_utf8_lossy(&run.stdout);
    assert!(text.lines().any(|line| line == "0 wrong"), "{text}");
}
