//! Selects in indices, and selects between copied elements: a nest becomes instructions for each part in which their
//! conditions do not change.

use super::lower::{Lower, Part};
use crate::te::Expr;
use crate::tir::{Action, Affine, Block, For};

impl<'l> Lower<'l> {
    /// Returns the parts of a nest in which no such condition changes; `None` if none changes, or if one depends on
    /// several loops at once.
    pub fn parts(&self, loops: &[&'l For], block: &'l Block) -> Option<Vec<Part>> {
        let (mut choices, mut pads): (Vec<&'l Expr>, Vec<(&'l Expr, i64)>) = Default::default();
        match &block.action {
            Action::Call { args, .. } => {
                args.iter().flat_map(|view| &view.indices).for_each(|index| conditions_in(index, &mut choices));
            }
            Action::Store { indices, value, .. } => {
                indices.iter().for_each(|index| conditions_in(index, &mut choices));
                choices_in(value, &mut choices, &mut pads);
            }
        }
        let mut cuts: Vec<Vec<i64>> = vec![Vec::new(); loops.len()];
        for condition in choices {
            for sum in self.sums(std::slice::from_ref(condition))? {
                if let Some((number, first)) = self.change(&sum, loops)? {
                    cuts[number].push(first);
                }
            }
        }
        // If loads cannot pad, whole entries of padding are parts. The rest of an entry can only be filled with 0.
        for (condition, pad) in pads.into_iter().filter(|_| !self.config.dma_pad) {
            let begins_anywhere = self.config.dma_pack && pad != 0;
            for sum in self.sums(std::slice::from_ref(condition)).unwrap_or_default() {
                if let Some(Some((number, first))) = self.change(&sum, loops)
                    && (begins_anywhere || self.steps_entries(block, loops[number]))
                {
                    cuts[number].push(first);
                }
            }
        }
        if cuts.iter().all(Vec::is_empty) {
            return None;
        }
        let mut parts: Vec<Part> = vec![Vec::new()];
        for (l, mut cuts) in loops.iter().zip(cuts).filter(|(_, cuts)| !cuts.is_empty()) {
            let (first, last) = self.running(l);
            cuts.extend([first, last + 1]);
            cuts.sort_unstable();
            cuts.dedup();
            let ranges = cuts.windows(2).map(|w| (l.var.clone(), (w[0], w[1] - 1)));
            let ranges: Part = ranges.collect();
            let with = |part: Part| ranges.iter().map(move |r| [part.as_slice(), std::slice::from_ref(r)].concat());
            parts = parts.into_iter().flat_map(with).collect();
        }
        Some(parts)
    }

    /// Returns the loop in which a sum changes its sign, and the first iteration with the other sign. `None` inside if
    /// it does not change; `None` if that depends on several loops.
    fn change(&self, sum: &Affine, loops: &[&'l For]) -> Option<Option<(usize, i64)>> {
        if self.sign(sum).is_some() {
            return Some(None);
        }
        let runs = |l: &For| self.running(l).0 != self.running(l).1;
        let mut with = loops.iter().enumerate().filter(|(_, l)| sum.coefficient(&l.var) != 0 && runs(l));
        let (Some((number, l)), None) = (with.next(), with.next()) else { return None };
        let others = loops.iter().filter(|other| other.var != l.var);
        let rest = others.map(|other| sum.coefficient(&other.var) * self.running(other).0).sum::<i64>();
        let (factor, constant) = (sum.coefficient(&l.var), sum.constant + rest);
        let first = match factor > 0 {
            true => (-constant + factor - 1).div_euclid(factor),
            false => constant.div_euclid(-factor) + 1,
        };
        Some(Some((number, first)))
    }

    /// Returns whether a sum is at least 0 in the part that is being added; `None` if it changes its sign.
    fn sign(&self, sum: &Affine) -> Option<bool> {
        let (mut least, mut most) = (sum.constant, sum.constant);
        for (v, factor) in sum.terms.iter() {
            let (first, last) = *self.bounds.get(v)?;
            least += (factor * first).min(factor * last);
            most += (factor * first).max(factor * last);
        }
        match (least >= 0, most < 0) {
            (true, _) => Some(true),
            (_, true) => Some(false),
            _ => None,
        }
    }

    /// Returns whether each iteration of a loop writes other entries of a scratchpad.
    fn steps_entries(&self, block: &'l Block, l: &For) -> bool {
        let Action::Store { buffer, indices, .. } = &block.action else { return false };
        let (Some(place), Some(at)) = (self.places.get(buffer), self.position(buffer, indices)) else { return false };
        at.coefficient(&l.var) % place.elements == 0
    }

    /// Returns what is copied in the part that is being added; `None` if that is not the same everywhere.
    pub fn chosen(&self, value: &'l Expr) -> Option<&'l Expr> {
        let Expr::Select(condition, yes, no) = value else { return Some(value) };
        if padding(value).is_some() {
            return Some(value);
        }
        self.chosen(if self.holds(condition)? { yes } else { no })
    }

    /// Returns whether a condition holds in the part that is being added; `None` if that is not the same everywhere.
    pub fn holds(&self, condition: &'l Expr) -> Option<bool> {
        let signs: Vec<Option<bool>> =
            self.sums(std::slice::from_ref(condition))?.iter().map(|sum| self.sign(sum)).collect();
        if signs.contains(&Some(false)) {
            return Some(false);
        }
        signs.iter().all(|sign| *sign == Some(true)).then_some(true)
    }
}

/// Returns the padding of a value that is an element where a condition holds, and padding elsewhere.
fn padding(value: &Expr) -> Option<i64> {
    match value {
        Expr::Select(_, _, other) => match other.as_ref() {
            Expr::Int(pad, _) => Some(*pad),
            _ => None,
        },
        _ => None,
    }
}

/// Returns the condition, the value and the padding of a value in which padding surrounds elements with other padding.
pub fn nested_padding(value: &Expr) -> Option<(&Expr, &Expr, i64)> {
    let (Expr::Select(condition, inner, _), Some(pad)) = (value, padding(value)) else { return None };
    padding(inner).map(|_| (condition.as_ref(), inner.as_ref(), pad))
}

/// Adds the conditions that say which element is copied and those in its indices to `choices`, and those that say where
/// there is padding to `pads`.
fn choices_in<'l>(value: &'l Expr, choices: &mut Vec<&'l Expr>, pads: &mut Vec<(&'l Expr, i64)>) {
    match value {
        Expr::Select(condition, yes, no) => {
            match padding(value) {
                Some(pad) if nested_padding(value).is_none() => pads.push((condition, pad)),
                _ => choices.push(condition),
            }
            choices_in(yes, choices, pads);
            choices_in(no, choices, pads);
        }
        Expr::Load { indices, .. } => indices.iter().for_each(|index| conditions_in(index, choices)),
        _ => {}
    }
}

/// Adds the conditions of an expression's selects.
fn conditions_in<'l>(e: &'l Expr, found: &mut Vec<&'l Expr>) {
    match e {
        Expr::Select(condition, yes, no) => {
            found.push(condition.as_ref());
            conditions_in(yes, found);
            conditions_in(no, found);
        }
        Expr::Binary(_, a, b) => {
            conditions_in(a, found);
            conditions_in(b, found);
        }
        Expr::Cast(_, a) | Expr::Bitcast(_, a) | Expr::Pick(_, a) => conditions_in(a, found),
        _ => {}
    }
}
