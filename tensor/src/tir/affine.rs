//! Index expressions as sums of loop variables with coefficients, and the ranges of expressions.

use super::terms::Terms;
use crate::te::{BinOp, DType, Expr, Name, NameMap};

/// `constant + sum of coefficient * variable`.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Affine {
    /// The constant term.
    pub constant: i64,
    /// Coefficients, none of them 0.
    pub terms: Terms,
}

impl Affine {
    /// Returns the affine form of an i64 expression, or `None` if it is not affine.
    ///
    /// ```
    /// use tilewright_tensor::{te::Expr, tir::Affine};
    /// let e = (Expr::var("i") * 4 + Expr::var("j")) * 2 + 3;
    /// let a = Affine::of(&e).unwrap();
    /// assert_eq!((a.constant, a.coefficient(&"i".into()), a.coefficient(&"j".into())), (3, 8, 2));
    /// assert!(Affine::of(&(Expr::var("i") * Expr::var("j"))).is_none());
    /// ```
    pub fn of(e: &Expr) -> Option<Affine> {
        match e {
            Expr::Int(v, DType::I64) => Some(Affine { constant: *v, terms: Terms::default() }),
            Expr::Var(v) => Some(Affine { constant: 0, terms: Terms::from_iter([(v.clone(), 1)]) }),
            Expr::Binary(BinOp::Add, a, b) => Some(Affine::of(a)?.plus(&Affine::of(b)?, 1)),
            Expr::Binary(BinOp::Sub, a, b) => Some(Affine::of(a)?.plus(&Affine::of(b)?, -1)),
            Expr::Binary(BinOp::Mul, a, b) => {
                let (a, b) = (Affine::of(a)?, Affine::of(b)?);
                match (a.as_constant(), b.as_constant()) {
                    (Some(c), _) => Some(b.times(c)),
                    (_, Some(c)) => Some(a.times(c)),
                    _ => None,
                }
            }
            _ => None,
        }
    }

    /// Returns `self + other * factor`.
    pub fn plus(mut self, other: &Affine, factor: i64) -> Affine {
        self.constant = self.constant.wrapping_add(other.constant.wrapping_mul(factor));
        self.terms.add(&other.terms, factor);
        self
    }

    /// Returns `self * factor`.
    pub fn times(self, factor: i64) -> Affine {
        Affine::default().plus(&self, factor)
    }

    /// Returns the constant if there are no variables.
    pub fn as_constant(&self) -> Option<i64> {
        self.terms.is_empty().then_some(self.constant)
    }

    /// Returns the coefficient of a variable, 0 if it does not occur.
    pub fn coefficient(&self, var: &Name) -> i64 {
        self.terms.get(var).unwrap_or(0)
    }

    /// Splits into the terms whose variables satisfy `inner`, and the remaining terms with the constant.
    pub fn partition(&self, inner: impl Fn(&Name) -> bool) -> (Affine, Affine) {
        let mut parts = (Affine::default(), Affine { constant: self.constant, ..Affine::default() });
        for (v, c) in self.terms.iter() {
            let side = if inner(v) { &mut parts.0 } else { &mut parts.1 };
            side.terms.insert(v.clone(), c);
        }
        parts
    }

    /// Returns the sum as an expression, with the variables in order of their names and the constant last.
    pub fn to_expr(&self) -> Expr {
        let mut sum: Option<Expr> = None;
        for (v, c) in self.terms.iter() {
            let var = Expr::Var(v.clone());
            let term = if c == 1 { var } else { var * c };
            sum = Some(match sum {
                Some(s) => s + term,
                None => term,
            });
        }
        match sum {
            None => Expr::int(self.constant),
            Some(s) if self.constant == 0 => s,
            Some(s) => s + self.constant,
        }
    }
}

/// The inclusive range of each variable.
pub type Bounds = NameMap<(i64, i64)>;

/// Returns the inclusive range of an i64 expression, not necessarily the tightest, or `None` if it is unknown.
///
/// The range of a comparison is within `0..=1`.
pub fn interval(e: &Expr, bounds: &Bounds) -> Option<(i64, i64)> {
    if let Some(a) = Affine::of(e) {
        let (mut lo, mut hi) = (a.constant, a.constant);
        for (v, c) in a.terms.iter() {
            let &(l, h) = bounds.get(v)?;
            let (x, y) = (l.checked_mul(c)?, h.checked_mul(c)?);
            lo = lo.checked_add(x.min(y))?;
            hi = hi.checked_add(x.max(y))?;
        }
        return Some((lo, hi));
    }
    match e {
        Expr::Int(v, DType::U64) if *v < 0 => None,
        Expr::Int(v, _) => Some((*v, *v)),
        Expr::Binary(op, a, b) => {
            let (la, ha) = interval(a, bounds)?;
            let (lb, hb) = interval(b, bounds)?;
            match op {
                BinOp::Add => Some((la.checked_add(lb)?, ha.checked_add(hb)?)),
                BinOp::Sub => Some((la.checked_sub(hb)?, ha.checked_sub(lb)?)),
                BinOp::Mul => {
                    let p = [la.checked_mul(lb)?, la.checked_mul(hb)?, ha.checked_mul(lb)?, ha.checked_mul(hb)?];
                    Some((*p.iter().min()?, *p.iter().max()?))
                }
                BinOp::Div if lb == hb && lb > 0 => Some((la.div_euclid(lb), ha.div_euclid(lb))),
                BinOp::Mod if lb == hb && lb > 0 => {
                    if la.div_euclid(lb) == ha.div_euclid(lb) {
                        Some((la.rem_euclid(lb), ha.rem_euclid(lb)))
                    } else {
                        Some((0, lb - 1))
                    }
                }
                BinOp::Min => Some((la.min(lb), ha.min(hb))),
                BinOp::Max => Some((la.max(lb), ha.max(hb))),
                BinOp::Lt if ha < lb => Some((1, 1)),
                BinOp::Lt if la >= hb => Some((0, 0)),
                BinOp::Le if ha <= lb => Some((1, 1)),
                BinOp::Le if la > hb => Some((0, 0)),
                BinOp::Eq | BinOp::Ne if ha < lb || hb < la => {
                    let v = (*op == BinOp::Ne) as i64;
                    Some((v, v))
                }
                BinOp::Eq | BinOp::Ne if la == ha && lb == hb && la == lb => {
                    let v = (*op == BinOp::Eq) as i64;
                    Some((v, v))
                }
                op if op.is_comparison() => Some((0, 1)),
                BinOp::And => Some((la & lb, ha & hb)).filter(|_| la >= 0 && lb >= 0 && ha <= 1 && hb <= 1),
                BinOp::Or => Some((la | lb, ha | hb)).filter(|_| la >= 0 && lb >= 0 && ha <= 1 && hb <= 1),
                _ => None,
            }
        }
        Expr::Select(c, a, b) => match interval(c, bounds) {
            Some((1, 1)) => interval(a, bounds),
            Some((0, 0)) => interval(b, bounds),
            _ => {
                let ((la, ha), (lb, hb)) = (interval(a, bounds)?, interval(b, bounds)?);
                Some((la.min(lb), ha.max(hb)))
            }
        },
        Expr::Pick(list, index) => {
            let last = list.len().checked_sub(1)? as i64;
            let (first, end) = interval(index, bounds).unwrap_or((0, last));
            let part = &list[first.clamp(0, last) as usize..=end.clamp(0, last) as usize];
            Some((*part.iter().min()?, *part.iter().max()?))
        }
        _ => None,
    }
}
