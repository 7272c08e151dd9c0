//! `constant`: a tensor known at compile time.

use super::check;
use crate::graph::{OpError, Tensor, TensorType};
use std::sync::Arc;

/// A tensor known at compile time. No operands.
#[derive(Debug, Clone, PartialEq)]
pub struct Constant {
    /// Its value, shared between copies of the graph.
    pub value: Arc<Tensor>,
}

impl Constant {
    /// The operator's name in the text form.
    pub const NAME: &'static str = "constant";

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        check::arity(inputs, 0, 0)?;
        Ok(self.value.ty())
    }
}
