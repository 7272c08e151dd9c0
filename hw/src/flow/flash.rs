//! Loads bitstreams onto boards with openFPGALoader.

use super::board::Board;
use super::files::read_json;
use super::report::{Bitstream, REPORT};
use super::steps::Progress;
use super::{FlowError, call, files, tools};
use serde::Deserialize;
use std::path::{Path, PathBuf};

pub(super) const LOG: &str = "flash.log";

/// The fields of a report that flashing needs.
#[derive(Deserialize)]
struct FlashReport {
    board: String,
    #[serde(default)]
    link: String,
    wiring: Option<String>,
    config: String,
    /// The configuration as `--hw` names it; `None` in reports that have only its name.
    hw: Option<String>,
    bitstream: Option<Bitstream>,
    refused: Option<String>,
    #[serde(default)]
    slow: bool,
    fmax_mhz: Option<f64>,
    #[serde(default)]
    clock_mhz: f64,
    #[serde(default)]
    checks: Vec<Check>,
}

/// The fields of a netlist check that flashing needs.
#[derive(Deserialize)]
struct Check {
    netlist: String,
    difference: Option<String>,
}

/// Options of flashing.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// The destination of the bitstream.
    pub onto: Onto,
    /// Whether to load a bitstream whose netlists differ from the sources.
    pub force: bool,
    /// Whether to load a bitstream that is slower than its clock.
    pub allow_slow: bool,
}

/// How to use a board after flashing.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flashed {
    /// The device name for `--device`, with PORT in place of the host's port.
    pub device: String,
    /// The configuration for `--hw`.
    pub hw: String,
    /// How to connect the board to the computer, if the report has it.
    pub wiring: Option<String>,
    /// Why the design may compute wrong results; `None` if there is no such reason.
    pub doubt: Option<String>,
}

/// The destination of a bitstream.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onto {
    /// The configuration flash, from which the part boots.
    Flash,
    /// The part's own memory, until it loses power.
    Part,
}

/// Finds the bitstream that `synthesize` left in `dir` for a board, and how to use the board with it.
///
/// # Errors
/// [`FlowError`] if `dir` has no report, a report of another board or one without a bitstream; unless the options allow
/// it, also if a netlist differs from the sources or the design is slower than its clock.
fn bitstream(board: &Board, dir: &Path, options: Options) -> Result<(PathBuf, Flashed), FlowError> {
    let not = |reason| FlowError::NotFlashed { board: board.name.clone(), dir: dir.into(), reason };
    let report = dir.join(REPORT);
    if !report.exists() {
        let name = &board.name;
        return Err(not(format!("it has no {REPORT}; give a folder that `tilewright synth --board {name} -o` wrote")));
    }
    let made: FlashReport = read_json(&report, "the report of a board's bitstream")?;
    if made.board != board.name {
        return Err(not(format!("it has a bitstream for {}", made.board)));
    }
    let Some(expected) = &made.bitstream else {
        let why = match (&made.refused, board.family.router()) {
            (Some(refused), _) => refused,
            (None, Some(_)) => "only an estimate was made; run synth without --estimate",
            (None, None) => "no open tool makes one for this part",
        };
        return Err(not(format!("it has no bitstream: {why}")));
    };
    let wrong = made.checks.iter().find_map(|check| Some((&check.netlist, check.difference.as_ref()?)));
    if let Some((netlist, difference)) = wrong.filter(|_| !options.force) {
        let first = difference.lines().next().unwrap_or_default();
        return Err(not(format!(
            "its {netlist} differs from the sources ({first}); synthesize it again, or flash it anyway (--force)"
        )));
    }
    let fastest = made.fmax_mhz.unwrap_or_default();
    let doubt = made.slow.then(|| {
        format!(
            "its core runs at {:.2} MHz, but its fastest clock is {fastest:.2} MHz, so it may compute wrong results",
            made.clock_mhz
        )
    });
    if let Some(doubt) = doubt.as_ref().filter(|_| !options.allow_slow) {
        return Err(not(format!(
            "{doubt}; synthesize it for a slower clock (--mhz), or flash it anyway (--allow-slow)"
        )));
    }
    let path = dir.join(&expected.file);
    let bytes = std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?;
    if Bitstream::of(&expected.file, &bytes) != *expected {
        return Err(not(format!("{} does not have the hash in its report; synthesize it again", path.display())));
    }
    Ok((path, Flashed { device: made.link, hw: made.hw.unwrap_or(made.config), wiring: made.wiring, doubt }))
}

/// Loads the bitstream that `synthesize` left in `dir` onto a board, and returns how to use the board. Writes the
/// output of openFPGALoader to `dir/flash.log`.
///
/// # Errors
/// [`FlowError::NotFlashed`] if `dir` has no report, a report of another board or one without a bitstream, or if the
/// board has no `flash`; unless the options allow it, also if a netlist differs from the sources or the design is
/// slower than its clock. [`FlowError::MissingTool`] without openFPGALoader; [`FlowError::Tool`] if it fails.
pub fn flash(
    board: &Board,
    dir: &Path,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Flashed, FlowError> {
    let (path, flashed) = bitstream(board, dir, options)?;
    if board.flash.is_empty() {
        let reason = format!(
            "its board.toml does not say how openFPGALoader names the board (`flash`); load {} with the board's own tool",
            path.display()
        );
        return Err(FlowError::NotFlashed { board: board.name.clone(), dir: dir.into(), reason });
    }
    bring(&tools::find_loader()?, &board.flash, options.onto, &path, progress)?;
    Ok(flashed)
}

/// Runs the loader in the bitstream's folder. `board` is the loader's name of the board.
fn bring(
    loader: &tools::Tool,
    board: &str,
    onto: Onto,
    path: &Path,
    progress: &mut dyn FnMut(Progress),
) -> Result<(), FlowError> {
    let onto = match onto {
        Onto::Flash => "--write-flash",
        Onto::Part => "--write-sram",
    };
    let dir = path.parent().unwrap_or(Path::new("."));
    let file = path.file_name().unwrap_or_default().to_string_lossy().into_owned();
    let arguments = ["--board", board, onto, &file].map(String::from);
    let log = dir.join(LOG);
    files::remove(&log)?;
    let ended = call::call(loader, &arguments, dir, LOG, progress)?;
    if ended.is_some_and(|ended| ended.success()) {
        return Ok(());
    }
    let limit = loader.time_limit.unwrap_or_default().as_secs_f64() / 60.0;
    let late = || {
        format!(
            "it did not end within {limit} minutes and was killed; check the cable and the board's power, and flash again"
        )
    };
    let reason = ended.map_or_else(late, |ended| ended.to_string());
    Err(call::failed("flash", &reason, log))
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;
    use std::time::{Duration, Instant};

    #[test]
    fn a_loader_that_hangs_is_ended() {
        let dir = tempfile::tempdir().unwrap();
        let command = ["sh", "-c", "echo Detail: no answer; exec sleep 60"].map(String::from).to_vec();
        let time_limit = Some(Duration::from_millis(300));
        let loader = tools::Tool { name: "loader", command, version: String::new(), time_limit };
        let begun = Instant::now();
        let error = bring(&loader, "ulx3s", Onto::Flash, &dir.path().join("board.bit"), &mut |_| {}).unwrap_err();
        let error = error.to_string();
        assert!(error.contains("did not end within 0.005 minutes") && error.contains("no answer"), "{error}");
        assert!(error.contains("check the cable") && begun.elapsed() < Duration::from_secs(50), "{error}");
    }
}
