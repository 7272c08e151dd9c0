//! The constraints of a board's design.

use crate::flow::board::{Board, ports};
use crate::flow::family::Pin;
use crate::flow::port_pin::PortPin;

/// Writes the constraints for the family's router: the pin of each port of the top module with its level, and the
/// clock's frequency.
pub(in crate::flow) fn constraints(board: &Board) -> String {
    let family = board.family.definition();
    let mut text = String::new();
    for PortPin { port, pin } in ports(board) {
        text += &(family.pin_constraints)(&Pin { port: &port, pin: &pin, volts: board.volts(&port) });
    }
    text + &(family.clock_constraints)(board.clock.mhz)
}
