//! The inputs and options of a flow.

use super::board::Board;
use crate::config::HwConfig;
use std::time::Duration;

/// The inputs and options of a flow.
#[derive(Debug, Clone)]
pub struct FlowRequest<'a> {
    /// The board.
    pub board: &'a Board,
    /// The accelerator's configuration.
    pub config: &'a HwConfig,
    /// The accelerator's configuration as `--hw` names it: a preset, or a file.
    pub hw: &'a str,
    /// The shell's Verilog, whose top module is [`SHELL`](super::design::SHELL).
    pub shell: &'a str,
    /// The clock of shell and core to reach, MHz.
    pub mhz: f64,
    /// The router's seed.
    pub seed: u64,
    /// Whether to keep a result that is slower than `mhz`.
    pub allow_slow: bool,
    /// Whether to stop after the estimate, before place and route.
    pub estimate: bool,
    /// Time limit of each step; `None` for no limit.
    pub time_limit: Option<Duration>,
    /// Names the version of the netlist checker. Only results that it found itself are reported.
    pub checker: &'a str,
}
