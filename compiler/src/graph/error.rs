//! Errors of graphs and operators.

use super::{MAX_RANK, TensorType};

/// An error in one application of an operator.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum OpError {
    /// Wrong number of operands.
    #[error("needs {expected} operands, found {found}")]
    Arity {
        /// The counts allowed, in words.
        expected: String,
        /// Operands given.
        found: usize,
    },
    /// An operand of the wrong type or shape.
    #[error("operand `{operand}` must be {expected}, found {found}")]
    Operand {
        /// The operand's name.
        operand: String,
        /// What the operator accepts, in words.
        expected: String,
        /// The type or value given.
        found: String,
    },
    /// An attribute that is out of range or does not fit the operands.
    #[error("attribute `{name}` {reason}")]
    Attribute {
        /// The attribute's name.
        name: &'static str,
        /// What is wrong with it.
        reason: String,
    },
    /// More dimensions than a tensor can have.
    #[error("{found} dimensions are not supported; the maximum is {MAX_RANK}")]
    Rank {
        /// Number of dimensions.
        found: usize,
    },
    /// A function of the program that failed, or that is missing.
    #[error("the function {function}: {reason}")]
    Function {
        /// Its name.
        function: String,
        /// What is wrong.
        reason: String,
    },
    /// An error within a region.
    #[error("in region `{region}`: {source}")]
    Region {
        /// The region's name.
        region: String,
        /// What is wrong there.
        source: Box<GraphError>,
    },
    /// A symbolic size where a known one is needed.
    #[error(
        "operand `{operand}` has type {found}, but its size must be known here; set the sizes \
         that the model leaves open with --bind or --shape"
    )]
    Symbolic {
        /// The operand's name.
        operand: String,
        /// Its type.
        found: TensorType,
    },
}

impl OpError {
    /// An operand of the wrong type.
    pub fn operand(operand: &str, expected: impl ToString, found: impl ToString) -> OpError {
        OpError::Operand { operand: operand.into(), expected: expected.to_string(), found: found.to_string() }
    }

    /// An attribute that is wrong.
    pub fn attribute(name: &'static str, reason: impl ToString) -> OpError {
        OpError::Attribute { name, reason: reason.to_string() }
    }
}

/// An error in a graph, its text, or the inputs given to it.
#[derive(Debug, Clone, PartialEq, thiserror::Error)]
pub enum GraphError {
    /// A node that breaks its operator's rules.
    #[error("node `{node}` ({op}): {source}")]
    Op {
        /// The node's name.
        node: String,
        /// The operator's name.
        op: &'static str,
        /// What is wrong.
        source: OpError,
    },
    /// A broken rule of the graph as a whole.
    #[error("{0}")]
    Invalid(String),
    /// An error in the text form.
    #[error("line {line}, column {column}: {message}")]
    Text {
        /// Line, from 1.
        line: usize,
        /// Column in characters, from 1.
        column: usize,
        /// What is wrong.
        message: String,
    },
    /// An input that does not match its declared type.
    #[error("input `{name}` must be {expected}, found {found}")]
    Input {
        /// The input's name.
        name: String,
        /// The type declared.
        expected: String,
        /// What was given.
        found: String,
    },
    /// Several of the above.
    #[error("{} errors:\n  {}", .0.len(), tilewright_hw::list::first(.0, "\n  "))]
    Many(Vec<GraphError>),
}

impl GraphError {
    /// Joins a list of errors into one; `None` if the list is empty.
    pub fn join(mut errors: Vec<GraphError>) -> Option<GraphError> {
        match errors.len() {
            0 => None,
            1 => errors.pop(),
            _ => Some(GraphError::Many(errors)),
        }
    }

    /// The single errors, nested lists flattened.
    pub fn list(&self) -> Vec<&GraphError> {
        match self {
            GraphError::Many(v) => v.iter().flat_map(GraphError::list).collect(),
            e => vec![e],
        }
    }
}
