//! What can be wrong with a loop program.

use thiserror::Error;

use crate::te::Name;

/// An error in a loop program, its text or its evaluation.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TirError {
    /// The text does not parse.
    #[error("line {line}, column {column}: {message}")]
    Parse {
        /// Line, from 1.
        line: usize,
        /// Column, from 1.
        column: usize,
        /// What was expected.
        message: String,
    },
    /// The program breaks rules of the verifier.
    #[error("function {function} is not well formed: {}", tilewright_hw::list::first(problems, "; "))]
    Malformed {
        /// The function.
        function: Name,
        /// Every rule broken.
        problems: Vec<String>,
    },
    /// A tensor expression cannot be lowered.
    #[error("tensor expression {program}: {problem}")]
    Lower {
        /// The program.
        program: Name,
        /// What is wrong.
        problem: String,
    },
    /// An access leaves its buffer.
    #[error("block {block} accesses {buffer}{index:?}, outside of its shape {shape:?}")]
    OutOfBounds {
        /// The block.
        block: Name,
        /// The buffer.
        buffer: Name,
        /// The index.
        index: Vec<i64>,
        /// The buffer's shape.
        shape: Vec<i64>,
    },
    /// The arguments do not fit the parameters.
    #[error("function {function}: argument {index} must be {expected}, got {found}")]
    Argument {
        /// The function.
        function: Name,
        /// Position.
        index: usize,
        /// Type and shape of the parameter.
        expected: String,
        /// Those of the argument.
        found: String,
    },
}
