//! The functions of a product's channels, in the form that requantizations compute.

use super::QuantizeEnd;
use super::behind::Behind;
use super::pieces::{Form, StraightLine};
use crate::graph::op::BinaryKind;

/// For each channel a line, or the maximum or minimum of two lines, between two bounds.
pub(super) struct Forms {
    pub first: Vec<StraightLine>,
    pub second: Option<(BinaryKind, Vec<StraightLine>)>,
    pub lo: Vec<i32>,
    pub hi: Vec<i32>,
}

impl Forms {
    /// Brings the functions of all channels into this form, for a quantized output.
    ///
    /// # Errors
    /// The reason if they do not have this form.
    pub fn of(behind: &Behind, end: &QuantizeEnd) -> Result<Forms, String> {
        let (least, most) = end.range();
        let forms = behind.functions().map(|f| f.held(least, most).form()).collect::<Option<Vec<_>>>();
        let mut forms = forms.ok_or(
            "makes a function that is not the maximum or minimum of two lines; quantize the results before it",
        )?;
        let kinds: Vec<BinaryKind> = forms.iter().filter_map(|f| f.second.map(|(kind, _)| kind)).collect();
        let kind = kinds.first().copied();
        if kinds.iter().any(|k| Some(*k) != kind) {
            let why = "needs the maximum of two lines in some channels and the minimum in others";
            return Err(format!("{why}; quantize the results before it"));
        }
        let second = kind.map(|kind| (kind, forms.iter_mut().map(|f| other(f, kind)).collect()));
        let bound = |x: f64| end.integer(x as f32);
        let (lo, hi) = forms.iter().map(|f| (bound(f.lo), bound(f.hi))).unzip();
        Ok(Forms { first: forms.into_iter().map(|f| f.first).collect(), second, lo, hi })
    }

    /// The lines of each channel, one or two.
    pub fn lines(&self) -> impl Iterator<Item = Vec<StraightLine>> {
        let second = |i: usize| self.second.iter().map(move |(_, lines)| lines[i]);
        self.first.iter().enumerate().map(move |(i, line)| std::iter::once(*line).chain(second(i)).collect())
    }
}

/// The second line of a channel, in a layer with two lines per channel. A channel with only one line uses it twice; if
/// it has a bound at 0, a line with factor 0 replaces the bound.
fn other(form: &mut Form, kind: BinaryKind) -> StraightLine {
    let (bound, open) = match kind {
        BinaryKind::Max => (&mut form.lo, f64::NEG_INFINITY),
        _ => (&mut form.hi, f64::INFINITY),
    };
    match form.second {
        Some((_, line)) => line,
        None if *bound == 0.0 => {
            *bound = open;
            StraightLine { factor: 0.0, term: 0.0 }
        }
        None => form.first,
    }
}
