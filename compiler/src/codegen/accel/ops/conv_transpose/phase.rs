//! The phases of a transposed convolution and their taps.

use crate::codegen::accel::ops::conv::Conv;
use crate::codegen::accel::ops::conv::need::Need;
use crate::codegen::accel::ops::conv::tiles::{Search, Wanted};
use crate::codegen::accel::reader::Read;
use crate::codegen::accel::view::View;

/// A transposed convolution: one convolution per phase of its strides.
#[derive(Debug, Clone, PartialEq)]
pub struct ConvTranspose {
    /// Rows and columns from one result of a phase to the next, which are also the numbers of phases.
    pub strides: [usize; 2],
    /// The phases. Together they compute all results.
    pub phases: Vec<Phase>,
}

/// The results that are a stride apart, starting at one position.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// The convolution that computes them.
    pub conv: Conv,
    /// View of these results alone.
    pub view: View,
    /// Row and column of the first result in the layer's output.
    pub first: [usize; 2],
    /// The taps in a column, and in a row.
    pub taps: [Taps; 2],
}

/// What tiles are searched for.
pub fn searched(wanted: Wanted) -> Search<'static> {
    Search { apart: true, pixel_load: None, need: Need::default(), wanted }
}

/// Maximum number of taps of all phases for a kernel of `kernel` taps. It limits the size of the weights.
pub fn most_taps(kernel: usize) -> usize {
    kernel.saturating_add(1).saturating_mul(16)
}

/// Why a transposed convolution with too many taps is not taken.
pub const TOO_MANY: &str =
    "its strides or pads would need more than 16 times the taps of its kernel, most of them of weight 0";

/// The convolution of one phase along one dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Taps {
    /// For each tap of the convolution the tap of the kernel; `None` for a tap of weight 0.
    pub taps: Vec<Option<usize>>,
    /// Rows of the data from one tap to the next.
    pub dilation: usize,
    /// Rows of padding before the data.
    pub before: usize,
}

impl Taps {
    /// The taps of the results `phase`, `phase + stride`, and so on.
    ///
    /// Element `i` of the data and tap `k` of the kernel contribute to result `i * stride + k * dilation - pad`.
    ///
    /// # Errors
    /// [`TOO_MANY`] if pads are so large that most taps would have weight 0.
    pub fn new(phase: usize, [stride, dilation, pad, kernel]: [usize; 4]) -> Read<Taps> {
        let at = (phase + pad) as i64;
        // Distance from a result's own row in the data to the row that a tap multiplies.
        let offset = |k: usize| (at - (k * dilation) as i64) / stride as i64;
        let mut taps: Vec<Option<usize>> =
            (0..kernel).rev().filter(|k| (k * dilation) % stride == at as usize % stride).map(Some).collect();
        let (Some(&Some(last)), Some(&Some(first))) = (taps.first(), taps.last()) else {
            return Ok(Taps { taps: vec![None], dilation: 1, before: 0 });
        };
        let step = match taps[..] {
            [Some(b), Some(a), ..] => offset(a) - offset(b),
            _ => 1,
        };
        // The window must contain the row at the result's own position.
        let missing = |rows: i64| (rows.max(0) as usize).div_ceil(step as usize);
        let (in_front, behind) = (missing(offset(last)), missing(-offset(first)));
        if in_front.saturating_add(behind) > most_taps(kernel) {
            return Err(TOO_MANY.into());
        }
        taps.splice(..0, vec![None; in_front]);
        taps.resize(taps.len() + behind, None);
        Ok(Taps { taps, dilation: step as usize, before: (in_front as i64 * step - offset(last)) as usize })
    }

    /// Returns the range of taps that are not padding of the window; one tap if there are none.
    pub fn used(&self) -> std::ops::Range<usize> {
        let is_tap = Option::is_some;
        match (self.taps.iter().position(is_tap), self.taps.iter().rposition(is_tap)) {
            (Some(first), Some(last)) => first..last + 1,
            _ => 0..1,
        }
    }

    /// Returns the rows of padding after `rows` rows of data that `results` results need.
    pub fn behind(&self, results: usize, rows: usize) -> usize {
        (results + (self.taps.len() - 1) * self.dilation).saturating_sub(self.before + rows)
    }
}

/// Selects taps of weights `[O, KH * KW, I]`; a tap `None` gets weights of 0. Without weights, the result is empty.
pub fn choose<T: Copy + Default>(weights: &[T], [outputs, all, depth]: [usize; 3], taps: &[Option<usize>]) -> Vec<T> {
    let mut chosen = Vec::with_capacity(weights.len() / all.max(1) * taps.len());
    for o in 0..if weights.is_empty() { 0 } else { outputs } {
        for tap in taps {
            match tap {
                Some(tap) => chosen.extend_from_slice(&weights[(o * all + tap) * depth..][..depth]),
                None => chosen.resize(chosen.len() + depth, T::default()),
            }
        }
    }
    chosen
}
