//! What the flow knows about a family of parts. The file of each family has one [`Definition`].

use super::delays::Delays;
use super::processor::Processor;
use crate::flow::clock::{Limits, Pll};
use crate::flow::netlist::Netlist;

/// A family of parts: its parts, the programs that make its bitstreams, and how a design becomes its cells.
///
/// Functions are given what they depend on, so that a family knows neither boards nor designs.
pub struct Definition {
    /// The name in board files.
    pub name: &'static str,
    /// Its parts.
    pub parts: &'static [Part],
    /// Its speed grades; none if its parts' names have them.
    pub speeds: &'static [SpeedGrade],
    /// The delays of a part's cells, for the estimate before routing; `None` if they are not known.
    pub delays: fn(&Part) -> Option<&'static Delays>,
    /// Bytes in a block RAM, without parity bits.
    pub bram_bytes: u64,
    /// The processor next to the fabric, if there is one: it is the host, and the core its peripheral.
    pub processor: Option<&'static Processor>,
    /// The programs after synthesis.
    pub programs: Programs,
    /// The files that these programs read and write.
    pub files: Files,
    /// The router's arguments, except those for netlists, reports, the clock and the seed.
    pub route_options: fn(&Chip) -> Vec<String>,
    /// The packer's arguments.
    pub pack_options: fn(&Chip) -> Vec<String>,
    /// The Yosys commands that map a design with this top module to the part's cells.
    pub synthesis: fn(&Part, &str) -> Vec<String>,
    /// Files that these commands read: delays of cells that Yosys does not know, and mappings to what the router
    /// expects.
    pub synthesis_files: &'static [Text],
    /// Modules of the core that the family replaces with its own cells: the file's path in [`crate::rtl::SOURCES`], and
    /// the text that replaces it. The text declares a module without contents, which the synthesis commands map.
    pub own_modules: &'static [Text],
    /// The simulation models of the family's cells, relative to Yosys's folder of shared files.
    pub cell_models: &'static str,
    /// Verilog models of the cells that a board's design instantiates, for its clock and its pins.
    pub board_cells: Option<&'static str>,
    /// Verilog models that replace some of Yosys's when a netlist is simulated; `None` if netlists of the family cannot
    /// be simulated.
    pub own_models: Option<&'static str>,
    /// The programs that make Verilog of a bitstream; `None` if no open program does it.
    pub bitstream_reader: Option<BitstreamReader>,
    /// What the set-up installs the family's programs for, as `doctor` tells it; `None` if it does not install them
    /// unasked.
    pub installed_for: Option<&'static str>,
    /// How cells count as resources.
    pub cells: CellKinds,
    /// The multiplier blocks of the core's products.
    pub multipliers: Multipliers,
    /// How tables and registers take the part's logic.
    pub logic: Logic,
    /// The constraints of a pin, as lines of the constraints file.
    pub pin_constraints: fn(&Pin) -> String,
    /// The constraints of the clock pin, whose frequency is in MHz, as lines of the constraints file.
    pub clock_constraints: fn(f64) -> String,
    /// Where the core's clock comes from.
    pub clock: CoreClock,
    /// The cells at the pins of an SDRAM; `None` if the flow does not support SDRAM on this family.
    pub sdram_cells: Option<SdramCells>,
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
pub const SPRAM_KIB: u64 = 32;

/// A part with as many registers as look-up tables, no single-port RAM, and its package in its name.
pub const fn part(name: &'static str, option: &'static str, luts: u64, brams: u64, dsps: u64) -> Part {
    Part { name, option, packages: &[], luts, registers: luts, brams, dsps, sprams: 0 }
}

/// A part as it is mounted on a board.
pub struct Chip<'a> {
    /// The part.
    pub part: &'static Part,
    /// Its package.
    pub package: &'a str,
    /// Its speed grade; empty if the part's name has it.
    pub speed: &'a str,
}

/// A speed grade.
pub struct SpeedGrade {
    /// The name in board files.
    pub name: &'static str,
    /// By which factor its delays are longer than those of the fastest grade.
    pub slower: f64,
}

/// The programs that make a bitstream of a netlist.
pub struct Programs {
    /// Place and route; `None` if no open program does it.
    pub router: Option<&'static str>,
    /// Makes the bitstream of what the router wrote.
    pub packer: &'static str,
    /// How to install them, for the error that one is missing.
    pub install: &'static str,
}

/// The programs that make Verilog of a bitstream.
pub struct BitstreamReader {
    /// Undoes what the packer did. Called with the bitstream and the file to write.
    pub unpacker: &'static str,
    /// Prints Verilog of what the unpacker wrote.
    pub reader: &'static str,
    /// The reader's arguments.
    pub options: fn(&Chip) -> Vec<String>,
    /// What the reader is for, as `doctor` tells it.
    pub what_for: &'static str,
    /// How to install the reader.
    pub install: &'static str,
}

/// Names of files, which the programs know by their endings.
pub struct Files {
    /// The constraints.
    pub constraints: &'static str,
    /// What the router writes for the packer; empty without a router.
    pub routed: &'static str,
    /// The bitstream.
    pub bitstream: &'static str,
}

/// A file with a fixed text.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Text {
    /// Its name.
    pub name: &'static str,
    /// Its contents.
    pub text: &'static str,
}

/// The kinds of cells that count as each resource.
pub struct CellKinds {
    /// Look-up tables.
    pub luts: &'static [CellKind],
    /// Registers.
    pub registers: &'static [CellKind],
    /// Block RAMs.
    pub brams: &'static [CellKind],
    /// Multiplier blocks.
    pub dsps: &'static [CellKind],
    /// Single-port RAMs.
    pub sprams: &'static [CellKind],
}

/// A kind of cells of a netlist.
pub struct CellKind {
    /// Its name; with a `*` at the end, all names that begin so.
    pub name: &'static str,
    /// How many of the resource a cell takes.
    pub units: u64,
}

/// A kind whose cells take so many units each.
pub const fn kind(name: &'static str, units: u64) -> CellKind {
    CellKind { name, units }
}

/// How the core's products take a part's multiplier blocks.
pub struct Multipliers {
    /// Blocks, as the part's are counted, that a product of 18 by 18 bits takes.
    pub wide: u64,
    /// Whether each product of the core takes a block of its own, so that a netlist's blocks can be planned.
    pub one_for_each_product: bool,
}

/// How the tables and registers of a netlist take a part's logic.
pub enum Logic {
    /// The part has tables and registers, and the router adds some tables.
    Tables {
        /// The number of tables that it adds to a netlist.
        added: fn(&Netlist) -> u64,
    },
    /// The part has cells that hold a table, a carry and a register each. The function counts those that a netlist
    /// takes.
    Cells(fn(&Netlist) -> u64),
}

/// A port of the top module at its pin.
pub struct Pin<'a> {
    /// The port.
    pub port: &'a str,
    /// The pin, as the part's package names it.
    pub pin: &'a str,
    /// Its level, volts.
    pub volts: f64,
}

impl Pin<'_> {
    /// The name of its I/O standard.
    pub fn io_standard(&self) -> String {
        format!("LVCMOS{:.0}", 10.0 * self.volts)
    }
}

/// Where the core's clock comes from, if it is not the one of the board's clock pin.
pub enum CoreClock {
    /// The flow knows no phase-locked loop of the family, so that the core runs at the clock pin's frequency.
    PinOnly,
    /// A phase-locked loop of the fabric.
    Loop {
        /// What it can do.
        limits: Limits,
        /// The Verilog that instantiates it between `clk_i` and `clk_o`.
        instance: fn(&Pll) -> String,
    },
    /// The processor's loops, which make any frequency.
    Processor,
}

/// Verilog instances at the pins of an SDRAM.
pub struct SdramCells {
    /// Drives `clk_o`, which rises in the middle of a cycle of `clk_i`.
    pub clock: &'static str,
    /// Joins bit `i` of `dq_io` to `dq_i`, which `drive_i` enables, and to `dq_o`.
    pub data: &'static str,
}

/// Splits words at spaces into arguments.
pub fn arguments(words: &str) -> Vec<String> {
    words.split_whitespace().map(String::from).collect()
}

/// No arguments, for a family without a router.
pub fn no_arguments(_: &Chip) -> Vec<String> {
    Vec::new()
}
