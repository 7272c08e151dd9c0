//! Why a node of a file cannot be imported.

use crate::graph::{GraphError, OpError};

/// The reason why a node cannot be imported.
pub(super) struct Reason(pub String);

impl From<String> for Reason {
    fn from(s: String) -> Reason {
        Reason(s)
    }
}

impl From<&str> for Reason {
    fn from(s: &str) -> Reason {
        Reason(s.into())
    }
}

impl From<OpError> for Reason {
    fn from(e: OpError) -> Reason {
        Reason(e.to_string())
    }
}

impl From<GraphError> for Reason {
    fn from(e: GraphError) -> Reason {
        match e {
            GraphError::Op { op, source, .. } => Reason(format!("{op}: {source}")),
            e => Reason(e.to_string()),
        }
    }
}
