//! Instructions on single values or on vectors, the lanes of a vectorized loop.
//!
//! A single value is broadcast if it is combined with a vector.

use inkwell::types::{BasicTypeEnum, FloatType, IntType};
use inkwell::values::{BasicValue, BasicValueEnum, VectorValue};
use inkwell::{FloatPredicate, IntPredicate};

use super::Emitter;
use crate::EmitError;

/// A single value or a vector.
pub(super) type Value<'c> = BasicValueEnum<'c>;
pub(super) type Emitted<'c> = Result<Value<'c>, EmitError>;

/// An operation on two integers.
#[derive(Debug, Clone, Copy)]
pub(super) enum IntOp {
    Add,
    Sub,
    Mul,
    Shl,
    /// Arithmetic right shift.
    Ashr,
    /// Logical right shift.
    Lshr,
    And,
    Or,
    Xor,
    Sdiv,
    Srem,
    Udiv,
    Urem,
}

/// An operation on two floats.
#[derive(Debug, Clone, Copy)]
pub(super) enum FloatOp {
    Add,
    Sub,
    Mul,
    Div,
}

/// Returns the number of lanes, or `None` for a single value.
pub(super) fn lanes(v: Value<'_>) -> Option<u32> {
    match v {
        BasicValueEnum::VectorValue(v) => Some(v.get_type().get_size()),
        _ => None,
    }
}

/// Returns the type of each lane.
fn element(v: Value<'_>) -> BasicTypeEnum<'_> {
    match v {
        BasicValueEnum::VectorValue(v) => v.get_type().get_element_type(),
        v => v.get_type(),
    }
}

fn mixed<T>() -> Result<T, EmitError> {
    Err(EmitError::Program("an operation on values of different kinds".into()))
}

impl<'c> Emitter<'_, 'c> {
    /// Returns a vector type of `n` lanes, or the type itself for `None`.
    pub(super) fn wide_type(&self, t: BasicTypeEnum<'c>, n: Option<u32>) -> BasicTypeEnum<'c> {
        match (t, n) {
            (t, None) => t,
            (BasicTypeEnum::FloatType(t), Some(n)) => t.vec_type(n).into(),
            (BasicTypeEnum::IntType(t), Some(n)) => t.vec_type(n).into(),
            (t, Some(_)) => t,
        }
    }

    /// Broadcasts a value to `n` lanes.
    pub(super) fn spread(&self, v: Value<'c>, n: u32) -> Result<VectorValue<'c>, EmitError> {
        if let BasicValueEnum::VectorValue(v) = v {
            return Ok(v);
        }
        let BasicTypeEnum::VectorType(t) = self.wide_type(v.get_type(), Some(n)) else { return mixed() };
        let i32t = self.context.i32_type();
        let first = self.builder.build_insert_element(t.get_undef(), v, i32t.const_zero(), "")?;
        Ok(self.builder.build_shuffle_vector(first, t.get_undef(), i32t.vec_type(n).const_zero(), "")?)
    }

    /// Broadcasts one of two values so that both have the same number of lanes.
    fn alike(&self, x: Value<'c>, y: Value<'c>) -> Result<(Value<'c>, Value<'c>), EmitError> {
        Ok(match (lanes(x), lanes(y)) {
            (Some(n), None) => (x, self.spread(y, n)?.into()),
            (None, Some(n)) => (self.spread(x, n)?.into(), y),
            _ => (x, y),
        })
    }

    /// Returns an integer constant of the value's type.
    pub(super) fn like(&self, v: Value<'c>, constant: i64) -> Value<'c> {
        match element(v) {
            BasicTypeEnum::IntType(t) => t.const_int(constant as u64, true).into(),
            _ => self.i64(constant).into(),
        }
    }

    /// Returns the bits of each lane of an integer.
    pub(super) fn bits(v: Value<'c>) -> u32 {
        match element(v) {
            BasicTypeEnum::IntType(t) => t.get_bit_width(),
            _ => 0,
        }
    }

    pub(super) fn int(&self, op: IntOp, x: Value<'c>, y: Value<'c>) -> Emitted<'c> {
        let b = &self.builder;
        macro_rules! build {
            ($x:expr, $y:expr) => {
                match op {
                    IntOp::Add => b.build_int_add($x, $y, "")?.into(),
                    IntOp::Sub => b.build_int_sub($x, $y, "")?.into(),
                    IntOp::Mul => b.build_int_mul($x, $y, "")?.into(),
                    IntOp::Shl => b.build_left_shift($x, $y, "")?.into(),
                    IntOp::Ashr => b.build_right_shift($x, $y, true, "")?.into(),
                    IntOp::Lshr => b.build_right_shift($x, $y, false, "")?.into(),
                    IntOp::And => b.build_and($x, $y, "")?.into(),
                    IntOp::Or => b.build_or($x, $y, "")?.into(),
                    IntOp::Xor => b.build_xor($x, $y, "")?.into(),
                    IntOp::Sdiv => b.build_int_signed_div($x, $y, "")?.into(),
                    IntOp::Srem => b.build_int_signed_rem($x, $y, "")?.into(),
                    IntOp::Udiv => b.build_int_unsigned_div($x, $y, "")?.into(),
                    IntOp::Urem => b.build_int_unsigned_rem($x, $y, "")?.into(),
                }
            };
        }
        Ok(match self.alike(x, y)? {
            (BasicValueEnum::IntValue(x), BasicValueEnum::IntValue(y)) => build!(x, y),
            (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(y)) => build!(x, y),
            _ => return mixed(),
        })
    }

    pub(super) fn float(&self, op: FloatOp, x: Value<'c>, y: Value<'c>) -> Emitted<'c> {
        let v = self.strict(op, x, y)?;
        self.relax(v);
        Ok(v)
    }

    /// Emits an operation that LLVM may not reorder or contract, even in a sum that can be evaluated in any order.
    pub(super) fn strict(&self, op: FloatOp, x: Value<'c>, y: Value<'c>) -> Emitted<'c> {
        let b = &self.builder;
        macro_rules! build {
            ($x:expr, $y:expr) => {
                match op {
                    FloatOp::Add => b.build_float_add($x, $y, "")?.into(),
                    FloatOp::Sub => b.build_float_sub($x, $y, "")?.into(),
                    FloatOp::Mul => b.build_float_mul($x, $y, "")?.into(),
                    FloatOp::Div => b.build_float_div($x, $y, "")?.into(),
                }
            };
        }
        Ok(match self.alike(x, y)? {
            (BasicValueEnum::FloatValue(x), BasicValueEnum::FloatValue(y)) => build!(x, y),
            (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(y)) => build!(x, y),
            _ => return mixed(),
        })
    }

    pub(super) fn compare(&self, p: IntPredicate, x: Value<'c>, y: Value<'c>) -> Emitted<'c> {
        Ok(match self.alike(x, y)? {
            (BasicValueEnum::IntValue(x), BasicValueEnum::IntValue(y)) => {
                self.builder.build_int_compare(p, x, y, "")?.into()
            }
            (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(y)) => {
                self.builder.build_int_compare(p, x, y, "")?.into()
            }
            _ => return mixed(),
        })
    }

    pub(super) fn compare_floats(&self, p: FloatPredicate, x: Value<'c>, y: Value<'c>) -> Emitted<'c> {
        Ok(match self.alike(x, y)? {
            (BasicValueEnum::FloatValue(x), BasicValueEnum::FloatValue(y)) => {
                self.builder.build_float_compare(p, x, y, "")?.into()
            }
            (BasicValueEnum::VectorValue(x), BasicValueEnum::VectorValue(y)) => {
                self.builder.build_float_compare(p, x, y, "")?.into()
            }
            _ => return mixed(),
        })
    }

    /// Selects `x` in the lanes where `c` holds, `y` in the others.
    pub(super) fn choose(&self, c: Value<'c>, x: Value<'c>, y: Value<'c>) -> Emitted<'c> {
        let (x, y) = self.alike(x, y)?;
        Ok(match c {
            BasicValueEnum::IntValue(c) => self.builder.build_select(c, x, y, "")?,
            BasicValueEnum::VectorValue(c) => {
                let n = c.get_type().get_size();
                let (x, y) = (self.spread(x, n)?, self.spread(y, n)?);
                self.builder.build_select(c, x, y, "")?
            }
            _ => return mixed(),
        })
    }

    /// Converts an integer to another width: truncates it, or extends it by its sign or by zeros.
    pub(super) fn resize(&self, v: Value<'c>, to: IntType<'c>, unsigned: bool) -> Emitted<'c> {
        let b = &self.builder;
        let (have, bits) = (Self::bits(v), to.get_bit_width());
        let to = self.wide_type(to.into(), lanes(v));
        macro_rules! build {
            ($v:expr, $t:expr) => {
                match (have.cmp(&bits), unsigned) {
                    (std::cmp::Ordering::Equal, _) => v,
                    (std::cmp::Ordering::Greater, _) => b.build_int_truncate($v, $t, "")?.into(),
                    (std::cmp::Ordering::Less, true) => b.build_int_z_extend($v, $t, "")?.into(),
                    (std::cmp::Ordering::Less, false) => b.build_int_s_extend($v, $t, "")?.into(),
                }
            };
        }
        Ok(match (v, to) {
            (BasicValueEnum::IntValue(i), BasicTypeEnum::IntType(t)) => build!(i, t),
            (BasicValueEnum::VectorValue(i), BasicTypeEnum::VectorType(t)) => build!(i, t),
            _ => return mixed(),
        })
    }

    /// Returns the type of integers with the bits of each lane of a float.
    pub(super) fn bits_of(&self, v: Value<'c>) -> IntType<'c> {
        match element(v) {
            BasicTypeEnum::FloatType(t) if t == self.context.f64_type() => self.context.i64_type(),
            _ => self.context.i32_type(),
        }
    }

    /// Converts a float to another width.
    pub(super) fn resize_float(&self, v: Value<'c>, to: FloatType<'c>) -> Emitted<'c> {
        let b = &self.builder;
        Ok(match (v, self.wide_type(to.into(), lanes(v))) {
            (BasicValueEnum::FloatValue(v), BasicTypeEnum::FloatType(t)) => b.build_float_cast(v, t, "")?.into(),
            (BasicValueEnum::VectorValue(v), BasicTypeEnum::VectorType(t)) => b.build_float_cast(v, t, "")?.into(),
            _ => return mixed(),
        })
    }

    /// Converts an integer to the nearest float.
    pub(super) fn to_float(&self, v: Value<'c>, to: FloatType<'c>, unsigned: bool) -> Emitted<'c> {
        let b = &self.builder;
        let to = self.wide_type(to.into(), lanes(v));
        macro_rules! build {
            ($v:expr, $t:expr) => {
                if unsigned {
                    b.build_unsigned_int_to_float($v, $t, "")?.into()
                } else {
                    b.build_signed_int_to_float($v, $t, "")?.into()
                }
            };
        }
        Ok(match (v, to) {
            (BasicValueEnum::IntValue(i), BasicTypeEnum::FloatType(t)) => build!(i, t),
            (BasicValueEnum::VectorValue(i), BasicTypeEnum::VectorType(t)) => build!(i, t),
            _ => return mixed(),
        })
    }

    /// Converts a float within the integer type's range to the integer next to it toward zero.
    pub(super) fn to_int(&self, v: Value<'c>, to: IntType<'c>) -> Emitted<'c> {
        let b = &self.builder;
        Ok(match (v, self.wide_type(to.into(), lanes(v))) {
            (BasicValueEnum::FloatValue(v), BasicTypeEnum::IntType(t)) => b.build_float_to_signed_int(v, t, "")?.into(),
            (BasicValueEnum::VectorValue(v), BasicTypeEnum::VectorType(t)) => {
                b.build_float_to_signed_int(v, t, "")?.into()
            }
            _ => return mixed(),
        })
    }

    /// Applies a function of single values to each lane.
    pub(super) fn each_lane(&self, args: &[Value<'c>], f: impl Fn(&[Value<'c>]) -> Emitted<'c>) -> Emitted<'c> {
        let Some(n) = args.iter().find_map(|v| lanes(*v)) else { return f(args) };
        let list = (0..n).map(|i| {
            let own = args.iter().map(|v| self.lane_of(*v, i)).collect::<Result<Vec<_>, _>>()?;
            f(&own)
        });
        let list = list.collect::<Result<Vec<_>, _>>()?;
        self.gathered(&list)
    }

    /// Returns lane `i` of a value.
    pub(super) fn lane_of(&self, v: Value<'c>, i: u32) -> Emitted<'c> {
        match v {
            BasicValueEnum::VectorValue(v) => {
                let at = self.context.i32_type().const_int(u64::from(i), false);
                Ok(self.builder.build_extract_element(v, at, "")?)
            }
            v => Ok(v),
        }
    }

    /// Combines single values into the lanes of a vector.
    pub(super) fn gathered(&self, list: &[Value<'c>]) -> Emitted<'c> {
        let Some(first) = list.first() else { return mixed() };
        let BasicTypeEnum::VectorType(t) = self.wide_type(first.get_type(), Some(list.len() as u32)) else {
            return mixed();
        };
        let mut all = t.get_undef();
        for (i, v) in list.iter().enumerate() {
            let at = self.context.i32_type().const_int(i as u64, false);
            all = self.builder.build_insert_element(all, *v, at, "")?;
        }
        Ok(all.as_basic_value_enum())
    }
}
