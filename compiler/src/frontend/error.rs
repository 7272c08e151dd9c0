//! What can be wrong with a model file.

use crate::graph::GraphError;
use std::collections::HashMap;
use tilewright_hw::list::SHOWN;

/// A node whose operator has no import function.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct UnsupportedNode {
    /// The node's name, or its place where it has none.
    pub node: String,
    /// The operator's name.
    pub operator: String,
    /// Names of operators that can be imported and are written much like it.
    pub nearest: Vec<String>,
}

impl UnsupportedNode {
    /// The node with the names nearest to its operator's among `names`.
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

/// The least number of letters to add, drop and change that makes one word the other.
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
    #[error("{file}: unsupported operators: {}; {page} lists the {supported} that are supported", list(.nodes))]
    Unsupported {
        /// The file.
        file: String,
        /// The nodes.
        nodes: Vec<UnsupportedNode>,
        /// How many operators can be imported.
        supported: usize,
        /// The page that lists them.
        page: &'static str,
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

/// Each operator once, with its nodes: the first few of both by name.
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
        let near = if nearest.is_empty() { String::new() } else { format!("; near to {}", nearest.join(", ")) };
        format!("{operator} ({word} {}{more}{near})", names.join(", "))
    };
    let text = order.iter().take(SHOWN).map(one).collect::<Vec<_>>().join(", ");
    match order.len().checked_sub(SHOWN) {
        Some(more @ 1..) => format!("{text} and {more} others"),
        _ => text,
    }
}
