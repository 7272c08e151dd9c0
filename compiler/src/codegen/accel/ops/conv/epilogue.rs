//! Operators on a product's results that are fused into its tiles.

use crate::codegen::accel::operator::AccelOperator;
use crate::codegen::accel::ops::pairwise::PairOp;
use crate::codegen::accel::ops::pool::Pool;
use crate::codegen::accel::view::View;
use tilewright_hw::isa::VecOp;

/// An operator on the results of a product.
#[derive(Debug, Clone, PartialEq)]
pub enum Epilogue {
    /// A pooling of the results. It is always the last operator.
    Pool {
        /// The pooling.
        pool: Box<Pool>,
        /// View of the product's results.
        of: View,
    },
    /// An element-wise operator of two tensors. The product's result is the first operand.
    Pair {
        /// The function of two elements.
        op: PairOp,
        /// Index of the second operand in the layer's inputs.
        input: usize,
    },
    /// A function of each byte, as a table whose first value is for -128.
    Lookup(Vec<i8>),
}

impl Epilogue {
    /// The vector unit's operation; `None` for a pooling, which uses several.
    pub fn operation(&self) -> Option<VecOp> {
        match self {
            Epilogue::Pair { op, .. } => Some(op.operation()),
            Epilogue::Lookup(_) => Some(VecOp::Lut),
            Epilogue::Pool { .. } => None,
        }
    }

    /// See [`AccelOperator::timing_key`](crate::codegen::accel::operator::AccelOperator::timing_key).
    pub fn timing_key(&self) -> String {
        match self {
            Epilogue::Pair { op, input } => format!("{:?} {input} ", op.operation()),
            Epilogue::Lookup(_) => "lut ".into(),
            Epilogue::Pool { pool, of } => format!("{} {} ", pool.timing_key(), of.without_values()),
        }
    }
}
