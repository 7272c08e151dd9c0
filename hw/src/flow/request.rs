//! What is asked of a flow.

use super::board::Board;
use crate::config::HwConfig;
use std::time::Duration;

/// What is asked of a flow.
#[derive(Debug, Clone)]
pub struct Request<'a> {
    /// The board.
    pub board: &'a Board,
    /// The accelerator.
    pub config: &'a HwConfig,
    /// How `--hw` names it.
    pub hw: &'a str,
    /// The shell's Verilog, whose top module is [`SHELL`](super::design::SHELL).
    pub shell: &'a str,
    /// The clock to reach, MHz.
    pub mhz: f64,
    /// Where place and route begins.
    pub seed: u64,
    /// Whether a result that is slower than asked for is kept.
    pub allow_slow: bool,
    /// Whether all ends with the estimate, before placing and routing.
    pub estimate: bool,
    /// How long a step may take.
    pub time_limit: Option<Duration>,
    /// What names the program that checks netlists: what another found of them is not reported.
    pub checker: &'a str,
}
