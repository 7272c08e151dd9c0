//! A cache of the results of netlist checks, by the steps that made the netlists, so that a later flow with the same
//! steps reports them too.

use super::family::Family;
use super::files;
use super::report::NetlistCheck;
use super::steps::Done;
use super::{FlowError, FlowOutcome};
use crate::cache;
use sha2::{Digest, Sha256};
use std::path::{Path, PathBuf};

/// Prefix of the names of folders.
const PREFIX: &str = "checks-";
/// The code that prepares netlists for simulation. A change of it makes old results invalid.
const MODELING: [&str; 2] = [include_str!("model.rs"), include_str!("routed.rs")];

/// Random programs that a check runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct RandomPrograms {
    /// Number of programs.
    pub count: u64,
    /// Seed of the first program.
    pub seed: u64,
}

impl FlowOutcome {
    /// Keeps the results of a checker ([`super::FlowRequest::checker`]) for some random programs, in place of earlier
    /// results for the same programs.
    ///
    /// # Errors
    /// [`FlowError::Io`].
    pub fn keep_checks(
        &self,
        cache: &Path,
        checker: &str,
        RandomPrograms { count, seed }: RandomPrograms,
        checks: &[NetlistCheck],
    ) -> Result<(), FlowError> {
        let file = folder(cache, checker, self.steps()).join(format!("{count}-{seed}.json"));
        cache::remove_unused(cache, PREFIX);
        files::write(&file, &serde_json::to_vec_pretty(checks).unwrap_or_default())
    }

    /// Returns the steps whose results are checked.
    fn steps(&self) -> [Option<&Done>; 3] {
        [Some(&self.synthesized), self.routed.as_ref(), self.packed.as_ref()]
    }
}

/// Returns the kept results of a checker for these steps.
///
/// Results with a difference come first, then those that checked the most stages, then those with the most programs.
/// Files that cannot be read are ignored.
pub(super) fn kept(cache: &Path, checker: &str, steps: [Option<&Done>; 3]) -> Vec<NetlistCheck> {
    let folder = folder(cache, checker, steps);
    cache::touch(&folder);
    let files = std::fs::read_dir(folder).into_iter().flatten().flatten();
    let found = files.filter_map(|file| serde_json::from_slice(&std::fs::read(file.path()).ok()?).ok());
    let worth = |checks: &Vec<NetlistCheck>| {
        let differs = NetlistCheck::any_differs(checks);
        let checked = checks.iter().filter(|check| check.unchecked.is_none()).count();
        (differs, checked, checks.iter().map(|check| check.programs).max())
    };
    found.max_by_key(worth).unwrap_or_default()
}

fn folder(cache: &Path, checker: &str, steps: [Option<&Done>; 3]) -> PathBuf {
    let mut sha = Sha256::new();
    // Other checkers, or other models of the cells, can give other results.
    sha.update(checker);
    MODELING.iter().for_each(|text| sha.update(text));
    for family in Family::ALL.map(Family::definition) {
        let models = [family.own_models, family.board_cells];
        models.into_iter().flatten().for_each(|text| sha.update(text));
        sha.update(format!("{:?}", family.open_inputs));
    }
    for step in steps {
        sha.update(step.map_or("", Done::key));
        sha.update("\n");
    }
    let key: String = sha.finalize()[..12].iter().map(|byte| format!("{byte:02x}")).collect();
    cache.join(format!("{PREFIX}{key}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn of_what_was_found_a_difference_stays_and_most_programs_stand_for_fewer() {
        let dir = tempfile::tempdir().unwrap();
        let step = |name: &str| Done::of(dir.path().join(name), &[]);
        let (synthesized, routed, other) = (step("synth-1"), step("synth-2"), step("synth-3"));
        let steps = [Some(&synthesized), Some(&routed), None];
        let keep = |name: &str, programs: u64, difference: Option<&str>| {
            let netlist = "routed netlist".to_string();
            let difference = difference.map(String::from);
            let check = NetlistCheck { netlist, programs, difference, ..NetlistCheck::default() };
            let file = folder(dir.path(), "one", steps).join(name);
            files::write(&file, &serde_json::to_vec(&[check]).unwrap()).unwrap();
        };
        let found = || kept(dir.path(), "one", steps).first().map(|check| (check.programs, check.difference.clone()));
        assert_eq!(found(), None);
        keep("100-1.json", 100, None);
        keep("4-1.json", 4, None);
        assert_eq!(found(), Some((100, None)));
        keep("20-7.json", 13, Some("program 13"));
        assert_eq!(found(), Some((13, Some("program 13".into()))));
        // More programs on some stages do not hide a stage that was checked for the first time.
        let file = folder(dir.path(), "one", [Some(&synthesized), None, None]);
        let unread = NetlistCheck { unchecked: Some("no reader".into()), ..NetlistCheck::default() };
        let read = |programs| NetlistCheck { programs, ..NetlistCheck::default() };
        for (name, checks) in [("100-1.json", [read(100), unread]), ("20-1.json", [read(20), read(20)])] {
            files::write(&file.join(name), &serde_json::to_vec(&checks).unwrap()).unwrap();
        }
        assert_eq!(kept(dir.path(), "one", [Some(&synthesized), None, None])[1].programs, 20);
        // Invalid files are ignored, and other netlists have results of their own.
        std::fs::write(folder(dir.path(), "one", steps).join("5-1.json"), "[").unwrap();
        assert_eq!(found(), Some((13, Some("program 13".into()))));
        assert_eq!(kept(dir.path(), "one", [Some(&synthesized), Some(&other), None]), []);
        assert_eq!(kept(dir.path(), "another", steps), []);
        keep("20-7.json", 20, None);
        assert_eq!(found(), Some((100, None)));
    }
}
