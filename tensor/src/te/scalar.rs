//! Semantics of the operations in scalar expressions, shared by all evaluators.

use std::ops::{Add, Div, Mul, Sub};

use tilewright_hw::num;

use super::{BinOp, DType, Func};
use crate::extreme;
use crate::math::Single;

/// One element, with integers of every type held as i64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// An integer or boolean. A u64 has the same bits as the i64.
    I(i64),
    /// A float of 32 bits.
    F(f32),
    /// A float of 64 bits.
    D(f64),
}

impl Scalar {
    /// Returns the integer. A float is truncated.
    #[inline]
    pub fn int(self) -> i64 {
        match self {
            Scalar::I(v) => v,
            Scalar::F(v) => v as i64,
            Scalar::D(v) => v as i64,
        }
    }

    /// Returns the float, rounded to 32 bits. An integer is converted.
    #[inline]
    pub fn float(self) -> f32 {
        match self {
            Scalar::I(v) => v as f32,
            Scalar::F(v) => v,
            Scalar::D(v) => v as f32,
        }
    }

    /// Returns the float. An integer is converted.
    #[inline]
    pub fn double(self) -> f64 {
        match self {
            Scalar::I(v) => v as f64,
            Scalar::F(v) => v.into(),
            Scalar::D(v) => v,
        }
    }
}

/// Wraps an integer into the type's range.
#[inline]
pub fn wrap(v: i64, t: DType) -> i64 {
    match t {
        DType::I8 => v as i8 as i64,
        DType::U8 => v as u8 as i64,
        DType::I16 => v as i16 as i64,
        DType::U16 => v as u16 as i64,
        DType::I32 => v as i32 as i64,
        DType::U32 => v as u32 as i64,
        DType::Bool => (v != 0) as i64,
        DType::I64 | DType::U64 | DType::F32 | DType::F64 => v,
    }
}

/// Returns the least and greatest value of an integer type, as a [`Scalar`] holds them.
pub fn range(t: DType) -> (i64, i64) {
    match t {
        DType::I8 => (i8::MIN as i64, i8::MAX as i64),
        DType::U8 => (0, 255),
        DType::I16 => (i16::MIN as i64, i16::MAX as i64),
        DType::U16 => (0, u16::MAX as i64),
        DType::I32 => (i32::MIN as i64, i32::MAX as i64),
        DType::U32 => (0, u32::MAX as i64),
        DType::Bool => (0, 1),
        DType::U64 => (0, u64::MAX as i64),
        DType::I64 | DType::F32 | DType::F64 => (i64::MIN, i64::MAX),
    }
}

fn shift_mask(t: DType) -> u32 {
    (t.size_bytes() * 8 - 1) as u32
}

/// Returns `a op b`, both of type `t`.
#[inline]
pub fn binary(op: BinOp, a: Scalar, b: Scalar, t: DType) -> Scalar {
    match (a, b) {
        (Scalar::F(a), Scalar::F(b)) => float_binary(op, a, b, Scalar::F),
        (Scalar::D(a), Scalar::D(b)) => float_binary(op, a, b, Scalar::D),
        _ => Scalar::I(int_binary(op, a.int(), b.int(), t)),
    }
}

fn float_binary<T>(op: BinOp, a: T, b: T, wrap: fn(T) -> Scalar) -> Scalar
where
    T: extreme::Float + From<f32> + Add<Output = T> + Sub<Output = T> + Mul<Output = T> + Div<Output = T>,
{
    wrap(match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::Div => a / b,
        BinOp::Min => extreme::least(a, b),
        BinOp::Max => extreme::greatest(a, b),
        BinOp::Lt => return Scalar::I((a < b) as i64),
        BinOp::Le => return Scalar::I((a <= b) as i64),
        BinOp::Eq => return Scalar::I((a == b) as i64),
        BinOp::Ne => return Scalar::I((a != b) as i64),
        BinOp::Mod | BinOp::Shl | BinOp::Shr | BinOp::And | BinOp::Or | BinOp::Xor => f32::NAN.into(),
    })
}

/// Returns `a op b` of integers, wrapped into `t`. Comparisons return 0 or 1.
#[inline]
pub fn int_binary(op: BinOp, a: i64, b: i64, t: DType) -> i64 {
    if t == DType::U64 {
        return long_binary(op, a as u64, b as u64) as i64;
    }
    let v = match op {
        BinOp::Add => a.wrapping_add(b),
        BinOp::Sub => a.wrapping_sub(b),
        BinOp::Mul => a.wrapping_mul(b),
        BinOp::Div => floor_div(a, b),
        BinOp::Mod => a.wrapping_sub(floor_div(a, b).wrapping_mul(b)) * (b != 0) as i64,
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
        BinOp::Shl => a.wrapping_shl(b as u32 & shift_mask(t)),
        BinOp::Shr => a.wrapping_shr(b as u32 & shift_mask(t)),
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Lt => return (a < b) as i64,
        BinOp::Le => return (a <= b) as i64,
        BinOp::Eq => return (a == b) as i64,
        BinOp::Ne => return (a != b) as i64,
    };
    wrap(v, t)
}

/// Returns `a op b` of 64-bit integers without a sign. All others fit in an i64.
fn long_binary(op: BinOp, a: u64, b: u64) -> u64 {
    match op {
        BinOp::Div => a.checked_div(b).unwrap_or(0),
        BinOp::Mod => a.checked_rem(b).unwrap_or(0),
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
        BinOp::Shr => a >> (b & 63),
        BinOp::Lt => (a < b).into(),
        BinOp::Le => (a <= b).into(),
        // Signs make no difference.
        op => int_binary(op, a as i64, b as i64, DType::I64) as u64,
    }
}

/// Returns the quotient rounded down, or 0 if the divisor is 0.
pub fn floor_div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let q = a.wrapping_div(b);
    if (a.wrapping_rem(b) != 0) && ((a < 0) != (b < 0)) { q - 1 } else { q }
}

/// Converts from type `from` to type `to`.
#[inline]
pub fn cast(v: Scalar, from: DType, to: DType) -> Scalar {
    match (v, to) {
        (Scalar::I(v), DType::F32) if from == DType::U64 => Scalar::F(v as u64 as f32),
        (Scalar::I(v), DType::F64) if from == DType::U64 => Scalar::D(v as u64 as f64),
        (v, DType::F32) => Scalar::F(v.float()),
        (v, DType::F64) => Scalar::D(v.double()),
        (Scalar::I(v), _) => Scalar::I(wrap(v, to)),
        (v, DType::Bool) => Scalar::I((v.double() != 0.0) as i64),
        (v, DType::U64) => Scalar::I(v.double() as u64 as i64),
        (v, _) => {
            let (lo, hi) = range(to);
            Scalar::I(v.int().clamp(lo, hi))
        }
    }
}

/// Returns the value of type `t` with the same bits, of a value whose type has the same size.
pub fn bitcast(v: Scalar, t: DType) -> Scalar {
    let bits = match v {
        Scalar::I(v) => v,
        Scalar::F(v) => v.to_bits().into(),
        Scalar::D(v) => v.to_bits() as i64,
    };
    match t {
        DType::F32 => Scalar::F(f32::from_bits(bits as u32)),
        DType::F64 => Scalar::D(f64::from_bits(bits as u64)),
        t => Scalar::I(wrap(bits, t)),
    }
}

/// Returns the number of a list at an index. An index below 0 means the first one, an index past the end the last one.
pub fn pick(list: &[i64], index: i64) -> i64 {
    let last = list.len().saturating_sub(1) as i64;
    list.get(index.clamp(0, last) as usize).copied().unwrap_or(0)
}

/// Returns the value of a function. Missing arguments count as 0.
pub fn call(f: Func, args: &[Scalar]) -> Scalar {
    if let Some(Scalar::D(x)) = args.first() {
        let y = args.get(1).map_or(0.0, |a| a.double());
        return Scalar::D(call_double(f, *x, y));
    }
    if f.is_float() {
        let x = args.first().map_or(0.0, |a| a.float());
        let y = args.get(1).map_or(0.0, |a| a.float());
        Scalar::F(match f {
            Func::Exp => Single::exp(x),
            Func::Log => x.ln(),
            Func::Sqrt => x.sqrt(),
            Func::Sin => x.sin(),
            Func::Cos => x.cos(),
            Func::Tanh => Single::tanh(x),
            Func::Erf => Single::erf(x),
            Func::Pow => x.powf(y),
            Func::Floor => x.floor(),
            Func::Ceil => x.ceil(),
            Func::RoundEven => x.round_ties_even(),
            Func::RoundAway => x.round(),
            _ => x.abs(),
        })
    } else {
        let a = |i: usize| args.get(i).map_or(0, |a| a.int() as i32);
        Scalar::I(match f {
            Func::ScaleDouble => num::scale_double(a(0), a(1), shift(a(2))),
            Func::ScaleSingle => num::scale_single(a(0), a(1), shift(a(2))),
            Func::OffsetClamp => num::offset_clamp(a(0), a(1), a(2), a(3)),
            Func::DoublingHighMul => num::doubling_high_mul(a(0), a(1)),
            _ => num::rounding_divide_by_pot(a(0), a(1).clamp(0, 31) as u32),
        } as i64)
    }
}

fn call_double(f: Func, x: f64, y: f64) -> f64 {
    match f {
        Func::Exp => x.exp(),
        Func::Log => x.ln(),
        Func::Sqrt => x.sqrt(),
        Func::Sin => x.sin(),
        Func::Cos => x.cos(),
        Func::Tanh => x.tanh(),
        Func::Erf => libm::erf(x),
        Func::Pow => x.powf(y),
        Func::Floor => x.floor(),
        Func::Ceil => x.ceil(),
        Func::RoundEven => x.round_ties_even(),
        Func::RoundAway => x.round(),
        _ => x.abs(),
    }
}

/// Returns a shift as the i8 that `num` takes. `num` clamps shifts further, so results do not change.
pub fn shift(v: i32) -> i8 {
    v.clamp(-64, 64) as i8
}
