//! Where a design meets a family's part: constraints, the core's clock, the pins of an SDRAM.

use super::Family;
use crate::flow::board::{Board, ports};
use crate::flow::clock::{self, Pll};
use crate::flow::design::Form;
use crate::flow::sdram::Sdram;
use std::fmt::Write as _;

impl Family {
    /// The constraints: where each port of the top module is.
    pub(in crate::flow) fn constraints(self, board: &Board) -> String {
        let mut text = String::new();
        for (port, pin) in ports(board) {
            // An iCE40's pins have the levels of their bank's supply.
            let levels = format!("LVCMOS{:.0}", 10.0 * board.volts(&port));
            let _ = match self {
                Family::Ice40 => writeln!(text, "set_io {port} {pin}"),
                Family::Ecp5 => {
                    let fast = if port.starts_with("sdram_") { " SLEWRATE=FAST" } else { "" };
                    writeln!(
                        text,
                        "LOCATE COMP \"{port}\" SITE \"{pin}\";\nIOBUF PORT \"{port}\" IO_TYPE={levels}{fast};"
                    )
                }
                Family::Gowin => writeln!(text, "IO_LOC \"{port}\" {pin};\nIO_PORT \"{port}\" IO_TYPE={levels};"),
                Family::Nexus => writeln!(
                    text,
                    "ldc_set_location -site {{{pin}}} [get_ports {{{port}}}]\nldc_set_port -iobuf {{IO_TYPE={levels}}} [get_ports {{{port}}}]"
                ),
                Family::Xc7 | Family::Xcup => Ok(()),
            };
        }
        if self == Family::Ecp5 {
            let _ = writeln!(text, "FREQUENCY PORT \"clk\" {} MHZ;", board.clock.mhz);
        }
        text
    }

    /// The module `tw_clock`, which makes the core's clock of the board's, and that clock in MHz: as near below the wanted one as
    /// the part comes.
    pub(in crate::flow) fn clock(self, board: &Board, wanted: f64) -> Result<(String, f64), String> {
        let input = board.clock.mhz;
        if (wanted - input).abs() < 1e-6 {
            return Ok((module(&[], "  assign clk_o = clk_i;\n"), input));
        }
        let (limits, body): (_, fn(&Pll) -> String) = match self {
            Family::Ice40 => (&clock::ICE40, ice40_pll),
            Family::Ecp5 => (&clock::ECP5, ecp5_pll),
            // The processor's loops make it.
            Family::Xc7 | Family::Xcup => return Ok((String::new(), wanted)),
            Family::Gowin | Family::Nexus => {
                return Err(format!(
                    "a board of {} runs at the clock of its pin, {input} MHz; ask for that",
                    self.name()
                ));
            }
        };
        let pll = clock::solve(limits, input, wanted).ok_or_else(|| {
            format!("its part cannot make a clock of {wanted} MHz out of {input} MHz; ask for another (--mhz)")
        })?;
        let body = body(&pll);
        let of = format!("{} MHz of {input} MHz, with the loop's oscillator at {} MHz.", pll.mhz, pll.oscillator_mhz);
        Ok((module(&[&of], &body), pll.mhz))
    }

    /// The module `tw_sdram_pins`, which makes an SDRAM's clock and drives its data pins, where the family's cells for that are
    /// known. The clock rises in the middle of a cycle, half a cycle behind the commands.
    pub(in crate::flow) fn sdram_pins(self, chip: &Sdram, form: Form) -> Option<String> {
        let top = chip.geometry().data_bits.saturating_sub(1);
        let (clock, data) = match self {
            Family::Ecp5 => (
                "ODDRX1F u_clk (.SCLK(clk_i), .RST(1'b0), .D0(1'b0), .D1(1'b1), .Q(clk_o));",
                "BB u_dq (.B(dq_io[i]), .I(dq_i[i]), .T(!drive_i), .O(dq_o[i]));",
            ),
            Family::Ice40 | Family::Gowin | Family::Nexus | Family::Xc7 | Family::Xcup => return None,
        };
        let (pins, data) = match form {
            Form::Part => (format!("  inout  wire [{top}:0] dq_io"), data),
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

    /// Models of the cells of the family that a board's design names itself, for its clock and its pins: plain Verilog. None where it
    /// names none.
    pub fn board_cells(self) -> Option<&'static str> {
        match self {
            Family::Ice40 => Some(include_str!("../../../cells/ice40_board.v")),
            Family::Ecp5 => Some(include_str!("../../../cells/ecp5_board.v")),
            Family::Gowin | Family::Nexus | Family::Xc7 | Family::Xcup => None,
        }
    }
}

fn module(comments: &[&str], body: &str) -> String {
    let comments: String = comments.iter().map(|line| format!("// {line}\n")).collect();
    format!("{comments}module tw_clock (\n  input  wire clk_i,\n  output wire clk_o\n);\n\n{body}\nendmodule\n")
}

fn ice40_pll(pll: &Pll) -> String {
    let filter = match pll.detector_mhz {
        mhz if mhz < 17.0 => 1,
        mhz if mhz < 26.0 => 2,
        mhz if mhz < 44.0 => 3,
        mhz if mhz < 66.0 => 4,
        mhz if mhz < 101.0 => 5,
        _ => 6,
    };
    format!(
        "  SB_PLL40_CORE #(\n    .FEEDBACK_PATH(\"SIMPLE\"), .DIVR(4'd{}), .DIVF(7'd{}), .DIVQ(3'd{}), .FILTER_RANGE(3'd{filter})\n  ) u_pll (\n    \
         .RESETB(1'b1), .BYPASS(1'b0), .REFERENCECLK(clk_i), .PLLOUTGLOBAL(clk_o)\n  );\n",
        pll.reference - 1,
        pll.feedback - 1,
        pll.output.ilog2(),
    )
}

/// A gate holds the clock back until the loop is locked.
fn ecp5_pll(pll: &Pll) -> String {
    format!(
        "  wire locked, loop_clk;\n  (* ICP_CURRENT=\"12\" *) (* LPF_RESISTOR=\"8\" *) (* MFG_ENABLE_FILTEROPAMP=\"1\" *) (* MFG_GMCREF_SEL=\"2\" *)\n  \
         EHXPLLL #(\n    .PLLRST_ENA(\"DISABLED\"), .INTFB_WAKE(\"DISABLED\"), .STDBY_ENABLE(\"DISABLED\"), .DPHASE_SOURCE(\"DISABLED\"),\n    \
         .OUTDIVIDER_MUXA(\"DIVA\"), .OUTDIVIDER_MUXB(\"DIVB\"), .OUTDIVIDER_MUXC(\"DIVC\"), .OUTDIVIDER_MUXD(\"DIVD\"),\n    \
         .CLKOP_ENABLE(\"ENABLED\"), .CLKOP_FPHASE(0), .FEEDBK_PATH(\"CLKOP\"),\n    \
         .CLKI_DIV({}), .CLKFB_DIV({}), .CLKOP_DIV({}), .CLKOP_CPHASE({})\n  ) u_pll (\n    \
         .RST(1'b0), .STDBY(1'b0), .CLKI(clk_i), .CLKOP(loop_clk), .CLKFB(loop_clk), .CLKINTFB(), .PHASESEL0(1'b0), .PHASESEL1(1'b0),\n    \
         .PHASEDIR(1'b1), .PHASESTEP(1'b1), .PHASELOADREG(1'b1), .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0), .LOCK(locked)\n  );\n  \
         DCCA u_gate (.CLKI(loop_clk), .CE(locked), .CLKO(clk_o));\n",
        pll.reference,
        pll.feedback,
        pll.output,
        pll.output / 2,
    )
}
