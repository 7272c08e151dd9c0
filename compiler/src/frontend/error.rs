//! Errors in model files.

use crate::graph::GraphError;
use std::collections::HashMap;
use tilewright_hw::list::SHOWN;

/// A node whose operator has no import function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedNode {
    /// The node's name, or its position if it has none.
    pub node: String,
    /// The operator's name.
    pub operator: String,
    /// Names of supported operators with a similar spelling.
    pub nearest: Vec<String>,
}

impl UnsupportedNode {
    /// Makes the error of a node, with the names among `names` that are most similar to its operator's.
    pub(crate) fn new<'n>(node: String, operator: String, names: impl IntoIterator<Item = &'n str>) -> UnsupportedNode {
        let plain = |name: &str| name.rsplit('.').next().unwrap_or(name).to_lowercase();
        let wanted = plain(&operator);
        let most = |name: &str| wanted.len().min(name.len()) / 3;
        let mut near: Vec<(usize, &str)> = names
            .into_iter()
            .map(|name| (plain(name), name))
            .filter(|(plain, name)| wanted.len().abs_diff(plain.len()) <= most(name))
            .map(|(plain, name)| (distance(&wanted, &plain), name))
            .filter(|(d, name)| *d <= most(name))
            .collect();
        near.sort();
        let nearest = near.into_iter().take(3).map(|(_, name)| name.to_owned()).collect();
        UnsupportedNode { node, operator, nearest }
    }
}

/// Edit distance of two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, x) in a.chars().enumerate() {
        let mut corner = std::mem::replace(&mut row[0], i + 1);
        for (j, y) in b.iter().enumerate() {
            let changed = corner + usize::from(x != *y);
            corner = row[j + 1];
            row[j + 1] = changed.min(row[j] + 1).min(corner + 1);
        }
    }
    row[b.len()]
}

/// An error in a model file. Every variant names the file.
#[derive(Debug, thiserror::Error)]
pub enum ImportError {
    /// The file cannot be read.
    #[error("cannot read {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The operating system's error.
        source: std::io::Error,
    },
    /// The file is not a valid model of its format.
    #[error("{file} is not a usable model: {reason}")]
    Malformed {
        /// The file.
        file: String,
        /// What is wrong.
        reason: String,
    },
    /// All operators without an import function.
    #[error("{file}: unsupported operators: {}; {page} lists the {supported} that are supported{}", list(.nodes), functions(.domains))]
    Unsupported {
        /// The file.
        file: String,
        /// The nodes.
        nodes: Vec<UnsupportedNode>,
        /// Number of operators that can be imported.
        supported: usize,
        /// The page that lists them.
        page: &'static str,
        /// Domains of the nodes' operators other than the format's own.
        domains: Vec<String>,
    },
    /// A node that cannot be imported.
    #[error("{file}: node `{node}` ({operator}): {reason}")]
    Node {
        /// The file.
        file: String,
        /// The node's name, or its position if it has none.
        node: String,
        /// The operator's name.
        operator: String,
        /// What is wrong and what to do.
        reason: String,
    },
    /// An operand that must be a constant follows from inputs, whose values are not known.
    #[error("{node}; it follows from {}", needed(.inputs))]
    NeedsValue {
        /// What the error would be without a remedy.
        node: Box<ImportError>,
        /// Names of the inputs.
        inputs: Vec<String>,
    },
    /// A value that is given for an input does not match the file.
    #[error("{file} {reason}")]
    Value {
        /// The file.
        file: String,
        /// What does not match.
        reason: String,
    },
    /// The sizes given for open dimensions do not match the file.
    #[error("{file} {reason}")]
    Sizes {
        /// The file.
        file: String,
        /// What does not match.
        reason: String,
    },
    /// The resulting graph is invalid.
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

/// Inputs whose values are missing, and how to give them.
fn needed(inputs: &[String]) -> String {
    let word = if inputs.len() == 1 { "the input" } else { "the inputs" };
    let names: Vec<String> = inputs.iter().map(|name| format!("`{name}`")).collect();
    let given: Vec<String> = inputs.iter().map(|name| format!("--value {name}=NUMBERS")).collect();
    format!("{word} {}, and the model can be compiled for one value: {}", names.join(", "), given.join(" "))
}

/// The domain of operators that ONNX Runtime chooses for the processor on which it optimizes.
const OF_ONE_PROCESSOR: &str = "com.microsoft.nchwc";

/// What can be done about operators of these domains.
fn functions(domains: &[String]) -> String {
    if domains.iter().any(|domain| domain == OF_ONE_PROCESSOR) {
        return format!(
            "; {OF_ONE_PROCESSOR} is a layout for the processor that optimized the model: save it at ORT_ENABLE_EXTENDED"
        );
    }
    let given: Vec<String> = domains.iter().map(|domain| format!("--packed {domain}")).collect();
    if given.is_empty() {
        return String::new();
    }
    format!("; with {}, functions of your program compute those of their own domains", given.join(" "))
}

/// Lists each operator once, with the names of its first few nodes.
fn list(nodes: &[UnsupportedNode]) -> String {
    const NAMED: usize = 3;
    let mut order: Vec<&str> = Vec::new();
    let mut by_operator: HashMap<&str, Vec<&UnsupportedNode>> = HashMap::new();
    for node in nodes {
        let of = by_operator.entry(&node.operator).or_default();
        if of.is_empty() {
            order.push(&node.operator);
        }
        of.push(node);
    }
    let one = |operator: &&str| {
        let of = &by_operator[operator];
        let names: Vec<_> = of.iter().take(NAMED).map(|n| format!("`{}`", n.node)).collect();
        let word = if of.len() == 1 { "node" } else { "nodes" };
        let more = if of.len() > NAMED { format!(" and {} more", of.len() - NAMED) } else { String::new() };
        let nearest = &of[0].nearest;
        let near = if nearest.is_empty() { String::new() } else { format!("; similar to {}", nearest.join(", ")) };
        format!("{operator} ({word} {}{more}{near})", names.join(", "))
    };
    let text = order.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    match order.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{text} and {more} others"),
        _ => text,
    }
}
