//! Scalar expressions to instructions, with the meaning of `te::scalar`.

use inkwell::intrinsics::Intrinsic;
use inkwell::types::{BasicTypeEnum, IntType};
use inkwell::values::{BasicValue, FastMathFlags};
use inkwell::values::{BasicValueEnum, FloatValue, InstructionValue, IntValue, PointerValue};
use inkwell::{FloatPredicate, IntPredicate};
use tilewright_compiler::te::{BinOp, DType, Expr, Func};
use tilewright_compiler::tir::Buffer;

use super::Emitter;
use crate::EmitError;

impl<'c> Emitter<'_, 'c> {
    pub(super) fn int_type(&self, t: DType) -> IntType<'c> {
        match t {
            DType::I8 | DType::U8 => self.context.i8_type(),
            DType::I32 | DType::F32 => self.context.i32_type(),
            DType::I64 => self.context.i64_type(),
            DType::Bool => self.context.bool_type(),
        }
    }

    fn memory_type(&self, t: DType) -> BasicTypeEnum<'c> {
        match t {
            DType::F32 => self.context.f32_type().into(),
            DType::Bool => self.context.i8_type().into(),
            t => self.int_type(t).into(),
        }
    }

    fn place(&mut self, b: &Buffer, indices: &[Expr]) -> Result<PointerValue<'c>, EmitError> {
        let mut at = self.i64(0);
        for (e, &n) in indices.iter().zip(&b.shape) {
            let i = self.expr(e)?.into_int_value();
            at = self.builder.build_int_nsw_mul(at, self.i64(n), "")?;
            at = self.builder.build_int_nsw_add(at, i, "")?;
        }
        let Some(&base) = self.buffers.get(&b.name) else {
            return Err(EmitError::Program(format!("buffer {} has no memory", b.name)));
        };
        // SAFETY: a verified function's accesses stay within their buffers; the evaluator checks the same indices.
        Ok(unsafe { self.builder.build_in_bounds_gep(self.memory_type(b.dtype), base, &[at], "")? })
    }

    pub(super) fn store(&mut self, b: &Buffer, indices: &[Expr], v: BasicValueEnum<'c>) -> Result<(), EmitError> {
        let at = self.place(b, indices)?;
        let v = match b.dtype {
            DType::Bool => self.builder.build_int_z_extend(v.into_int_value(), self.context.i8_type(), "")?.into(),
            _ => v,
        };
        self.builder.build_store(at, v)?;
        Ok(())
    }

    /// The value of an expression: an integer of its type's width, an `i1` for booleans, or a float.
    pub(super) fn expr(&mut self, e: &Expr) -> Result<BasicValueEnum<'c>, EmitError> {
        Ok(match e {
            Expr::Int(v, t) => self.int_type(*t).const_int(*v as u64, true).into(),
            Expr::Float(v, _) => self.context.f32_type().const_float(*v).into(),
            Expr::Var(v) => match self.vars.get(v) {
                Some(v) => (*v).into(),
                None => return Err(EmitError::Program(format!("variable {v} is not bound"))),
            },
            Expr::Load { buffer, indices, .. } => {
                let Some(b) = self.function.buffer(buffer).cloned() else {
                    return Err(EmitError::Program(format!("there is no buffer {buffer}")));
                };
                let at = self.place(&b, indices)?;
                let v = self.builder.build_load(self.memory_type(b.dtype), at, "")?;
                match b.dtype {
                    DType::Bool => {
                        let zero = self.context.i8_type().const_zero();
                        self.builder.build_int_compare(IntPredicate::NE, v.into_int_value(), zero, "")?.into()
                    }
                    _ => v,
                }
            }
            Expr::Binary(op, a, b) => {
                let t = a.dtype();
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                if t == DType::F32 {
                    self.float_binary(*op, x.into_float_value(), y.into_float_value())?
                } else {
                    self.int_binary(*op, x.into_int_value(), y.into_int_value(), t)?.into()
                }
            }
            Expr::Select(c, a, b) => self.select(c, a, b)?,
            Expr::Cast(t, a) => {
                let from = a.dtype();
                let v = self.expr(a)?;
                self.cast(v, from, *t)?
            }
            Expr::Call(f, args) => {
                let args = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>, _>>()?;
                self.call(*f, &args)?
            }
        })
    }

    /// A choice; where an arm reads memory only the chosen one is computed.
    fn select(&mut self, c: &Expr, a: &Expr, b: &Expr) -> Result<BasicValueEnum<'c>, EmitError> {
        let c = self.expr(c)?.into_int_value();
        let reads = |e: &Expr| {
            let mut found = false;
            e.visit(&mut |e| found |= matches!(e, Expr::Load { .. }));
            found
        };
        if !reads(a) && !reads(b) {
            let (x, y) = (self.expr(a)?, self.expr(b)?);
            return Ok(self.builder.build_select(c, x, y, "")?);
        }
        let yes = self.context.append_basic_block(self.llvm, "yes");
        let no = self.context.append_basic_block(self.llvm, "no");
        let end = self.context.append_basic_block(self.llvm, "chosen");
        self.builder.build_conditional_branch(c, yes, no)?;
        let mut arms = Vec::new();
        for (block, e) in [(yes, a), (no, b)] {
            self.builder.position_at_end(block);
            let v = self.expr(e)?;
            self.builder.build_unconditional_branch(end)?;
            arms.push((v, self.builder.get_insert_block().unwrap_or(block)));
        }
        self.builder.position_at_end(end);
        let phi = self.builder.build_phi(arms[0].0.get_type(), "")?;
        for (v, block) in &arms {
            phi.add_incoming(&[(v, *block)]);
        }
        Ok(phi.as_basic_value())
    }

    fn relax(&self, v: FloatValue<'c>) {
        let flags = FastMathFlags::AllowReassoc | FastMathFlags::AllowContract | FastMathFlags::NoSignedZeros;
        if self.reassociate
            && let Some(i) = v.as_instruction_value()
        {
            // Refused by instructions that take no such flags, which then compute as written.
            let _: Result<(), _> = InstructionValue::set_fast_math_flags(i, flags);
        }
    }

    fn float_binary(
        &mut self,
        op: BinOp,
        x: FloatValue<'c>,
        y: FloatValue<'c>,
    ) -> Result<BasicValueEnum<'c>, EmitError> {
        let b = &self.builder;
        let compare = |p: FloatPredicate| b.build_float_compare(p, x, y, "");
        let v = match op {
            BinOp::Add => b.build_float_add(x, y, "")?,
            BinOp::Sub => b.build_float_sub(x, y, "")?,
            BinOp::Mul => b.build_float_mul(x, y, "")?,
            BinOp::Div => b.build_float_div(x, y, "")?,
            BinOp::Min | BinOp::Max => {
                let p = if op == BinOp::Min { FloatPredicate::OLT } else { FloatPredicate::OGT };
                let second = b.build_float_compare(p, y, x, "")?;
                return Ok(b.build_select(second, y, x, "")?);
            }
            BinOp::Lt => return Ok(compare(FloatPredicate::OLT)?.into()),
            BinOp::Le => return Ok(compare(FloatPredicate::OLE)?.into()),
            BinOp::Eq => return Ok(compare(FloatPredicate::OEQ)?.into()),
            BinOp::Ne => return Ok(compare(FloatPredicate::UNE)?.into()),
            _ => return Err(EmitError::Program(format!("{op:?} of floats"))),
        };
        self.relax(v);
        Ok(v.into())
    }

    pub(super) fn int_binary(
        &self,
        op: BinOp,
        x: IntValue<'c>,
        y: IntValue<'c>,
        t: DType,
    ) -> Result<IntValue<'c>, EmitError> {
        let b = &self.builder;
        let unsigned = matches!(t, DType::U8 | DType::Bool);
        let order = |signed: IntPredicate, other: IntPredicate| if unsigned { other } else { signed };
        let compare = |p: IntPredicate| b.build_int_compare(p, x, y, "");
        let less = order(IntPredicate::SLT, IntPredicate::ULT);
        let shift = || {
            let mask = x.get_type().const_int(t.size_bytes() as u64 * 8 - 1, false);
            b.build_and(y, mask, "")
        };
        Ok(match op {
            BinOp::Add => b.build_int_add(x, y, "")?,
            BinOp::Sub => b.build_int_sub(x, y, "")?,
            BinOp::Mul => b.build_int_mul(x, y, "")?,
            BinOp::Div => self.floor_div(x, y, unsigned)?.0,
            BinOp::Mod => self.floor_div(x, y, unsigned)?.1,
            BinOp::Min => b.build_select(compare(less)?, x, y, "")?.into_int_value(),
            BinOp::Max => b.build_select(compare(less)?, y, x, "")?.into_int_value(),
            BinOp::Shl => b.build_left_shift(x, shift()?, "")?,
            BinOp::Shr => b.build_right_shift(x, shift()?, !unsigned, "")?,
            BinOp::And => b.build_and(x, y, "")?,
            BinOp::Or => b.build_or(x, y, "")?,
            BinOp::Lt => compare(less)?,
            BinOp::Le => compare(order(IntPredicate::SLE, IntPredicate::ULE))?,
            BinOp::Eq => compare(IntPredicate::EQ)?,
            BinOp::Ne => compare(IntPredicate::NE)?,
        })
    }

    /// Quotient rounded down and its remainder; both 0 where the divisor is 0.
    fn floor_div(
        &self,
        x: IntValue<'c>,
        y: IntValue<'c>,
        unsigned: bool,
    ) -> Result<(IntValue<'c>, IntValue<'c>), EmitError> {
        let b = &self.builder;
        let t = x.get_type();
        let (zero, one) = (t.const_zero(), t.const_int(1, false));
        let is_zero = b.build_int_compare(IntPredicate::EQ, y, zero, "")?;
        let divisor = b.build_select(is_zero, one, y, "")?.into_int_value();
        let (q, r) = if unsigned {
            (b.build_int_unsigned_div(x, divisor, "")?, b.build_int_unsigned_rem(x, divisor, "")?)
        } else {
            // The least value over -1 has no quotient in its type; it wraps.
            let minus = b.build_int_compare(IntPredicate::EQ, divisor, t.const_all_ones(), "")?;
            let safe = b.build_select(minus, one, divisor, "")?.into_int_value();
            let q = b.build_int_signed_div(x, safe, "")?;
            let r = b.build_int_signed_rem(x, safe, "")?;
            let negated = b.build_int_neg(x, "")?;
            let q = b.build_select(minus, negated, q, "")?.into_int_value();
            let uneven = b.build_int_compare(IntPredicate::NE, r, zero, "")?;
            let signs = b.build_xor(r, safe, "")?;
            let apart = b.build_int_compare(IntPredicate::SLT, signs, zero, "")?;
            let down = b.build_and(uneven, apart, "")?;
            let lower = b.build_int_sub(q, one, "")?;
            let higher = b.build_int_add(r, safe, "")?;
            (
                b.build_select(down, lower, q, "")?.into_int_value(),
                b.build_select(down, higher, r, "")?.into_int_value(),
            )
        };
        let q = b.build_select(is_zero, zero, q, "")?.into_int_value();
        Ok((q, b.build_select(is_zero, zero, r, "")?.into_int_value()))
    }

    pub(super) fn cast(&self, v: BasicValueEnum<'c>, from: DType, to: DType) -> Result<BasicValueEnum<'c>, EmitError> {
        let b = &self.builder;
        if from == to {
            return Ok(v);
        }
        let f32t = self.context.f32_type();
        if from == DType::F32 {
            let v = v.into_float_value();
            if to == DType::Bool {
                return Ok(b.build_float_compare(FloatPredicate::UNE, v, f32t.const_zero(), "")?.into());
            }
            let name = if to == DType::U8 { "llvm.fptoui.sat" } else { "llvm.fptosi.sat" };
            return self.intrinsic(name, &[self.int_type(to).into(), f32t.into()], &[v.into()]);
        }
        let v = v.into_int_value();
        let unsigned = matches!(from, DType::U8 | DType::Bool);
        if to == DType::F32 {
            return Ok(if unsigned {
                b.build_unsigned_int_to_float(v, f32t, "")?.into()
            } else {
                b.build_signed_int_to_float(v, f32t, "")?.into()
            });
        }
        if to == DType::Bool {
            return Ok(b.build_int_compare(IntPredicate::NE, v, v.get_type().const_zero(), "")?.into());
        }
        let t = self.int_type(to);
        let (have, want) = (v.get_type().get_bit_width(), t.get_bit_width());
        Ok(match have.cmp(&want) {
            std::cmp::Ordering::Equal => v.into(),
            std::cmp::Ordering::Greater => b.build_int_truncate(v, t, "")?.into(),
            std::cmp::Ordering::Less if unsigned => b.build_int_z_extend(v, t, "")?.into(),
            std::cmp::Ordering::Less => b.build_int_s_extend(v, t, "")?.into(),
        })
    }

    /// A call of one of LLVM's own functions.
    fn intrinsic(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        args: &[BasicValueEnum<'c>],
    ) -> Result<BasicValueEnum<'c>, EmitError> {
        let missing = || EmitError::Llvm(format!("{name} is missing"));
        let f = Intrinsic::find(name).and_then(|i| i.get_declaration(self.module, types)).ok_or_else(missing)?;
        let args: Vec<_> = args.iter().map(|&a| a.into()).collect();
        self.builder.build_call(f, &args, "")?.try_as_basic_value().basic().ok_or_else(missing)
    }

    /// A call of an imported function on floats.
    fn import(&self, name: &str, args: &[BasicValueEnum<'c>]) -> Result<BasicValueEnum<'c>, EmitError> {
        let f = self.module.get_function(name).unwrap_or_else(|| {
            let t = self.context.f32_type();
            let params = vec![t.into(); args.len()];
            self.module.add_function(name, t.fn_type(&params, false), None)
        });
        let args: Vec<_> = args.iter().map(|&a| a.into()).collect();
        let missing = || EmitError::Llvm(format!("{name} gives nothing"));
        self.builder.build_call(f, &args, "")?.try_as_basic_value().basic().ok_or_else(missing)
    }

    fn call(&self, f: Func, args: &[BasicValueEnum<'c>]) -> Result<BasicValueEnum<'c>, EmitError> {
        let f32t: BasicTypeEnum = self.context.f32_type().into();
        let int = |i: usize| args[i].into_int_value();
        Ok(match f {
            Func::Exp => self.import("expf", args)?,
            Func::Log => self.import("logf", args)?,
            // Under names of our own: LLVM knows the standard ones, and joins or replaces them by functions that no
            // loader has.
            Func::Sin => self.import("tw_sinf", args)?,
            Func::Cos => self.import("tw_cosf", args)?,
            Func::Tanh => self.import("tanhf", args)?,
            Func::Erf => self.import("erff", args)?,
            Func::Pow => self.import("tw_powf", args)?,
            Func::Sqrt => self.intrinsic("llvm.sqrt", &[f32t], args)?,
            Func::Floor => self.intrinsic("llvm.floor", &[f32t], args)?,
            Func::Ceil => self.intrinsic("llvm.ceil", &[f32t], args)?,
            Func::RoundEven => self.intrinsic("llvm.roundeven", &[f32t], args)?,
            Func::RoundAway => self.intrinsic("llvm.round", &[f32t], args)?,
            Func::Abs => self.intrinsic("llvm.fabs", &[f32t], args)?,
            Func::ScaleDouble => self.scale_double(int(0), int(1), int(2))?.into(),
            Func::ScaleSingle => self.scale_single(int(0), int(1), int(2))?.into(),
            Func::OffsetClamp => self.offset_clamp(int(0), int(1), int(2), int(3))?.into(),
            Func::DoublingHighMul => self.doubling_high_mul(int(0), int(1))?.into(),
            Func::RoundingShift => {
                let exponent = self.clamp(int(1), 0, 31)?;
                self.rounding_shift(int(0), exponent)?.into()
            }
        })
    }
}
