//! The SDRAM's part of a design: its ports, and the module at its pins.

use crate::flow::family::{Family, SdramCells};
use crate::flow::sdram::{Pins, Sdram};
use std::fmt::Write as _;

/// How bidirectional pins are written.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) enum Form {
    /// As cells of the part, for synthesis.
    Part,
    /// As three ports each, for a simulator without a high-impedance level: input, output, and output enable.
    Simulated,
}

/// The SDRAM's part of the top module, as Verilog.
pub(super) struct SdramPorts {
    /// The ports.
    pub(super) ports: String,
    /// The wires between pins and shell.
    pub(super) wires: String,
    /// The shell's connections.
    pub(super) joins: String,
    /// The logic at the pins.
    pub(super) body: String,
}

impl SdramPorts {
    pub(super) fn new(chip: &Sdram, form: Form) -> SdramPorts {
        let Pins { cke, cs, a, ba, dqm, dq, .. } = &chip.pins;
        let (mut ports, mut joins) = (String::from(",\n  output wire sdram_clk"), String::new());
        let mut body = String::new();
        for (port, pin, level) in [("sdram_cke", cke, 1), ("sdram_cs_n", cs, 0)] {
            if pin.is_some() {
                let _ = write!(ports, ",\n  output wire {port}");
                let _ = writeln!(body, "  assign {port} = 1'b{level};");
            }
        }
        let one = ["sdram_ras_n", "sdram_cas_n", "sdram_we_n"].map(|port| (port, None));
        let many = [("sdram_a", a), ("sdram_ba", ba), ("sdram_dqm", dqm)].map(|(port, pins)| (port, Some(pins.len())));
        for (port, pins) in one.into_iter().chain(many).filter(|(_, pins)| *pins != Some(0)) {
            let range = pins.map_or(String::new(), |pins| format!("[{}:0] ", pins - 1));
            let _ = write!(ports, ",\n  output wire {range}{port}");
            let _ = write!(joins, ",\n    .{port}({port})");
        }
        let top = dq.len().saturating_sub(1);
        let both: &[(&str, &str)] = match form {
            Form::Part => &[("inout ", "")],
            Form::Simulated => &[("input ", "_i"), ("output", "_o"), ("output", "_oe")],
        };
        let mut pins = String::new();
        for (direction, side) in both {
            let _ = write!(ports, ",\n  {direction} wire [{top}:0] sdram_dq{side}");
            let _ = write!(pins, ", .dq_io{side}(sdram_dq{side})");
        }
        joins.push_str(",\n    .sdram_dq_i(dq_in), .sdram_dq_o(dq_out), .sdram_dq_oe(dq_drive)");
        let _ = write!(
            body,
            "\n  tw_sdram_pins u_sdram_pins (\n    .clk_i(core_clk), .clk_o(sdram_clk), .drive_i(dq_drive), .dq_i(dq_out), \
             .dq_o(dq_in){pins}\n  );\n"
        );
        let wires = format!("  wire dq_drive;\n  wire [{top}:0] dq_out;\n  wire [{top}:0] dq_in;\n");
        SdramPorts { ports, wires, joins, body }
    }
}

/// Writes the module `tw_sdram_pins`, which makes the SDRAM's clock and drives its data pins; `None` if the flow does
/// not support SDRAM on the family. The clock rises in the middle of a cycle, half a cycle after the commands.
pub(super) fn pins_module(family: Family, chip: &Sdram, form: Form) -> Option<String> {
    let SdramCells { clock, data } = family.definition().sdram_cells.as_ref()?;
    let top = chip.geometry().data_bits.saturating_sub(1);
    let (pins, data) = match form {
        Form::Part => (format!("  inout  wire [{top}:0] dq_io"), *data),
        Form::Simulated => (
            format!(
                "  input  wire [{top}:0] dq_io_i,\n  output wire [{top}:0] dq_io_o,\n  output wire [{top}:0] dq_io_oe"
            ),
            "assign dq_io_o[i] = dq_i[i];\n      assign dq_io_oe[i] = drive_i;\n      \
             assign dq_o[i] = drive_i ? dq_i[i] : dq_io_i[i];",
        ),
    };
    Some(format!(
        "// The SDRAM's clock, which rises in the middle of a cycle of `clk_i`, and its data pins.
module tw_sdram_pins (
  input  wire clk_i,
  output wire clk_o,
  input  wire drive_i,
  input  wire [{top}:0] dq_i,
  output wire [{top}:0] dq_o,
{pins}
);

  {clock}
  generate
    genvar i;
    for (i = 0; i <= {top}; i = i + 1) begin : gen_dq
      {data}
    end
  endgenerate

endmodule
"
    ))
}
