//! Families of parts: what synthesis, routing, packing, constraints and clocks look like in each.

use super::board::{Board, Host};
use super::clock::{self, Pll};
use serde::Deserialize;
use std::fmt::Write as _;

/// A family of parts.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Family {
    /// Lattice iCE40 LP, HX and UP.
    Ice40,
    /// Lattice ECP5.
    Ecp5,
}

/// What a part has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The name in board files.
    pub name: &'static str,
    /// The option that names it to nextpnr.
    pub option: &'static str,
    /// Logic cells: a look-up table of four inputs and a register each.
    pub luts: u64,
    /// Block RAMs.
    pub brams: u64,
    /// Multiplier blocks.
    pub dsps: u64,
}

const fn part(name: &'static str, option: &'static str, luts: u64, brams: u64, dsps: u64) -> Part {
    Part { name, option, luts, brams, dsps }
}

const ICE40_PARTS: &[Part] = &[
    part("hx1k", "--hx1k", 1280, 16, 0),
    part("hx4k", "--hx4k", 3520, 20, 0),
    part("hx8k", "--hx8k", 7680, 32, 0),
    part("up5k", "--up5k", 5280, 30, 8),
];

const ECP5_PARTS: &[Part] = &[
    part("LFE5U-12F", "--12k", 24288, 56, 28),
    part("LFE5U-25F", "--25k", 24288, 56, 28),
    part("LFE5U-45F", "--45k", 43848, 108, 72),
    part("LFE5U-85F", "--85k", 83640, 208, 156),
    part("LFE5UM5G-85F", "--um5g-85k", 83640, 208, 156),
];

/// Kinds of cells of a netlist that a part's resources are counted in.
pub(super) struct Cells {
    pub(super) lut: &'static [&'static str],
    pub(super) register: &'static [&'static str],
    pub(super) bram: &'static [&'static str],
    pub(super) dsp: &'static [&'static str],
    /// Look-up tables that a carry cell takes beside those counted.
    pub(super) carry: &'static [(&'static str, u64)],
}

impl Family {
    /// Its parts.
    pub fn parts(self) -> &'static [Part] {
        match self {
            Family::Ice40 => ICE40_PARTS,
            Family::Ecp5 => ECP5_PARTS,
        }
    }

    /// The name in board files.
    pub fn name(self) -> &'static str {
        match self {
            Family::Ice40 => "ice40",
            Family::Ecp5 => "ecp5",
        }
    }

    pub(super) fn part(self, device: &str) -> Option<&'static Part> {
        self.parts().iter().find(|part| part.name == device)
    }

    /// Says what is wrong with a board's part.
    pub(super) fn check_part(self, board: &Board) -> Result<(), String> {
        if self.part(&board.device).is_none() {
            let names: Vec<&str> = self.parts().iter().map(|part| part.name).collect();
            return Err(format!("device is {}; of {} there are {}", board.device, self.name(), names.join(", ")));
        }
        Ok(())
    }

    /// The Yosys commands that map a design whose top module is `top` to the family's cells.
    pub(super) fn synthesis(self, top: &str) -> Vec<String> {
        match self {
            Family::Ice40 => vec![format!("synth_ice40 -abc9 -device hx -top {top}")],
            Family::Ecp5 => vec![format!("synth_ecp5 -top {top}")],
        }
    }

    /// The simulation models of the family's cells, in Yosys's folder of shared files.
    pub fn cell_models(self) -> &'static str {
        match self {
            Family::Ice40 => "ice40/cells_sim.v",
            Family::Ecp5 => "ecp5/cells_sim.v",
        }
    }

    pub(super) fn cells(self) -> Cells {
        match self {
            Family::Ice40 => Cells {
                lut: &["SB_LUT4"],
                register: &["SB_DFF"],
                bram: &["SB_RAM40_4K"],
                dsp: &["SB_MAC16"],
                carry: &[],
            },
            Family::Ecp5 => Cells {
                lut: &["LUT4"],
                register: &["TRELLIS_FF"],
                bram: &["DP16KD", "PDPW16KD"],
                dsp: &["MULT18X18D"],
                // Four look-up tables hold the distributed RAM and two more write it.
                carry: &[("CCU2C", 2), ("TRELLIS_DPR16X4", 6)],
            },
        }
    }

    /// The place-and-route program, if there is an open one.
    pub fn router(self) -> Option<&'static str> {
        match self {
            Family::Ice40 => Some("nextpnr-ice40"),
            Family::Ecp5 => Some("nextpnr-ecp5"),
        }
    }

    /// The program that makes a bitstream of what the router wrote.
    pub fn packer(self) -> &'static str {
        match self {
            Family::Ice40 => "icepack",
            Family::Ecp5 => "ecppack",
        }
    }

    /// The ending of the constraints' file.
    pub(super) fn constraints_file(self) -> &'static str {
        match self {
            Family::Ice40 => "pins.pcf",
            Family::Ecp5 => "pins.lpf",
        }
    }

    /// The file that the router writes for the packer.
    pub(super) fn routed_file(self) -> &'static str {
        match self {
            Family::Ice40 => "board.asc",
            Family::Ecp5 => "board.config",
        }
    }

    /// The bitstream.
    pub fn bitstream_file(self) -> &'static str {
        match self {
            Family::Ice40 => "board.bin",
            Family::Ecp5 => "board.bit",
        }
    }

    /// The router's arguments but for the files, the clock and the seed.
    pub(super) fn route_options(self, board: &Board) -> Vec<String> {
        let option = self.part(&board.device).map_or("", |part| part.option);
        let mut options = vec![option.to_string(), "--package".into(), board.package.clone()];
        if !board.speed.is_empty() {
            options.extend(["--speed".into(), board.speed.clone()]);
        }
        options
    }

    /// The options that name the constraints and the router's result.
    pub(super) fn route_files(self) -> [&'static str; 2] {
        match self {
            Family::Ice40 => ["--pcf", "--asc"],
            Family::Ecp5 => ["--lpf", "--textcfg"],
        }
    }

    /// The packer's arguments.
    pub(super) fn pack_options(self) -> Vec<String> {
        match self {
            Family::Ice40 => vec![self.routed_file().into(), self.bitstream_file().into()],
            Family::Ecp5 => {
                vec![
                    "--compress".into(),
                    "--input".into(),
                    self.routed_file().into(),
                    "--bit".into(),
                    self.bitstream_file().into(),
                ]
            }
        }
    }

    /// The constraints: where each port of the top module is.
    pub(super) fn constraints(self, board: &Board) -> String {
        let mut text = String::new();
        for (port, pin) in ports(board) {
            let _ = match self {
                Family::Ice40 => writeln!(text, "set_io {port} {pin}"),
                Family::Ecp5 => {
                    writeln!(text, "LOCATE COMP \"{port}\" SITE \"{pin}\";\nIOBUF PORT \"{port}\" IO_TYPE=LVCMOS33;")
                }
            };
        }
        if self == Family::Ecp5 {
            let _ = writeln!(text, "FREQUENCY PORT \"clk\" {} MHZ;", board.clock.mhz);
        }
        text
    }

    /// The module `tw_clock`, which makes the core's clock of the board's, and that clock in MHz: as near below the wanted one as
    /// the part comes.
    pub(super) fn clock(self, board: &Board, wanted: f64) -> Result<(String, f64), String> {
        let input = board.clock.mhz;
        if (wanted - input).abs() < 1e-6 {
            return Ok((module(&[], "  assign clk_o = clk_i;\n"), input));
        }
        let limits = match self {
            Family::Ice40 => &clock::ICE40,
            Family::Ecp5 => &clock::ECP5,
        };
        let pll = clock::solve(limits, input, wanted).ok_or_else(|| {
            format!("its part cannot make a clock of {wanted} MHz out of {input} MHz; ask for another (--mhz)")
        })?;
        let body = match self {
            Family::Ice40 => ice40_pll(&pll),
            Family::Ecp5 => ecp5_pll(&pll),
        };
        let of = format!("{} MHz of {input} MHz, with the loop's oscillator at {} MHz.", pll.mhz, pll.oscillator_mhz);
        Ok((module(&[&of], &body), pll.mhz))
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

fn ecp5_pll(pll: &Pll) -> String {
    format!(
        "  wire unused_locked;\n  (* ICP_CURRENT=\"12\" *) (* LPF_RESISTOR=\"8\" *) (* MFG_ENABLE_FILTEROPAMP=\"1\" *) (* MFG_GMCREF_SEL=\"2\" *)\n  \
         EHXPLLL #(\n    .PLLRST_ENA(\"DISABLED\"), .INTFB_WAKE(\"DISABLED\"), .STDBY_ENABLE(\"DISABLED\"), .DPHASE_SOURCE(\"DISABLED\"),\n    \
         .OUTDIVIDER_MUXA(\"DIVA\"), .OUTDIVIDER_MUXB(\"DIVB\"), .OUTDIVIDER_MUXC(\"DIVC\"), .OUTDIVIDER_MUXD(\"DIVD\"),\n    \
         .CLKOP_ENABLE(\"ENABLED\"), .CLKOP_FPHASE(0), .FEEDBK_PATH(\"CLKOP\"),\n    \
         .CLKI_DIV({}), .CLKFB_DIV({}), .CLKOP_DIV({}), .CLKOP_CPHASE({})\n  ) u_pll (\n    \
         .RST(1'b0), .STDBY(1'b0), .CLKI(clk_i), .CLKOP(clk_o), .CLKFB(clk_o), .CLKINTFB(), .PHASESEL0(1'b0), .PHASESEL1(1'b0),\n    \
         .PHASEDIR(1'b1), .PHASESTEP(1'b1), .PHASELOADREG(1'b1), .PLLWAKESYNC(1'b0), .ENCLKOP(1'b0), .LOCK(unused_locked)\n  );\n",
        pll.reference,
        pll.feedback,
        pll.output,
        pll.output / 2,
    )
}

/// The top module's ports and their pins.
pub(super) fn ports(board: &Board) -> Vec<(String, String)> {
    let mut ports = vec![("clk".to_string(), board.clock.pin.clone())];
    match &board.host {
        Host::Uart { rx, tx, .. } => ports.extend([("uart_rx".into(), rx.clone()), ("uart_tx".into(), tx.clone())]),
        Host::Spi { cs, sck, mosi, miso } => ports.extend([
            ("spi_cs_n".into(), cs.clone()),
            ("spi_sck".into(), sck.clone()),
            ("spi_mosi".into(), mosi.clone()),
            ("spi_miso".into(), miso.clone()),
        ]),
    }
    ports.extend(board.leds.pins.iter().enumerate().map(|(at, pin)| (format!("led[{at}]"), pin.clone())));
    ports
}
