//! Measurements on the CPU of a server.

use std::error::Error;
use std::path::Path;

use tilewright_compiler::graph::Graph;
use tilewright_hw::interrupt::Interrupt;
use tilewright_rpc::Remote;
use tilewright_rpc::client::ClientError;
use tilewright_runtime::artifact::Artifact;

use super::{CpuTuning, RUNS, SECONDS, TuneRequest, tune_cpu, without_outliers};
use crate::model::error::ModelError;
use crate::model::inference::made_up;
use crate::model::uploaded::{UploadError, Uploaded};

/// Searches as [`tune_cpu`] does, for code of the server's CPU: each trial is uploaded, and timed there by the server's
/// clock. The options name the processor if it is of another kind than this machine's.
///
/// # Errors
/// [`ModelError::Upload`] if the server runs no code of clients, if its processor does not run the first trial, or if the
/// connection ends. Otherwise as [`tune_cpu`].
pub fn tune_cpu_on(
    graph: Graph,
    request: &TuneRequest,
    remote: &Remote,
    progress: &mut dyn FnMut(usize),
) -> Result<CpuTuning, ModelError> {
    let search = Interrupt::part();
    let (mut failed, mut any) = (None, false);
    let mut measure = |artifact: &Path| match measured(remote, artifact) {
        Ok(ns) => {
            any = true;
            Some(ns)
        }
        Err(error) => {
            // Code that crashes says something about its decisions, but the first code is the usual one.
            if !any || is_lost(&error) {
                failed.get_or_insert(error);
                search.stop();
            }
            None
        }
    };
    let tuned = search.during(|| tune_cpu(graph, request, &mut measure, progress));
    match failed {
        Some(error) => Err(error.into()),
        None => tuned,
    }
}

/// Uploads an artifact, runs it with made-up inputs several times, and returns the median nanoseconds, without outliers.
fn measured(remote: &Remote, path: &Path) -> Result<u64, UploadError> {
    let artifact = Artifact::read(path)?;
    let inputs = made_up(&artifact.manifest.input_values());
    let uploaded = Uploaded::to(remote, "server", &artifact, &|_| ())?;
    let time = |runs| uploaded.time(&inputs, runs, &mut |_| ());
    time(1)?;
    let mut times = time(RUNS[0])?;
    let each = without_outliers(times.clone());
    let more = ((SECONDS / each.max(1e-9)) as usize).clamp(RUNS[0], RUNS[1]) - RUNS[0];
    if more > 0 {
        times.extend(time(more)?);
    }
    Ok((without_outliers(times) * 1e9).round() as u64)
}

/// Whether the connection ended.
fn is_lost(error: &(dyn Error + 'static)) -> bool {
    let mut next = Some(error);
    while let Some(cause) = next {
        if cause.is::<ClientError>() {
            return true;
        }
        next = cause.source();
    }
    false
}
