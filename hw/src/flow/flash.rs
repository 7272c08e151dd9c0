//! A bitstream onto its board, by openFPGALoader.

use super::board::Board;
use super::files::read_json;
use super::report::{Bitstream, REPORT};
use super::steps::Progress;
use super::{FlowError, call, files, tools};
use serde::Deserialize;
use std::path::{Path, PathBuf};

pub(super) const LOG: &str = "flash.log";

/// What of a report says which board and bitstream it is of.
#[derive(Deserialize)]
struct Made {
    board: String,
    #[serde(default)]
    link: String,
    wiring: Option<String>,
    config: String,
    /// How `--hw` names the configuration, where that is not its name.
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

/// What of a netlist's check says whether it is as the sources.
#[derive(Deserialize)]
struct Check {
    netlist: String,
    difference: Option<String>,
}

/// What a bitstream is brought with.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Where it goes.
    pub onto: Onto,
    /// Whether one whose netlists differ from the sources goes there too.
    pub force: bool,
    /// Whether one that is slower than its clock goes there too.
    pub allow_slow: bool,
}

/// A board that has its bitstream, for the program's options.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Flashed {
    /// `--device`, with the port that only the host knows as PORT.
    pub device: String,
    /// `--hw`.
    pub hw: String,
    /// How a person joins the board to the computer, where the report tells.
    pub wiring: Option<String>,
    /// What speaks against trusting it, though it was brought there.
    pub doubt: Option<String>,
}

/// Where a bitstream goes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Onto {
    /// The configuration flash, from which the part starts.
    Flash,
    /// The part alone, until it loses power.
    Part,
}

/// The bitstream that `synthesize` left in `dir` for a board, and how a host then reaches the board.
///
/// # Errors
/// [`FlowError`]: no report there, one of another board, of a result without its bitstream, or, unless the options take
/// it, of one that does not compute what the sources say or is slower than its clock.
fn bitstream(board: &Board, dir: &Path, options: Options) -> Result<(PathBuf, Flashed), FlowError> {
    let not = |reason| FlowError::NotFlashed { board: board.name.clone(), dir: dir.into(), reason };
    let report = dir.join(REPORT);
    if !report.exists() {
        let name = &board.name;
        return Err(not(format!("it has no {REPORT}; give a folder that `tilewright synth --board {name} -o` wrote")));
    }
    let made: Made = read_json(&report, "the report of a board's bitstream")?;
    if made.board != board.name {
        return Err(not(format!("it holds a bitstream for {}", made.board)));
    }
    let Some(expected) = &made.bitstream else {
        let why = match (&made.refused, board.family.router()) {
            (Some(refused), _) => refused,
            (None, Some(_)) => "an estimate alone was made; synthesize it without --estimate",
            (None, None) => "no open tool makes one for its part",
        };
        return Err(not(format!("it holds no bitstream, because {why}")));
    };
    let wrong = made.checks.iter().find_map(|check| Some((&check.netlist, check.difference.as_ref()?)));
    if let Some((netlist, difference)) = wrong.filter(|_| !options.force) {
        let first = difference.lines().next().unwrap_or_default();
        return Err(not(format!(
            "its {netlist} differs from the sources ({first}); synthesize it anew, or flash it all the same (--force)"
        )));
    }
    let fastest = made.fmax_mhz.unwrap_or_default();
    let doubt = made.slow.then(|| {
        format!(
            "its core runs at {:.2} MHz, and {fastest:.2} MHz is its fastest clock, so that it may compute wrongly",
            made.clock_mhz
        )
    });
    if let Some(doubt) = doubt.as_ref().filter(|_| !options.allow_slow) {
        return Err(not(format!(
            "{doubt}; synthesize it for a slower one (--mhz), or flash it all the same (--allow-slow)"
        )));
    }
    let path = dir.join(&expected.file);
    let bytes = std::fs::read(&path).map_err(|error| FlowError::io(&path, &error))?;
    if Bitstream::of(&expected.file, &bytes) != *expected {
        return Err(not(format!("{} is not the file that its report names; synthesize it again", path.display())));
    }
    Ok((path, Flashed { device: made.link, hw: made.hw.unwrap_or(made.config), wiring: made.wiring, doubt }))
}

/// Brings the bitstream that `synthesize` left in `dir` onto a board, and tells how a host then asks for it; what
/// openFPGALoader prints is in `dir/flash.log`.
///
/// # Errors
/// [`FlowError`]: as [`bitstream`]; [`FlowError::MissingTool`] without openFPGALoader; [`FlowError::Tool`] where it
/// fails.
pub fn flash(
    board: &Board,
    dir: &Path,
    options: Options,
    progress: &mut dyn FnMut(Progress),
) -> Result<Flashed, FlowError> {
    let (path, flashed) = bitstream(board, dir, options)?;
    if board.flash.is_empty() {
        let reason = format!(
            "the board's board.toml has no `flash`, openFPGALoader's name of it; give {} to its own tool",
            path.display()
        );
        return Err(FlowError::NotFlashed { board: board.name.clone(), dir: dir.into(), reason });
    }
    bring(&tools::find_loader()?, &board.flash, options.onto, &path, progress)?;
    Ok(flashed)
}

/// Calls a loader, which knows the board by a name, in the bitstream's folder.
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
            "it did not end within {limit} minutes and was killed; see to the cable and the board's power, and flash again"
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
        assert!(error.contains("see to the cable") && begun.elapsed() < Duration::from_secs(50), "{error}");
    }
}
