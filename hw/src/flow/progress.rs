//! What a flow tells while it runs.

use std::time::Duration;

/// What a step tells while it runs.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress<'a> {
    /// The step's results were in the cache.
    Cached(&'static str),
    /// It begins.
    Started(&'static str),
    /// It wrote a line.
    Line(&'a str),
    /// It is done after so long.
    Done(&'static str, Duration),
    /// Of the programs of a netlist's check so many have run.
    Running {
        /// The netlist.
        what: &'static str,
        /// Programs that have run.
        done: usize,
        /// All.
        of: usize,
    },
    /// The fastest clock that is expected of the routed design, and the one that is wanted, MHz.
    Estimated {
        /// The wanted clock.
        wanted: f64,
        /// The expected one.
        mhz: f64,
    },
}
