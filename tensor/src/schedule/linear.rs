//! Sums of terms that can be divisions, for conditions whose indices were divided and joined again.

use crate::te::{BinOp, DType, Expr};
use crate::tir::{Bounds, affine::interval};

/// A sum of terms with factors. A term is a variable, or an expression that is no sum.
#[derive(Default)]
struct Linear {
    terms: Vec<(Expr, i64)>,
    constant: i64,
}

impl Linear {
    fn of(e: &Expr, bounds: &Bounds) -> Linear {
        let mut sum = Linear::default();
        sum.add(e, 1, bounds);
        sum.join();
        sum
    }

    fn add(&mut self, e: &Expr, factor: i64, bounds: &Bounds) {
        match e {
            Expr::Int(v, _) => self.constant += v * factor,
            Expr::Binary(BinOp::Add, a, b) => {
                self.add(a, factor, bounds);
                self.add(b, factor, bounds);
            }
            Expr::Binary(BinOp::Sub, a, b) => {
                self.add(a, factor, bounds);
                self.add(b, -factor, bounds);
            }
            Expr::Binary(BinOp::Mul, a, b) => match (a.as_ref(), b.as_ref()) {
                (a, Expr::Int(v, _)) => self.add(a, factor * v, bounds),
                (Expr::Int(v, _), b) => self.add(b, factor * v, bounds),
                _ => self.term(e.clone(), factor),
            },
            Expr::Binary(op @ (BinOp::Div | BinOp::Mod), a, d) => match d.as_ref() {
                Expr::Int(d, _) if *d > 0 => Linear::of(a, bounds).divided(*op, *d, bounds).scaled(factor, self),
                _ => self.term(e.clone(), factor),
            },
            _ => self.term(e.clone(), factor),
        }
    }

    fn term(&mut self, e: Expr, factor: i64) {
        match self.terms.iter_mut().find(|t| t.0 == e) {
            Some(term) => term.1 += factor,
            None => self.terms.push((e, factor)),
        }
    }

    fn scaled(self, factor: i64, to: &mut Linear) {
        self.terms.into_iter().for_each(|(e, own)| to.term(e, own * factor));
        to.constant += self.constant * factor;
    }

    /// Divides by `d`: the terms that are multiples of it apart, if the others stay within one period of `d`.
    fn divided(self, op: BinOp, d: i64, bounds: &Bounds) -> Linear {
        let (whole, rest): (Vec<_>, Vec<_>) = self.terms.iter().cloned().partition(|(_, factor)| factor % d == 0);
        let rest = Linear { terms: rest, constant: self.constant };
        let periods = interval(&rest.expr(), bounds).map(|(lo, hi)| (lo.div_euclid(d), hi.div_euclid(d)));
        match (periods, op) {
            (Some((p, q)), BinOp::Div) if p == q => {
                Linear { terms: whole.into_iter().map(|(e, factor)| (e, factor / d)).collect(), constant: p }
            }
            (Some((p, q)), _) if p == q => Linear { constant: rest.constant - p * d, ..rest },
            _ => Linear { terms: vec![(Expr::binary(op, self.expr(), Expr::int(d)), 1)], constant: 0 },
        }
    }

    /// Joins quotients and remainders of the same number.
    fn join(&mut self) {
        fn part(e: &Expr, wanted: BinOp) -> Option<(&Expr, i64)> {
            match e {
                Expr::Binary(op, x, d) if *op == wanted => match d.as_ref() {
                    Expr::Int(d, _) => Some((x, *d)),
                    _ => None,
                },
                _ => None,
            }
        }
        let pair = |terms: &[(Expr, i64)]| {
            terms.iter().enumerate().find_map(|(i, (quotient, whole))| {
                let (x, d) = part(quotient, BinOp::Div)?;
                let is_rest = |(e, factor): &(Expr, i64)| part(e, BinOp::Mod) == Some((x, d)) && factor * d == *whole;
                Some((i, terms.iter().position(is_rest)?, x.clone(), whole / d))
            })
        };
        while let Some((i, k, x, factor)) = pair(&self.terms) {
            self.terms.remove(i.max(k));
            self.terms.remove(i.min(k));
            // The number is a sum of this form already.
            self.add(&x, factor, &Bounds::default());
        }
        self.terms.retain(|(_, factor)| *factor != 0);
    }

    fn expr(&self) -> Expr {
        let mut terms = self.terms.clone();
        terms.sort_by_cached_key(|(e, _)| e.to_string());
        let scaled = |(e, factor): (Expr, i64)| if factor == 1 { e } else { e * factor };
        match terms.into_iter().map(scaled).reduce(|a, b| a + b) {
            None => Expr::int(self.constant),
            Some(sum) if self.constant == 0 => sum,
            Some(sum) => sum + Expr::int(self.constant),
        }
    }
}

/// Returns a condition with the same value, whose sides are sums in one form.
pub fn in_sums(condition: &Expr, bounds: &Bounds) -> Expr {
    match condition {
        Expr::Binary(op, a, b) if op.is_comparison() && a.dtype() == DType::I64 => {
            let side = |e: &Expr| Linear::of(e, bounds).expr();
            Expr::binary(*op, side(a), side(b))
        }
        Expr::Binary(BinOp::And, a, b) => Expr::and(in_sums(a, bounds), in_sums(b, bounds)),
        other => other.clone(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_tiles_give_back_rows() {
        let bounds: Bounds = [("n", 2), ("y", 7), ("x", 10)].map(|(v, n)| (v.into(), (0, n - 1))).into_iter().collect();
        // Tiles of 3 x 4 pixels: three rows of three tiles in an image, in groups of four.
        let [y, x] = ["y", "x"].map(Expr::var);
        let row = || y.clone() / Expr::int(3);
        let number = || (Expr::var("n") * 3 + row()) * 3 + x.clone() / Expr::int(4);
        let again = number() / Expr::int(4) * 4 + number() % Expr::int(4);
        let place = again / Expr::int(3) % Expr::int(3) * 6 + y.clone() % Expr::int(3) * 2;
        let e = in_sums(&place.lt(Expr::int(13)), &bounds);
        assert_eq!(e, (y.clone() * 2).lt(Expr::int(13)));
        assert_eq!(interval(&e, &bounds), Some((1, 1)));
    }
}
