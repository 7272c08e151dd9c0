//! Sums of four byte products ([`crate::schedule::dot`]) with the processor's own instructions.

use inkwell::types::VectorType;
use inkwell::values::{BasicValue, VectorValue};
use tilewright_compiler::te::DType;
use tilewright_compiler::tir::{Intrinsic, View};

use super::Emitter;
use super::value::Value;
use crate::schedule::dot;
use crate::{Architecture, EmitError};

/// An instruction that sums products of bytes.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Instruction {
    /// Adds four products of unsigned and signed bytes to a sum: `vpdpbusd`.
    Fours(&'static str),
    /// Adds two products of 16-bit integers: `vpmaddwd`.
    Pairs(&'static str),
    /// The same, for signed data: `i32x4.dot_i16x8_s`.
    SignedPairs(&'static str),
    /// Adds four products of signed bytes to a sum: `sdot`.
    Signed(&'static str),
    /// Adds one product of 16-bit integers at a time to a sum: `smlal`, `vwmacc`.
    Widened,
}

impl<'c> Emitter<'_, 'c> {
    fn dot_instruction(&self, lanes: u32) -> Option<Instruction> {
        match (self.processor.architecture(), lanes) {
            (Architecture::X86, lanes) => self.dot_of_x86(lanes),
            (_, 1) => None,
            (Architecture::Arm, 4) if self.processor.has("dotprod") => {
                Some(Instruction::Signed("llvm.aarch64.neon.sdot"))
            }
            (Architecture::Wasm, 4) if self.processor.has("simd128") => Some(Instruction::SignedPairs("llvm.wasm.dot")),
            (Architecture::Wasm, _) => None,
            (Architecture::Arm | Architecture::Arm32 | Architecture::RiscV, _) => Some(Instruction::Widened),
        }
    }

    fn dot_of_x86(&self, lanes: u32) -> Option<Instruction> {
        match lanes {
            16 if self.processor.has("avx512vnni") => Some(Instruction::Fours("llvm.x86.avx512.vpdpbusd.512")),
            16 if self.processor.has("avx512bw") => Some(Instruction::Pairs("llvm.x86.avx512.pmaddw.d.512")),
            8 if self.processor.has("avx2") => Some(Instruction::Pairs("llvm.x86.avx2.pmadd.wd")),
            _ => None,
        }
    }

    /// Emits a call of the intrinsic. Returns `false` if this processor has no instruction for it.
    pub(super) fn dot(&mut self, intrinsic: &Intrinsic, args: &[View]) -> Result<bool, EmitError> {
        let (Some(sums), [to, data, weights]) = (intrinsic.params.first(), args) else { return Ok(false) };
        let lanes = sums.len();
        let Some(instruction) = self.dot_instruction(lanes as u32) else { return Ok(false) };
        let signed = !matches!(instruction, Instruction::Fours(_) | Instruction::Pairs(_));
        if intrinsic.name.as_str() != dot::name(lanes, signed) {
            return Ok(false);
        }
        let i32s = self.context.i32_type().vec_type(lanes as u32);
        let data = self.element(data, self.context.i32_type().into(), DType::U8)?.into_int_value();
        let data = self.spread(data.into(), lanes as u32)?;
        let weights = self.element(weights, i32s.into(), DType::I8)?.into_vector_value();
        let before = self.element(to, i32s.into(), DType::I32)?.into_vector_value();
        let after = match instruction {
            Instruction::Fours(name) => {
                self.intrinsic(name, &[], &[before.into(), data.into(), weights.into()])?.into_vector_value()
            }
            Instruction::Pairs(name) => self.pairs((name, false), before, data, weights)?,
            Instruction::SignedPairs(name) => self.pairs((name, true), before, data, weights)?,
            Instruction::Signed(name) => {
                let bytes = self.context.i8_type().vec_type(4 * lanes as u32);
                let data = self.builder.build_bit_cast(data, bytes, "")?;
                let weights = self.builder.build_bit_cast(weights, bytes, "")?;
                let types = [i32s.into(), bytes.into()];
                self.intrinsic(name, &types, &[before.into(), data, weights])?.into_vector_value()
            }
            Instruction::Widened => self.widened(before, data, weights)?,
        };
        let at = self.view_place(to)?;
        let stored = self.builder.build_store(at, after)?;
        self.align(Some(stored), DType::I32)?;
        Ok(true)
    }

    /// Adds the first and third products of each lane, then the second and fourth, as 16-bit integers so that nothing
    /// saturates. The name is that of the instruction's intrinsic; the data can be signed or not.
    fn pairs(
        &self,
        (name, signed): (&str, bool),
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
        let even = match signed {
            true => b.build_right_shift(b.build_left_shift(data, eight, "")?, eight, true, "")?,
            false => b.build_and(data, all(0xff), "")?,
        };
        let odd = b.build_right_shift(data, eight, signed, "")?;
        let mut sum = before;
        for (x, w) in [(even, low), (odd, high)] {
            let products = self.intrinsic(name, &[], &[x.into(), w.into()])?.into_vector_value();
            sum = b.build_int_add(sum, products, "")?;
        }
        Ok(sum)
    }

    /// Adds the four products of each lane one after the other, as 16-bit integers with 32-bit products.
    fn widened(
        &self,
        before: VectorValue<'c>,
        data: VectorValue<'c>,
        weights: VectorValue<'c>,
    ) -> Result<VectorValue<'c>, EmitError> {
        let b = &self.builder;
        let (i8t, i16t) = (self.context.i8_type(), self.context.i16_type());
        let i32t = self.context.i32_type();
        let lanes = before.get_type().get_size();
        let wide = |v: VectorValue<'c>| -> Result<VectorValue<'c>, EmitError> {
            let bytes = b.build_bit_cast(v, i8t.vec_type(4 * lanes), "")?.into_vector_value();
            Ok(b.build_int_s_extend(bytes, i16t.vec_type(4 * lanes), "")?)
        };
        let (data, weights) = (wide(data)?, wide(weights)?);
        let mut sum = before;
        for four in 0..4 {
            let pick = |v: VectorValue<'c>, step: u32| -> Result<VectorValue<'c>, EmitError> {
                let places: Vec<_> = (0..lanes).map(|l| i32t.const_int(u64::from(l * step + four), false)).collect();
                let picked =
                    b.build_shuffle_vector(v, v.get_type().get_undef(), VectorType::const_vector(&places), "")?;
                Ok(b.build_int_s_extend(picked, before.get_type(), "")?)
            };
            let product = b.build_int_mul(pick(data, 0)?, pick(weights, 4)?, "")?;
            sum = b.build_int_add(sum, product, "")?;
        }
        Ok(sum)
    }

    /// Loads a value of type `t` from the first element of a view.
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
