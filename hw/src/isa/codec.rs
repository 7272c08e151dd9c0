//! Encodes instructions to bits and decodes them.

use super::{Field, HEADER_BITS, INSN_BITS, INSN_BYTES, Insn, Opcode, UnitSet};
use crate::config::HwConfig;
use bitvec::prelude::*;

/// Why an instruction cannot be encoded for a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum EncodeError {
    /// A value is wider than its field.
    #[error("{insn}: {field} {}", self.reason())]
    FieldTooWide {
        /// Instruction.
        insn: &'static str,
        /// Field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// Bits that the field has.
        bits: u32,
    },
    /// The configuration leaves the field out, and its value is not the default.
    #[error("{insn}: {field} {}", self.reason())]
    FieldAbsent {
        /// Instruction.
        insn: &'static str,
        /// Field.
        field: &'static str,
        /// Its value.
        value: u64,
        /// The value that an absent field has.
        default: u64,
    },
}

impl EncodeError {
    /// The field whose value does not fit.
    pub fn field(&self) -> &'static str {
        match self {
            EncodeError::FieldTooWide { field, .. } | EncodeError::FieldAbsent { field, .. } => field,
        }
    }

    /// What is wrong with the field's value, and what is possible.
    pub fn reason(&self) -> String {
        match self {
            EncodeError::FieldTooWide { value, bits, .. } => {
                let most = (1u64 << bits) - 1;
                format!("is {value}, but the configuration gives it {bits} bits, for 0 to {most}")
            }
            EncodeError::FieldAbsent { value, default, .. } => {
                format!("is {value}, but the configuration leaves this field out; only {default} is possible")
            }
        }
    }
}

/// Why 32 bytes are not an instruction of a configuration.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DecodeError {
    /// No instruction has this code.
    #[error("opcode {0} is not an instruction")]
    Opcode(u8),
    /// A field's code has no meaning, or reserved bits are not zero.
    #[error("{insn}: {field} has the illegal value {value}")]
    Field {
        /// Instruction.
        insn: &'static str,
        /// Field, "type" or "reserved".
        field: &'static str,
        /// Its bits.
        value: u64,
    },
}

/// Bits of an instruction with this opcode, header included.
pub fn insn_bits(opcode: Opcode, config: &HwConfig) -> u32 {
    HEADER_BITS + opcode.fields().iter().map(|f| config.field_width(f.width)).sum::<u32>()
}

/// Every value of an instruction that does not fit its field, in the table's order.
pub(super) fn encode_errors(insn: &Insn, config: &HwConfig) -> Vec<EncodeError> {
    let opcode = insn.op.opcode();
    let fields = opcode.fields().iter().zip(insn.op.raw());
    fields
        .filter_map(|(field, value)| check_width(opcode.name(), field, value, config.field_width(field.width)).err())
        .collect()
}

/// Encodes an instruction; every value is checked against its field's width.
///
/// # Errors
/// [`EncodeError`], naming the field.
pub fn encode(insn: &Insn, config: &HwConfig) -> Result<[u8; INSN_BYTES], EncodeError> {
    let opcode = insn.op.opcode();
    let mut bytes = [0u8; INSN_BYTES];
    let bits = bytes.view_bits_mut::<Lsb0>();
    bits[0..4].store_le(opcode as u8);
    bits[4..8].store_le(insn.pop.0 & 15);
    bits[8..12].store_le(insn.push.0 & 15);
    let mut at = HEADER_BITS as usize;
    for (field, value) in opcode.fields().iter().zip(insn.op.raw()) {
        let width = config.field_width(field.width);
        check_width(opcode.name(), field, value, width)?;
        if width > 0 {
            bits[at..at + width as usize].store_le(value);
            at += width as usize;
        }
    }
    Ok(bytes)
}

fn check_width(insn: &'static str, field: &Field, value: u64, width: u32) -> Result<(), EncodeError> {
    if width == 0 {
        if value == field.default {
            return Ok(());
        }
        return Err(EncodeError::FieldAbsent { insn, field: field.name, value, default: field.default });
    }
    if width < 64 && value >> width != 0 {
        return Err(EncodeError::FieldTooWide { insn, field: field.name, value, bits: width });
    }
    Ok(())
}

/// Decodes instructions of one configuration; computes the field widths once.
#[derive(Debug, Clone)]
pub struct Decoder {
    layouts: [Layout; Opcode::ALL.len()],
}

/// Most fields of an instruction.
const MOST_FIELDS: usize = {
    let (mut most, mut i) = (0, 0);
    while i < Opcode::ALL.len() {
        let fields = Opcode::ALL[i].fields().len();
        most = if fields > most { fields } else { most };
        i += 1;
    }
    most
};

/// Bit positions of an instruction's fields.
#[derive(Debug, Clone)]
struct Layout {
    fields: Vec<Place>,
    /// Bits from here on must be zero.
    end: u32,
}

impl Decoder {
    /// Creates a decoder for a configuration's instructions.
    pub fn new(config: &HwConfig) -> Decoder {
        let layout = |opcode: Opcode| {
            let mut end = HEADER_BITS;
            let place = |field: &Field| {
                let (at, width) = (end, config.field_width(field.width));
                end += width;
                let absent = if width == 0 { field.default } else { 0 };
                let mask = u64::MAX.checked_shr(64 - width).unwrap_or(0);
                Place { word: at as usize / 64, shift: at % 64, mask, absent }
            };
            let fields = opcode.fields().iter().map(place).collect();
            Layout { fields, end }
        };
        Decoder { layouts: Opcode::ALL.map(layout) }
    }

    /// Decodes an instruction. Values that are encodable but not legal pass; see [`super::illegal_reasons`].
    ///
    /// # Errors
    /// [`DecodeError`].
    pub fn decode(&self, bytes: &[u8; INSN_BYTES]) -> Result<Insn, DecodeError> {
        let words = Words::new(bytes);
        let code = words.bits(0, 4) as u8;
        let opcode = Opcode::from_code(code).ok_or(DecodeError::Opcode(code))?;
        let insn = opcode.name();
        let kind = words.bits(12, 4);
        if kind != 0 {
            return Err(DecodeError::Field { insn, field: "type", value: kind });
        }
        let place = Opcode::ALL.iter().position(|known| *known == opcode).unwrap_or(0);
        let (layout, fields) = (&self.layouts[place], opcode.fields());
        let mut raw = [0; MOST_FIELDS];
        for (value, place) in raw.iter_mut().zip(&layout.fields) {
            *value = words.field(*place);
        }
        if words.any_from(layout.end) {
            return Err(DecodeError::Field { insn, field: "reserved", value: 1 });
        }
        let op = opcode.build(&raw[..fields.len().min(raw.len())]).map_err(|i| DecodeError::Field {
            insn,
            field: fields.get(i).map_or("field", |f| f.name),
            value: raw.get(i).copied().unwrap_or(0),
        })?;
        Ok(Insn { pop: UnitSet(words.bits(4, 4) as u8), push: UnitSet(words.bits(8, 4) as u8), op })
    }
}

/// Where a field is.
#[derive(Debug, Clone, Copy)]
struct Place {
    /// Its first bit: word, and bit in the word.
    word: usize,
    shift: u32,
    /// As many ones as it has bits.
    mask: u64,
    /// Its value if the configuration leaves it out, otherwise 0.
    absent: u64,
}

/// An instruction's words and at least one of zeros; a power of two.
const WORDS: usize = (INSN_BYTES / 8 + 1).next_power_of_two();

/// An instruction's bits as words, lowest first, followed by zeros.
struct Words([u64; WORDS]);

impl Words {
    fn new(bytes: &[u8; INSN_BYTES]) -> Words {
        let mut words = [0; WORDS];
        for (word, raw) in words.iter_mut().zip(bytes.as_chunks::<8>().0) {
            *word = u64::from_le_bytes(*raw);
        }
        Words(words)
    }

    /// The bits of a field.
    #[inline]
    fn field(&self, Place { word, shift, mask, absent }: Place) -> u64 {
        let [low, high] = [word, word + 1].map(|word| self.0[word % WORDS]);
        (low >> shift | high << 1 << (63 - shift)) & mask | absent
    }

    /// `width` bits from bit `at` on, 1 to 64; bits past the last are zero.
    fn bits(&self, at: u32, width: u32) -> u64 {
        let first = (at / 64) as usize;
        let word = |i: usize| u128::from(self.0.get(i).copied().unwrap_or(0));
        let both = word(first) | word(first + 1) << 64;
        (both >> (at % 64)) as u64 & (u64::MAX >> (64 - width))
    }

    /// Whether any bit from `at` on is set.
    fn any_from(&self, at: u32) -> bool {
        (at..INSN_BITS).step_by(64).any(|at| self.bits(at, 64) != 0)
    }
}

/// Decodes one instruction; use a [`Decoder`] for many.
///
/// # Errors
/// [`DecodeError`].
pub fn decode(bytes: &[u8; INSN_BYTES], config: &HwConfig) -> Result<Insn, DecodeError> {
    Decoder::new(config).decode(bytes)
}
