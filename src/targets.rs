//! What this build compiles for, and what it runs on: the tables of processors, GPUs, configurations and devices.

use std::fmt::Write;

use serde_json::{Value, json};
use tilewright_hw::config::{HwConfig, PRESETS};
use tilewright_hw::flow::board::Board;

use crate::device::DEVICES;

/// A target of CPU code.
#[derive(Debug)]
pub struct CpuTarget {
    /// Its name for `--cpu-target`.
    pub name: &'static str,
    /// Features that all code uses.
    pub base: Vec<&'static str>,
    /// Features for `+NAME`.
    pub features: Vec<&'static str>,
    /// Processors for `cpu=NAME`.
    pub processors: Vec<&'static str>,
}

/// The targets of CPU code; none without a code generator.
#[cfg(feature = "llvm")]
fn cpu_targets() -> Vec<CpuTarget> {
    let target = |known: tilewright_llvm::Known| CpuTarget {
        name: known.name,
        base: known.base,
        features: known.features,
        processors: known.processors,
    };
    tilewright_llvm::known().map(target).collect()
}

/// The targets of CPU code; none without a code generator.
#[cfg(not(feature = "llvm"))]
fn cpu_targets() -> Vec<CpuTarget> {
    Vec::new()
}

/// A device with what it needs, and whether that is here.
struct Runs {
    usage: &'static str,
    about: &'static str,
    needs: &'static str,
    /// Why it cannot be used; `None` if it can, or if that depends on a port that is not known yet.
    missing: Option<String>,
}

/// Everything, collected once.
pub struct Targets {
    cpus: Vec<CpuTarget>,
    cuda: bool,
    presets: Vec<HwConfig>,
    boards: Vec<(Board, HwConfig)>,
    runs: Vec<Runs>,
}

impl Targets {
    /// Reads the tables, and looks for what devices need.
    ///
    /// # Errors
    /// If a configuration or a board that this program brings along cannot be read.
    pub fn collect() -> anyhow::Result<Targets> {
        let presets = PRESETS.iter().map(|(name, _)| Ok(HwConfig::load(name)?)).collect::<anyhow::Result<_>>()?;
        let board = |name: String| -> anyhow::Result<(Board, HwConfig)> {
            let board = Board::load(&name)?;
            let config = board.default_config()?;
            Ok((board, config))
        };
        let boards = Board::names().into_iter().map(board).collect::<anyhow::Result<_>>()?;
        let runs = DEVICES.iter().map(|spec| Runs {
            usage: spec.usage,
            about: spec.about,
            needs: spec.need().text(),
            missing: spec.need().missing(),
        });
        Ok(Targets { cpus: cpu_targets(), cuda: cfg!(feature = "cuda"), presets, boards, runs: runs.collect() })
    }

    /// The list as text.
    pub fn text(&self) -> String {
        let mut text = String::from("compiles CPU code for (--cpu-target TARGET[,cpu=NAME][,+FEATURE]…)\n");
        for target in &self.cpus {
            let _ = writeln!(text, "  {:<20} base {}", target.name, target.base.join(" "));
            let _ = writeln!(text, "  {:<20} features {}", "", list(&target.features));
            let _ = writeln!(text, "  {:<20} processors {}", "", list(&target.processors));
        }
        if self.cpus.is_empty() {
            text += "  nothing: this program was built without LLVM; build it with the feature `llvm`\n";
        }
        text += "compiles GPU code for (--fallback cuda)\n";
        text += match self.cuda {
            true => "  CUDA C, which NVRTC compiles for the GPU that runs it\n",
            false => "  nothing: this program was built without it; build it with the feature `cuda`\n",
        };
        text += "compiles accelerator programs for (--hw NAME|FILE.toml)\n";
        for config in &self.presets {
            let _ = writeln!(text, "  {:<20} {} MACs a cycle", config.name, config.macs_per_cycle());
        }
        for (board, config) in &self.boards {
            let bytes = board.memory_bytes(config);
            let (hw, mhz, place) = (&config.name, config.host.clock_mhz, board.memory.place());
            let _ = writeln!(text, "  {:<20} board: {hw} at {mhz:.2} MHz, {} {place}", board.name, size(bytes));
        }
        text += "runs on (--device DEVICE)\n";
        for device in &self.runs {
            let state = device.missing.as_ref().map_or(String::new(), |why| format!("; not here: {why}"));
            let _ = writeln!(text, "  {:<20} {}; needs {}{state}", device.usage, device.about, device.needs);
        }
        text
    }

    /// The list as one JSON object.
    pub fn json(&self) -> Value {
        let cpu = |target: &CpuTarget| {
            json!({ "name": target.name, "base": target.base, "features": target.features,
                    "processors": target.processors })
        };
        let preset = |c: &HwConfig| json!({ "name": c.name, "macs_per_cycle": c.macs_per_cycle() });
        let board = |(board, config): &(Board, HwConfig)| {
            json!({ "name": board.name, "title": board.title, "hw": config.name, "clock_mhz": config.host.clock_mhz,
                    "memory_bytes": board.memory_bytes(config), "memory": board.memory.place() })
        };
        let device = |d: &Runs| json!({ "name": d.usage, "about": d.about, "needs": d.needs, "missing": d.missing });
        json!({
            "cpu": self.cpus.iter().map(cpu).collect::<Vec<_>>(),
            "cuda": self.cuda,
            "configurations": self.presets.iter().map(preset).collect::<Vec<_>>(),
            "boards": self.boards.iter().map(board).collect::<Vec<_>>(),
            "devices": self.runs.iter().map(device).collect::<Vec<_>>(),
        })
    }
}

fn list(names: &[&str]) -> String {
    if names.is_empty() { "none".into() } else { names.join(" ") }
}

/// Bytes in the largest unit that gives a whole number.
fn size(bytes: u64) -> String {
    match bytes {
        _ if bytes.is_multiple_of(1 << 20) => format!("{} MiB", bytes >> 20),
        _ if bytes.is_multiple_of(1 << 10) => format!("{} KiB", bytes >> 10),
        _ => format!("{bytes} bytes"),
    }
}

#[cfg(test)]
mod tests {
    use crate::device::Need;

    use super::*;

    #[test]
    fn every_need_of_the_table_is_told() {
        let needs: Vec<&str> = DEVICES.iter().map(|spec| spec.need().text()).collect();
        assert!(needs.contains(&Need::Nothing.text()) && needs.contains(&Need::Verilator.text()));
        assert_eq!((size(3 << 20), size(16 << 10), size(5)), ("3 MiB".into(), "16 KiB".into(), "5 bytes".into()));
    }
}
