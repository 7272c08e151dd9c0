//! What a code generator is to the rest of the toolkit: regions of a graph in, object code out.
//!
//! A [`Backend`] takes nodes of a graph and gives [`ObjectCode`]: bytes that the runtime can load, and a list of
//! [`Entry`]s, to be called in their order. Each entry computes one or more of the nodes; together they compute all.
//! Foreign toolchains live in crates of their own behind this trait.
//!
//! # Calling an entry
//! The symbol is an `extern "C" fn(args: *const *mut u8) -> i32` that returns 0. `args` points to
//! `inputs.len() + outputs.len() + 1` pointers: to the values of `inputs` in their order, then to those of `outputs`,
//! then to `workspace_bytes` of memory that the entry may write and that holds nothing before or after (it may be
//! dangling where they are 0). Values are dense, row-major, little-endian and aligned to their element size; a
//! workspace is aligned to 64 bytes. Constants of the graph are inputs like any other value: the caller passes their
//! data. No two arguments of which one is written may overlap. An entry keeps no state, so several threads may call it.

use thiserror::Error;

use crate::graph::{DType, Graph, NodeId, ValueId};

/// What a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A value of the graph.
    Value(ValueId),
    /// One of [`ObjectCode::constants`].
    Own(usize),
}

/// A constant that a backend made of the graph's, as weights packed for its instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnConstant {
    /// Its name for people, from that of a constant that it is made of.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Vec<usize>,
    /// The elements, as values lie in memory.
    pub bytes: Vec<u8>,
}

/// One function of an object file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its symbol in the object code.
    pub symbol: String,
    /// The nodes that it computes, in order.
    pub nodes: Vec<NodeId>,
    /// What it reads, constants among it: its first arguments.
    pub inputs: Vec<Operand>,
    /// Values that it writes: the arguments behind them.
    pub outputs: Vec<ValueId>,
    /// Bytes that its last argument points to.
    pub workspace_bytes: usize,
}

/// What a backend makes of a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectCode {
    /// The object file.
    pub bytes: Vec<u8>,
    /// The target that it was made for: architecture, processor and features, as the toolchain writes them.
    pub target: String,
    /// Its functions, in the order in which they are to be called.
    pub entries: Vec<Entry>,
    /// Constants that they read beside those of the graph.
    pub constants: Vec<OwnConstant>,
}

/// Why a region was not compiled.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum BackendError {
    /// A node that the backend does not take.
    #[error("node {node} ({op}): {reason}")]
    Unsupported {
        /// The node's name.
        node: String,
        /// Its operator.
        op: String,
        /// Why not, and what to do.
        reason: String,
    },
    /// The toolchain refused what was generated.
    #[error("code generation for {entry} failed: {message}")]
    Codegen {
        /// The function.
        entry: String,
        /// What the toolchain said.
        message: String,
    },
    /// The toolchain is not there or cannot make code for this machine.
    #[error("backend {backend} is not usable: {message}")]
    Toolchain {
        /// The backend.
        backend: &'static str,
        /// What is missing.
        message: String,
    },
}

/// A code generator.
pub trait Backend {
    /// Its name on the command line.
    fn name(&self) -> &'static str;

    /// Says whether it takes a node.
    ///
    /// # Errors
    /// [`BackendError::Unsupported`] with the reason.
    fn supports(&self, graph: &Graph, node: NodeId) -> Result<(), BackendError>;

    /// Object code for the nodes, which are given in topological order. Constant nodes among them are left out: they
    /// need no code.
    ///
    /// A value that a node outside of `nodes` reads, or that leaves the graph, is an output of some entry; values that
    /// only one entry needs may never leave it.
    ///
    /// # Errors
    /// [`BackendError`] for the first node that does not compile.
    fn compile(&self, graph: &Graph, nodes: &[NodeId]) -> Result<ObjectCode, BackendError>;
}
