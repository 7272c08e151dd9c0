//! Compiling C++ files, as many at a time as there are processors.

use super::compiler::INSTALL_CXX;
use super::{Compiler, Progress, place, run, tool_error};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};
use tilewright_hw::device::DeviceError;

/// A file to be compiled.
#[derive(Debug)]
pub(super) struct Unit {
    pub(super) source: PathBuf,
    /// Where its object goes.
    pub(super) object: PathBuf,
    /// Whether it is set-up code, which runs once and is not optimized.
    pub(super) slow: bool,
}

/// Compiles every file in a folder, and gives the objects.
pub(super) fn compile(
    compiler: &Compiler,
    units: &[Unit],
    flags: &[String],
    folder: &Path,
    progress: &dyn Fn(Progress),
) -> Result<Vec<PathBuf>, DeviceError> {
    let next = AtomicUsize::new(0);
    let (done, results) = std::sync::mpsc::channel();
    let worker = || {
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
    let optimized = units.iter().filter(|unit| !unit.slow).count();
    let workers = std::thread::available_parallelism().map_or(1, |n| n.get()).min(units.len());
    std::thread::scope(|scope| {
        for _ in 0..workers {
            scope.spawn(worker);
        }
        for finished in 0..units.len() {
            progress(Progress::Compiling(finished, units.len(), optimized));
            match results.recv() {
                Ok(Ok(_)) => {}
                Ok(Err(e)) => {
                    // The others find nothing more to do.
                    next.store(units.len(), Ordering::Relaxed);
                    return Err(e);
                }
                Err(_) => return Err(tool_error(compiler.name(), "ended without an answer", INSTALL_CXX)),
            }
        }
        Ok(units.iter().map(|unit| unit.object.clone()).collect())
    })
}

/// The objects of files that no model changes, which designs share: each is compiled once and stays in the cache, in a folder
/// named by a hash of what goes into it.
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
            let unit = Unit { source: source.clone(), object: work.join(OBJECT), slow: false };
            compile(compiler, &[unit], flags, work, progress).map(|_| ())
        })
    };
    sources.iter().map(|source| object(source).map(|(object, _)| object)).collect()
}
