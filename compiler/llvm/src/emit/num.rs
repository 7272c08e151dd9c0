//! The arithmetic of `tilewright_hw::num` as instructions; the tests compare the two on many values.

use inkwell::IntPredicate;
use inkwell::values::IntValue;
use tilewright_compiler::te::{BinOp, DType};

use super::Emitter;
use crate::EmitError;

type Int<'c> = Result<IntValue<'c>, EmitError>;

impl<'c> Emitter<'_, 'c> {
    fn c32(&self, v: i32) -> IntValue<'c> {
        self.context.i32_type().const_int(v as u64, true)
    }

    fn wide(&self, v: IntValue<'c>) -> Int<'c> {
        Ok(self.builder.build_int_s_extend(v, self.context.i64_type(), "")?)
    }

    fn narrow(&self, v: IntValue<'c>) -> Int<'c> {
        Ok(self.builder.build_int_truncate(v, self.context.i32_type(), "")?)
    }

    pub(super) fn clamp(&self, v: IntValue<'c>, lo: i32, hi: i32) -> Int<'c> {
        let v = self.int_binary(BinOp::Max, v, self.c32(lo), DType::I32)?;
        self.int_binary(BinOp::Min, v, self.c32(hi), DType::I32)
    }

    pub(super) fn doubling_high_mul(&self, a: IntValue<'c>, b: IntValue<'c>) -> Int<'c> {
        let code = &self.builder;
        let product = code.build_int_mul(self.wide(a)?, self.wide(b)?, "")?;
        let rounded = code.build_int_add(product, self.i64(1 << 30), "")?;
        let high = self.narrow(code.build_right_shift(rounded, self.i64(31), true, "")?)?;
        let least = self.c32(i32::MIN);
        let both = code.build_and(
            code.build_int_compare(IntPredicate::EQ, a, least, "")?,
            code.build_int_compare(IntPredicate::EQ, b, least, "")?,
            "",
        )?;
        Ok(code.build_select(both, self.c32(i32::MAX), high, "")?.into_int_value())
    }

    /// `exponent` is in `0..=31`.
    pub(super) fn rounding_shift(&self, x: IntValue<'c>, exponent: IntValue<'c>) -> Int<'c> {
        let code = &self.builder;
        let e = self.wide(exponent)?;
        // Half of 2^0 is 0, and then nothing is taken from a negative number either.
        let half = code.build_right_shift(code.build_left_shift(self.i64(1), e, "")?, self.i64(1), false, "")?;
        let negative = code.build_int_compare(IntPredicate::SLT, x, self.c32(0), "")?;
        let some = code.build_int_compare(IntPredicate::NE, exponent, self.c32(0), "")?;
        let less = code.build_and(negative, some, "")?;
        let less = code.build_int_z_extend(less, self.context.i64_type(), "")?;
        let sum = code.build_int_sub(code.build_int_add(self.wide(x)?, half, "")?, less, "")?;
        self.narrow(code.build_right_shift(sum, e, true, "")?)
    }

    pub(super) fn scale_double(&self, x: IntValue<'c>, multiplier: IntValue<'c>, shift: IntValue<'c>) -> Int<'c> {
        let left = self.clamp(shift, 0, 31)?;
        let shift = self.clamp(shift, -31, 31)?;
        let right = self.clamp(self.builder.build_int_neg(shift, "")?, 0, 31)?;
        let x = self.builder.build_left_shift(x, left, "")?;
        self.rounding_shift(self.doubling_high_mul(x, multiplier)?, right)
    }

    pub(super) fn scale_single(&self, x: IntValue<'c>, multiplier: IntValue<'c>, shift: IntValue<'c>) -> Int<'c> {
        let code = &self.builder;
        let right = self.wide(self.clamp(shift, 0, 31)?)?;
        let product = code.build_int_mul(self.wide(x)?, self.wide(multiplier)?, "")?;
        let half = code.build_left_shift(self.i64(1 << 30), right, "")?;
        let sum = code.build_int_add(product, half, "")?;
        let rounded = code.build_right_shift(sum, code.build_int_add(right, self.i64(31), "")?, true, "")?;
        self.narrow(self.int_binary(BinOp::Min, rounded, self.i64(i32::MAX as i64), DType::I64)?)
    }

    pub(super) fn offset_clamp(
        &self,
        x: IntValue<'c>,
        zero_point: IntValue<'c>,
        lo: IntValue<'c>,
        hi: IntValue<'c>,
    ) -> Int<'c> {
        let v = self.builder.build_int_add(self.wide(x)?, self.wide(zero_point)?, "")?;
        let v = self.int_binary(BinOp::Min, v, self.wide(hi)?, DType::I64)?;
        // The lower bound last, as `num` has it.
        self.narrow(self.int_binary(BinOp::Max, v, self.wide(lo)?, DType::I64)?)
    }
}
