//! Prints the effect of each optimization level on networks, as the table of `docs/optimization-levels.md`.
//!
//! Arguments are NAME=MODEL pairs. Each is compiled at every level for 1x16x16, run on the Verilated design for its
//! cycles, and on the CPU for its time; the table goes to standard output.

use std::path::Path;
use std::process::ExitCode;

use anyhow::{Context, Result, bail};
use tilewright::device::{self, DeviceKind, Extras};
use tilewright::examine::levels::{Figures, figures};
use tilewright_hw::config::HwConfig;

const LEVELS: std::ops::RangeInclusive<u8> = 0..=3;

fn main() -> ExitCode {
    match table() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn table() -> Result<()> {
    let config = HwConfig::load("1x16x16")?;
    println!(
        "| network | level | nodes | programs and functions | instructions | DRAM bytes moved | cycles (RTL) | CPU time |"
    );
    println!("|---|---|---|---|---|---|---|---|");
    for argument in std::env::args().skip(1) {
        let (name, path) =
            argument.split_once('=').with_context(|| format!("{argument} is not of the form NAME=MODEL"))?;
        if !Path::new(path).is_file() {
            bail!("{path} is not there; name the folder of models with TILEWRIGHT_MODELS=DIR");
        }
        for level in LEVELS {
            let device = device::open(DeviceKind::RTL, &config, Extras::default(), &|_| {})?;
            let Figures { nodes, steps, instructions, dram_bytes, cycles, cpu_s } =
                figures(Path::new(path), &config, level, device, 5).with_context(|| path.to_string())?;
            let cycles = cycles.map_or("-".to_string(), |cycles| cycles.to_string());
            println!(
                "| {name} | -O{level} | {nodes} | {steps} | {instructions} | {dram_bytes} | {cycles} | {:.2} ms |",
                1e3 * cpu_s
            );
        }
    }
    Ok(())
}
