//! What requantizations make of a product's channels.

use super::End;
use super::behind::Behind;
use super::pieces::{Form, Line};
use crate::graph::op::BinaryKind;

/// For each channel a line, or the greater or lesser of two, between two bounds.
pub(super) struct Forms {
    pub first: Vec<Line>,
    pub second: Option<(BinaryKind, Vec<Line>)>,
    pub lo: Vec<i32>,
    pub hi: Vec<i32>,
}

impl Forms {
    /// The forms of functions whose results an output quantizes.
    ///
    /// # Errors
    /// Why there are none.
    pub fn of(behind: &Behind, end: &End) -> Result<Forms, String> {
        let (least, most) = end.range();
        let forms = behind.functions().map(|f| f.held(least, most).form()).collect::<Option<Vec<_>>>();
        let mut forms = forms
            .ok_or("needs more than the greater or lesser of two lines of a channel; quantize the results before it")?;
        let kinds: Vec<BinaryKind> = forms.iter().filter_map(|f| f.second.map(|(kind, _)| kind)).collect();
        let kind = kinds.first().copied();
        if kinds.iter().any(|k| Some(*k) != kind) {
            return Err("needs the greater of two lines in some channels and the lesser in others; quantize the results before it".into());
        }
        let second = kind.map(|kind| (kind, forms.iter_mut().map(|f| other(f, kind)).collect()));
        let bound = |x: f64| end.integer(x as f32);
        let (lo, hi) = forms.iter().map(|f| (bound(f.lo), bound(f.hi))).unzip();
        Ok(Forms { first: forms.into_iter().map(|f| f.first).collect(), second, lo, hi })
    }

    /// The lines of each channel: one, or two.
    pub fn lines(&self) -> impl Iterator<Item = Vec<Line>> {
        let second = |i: usize| self.second.iter().map(move |(_, lines)| lines[i]);
        self.first.iter().enumerate().map(move |(i, line)| std::iter::once(*line).chain(second(i)).collect())
    }
}

/// The second line of a form in a layer of two lines. Where it is one line, that is the greater and the lesser of it and
/// itself; and a bound at 0 is a line of factor 0.
fn other(form: &mut Form, kind: BinaryKind) -> Line {
    let (bound, open) = match kind {
        BinaryKind::Max => (&mut form.lo, f64::NEG_INFINITY),
        _ => (&mut form.hi, f64::INFINITY),
    };
    match form.second {
        Some((_, line)) => line,
        None if *bound == 0.0 => {
            *bound = open;
            Line { factor: 0.0, term: 0.0 }
        }
        None => form.first,
    }
}
