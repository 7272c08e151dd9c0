//! Progress of a flow.

use std::time::Duration;

/// An event of a running flow. Names are those of steps.
#[derive(Debug, Clone, PartialEq)]
pub enum Progress<'a> {
    /// A step's results were in the cache.
    Cached(&'static str),
    /// A step begins.
    Started(&'static str),
    /// A step's program wrote a line.
    Line(&'a str),
    /// A step is done, with the time that it took.
    Done(&'static str, Duration),
    /// A netlist check has run some of its programs.
    Running {
        /// The netlist.
        what: &'static str,
        /// Number of programs that have run.
        done: usize,
        /// Number of all programs.
        of: usize,
    },
    /// The synthesized netlist was estimated.
    Estimated {
        /// The clock that was asked for, MHz.
        wanted: f64,
        /// The fastest clock expected after routing, MHz.
        mhz: f64,
    },
}
