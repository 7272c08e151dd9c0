//! Semantics of the operations in scalar expressions, shared by all evaluators.

use tilewright_hw::num;

use super::{BinOp, DType, Func};
use crate::extreme;
use crate::math::Single;

/// One element, with integers of every type held as i64.
#[derive(Debug, Clone, Copy, PartialEq)]
pub enum Scalar {
    /// An integer or boolean.
    I(i64),
    /// A float.
    F(f32),
}

impl Scalar {
    /// Returns the integer. A float is truncated.
    #[inline]
    pub fn int(self) -> i64 {
        match self {
            Scalar::I(v) => v,
            Scalar::F(v) => v as i64,
        }
    }

    /// Returns the float. An integer is converted.
    #[inline]
    pub fn float(self) -> f32 {
        match self {
            Scalar::I(v) => v as f32,
            Scalar::F(v) => v,
        }
    }
}

/// Wraps an integer into the type's range.
#[inline]
pub fn wrap(v: i64, t: DType) -> i64 {
    match t {
        DType::I8 => v as i8 as i64,
        DType::U8 => v as u8 as i64,
        DType::I32 => v as i32 as i64,
        DType::Bool => (v != 0) as i64,
        _ => v,
    }
}

/// Returns the least and greatest value of an integer type.
pub fn range(t: DType) -> (i64, i64) {
    match t {
        DType::I8 => (i8::MIN as i64, i8::MAX as i64),
        DType::U8 => (0, 255),
        DType::I32 => (i32::MIN as i64, i32::MAX as i64),
        DType::Bool => (0, 1),
        _ => (i64::MIN, i64::MAX),
    }
}

fn shift_mask(t: DType) -> u32 {
    (t.size_bytes() * 8 - 1) as u32
}

/// Returns `a op b`, both of type `t`.
#[inline]
pub fn binary(op: BinOp, a: Scalar, b: Scalar, t: DType) -> Scalar {
    match (a, b) {
        (Scalar::F(a), Scalar::F(b)) => float_binary(op, a, b),
        _ => Scalar::I(int_binary(op, a.int(), b.int(), t)),
    }
}

fn float_binary(op: BinOp, a: f32, b: f32) -> Scalar {
    Scalar::F(match op {
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
        BinOp::Mod | BinOp::Shl | BinOp::Shr | BinOp::And | BinOp::Or => f32::NAN,
    })
}

/// Returns `a op b` of integers, wrapped into `t`. Comparisons return 0 or 1.
#[inline]
pub fn int_binary(op: BinOp, a: i64, b: i64, t: DType) -> i64 {
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
        BinOp::Lt => return (a < b) as i64,
        BinOp::Le => return (a <= b) as i64,
        BinOp::Eq => return (a == b) as i64,
        BinOp::Ne => return (a != b) as i64,
    };
    wrap(v, t)
}

/// Returns the quotient rounded down, or 0 if the divisor is 0.
pub fn floor_div(a: i64, b: i64) -> i64 {
    if b == 0 {
        return 0;
    }
    let q = a.wrapping_div(b);
    if (a.wrapping_rem(b) != 0) && ((a < 0) != (b < 0)) { q - 1 } else { q }
}

/// Converts to type `t`.
#[inline]
pub fn cast(v: Scalar, t: DType) -> Scalar {
    match (v, t) {
        (Scalar::F(_), DType::F32) => v,
        (Scalar::I(v), DType::F32) => Scalar::F(v as f32),
        (Scalar::I(v), _) => Scalar::I(wrap(v, t)),
        (Scalar::F(v), DType::Bool) => Scalar::I((v != 0.0) as i64),
        (Scalar::F(v), _) => {
            let (lo, hi) = range(t);
            Scalar::I((v as i64).clamp(lo, hi))
        }
    }
}

/// Returns the number of a list at an index. An index below 0 means the first one, an index past the end the last one.
pub fn pick(list: &[i64], index: i64) -> i64 {
    let last = list.len().saturating_sub(1) as i64;
    list.get(index.clamp(0, last) as usize).copied().unwrap_or(0)
}

/// Returns the value of a function. Missing arguments count as 0.
pub fn call(f: Func, args: &[Scalar]) -> Scalar {
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

/// Returns a shift as the i8 that `num` takes. `num` clamps shifts further, so results do not change.
pub fn shift(v: i32) -> i8 {
    v.clamp(-64, 64) as i8
}
