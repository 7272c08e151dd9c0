//! Operations of the requantize lanes, whose constants are those of the block.

use tilewright_hw::isa::{Descriptor, VecOp, VecSrc};
use tilewright_hw::num::Rounding;

use super::entry::{Entry, layouts};
use super::instruction::{Candidate, Instruction, VectorCall};
use super::stored::{Operand, StoredValue};
use super::text::intrinsic;
use crate::te::{BinOp, DType, Expr, Func, Name};
use crate::tir::{Intrinsic, Scope, TirError};
use tilewright_hw::config::HwConfig;

/// Returns a value as a field of 8 bits.
fn byte(v: i32) -> Result<i8, String> {
    i8::try_from(v).map_err(|_| format!("{v} does not fit the 8 bits of its field"))
}

impl StoredValue<'_> {
    /// Requantization, whose constants are those of the block.
    pub(super) fn requant(&self) -> Result<Vec<Candidate>, String> {
        const FORM: &str = "requant needs a value of the form i8(offset_clamp(scale_double(SUM + BIAS, MULTIPLIER, \
                            SHIFT), ZERO_POINT, LOW, HIGH)), without i8() if the result is in acc, or with scale_single, with \
                            a SUM in acc, the other operands in param, and bounds from -128 to 127";
        let Clamped { mode, bounds: [zero_point, lo, hi], .. } = self.clamped().ok_or(FORM)?;
        let dst = self.dst()?;
        let mut found = Vec::new();
        let bounds = [zero_point, lo, hi];
        for entry in layouts(self.config) {
            let intrinsic = requant_intrinsic(self.config, entry, mode, bounds, self.dst.scope);
            let intrinsic = intrinsic.map_err(|e| e.to_string())?;
            let call = VectorCall {
                op: VecOp::Requant,
                mode,
                dst,
                a: VecSrc::Acc,
                b: VecSrc::Param,
                descriptor: Some(Descriptor { zero_point, lo, hi, ..Descriptor::default() }),
                params: [Some(4), Some(0), Some(1)],
                table: None,
                combines: None,
            };
            found.push(Candidate { intrinsic, instruction: Instruction::Vector(call) });
        }
        Ok(found)
    }

    /// A quantized product, whose constants are those of the block.
    pub(super) fn mul(&self) -> Result<Vec<Candidate>, String> {
        const FORM: &str = "mul needs a value of the form i8(offset_clamp(scale_double((i32(A) - ZERO_A) * (i32(B) - \
                            ZERO_B), MULTIPLIER, SHIFT), ZERO_POINT, LOW, HIGH)), or with scale_single, and bounds from \
                            -128 to 127; zero points of 0 are left out";
        let outer = self.clamped().ok_or(FORM)?;
        let [Expr::Binary(BinOp::Mul, a, b), multiplier, shift] = outer.args else { return Err(FORM.into()) };
        let (multiplier, shift) = (number(multiplier).ok_or(FORM)?, number(shift).ok_or(FORM)?);
        let (a, b) = (factor(a).ok_or(FORM)?, factor(b).ok_or(FORM)?);
        let [zero_point, lo, hi] = outer.bounds;
        let descriptor = Descriptor {
            zero_point,
            lo,
            hi,
            multiplier,
            shift: byte(shift)?,
            zero_a: byte(a.zero)?,
            zero_b: byte(b.zero)?,
            ..Descriptor::default()
        };
        let value = |entry: Entry| {
            let term = |f: &Factor, name: &str| f.text(&format!("i32({name}{})", entry.at("o")));
            format!(
                "i8(offset_clamp({}({} * {}, {multiplier}i32, {shift}i32), {zero_point}i32, {lo}i32, {hi}i32))",
                outer.scale.name(),
                term(&a, "x"),
                term(&b, "y")
            )
        };
        self.of_two(VecOp::Mul, outer.mode, [&a, &b], descriptor, value)
    }

    /// A quantized sum, whose constants are those of the block.
    pub(super) fn qadd(&self) -> Result<Vec<Candidate>, String> {
        const FORM: &str = "qadd needs a value of the form i8(offset_clamp(scale_double(scale_double((i32(A) - ZERO_A) \
                            << LEFT, MULTIPLIER_A, SHIFT_A) + scale_double((i32(B) - ZERO_B) << LEFT, MULTIPLIER_B, \
                            SHIFT_B), MULTIPLIER, SHIFT), ZERO_POINT, LOW, HIGH)), with bounds from -128 to 127; zero points of 0 are \
                            left out";
        let outer = self.clamped().filter(|o| o.scale == Func::ScaleDouble).ok_or(FORM)?;
        let [Expr::Binary(BinOp::Add, a, b), multiplier, shift] = outer.args else { return Err(FORM.into()) };
        let (multiplier, shift) = (number(multiplier).ok_or(FORM)?, number(shift).ok_or(FORM)?);
        let term = |e: &Expr| -> Option<(Factor, [i32; 3])> {
            let Expr::Call(Func::ScaleDouble, args) = e else { return None };
            let [Expr::Binary(BinOp::Shl, x, left), multiplier, shift] = args.as_slice() else { return None };
            Some((factor(x)?, [number(left)?, number(multiplier)?, number(shift)?]))
        };
        let ((a, [left, multiplier_a, shift_a]), (b, [left_b, multiplier_b, shift_b])) =
            (term(a).ok_or(FORM)?, term(b).ok_or(FORM)?);
        if left != left_b {
            return Err(format!(
                "qadd shifts both operands to the left by the same number of bits, not {left} and {left_b}"
            ));
        }
        let [zero_point, lo, hi] = outer.bounds;
        let descriptor = Descriptor {
            zero_point,
            lo,
            hi,
            multiplier,
            shift: byte(shift)?,
            multiplier_a,
            multiplier_b,
            shift_a: byte(shift_a)?,
            shift_b: byte(shift_b)?,
            left_shift: byte(left)? as _,
            zero_a: byte(a.zero)?,
            zero_b: byte(b.zero)?,
            ..Descriptor::default()
        };
        let value = |entry: Entry| {
            let term = |f: &Factor, name: &str, [multiplier, shift]: [i32; 2]| {
                let x = f.text(&format!("i32({name}{})", entry.at("o")));
                format!("scale_double({x} << {left}i32, {multiplier}i32, {shift}i32)")
            };
            format!(
                "i8(offset_clamp(scale_double({} + {}, {multiplier}i32, {shift}i32), {zero_point}i32, {lo}i32, {hi}i32))",
                term(&a, "x", [multiplier_a, shift_a]),
                term(&b, "y", [multiplier_b, shift_b])
            )
        };
        self.of_two(VecOp::Qadd, outer.mode, [&a, &b], descriptor, value)
    }

    /// Candidates of a deep operation on two int8 operands, `x` and `y` in its value.
    fn of_two(
        &self,
        op: VecOp,
        mode: Rounding,
        [a, b]: [&Factor; 2],
        descriptor: Descriptor,
        value: impl Fn(Entry) -> String,
    ) -> Result<Vec<Candidate>, String> {
        let sources = self.operands()?;
        let source = |f: &Factor| -> Result<Operand, String> {
            let scope = self.f.buffer(&f.buffer).map_or(Scope::Global, |b| b.scope);
            let found = sources.iter().find(|o| o.scope == scope && o.dtype == DType::I8);
            found.cloned().ok_or_else(|| format!("{} must be int8, in out or inp", f.buffer))
        };
        let (x, y) = (Operand { name: "x".into(), ..source(a)? }, Operand { name: "y".into(), ..source(b)? });
        let dst = self.dst()?;
        layouts(self.config)
            .map(|entry| {
                let intrinsic = self.intrinsic(op.name(), entry, &[&x, &y], &value(entry))?;
                let (a, b, params) = (x.source, y.source, [Some(2), Some(0), Some(1)]);
                let descriptor = Some(descriptor);
                let call = VectorCall { op, mode, dst, a, b, descriptor, params, table: None, combines: None };
                Ok(Candidate { intrinsic, instruction: Instruction::Vector(call) })
            })
            .collect()
    }

    /// Takes a value apart that is scaled, offset and clamped to int8.
    fn clamped(&self) -> Option<Clamped<'_>> {
        let inner = match self.value {
            Expr::Cast(DType::I8, inner) => inner.as_ref(),
            wide => wide,
        };
        let Expr::Call(Func::OffsetClamp, args) = inner else { return None };
        let [Expr::Call(scale, scaled), zero, lo, hi] = args.as_slice() else { return None };
        let mode = match scale {
            Func::ScaleDouble => Rounding::Double,
            Func::ScaleSingle => Rounding::Single,
            _ => return None,
        };
        let bounds = [number(zero)?, number(lo)?, number(hi)?];
        // An int8 destination saturates, while the conversion wraps.
        let inside = bounds[1..].iter().all(|v| i8::try_from(*v).is_ok());
        inside.then_some(Clamped { scale: *scale, mode, args: scaled, bounds })
    }
}

/// Requantization of one entry: sums from acc, biases, multipliers and shifts from param, the result in `dst`. The bounds
/// are zero point, lower and upper bound.
///
/// # Errors
/// None for a legal configuration.
pub fn requant_intrinsic(
    config: &HwConfig,
    entry: Entry,
    mode: Rounding,
    [zero, lo, hi]: [i32; 3],
    dst: Scope,
) -> Result<Intrinsic, TirError> {
    let bo = config.block_out;
    let scale = match mode {
        Rounding::Double => Func::ScaleDouble,
        Rounding::Single => Func::ScaleSingle,
    };
    let value = format!(
        "offset_clamp({1}(acc{0} + bias[o], multiplier[o], shift[o]), {zero}i32, {lo}i32, {hi}i32)",
        entry.at("o"),
        scale.name()
    );
    let (value, dtype) = if dst == Scope::Acc { (value, DType::I32) } else { (format!("i8({value})"), DType::I8) };
    let body = format!("for o in {bo} {{ block lane {{ out{} = {value} }} }}", entry.at("o"));
    intrinsic(&format!(
        "intrinsic requant {{ param acc: i32{0} in acc param bias: i32[{bo}] in param param multiplier: i32[{bo}] in \
         param param shift: i32[{bo}] in param param out: {dtype}{0} in {1} {2} }}",
        entry.dims(bo),
        dst.name(),
        entry.around(&body)
    ))
}

/// A value of the form `i8(offset_clamp(SCALE(ARGS), ZERO_POINT, LOW, HIGH))`.
struct Clamped<'v> {
    scale: Func,
    mode: Rounding,
    args: &'v [Expr],
    /// Zero point, lower and upper bound.
    bounds: [i32; 3],
}

/// An int8 operand less its zero point.
struct Factor {
    buffer: Name,
    zero: i32,
}

impl Factor {
    fn text(&self, load: &str) -> String {
        if self.zero == 0 { load.into() } else { format!("({load} - {}i32)", self.zero) }
    }
}

fn factor(e: &Expr) -> Option<Factor> {
    let (load, zero) = match e {
        Expr::Binary(BinOp::Sub, load, zero) => (load.as_ref(), number(zero)?),
        load => (load, 0),
    };
    match load {
        Expr::Cast(DType::I32, load) => match load.as_ref() {
            Expr::Load { buffer, dtype: DType::I8, .. } => Some(Factor { buffer: buffer.clone(), zero }),
            _ => None,
        },
        _ => None,
    }
}

fn number(e: &Expr) -> Option<i32> {
    match e {
        Expr::Int(v, DType::I32) => i32::try_from(*v).ok(),
        _ => None,
    }
}
