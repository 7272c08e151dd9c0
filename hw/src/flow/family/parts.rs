//! Parts: what each has, and what a board may ask of it.

use super::Family;
use crate::flow::board::Board;

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
const SPRAM_KIB: u64 = 32;

const fn part(name: &'static str, option: &'static str, luts: u64, brams: u64, dsps: u64) -> Part {
    Part { name, option, packages: &[], luts, registers: luts, brams, dsps, sprams: 0 }
}

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

impl Family {
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

    pub(in crate::flow) fn part(self, device: &str) -> Option<&'static Part> {
        self.parts().iter().find(|part| part.name == device)
    }

    /// Says what is wrong with a board's part.
    pub(in crate::flow) fn check_part(self, board: &Board) -> Result<(), String> {
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
    pub(in crate::flow) fn check_memory(self, board: &Board, kib: u32, in_spram: bool) -> Result<(), String> {
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
}
