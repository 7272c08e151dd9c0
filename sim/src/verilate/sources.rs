//! Lists the C++ files of a Verilated model, and tells which of them run in every cycle.
//!
//! Verilator lists them by purpose in the makefile `*_classes.mk`. File names differ between versions, but the lists
//! have had the same names since 5.006 and before.

/// The files of a model, without the suffix `.cpp`.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Sources {
    /// The model's code that runs in every cycle.
    pub(super) fast: Vec<String>,
    /// The model's code that runs once.
    pub(super) slow: Vec<String>,
    /// Files of Verilator's library.
    pub(super) library: Vec<String>,
}

impl Sources {
    /// Reads the lists from the makefile.
    ///
    /// # Errors
    /// Says why they cannot be those of a model.
    pub(super) fn read(makefile: &str) -> Result<Sources, String> {
        let mut sources = Sources::default();
        for line in makefile.replace("\\\n", " ").lines() {
            let Some((name, files)) = line.split_once("+=") else { continue };
            let list = match name.trim() {
                "VM_CLASSES_FAST" | "VM_SUPPORT_FAST" => &mut sources.fast,
                "VM_CLASSES_SLOW" | "VM_SUPPORT_SLOW" => &mut sources.slow,
                "VM_GLOBAL_FAST" | "VM_GLOBAL_SLOW" => &mut sources.library,
                _ => continue,
            };
            list.extend(files.split_whitespace().map(String::from));
        }
        if sources.fast.is_empty() || sources.library.is_empty() {
            return Err("its makefile lists no files that run in every cycle, or no files of its library".into());
        }
        Ok(sources)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The lists of a model with waves, as written by 5.006 and 5.048.
    const OLD: &str = include_str!("tests/classes_5_006.mk");
    const NEW: &str = include_str!("tests/classes_5_048.mk");

    #[test]
    fn what_runs_in_every_cycle_is_known_in_every_version() {
        let old = Sources::read(OLD).expect("lists");
        let root = |name: &str| format!("Vt___024root__{name}");
        let fast = [root("DepSet_hce050b9b__0"), root("DepSet_he0091684__0"), "Vt__Trace__0".into()];
        assert_eq!(old.fast[0], "Vt");
        assert_eq!(old.fast[1..], fast);
        assert_eq!(old.slow, [&root("Slow"), &root("DepSet_he0091684__0__Slow"), "Vt__Syms", "Vt__Trace__0__Slow"]);
        let new = Sources::read(NEW).expect("lists");
        assert_eq!(new.fast, ["Vt", &root("0"), "Vt__Trace__0"]);
        assert_eq!(
            new.slow,
            [&root("Slow"), &root("0__Slow"), "Vt__Syms__Slow", "Vt__Trace__0__Slow", "Vt__TraceDecls__0__Slow"]
        );
        for sources in [old, new] {
            assert_eq!(sources.library, ["verilated", "verilated_fst_c", "verilated_threads"]);
        }
    }

    #[test]
    fn a_makefile_without_the_lists_is_refused() {
        for text in ["", "VM_C11 = 1\n", "VM_CLASSES_SLOW += \\\n\tVt__Slow \\\n", "VM_CLASSES_FAST += Vt\n"] {
            assert!(Sources::read(text).is_err(), "{text}");
        }
    }
}
