//! Times scheduled loops on this machine's CPU.

use std::time::{Duration, Instant};

use anyhow::Result;
use tilewright_compiler::te::Array;
use tilewright_compiler::tir::Function;

/// Runs on the CPU; their median is reported.
const RUNS: usize = 101;

/// Time after which no further run begins.
const MOST_TIME: Duration = Duration::from_secs(2);

/// Runs loops on this machine. Returns the outputs and the median time of a run.
pub(super) fn on_cpu(function: &Function, data: &[Array]) -> Result<(Vec<Array>, Duration)> {
    let mut runner = tilewright_llvm::Runner::new(&tilewright_llvm::Processor::detect()?, function)?;
    runner.set_inputs(data)?;
    let begin = Instant::now();
    let mut times = Vec::new();
    while times.len() < RUNS && (times.is_empty() || begin.elapsed() < MOST_TIME) {
        let start = Instant::now();
        // SAFETY: the evaluator has run the expression and found no access outside of a buffer; the steps of a schedule
        // keep what is accessed.
        unsafe { runner.run() };
        times.push(start.elapsed());
    }
    times.sort_unstable();
    Ok((runner.outputs(), times[times.len() / 2]))
}
