//! What can be wrong with a model file.

use crate::graph::GraphError;

/// A node whose operator has no import function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedNode {
    /// The node's name, or its place where it has none.
    pub node: String,
    /// The operator's name.
    pub operator: String,
}

/// What can be wrong with a model file. All name the file.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The file is no model of its format.
    #[error("{file} is not a usable model: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// Operators without an import function, all of them.
    #[error("{file}: unsupported operators: {}; supported are {supported}", list(.nodes))]
    Unsupported {
        /// The file.
        file: String,
        /// The nodes.
        nodes: Vec<UnsupportedNode>,
        /// The operators that can be imported.
        supported: String,
    },
    /// A node that cannot be imported as it is.
    #[error("{file}: node `{node}` ({operator}): {reason}")]
    Node {
        /// The file.
        file: String,
        /// The node's name, or its place where it has none.
        node: String,
        /// The operator's name.
        operator: String,
        /// What is wrong, and what to do.
        reason: String,
    },
    /// Sizes given for open dimensions do not suit the file.
    #[error("{file} {reason}")]
    Sizes {
        /// The file.
        file: String,
        /// What does not suit.
        reason: String,
    },
    /// The graph that came out is not sound.
    #[error("{file}: {source}")]
    Graph {
        /// The file.
        file: String,
        /// What is wrong.
        source: Box<GraphError>,
    },
}

impl ImportError {
    pub(crate) fn malformed(file: &str, reason: impl ToString) -> ImportError {
        ImportError::Malformed { file: file.into(), reason: reason.to_string() }
    }
}

fn list(nodes: &[UnsupportedNode]) -> String {
    nodes.iter().map(|n| format!("{} (node `{}`)", n.operator, n.node)).collect::<Vec<_>>().join(", ")
}
