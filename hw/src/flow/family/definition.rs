//! The type of a family's definition.

use super::delays::Delays;
use super::processor::Processor;
use crate::flow::clock::{Limits, Pll};
use crate::flow::netlist::Netlist;

/// Everything that the flow knows about a family of parts.
///
/// Its functions get the part, the pin or the clock that they need. They get no board, because boards depend on
/// families.
pub struct Definition {
    /// The name in board files.
    pub name: &'static str,
    /// Its parts.
    pub parts: &'static [Part],
    /// Its speed grades; empty if they are in the parts' names.
    pub speeds: &'static [SpeedGrade],
    /// The delays of a part's cells, for the estimate before routing; `None` if they are unknown.
    pub delays: fn(&Part) -> Option<&'static Delays>,
    /// Bytes in a block RAM, without parity bits.
    pub bram_bytes: u64,
    /// The processor next to the fabric, which is the host, with the core as its peripheral; `None` if its parts have
    /// none.
    pub processor: Option<&'static Processor>,
    /// The programs that run after synthesis.
    pub programs: Programs,
    /// The files that these programs read and write.
    pub files: Files,
    /// The router's arguments, except those for netlists, reports, the clock and the seed.
    pub route_options: fn(&Chip) -> Vec<String>,
    /// The packer's arguments.
    pub pack_options: fn(&Chip) -> Vec<String>,
    /// The Yosys commands that map a design with this top module to the part's cells.
    pub synthesis: fn(&Part, &str) -> Vec<String>,
    /// Files that these commands read: delays of cells that Yosys does not know, and mappings to cells that the router
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
    /// Inputs that the router ties inside the part and leaves open in its netlist.
    pub open_inputs: OpenInputs,
    /// The programs that make Verilog of a bitstream; `None` if no open program does it.
    pub bitstream_reader: Option<BitstreamReader>,
    /// What the programs are for, as `doctor` shows it; `None` if `make setup` does not install them.
    pub installed_for: Option<&'static str>,
    /// The cells that count as each resource.
    pub cells: CellKinds,
    /// The multiplier blocks of the core's products.
    pub multipliers: Multipliers,
    /// How look-up tables and registers use the part's logic.
    pub logic: Logic,
    /// Writes the constraints of a pin, as lines of the constraints file.
    pub pin_constraints: fn(&Pin) -> String,
    /// Writes the constraints of the clock pin for its frequency in MHz, as lines of the constraints file.
    pub clock_constraints: fn(f64) -> String,
    /// Where the core's clock comes from.
    pub clock: CoreClock,
    /// The cells at the pins of an SDRAM; `None` if the flow does not support SDRAM on this family.
    pub sdram_cells: Option<SdramCells>,
}

/// A part and its resources.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Part {
    /// The name in board files.
    pub name: &'static str,
    /// The option by which nextpnr, or the packer, knows it; empty if they use the name.
    pub option: &'static str,
    /// The packages that nextpnr knows for it; empty if the package is in its name.
    pub packages: &'static [&'static str],
    /// Number of look-up tables. They have four inputs; AMD's have six.
    pub luts: u64,
    /// Number of registers.
    pub registers: u64,
    /// Number of block RAMs; for AMD, of 18 Kbit each.
    pub brams: u64,
    /// Number of multiplier blocks; for Gowin, of 9 by 9 bits each.
    pub dsps: u64,
    /// Number of single-port RAMs, of `SPRAM_KIB` each.
    pub sprams: u64,
}

/// Size of a single-port RAM of an iCE40 UltraPlus, KiB.
pub const SPRAM_KIB: u64 = 32;

/// A part with as many registers as look-up tables, no single-port RAM, and its package in its name.
pub const fn part(name: &'static str, option: &'static str, luts: u64, brams: u64, dsps: u64) -> Part {
    Part { name, option, packages: &[], luts, registers: luts, brams, dsps, sprams: 0 }
}

/// A part as a board uses it.
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
    /// Its delays divided by those of the fastest grade.
    pub slower: f64,
}

/// The programs that make a bitstream of a netlist.
pub struct Programs {
    /// Place and route; `None` if no open program does it.
    pub router: Option<&'static str>,
    /// Makes the bitstream of the router's output.
    pub packer: &'static str,
    /// How to install them, for the error if one is missing.
    pub install: &'static str,
}

/// The programs that make Verilog of a bitstream.
pub struct BitstreamReader {
    /// Reverses the packer. Its arguments are the bitstream and the file to write.
    pub unpacker: &'static str,
    /// Prints the unpacker's output as Verilog.
    pub reader: &'static str,
    /// The reader's arguments.
    pub options: fn(&Chip) -> Vec<String>,
    /// What the reader is for, as `doctor` shows it.
    pub what_for: &'static str,
    /// How to install the reader.
    pub install: &'static str,
}

/// How inputs are tied that the router leaves open in its netlist, unless a parameter of the cell says it.
#[derive(Debug)]
pub struct OpenInputs {
    /// Kinds of cells whose open inputs are high. Those of other kinds are low.
    pub high_cells: &'static [&'static str],
    /// Inputs that are high in all kinds of cells.
    pub high_inputs: &'static [&'static str],
    /// Inputs that select the form of a cell by being connected, for which models need a parameter.
    pub form_inputs: &'static [FormInput],
    /// Global buffers that the phase-locked loop drives without a wire.
    pub loop_buffer: Option<LoopBuffer>,
}

impl OpenInputs {
    /// All open inputs are low.
    pub const LOW: OpenInputs = OpenInputs { high_cells: &[], high_inputs: &[], form_inputs: &[], loop_buffer: None };
}

/// An input that selects the form of a cell by being connected.
#[derive(Debug)]
pub struct FormInput {
    /// The input.
    pub input: &'static str,
    /// The parameter that becomes 1 if the input is connected.
    pub parameter: &'static str,
}

/// Cells of a phase-locked loop and of the global buffers that it drives without a wire.
#[derive(Debug)]
pub struct LoopBuffer {
    /// The kind of the loop.
    pub loop_kind: &'static str,
    /// Its outputs to global buffers.
    pub outputs: [&'static str; 2],
    /// How the name of the buffer at the second output ends. Other buffers are at the first.
    pub second_ends: &'static str,
    /// The kind of the buffer.
    pub buffer_kind: &'static str,
    /// The buffer's input.
    pub buffer_input: &'static str,
}

/// Names of files. The programs know their formats by the endings.
pub struct Files {
    /// The constraints of pins and clocks.
    pub constraints: &'static str,
    /// The router's output for the packer; empty without a router.
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
    /// Its name. With `*` at the end, it matches all names with this prefix.
    pub name: &'static str,
    /// Units of the resource that a cell uses.
    pub units: u64,
}

/// A kind whose cells use this number of units each.
pub const fn kind(name: &'static str, units: u64) -> CellKind {
    CellKind { name, units }
}

/// How the core's products use a part's multiplier blocks.
pub struct Multipliers {
    /// Blocks that a product of 18 by 18 bits uses, in the unit of [`Part::dsps`].
    pub wide: u64,
    /// Whether each product of the core uses a block of its own, so that the number of blocks is known in advance.
    pub one_for_each_product: bool,
}

/// How the look-up tables and registers of a netlist use a part's logic.
pub enum Logic {
    /// The part counts look-up tables and registers apart. The router adds some tables.
    Tables {
        /// Returns the number of tables that it adds to a netlist.
        added: fn(&Netlist) -> u64,
    },
    /// The part has logic cells of a look-up table, a carry and a register each. The function returns the number that a
    /// netlist uses.
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
    /// Returns the name of its I/O standard.
    pub fn io_standard(&self) -> String {
        format!("LVCMOS{:.0}", 10.0 * self.volts)
    }
}

/// The source of the core's clock, if it differs from the board's clock.
pub enum CoreClock {
    /// None: the flow supports no phase-locked loop of the family, so the core must run at the frequency of the clock
    /// pin.
    PinOnly,
    /// A phase-locked loop of the fabric.
    Loop {
        /// Its limits.
        limits: Limits,
        /// Writes the Verilog that instantiates it between `clk_i` and `clk_o`.
        instance: fn(&Pll) -> String,
    },
    /// The processor's loops. Any frequency is accepted.
    Processor,
}

/// Verilog instances at the pins of an SDRAM.
pub struct SdramCells {
    /// Drives `clk_o`, which rises in the middle of a cycle of `clk_i`.
    pub clock: &'static str,
    /// Joins bit `i` of `dq_io` to `dq_i`, which `drive_i` enables, and to `dq_o`.
    pub data: &'static str,
}

/// Splits a text at spaces into arguments.
pub fn arguments(words: &str) -> Vec<String> {
    words.split_whitespace().map(String::from).collect()
}

/// No arguments, for a family without a router.
pub fn no_arguments(_: &Chip) -> Vec<String> {
    Vec::new()
}
