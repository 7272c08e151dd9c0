//! The top module of a design with a link to the host.

use super::names::{SHELL, TOP};
use super::sdram::{Form, SdramPorts};
use crate::flow::board::{Board, CoreMemory, HostLink};
use std::fmt::Write as _;

/// A port of the link to the host.
struct Port {
    /// The Verilog keyword, padded to the same length.
    direction: &'static str,
    name: &'static str,
}

impl Port {
    const fn input(name: &'static str) -> Port {
        Port { direction: "input ", name }
    }

    const fn output(name: &'static str) -> Port {
        Port { direction: "output", name }
    }
}

/// Writes the top module, which connects pins, clock and shell.
pub(super) fn top(board: &Board, form: Form) -> String {
    let leds = board.leds.pins.len();
    let link: &[Port] = match board.host {
        HostLink::Uart { .. } => &[Port::input("uart_rx"), Port::output("uart_tx")],
        HostLink::Spi { .. } => {
            &[Port::input("spi_cs_n"), Port::input("spi_sck"), Port::input("spi_mosi"), Port::output("spi_miso")]
        }
        HostLink::Processor { .. } => &[],
    };
    let mut text = format!("// {}: its pins, its clock and the shell.\nmodule {TOP} (\n  input  wire clk", board.title);
    for Port { direction, name } in link {
        let _ = write!(text, ",\n  {direction} wire {name}");
    }
    if leds > 0 {
        let _ = write!(text, ",\n  output wire [{}:0] led", leds - 1);
    }
    let sdram = match &board.memory {
        CoreMemory::Sdram(chip) => Some(SdramPorts::new(chip, form)),
        _ => None,
    };
    text.extend(sdram.iter().map(|sdram| sdram.ports.as_str()));
    text.push_str("\n);\n\n  wire core_clk;\n  tw_clock u_clock (.clk_i(clk), .clk_o(core_clk));\n\n");
    if leds > 0 {
        let _ = writeln!(text, "  wire [{}:0] lamps;", leds - 1);
    }
    text.extend(sdram.iter().map(|sdram| sdram.wires.as_str()));
    let _ = write!(text, "  {SHELL} u_shell (\n    .clk(core_clk)");
    for Port { name, .. } in link {
        let _ = write!(text, ", .{name}({name})");
    }
    text.extend(sdram.iter().map(|sdram| sdram.joins.as_str()));
    let not = if board.leds.active_low { "~" } else { "" };
    if leds > 0 {
        let _ = write!(text, ", .leds(lamps)\n  );\n  assign led = {not}lamps;\n");
    } else {
        text.push_str("\n  );\n");
    }
    text.extend(sdram.iter().map(|sdram| sdram.body.as_str()));
    text.push_str("\nendmodule\n");
    text
}
