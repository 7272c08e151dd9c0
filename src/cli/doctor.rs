//! `doctor`: which of the tools that Tilewright calls or links are there.

use std::path::Path;
use std::process::Command;

use anyhow::Result;
use serde_json::json;

use super::{Verdict, write_or_print};

/// Arguments of `doctor`.
#[derive(clap::Args)]
pub struct Doctor {
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

/// One thing looked for.
struct Finding {
    name: &'static str,
    what_for: &'static str,
    /// Its version, or nothing where it is missing.
    found: Option<String>,
    remedy: &'static str,
    /// Whether nothing can be done without it.
    needed: bool,
}

impl Doctor {
    pub fn run(self) -> Result<Verdict> {
        let findings = findings();
        let fine = findings.iter().all(|f| f.found.is_some() || !f.needed);
        let text = if self.json {
            let rows: Vec<_> = findings
                .iter()
                .map(|f| {
                    let remedy = f.found.is_none().then_some(f.remedy);
                    json!({ "name": f.name, "for": f.what_for, "found": f.found, "needed": f.needed, "remedy": remedy })
                })
                .collect();
            format!("{}\n", json!({ "fine": fine, "tools": rows }))
        } else {
            findings
                .iter()
                .map(|f| match &f.found {
                    Some(version) => format!("ok       {:<10} {version} (for {})\n", f.name, f.what_for),
                    None => format!("missing  {:<10} needed for {}; {}\n", f.name, f.what_for, f.remedy),
                })
                .collect()
        };
        write_or_print(None, text.as_bytes())?;
        Ok(if fine { Verdict::Fine } else { Verdict::No })
    }
}

fn findings() -> Vec<Finding> {
    let verilator = first_line("verilator", &["--version"]).filter(|line| verilator_is_new_enough(line));
    let compiler = first_line("g++", &["--version"]).or_else(|| first_line("clang++", &["--version"]));
    let yosys = Path::new(".venv/.pyosys-0.70").exists().then(|| "pyosys 0.70 in .venv".to_string());
    let llvm = cfg!(feature = "llvm").then(|| "LLVM 19, linked in".to_string());
    vec![
        Finding {
            name: "llvm",
            what_for: "compiling what runs on the CPU",
            found: llvm,
            remedy: "build with the feature `llvm` and package llvm-19-dev",
            needed: false,
        },
        Finding {
            name: "verilator",
            what_for: "--device rtl",
            found: verilator,
            remedy: "install Verilator 5.006 or newer: apt-get install verilator",
            needed: true,
        },
        Finding {
            name: "c++",
            what_for: "--device rtl",
            found: compiler,
            remedy: "install a C++ compiler: apt-get install g++",
            needed: true,
        },
        Finding {
            name: "make",
            what_for: "--device rtl",
            found: first_line("make", &["--version"]),
            remedy: "apt-get install make",
            needed: true,
        },
        Finding {
            name: "yosys",
            what_for: "elaborating the RTL in the tests",
            found: yosys,
            remedy: "run `make setup` in the repository",
            needed: false,
        },
    ]
}

fn first_line(program: &str, arguments: &[&str]) -> Option<String> {
    let output = Command::new(program).args(arguments).output().ok().filter(|output| output.status.success())?;
    String::from_utf8_lossy(&output.stdout).lines().next().map(str::to_string)
}

/// Whether a line like `Verilator 5.006 2023-01-22 rev …` names 5.006 or newer.
fn verilator_is_new_enough(line: &str) -> bool {
    let version = line.split_whitespace().nth(1).unwrap_or("");
    let mut numbers = version.split('.').map(|part| part.parse::<u32>().unwrap_or(0));
    (numbers.next().unwrap_or(0), numbers.next().unwrap_or(0)) >= (5, 6)
}
