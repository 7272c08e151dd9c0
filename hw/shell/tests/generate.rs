//! The generated Verilog: the same text for the same shell, taken by Verilator's lint and by Yosys together with the core.

use std::process::Command;

use tilewright_hw::config::{HwConfig, PRESETS};
use tilewright_shell::{Host, Memory, ShellConfig, ShellError, TOP, generate};

/// The other link and the other memory.
const BLOCK: ShellConfig = ShellConfig { host: Host::Spi, memory: Memory::BlockRam { kib: 16 }, leds: 1 };

mod design;

use design::{here, small};

const UART: ShellConfig = ShellConfig { host: Host::Uart { clocks_per_bit: 104 }, memory: Memory::Host, leds: 0 };

/// Runs a command and gives what it wrote where it failed or warned.
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
    for shell in [UART, BLOCK] {
        let dir = tempfile::tempdir().expect("a folder");
        let files = design::write(&small(), &shell, dir.path());
        let mut yosys = Command::new(&python);
        yosys.arg(root.join("scripts/yosys_elaborate.py")).arg(TOP).args(&files);
        if let Some(text) = complaint(&mut yosys) {
            panic!("{shell:?}:\n{}", &text[text.len().saturating_sub(4000)..]);
        }
    }
}

/// The text of one small shell is kept, so that a change of the generator is seen; `BLESS=1` writes it anew.
#[test]
fn the_verilog_is_the_kept_one() {
    let text = generate(&small(), &UART).expect("the shell is legal");
    assert_eq!(text, generate(&small(), &UART).expect("the shell is legal"), "not reproducible");
    let path = here().join("tests/uart_host.v");
    if std::env::var_os("BLESS").is_some() {
        std::fs::write(&path, &text).expect("the file can be written");
    }
    let kept = std::fs::read_to_string(&path).expect("tests/uart_host.v is there; BLESS=1 writes it");
    assert!(text == kept, "the Verilog differs from tests/uart_host.v; look at the difference after BLESS=1");
}

#[test]
fn what_a_shell_cannot_be_is_refused() {
    for clocks in [0, 3, 65_537] {
        let shell = ShellConfig { host: Host::Uart { clocks_per_bit: clocks }, ..UART };
        assert_eq!(generate(&small(), &shell), Err(ShellError::ClocksPerBit { clocks }));
    }
    assert_eq!(generate(&small(), &ShellConfig { leds: 5, ..UART }), Err(ShellError::Leds { leds: 5 }));
    for kib in [0, 2, 24, 2048] {
        let shell = ShellConfig { memory: Memory::BlockRam { kib }, ..UART };
        assert_eq!(generate(&small(), &shell), Err(ShellError::RamSize { kib, most: 1024 }));
    }
    for (preset, _) in PRESETS {
        let config = HwConfig::load(preset).expect("presets load");
        generate(&config, &ShellConfig { host: Host::Uart { clocks_per_bit: 4 }, ..UART })
            .expect("every preset has a shell");
    }
}

/// The RAMs become what their kinds say.
#[test]
fn yosys_finds_the_rams() {
    let python = here().join("../../.venv/bin/python");
    if !python.exists() {
        return tilewright_testing::skip("needs Yosys in .venv; run `make setup`");
    }
    for (memory, options, cells) in [
        (Memory::BlockRam { kib: 8 }, "", "16   SB_RAM40_4K"),
        (Memory::Spram { kib: 64 }, "-spram", "2   SB_SPRAM256KA"),
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
