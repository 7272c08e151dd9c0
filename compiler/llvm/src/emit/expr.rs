//! Emits scalar expressions with the semantics of `te::scalar`.

use inkwell::intrinsics::Intrinsic;
use inkwell::types::{BasicTypeEnum, FloatType, IntType};
use inkwell::values::{BasicValue, BasicValueEnum, CallSiteValue, FastMathFlags, InstructionValue};
use inkwell::{FloatPredicate, IntPredicate};
use tilewright_compiler::math;
use tilewright_compiler::te::{BinOp, DType, Expr, Func, by_choices};

use super::Emitter;
use super::strict::Strict;
use super::value::{Emitted, FloatOp, IntOp, Value, lanes};
use crate::EmitError;

impl<'c> Emitter<'_, 'c> {
    pub(super) fn int_type(&self, t: DType) -> IntType<'c> {
        match t {
            DType::I8 | DType::U8 => self.context.i8_type(),
            DType::I16 | DType::U16 => self.context.i16_type(),
            DType::I32 | DType::U32 | DType::F32 => self.context.i32_type(),
            DType::I64 | DType::U64 | DType::F64 => self.context.i64_type(),
            DType::Bool => self.context.bool_type(),
        }
    }

    pub(super) fn float_type(&self, t: DType) -> FloatType<'c> {
        if t == DType::F64 { self.context.f64_type() } else { self.context.f32_type() }
    }

    /// Emits an expression: an integer of its type's width, an `i1` for booleans, or a float. In a vectorized loop the
    /// result is a vector, or still a single value if all lanes share it.
    pub(super) fn expr(&mut self, e: &Expr) -> Emitted<'c> {
        Ok(match e {
            Expr::Int(v, t) => self.int_type(*t).const_int(*v as u64, true).into(),
            Expr::Float(v, t) => self.float_type(*t).const_float(*v).into(),
            Expr::Var(v) => match self.vars.get(v) {
                Some(v) => *v,
                None => return Err(EmitError::Program(format!("variable {v} is not bound"))),
            },
            Expr::Load { buffer, indices, .. } => self.load(buffer, indices)?,
            Expr::Binary(op, a, b) => {
                let t = a.dtype();
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                if t.is_float() { self.float_binary(*op, x, y)? } else { self.int_binary(*op, x, y, t)? }
            }
            Expr::Select(c, a, b) => self.select(c, a, b)?,
            Expr::Pick(list, index) => self.expr(&by_choices(list, index))?,
            Expr::Cast(t, a) => {
                let from = a.dtype();
                let v = self.expr(a)?;
                self.cast(v, from, *t)?
            }
            Expr::Bitcast(t, a) => {
                let v = self.expr(a)?;
                let one = if t.is_float() { self.float_type(*t).into() } else { self.int_type(*t).into() };
                self.builder.build_bit_cast(v, self.wide_type(one, lanes(v)), "")?
            }
            Expr::Call(f, args) => {
                let args = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>, _>>()?;
                self.call(*f, &args)?
            }
        })
    }

    /// Emits a select. If an arm reads memory, only the chosen arm is evaluated.
    fn select(&mut self, c: &Expr, a: &Expr, b: &Expr) -> Emitted<'c> {
        let c = self.expr(c)?;
        let c = match c {
            BasicValueEnum::IntValue(one) if reads(a) || reads(b) => one,
            // In a vectorized loop, all lanes can evaluate both arms: other blocks are not vectorized.
            c => {
                let (x, y) = (self.expr(a)?, self.expr(b)?);
                return self.choose(c, x, y);
            }
        };
        let yes = self.context.append_basic_block(self.llvm, "yes");
        let no = self.context.append_basic_block(self.llvm, "no");
        let end = self.context.append_basic_block(self.llvm, "chosen");
        self.builder.build_conditional_branch(c, yes, no)?;
        let mut arms = Vec::new();
        for (block, e) in [(yes, a), (no, b)] {
            self.builder.position_at_end(block);
            let mut v = self.expr(e)?;
            // Give both arms the same type, with as many lanes as the loop.
            if let Some((_, n)) = &self.lane {
                v = self.spread(v, *n)?.into();
            }
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

    pub(super) fn relax(&self, v: Value<'c>) {
        let flags = FastMathFlags::AllowReassoc | FastMathFlags::AllowContract | FastMathFlags::NoSignedZeros;
        if self.reassociate
            && let Some(i) = v.as_instruction_value()
        {
            // Instructions without such flags reject them and compute as written.
            let _: Result<(), _> = InstructionValue::set_fast_math_flags(i, flags);
        }
    }

    fn float_binary(&mut self, op: BinOp, x: Value<'c>, y: Value<'c>) -> Emitted<'c> {
        Ok(match op {
            BinOp::Add => self.float(FloatOp::Add, x, y)?,
            BinOp::Sub => self.float(FloatOp::Sub, x, y)?,
            BinOp::Mul => self.float(FloatOp::Mul, x, y)?,
            BinOp::Div => self.float(FloatOp::Div, x, y)?,
            BinOp::Min | BinOp::Max => self.extreme(op, x, y)?,
            BinOp::Lt => self.compare_floats(FloatPredicate::OLT, x, y)?,
            BinOp::Le => self.compare_floats(FloatPredicate::OLE, x, y)?,
            BinOp::Eq => self.compare_floats(FloatPredicate::OEQ, x, y)?,
            BinOp::Ne => self.compare_floats(FloatPredicate::UNE, x, y)?,
            _ => return Err(EmitError::Program(format!("{op:?} is not supported for floats"))),
        })
    }

    /// Emits the minimum or maximum of two floats. A comparison with a select, one instruction on many processors,
    /// keeps only one operand's NaN. Doing it both ways and combining the results with `or` keeps both, since equal
    /// numbers have equal bits except for a zero's sign.
    fn extreme(&self, op: BinOp, x: Value<'c>, y: Value<'c>) -> Emitted<'c> {
        let p = if op == BinOp::Min { FloatPredicate::OLT } else { FloatPredicate::OGT };
        let beyond = |x, y| self.choose(self.compare_floats(p, y, x)?, y, x);
        if is_number(y) {
            return beyond(x, y);
        }
        if is_number(x) {
            return beyond(y, x);
        }
        let (x, y) = (beyond(x, y)?, beyond(y, x)?);
        let bits = self.wide_type(self.bits_of(x).into(), lanes(x));
        let (a, b) = (self.builder.build_bit_cast(x, bits, "")?, self.builder.build_bit_cast(y, bits, "")?);
        Ok(self.builder.build_bit_cast(self.int(IntOp::Or, a, b)?, x.get_type(), "")?)
    }

    pub(super) fn int_binary(&self, op: BinOp, x: Value<'c>, y: Value<'c>, t: DType) -> Emitted<'c> {
        let unsigned = t.is_unsigned();
        let order = |signed: IntPredicate, other: IntPredicate| if unsigned { other } else { signed };
        let compare = |p: IntPredicate| self.compare(p, x, y);
        let less = order(IntPredicate::SLT, IntPredicate::ULT);
        let shift = || self.int(IntOp::And, y, self.like(x, t.size_bytes() as i64 * 8 - 1));
        Ok(match op {
            BinOp::Add => self.int(IntOp::Add, x, y)?,
            BinOp::Sub => self.int(IntOp::Sub, x, y)?,
            BinOp::Mul => self.int(IntOp::Mul, x, y)?,
            BinOp::Div => self.floor_div(x, y, unsigned)?.0,
            BinOp::Mod => self.floor_div(x, y, unsigned)?.1,
            BinOp::Min => self.choose(compare(less)?, x, y)?,
            BinOp::Max => self.choose(compare(less)?, y, x)?,
            BinOp::Shl => self.int(IntOp::Shl, x, shift()?)?,
            BinOp::Shr => self.int(if unsigned { IntOp::Lshr } else { IntOp::Ashr }, x, shift()?)?,
            BinOp::And => self.int(IntOp::And, x, y)?,
            BinOp::Or => self.int(IntOp::Or, x, y)?,
            BinOp::Xor => self.int(IntOp::Xor, x, y)?,
            BinOp::Lt => compare(less)?,
            BinOp::Le => compare(order(IntPredicate::SLE, IntPredicate::ULE))?,
            BinOp::Eq => compare(IntPredicate::EQ)?,
            BinOp::Ne => compare(IntPredicate::NE)?,
        })
    }

    /// Emits a division that rounds down, and its remainder. Both are 0 if the divisor is 0.
    fn floor_div(&self, x: Value<'c>, y: Value<'c>, unsigned: bool) -> Result<(Value<'c>, Value<'c>), EmitError> {
        let [zero, one, ones] = [0, 1, -1].map(|v| self.like(x, v));
        let is_zero = self.compare(IntPredicate::EQ, y, zero)?;
        let divisor = self.choose(is_zero, one, y)?;
        let (q, r) = if unsigned {
            (self.int(IntOp::Udiv, x, divisor)?, self.int(IntOp::Urem, x, divisor)?)
        } else {
            // The smallest value divided by -1 does not fit its type, so it wraps.
            let minus = self.compare(IntPredicate::EQ, divisor, ones)?;
            let safe = self.choose(minus, one, divisor)?;
            let q = self.int(IntOp::Sdiv, x, safe)?;
            let r = self.int(IntOp::Srem, x, safe)?;
            let q = self.choose(minus, self.int(IntOp::Sub, zero, x)?, q)?;
            let uneven = self.compare(IntPredicate::NE, r, zero)?;
            let apart = self.compare(IntPredicate::SLT, self.int(IntOp::Xor, r, safe)?, zero)?;
            let down = self.int(IntOp::And, uneven, apart)?;
            let (lower, higher) = (self.int(IntOp::Sub, q, one)?, self.int(IntOp::Add, r, safe)?);
            (self.choose(down, lower, q)?, self.choose(down, higher, r)?)
        };
        Ok((self.choose(is_zero, zero, q)?, self.choose(is_zero, zero, r)?))
    }

    pub(super) fn cast(&self, v: Value<'c>, from: DType, to: DType) -> Emitted<'c> {
        if from == to {
            return Ok(v);
        }
        if from.is_float() {
            return match to {
                DType::Bool => self.compare_floats(FloatPredicate::UNE, v, self.float_type(from).const_zero().into()),
                DType::F32 | DType::F64 => self.resize_float(v, self.float_type(to)),
                to => self.saturated(v, from, to),
            };
        }
        let unsigned = from.is_unsigned();
        match to {
            DType::F32 | DType::F64 => self.to_float(v, self.float_type(to), unsigned),
            DType::Bool => self.compare(IntPredicate::NE, v, self.like(v, 0)),
            to => self.resize(v, self.int_type(to), unsigned),
        }
    }

    /// Emits the integer next to a float toward zero: the nearest one that the type has, and 0 for NaN. LLVM has an
    /// intrinsic for this, but on x86-64 it splits its vectors into lanes.
    fn saturated(&self, v: Value<'c>, from: DType, to: DType) -> Emitted<'c> {
        let float = self.float_type(from);
        // The greatest float below 2^31.
        const BELOW_2_31: f64 = 2_147_483_520.0;
        let (lo, hi) = match to {
            DType::I32 if from == DType::F32 => (-2_147_483_648.0, BELOW_2_31),
            DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::I32 => {
                let (lo, hi) = tilewright_compiler::te::scalar::range(to);
                (lo as f64, hi as f64)
            }
            _ => {
                let name = if to.is_unsigned() { "llvm.fptoui.sat" } else { "llvm.fptosi.sat" };
                let types = [self.int_type(to).into(), float.into()].map(|t| self.wide_type(t, lanes(v)));
                return self.intrinsic(name, &types, &[v]);
            }
        };
        let [lo, hi, zero] = [lo, hi, 0.0].map(|x| Value::from(float.const_float(x)));
        let above = self.compare_floats(FloatPredicate::OLT, hi, v)?;
        let x = self.choose(self.compare_floats(FloatPredicate::OLT, v, lo)?, lo, v)?;
        let x = self.choose(above, hi, x)?;
        let x = self.choose(self.compare_floats(FloatPredicate::ORD, v, v)?, x, zero)?;
        let i = self.to_int(x, self.context.i32_type())?;
        match to {
            DType::I32 if from == DType::F32 => self.choose(above, self.like(i, i32::MAX.into()), i),
            _ => self.resize(i, self.int_type(to), false),
        }
    }

    /// Emits a call of one of LLVM's intrinsics.
    pub(super) fn call_own(
        &self,
        name: &str,
        types: &[BasicTypeEnum<'c>],
        args: &[Value<'c>],
    ) -> Result<CallSiteValue<'c>, EmitError> {
        let missing = || EmitError::Llvm(format!("{name} is missing"));
        let f = Intrinsic::find(name).and_then(|i| i.get_declaration(self.module, types)).ok_or_else(missing)?;
        let args: Vec<_> = args.iter().map(|&a| a.into()).collect();
        Ok(self.builder.build_call(f, &args, "")?)
    }

    /// Emits a call of one of LLVM's intrinsics and returns its result.
    pub(super) fn intrinsic(&self, name: &str, types: &[BasicTypeEnum<'c>], args: &[Value<'c>]) -> Emitted<'c> {
        let nothing = || EmitError::Llvm(format!("{name} returns nothing"));
        self.call_own(name, types, args)?.try_as_basic_value().basic().ok_or_else(nothing)
    }

    /// Emits a call of an imported function on floats, lane by lane.
    fn import(&self, name: &str, args: &[Value<'c>], doubles: bool) -> Emitted<'c> {
        let f = self.module.get_function(name).unwrap_or_else(|| {
            let t = if doubles { self.context.f64_type() } else { self.context.f32_type() };
            let params = vec![t.into(); args.len()];
            self.module.add_function(name, t.fn_type(&params, false), None)
        });
        self.each_lane(args, |args| {
            let args: Vec<_> = args.iter().map(|&a| a.into()).collect();
            let missing = || EmitError::Llvm(format!("{name} returns nothing"));
            self.builder.build_call(f, &args, "")?.try_as_basic_value().basic().ok_or_else(missing)
        })
    }

    fn call(&self, f: Func, args: &[Value<'c>]) -> Emitted<'c> {
        let own = |name: &str| self.intrinsic(name, &[args[0].get_type()], args);
        let doubles = self.bits_of(args[0]).get_bit_width() == 64;
        let import = |name: &str| self.import(name, args, doubles);
        match f {
            Func::Exp if doubles => import("tw_exp"),
            Func::Log if doubles => import("tw_log"),
            Func::Sin if doubles => import("tw_sin"),
            Func::Cos if doubles => import("tw_cos"),
            Func::Tanh if doubles => import("tw_tanh"),
            Func::Erf if doubles => import("tw_erf"),
            Func::Pow if doubles => import("tw_pow"),
            Func::Exp => math::exp(&Strict(self), args[0]),
            Func::Log => import("logf"),
            // These have our own names. LLVM knows the standard names, and merges or replaces calls with functions that
            // no loader provides.
            Func::Sin => import("tw_sinf"),
            Func::Cos => import("tw_cosf"),
            Func::Tanh => math::tanh(&Strict(self), args[0]),
            Func::Erf => math::erf(&Strict(self), args[0]),
            Func::Pow => import("tw_powf"),
            Func::Sqrt => own("llvm.sqrt"),
            Func::Floor => own("llvm.floor"),
            Func::Ceil => own("llvm.ceil"),
            Func::RoundEven => own("llvm.roundeven"),
            // No vector instruction rounds this way, and LLVM's vector form could call functions that no loader
            // provides.
            Func::RoundAway => self.each_lane(args, |args| self.intrinsic("llvm.round", &[args[0].get_type()], args)),
            Func::Abs => own("llvm.fabs"),
            Func::ScaleDouble => self.scale_double(args[0], args[1], args[2]),
            Func::ScaleSingle => self.scale_single(args[0], args[1], args[2]),
            Func::OffsetClamp => self.offset_clamp(args[0], args[1], args[2], args[3]),
            Func::DoublingHighMul => self.doubling_high_mul(args[0], args[1]),
            Func::RoundingShift => {
                let exponent = self.clamp(args[1], 0, 31)?;
                self.rounding_shift(args[0], exponent)
            }
        }
    }
}

/// Returns whether a value is a constant float other than NaN and -0.
fn is_number(v: Value<'_>) -> bool {
    let known = v.is_float_value().then(|| v.into_float_value().get_constant()).flatten();
    known.is_some_and(|(v, _)| !(v.is_nan() || v == 0.0 && v.is_sign_negative()))
}

/// Returns whether an expression reads memory.
pub(super) fn reads(e: &Expr) -> bool {
    let mut found = false;
    e.visit(&mut |e| found |= matches!(e, Expr::Load { .. }));
    found
}
