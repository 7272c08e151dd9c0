//! Sums of four products of bytes ([`crate::schedule::dot`]) by the processor's own instructions.

use inkwell::types::VectorType;
use inkwell::values::{BasicValue, VectorValue};
use tilewright_compiler::te::DType;
use tilewright_compiler::tir::{Intrinsic, View};

use super::Emitter;
use super::value::Value;
use crate::EmitError;
use crate::schedule::dot;

/// What sums up products of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instruction {
    /// Four products of unsigned and signed bytes, added to a sum: `vpdpbusd`.
    Fours(&'static str),
    /// Two products of 16-bit integers: `vpmaddwd`.
    Pairs(&'static str),
}

impl<'c> Emitter<'_, 'c> {
    fn dot_instruction(&self, lanes: u32) -> Option<Instruction> {
        match lanes {
            16 if self.host.has("avx512vnni") => Some(Instruction::Fours("llvm.x86.avx512.vpdpbusd.512")),
            16 if self.host.has("avx512bw") => Some(Instruction::Pairs("llvm.x86.avx512.pmaddw.d.512")),
            8 if self.host.has("avx2") => Some(Instruction::Pairs("llvm.x86.avx2.pmadd.wd")),
            _ => None,
        }
    }

    /// Emits a call of the intrinsic; false where this processor has no instruction for it.
    pub(super) fn dot(&mut self, intrinsic: &Intrinsic, args: &[View]) -> Result<bool, EmitError> {
        let (Some(sums), [to, data, weights]) = (intrinsic.params.first(), args) else { return Ok(false) };
        let lanes = sums.len();
        if intrinsic.name.as_str() != dot::name(lanes) {
            return Ok(false);
        }
        let Some(instruction) = self.dot_instruction(lanes as u32) else { return Ok(false) };
        let i32s = self.context.i32_type().vec_type(lanes as u32);
        let data = self.element(data, self.context.i32_type().into(), DType::U8)?.into_int_value();
        let data = self.spread(data.into(), lanes as u32)?;
        let weights = self.element(weights, i32s.into(), DType::I8)?.into_vector_value();
        let before = self.element(to, i32s.into(), DType::I32)?.into_vector_value();
        let after = match instruction {
            Instruction::Fours(name) => {
                self.intrinsic(name, &[], &[before.into(), data.into(), weights.into()])?.into_vector_value()
            }
            Instruction::Pairs(name) => self.pairs(name, before, data, weights)?,
        };
        let at = self.view_place(to)?;
        let stored = self.builder.build_store(at, after)?;
        self.align(Some(stored), DType::I32)?;
        Ok(true)
    }

    /// The first and third products of each lane, then the second and fourth, as 16-bit integers: nothing saturates.
    fn pairs(
        &self,
        name: &str,
        before: VectorValue<'c>,
        data: VectorValue<'c>,
        weights: VectorValue<'c>,
    ) -> Result<VectorValue<'c>, EmitError> {
        let b = &self.builder;
        let t = self.context.i16_type().vec_type(2 * before.get_type().get_size());
        let halves = |v: VectorValue<'c>| -> Result<VectorValue<'c>, EmitError> {
            Ok(b.build_bit_cast(v, t, "")?.into_vector_value())
        };
        let (data, weights) = (halves(data)?, halves(weights)?);
        let all = |v: u64| {
            VectorType::const_vector(&vec![self.context.i16_type().const_int(v, false); t.get_size() as usize])
        };
        let eight = all(8);
        let low = b.build_right_shift(b.build_left_shift(weights, eight, "")?, eight, true, "")?;
        let high = b.build_right_shift(weights, eight, true, "")?;
        let even = b.build_and(data, all(0xff), "")?;
        let odd = b.build_right_shift(data, eight, false, "")?;
        let mut sum = before;
        for (x, w) in [(even, low), (odd, high)] {
            let products = self.intrinsic(name, &[], &[x.into(), w.into()])?.into_vector_value();
            sum = b.build_int_add(sum, products, "")?;
        }
        Ok(sum)
    }

    /// What lies at the first element of a view, as a value of this type.
    fn element(
        &mut self,
        view: &View,
        t: inkwell::types::BasicTypeEnum<'c>,
        of: DType,
    ) -> Result<Value<'c>, EmitError> {
        let at = self.view_place(view)?;
        let v = self.builder.build_load(t, at, "")?;
        self.align(v.as_instruction_value(), of)?;
        Ok(v)
    }
}
