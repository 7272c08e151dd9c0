//! Scalar expressions, shared by tensor expressions and loop programs.
//!
//! Every expression knows its element type. Integer arithmetic wraps in that type; indices are `i64`. Quantized
//! arithmetic is a call of a function from `tilewright_hw::num`.

use std::cmp::Ordering;
use std::collections::HashSet;
use std::fmt;
use std::hash::{Hash, Hasher};
use std::sync::{Arc, LazyLock, PoisonError, RwLock};

use rustc_hash::{FxHashMap, FxHashSet};

use super::DType;
use super::scalar::{self, Scalar};

/// The name of a variable, buffer, block or function; unique within a program.
///
/// Names are cloned, compared and hashed in the innermost loops of the compiler. So each text is stored once, until the
/// process ends, and a name is its address.
#[derive(Clone)]
pub struct Name(&'static str);

/// The texts of all names.
static TEXTS: LazyLock<RwLock<HashSet<&'static str>>> = LazyLock::new(RwLock::default);

impl Name {
    /// Returns the name as text.
    pub fn as_str(&self) -> &str {
        self.0
    }
}

impl<S: AsRef<str>> From<S> for Name {
    fn from(s: S) -> Name {
        let text = s.as_ref();
        // A thread that panics leaves a complete set.
        if let Some(known) = TEXTS.read().unwrap_or_else(PoisonError::into_inner).get(text) {
            return Name(known);
        }
        let mut texts = TEXTS.write().unwrap_or_else(PoisonError::into_inner);
        // Another thread may have added it in between.
        if let Some(known) = texts.get(text) {
            return Name(known);
        }
        let kept: &'static str = Box::leak(text.into());
        texts.insert(kept);
        Name(kept)
    }
}

impl PartialEq for Name {
    fn eq(&self, other: &Name) -> bool {
        std::ptr::eq(self.0, other.0)
    }
}

impl Eq for Name {}

impl Hash for Name {
    fn hash<H: Hasher>(&self, state: &mut H) {
        self.0.as_ptr().hash(state);
    }
}

impl PartialOrd for Name {
    fn partial_cmp(&self, other: &Name) -> Option<Ordering> {
        Some(self.cmp(other))
    }
}

impl Ord for Name {
    fn cmp(&self, other: &Name) -> Ordering {
        if self == other { Ordering::Equal } else { self.0.cmp(other.0) }
    }
}

impl fmt::Display for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

impl fmt::Debug for Name {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.0)
    }
}

/// Values by name. A name is an address, so a simple hash is enough.
pub type NameMap<T> = FxHashMap<Name, T>;

/// Names.
pub type NameSet = FxHashSet<Name>;

/// An operation on two values of the same type.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum BinOp {
    /// Sum.
    Add,
    /// Difference.
    Sub,
    /// Product.
    Mul,
    /// Quotient of floats, or of integers rounded down. An integer divided by 0 gives 0.
    Div,
    /// Integer remainder with the divisor's sign, so that `a = (a / b) * b + a % b`. The remainder by 0 is 0.
    Mod,
    /// Minimum: NaN if either operand is NaN, -0 if both are zeros and either is -0.
    Min,
    /// Maximum: NaN if either operand is NaN, -0 if both are zeros and either is -0.
    Max,
    /// Left shift by the low bits of the second operand.
    Shl,
    /// Right shift by the low bits of the second operand. It keeps the sign, if the type has one.
    Shr,
    /// And of booleans, or of each bit of integers.
    And,
    /// Or of booleans, or of each bit of integers.
    Or,
    /// Exclusive or of each bit of integers.
    Xor,
    /// `a < b`, a boolean.
    Lt,
    /// `a <= b`, a boolean.
    Le,
    /// `a == b`, a boolean.
    Eq,
    /// `a != b`, a boolean.
    Ne,
}

impl BinOp {
    /// Returns whether the result is a boolean whatever the operands' type.
    pub fn is_comparison(self) -> bool {
        matches!(self, BinOp::Lt | BinOp::Le | BinOp::Eq | BinOp::Ne)
    }
}

/// A scalar function. [`Func::SIGNATURES`] has its name, number of arguments and type rule.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Func {
    /// e to the power of x.
    Exp,
    /// Natural logarithm.
    Log,
    /// Square root.
    Sqrt,
    /// Sine.
    Sin,
    /// Cosine.
    Cos,
    /// Hyperbolic tangent.
    Tanh,
    /// Gauss error function.
    Erf,
    /// First argument to the power of the second.
    Pow,
    /// Greatest integer less than or equal to x.
    Floor,
    /// Least integer greater than or equal to x.
    Ceil,
    /// Nearest integer, ties to even.
    RoundEven,
    /// Nearest integer, ties away from zero.
    RoundAway,
    /// Absolute value of a float.
    Abs,
    /// `num::scale_double(x, multiplier, shift)`, all i32.
    ScaleDouble,
    /// `num::scale_single(x, multiplier, shift)`, all i32.
    ScaleSingle,
    /// `num::offset_clamp(x, zero_point, lo, hi)`, all i32.
    OffsetClamp,
    /// `num::doubling_high_mul(a, b)`, all i32.
    DoublingHighMul,
    /// `num::rounding_divide_by_pot(x, exponent)`, all i32; the exponent is clamped to `0..=31`.
    RoundingShift,
}

impl Func {
    /// Each function with its name in text, its number of arguments, and whether it takes floats instead of i32.
    pub const SIGNATURES: [(Func, &'static str, usize, bool); 18] = [
        (Func::Exp, "exp", 1, true),
        (Func::Log, "log", 1, true),
        (Func::Sqrt, "sqrt", 1, true),
        (Func::Sin, "sin", 1, true),
        (Func::Cos, "cos", 1, true),
        (Func::Tanh, "tanh", 1, true),
        (Func::Erf, "erf", 1, true),
        (Func::Pow, "pow", 2, true),
        (Func::Floor, "floor", 1, true),
        (Func::Ceil, "ceil", 1, true),
        (Func::RoundEven, "round_even", 1, true),
        (Func::RoundAway, "round_away", 1, true),
        (Func::Abs, "abs", 1, true),
        (Func::ScaleDouble, "scale_double", 3, false),
        (Func::ScaleSingle, "scale_single", 3, false),
        (Func::OffsetClamp, "offset_clamp", 4, false),
        (Func::DoublingHighMul, "doubling_high_mul", 2, false),
        (Func::RoundingShift, "rounding_shift", 2, false),
    ];

    fn signature(self) -> (Func, &'static str, usize, bool) {
        Func::SIGNATURES[self as usize]
    }

    /// Returns the function's name in text.
    pub fn name(self) -> &'static str {
        self.signature().1
    }

    /// Returns the number of arguments.
    pub fn arity(self) -> usize {
        self.signature().2
    }

    /// Returns whether arguments and result are floats. Otherwise they are i32.
    pub fn is_float(self) -> bool {
        self.signature().3
    }

    /// Returns the function called `name`.
    pub fn from_name(name: &str) -> Option<Func> {
        Func::SIGNATURES.iter().find(|s| s.1 == name).map(|s| s.0)
    }
}

/// A scalar expression.
#[derive(Debug, Clone, PartialEq)]
pub enum Expr {
    /// An integer or boolean constant, within its type's range.
    Int(i64, DType),
    /// A float constant.
    Float(f64, DType),
    /// A loop or axis variable, an i64.
    Var(Name),
    /// One element of a tensor or buffer.
    Load {
        /// Tensor or buffer.
        buffer: Name,
        /// Its element type.
        dtype: DType,
        /// One i64 index for each dimension.
        indices: Vec<Expr>,
    },
    /// An operation on two values of the same type.
    Binary(BinOp, Box<Expr>, Box<Expr>),
    /// The second value if the first, a boolean, is true, else the third. Only the chosen one is evaluated.
    Select(Box<Expr>, Box<Expr>, Box<Expr>),
    /// A conversion. Integers wrap; floats become integers by truncation and saturation.
    Cast(DType, Box<Expr>),
    /// The value with the same bits in another type, which has the same size. Neither is a boolean.
    Bitcast(DType, Box<Expr>),
    /// A scalar function.
    Call(Func, Vec<Expr>),
    /// A number of a list, an i64, by its index, an i64. An index below 0 means the first one, an index past the end the
    /// last one.
    Pick(Arc<[i64]>, Box<Expr>),
}

impl Expr {
    /// Creates an i64 constant.
    pub fn int(v: i64) -> Expr {
        Expr::Int(v, DType::I64)
    }

    /// Creates an i32 constant.
    pub fn i32(v: i32) -> Expr {
        Expr::Int(v as i64, DType::I32)
    }

    /// Creates a constant of any type but bool; of an integer type, the integer next to it toward zero.
    pub fn number(v: f64, t: DType) -> Expr {
        match scalar::cast(Scalar::D(v), DType::F64, t) {
            Scalar::I(v) => Expr::Int(v, t),
            Scalar::F(v) => Expr::Float(v.into(), t),
            Scalar::D(v) => Expr::Float(v, t),
        }
    }

    /// Creates an f32 constant.
    pub fn f32(v: f32) -> Expr {
        Expr::Float(v as f64, DType::F32)
    }

    /// Creates a variable.
    pub fn var(name: impl Into<Name>) -> Expr {
        Expr::Var(name.into())
    }

    /// Creates an operation on two values.
    pub fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
        Expr::Binary(op, Box::new(a), Box::new(b))
    }

    /// Returns the smaller of two values.
    pub fn min(self, b: Expr) -> Expr {
        Expr::binary(BinOp::Min, self, b)
    }

    /// Returns the greater of two values.
    pub fn max(self, b: Expr) -> Expr {
        Expr::binary(BinOp::Max, self, b)
    }

    /// Returns `self < b`.
    pub fn lt(self, b: Expr) -> Expr {
        Expr::binary(BinOp::Lt, self, b)
    }

    /// Returns `self <= b`.
    pub fn le(self, b: Expr) -> Expr {
        Expr::binary(BinOp::Le, self, b)
    }

    /// Returns `self == b`.
    pub fn equals(self, b: Expr) -> Expr {
        Expr::binary(BinOp::Eq, self, b)
    }

    /// Returns whether both are true.
    pub fn and(self, b: Expr) -> Expr {
        Expr::binary(BinOp::And, self, b)
    }

    /// Returns `yes` if this is true, else `no`.
    pub fn select(self, yes: Expr, no: Expr) -> Expr {
        Expr::Select(Box::new(self), Box::new(yes), Box::new(no))
    }

    /// Returns the number of a list at an index.
    pub fn pick(list: impl Into<Arc<[i64]>>, index: Expr) -> Expr {
        Expr::Pick(list.into(), Box::new(index))
    }

    /// Returns the conditions that all hold if this one holds.
    pub fn conjuncts(&self) -> Vec<&Expr> {
        match self {
            Expr::Binary(BinOp::And, a, b) => [a.conjuncts(), b.conjuncts()].concat(),
            other => vec![other],
        }
    }

    /// Converts to `dtype`.
    pub fn cast(self, dtype: DType) -> Expr {
        if self.dtype() == dtype { self } else { Expr::Cast(dtype, Box::new(self)) }
    }

    /// Returns the value of type `dtype` with the same bits.
    pub fn bitcast(self, dtype: DType) -> Expr {
        if self.dtype() == dtype { self } else { Expr::Bitcast(dtype, Box::new(self)) }
    }

    /// Returns this value with the other sign. Integers wrap.
    pub fn negated(self) -> Expr {
        let zero = match self.dtype() {
            // The difference of 0 and 0 is 0, that of -0 and 0 is -0.
            dtype if dtype.is_float() => Expr::Float(-0.0, dtype),
            dtype => Expr::Int(0, dtype),
        };
        Expr::binary(BinOp::Sub, zero, self)
    }

    /// Creates a function call.
    pub fn call(func: Func, args: Vec<Expr>) -> Expr {
        Expr::Call(func, args)
    }

    /// Returns the element type. An ill-typed expression, which the verifier rejects, has the type of its first
    /// operand.
    pub fn dtype(&self) -> DType {
        match self {
            Expr::Int(_, t) | Expr::Float(_, t) | Expr::Cast(t, _) | Expr::Bitcast(t, _) => *t,
            Expr::Var(_) | Expr::Pick(..) => DType::I64,
            Expr::Load { dtype, .. } => *dtype,
            Expr::Binary(op, a, _) => {
                if op.is_comparison() {
                    DType::Bool
                } else {
                    a.dtype()
                }
            }
            Expr::Select(_, a, _) => a.dtype(),
            Expr::Call(f, args) => match args.first().map(Expr::dtype) {
                Some(DType::F64) if f.is_float() => DType::F64,
                _ if f.is_float() => DType::F32,
                _ => DType::I32,
            },
        }
    }

    /// Calls `f` on this expression, then on everything in it.
    pub fn visit(&self, f: &mut dyn FnMut(&Expr)) {
        f(self);
        match self {
            Expr::Int(..) | Expr::Float(..) | Expr::Var(_) => {}
            Expr::Load { indices: list, .. } | Expr::Call(_, list) => list.iter().for_each(|e| e.visit(f)),
            Expr::Binary(_, a, b) => {
                a.visit(f);
                b.visit(f);
            }
            Expr::Select(a, b, c) => {
                a.visit(f);
                b.visit(f);
                c.visit(f);
            }
            Expr::Cast(_, a) | Expr::Bitcast(_, a) | Expr::Pick(_, a) => a.visit(f),
        }
    }

    /// Rebuilds the expression bottom-up: children first, then `f` on each node, which can replace it.
    pub fn rewrite(&self, f: &mut dyn FnMut(Expr) -> Expr) -> Expr {
        let e = match self {
            Expr::Int(..) | Expr::Float(..) | Expr::Var(_) => self.clone(),
            Expr::Load { buffer, dtype, indices } => Expr::Load {
                buffer: buffer.clone(),
                dtype: *dtype,
                indices: indices.iter().map(|e| e.rewrite(f)).collect(),
            },
            Expr::Call(func, args) => Expr::Call(*func, args.iter().map(|e| e.rewrite(f)).collect()),
            Expr::Binary(op, a, b) => Expr::binary(*op, a.rewrite(f), b.rewrite(f)),
            Expr::Select(a, b, c) => {
                Expr::Select(Box::new(a.rewrite(f)), Box::new(b.rewrite(f)), Box::new(c.rewrite(f)))
            }
            Expr::Cast(t, a) => Expr::Cast(*t, Box::new(a.rewrite(f))),
            Expr::Bitcast(t, a) => Expr::Bitcast(*t, Box::new(a.rewrite(f))),
            Expr::Pick(list, a) => Expr::Pick(Arc::clone(list), Box::new(a.rewrite(f))),
        };
        f(e)
    }

    /// Replaces every variable for which `map` returns an expression.
    pub fn substitute(&self, map: &dyn Fn(&Name) -> Option<Expr>) -> Expr {
        self.rewrite(&mut |e| match &e {
            Expr::Var(v) => map(v).unwrap_or(e),
            _ => e,
        })
    }

    /// Returns whether an element is loaded.
    pub fn has_load(&self) -> bool {
        let mut found = false;
        self.visit(&mut |e| found |= matches!(e, Expr::Load { .. }));
        found
    }

    /// Returns whether the variable occurs.
    pub fn uses(&self, var: &Name) -> bool {
        let mut found = false;
        self.visit(&mut |e| found |= matches!(e, Expr::Var(v) if v == var));
        found
    }
}

macro_rules! operator {
    ($trait:ident, $method:ident, $op:ident) => {
        impl std::ops::$trait for Expr {
            type Output = Expr;
            fn $method(self, b: Expr) -> Expr {
                Expr::binary(BinOp::$op, self, b)
            }
        }
        impl std::ops::$trait<i64> for Expr {
            type Output = Expr;
            fn $method(self, b: i64) -> Expr {
                let t = self.dtype();
                Expr::binary(BinOp::$op, self, Expr::Int(b, t))
            }
        }
    };
}
operator!(Add, add, Add);
operator!(Sub, sub, Sub);
operator!(Mul, mul, Mul);
operator!(Div, div, Div);
operator!(Rem, rem, Mod);
operator!(Shl, shl, Shl);
operator!(Shr, shr, Shr);
