//! The generated Verilog is the same text for the same shell, and passes Verilator's lint and Yosys together with the
//! core.

use std::process::Command;

use tilewright_hw::config::{HwConfig, PRESETS};
use tilewright_hw::flow::board::{self, Board};
use tilewright_hw::flow::sdram::{Cycles, Geometry};
use tilewright_hw::flow::{FlowRequest, write_sources};
use tilewright_shell::{ShellConfig, ShellError, ShellLink, ShellMemory, TOP, generate};

/// The other link and the other memory.
const BLOCK: ShellConfig = ShellConfig { host: ShellLink::Spi, memory: ShellMemory::BlockRam { kib: 16 }, leds: 1 };

mod design;

use design::{here, small};

const UART: ShellConfig =
    ShellConfig { host: ShellLink::Uart { clocks_per_bit: 104 }, memory: ShellMemory::Host, leds: 0 };

/// A chip without masks, and its times at 50 MHz.
const BARE: Geometry = Geometry { rows: 2048, columns: 256, banks: 4, data_bits: 32, has_masks: false };
const MASKED: Geometry = Geometry { rows: 8192, columns: 512, banks: 4, data_bits: 16, has_masks: true };
const CYCLES: Cycles = Cycles { cas: 2, rcd: 2, rp: 2, ras: 3, rfc: 4, wr: 2, refresh: 390, power_up: 10_000 };

fn sdram(geometry: Geometry) -> ShellConfig {
    ShellConfig { memory: ShellMemory::Sdram { geometry, cycles: CYCLES }, ..UART }
}

/// Runs a command and returns its output if it failed or warned.
fn complaint(command: &mut Command) -> Option<String> {
    let output = command.output().unwrap_or_else(|error| panic!("{command:?}: {error}; run `make setup`"));
    let text = format!("{}{}", String::from_utf8_lossy(&output.stdout), String::from_utf8_lossy(&output.stderr));
    let warned = text.lines().any(|line| line.to_lowercase().contains("warning") && !line.contains("0 warnings"));
    (!output.status.success() || warned).then_some(text)
}

fn lint(config: &HwConfig, shell: &ShellConfig) {
    let dir = tempfile::tempdir().expect("a folder");
    let files = design::write(config, shell, dir.path());
    let mut verilator = Command::new("verilator");
    verilator
        .args(["--lint-only", "-Wall", "--assert", "--top-module", TOP])
        .arg(format!("-I{}", dir.path().display()));
    verilator.arg(here().join("../rtl/waivers.vlt")).arg(here().join("waivers.vlt")).args(&files);
    if let Some(text) = complaint(&mut verilator) {
        panic!("{shell:?} on {} bits:\n{text}", config.bus_bits);
    }
}

#[test]
fn verilator_lints_shells_of_every_width() {
    lint(&small(), &UART);
    for bus_bits in [16, 32, 64, 128, 256, 512] {
        let config = HwConfig { bus_bits, ..HwConfig::load("1x4x4").expect("a preset") };
        lint(&config, &ShellConfig { leds: 4, ..UART });
        lint(&config, &BLOCK);
        lint(&config, &ShellConfig { host: ShellLink::Spi, ..sdram(MASKED) });
        if bus_bits >= 32 {
            lint(&config, &sdram(BARE));
        }
    }
}

/// Elaborates a shell with its core in Yosys.
#[test]
fn yosys_elaborates_a_shell_without_a_warning() {
    let root = here().join("../..");
    let python = root.join(".venv/bin/python");
    if !python.exists() {
        return tilewright_testing::skip("needs Yosys in .venv; run `make setup`");
    }
    for shell in [UART, BLOCK, sdram(MASKED)] {
        let dir = tempfile::tempdir().expect("a folder");
        let files = design::write(&small(), &shell, dir.path());
        let mut yosys = Command::new(&python);
        yosys.arg(root.join("scripts/yosys_elaborate.py")).arg(TOP).args(&files);
        if let Some(text) = complaint(&mut yosys) {
            panic!("{shell:?}:\n{}", &text[text.len().saturating_sub(4000)..]);
        }
    }
}

/// Compares the text of one small shell, and the SDRAM modules of another, with the kept files, so that a change of the
/// generator is visible. `BLESS=1` rewrites the files.
#[test]
fn the_verilog_is_the_kept_one() {
    let is_sdram =
        |module: &&str| ["tw_board$memory$controller", "tw_shell"].iter().any(|name| module.starts_with(name));
    for (file, shell) in [("uart_host.v", UART), ("sdram.v", sdram(MASKED))] {
        let text = generate(&small(), &shell).expect("the shell is legal");
        assert_eq!(text, generate(&small(), &shell).expect("the shell is legal"), "not reproducible");
        let text = match shell.memory {
            ShellMemory::Sdram { .. } => {
                text.split("module ").filter(is_sdram).map(|module| format!("module {module}")).collect()
            }
            _ => text,
        };
        let path = here().join("tests").join(file);
        if std::env::var_os("BLESS").is_some() {
            std::fs::write(&path, &text).expect("the file can be written");
        }
        let kept = std::fs::read_to_string(&path).expect("the file is there; BLESS=1 writes it");
        assert!(text == kept, "the Verilog differs from tests/{file}; look at the difference after BLESS=1");
    }
}

#[test]
fn what_a_shell_cannot_be_is_refused() {
    for clocks in [0, 3, 65_537] {
        let shell = ShellConfig { host: ShellLink::Uart { clocks_per_bit: clocks }, ..UART };
        assert_eq!(generate(&small(), &shell), Err(ShellError::ClocksPerBit { clocks }));
    }
    assert_eq!(generate(&small(), &ShellConfig { leds: 5, ..UART }), Err(ShellError::Leds { leds: 5 }));
    for kib in [0, 2, 24, 2048] {
        let shell = ShellConfig { memory: ShellMemory::BlockRam { kib }, ..UART };
        assert_eq!(generate(&small(), &shell), Err(ShellError::RamSize { kib, most: 1024 }));
    }
    assert_eq!(generate(&small(), &sdram(BARE)), Err(ShellError::NarrowBus { bus_bits: 16, data_bits: 32 }));
    let wide = HwConfig { bus_bits: 512, ..HwConfig::load("1x4x4").expect("a preset") };
    let slow = ShellConfig { host: ShellLink::Spi, ..sdram(Geometry { data_bits: 8, ..MASKED }) };
    assert_eq!(generate(&wide, &slow), Err(ShellError::SlowSdram { cycles: 81, most: 56 }));
    for (preset, _) in PRESETS {
        let config = HwConfig::load(preset).expect("presets load");
        generate(&config, &ShellConfig { host: ShellLink::Uart { clocks_per_bit: 4 }, ..UART })
            .expect("every preset has a shell");
    }
}

/// The RAMs are mapped to the expected cells.
#[test]
fn yosys_finds_the_rams() {
    let python = here().join("../../.venv/bin/python");
    if !python.exists() {
        return tilewright_testing::skip("needs Yosys in .venv; run `make setup`");
    }
    for (memory, options, cells) in [
        (ShellMemory::BlockRam { kib: 8 }, "", "16   SB_RAM40_4K"),
        (ShellMemory::Spram { kib: 64 }, "-spram", "2   SB_SPRAM256KA"),
    ] {
        let dir = tempfile::tempdir().expect("a folder");
        let shell = ShellConfig { memory, ..UART };
        std::fs::write(dir.path().join("tw_shell.v"), generate(&small(), &shell).expect("legal")).expect("written");
        // The memory alone, so that no core is needed.
        let script = format!(
            "from pyosys import libyosys as ys\nd = ys.Design()\nys.run_pass('read_verilog -sv tw_shell.v', d)\n\
             ys.run_pass('synth_ice40 {options} -top tw_board$memory', d)\nys.run_pass('stat', d)\n"
        );
        let output = Command::new(&python).args(["-c", &script]).current_dir(dir.path()).output().expect("Python runs");
        let text = String::from_utf8_lossy(&output.stdout).into_owned();
        let found = text.lines().any(|line| line.trim() == cells);
        assert!(found, "{memory:?}: no {cells} in\n{}", &text[text.len().saturating_sub(3000)..]);
    }
}

/// The whole design of a board with an SDRAM is mapped to cells of its part, with its data pins and clock in the form
/// that the router accepts.
#[test]
#[ignore = "synthesizes a whole core, which takes minutes"]
fn yosys_synthesizes_a_board_with_an_sdram() {
    let root = here().join("../..");
    let python = root.join(".venv/bin/python");
    if !python.exists() {
        return tilewright_testing::skip("needs Yosys in .venv; run `make setup`");
    }
    for (name, bus_bits) in [("ulx3s-85f", 16), ("colorlight-i5", 32)] {
        let board = Board::load(name).expect("it is there");
        let board::CoreMemory::Sdram(chip) = &board.memory else { panic!("{name} has an SDRAM") };
        let config = HwConfig { bus_bits, ..small() };
        let cycles = chip.cycles(board.core_mhz).expect("they go together");
        let memory = ShellMemory::Sdram { geometry: chip.geometry(), cycles };
        let leds = board.leds.pins.len() as u32;
        let shell = generate(&config, &ShellConfig { memory, leds, ..UART }).expect("the shell is legal");
        let request = FlowRequest {
            board: &board,
            config: &config,
            hw: &board.hw,
            shell: &shell,
            mhz: board.core_mhz,
            seed: 1,
            allow_slow: false,
            time_limit: None,
            checker: "",
            estimate: false,
        };
        let dir = tempfile::tempdir().expect("a folder");
        write_sources(&request, dir.path()).expect("the sources are written");
        let mut yosys = Command::new(&python);
        yosys.arg(root.join("scripts/yosys.py")).args(["-ql", "yosys.log", "synth.ys"]).current_dir(dir.path());
        let output = yosys.output().expect("Python runs");
        let log = std::fs::read_to_string(dir.path().join("yosys.log")).unwrap_or_default();
        assert!(
            output.status.success(),
            "{}\n{}",
            String::from_utf8_lossy(&output.stdout),
            &log[log.len().saturating_sub(3000)..]
        );
        let netlist = std::fs::read_to_string(dir.path().join("synthesized.v")).expect("a netlist");
        let cells = |kind: &str| netlist.matches(&format!("  {kind} ")).count();
        let pins = chip.pins.dq.len();
        assert_eq!((cells("ODDRX1F"), netlist.matches(".DIR(\"BIDIR\")").count()), (1, pins), "{name}");
    }
}
