//! Compiles C++ files in parallel, one per processor.

use super::compiler::INSTALL_CXX;
use super::{Compiler, Progress, place, run, tool_error};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::mpsc::RecvTimeoutError;
use std::time::Duration;
use tilewright_hw::device::DeviceError;
use tilewright_hw::interrupt::{self, Interrupt};

/// Interval between two checks whether the work is stopped.
const POLL: Duration = Duration::from_millis(50);

/// A file to compile.
#[derive(Debug)]
pub(super) struct CompileUnit {
    pub(super) source: PathBuf,
    /// Path of its object file.
    pub(super) object: PathBuf,
    /// Whether it is setup code, which runs once and is not optimized.
    pub(super) slow: bool,
}

/// Compiles all files in a folder and returns the paths of the object files.
pub(super) fn compile(
    compiler: &Compiler,
    units: &[CompileUnit],
    flags: &[String],
    folder: &Path,
    progress: &dyn Fn(Progress),
) -> Result<Vec<PathBuf>, DeviceError> {
    let next = AtomicUsize::new(0);
    let (done, results) = std::sync::mpsc::channel();
    let interrupt = Interrupt::current();
    let work = || {
        loop {
            let index = next.fetch_add(1, Ordering::Relaxed);
            let Some(unit) = units.get(index) else { return };
            let mut compile = compiler.command();
            compile.current_dir(folder).args(flags);
            if unit.slow {
                compile.arg("-O0");
            }
            compile.arg("-c").arg(&unit.source).arg("-o").arg(&unit.object);
            let result = run(compiler.name(), &mut compile, INSTALL_CXX);
            let failed = result.is_err();
            if done.send(result).is_err() || failed {
                return;
            }
        }
    };
    let worker = || match &interrupt {
        Some(interrupt) => interrupt.during(work),
        None => work(),
    };
    let optimized = units.iter().filter(|unit| !unit.slow).count();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(units.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(worker);
        }
        for finished in 0..units.len() {
            progress(Progress::Compiling(finished, units.len(), optimized));
            let result = loop {
                match results.recv_timeout(POLL) {
                    // The workers' programs are killed, so their results follow.
                    Err(RecvTimeoutError::Timeout) => drop(interrupt::check()),
                    Err(RecvTimeoutError::Disconnected) => {
                        break Err(tool_error(compiler.name(), "ended without a result", INSTALL_CXX));
                    }
                    Ok(result) => break result,
                }
            };
            if let Err(e) = result {
                // Stop the other workers.
                next.store(units.len(), Ordering::Relaxed);
                return Err(e);
            }
        }
        Ok(units.iter().map(|unit| unit.object.clone()).collect())
    })
}

/// Returns the object files of sources that are the same for all designs. Each is compiled once and cached in a folder
/// named by a hash of its inputs.
pub(super) fn shared(
    compiler: &Compiler,
    sources: &[PathBuf],
    flags: &[String],
    (cache, key): (&Path, &dyn Fn(&Path) -> String),
    progress: &dyn Fn(Progress),
) -> Result<Vec<PathBuf>, DeviceError> {
    const OBJECT: &str = "object.o";
    let object = |source: &PathBuf| {
        let home = cache.join(format!("verilated-{}", key(source)));
        place(cache, &home, OBJECT, |work| {
            let unit = CompileUnit { source: source.clone(), object: work.join(OBJECT), slow: false };
            compile(compiler, &[unit], flags, work, progress).map(|_| ())
        })
    };
    sources.iter().map(|source| object(source).map(|(object, _)| object)).collect()
}
