//! `tune` by a device: a search whose trials run there.

use std::sync::{Mutex, PoisonError};

use tilewright_compiler::cost::Clock;
use tilewright_compiler::graph::Graph;
use tilewright_compiler::tune::Progress;
use tilewright_driver::{AccelProgram, DeviceMemory, DriverError, Loaded, Order, Recording};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError, RunReport};
use tilewright_hw::interrupt::Interrupt;
use tilewright_runtime::artifact::InsnLayers;

use super::{Judge, TuneRequest, Tuning, tune_by};
use crate::model::clock::layer_ends;
use crate::model::error::ModelError;

/// Runs of a program on a board, whose memory does not always answer after the same time. Their median counts.
const RUNS: usize = 3;

/// Share of a program's cycles by which medians on a board can differ.
const JITTER: f64 = 0.01;

/// Searches for better plans as [`tune`](super::tune) does, with trials and whole programs that run on a device: once
/// if its cycles are `exact`, otherwise several times. The cycle model only rejects plans before.
///
/// # Errors
/// [`ModelError::Device`] if the device counts no cycles or fails; nothing is written for the trial that it did not end.
/// Otherwise as [`tune`](super::tune).
pub fn tune_on(
    graph: Graph,
    request: &TuneRequest,
    device: Box<dyn Device>,
    exact: bool,
    progress: &mut dyn FnMut(Progress),
) -> Result<Tuning, ModelError> {
    let (runs, jitter) = if exact { (1, 0.0) } else { (RUNS, JITTER) };
    let config = request.options.config;
    let (search, failed) = (Interrupt::part(), Mutex::new(None));
    let clock = DeviceClock { config, device: Mutex::new(device), runs, search: search.clone(), failed };
    let tuned = search.during(|| tune_by(graph, request, &Judge { clock: &clock, jitter }, progress));
    match clock.failed.into_inner().unwrap_or_else(PoisonError::into_inner) {
        Some(error) => Err(error.into()),
        None => tuned,
    }
}

/// A clock that times programs on a device.
struct DeviceClock<'a> {
    config: &'a HwConfig,
    device: Mutex<Box<dyn Device>>,
    /// Runs of each program.
    runs: usize,
    /// Stopped when the device fails, because nothing can be judged then.
    search: Interrupt,
    /// Why it failed.
    failed: Mutex<Option<DeviceError>>,
}

impl DeviceClock<'_> {
    /// Runs a program, and returns the run with the median cycles; `None` if the device cannot run it.
    fn run(&self, program: &AccelProgram) -> Option<RunReport> {
        let mut device = self.device.lock().unwrap_or_else(PoisonError::into_inner);
        if self.search.is_stopped() {
            return None;
        }
        match runs(device.as_mut(), self.config, program, self.runs) {
            Ok(report) => report,
            Err(error) => {
                self.failed.lock().unwrap_or_else(PoisonError::into_inner).get_or_insert(error);
                self.search.stop();
                None
            }
        }
    }
}

/// Runs a program several times, and returns the run with the median cycles; `None` if it does not fit, traps, or exceeds
/// the device's limit of cycles.
///
/// # Errors
/// The device's, and [`DeviceError::Unsupported`] if it counts no cycles.
fn runs(
    device: &mut dyn Device,
    config: &HwConfig,
    program: &AccelProgram,
    runs: usize,
) -> Result<Option<RunReport>, DeviceError> {
    let mut memory = DeviceMemory::new(device.memory_bytes(), config);
    let loaded = match Loaded::new(device, &mut memory, program) {
        Ok(loaded) => loaded,
        Err(DriverError::Device(error)) => return Err(error),
        Err(_) => return Ok(None),
    };
    let mut reports = Vec::with_capacity(runs);
    for _ in 0..runs {
        let report = match device.run(loaded.command()) {
            Ok(report) => report,
            Err(DeviceError::CycleLimit { .. } | DeviceError::InsnLimit { .. }) => return Ok(None),
            Err(error) => return Err(error),
        };
        if report.trap.is_some() {
            return Ok(None);
        }
        let Some(cycles) = report.cycles else {
            let what = "be tuned for, because it counts no cycles; use a device that does, such as csim".into();
            return Err(DeviceError::Unsupported { device: device.name().into(), what });
        };
        reports.push((cycles, report));
    }
    reports.sort_by_key(|(cycles, _)| *cycles);
    Ok((!reports.is_empty()).then(|| reports.swap_remove(reports.len() / 2).1))
}

impl Clock for DeviceClock<'_> {
    fn cycles(&self, program: &AccelProgram, layers: &InsnLayers) -> Option<Vec<u64>> {
        let report = self.run(program)?;
        layer_ends(&program.decode(self.config).ok()?, &report.spans, layers, report.cycles)
    }

    fn total(&self, recording: &Recording, order: &Order) -> Option<u64> {
        self.run(&recording.program(order).ok()?)?.cycles
    }
}

#[cfg(test)]
mod tests {
    use tilewright_compiler::frontend::Sizes;
    use tilewright_sim::{Csim, CsimOptions, Fsim};
    use tilewright_testing::device::{Hooked, HostAccess};

    use super::super::tune;
    use super::*;
    use crate::model::build::{Options, import};
    use crate::model::zoo;

    fn tuned(log: &std::path::Path, on: Option<(Box<dyn Device>, bool)>) -> Result<Tuning, ModelError> {
        let config = HwConfig::load("1x16x16").unwrap();
        let folder = tempfile::tempdir().unwrap();
        let network = zoo::find("lenet-int8").unwrap().extract(folder.path()).unwrap();
        let graph = import(&network, Sizes::default()).unwrap();
        let options = Options { level: 2, ..Options::new(&config) };
        let request = TuneRequest { options, log, seed: 1, threads: 2, trials: Some(12), time: None, layer: None };
        match on {
            Some((device, exact)) => tune_on(graph, &request, device, exact, &mut |_| {}),
            None => tune(graph, &request, &mut |_| {}),
        }
    }

    fn csim(config: &HwConfig) -> Csim {
        Csim::new(config.clone(), config.memory_bytes(), CsimOptions::default())
    }

    /// Counts more cycles in each run, by up to a tenth of a percent, and fails after `left` runs.
    fn board(config: &HwConfig, mut left: u64) -> Box<dyn Device> {
        let (board, mut runs) = (Hooked::new("board", csim(config)), 0);
        let board = board.before(move |access| {
            let (tool, reason, remedy) = ("board".into(), "it is unplugged".into(), "plug it in".into());
            match (access, left) {
                (HostAccess::Wait, 0) => return Err(DeviceError::Tool { tool, reason, remedy }),
                (HostAccess::Wait, _) => left -= 1,
                _ => {}
            }
            Ok(())
        });
        Box::new(board.report(move |report| {
            runs += 1;
            report.cycles = report.cycles.map(|cycles| cycles + cycles * (runs % 7) / 7000);
        }))
    }

    #[test]
    fn an_exact_device_gives_the_records_of_the_cycle_model() {
        let folder = tempfile::tempdir().unwrap();
        let config = HwConfig::load("1x16x16").unwrap();
        let [here, there] = ["here", "there"].map(|name| folder.path().join(name));
        let model = tuned(&here, None).unwrap().report;
        let device = tuned(&there, Some((Box::new(csim(&config)), true))).unwrap().report;
        assert_eq!((model.cycles, model.trials, &model.layers), (device.cycles, device.trials, &device.layers));
        let lines = |path| {
            let text = std::fs::read_to_string(path).unwrap();
            let mut lines: Vec<String> = text.lines().map(str::to_string).collect();
            lines.sort();
            lines
        };
        assert_eq!(lines(here), lines(there));
        // Without cycles, nothing can be judged.
        let fsim = Box::new(Fsim::new(config.clone(), config.memory_bytes()));
        let error = tuned(&folder.path().join("none"), Some((fsim, true))).unwrap_err().to_string();
        assert!(error.contains("fsim cannot be tuned for, because it counts no cycles"), "{error}");
    }

    #[test]
    fn a_board_is_asked_several_times_and_a_search_ends_with_it() {
        let folder = tempfile::tempdir().unwrap();
        let log = folder.path().join("log");
        let config = HwConfig::load("1x16x16").unwrap();
        let board = |left| Some((board(&config, left), false));
        let first = tuned(&log, board(u64::MAX)).unwrap().report;
        assert_eq!((first.trials, first.known, first.stale), (12, 0, 0));
        // Cycles that differ a little are those of the log.
        let again = tuned(&log, board(u64::MAX)).unwrap().report;
        assert_eq!((again.trials, again.known, again.stale), (0, 12, 0));
        std::fs::remove_file(&log).unwrap();
        let error = tuned(&log, board(40)).unwrap_err().to_string();
        assert_eq!(error, "board: it is unplugged; plug it in");
        // What ended before is kept, and nothing says that a plan cannot run.
        let text = std::fs::read_to_string(&log).unwrap_or_default();
        assert!(!text.contains("null"), "{text}");
    }
}
