//! Variables that indices with divisions determine, such as those of two loops that were fused and divided again.

use std::collections::HashSet;

use crate::te::{BinOp, Expr, Name};
use crate::tir::{Affine, Bounds, affine::interval};

/// Most values of variables in divisions that are compared.
const MOST: i64 = 1 << 14;

/// An index: a sum with divisions, and a sum of other variables.
struct Parts {
    divided: Expr,
    plain: Affine,
}

/// Returns the variables that indices which are not affine determine: different values of them, whatever the values of
/// other variables, give different indices. `extent` is the number of values of a variable.
///
/// All values of the variables in divisions are compared. In an index, a sum of other variables can be added to a
/// division if both are digits of a number, as in `x / 4 * 4 + y` with `y` less than 4.
pub fn determined(indices: &[Expr], extent: &dyn Fn(&Name) -> Option<i64>) -> Vec<Name> {
    found(indices, extent).unwrap_or_default()
}

fn found(indices: &[Expr], extent: &dyn Fn(&Name) -> Option<i64>) -> Option<Vec<Name>> {
    let broken: Vec<Vec<&Expr>> = indices.iter().filter(|e| Affine::of(e).is_none()).map(terms).collect();
    let mut within: Vec<Name> = Vec::new();
    for e in broken.iter().flatten().filter(|e| Affine::of(e).is_none()) {
        e.visit(&mut |e| {
            if let Expr::Var(v) = e
                && !within.contains(v)
            {
                within.push(v.clone());
            }
        });
    }
    let extents: Vec<i64> = within.iter().map(extent).collect::<Option<_>>()?;
    let all = extents.iter().try_fold(1i64, |all, n| all.checked_mul(*n)).filter(|all| *all <= MOST)?;
    let parts: Vec<Parts> = broken.iter().map(|terms| split(terms, &within)).collect::<Option<_>>()?;
    let mut values: Vec<Vec<i64>> = vec![Vec::new(); parts.len()];
    for number in 0..all {
        let mut rest = number;
        let bounds: Bounds = (within.iter().zip(&extents))
            .map(|(v, n)| {
                let value = rest % n;
                rest /= n;
                (v.clone(), (value, value))
            })
            .collect();
        for (list, part) in values.iter_mut().zip(&parts) {
            let (value, last) = interval(&part.divided, &bounds)?;
            list.push(Some(value).filter(|_| value == last)?);
        }
    }
    // An index whose sums mix says nothing.
    let mut seen = Vec::new();
    let mut told: Vec<&Vec<i64>> = Vec::new();
    for (list, part) in values.iter().zip(&parts) {
        let step = list.iter().fold(0, |step, value| gcd(step, value - list[0]));
        let (least, most) = list.iter().fold((list[0], list[0]), |(a, b), v| (a.min(*v), b.max(*v)));
        let own = if step == 0 { 1 } else { (most - least) / step + 1 };
        if are_digits(&part.plain, (step, own), extent) {
            told.push(list);
            seen.extend(part.plain.terms.keys().cloned());
        }
    }
    let mut known = HashSet::new();
    let differ = (0..all as usize).all(|i| known.insert(told.iter().map(|list| list[i]).collect::<Vec<_>>()));
    seen.extend(within.into_iter().filter(|_| differ));
    Some(seen)
}

/// Returns the terms of a sum.
fn terms(e: &Expr) -> Vec<&Expr> {
    match e {
        Expr::Binary(BinOp::Add, a, b) => [terms(a), terms(b)].concat(),
        e => vec![e],
    }
}

/// Separates terms with variables in divisions from the others.
fn split(terms: &[&Expr], within: &[Name]) -> Option<Parts> {
    let mut parts = Parts { divided: Expr::int(0), plain: Affine::default() };
    for &e in terms {
        match Affine::of(e) {
            Some(sum) if sum.terms.keys().all(|v| !within.contains(v)) => parts.plain = parts.plain.plus(&sum, 1),
            Some(sum) if !sum.terms.keys().all(|v| within.contains(v)) => return None,
            _ => parts.divided = parts.divided + e.clone(),
        }
    }
    Some(parts)
}

/// Returns whether the variables of a sum, and further values of a step and a number, are digits of a number.
fn are_digits(sum: &Affine, further: (i64, i64), extent: &dyn Fn(&Name) -> Option<i64>) -> bool {
    let own = sum.terms.iter().map(|(v, c)| Some((c.abs(), extent(v)?)));
    let Some(mut digits) = own.chain([Some(further)]).collect::<Option<Vec<(i64, i64)>>>() else { return false };
    digits.sort_unstable();
    let next = |reach: i64, &(c, n): &(i64, i64)| (c > reach).then(|| reach.saturating_add(c.saturating_mul(n - 1)));
    digits.iter().filter(|(_, n)| *n > 1).try_fold(0i64, next).is_some()
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// What indices over `a` in 4, `b` in 5 and `c` in 3 determine.
    fn of(indices: &[Expr]) -> Vec<String> {
        let extent = |v: &Name| [("a", 4), ("b", 5), ("c", 3)].into_iter().find(|e| e.0 == v.as_str()).map(|e| e.1);
        let mut names: Vec<String> = determined(indices, &extent).iter().map(|v| v.to_string()).collect();
        names.sort();
        names
    }

    #[test]
    fn quotient_and_remainder_determine_a_number() {
        let number = || Expr::var("a") * 5 + Expr::var("b");
        let (quotient, rest) = (number() / Expr::int(3), number() % Expr::int(3));
        assert_eq!(of(&[quotient.clone(), rest.clone()]), ["a", "b"]);
        // With rows and columns of tiles.
        assert_eq!(of(&[quotient.clone() * 3 + Expr::var("c"), rest.clone()]), ["a", "b", "c"]);
        assert_eq!(of(&[number() / Expr::int(6), number() / Expr::int(3) % Expr::int(2), rest.clone()]), ["a", "b"]);
        // Alone, or if the rows of tiles overlap, they do not.
        assert!(of(std::slice::from_ref(&quotient)).is_empty() && of(std::slice::from_ref(&rest)).is_empty());
        assert!(of(&[quotient.clone() * 2 + Expr::var("c"), rest.clone()]).is_empty());
        assert_eq!(of(&[quotient * 3 + Expr::var("c"), number() % Expr::int(2)]), ["c"]);
        // Variables outside of divisions that are also in one.
        assert_eq!(
            of(&[Expr::var("a") * 2 + Expr::var("b") / Expr::int(3), Expr::var("b") % Expr::int(3)]),
            ["a", "b"]
        );
    }
}
