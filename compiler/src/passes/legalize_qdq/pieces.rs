//! Piecewise linear functions of one number, and their form as two lines between two bounds.

use crate::graph::op::BinaryKind;

/// `factor * x + term`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub(super) struct StraightLine {
    pub factor: f64,
    pub term: f64,
}

impl StraightLine {
    fn at(&self, x: f64) -> f64 {
        self.factor * x + self.term
    }
}

/// A continuous function that is linear between neighboring knots.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Pieces {
    /// The lines, from left to right; neighbors differ.
    lines: Vec<StraightLine>,
    /// Where each line ends and the next begins, one fewer than lines.
    knots: Vec<f64>,
}

/// The maximum or minimum of up to two lines, clamped to two bounds.
#[derive(Debug, Clone, PartialEq)]
pub(super) struct Form {
    pub first: StraightLine,
    /// The other line, and `Max` or `Min` to combine both. Neither line is constant.
    pub second: Option<(BinaryKind, StraightLine)>,
    pub lo: f64,
    pub hi: f64,
}

impl Pieces {
    pub fn identity() -> Pieces {
        Pieces::line(StraightLine { factor: 1.0, term: 0.0 })
    }

    pub fn constant(term: f64) -> Pieces {
        Pieces::line(StraightLine { factor: 0.0, term })
    }

    fn line(line: StraightLine) -> Pieces {
        Pieces { lines: vec![line], knots: Vec::new() }
    }

    /// The function times a factor.
    pub fn times(&self, by: f64) -> Pieces {
        let times = |l: &StraightLine| StraightLine { factor: l.factor * by, term: l.term * by };
        Pieces { lines: self.lines.iter().map(times).collect(), knots: self.knots.clone() }.merged()
    }

    pub fn plus(&self, other: &Pieces) -> Pieces {
        let sum =
            |a: StraightLine, b: StraightLine| StraightLine { factor: a.factor + b.factor, term: a.term + b.term };
        let (mut lines, mut knots) = (Vec::new(), Vec::new());
        for ([_, to], [a, b]) in self.beside(other) {
            lines.push(sum(a, b));
            knots.push(to);
        }
        knots.pop();
        Pieces { lines, knots }.merged()
    }

    /// The maximum of two functions.
    pub fn max(&self, other: &Pieces) -> Pieces {
        let (mut lines, mut knots) = (Vec::new(), Vec::new());
        for ([from, to], [a, b]) in self.beside(other) {
            let cross = (b.term - a.term) / (a.factor - b.factor);
            let within = from < cross && cross < to && !same(from, cross) && !same(cross, to);
            let parts = if within { vec![[from, cross], [cross, to]] } else { vec![[from, to]] };
            for [from, to] in parts {
                let x = inside(from, to);
                lines.push(if a.at(x) >= b.at(x) { a } else { b });
                knots.push(to);
            }
        }
        knots.pop();
        Pieces { lines, knots }.merged()
    }

    /// The minimum of two functions.
    pub fn min(&self, other: &Pieces) -> Pieces {
        self.times(-1.0).max(&other.times(-1.0)).times(-1.0)
    }

    /// The function clamped to `lo`, then to `hi`.
    pub fn held(&self, lo: f64, hi: f64) -> Pieces {
        let above = if lo == f64::NEG_INFINITY { self.clone() } else { self.max(&Pieces::constant(lo)) };
        if hi == f64::INFINITY { above } else { above.min(&Pieces::constant(hi)) }
    }

    /// The function where it is 0 or more, and `slope` times it where it is negative.
    pub fn leaky(&self, slope: f64) -> Pieces {
        let below = self.times(slope);
        if slope <= 1.0 { self.max(&below) } else { self.min(&below) }
    }

    /// Its value, if it is constant.
    pub fn as_constant(&self) -> Option<f64> {
        match self.lines[..] {
            [StraightLine { factor: 0.0, term }] => Some(term),
            _ => None,
        }
    }

    /// True if no factor or term is infinite or NaN.
    pub fn is_finite(&self) -> bool {
        self.lines.iter().all(|l| l.factor.is_finite() && l.term.is_finite())
    }

    /// True if it never falls.
    pub fn rises(&self) -> bool {
        self.lines.iter().all(|l| l.factor >= 0.0)
    }

    /// The function as up to two lines between bounds, if it has that form.
    pub fn form(&self) -> Option<Form> {
        let (mut lo, mut hi) = (f64::NEG_INFINITY, f64::INFINITY);
        let mut lines = self.lines.as_slice();
        if let [end, next, ..] = lines
            && end.factor == 0.0
        {
            *(if next.factor > 0.0 { &mut lo } else { &mut hi }) = end.term;
            lines = &lines[1..];
        }
        if let [.., next, end] = lines
            && end.factor == 0.0
        {
            *(if next.factor < 0.0 { &mut lo } else { &mut hi }) = end.term;
            lines = &lines[..lines.len() - 1];
        }
        let form = match *lines {
            [first] => Form { first, second: None, lo, hi },
            [b, a] if a.factor > b.factor => Form { first: a, second: Some((BinaryKind::Max, b)), lo, hi },
            [b, a] => Form { first: a, second: Some((BinaryKind::Min, b)), lo, hi },
            _ => return None,
        };
        // A bound found at one end also clamps the other end, so check that the form is still the function.
        (form.pieces().lines == self.lines).then_some(form)
    }

    /// The intervals between the knots of both functions, each with both lines.
    fn beside(&self, other: &Pieces) -> Vec<([f64; 2], [StraightLine; 2])> {
        let (mut i, mut k, mut from) = (0, 0, f64::NEG_INFINITY);
        let mut found = Vec::new();
        loop {
            let end = |p: &Pieces, at: usize| p.knots.get(at).copied().unwrap_or(f64::INFINITY);
            let (a, b) = (end(self, i), end(other, k));
            let to = a.min(b);
            found.push(([from, to], [self.lines[i], other.lines[k]]));
            if to == f64::INFINITY {
                return found;
            }
            i += usize::from(same(a, to));
            k += usize::from(same(b, to));
            from = to;
        }
    }

    /// Removes knots between equal lines.
    fn merged(self) -> Pieces {
        let mut merged = Pieces::line(self.lines[0]);
        for (line, knot) in self.lines[1..].iter().zip(self.knots) {
            if merged.lines.last() != Some(line) {
                merged.lines.push(*line);
                merged.knots.push(knot);
            }
        }
        merged
    }
}

impl Form {
    fn pieces(&self) -> Pieces {
        let first = Pieces::line(self.first);
        let lines = match &self.second {
            Some((BinaryKind::Max, second)) => first.max(&Pieces::line(*second)),
            Some((_, second)) => first.min(&Pieces::line(*second)),
            None => first,
        };
        lines.held(self.lo, self.hi)
    }
}

/// True if two knots differ only by the rounding of the numbers they were computed from.
fn same(a: f64, b: f64) -> bool {
    a == b || (a - b).abs() <= 1e-9 * a.abs().min(b.abs())
}

/// A number between two others, which can be infinite.
fn inside(from: f64, to: f64) -> f64 {
    match (from.is_finite(), to.is_finite()) {
        (true, true) => from + (to - from) / 2.0,
        (true, false) => from + 1.0 + from.abs(),
        (false, true) => to - 1.0 - to.abs(),
        (false, false) => 0.0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(p: &Pieces, x: f64) -> f64 {
        p.lines[p.knots.iter().filter(|k| **k < x).count()].at(x)
    }

    #[test]
    fn functions_of_functions_have_the_values_of_their_operators() {
        let x = Pieces::identity();
        let shifted = x.times(-1.5).plus(&Pieces::constant(0.75));
        let relu = shifted.held(0.0, f64::INFINITY);
        let both = relu.plus(&shifted.min(&Pieces::constant(0.0)).times(0.3));
        let bent = both.leaky(-2.0).held(-1.0, 2.5);
        for i in -200..200 {
            let v = f64::from(i) / 32.0;
            let s = -1.5 * v + 0.75;
            assert_eq!(at(&relu, v), s.max(0.0));
            let b = s.max(0.0) + 0.3 * s.min(0.0);
            assert!((at(&both, v) - b).abs() < 1e-12);
            let l = if b < 0.0 { -2.0 * b } else { b };
            assert!((at(&bent, v) - l.clamp(-1.0, 2.5)).abs() < 1e-12, "{v}");
        }
    }

    #[test]
    fn forms_are_lines_between_bounds_or_nothing() {
        let x = Pieces::identity();
        let held = x.times(-2.0).held(-1.0, 3.0).form().unwrap();
        assert_eq!((held.first.factor, held.lo, held.hi), (-2.0, -1.0, 3.0));
        let magnitude = x.leaky(-1.0).held(-9.0, 4.0).form().unwrap();
        assert_eq!(magnitude.second.unwrap().0, BinaryKind::Max);
        assert_eq!((magnitude.lo, magnitude.hi), (f64::NEG_INFINITY, 4.0));
        assert_eq!(x.leaky(3.0).form().unwrap().second.unwrap().0, BinaryKind::Min);
        assert_eq!(Pieces::constant(7.0).form().unwrap().first, StraightLine { factor: 0.0, term: 7.0 });
        // Rises from a bound and then falls below it.
        assert_eq!(x.held(0.0, f64::INFINITY).min(&x.times(-1.0).plus(&Pieces::constant(5.0))).form(), None);
        // Two bends.
        assert_eq!(x.leaky(0.5).plus(&Pieces::constant(3.0)).leaky(0.25).form(), None);
        assert!(x.leaky(0.1).rises() && !x.leaky(-0.1).rises());
    }
}
