//! `tune --device cpu`, and `tune --upload` for the CPU of a server: the search by measured times.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use tilewright::device::open_functions;
use tilewright::model::tuned::{self, TuneRequest};
use tilewright_compiler::graph::Graph;

use super::Tune;
use crate::cli::{Progress, Verdict, note, write_or_print};

impl Tune {
    pub(super) fn run_on_cpu(&self, graph: Graph, request: &TuneRequest, all: usize) -> Result<Verdict> {
        let progress = Progress::new("tune", all);
        let mut told = |n: usize| progress.step("trials on the CPU", n, all.max(n));
        let tuning = match self.upload {
            true => tuned::cpu::tune_cpu_on(graph, request, &open_functions(self.device, None)?, &mut told),
            false => tuned::cpu::tune_cpu(graph, request, &mut measure, &mut told),
        };
        progress.end();
        let tuning = tuning.with_context(|| self.file.display().to_string())?;
        for (reason, n) in &tuning.skipped {
            note(&format!("{}: {n} line(s) skipped: {reason}", self.log.display()));
        }
        let text = if self.json { format!("{}\n", tuning.json()) } else { tuning.text(self.file.display(), &self.log) };
        write_or_print(None, text.as_bytes())?;
        Ok(Verdict::Fine)
    }
}

/// Measures an artifact in a process of its own; `None` if that fails or takes too long.
fn measure(artifact: &Path) -> Option<u64> {
    let mut program = Command::new(std::env::current_exe().ok()?);
    program.arg("measure-artifact").arg(artifact);
    tuned::cpu::measured_by(program)
}
