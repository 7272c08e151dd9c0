//! Attributes of operators and their text form.

use crate::graph::DType;
use std::collections::BTreeMap;
use tilewright_hw::num::{Qadd, QaddOperand, Rounding};
pub use tilewright_tensor::te::Attr;

/// Order of an image tensor's dimensions.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum Layout {
    /// `[N, H, W, C]`.
    Nhwc,
    /// `[N, C, H, W]`.
    Nchw,
}

impl Layout {
    /// The dimension that holds the channels.
    pub const fn channel_axis(self) -> usize {
        match self {
            Layout::Nhwc => 3,
            Layout::Nchw => 1,
        }
    }

    /// The dimensions that hold height and width.
    pub const fn spatial_axes(self) -> [usize; 2] {
        match self {
            Layout::Nhwc => [1, 2],
            Layout::Nchw => [2, 3],
        }
    }
}

/// How a real value is rounded to an integer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum QuantRounding {
    /// Ties to the even integer (ONNX).
    HalfEven,
    /// Ties away from zero (TFLite).
    HalfAway,
}

impl QuantRounding {
    /// The nearest integer to `x`, as a float.
    pub fn round(self, x: f32) -> f32 {
        match self {
            QuantRounding::HalfEven => x.round_ties_even(),
            QuantRounding::HalfAway => x.round(),
        }
    }
}

/// A Rust type that can be an attribute.
pub trait AttrValue: Sized {
    /// What the text form accepts, in words.
    const EXPECTED: &'static str;
    /// All values, if they are words.
    const WORDS: &'static [&'static str] = &[];
    /// Returns the value as the text form writes it.
    fn to_attr(&self) -> Attr;
    /// Returns the value of a text. `None` if the type has no such value.
    fn from_attr(a: &Attr) -> Option<Self>;
}

macro_rules! integers {
    ($($ty:ty)*) => {
        $(impl AttrValue for $ty {
            const EXPECTED: &'static str = concat!("an integer (", stringify!($ty), ")");
            fn to_attr(&self) -> Attr {
                Attr::Int(*self as i64)
            }
            fn from_attr(a: &Attr) -> Option<Self> {
                if let Attr::Int(i) = a { (*i).try_into().ok() } else { None }
            }
        })*
    };
}
integers!(usize i64 i32 i8 u8 i16 u16 u32);

impl AttrValue for String {
    const EXPECTED: &'static str = "a text in quotes";
    fn to_attr(&self) -> Attr {
        Attr::Text(self.clone())
    }
    fn from_attr(a: &Attr) -> Option<Self> {
        if let Attr::Text(text) = a { Some(text.clone()) } else { None }
    }
}

impl AttrValue for f32 {
    const EXPECTED: &'static str = "a number";
    fn to_attr(&self) -> Attr {
        Attr::Float(*self)
    }
    fn from_attr(a: &Attr) -> Option<Self> {
        match a {
            Attr::Float(x) => Some(*x),
            Attr::Int(i) => Some(*i as f32),
            Attr::Word(w) if matches!(w.as_str(), "inf" | "-inf" | "NaN") => w.parse().ok(),
            _ => None,
        }
    }
}

impl<T: AttrValue> AttrValue for Vec<T> {
    const EXPECTED: &'static str = "a list";
    fn to_attr(&self) -> Attr {
        Attr::List(self.iter().map(T::to_attr).collect())
    }
    fn from_attr(a: &Attr) -> Option<Self> {
        if let Attr::List(v) = a { v.iter().map(T::from_attr).collect() } else { None }
    }
}

impl<T: AttrValue + Copy, const N: usize> AttrValue for [T; N] {
    const EXPECTED: &'static str = "a list of the operator's length";
    fn to_attr(&self) -> Attr {
        Attr::List(self.iter().map(T::to_attr).collect())
    }
    fn from_attr(a: &Attr) -> Option<Self> {
        Vec::<T>::from_attr(a)?.try_into().ok()
    }
}

macro_rules! words {
    ($($ty:ty, $expected:literal { $($variant:path = $word:literal,)* })*) => {
        $(impl $crate::graph::op::attr::AttrValue for $ty {
            const EXPECTED: &'static str = $expected;
            const WORDS: &'static [&'static str] = &[$($word,)*];
            fn to_attr(&self) -> $crate::graph::op::attr::Attr {
                use $crate::graph::op::attr::Attr;
                Attr::Word(match *self { $($variant => $word,)* }.into())
            }
            fn from_attr(a: &$crate::graph::op::attr::Attr) -> Option<Self> {
                use $crate::graph::op::attr::Attr;
                match a {
                    $(Attr::Word(w) if w == $word => Some($variant),)*
                    _ => None,
                }
            }
        })*
    };
}
pub(super) use words;

words! {
    Layout, "`nhwc` or `nchw`" { Layout::Nhwc = "nhwc", Layout::Nchw = "nchw", }
    QuantRounding, "`half_even` or `half_away`" {
        QuantRounding::HalfEven = "half_even", QuantRounding::HalfAway = "half_away",
    }
    Rounding, "`double` or `single`" { Rounding::Double = "double", Rounding::Single = "single", }
    DType, "an element type" {
        DType::F32 = "f32", DType::I8 = "i8", DType::U8 = "u8",
        DType::I32 = "i32", DType::I64 = "i64", DType::Bool = "bool", DType::F64 = "f64",
        DType::I16 = "i16", DType::U16 = "u16", DType::U32 = "u32", DType::U64 = "u64",
    }
}

impl AttrValue for bool {
    const EXPECTED: &'static str = "`true` or `false`";
    const WORDS: &'static [&'static str] = &["true", "false"];
    fn to_attr(&self) -> Attr {
        Attr::Word(if *self { "true" } else { "false" }.into())
    }
    fn from_attr(a: &Attr) -> Option<Self> {
        match a {
            Attr::Word(w) if w == "true" => Some(true),
            Attr::Word(w) if w == "false" => Some(false),
            _ => None,
        }
    }
}

/// Zero point, multiplier and shift of `a`, of `b` and of the output, then `left_shift`, `lo`, `hi`.
impl AttrValue for Qadd {
    const EXPECTED: &'static str = "the 12 integers of a quantized addition";
    fn to_attr(&self) -> Attr {
        let operands = [self.a, self.b, self.out];
        let mut v: Vec<i32> = operands.iter().flat_map(|o| [o.zero_point, o.multiplier, i32::from(o.shift)]).collect();
        v.extend([i32::from(self.left_shift), self.lo, self.hi]);
        v.to_attr()
    }
    fn from_attr(a: &Attr) -> Option<Self> {
        let v: [i32; 12] = AttrValue::from_attr(a)?;
        let operand =
            |i: usize| Some(QaddOperand { zero_point: v[i], multiplier: v[i + 1], shift: v[i + 2].try_into().ok()? });
        Some(Qadd {
            a: operand(0)?,
            b: operand(3)?,
            out: operand(6)?,
            left_shift: v[9].try_into().ok()?,
            lo: v[10],
            hi: v[11],
        })
    }
}

/// Takes attributes by name and collects errors.
#[derive(Debug, Default)]
pub(crate) struct AttrReader {
    pub(crate) attrs: BTreeMap<String, Attr>,
    pub(crate) errors: Vec<String>,
}

impl AttrReader {
    pub(crate) fn take<T: AttrValue>(&mut self, name: &str) -> Option<T> {
        let Some(a) = self.attrs.remove(name) else {
            self.errors.push(format!("attribute `{name}` is missing: {}", T::EXPECTED));
            return None;
        };
        let v = T::from_attr(&a);
        if v.is_none() {
            self.errors.push(format!("attribute `{name}` must be {}, found {a}", T::EXPECTED));
        }
        v
    }
}
