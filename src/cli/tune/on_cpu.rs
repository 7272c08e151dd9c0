//! `tune --device cpu`: the search by measured times.

use std::path::Path;
use std::process::Command;

use anyhow::{Context, Result};
use tilewright::model::tuned::{self, TuneRequest};
use tilewright_compiler::graph::Graph;

use super::Tune;
use crate::cli::{Progress, Verdict, note, write_or_print};

impl Tune {
    pub(super) fn run_on_cpu(&self, graph: Graph, request: &TuneRequest, all: usize) -> Result<Verdict> {
        let progress = Progress::new("tune", all);
        let tuning = tuned::cpu::tune_cpu(graph, request, &mut measure, &mut |n| {
            progress.step("trials on the CPU", n, all.max(n));
        });
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
