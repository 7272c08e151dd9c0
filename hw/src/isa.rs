//! The instruction set: one table of instructions and fields, and everything that is derived from it.
//!
//! An instruction has 256 bits, little-endian: opcode, pop mask, push mask and type code in the low 16, then the fields
//! of its row in `insn` one after the other, each as wide as the configuration makes it. Bits after the last field
//! are zero.

mod codec;
mod descriptor;
mod emit;
mod insn;
mod legal;
mod text;
mod unit;
mod uop;
mod vector;

pub use codec::{DecodeError, Decoder, EncodeError, decode, encode, insn_bits};
pub use descriptor::{DESCRIPTOR_FIELDS, Descriptor};
pub use emit::{GENERATED, c_header, config_package, generated, registers_table};
pub use insn::*;
pub use legal::{Illegal, illegal_reasons, unfit_reasons};
pub use text::{AsmError, parse_for, parse_program, print_insn, print_program};
pub use unit::{Unit, UnitSet};
pub use uop::{GemmUop, VectorUop, decode_uop, encode_uop};
pub use vector::{TABLE_BYTES, TAP_STRIDE, VecDst, VecOp, VecSrc};

/// Version of the instruction set; change it when the meaning of existing streams changes.
pub const ISA_VERSION: u32 = 1;
/// Bits of an instruction.
pub const INSN_BITS: u32 = 256;
/// Bytes of an instruction; streams are aligned to it.
pub const INSN_BYTES: usize = 32;
/// First bit after opcode, masks and type code.
pub const HEADER_BITS: u32 = 16;
/// Bytes of a vector descriptor; see [`Descriptor`].
pub const DESCRIPTOR_BYTES: usize = 36;

/// Rows of a param entry, each with one byte per channel of block_out; loads address rows, vector reads entries.
pub const PARAM_ROWS: u32 = PARAM_SHIFT_ROW + 1;
/// First of the four rows with the bytes of each channel's bias, lowest byte first.
pub const PARAM_BIAS_ROW: u32 = 0;
/// First of the four rows with the bytes of each channel's multiplier, lowest byte first.
pub const PARAM_MULTIPLIER_ROW: u32 = PARAM_BIAS_ROW + 4;
/// The row with each channel's shift.
pub const PARAM_SHIFT_ROW: u32 = PARAM_MULTIPLIER_ROW + 4;

#[cfg(test)]
mod tests;
