//! The interface of code generators: they compile regions of a graph to object code.
//!
//! A [`Backend`] takes nodes of a graph and returns [`ObjectCode`]: objects that the runtime can load, and a list of
//! [`Entry`]s to call in order. Each entry computes one or more of the nodes; together they compute all. Backends that
//! need foreign toolchains are in separate crates.
//!
//! # Calling an entry
//! The symbol is an `extern "C" fn(args: *const *mut u8) -> i32` that returns 0. `args` points to an array of pointers:
//!
//! 1. one to each value of `inputs`, in order;
//! 2. one to each value of `outputs`, in order;
//! 3. one to `workspace_bytes` of scratch memory, aligned to 64 bytes. Its contents do not matter before or after the
//!    call. The pointer can dangle if the size is 0.
//!
//! Values are dense, row-major, little-endian and aligned to their element size. Constants of the graph are inputs like
//! any other value: the caller passes their data. An argument that is written must not overlap any other argument. An
//! entry keeps no state, so several threads can call it.

use thiserror::Error;
use tilewright_runtime::artifact::Place;

use crate::graph::{DType, Graph, NodeId, ValueId};
use crate::records::Replay;
use crate::schedule::Step;
use crate::te::Program;
use crate::tir::Function;

/// A value that a function reads.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Operand {
    /// A value of the graph.
    Value(ValueId),
    /// One of [`ObjectCode::constants`].
    Own(usize),
}

/// A constant that a backend derived from the graph's constants, such as weights packed for its instructions.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct OwnConstant {
    /// Its display name, taken from one of the constants that it is derived from.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Shape.
    pub shape: Vec<usize>,
    /// The elements, in the memory layout of values.
    pub bytes: Vec<u8>,
}

/// A function of an object file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Entry {
    /// Its symbol in the object code.
    pub symbol: String,
    /// Its object, one of [`ObjectCode::objects`].
    pub object: usize,
    /// The nodes that it computes, in order.
    pub nodes: Vec<NodeId>,
    /// What it reads, including constants: its first arguments.
    pub inputs: Vec<Operand>,
    /// Values that it writes: the arguments after the inputs.
    pub outputs: Vec<ValueId>,
    /// Size in bytes of the workspace, its last argument.
    pub workspace_bytes: usize,
}

/// The result of compiling a region.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct ObjectCode {
    /// The object files. Only functions of different ones can have equal symbols.
    pub objects: Vec<Vec<u8>>,
    /// The target of the code: architecture, processor and features, in the toolchain's notation.
    pub target: String,
    /// Its functions, in the order to call them.
    pub entries: Vec<Entry>,
    /// Constants that they read in addition to those of the graph.
    pub constants: Vec<OwnConstant>,
}

/// How a function of an object file came about, stage by stage.
#[derive(Debug, Clone, PartialEq)]
pub struct Listing {
    /// The nodes that the function computes, in order. Another group of nodes with the same computation can share it.
    pub nodes: Vec<NodeId>,
    /// What it computes when the model runs. What is computed once, when the model is compiled, is an input.
    pub program: Program,
    /// The steps that were applied to the loops to which `program` is lowered.
    pub steps: Vec<Step>,
    /// The loops after the last step.
    pub function: Function,
    /// The generated code, each text with the name of its form.
    pub code: Vec<(&'static str, String)>,
}

/// Why a region was not compiled.
#[derive(Debug, Clone, PartialEq, Error)]
pub enum BackendError {
    /// The backend does not support a node.
    #[error("node {node} ({op}): {reason}")]
    Unsupported {
        /// The node's name.
        node: String,
        /// Its operator.
        op: String,
        /// Why it is not supported, and what to do.
        reason: String,
    },
    /// The toolchain rejected the generated code.
    #[error("code generation for {entry} failed: {message}")]
    Codegen {
        /// The function.
        entry: String,
        /// The toolchain's message.
        message: String,
    },
    /// The toolchain is missing or cannot generate code for this machine.
    #[error("backend {backend} is not usable: {message}")]
    Toolchain {
        /// The backend.
        backend: &'static str,
        /// What is missing.
        message: String,
    },
}

/// The prefix of the names of functions in a region: the given one in the first.
pub fn in_region(prefix: &str, number: usize) -> String {
    match number {
        0 => prefix.to_string(),
        number => format!("{prefix}_r{number}"),
    }
}

/// A code generator.
pub trait Backend {
    /// Returns its name on the command line.
    fn name(&self) -> &'static str;

    /// Returns where its code runs.
    fn place(&self) -> Place;

    /// Returns the same generator with names of its functions that differ from those of a model's other regions, so that
    /// the objects of all regions can be linked together.
    fn of_region(&self, number: usize) -> Box<dyn Backend>;

    /// Compiles nodes, given in topological order, to object code. Constant nodes among them are left out, because they
    /// need no code.
    ///
    /// A value that is read by a node outside `nodes`, or is an output of the graph, is an output of some entry. Values
    /// that only one entry needs can stay inside it.
    ///
    /// # Errors
    /// [`BackendError`] for the first node that does not compile.
    fn compile(&self, graph: &Graph, nodes: &[NodeId]) -> Result<ObjectCode, BackendError>;

    /// Returns how the code that was compiled so far uses records of `tune`. Layers without a record do not count.
    fn replay(&self) -> Replay {
        Replay::default()
    }

    /// Returns the names of the forms of code that it can list, such as `asm`.
    fn forms(&self) -> &'static [&'static str];

    /// Lists the stages of each entry that [`Backend::compile`] makes of these nodes, in the same order. `forms` are the
    /// wanted forms of code; others than its own are ignored.
    ///
    /// # Errors
    /// The same as [`Backend::compile`].
    fn listings(&self, graph: &Graph, nodes: &[NodeId], forms: &[&str]) -> Result<Vec<Listing>, BackendError>;
}
