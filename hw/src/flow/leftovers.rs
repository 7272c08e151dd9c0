//! Removes the files of an earlier flow from a folder, so that they are not mistaken for results of the next one.

use super::family::Family;
use super::files::remove;
use super::{FlowError, design, flash, report, steps, zynq};
use crate::rtl::{PART, SOURCES};
use std::collections::BTreeSet;
use std::path::Path;

/// Bitstreams, reports and the log of flashing: files that only a flow writes.
fn results() -> impl Iterator<Item = String> {
    let texts = [report::REPORT, report::SUMMARY, flash::LOG].into_iter();
    texts.chain(Family::ALL.into_iter().map(Family::bitstream_file)).map(String::from)
}

/// All files that a flow of any board and configuration can write, except the script, which marks a folder as a flow's.
fn written() -> BTreeSet<String> {
    let base = |path: &str| path.rsplit('/').next().unwrap_or(path).to_string();
    let mut names: BTreeSet<String> = results().chain(SOURCES.iter().map(|(path, _)| base(path))).collect();
    names.extend(steps::logs());
    names.extend([base(PART), format!("{}.v", design::TOP)]);
    let own = [
        design::CONFIG,
        design::SHELL_FILE,
        design::CLOCK,
        design::SDRAM_PINS,
        design::NETLIST,
        design::NETLIST_VERILOG,
        design::ROUTED_NETLIST,
        design::ROUTE_REPORT,
    ];
    names.extend(own.into_iter().chain(zynq::FILES).map(String::from));
    for family in Family::ALL {
        let files = &family.definition().files;
        names.extend([files.routed, files.constraints].map(String::from));
        names.extend(family.synthesis_files().iter().map(|file| file.name.to_string()));
    }
    names.remove("");
    names
}

/// Removes the files of an earlier flow from a folder, the report first. Without a flow's script in the folder, removes
/// only bitstreams, reports and the log of flashing: other files could be the user's own.
///
/// # Errors
/// [`FlowError::Io`].
pub(super) fn clear(dir: &Path) -> Result<(), FlowError> {
    let script = dir.join(design::SCRIPT);
    let of_a_flow = std::fs::read_to_string(&script).is_ok_and(|text| text.contains(&design::top_option()));
    results().try_for_each(|name| remove(&dir.join(name)))?;
    if of_a_flow {
        written().into_iter().try_for_each(|name| remove(&dir.join(name)))?;
        remove(&script)?;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::board::Board;
    use crate::flow::{FlowRequest, write_sources};

    fn names(dir: &Path) -> Vec<String> {
        let mut names: Vec<String> =
            std::fs::read_dir(dir).unwrap().map(|file| file.unwrap().file_name().into_string().unwrap()).collect();
        names.sort();
        names
    }

    /// Writes the sources of all boards into one folder, one after the other: only the last board's and the user's own
    /// file are left.
    #[test]
    fn sources_and_results_of_an_earlier_flow_do_not_stay() {
        let dir = tempfile::tempdir().unwrap();
        let dir = dir.path();
        std::fs::write(dir.join(design::SCRIPT), format!("read_slang {} old.sv", design::top_option())).unwrap();
        for name in Board::names() {
            let board = Board::load(&name).unwrap();
            let config = board.default_config().unwrap();
            let (mhz, hw) = (board.core_mhz, &board.hw);
            let (seed, allow_slow, estimate, time_limit, checker) = (1, false, false, None, "");
            let (board, config) = (&board, &config);
            let shell = "";
            let request =
                FlowRequest { board, config, hw, shell, mhz, seed, allow_slow, estimate, time_limit, checker };
            let alone = tempfile::tempdir().unwrap();
            write_sources(&request, alone.path()).unwrap();
            for left in ["report.json", "summary.txt", "board.bit", "routed.json", "synthesis.log", "mine.txt"] {
                std::fs::write(dir.join(left), "old").unwrap();
            }
            write_sources(&request, dir).unwrap();
            let mut expected = names(alone.path());
            expected.push("mine.txt".into());
            expected.sort();
            assert_eq!(names(dir), expected, "{name}");
        }
    }

    #[test]
    fn files_that_may_be_somebodys_own_stay_where_no_flow_was() {
        let dir = tempfile::tempdir().unwrap();
        for name in ["build.tcl", "pins.pcf", "report.json", "board.bin", "synth.ys"] {
            std::fs::write(dir.path().join(name), "mine").unwrap();
        }
        clear(dir.path()).unwrap();
        assert_eq!(names(dir.path()), ["build.tcl", "pins.pcf", "synth.ys"]);
    }
}
