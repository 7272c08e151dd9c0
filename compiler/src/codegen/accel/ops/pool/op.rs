//! Describes poolings and other operators that work channel by channel.

use crate::codegen::accel::finish::Finish;
use crate::codegen::accel::padded_range::{PaddedRange, reach, span};
use crate::codegen::accel::view::View;
use crate::graph::op::QAvgPool2d;

/// How a window is reduced to one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// The maximum.
    Max,
    /// The sum.
    Sum,
}

/// A pooling, or another operator that works channel by channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Strides in rows and columns.
    pub strides: [usize; 2],
    /// Padding: top, left, bottom, right.
    pub pads: [usize; 4],
    /// Distances between taps in rows and columns.
    pub dilations: [usize; 2],
    /// How a window is reduced.
    pub reduce: Reduce,
    /// Value of padding.
    pub pad_value: i8,
    /// The last step.
    pub finish: PoolFinish,
}

/// The last step of a pooling.
#[derive(Debug, Clone, PartialEq)]
pub enum PoolFinish {
    /// Clamps the result.
    Clip {
        /// Lower bound of the results.
        lo: i32,
        /// Upper bound of the results.
        hi: i32,
    },
    /// Requantizes the sum with parameters per channel.
    Requant(Finish),
    /// Divides the sum by the number of elements, ties away from zero.
    Mean {
        /// Counts the whole kernel instead of only the elements inside the image.
        count_pads: bool,
        /// Lower bound of the results.
        lo: i32,
        /// Upper bound of the results.
        hi: i32,
        /// Rounds like the mean of unsigned bytes, which are greater by 128.
        unsigned: bool,
    },
    /// Requantizes the sum with parameters that depend on the number of elements inside the image.
    Count(QAvgPool2d),
}

impl Pool {
    /// Whether each output pixel depends only on the input pixel at the same position.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.strides == [1, 1] && self.pads == [0; 4]
    }

    /// Rows (`k` = 0) or columns that some neighboring outputs read, padding included.
    pub fn span(&self, k: usize, outputs: usize) -> usize {
        span(outputs, self.strides[k], reach(self.kernel[k], self.dilations[k]))
    }

    /// Rows of the input that some output rows read.
    pub fn rows(&self, first: usize, count: usize, input: View) -> PaddedRange {
        PaddedRange::new(first, count, self.strides[0], self.pads[0], reach(self.kernel[0], self.dilations[0]), input.h)
    }

    /// Columns of the input that some output columns read.
    pub fn columns(&self, first: usize, count: usize, input: View) -> PaddedRange {
        PaddedRange::new(first, count, self.strides[1], self.pads[1], reach(self.kernel[1], self.dilations[1]), input.w)
    }

    /// Number of elements that each output row and column averages: the taps inside the image, or the kernel's size if
    /// padding counts.
    pub fn counts(&self, input: View, output: View, count_pads: bool) -> [Vec<usize>; 2] {
        let along = |i: usize, out: usize, size: usize| -> Vec<usize> {
            let inside = |o: usize| {
                let place = |k: usize| (o * self.strides[i] + k * self.dilations[i]).checked_sub(self.pads[i]);
                (0..self.kernel[i]).filter(|&k| place(k).is_some_and(|p| p < size)).count()
            };
            (0..out).map(|o| if count_pads { self.kernel[i] } else { inside(o) }).collect()
        };
        [along(0, output.h, input.h), along(1, output.w, input.w)]
    }

    /// The distinct numbers of elements by which a mean divides, in ascending order; empty for other poolings.
    pub fn distinct_counts(&self, input: View, output: View) -> Vec<usize> {
        let count_pads = match self.finish {
            PoolFinish::Mean { count_pads, .. } => count_pads,
            PoolFinish::Count(_) => false,
            _ => return Vec::new(),
        };
        let [rows, columns] = self.counts(input, output, count_pads);
        let mut all: Vec<usize> = rows.iter().flat_map(|r| columns.iter().map(move |c| r * c)).collect();
        all.sort_unstable();
        all.dedup();
        all
    }
}
