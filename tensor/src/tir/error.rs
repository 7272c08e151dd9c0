//! Errors in loop programs.

use thiserror::Error;

use crate::te::{Name, ParseError};

/// An error in a loop program, its text or its evaluation.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum TirError {
    /// The text does not parse.
    #[error(transparent)]
    Parse(#[from] ParseError),
    /// The program breaks rules of the verifier.
    #[error("function {function} is not well formed: {}", tilewright_hw::list::first(problems, "; "))]
    Malformed {
        /// The function.
        function: Name,
        /// Every violation.
        problems: Vec<String>,
    },
    /// A tensor expression cannot be lowered.
    #[error("tensor expression {program}: {problem}")]
    Lower {
        /// The program.
        program: Name,
        /// The problem.
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
    /// The work was stopped from outside.
    #[error(transparent)]
    Interrupted(#[from] tilewright_hw::interrupt::Interrupted),
    /// The arguments do not fit the parameters.
    #[error("function {function}: argument {index} must be {expected}, got {found}")]
    Argument {
        /// The function.
        function: Name,
        /// Position of the argument, from 0.
        index: usize,
        /// Type and shape of the parameter.
        expected: String,
        /// Type and shape of the argument.
        found: String,
    },
}
