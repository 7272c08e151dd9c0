//! What the accelerator computes in one go.

use super::View;
use super::keep::OnChip;
use crate::graph::op::{BinaryKind, QAvgPool2d};
use crate::graph::{NodeId, ValueId};
use tilewright_hw::isa::VecOp;
use tilewright_hw::num::{Qadd, Requant, Rounding};

/// A group of nodes that becomes one walk over tiles.
#[derive(Debug, Clone, PartialEq)]
pub struct Layer {
    /// Nodes that it computes, in order.
    pub nodes: Vec<NodeId>,
    /// Name of its last node.
    pub name: String,
    /// Values that it reads from device memory, and how.
    pub inputs: Vec<(ValueId, View)>,
    /// The value that it writes.
    pub output: (ValueId, View),
    /// The work.
    pub kind: Kind,
    /// What becomes of a product's results before they are written.
    pub then: Vec<Then>,
    /// What lies in inp beside what is loaded.
    pub on_chip: OnChip,
}

/// An operator on the results of a product.
#[derive(Debug, Clone, PartialEq)]
pub enum Then {
    /// Windows of the results reduced channel by channel. Nothing stands behind it.
    Pool {
        /// The pooling.
        pool: Box<Pool>,
        /// The product's results, of which it is one.
        of: View,
    },
    /// An operator of two tensors, of which the result is the first.
    Pair {
        /// What becomes of two elements.
        op: PairOp,
        /// The layer's input that is the second.
        input: usize,
    },
    /// A function of each byte: its values from -128 on.
    Lookup(Vec<i8>),
}

impl Layer {
    /// The pooling in a product's tiles, if there is one, with the product's results.
    pub fn pooling(&self) -> Option<(&Pool, View)> {
        self.then.iter().find_map(|then| match then {
            Then::Pool { pool, of } => Some((&**pool, *of)),
            _ => None,
        })
    }

    /// What the work itself gives: the output, but where a pooling stands between.
    pub fn results(&self) -> View {
        self.pooling().map_or(self.output.1, |(_, of)| of)
    }
}

/// The work of a layer.
#[derive(Debug, Clone, PartialEq)]
pub enum Kind {
    /// A product with weights.
    Conv(Conv),
    /// Windows reduced channel by channel.
    Pool(Pool),
    /// An operator of two tensors.
    Pair(Pair),
    /// A transposed convolution.
    Transposed(Transposed),
    /// A function of each byte: its values from -128 on.
    Lookup(Vec<i8>),
    /// A product of two activations.
    MatMul(MatMul),
    /// Elements moved.
    Copy(Copy),
    /// Whole blocks in another order.
    Walk(Walk),
}

/// Convolution, or a fully connected layer as one, with its requantization.
#[derive(Debug, Clone, PartialEq)]
pub struct Conv {
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Steps.
    pub strides: [usize; 2],
    /// Top, left, bottom, right.
    pub pads: [usize; 4],
    /// Distances between taps.
    pub dilations: [usize; 2],
    /// Groups of channels.
    pub groups: usize,
    /// `[O, KH, KW, I/groups]`, less their zero point and held within 8 bits.
    pub weights: Vec<i8>,
    /// What the weights less their zero point have beyond; empty where there is nothing.
    pub rest: Vec<i16>,
    /// Zero point of the weights, which both parts have less; none where channels have their own.
    pub weight_zero_point: Option<i32>,
    /// Value of padding: the data's zero point.
    pub pad_value: i8,
    /// What becomes of the sums; the data's zero point is folded into the bias.
    pub finish: Finish,
    /// What else becomes of them.
    pub slope: Option<Slope>,
}

/// A second requantization of the same sums with other biases and factors: the results are the greater, or the lesser, of
/// both.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Slope {
    /// Added to each sum.
    pub bias: Vec<i32>,
    /// Fixed-point factors.
    pub multiplier: Vec<i32>,
    /// Shifts, with the sign of `mode`.
    pub shift: Vec<i8>,
    /// Rounding.
    pub mode: Rounding,
    /// Which is taken: `max` or `min`.
    pub op: VecOp,
}

impl Slope {
    /// The requantization, of whose sums `first` is the other one.
    pub fn finish(&self, first: &Finish) -> Finish {
        let (bias, multiplier, shift) = (self.bias.clone(), self.multiplier.clone(), self.shift.clone());
        Finish { bias, multiplier, shift, mode: self.mode, ..first.clone() }
    }
}

/// Requantization with values for each channel.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Finish {
    /// Added to each sum.
    pub bias: Vec<i32>,
    /// Fixed-point factors.
    pub multiplier: Vec<i32>,
    /// Shifts, with the sign of `mode`.
    pub shift: Vec<i8>,
    /// Added after scaling.
    pub zero_point: i32,
    /// Least result.
    pub lo: i32,
    /// Greatest result.
    pub hi: i32,
    /// Rounding.
    pub mode: Rounding,
}

/// How a window becomes one element.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Reduce {
    /// The greatest.
    Max,
    /// The sum.
    Sum,
}

/// Pooling, and whatever else works channel by channel.
#[derive(Debug, Clone, PartialEq)]
pub struct Pool {
    /// Height and width of the window.
    pub kernel: [usize; 2],
    /// Steps.
    pub strides: [usize; 2],
    /// Top, left, bottom, right.
    pub pads: [usize; 4],
    /// Distances between taps.
    pub dilations: [usize; 2],
    /// The reduction.
    pub reduce: Reduce,
    /// Value of padding.
    pub pad_value: i8,
    /// What becomes of the result.
    pub finish: PoolFinish,
}

/// The last step of a pooling.
#[derive(Debug, Clone, PartialEq)]
pub enum PoolFinish {
    /// Bounds.
    Clip {
        /// Least result.
        lo: i32,
        /// Greatest result.
        hi: i32,
    },
    /// Requantization by channel.
    Requant(Finish),
    /// Division by the number of elements, ties away from zero.
    Mean {
        /// Counts the whole kernel instead of the elements inside the image.
        count_pads: bool,
        /// Least result.
        lo: i32,
        /// Greatest result.
        hi: i32,
        /// The mean of unsigned bytes 128 greater.
        unsigned: bool,
    },
    /// Requantization by the number of elements inside the image.
    Count(QAvgPool2d),
}

/// A transposed convolution: a convolution for each phase of its strides.
#[derive(Debug, Clone, PartialEq)]
pub struct Transposed {
    /// Rows and columns from a result of a phase to the next.
    pub strides: [usize; 2],
    /// The phases; together their results are the whole.
    pub phases: Vec<Phase>,
}

/// Results a stride apart.
#[derive(Debug, Clone, PartialEq)]
pub struct Phase {
    /// What computes them.
    pub conv: Conv,
    /// Their own number of rows and columns.
    pub view: View,
    /// Row and column of the first in the whole.
    pub first: [usize; 2],
}

/// An operator of two tensors, element by element.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Pair {
    /// What becomes of two elements.
    pub op: PairOp,
    /// The second operand.
    pub b: Other,
}

/// What becomes of two elements.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum PairOp {
    /// Their quantized sum.
    Add(Qadd),
    /// Their quantized product.
    Mul {
        /// Zero points of both.
        zero_points: [i32; 2],
        /// What the product goes through.
        requant: Requant,
    },
    /// A function that the vector unit has as an operation; see [`PairOp::plain`].
    Plain(BinaryKind, VecOp),
}

/// The second operand of two.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Other {
    /// A tensor like the first, the layer's second input.
    Tensor,
    /// A value for each channel, the layer's second input.
    Channels,
    /// Constants like the first, in the order of its dense form.
    Constant(Vec<i8>),
    /// A constant for each channel.
    ConstantChannels(Vec<i8>),
}

impl PairOp {
    /// A function of two elements, where the vector unit has an operation for it. The order of its operands must not
    /// matter: a constant comes second whichever operand it was.
    pub fn plain(kind: BinaryKind) -> Option<PairOp> {
        let op = match kind {
            BinaryKind::Min => VecOp::Min,
            BinaryKind::Max => VecOp::Max,
            _ => return None,
        };
        Some(PairOp::Plain(kind, op))
    }

    /// The vector unit's operation.
    pub fn operation(&self) -> VecOp {
        match self {
            PairOp::Add(_) => VecOp::Qadd,
            PairOp::Mul { .. } => VecOp::Mul,
            PairOp::Plain(_, op) => *op,
        }
    }

    /// How it rounds.
    pub fn mode(&self) -> Rounding {
        if let PairOp::Mul { requant, .. } = self { requant.mode } else { Rounding::Double }
    }

    /// The same with its operands changed with each other.
    pub fn swapped(self) -> PairOp {
        match self {
            PairOp::Add(q) => PairOp::Add(Qadd { a: q.b, b: q.a, ..q }),
            PairOp::Mul { zero_points: [a, b], requant } => PairOp::Mul { zero_points: [b, a], requant },
            other => other,
        }
    }

    /// The bounds of its results, where it has some of its own.
    pub fn bounds(&mut self) -> Option<(&mut i32, &mut i32)> {
        match self {
            PairOp::Add(q) => Some((&mut q.lo, &mut q.hi)),
            PairOp::Mul { requant, .. } => Some((&mut requant.lo, &mut requant.hi)),
            PairOp::Plain(..) => None,
        }
    }
}

/// Product of two activations, `[rows, depth]` times `[depth, columns]` for each image, with its requantization.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct MatMul {
    /// Zero point of the first operand.
    pub a_zero_point: i32,
    /// Zero point of the second operand.
    pub b_zero_point: i32,
    /// What becomes of the sums; the product of the zero points is in the bias.
    pub finish: Finish,
    /// Whether an operand lies in device memory already, where channels past the depth have any value.
    pub on_device: bool,
}

/// Elements of some tensors put together.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Copy {
    /// What goes where; together they are the whole result.
    pub segments: Vec<Segment>,
}

/// Blocks of channels of a tensor in another order: loops over those of the result as they lie in device memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Walk {
    /// Count, and distance in blocks of the data, the outermost loop first.
    pub loops: Vec<(usize, usize)>,
}

/// A part of a copy's result.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Segment {
    /// Which of the layer's inputs it comes from.
    pub input: usize,
    /// First channel of the data.
    pub c_from: usize,
    /// First channel of the result.
    pub c_to: usize,
    /// Channels.
    pub c: usize,
    /// First row of the result, and the row of the data for it and for each one behind it.
    pub rows: (usize, Vec<usize>),
    /// The same for columns.
    pub columns: (usize, Vec<usize>),
}

impl Pool {
    /// Whether each pixel is computed from the same one.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.strides == [1, 1] && self.pads == [0; 4]
    }
}

impl Conv {
    /// Input channels of a group.
    pub fn depth(&self) -> usize {
        let taps = self.kernel[0] * self.kernel[1];
        self.weights.len() / (self.finish.bias.len() * taps).max(1)
    }

    /// Whether each pixel is computed from the same one.
    pub fn is_pointwise(&self) -> bool {
        self.kernel == [1, 1] && self.strides == [1, 1] && self.pads == [0; 4]
    }
}

/// The window's reach over one dimension: distance from its first to its last tap, plus one.
pub fn reach(kernel: usize, dilation: usize) -> usize {
    (kernel - 1) * dilation + 1
}

/// Rows (or columns) of input that `count` outputs from `first` on read: first one in the image, how many are there, and
/// how many padded ones stand before and after.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Span {
    /// First row inside the image.
    pub start: usize,
    /// Rows inside the image.
    pub inside: usize,
    /// Padded rows before.
    pub before: usize,
    /// Padded rows after.
    pub after: usize,
}

impl Span {
    /// The rows that outputs `first..first + count` read of an image of `size` rows, for a window of this reach. They may all
    /// lie on one side of it.
    pub fn new(first: usize, count: usize, stride: usize, pad: usize, reach: usize, size: usize) -> Span {
        let from = (first * stride) as i64 - pad as i64;
        let to = ((first + count - 1) * stride + reach) as i64 - pad as i64;
        let (start, end) = (from.clamp(0, size as i64), to.clamp(0, size as i64));
        let (all, inside) = ((to - from) as usize, (end - start) as usize);
        let before = (start - from).clamp(0, to - from) as usize;
        Span { start: start as usize, inside, before, after: all - inside - before }
    }

    /// Rows with padding.
    pub fn padded(&self) -> usize {
        self.before + self.inside + self.after
    }
}
