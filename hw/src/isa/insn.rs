//! The table of instructions and their fields.

use super::unit::{Unit, UnitSet};
use super::vector::{VecDst, VecOp, VecSrc};
use crate::config::Mem;
use crate::num::Rounding;

macro_rules! width_names {
    ($($name:ident, $sv:literal, $doc:literal;)*) => {
        /// A field width that depends on the configuration.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum WidthName { $(#[doc = $doc] $name,)* }

        impl WidthName {
            /// All names.
            pub const ALL: &[WidthName] = &[$(WidthName::$name),*];
            /// Number of names.
            pub const COUNT: usize = WidthName::ALL.len();

            /// The SystemVerilog parameter that carries it.
            pub fn sv(self) -> &'static str {
                match self { $(WidthName::$name => $sv,)* }
            }

            /// What it holds.
            pub fn doc(self) -> &'static str {
                match self { $(WidthName::$name => $doc,)* }
            }
        }
    };
}

width_names! {
    Base, "BaseW", "index of a base register";
    Offset, "OffsetW", "DRAM byte offset";
    Stride, "StrideW", "DMA stride in bytes";
    Entry, "EntryW", "entry of any memory, param counted in rows";
    PackByte, "PackByteW", "byte in an inp or out entry";
    PackStride, "PackStrideW", "byte stride in inp or out";
    Loop, "LoopW", "loop count";
    AccIndex, "AccW", "entry of acc";
    InpIndex, "InpW", "entry of inp";
    WgtIndex, "WgtW", "entry of wgt";
    VecIndex, "VecW", "entry that vector indexes";
    GemmUop, "GuopW", "gemm micro-op";
    GemmUopCount, "GuopCountW", "number of gemm micro-ops";
    VecUop, "VuopW", "vector micro-op";
    VecUopCount, "VuopCountW", "number of vector micro-ops";
    Descriptor, "DescW", "param entry of a descriptor";
}

/// Width of a field.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Width {
    /// A fixed number of bits.
    Bits(u32),
    /// A width that the configuration derives.
    Named(WidthName),
    /// A fixed number of bits with `dma_pad`, else the field is left out.
    Pad(u32),
    /// A fixed number of bits with `wgt_zp`, else the field is left out.
    WgtZp(u32),
    /// One bit or a derived width with `dma_pack`, else the field is left out.
    Pack(Option<WidthName>),
    /// A derived width with three loops, else the field is left out.
    Loop3(WidthName),
}

/// A value that an instruction field holds.
pub trait FieldValue: Copy {
    /// The value as bits.
    fn to_raw(self) -> u64;
    /// The value with these bits; `None` if no value has this code.
    fn from_raw(raw: u64) -> Option<Self>;
    /// The value as assembly text.
    fn to_text(self) -> String {
        self.to_raw().to_string()
    }
    /// Parses assembly text; the error says what is expected.
    fn from_text(text: &str) -> Result<Self, String> {
        Self::from_raw(parse_number(text)?).ok_or_else(|| "a smaller number".into())
    }
}

fn parse_number(text: &str) -> Result<u64, String> {
    let parsed = match text.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(&hex.replace('_', ""), 16),
        None => text.replace('_', "").parse(),
    };
    parsed.map_err(|_| "a whole number".to_string())
}

impl FieldValue for u64 {
    fn to_raw(self) -> u64 {
        self
    }
    fn from_raw(raw: u64) -> Option<Self> {
        Some(raw)
    }
}

impl FieldValue for u32 {
    fn to_raw(self) -> u64 {
        self.into()
    }
    fn from_raw(raw: u64) -> Option<Self> {
        raw.try_into().ok()
    }
}

impl FieldValue for i8 {
    fn to_raw(self) -> u64 {
        u64::from(self as u8)
    }
    fn from_raw(raw: u64) -> Option<Self> {
        u8::try_from(raw).ok().map(|b| b as i8)
    }
    fn to_text(self) -> String {
        self.to_string()
    }
    fn from_text(text: &str) -> Result<Self, String> {
        text.parse().map_err(|_| "a number from -128 to 127".into())
    }
}

macro_rules! word_field {
    ($ty:ty, [$($value:path = $text:literal),*]) => {
        impl FieldValue for $ty {
            fn to_raw(self) -> u64 {
                self as u64
            }
            fn from_raw(raw: u64) -> Option<Self> {
                [$($value),*].into_iter().find(|v| *v as u64 == raw)
            }
            fn to_text(self) -> String {
                match self { $($value => $text.to_string(),)* }
            }
            fn from_text(text: &str) -> Result<Self, String> {
                match text {
                    $($text => Ok($value),)*
                    _ => Err(concat!("one of" $(, " ", $text)*).into()),
                }
            }
        }
    };
}

word_field!(bool, [NO = "no", YES = "yes"]);
const NO: bool = false;
const YES: bool = true;
word_field!(
    Mem,
    [
        Mem::Inp = "inp",
        Mem::Wgt = "wgt",
        Mem::Acc = "acc",
        Mem::Out = "out",
        Mem::Param = "param",
        Mem::GemmUop = "guop",
        Mem::VectorUop = "vuop"
    ]
);
word_field!(VecDst, [VecDst::Acc = "acc", VecDst::Out = "out", VecDst::Inp = "inp"]);
word_field!(
    VecSrc,
    [
        VecSrc::Acc = "acc",
        VecSrc::Out = "out",
        VecSrc::Inp = "inp",
        VecSrc::Param = "param",
        VecSrc::Scalar = "scalar",
        VecSrc::None = "none"
    ]
);
word_field!(Rounding, [Rounding::Double = "double", Rounding::Single = "single"]);

impl FieldValue for VecOp {
    fn to_raw(self) -> u64 {
        self as u64
    }
    fn from_raw(raw: u64) -> Option<Self> {
        VecOp::ALL.iter().copied().find(|op| *op as u64 == raw)
    }
    fn to_text(self) -> String {
        self.name().into()
    }
    fn from_text(text: &str) -> Result<Self, String> {
        VecOp::ALL
            .iter()
            .copied()
            .find(|op| op.name() == text)
            .ok_or_else(|| format!("one of {}", VecOp::ALL.iter().map(|op| op.name()).collect::<Vec<_>>().join(" ")))
    }
}

/// One field of an instruction.
#[derive(Debug, Clone, Copy)]
pub struct Field {
    /// Name in assembly text and in the RTL.
    pub name: &'static str,
    /// Width rule.
    pub width: Width,
    /// Value if the configuration leaves the field out or the text does not name it.
    pub default: u64,
    /// Description for the manual.
    pub doc: &'static str,
}

macro_rules! insns {
    ($($(#[doc = $idoc:literal])+ $insn:ident = $code:literal, $text:literal, $unit:expr => {
        $($field:ident: $ty:ty = $default:expr, $width:expr, $doc:literal;)*
    })*) => {
        $(
            $(#[doc = $idoc])+
            #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
            pub struct $insn { $(#[doc = $doc] pub $field: $ty,)* }

            impl Default for $insn {
                fn default() -> Self {
                    $insn { $($field: $default,)* }
                }
            }
        )*

        /// The operation code of an instruction.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
        #[repr(u8)]
        pub enum Opcode { $($(#[doc = $idoc])+ $insn = $code,)* }

        /// What an instruction does, without its tokens.
        #[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
        pub enum Op { $($(#[doc = $idoc])+ $insn($insn),)* }

        impl Opcode {
            /// All opcodes in code order. Code 0 is unused, so that zeroed memory traps.
            pub const ALL: [Opcode; [$($code),*].len()] = [$(Opcode::$insn),*];

            /// The opcode with this code.
            pub fn from_code(code: u8) -> Option<Opcode> {
                Opcode::ALL.into_iter().find(|op| *op as u8 == code)
            }

            /// The name in assembly text.
            pub fn name(self) -> &'static str {
                match self { $(Opcode::$insn => $text,)* }
            }

            /// Description for the manual.
            pub fn doc(self) -> &'static str {
                match self { $(Opcode::$insn => concat!($($idoc),+),)* }
            }

            /// The unit that executes the instruction.
            pub fn unit(self) -> Unit {
                match self { $(Opcode::$insn => $unit,)* }
            }

            /// The fields after the header, lowest bits first.
            pub const fn fields(self) -> &'static [Field] {
                match self { $(Opcode::$insn => &[$(Field {
                    name: stringify!($field),
                    width: $width,
                    default: const_raw!($ty, $default),
                    doc: $doc,
                }),*],)* }
            }

            /// Builds an operation from raw field values, in table order.
            ///
            /// # Errors
            /// The index of the first field whose code has no meaning.
            pub(super) fn build(self, raw: &[u64]) -> Result<Op, usize> {
                match self { $(Opcode::$insn => {
                    let mut at = 0..;
                    Ok(Op::$insn($insn { $($field: {
                        let i = at.next().unwrap_or(usize::MAX);
                        raw.get(i).copied().and_then(<$ty as FieldValue>::from_raw).ok_or(i)?
                    },)* }))
                })* }
            }

            /// Parses the text of field `index`.
            pub(super) fn parse_field(self, index: usize, text: &str) -> Result<u64, String> {
                match self { $(Opcode::$insn => {
                    let parsers: &[fn(&str) -> Result<u64, String>] =
                        &[$(|t| <$ty as FieldValue>::from_text(t).map(FieldValue::to_raw)),*];
                    parsers[index](text)
                })* }
            }
        }

        impl Op {
            /// The operation's opcode.
            pub fn opcode(&self) -> Opcode {
                match self { $(Op::$insn(_) => Opcode::$insn,)* }
            }

            /// Raw field values in table order.
            pub(super) fn raw(&self) -> Vec<u64> {
                match self { $(Op::$insn(x) => vec![$(x.$field.to_raw()),*],)* }
            }

            /// Field texts in table order.
            pub(super) fn texts(&self) -> Vec<String> {
                match self { $(Op::$insn(x) => vec![$(x.$field.to_text()),*],)* }
            }
        }

        $(impl From<$insn> for Op {
            fn from(x: $insn) -> Op {
                Op::$insn(x)
            }
        })*
    };
}

macro_rules! const_raw {
    ($ty:ty, $default:expr) => {
        $default as u64
    };
}

use WidthName as W;

insns! {
    /// Copies rows of bytes from DRAM into a memory, with optional padding.
    Load = 1, "load", Unit::Load => {
        mem: Mem = Mem::Inp, Width::Bits(3), "target memory";
        base: u32 = 0, Width::Named(W::Base), "base register";
        offset: u64 = 0, Width::Named(W::Offset), "byte offset of the first row";
        entry: u32 = 0, Width::Named(W::Entry), "first entry written; param counts rows of block_out bytes";
        row_bytes: u32 = 1, Width::Bits(16), "bytes per row";
        rows: u32 = 1, Width::Bits(11), "rows per plane in DRAM";
        planes: u32 = 1, Width::Bits(11), "planes in DRAM";
        row_stride: u64 = 0, Width::Named(W::Stride), "bytes from row to row in DRAM";
        plane_stride: u64 = 0, Width::Named(W::Stride), "bytes from plane to plane in DRAM";
        pad_value: i8 = 0, Width::Pad(8), "value of padding, sign-extended to an element";
        x_before: u32 = 0, Width::Pad(8), "pad entries before each row; with pack: pad bytes";
        x_after: u32 = 0, Width::Pad(8), "pad entries after each row; with pack: pad bytes";
        y_before: u32 = 0, Width::Pad(6), "pad rows before the rows of each plane";
        y_after: u32 = 0, Width::Pad(6), "pad rows after the rows of each plane";
        z_before: u32 = 0, Width::Pad(6), "pad planes before the first";
        z_after: u32 = 0, Width::Pad(6), "pad planes after the last";
        pack: bool = false, Width::Pack(None), "rows start at any byte instead of a whole entry";
        fill: bool = false, Width::Pack(None), "with pack: fill the rest of a row's last entry with the pad value";
        pack_byte: u32 = 0, Width::Pack(Some(W::PackByte)), "with pack: start byte within the first entry";
        pack_row_stride: u32 = 0, Width::Pack(Some(W::PackStride)), "with pack: scratchpad bytes from row to row";
        pack_plane_stride: u32 = 0, Width::Pack(Some(W::PackStride)), "with pack: scratchpad bytes from plane to plane";
    }
    /// Multiplies inp entries by wgt tiles and writes or adds to acc, one micro-op per cycle.
    Gemm = 2, "gemm", Unit::Gemm => {
        accumulate: bool = true, Width::Bits(1), "add to acc instead of overwriting it";
        wgt_zp: i8 = 0, Width::WgtZp(8), "zero point, subtracted from every weight";
        uop: u32 = 0, Width::Named(W::GemmUop), "first micro-op";
        uops: u32 = 1, Width::Named(W::GemmUopCount), "number of micro-ops that the loops repeat";
        count0: u32 = 1, Width::Named(W::Loop), "iterations of the outer loop";
        count1: u32 = 1, Width::Named(W::Loop), "iterations of the middle loop";
        count2: u32 = 1, Width::Loop3(W::Loop), "iterations of the inner loop";
        acc: u32 = 0, Width::Named(W::AccIndex), "added to every acc index";
        inp: u32 = 0, Width::Named(W::InpIndex), "added to every inp index";
        wgt: u32 = 0, Width::Named(W::WgtIndex), "added to every wgt index";
        acc0: u32 = 0, Width::Named(W::AccIndex), "acc step of the outer loop";
        inp0: u32 = 0, Width::Named(W::InpIndex), "inp step of the outer loop";
        wgt0: u32 = 0, Width::Named(W::WgtIndex), "wgt step of the outer loop";
        acc1: u32 = 0, Width::Named(W::AccIndex), "acc step of the middle loop";
        inp1: u32 = 0, Width::Named(W::InpIndex), "inp step of the middle loop";
        wgt1: u32 = 0, Width::Named(W::WgtIndex), "wgt step of the middle loop";
        acc2: u32 = 0, Width::Loop3(W::AccIndex), "acc step of the inner loop";
        inp2: u32 = 0, Width::Loop3(W::InpIndex), "inp step of the inner loop";
        wgt2: u32 = 0, Width::Loop3(W::WgtIndex), "wgt step of the inner loop";
    }
    /// Applies one element-wise operation to rows; destination and operands are indexed.
    Vector = 3, "vector", Unit::Vector => {
        op: VecOp = VecOp::Move, Width::Bits(5), "operation";
        mode: Rounding = Rounding::Double, Width::Bits(1), "rounding of requant and mul: twice (double) or once (single)";
        dst: VecDst = VecDst::Acc, Width::Bits(2), "destination memory";
        a: VecSrc = VecSrc::Acc, Width::Bits(2), "first operand";
        b: VecSrc = VecSrc::None, Width::Bits(3), "second operand";
        descriptor: u32 = 0, Width::Named(W::Descriptor), "first param entry of the descriptor, or of lut's table";
        uop: u32 = 0, Width::Named(W::VecUop), "first micro-op";
        uops: u32 = 1, Width::Named(W::VecUopCount), "number of micro-ops that the loops repeat";
        count0: u32 = 1, Width::Named(W::Loop), "iterations of the outer loop";
        count1: u32 = 1, Width::Named(W::Loop), "iterations of the middle loop";
        count2: u32 = 1, Width::Loop3(W::Loop), "iterations of the inner loop";
        dst_at: u32 = 0, Width::Named(W::VecIndex), "added to every index of dst";
        a_at: u32 = 0, Width::Named(W::VecIndex), "added to every index of a";
        b_at: u32 = 0, Width::Named(W::VecIndex), "added to every index of b";
        dst0: u32 = 0, Width::Named(W::VecIndex), "dst step of the outer loop";
        a0: u32 = 0, Width::Named(W::VecIndex), "a step of the outer loop";
        b0: u32 = 0, Width::Named(W::VecIndex), "b step of the outer loop";
        dst1: u32 = 0, Width::Named(W::VecIndex), "dst step of the middle loop";
        a1: u32 = 0, Width::Named(W::VecIndex), "a step of the middle loop";
        b1: u32 = 0, Width::Named(W::VecIndex), "b step of the middle loop";
        dst2: u32 = 0, Width::Loop3(W::VecIndex), "dst step of the inner loop";
        a2: u32 = 0, Width::Loop3(W::VecIndex), "a step of the inner loop";
        b2: u32 = 0, Width::Loop3(W::VecIndex), "b step of the inner loop";
    }
    /// Copies rows of bytes from inp or out to DRAM.
    Store = 4, "store", Unit::Store => {
        mem: Mem = Mem::Out, Width::Bits(3), "source memory, inp or out";
        base: u32 = 0, Width::Named(W::Base), "base register";
        offset: u64 = 0, Width::Named(W::Offset), "byte offset of the first row";
        entry: u32 = 0, Width::Named(W::Entry), "first entry read";
        row_bytes: u32 = 1, Width::Bits(16), "bytes per row";
        rows: u32 = 1, Width::Bits(11), "rows per plane";
        planes: u32 = 1, Width::Bits(11), "number of planes";
        row_stride: u64 = 0, Width::Named(W::Stride), "bytes from row to row in DRAM";
        plane_stride: u64 = 0, Width::Named(W::Stride), "bytes from plane to plane in DRAM";
        pack: bool = false, Width::Pack(None), "rows start at any byte instead of a whole entry";
        pack_byte: u32 = 0, Width::Pack(Some(W::PackByte)), "with pack: start byte within the first entry";
        pack_row_stride: u32 = 0, Width::Pack(Some(W::PackStride)), "with pack: scratchpad bytes from row to row";
        pack_plane_stride: u32 = 0, Width::Pack(Some(W::PackStride)), "with pack: scratchpad bytes from plane to plane";
    }
}

/// Most bytes of a row of a load or store.
pub const MOST_ROW_BYTES: u32 = most(Opcode::Load, "row_bytes");
/// Most rows of a plane, and most planes.
pub const MOST_ROWS: u32 = most(Opcode::Load, "rows");
/// Most pad entries before or after a row, if loads can pad.
pub const MOST_PAD_ENTRIES: u32 = most(Opcode::Load, "x_before");
/// Most pad rows before or after the rows of a plane, and most pad planes, if loads can pad.
pub const MOST_PAD_ROWS: u32 = most(Opcode::Load, "y_before");

/// The greatest value of a field that has the same width in every configuration that includes it. For any other field
/// this does not compile.
const fn most(opcode: Opcode, name: &str) -> u32 {
    let fields = opcode.fields();
    let mut i = 0;
    while !same(fields[i].name, name) {
        i += 1;
    }
    match fields[i].width {
        Width::Bits(bits) | Width::Pad(bits) | Width::WgtZp(bits) => (1 << bits) - 1,
        Width::Named(_) | Width::Pack(_) | Width::Loop3(_) => panic!("the width depends on the configuration"),
    }
}

/// Whether two words are the same, at compile time.
const fn same(a: &str, b: &str) -> bool {
    let (a, b) = (a.as_bytes(), b.as_bytes());
    let mut i = 0;
    while i < a.len() && i < b.len() && a[i] == b[i] {
        i += 1;
    }
    i == a.len() && i == b.len()
}

/// An instruction with its dependency tokens.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub struct Insn {
    /// Units whose tokens for this one are popped at the start.
    pub pop: UnitSet,
    /// Units that receive a token at retirement.
    pub push: UnitSet,
    /// What it does.
    pub op: Op,
}

impl Gemm {
    /// Micro-ops over all loops, one per cycle.
    pub fn micro_ops(&self) -> u64 {
        passes([self.uops, self.count0, self.count1, self.count2])
    }
}

impl Vector {
    /// Micro-ops over all loops, one row each.
    pub fn micro_ops(&self) -> u64 {
        passes([self.uops, self.count0, self.count1, self.count2])
    }
}

impl Op {
    /// Least number of cycles on its unit: each micro-op, and each row in device memory, takes at least one.
    pub fn least_cycles(&self) -> u64 {
        match self {
            Op::Gemm(x) => x.micro_ops(),
            Op::Vector(x) => x.micro_ops(),
            Op::Load(x) => u64::from(x.rows) * u64::from(x.planes),
            Op::Store(x) => u64::from(x.rows) * u64::from(x.planes),
        }
    }
}

fn passes(counts: [u32; 4]) -> u64 {
    counts.into_iter().fold(1, |all, n| all.saturating_mul(n.into()))
}

impl Insn {
    /// An instruction without tokens.
    pub fn new(op: impl Into<Op>) -> Insn {
        Insn { pop: UnitSet::NONE, push: UnitSet::NONE, op: op.into() }
    }

    /// The unit that executes it.
    pub fn unit(&self) -> Unit {
        self.op.opcode().unit()
    }
}
