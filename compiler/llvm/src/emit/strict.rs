//! The operations of `tilewright_compiler::math` in generated code.

use inkwell::FloatPredicate;
use tilewright_compiler::math::{FRACTION_BITS, Floats, ONE_BITS};

use super::Emitter;
use super::value::{Emitted, FloatOp, IntOp, Value, lanes};
use crate::EmitError;

/// Emits each operation as written, so that results have the evaluator's bits on every processor.
pub(super) struct Strict<'e, 'a, 'c>(pub &'e Emitter<'a, 'c>);

impl<'c> Floats for Strict<'_, '_, 'c> {
    type Value = Value<'c>;
    type Error = EmitError;

    fn constant(&self, x: f32) -> Value<'c> {
        self.0.context.f32_type().const_float(x.into()).into()
    }

    fn add(&self, a: Value<'c>, b: Value<'c>) -> Emitted<'c> {
        self.0.strict(FloatOp::Add, a, b)
    }

    fn sub(&self, a: Value<'c>, b: Value<'c>) -> Emitted<'c> {
        self.0.strict(FloatOp::Sub, a, b)
    }

    fn mul(&self, a: Value<'c>, b: Value<'c>) -> Emitted<'c> {
        self.0.strict(FloatOp::Mul, a, b)
    }

    fn div(&self, a: Value<'c>, b: Value<'c>) -> Emitted<'c> {
        self.0.strict(FloatOp::Div, a, b)
    }

    fn if_less(&self, (a, b): (Value<'c>, Value<'c>), yes: Value<'c>, no: Value<'c>) -> Emitted<'c> {
        self.0.choose(self.0.compare_floats(FloatPredicate::OLT, a, b)?, yes, no)
    }

    fn abs(&self, a: Value<'c>) -> Emitted<'c> {
        self.0.intrinsic("llvm.fabs", &[a.get_type()], &[a])
    }

    fn with_sign(&self, a: Value<'c>, sign: Value<'c>) -> Emitted<'c> {
        self.0.intrinsic("llvm.copysign", &[a.get_type()], &[a, sign])
    }

    fn power_of_two(&self, a: Value<'c>) -> Emitted<'c> {
        let e = self.0;
        let int = e.wide_type(e.context.i32_type().into(), lanes(a));
        let bits = e.builder.build_bit_cast(a, int, "")?;
        let moved = e.int(IntOp::Shl, bits, e.like(bits, FRACTION_BITS.into()))?;
        let bits = e.int(IntOp::Add, moved, e.like(bits, ONE_BITS.into()))?;
        Ok(e.builder.build_bit_cast(bits, a.get_type(), "")?)
    }
}
