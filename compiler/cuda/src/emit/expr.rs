//! Translates scalar expressions to CUDA C with the semantics of `te::scalar`.

use tilewright_compiler::te::{BinOp, DType, Expr, Func, Name, by_choices};
use tilewright_compiler::tir::affine::interval;

use super::c_type;
use super::kernel::Kernel;
use crate::EmitError;

type Text = Result<String, EmitError>;

/// Returns whether a range fits in 32 bits.
fn narrow(range: Option<(i64, i64)>) -> bool {
    range.is_some_and(|(lo, hi)| lo >= i32::MIN as i64 && hi <= i32::MAX as i64)
}

fn int(v: i64, t: DType) -> String {
    match t {
        DType::Bool => (v != 0).to_string(),
        DType::I64 if v == i64::MIN => "(-9223372036854775807ll - 1)".into(),
        DType::I64 => format!("{v}ll"),
        DType::I32 if v == i32::MIN as i64 => "(-2147483647 - 1)".into(),
        DType::I8 | DType::U8 | DType::I16 | DType::U16 => format!("({}){v}", c_type(t)),
        DType::U32 => format!("{}u", v as u32),
        DType::U64 => format!("{}ull", v as u64),
        _ => v.to_string(),
    }
}

fn float(v: f64, t: DType) -> String {
    if t == DType::F64 {
        return if v.is_finite() {
            format!("{v:?}")
        } else {
            format!("__longlong_as_double({}ll)", v.to_bits() as i64)
        };
    }
    let v = v as f32;
    if v.is_finite() { format!("{v:?}f") } else { format!("__int_as_float({})", v.to_bits() as i32) }
}

impl Kernel<'_> {
    /// Translates an expression to text of its type. Operators are in parentheses if needed.
    pub(super) fn expr(&self, e: &Expr) -> Text {
        if e.dtype() == DType::I64 {
            let (text, is_narrow) = self.long(e)?;
            return Ok(if is_narrow { format!("(long long)({text})") } else { text });
        }
        Ok(match e {
            Expr::Int(v, t) => int(*v, *t),
            Expr::Float(v, t) => float(*v, *t),
            Expr::Var(v) => self.var(v)?,
            Expr::Load { buffer, indices, .. } => self.load(buffer, indices)?,
            Expr::Binary(op, a, b) if a.dtype() == DType::I64 => {
                let ((x, _), (y, _)) = (self.long(a)?, self.long(b)?);
                format!("({x} {} {y})", comparison(*op)?)
            }
            Expr::Binary(op, a, b) => self.binary(*op, a, b)?,
            Expr::Select(c, a, b) => format!("({} ? {} : {})", self.expr(c)?, self.expr(a)?, self.expr(b)?),
            Expr::Cast(t, a) => self.cast(*t, a)?,
            Expr::Bitcast(t, a) => self.bitcast(*t, a)?,
            Expr::Pick(list, index) => self.expr(&by_choices(list, index))?,
            Expr::Call(f, args) => {
                let args = args.iter().map(|a| self.expr(a)).collect::<Result<Vec<_>, _>>()?;
                // In C the functions of doubles have the names without the last letter, f.
                let name = function(*f);
                let name = if e.dtype() == DType::F64 { name.strip_suffix('f').unwrap_or(name) } else { name };
                format!("{name}({})", args.join(", "))
            }
        })
    }

    fn binary(&self, op: BinOp, a: &Expr, b: &Expr) -> Text {
        let t = a.dtype();
        let (x, y) = (self.expr(a)?, self.expr(b)?);
        let plain = |sign: &str| format!("({x} {sign} {y})");
        Ok(match (op, t) {
            (BinOp::Min, t) => format!("tw_min{}({x}, {y})", suffix(t)),
            (BinOp::Max, t) => format!("tw_max{}({x}, {y})", suffix(t)),
            (BinOp::And, DType::Bool) => plain("&&"),
            (BinOp::Or, DType::Bool) => plain("||"),
            (BinOp::And, _) => plain("&"),
            (BinOp::Or, _) => plain("|"),
            // Narrow integers become int.
            (BinOp::Xor, _) => format!("({})({x} ^ {y})", c_type(t)),
            (op, _) if op.is_comparison() => plain(comparison(op)?),
            (BinOp::Add, DType::F32 | DType::F64 | DType::U32 | DType::U64) => plain("+"),
            (BinOp::Sub, DType::F32 | DType::F64 | DType::U32 | DType::U64) => plain("-"),
            (BinOp::Mul, DType::F32 | DType::F64 | DType::U32 | DType::U64) => plain("*"),
            (BinOp::Div, DType::F32 | DType::F64) => plain("/"),
            (op, DType::F32 | DType::F64) => {
                return Err(EmitError::Program(format!("{op:?} is not supported for floats")));
            }
            (BinOp::Div, DType::U32 | DType::U64) => format!("({y} == 0 ? 0 : {x} / {y})"),
            (BinOp::Mod, DType::U32 | DType::U64) => format!("({y} == 0 ? 0 : {x} % {y})"),
            (BinOp::Shl, DType::U32 | DType::U64) => format!("({x} << ({y} & {}))", t.size_bytes() * 8 - 1),
            (BinOp::Shr, DType::U32 | DType::U64) => format!("({x} >> ({y} & {}))", t.size_bytes() * 8 - 1),
            // Narrow integers are computed as int and then wrapped.
            (op, DType::I8 | DType::U8 | DType::I16 | DType::U16) => {
                let bits = format!("({y} & {})", t.size_bytes() * 8 - 1);
                let shift = matches!(op, BinOp::Shl | BinOp::Shr);
                let (x, y) = (format!("(int){x}"), if shift { bits } else { format!("(int){y}") });
                format!("({}){}({x}, {y})", c_type(t), helper(op)?)
            }
            (op, _) => format!("{}({x}, {y})", helper(op)?),
        })
    }

    /// Translates the value that a block stores. A product added to the stored element shares one rounding with the
    /// sum. Nothing else does: contraction is off in the compiler.
    pub(super) fn stored_value(&self, target: &Name, at: &[Expr], value: &Expr) -> Text {
        if let Expr::Binary(BinOp::Add, old, product) = value
            && let Expr::Load { buffer, indices, dtype: DType::F32 } = &**old
            && (buffer, indices.as_slice()) == (target, at)
            && let Expr::Binary(BinOp::Mul, a, b) = &**product
        {
            return Ok(format!("fmaf({}, {}, {})", self.expr(a)?, self.expr(b)?, self.expr(old)?));
        }
        self.expr(value)
    }

    fn cast(&self, t: DType, a: &Expr) -> Text {
        let from = a.dtype();
        let v = match from {
            DType::I64 => self.long(a)?.0,
            _ => self.expr(a)?,
        };
        Ok(match (from, t) {
            (_, DType::Bool) => format!("({v} != 0)"),
            (from, to) if from == to => v,
            (_, DType::F32 | DType::F64) => format!("({})({v})", c_type(t)),
            (DType::F32, DType::I8) => format!("tw_to_i8({v})"),
            (DType::F32, DType::U8) => format!("tw_to_u8({v})"),
            (DType::F32, DType::I32) => format!("tw_to_i32({v})"),
            (DType::F32, DType::I64) => format!("tw_to_i64({v})"),
            // A double has every float.
            (DType::F32 | DType::F64, t) => match t {
                DType::I64 => format!("tw_to_i64_d({v})"),
                DType::U64 => format!("tw_to_u64_d({v})"),
                t => {
                    let (lo, hi) = tilewright_compiler::te::scalar::range(t);
                    format!("({})tw_clamp_d({v}, {lo}.0, {hi}.0)", c_type(t))
                }
            },
            _ => format!("({})({v})", c_type(t)),
        })
    }

    fn bitcast(&self, t: DType, a: &Expr) -> Text {
        let v = self.expr(a)?;
        Ok(match (a.dtype(), t) {
            (from, to) if from == to => v,
            (DType::F32, t) => format!("({})__float_as_int({v})", c_type(t)),
            (DType::F64, t) => format!("({})__double_as_longlong({v})", c_type(t)),
            (_, DType::F32) => format!("__int_as_float((int)({v}))"),
            (_, DType::F64) => format!("__longlong_as_double((long long)({v}))"),
            _ => format!("({})({v})", c_type(t)),
        })
    }

    /// Translates a 64-bit expression. The second result tells whether the text has type int, because the value and all
    /// intermediate values fit.
    pub(super) fn long(&self, e: &Expr) -> Result<(String, bool), EmitError> {
        let wide = |(text, is_narrow): (String, bool)| if is_narrow { format!("(long long)({text})") } else { text };
        Ok(match e {
            Expr::Int(v, _) if narrow(Some((*v, *v))) => (v.to_string(), true),
            Expr::Int(v, t) => (int(*v, *t), false),
            Expr::Var(v) => (self.var(v)?, true),
            Expr::Load { buffer, indices, .. } => (self.load(buffer, indices)?, false),
            Expr::Cast(_, a) => (format!("(long long)({})", self.cast(DType::I64, a)?), false),
            Expr::Bitcast(_, a) => (self.bitcast(DType::I64, a)?, false),
            Expr::Select(c, a, b) => {
                let (c, x, y) = (self.expr(c)?, self.long(a)?, self.long(b)?);
                let both = x.1 && y.1;
                let (x, y) = if both { (x.0, y.0) } else { (wide(x), wide(y)) };
                (format!("({c} ? {x} : {y})"), both)
            }
            Expr::Binary(op, a, b) => {
                let (x, y) = (self.long(a)?, self.long(b)?);
                let fits = x.1 && y.1 && narrow(interval(e, &self.bounds));
                let (x, y) = if fits { (x.0, y.0) } else { (wide(x), wide(y)) };
                let from = interval(a, &self.bounds);
                let by = interval(b, &self.bounds);
                let whole = from.is_some_and(|r| r.0 >= 0) && by.is_some_and(|r| r.0 > 0);
                let end = if fits { "" } else { suffix(DType::I64) };
                let text = match op {
                    BinOp::Add if fits => format!("({x} + {y})"),
                    BinOp::Sub if fits => format!("({x} - {y})"),
                    BinOp::Mul if fits => format!("{x} * {y}"),
                    BinOp::Div if fits && whole => format!("({x} / {y})"),
                    BinOp::Mod if fits && whole => format!("({x} % {y})"),
                    BinOp::Min => format!("tw_min{end}({x}, {y})"),
                    BinOp::Max => format!("tw_max{end}({x}, {y})"),
                    BinOp::And => format!("({x} & {y})"),
                    BinOp::Or => format!("({x} | {y})"),
                    BinOp::Xor => format!("({x} ^ {y})"),
                    op => format!("{}{end}({x}, {y})", helper(*op)?),
                };
                (text, fits)
            }
            Expr::Pick(list, index) => return self.long(&by_choices(list, index)),
            Expr::Float(..) | Expr::Call(..) => return Err(EmitError::Program(format!("{e} is not an integer"))),
        })
    }
}

fn comparison(op: BinOp) -> Result<&'static str, EmitError> {
    Ok(match op {
        BinOp::Lt => "<",
        BinOp::Le => "<=",
        BinOp::Eq => "==",
        BinOp::Ne => "!=",
        _ => return Err(EmitError::Program(format!("{op:?} is not a comparison"))),
    })
}

/// Returns how the names of the prelude's functions of a type end.
fn suffix(t: DType) -> &'static str {
    match t {
        DType::I64 => "_l",
        DType::F32 => "_f",
        DType::F64 => "_d",
        DType::U32 => "_u",
        DType::U64 => "_ul",
        DType::I32 | DType::I8 | DType::U8 | DType::I16 | DType::U16 | DType::Bool => "",
    }
}

/// Returns the prelude's function for an operation on integers, without the suffix of its type.
fn helper(op: BinOp) -> Result<&'static str, EmitError> {
    Ok(match op {
        BinOp::Add => "tw_add",
        BinOp::Sub => "tw_sub",
        BinOp::Mul => "tw_mul",
        BinOp::Shl => "tw_shl",
        BinOp::Shr => "tw_shr",
        BinOp::Div => "tw_floor_div",
        BinOp::Mod => "tw_floor_mod",
        _ => return Err(EmitError::Program(format!("{op:?} is not supported for integers"))),
    })
}

fn function(f: Func) -> &'static str {
    match f {
        Func::Exp => "expf",
        Func::Log => "logf",
        Func::Sqrt => "sqrtf",
        Func::Sin => "sinf",
        Func::Cos => "cosf",
        Func::Tanh => "tanhf",
        Func::Erf => "erff",
        Func::Pow => "powf",
        Func::Floor => "floorf",
        Func::Ceil => "ceilf",
        Func::RoundEven => "rintf",
        Func::RoundAway => "roundf",
        Func::Abs => "fabsf",
        Func::ScaleDouble => "tw_scale_double",
        Func::ScaleSingle => "tw_scale_single",
        Func::OffsetClamp => "tw_offset_clamp",
        Func::DoublingHighMul => "tw_doubling_high_mul",
        Func::RoundingShift => "tw_rounding_shift",
    }
}
