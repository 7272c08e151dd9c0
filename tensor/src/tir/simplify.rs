//! Simplifies scalar expressions: constants, neutral elements, affine sums, and divisions with a known result.

use super::affine::{Affine, Bounds, interval};
use crate::te::scalar::int_binary;
use crate::te::{BinOp, DType, Expr, Func};

/// Returns an expression with the same value for every assignment within `bounds`.
///
/// Sums of indices become affine normal form. Floats stay unchanged, except that selects with a constant condition
/// resolve.
pub fn simplify(e: &Expr, bounds: &Bounds) -> Expr {
    e.rewrite(&mut |e| step(e, bounds))
}

fn step(e: Expr, bounds: &Bounds) -> Expr {
    if e.dtype() == DType::I64
        && !matches!(e, Expr::Int(..) | Expr::Var(_))
        && let Some(a) = Affine::of(&e)
    {
        return a.to_expr();
    }
    match e {
        Expr::Binary(op, a, b) => binary(op, *a, *b, bounds),
        Expr::Select(c, a, b) => match interval(&c, bounds) {
            Some((1, 1)) => *a,
            Some((0, 0)) => *b,
            _ if a == b => *a,
            _ => Expr::Select(c, a, b),
        },
        Expr::Cast(t, a) => match *a {
            Expr::Int(v, _) if !t.is_float() => Expr::Int(crate::te::scalar::wrap(v, t), t),
            a if a.dtype() == t => a,
            a => Expr::Cast(t, Box::new(a)),
        },
        Expr::Bitcast(t, a) if a.dtype() == t => *a,
        Expr::Call(f, args) if !f.is_float() => fold_call(f, args),
        Expr::Pick(list, index) => match *index {
            Expr::Int(at, _) => Expr::int(crate::te::scalar::pick(&list, at)),
            index => Expr::pick(list, index),
        },
        e => e,
    }
}

fn fold_call(f: Func, args: Vec<Expr>) -> Expr {
    let constants: Option<Vec<_>> = args
        .iter()
        .map(|a| match a {
            Expr::Int(v, _) => Some(crate::te::Scalar::I(*v)),
            _ => None,
        })
        .collect();
    match constants {
        Some(c) => Expr::Int(crate::te::scalar::call(f, &c).int(), DType::I32),
        None => Expr::Call(f, args),
    }
}

fn binary(op: BinOp, a: Expr, b: Expr, bounds: &Bounds) -> Expr {
    let t = a.dtype();
    if t.is_float() {
        return Expr::binary(op, a, b);
    }
    if let (Expr::Int(x, _), Expr::Int(y, _)) = (&a, &b) {
        let result = if op.is_comparison() { DType::Bool } else { t };
        return Expr::Int(int_binary(op, *x, *y, t), result);
    }
    if op.is_comparison() {
        return match interval(&Expr::binary(op, a.clone(), b.clone()), bounds) {
            Some((v, w)) if v == w => Expr::Int(v, DType::Bool),
            _ => Expr::binary(op, a, b),
        };
    }
    match (op, &a, &b) {
        (BinOp::Add | BinOp::Sub | BinOp::Shl | BinOp::Shr, _, Expr::Int(0, _)) => return a,
        (BinOp::Add, Expr::Int(0, _), _) => return b,
        (BinOp::Mul | BinOp::Div, _, Expr::Int(1, _)) => return a,
        (BinOp::Mul, Expr::Int(1, _), _) => return b,
        (BinOp::Mul, _, Expr::Int(0, _)) => return b,
        (BinOp::Mul, Expr::Int(0, _), _) => return a,
        (BinOp::Mod, _, Expr::Int(1, _)) => return Expr::Int(0, t),
        (BinOp::And, _, Expr::Int(1, DType::Bool)) | (BinOp::Or, _, Expr::Int(0, DType::Bool)) => return a,
        (BinOp::And, Expr::Int(1, DType::Bool), _) | (BinOp::Or, Expr::Int(0, DType::Bool), _) => return b,
        (BinOp::And, _, Expr::Int(0, DType::Bool)) | (BinOp::Or, _, Expr::Int(1, DType::Bool)) => return b,
        (BinOp::And, Expr::Int(0, DType::Bool), _) | (BinOp::Or, Expr::Int(1, DType::Bool), _) => return a,
        _ => {}
    }
    if t == DType::I64 {
        if op == BinOp::Add
            && let Some(e) = joined(&a, &b, bounds)
        {
            return e;
        }
        if let (BinOp::Div | BinOp::Mod, Expr::Int(d, _)) = (op, &b)
            && *d > 0
            && let Some(e) = divide(op, &a, *d, bounds)
        {
            return e;
        }
        if let (BinOp::Min | BinOp::Max, Some((la, ha)), Some((lb, hb))) =
            (op, interval(&a, bounds), interval(&b, bounds))
        {
            let (a_low, b_low) = (ha <= lb, hb <= la);
            if (op == BinOp::Min && a_low) || (op == BinOp::Max && b_low) {
                return a;
            }
            if (op == BinOp::Min && b_low) || (op == BinOp::Max && a_low) {
                return b;
            }
        }
    }
    Expr::binary(op, a, b)
}

/// Joins quotient and remainder of the same number in a sum: `x / d * (d * c) + x % d * c` is `x * c`.
fn joined(a: &Expr, b: &Expr, bounds: &Bounds) -> Option<Expr> {
    fn terms(e: &Expr, list: &mut Vec<Expr>) {
        match e {
            Expr::Binary(BinOp::Add, a, b) => {
                terms(a, list);
                terms(b, list);
            }
            e => list.push(e.clone()),
        }
    }
    /// A term as operation, number, divisor and factor.
    fn part(e: &Expr) -> Option<(BinOp, &Expr, i64, i64)> {
        let (e, factor) = match e {
            Expr::Binary(BinOp::Mul, e, factor) => match factor.as_ref() {
                Expr::Int(factor, _) => (e.as_ref(), *factor),
                _ => return None,
            },
            e => (e, 1),
        };
        match e {
            Expr::Binary(op @ (BinOp::Div | BinOp::Mod), x, d) => match d.as_ref() {
                Expr::Int(d, _) if *d > 0 => Some((*op, x.as_ref(), *d, factor)),
                _ => None,
            },
            _ => None,
        }
    }
    let mut list = Vec::new();
    terms(a, &mut list);
    terms(b, &mut list);
    for (i, quotient) in list.iter().enumerate() {
        let Some((BinOp::Div, x, d, whole)) = part(quotient) else { continue };
        let rest = list.iter().position(|rest| {
            matches!(part(rest), Some((BinOp::Mod, y, e, factor)) if y == x && e == d && factor.checked_mul(d) == Some(whole))
        });
        let Some(k) = rest else { continue };
        let sum = x.clone() * (whole / d);
        let others = list.iter().enumerate().filter(|(at, _)| *at != i && *at != k).map(|(_, e)| e.clone());
        return Some(simplify(&others.fold(sum, |sum, e| sum + e), bounds));
    }
    None
}

/// Simplifies `a / d` or `a % d` by splitting `a` into terms divisible by `d` and a rest within one period of `d`.
fn divide(op: BinOp, a: &Expr, d: i64, bounds: &Bounds) -> Option<Expr> {
    let Some(f) = Affine::of(a) else {
        // Without an affine form, the whole value may still be within one period.
        let (lo, hi) = interval(a, bounds)?;
        return match (lo.div_euclid(d), hi.div_euclid(d)) {
            (0, 0) if op == BinOp::Mod => Some(a.clone()),
            (p, q) if p == q && op == BinOp::Div => Some(Expr::int(p)),
            _ => None,
        };
    };
    let mut whole = Affine::default();
    let mut rest = Affine { constant: f.constant.rem_euclid(d), ..Affine::default() };
    whole.constant = f.constant.div_euclid(d);
    for (v, c) in f.terms.iter() {
        if c % d == 0 {
            whole.terms.insert(v.clone(), c / d);
        } else {
            rest.terms.insert(v.clone(), c);
        }
    }
    let (lo, hi) = interval(&rest.to_expr(), bounds)?;
    let (p, q) = (lo.div_euclid(d), hi.div_euclid(d));
    if p == q {
        return Some(match op {
            BinOp::Div => Affine { constant: whole.constant + p, ..whole }.to_expr(),
            _ => Affine { constant: rest.constant - p * d, ..rest }.to_expr(),
        });
    }
    if whole == Affine::default() {
        return None;
    }
    let inner = Expr::binary(op, rest.to_expr(), Expr::int(d));
    Some(match op {
        BinOp::Div => whole.to_expr() + inner,
        _ => inner,
    })
}
