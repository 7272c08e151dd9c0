//! From a design to a family's cells: the commands of Yosys, the files that they read, and what cells count as.

use super::Family;
use crate::flow::board::Board;

const NEXUS_CARRIES: &str = include_str!("../../../cells/nexus_carries.map");

/// Kinds of cells of a netlist that a part's resources are counted in, each with how many of them it takes; a kind stands for all
/// that begin with its name and a `*`.
pub(in crate::flow) struct Cells {
    pub(in crate::flow) lut: &'static [(&'static str, u64)],
    pub(in crate::flow) register: &'static [(&'static str, u64)],
    pub(in crate::flow) bram: &'static [(&'static str, u64)],
    pub(in crate::flow) dsp: &'static [(&'static str, u64)],
    pub(in crate::flow) spram: &'static [(&'static str, u64)],
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
                format!("techmap -max_iter 1 -map {}", crate::flow::design::CARRIES),
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
                ("cells_timing.vh", include_str!("../../../cells/ecp5_timing.v")),
                ("tw_mul.map", include_str!("../../../cells/ecp5_mul.map")),
            ],
            Family::Nexus => &[(crate::flow::design::CARRIES, NEXUS_CARRIES)],
            Family::Ice40 | Family::Gowin | Family::Xc7 | Family::Xcup => &[],
        }
    }

    /// The modules of the core for which the family has cells of its own: the file among [`crate::rtl::SOURCES`], and what it says in
    /// its place, a module without contents until [`Family::synthesis`] maps it.
    pub fn own_modules(self) -> &'static [(&'static str, &'static str)] {
        match self {
            Family::Ecp5 => &[("tw_mul.sv", include_str!("../../../cells/ecp5_mul.v"))],
            Family::Ice40 | Family::Gowin | Family::Nexus | Family::Xc7 | Family::Xcup => &[],
        }
    }

    /// How Yosys is told the times of [`Family::own_modules`], whose files lie in a folder, once it has read the sources.
    pub fn own_times(self, folder: &str) -> impl Iterator<Item = String> {
        let times = move |path: &str| format!("read_verilog -lib -specify -overwrite -D TW_TIMES {folder}/{path}");
        self.own_modules().iter().map(move |(path, _)| times(path))
    }

    pub(in crate::flow) fn cells(self) -> Cells {
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
}
