//! Loop programs: loops over blocks that read and write buffers.
//!
//! A [`Function`] has buffers, each in a memory scope, and a tree of statements whose leaves are blocks. A block
//! computes one element from others, or calls a tensor intrinsic. The function includes the definition of each
//! intrinsic, as a small function. A program is therefore complete: it prints, parses back, and runs in the evaluator
//! after any transformation. If a schedule needs to understand indices, they are affine in the loop variables
//! ([`affine`]).
//!
//! Schedules rewrite these programs, and code generators read them.

pub mod affine;
mod error;
mod eval;
mod lower;
mod parse;
mod print;
mod simplify;
mod terms;
#[cfg(test)]
pub(crate) mod tests;
mod verify;

use crate::te::{DType, Expr, Name};

pub use affine::{Affine, Bounds};
pub use error::TirError;
pub use eval::{evaluate, expand_call, run};
pub use lower::lower;
pub use parse::parse;
pub use simplify::simplify;
pub use terms::Terms;
pub use verify::verify;

/// The memory that holds a buffer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Memory that all units share: DRAM, or the host's heap.
    Global,
    /// Registers or the stack of the computing unit.
    Local,
    /// The accelerator's input scratchpad.
    Inp,
    /// The accelerator's weight scratchpad.
    Wgt,
    /// The accelerator's accumulators.
    Acc,
    /// The accelerator's output scratchpad.
    Out,
    /// The accelerator's parameter memory.
    Param,
    /// A GPU's on-chip memory that the threads of one block share.
    Shared,
}

impl Scope {
    /// Each scope with its name in text.
    pub const NAMES: [(Scope, &'static str); 8] = [
        (Scope::Global, "global"),
        (Scope::Local, "local"),
        (Scope::Inp, "inp"),
        (Scope::Wgt, "wgt"),
        (Scope::Acc, "acc"),
        (Scope::Out, "out"),
        (Scope::Param, "param"),
        (Scope::Shared, "shared"),
    ];

    /// Returns the scope's name in text.
    pub fn name(self) -> &'static str {
        Scope::NAMES[self as usize].1
    }
}

/// A dense row-major block of memory.
#[derive(Debug, Clone, PartialEq)]
pub struct Buffer {
    /// Its name, unique within the function.
    pub name: Name,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<i64>,
    /// The memory that holds it.
    pub scope: Scope,
}

impl Buffer {
    /// Returns the number of elements.
    pub fn len(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Returns whether the buffer has no elements.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Returns the size of the whole buffer in bytes.
    pub fn size_bytes(&self) -> usize {
        self.len().max(0) as usize * self.dtype.size_bytes()
    }
}

/// How the iterations of a loop are executed. The kind does not change the result.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// One after the other.
    Serial,
    /// Distributed over threads.
    Parallel,
    /// As lanes of vector instructions.
    Vectorized,
    /// Unrolled.
    Unrolled,
    /// Overlapped as the stages of a pipeline (virtual threads).
    Pipeline,
    /// One iteration per block of a GPU's grid, along the grid's first dimension.
    BlockX,
    /// One iteration per block, along the grid's second dimension.
    BlockY,
    /// One iteration per block, along the grid's third dimension.
    BlockZ,
    /// One iteration per thread of a block, along the block's first dimension.
    ThreadX,
    /// One iteration per thread, along the block's second dimension.
    ThreadY,
    /// One iteration per thread, along the block's third dimension.
    ThreadZ,
}

impl LoopKind {
    /// Each kind with its keyword in text.
    pub const NAMES: [(LoopKind, &'static str); 11] = [
        (LoopKind::Serial, "for"),
        (LoopKind::Parallel, "parallel"),
        (LoopKind::Vectorized, "vectorized"),
        (LoopKind::Unrolled, "unrolled"),
        (LoopKind::Pipeline, "pipeline"),
        (LoopKind::BlockX, "block_x"),
        (LoopKind::BlockY, "block_y"),
        (LoopKind::BlockZ, "block_z"),
        (LoopKind::ThreadX, "thread_x"),
        (LoopKind::ThreadY, "thread_y"),
        (LoopKind::ThreadZ, "thread_z"),
    ];
    /// Kinds for the blocks of a GPU's grid, first dimension first.
    pub const BLOCKS: [LoopKind; 3] = [LoopKind::BlockX, LoopKind::BlockY, LoopKind::BlockZ];
    /// Kinds for the threads of a block, first dimension first.
    pub const THREADS: [LoopKind; 3] = [LoopKind::ThreadX, LoopKind::ThreadY, LoopKind::ThreadZ];

    /// Returns the kind's keyword in text.
    pub fn name(self) -> &'static str {
        LoopKind::NAMES[self as usize].1
    }

    /// Returns the grid dimension of a GPU that the kind is bound to.
    pub fn block(self) -> Option<usize> {
        LoopKind::BLOCKS.iter().position(|k| *k == self)
    }

    /// Returns the dimension of a block of threads that the kind is bound to.
    pub fn thread(self) -> Option<usize> {
        LoopKind::THREADS.iter().position(|k| *k == self)
    }
}

/// A loop from 0 up to, but not including, its extent.
#[derive(Debug, Clone, PartialEq)]
pub struct For {
    /// Its variable, unique within the function. It also names the loop in schedules.
    pub var: Name,
    /// Number of iterations.
    pub extent: i64,
    /// How the iterations are executed.
    pub kind: LoopKind,
    /// The loop's body.
    pub body: Box<Stmt>,
}

/// The part of a buffer that an intrinsic accesses. `indices` maps an element at `dims` to its place in the buffer.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The buffer.
    pub buffer: Name,
    /// One variable per dimension of the intrinsic's parameter.
    pub dims: Vec<Name>,
    /// One index per dimension of the buffer, over loop variables and `dims`.
    pub indices: Vec<Expr>,
}

/// What a block does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Writes one element.
    Store {
        /// The buffer written.
        buffer: Name,
        /// One index per dimension.
        indices: Vec<Expr>,
        /// The value stored. A reduction reads the stored element and combines it with another value.
        value: Expr,
    },
    /// Runs a tensor intrinsic on parts of buffers.
    Call {
        /// Name of one of the function's intrinsics.
        intrinsic: Name,
        /// Its arguments, in the order of its parameters.
        args: Vec<View>,
    },
}

/// A unit of computation with a name that schedules use.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Its name, unique within the function.
    pub name: Name,
    /// The enclosing loops over which it reduces.
    pub reduce: Vec<Name>,
    /// Conditions. The block only runs if all of them hold.
    pub guards: Vec<Expr>,
    /// Value stored first when all reduction loops are at 0. Only allowed with [`Action::Store`].
    pub init: Option<Expr>,
    /// What it does.
    pub action: Action,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// Statements that run one after the other.
    Seq(Vec<Stmt>),
    /// A loop.
    For(For),
    /// A block, the leaf of the tree.
    Block(Block),
}

/// The definition of a tensor intrinsic, on its own parameters.
#[derive(Debug, Clone, PartialEq)]
pub struct Intrinsic {
    /// Its name, unique within the function that contains it.
    pub name: Name,
    /// Its parameters. An argument must be in the parameter's scope.
    pub params: Vec<Buffer>,
    /// Its semantics, as loops over the parameters.
    pub body: Stmt,
}

/// A loop program.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// The tensor intrinsics that it calls.
    pub intrinsics: Vec<Intrinsic>,
    /// Buffers from the caller: inputs, then outputs.
    pub params: Vec<Buffer>,
    /// Number of outputs, which are the last parameters.
    pub outputs: usize,
    /// Buffers that exist while the function runs.
    pub locals: Vec<Buffer>,
    /// The statements.
    pub body: Stmt,
}

impl Function {
    /// Returns the names of the loops with spaces between them, from the first line to the last.
    pub fn loop_names(&self) -> String {
        let mut names: Vec<&str> = Vec::new();
        self.body.visit_loops(&mut |l| names.push(l.var.as_str()));
        names.join(" ")
    }

    /// Returns the buffer called `name`.
    pub fn buffer(&self, name: &Name) -> Option<&Buffer> {
        self.params.iter().chain(&self.locals).find(|b| &b.name == name)
    }

    /// Returns the intrinsic called `name`.
    pub fn intrinsic(&self, name: &Name) -> Option<&Intrinsic> {
        self.intrinsics.iter().find(|i| &i.name == name)
    }

    /// Returns the parameters that the function only reads.
    pub fn inputs(&self) -> &[Buffer] {
        &self.params[..self.params.len().saturating_sub(self.outputs)]
    }

    /// Returns the parameters that the function writes.
    pub fn output_buffers(&self) -> &[Buffer] {
        &self.params[self.params.len().saturating_sub(self.outputs)..]
    }
}

impl Stmt {
    /// Calls `f` on each block with its enclosing loops, outermost first.
    pub fn visit_blocks<'a>(&'a self, f: &mut dyn FnMut(&[&'a For], &'a Block)) {
        fn go<'a>(s: &'a Stmt, loops: &mut Vec<&'a For>, f: &mut dyn FnMut(&[&'a For], &'a Block)) {
            match s {
                Stmt::Seq(list) => list.iter().for_each(|s| go(s, loops, f)),
                Stmt::For(l) => {
                    loops.push(l);
                    go(&l.body, loops, f);
                    loops.pop();
                }
                Stmt::Block(b) => f(loops, b),
            }
        }
        go(self, &mut Vec::new(), f);
    }

    /// Calls `f` on each loop, outermost first.
    pub fn visit_loops<'a>(&'a self, f: &mut dyn FnMut(&'a For)) {
        match self {
            Stmt::Seq(list) => list.iter().for_each(|s| s.visit_loops(f)),
            Stmt::For(l) => {
                f(l);
                l.body.visit_loops(f);
            }
            Stmt::Block(_) => {}
        }
    }

    /// Returns the loop with that variable.
    pub fn find_loop(&self, var: &Name) -> Option<&For> {
        let mut found = None;
        self.visit_loops(&mut |l| {
            if &l.var == var {
                found = Some(l);
            }
        });
        found
    }

    /// Returns the block called `name`.
    pub fn find_block(&self, name: &Name) -> Option<&Block> {
        let mut found = None;
        self.visit_blocks(&mut |_, b| {
            if &b.name == name {
                found = Some(b);
            }
        });
        found
    }

    /// Calls `f` on each block, which it can change.
    pub fn each_block_mut(&mut self, f: &mut dyn FnMut(&mut Block)) {
        match self {
            Stmt::Seq(list) => list.iter_mut().for_each(|s| s.each_block_mut(f)),
            Stmt::For(l) => l.body.each_block_mut(f),
            Stmt::Block(b) => f(b),
        }
    }
}

impl Block {
    /// Calls `f` on each expression of the block, which it can change: guards, init, indices and value. The variables
    /// of views stay bound.
    pub fn each_expr_mut(&mut self, f: &mut dyn FnMut(&mut Expr)) {
        self.guards.iter_mut().for_each(&mut *f);
        self.init.iter_mut().for_each(&mut *f);
        match &mut self.action {
            Action::Store { indices, value, .. } => {
                indices.iter_mut().for_each(&mut *f);
                f(value);
            }
            Action::Call { args, .. } => args.iter_mut().flat_map(|v| &mut v.indices).for_each(f),
        }
    }

    /// Calls `f` on each expression of the block.
    pub fn each_expr(&self, f: &mut dyn FnMut(&Expr)) {
        self.guards.iter().for_each(&mut *f);
        self.init.iter().for_each(&mut *f);
        match &self.action {
            Action::Store { indices, value, .. } => {
                indices.iter().for_each(&mut *f);
                f(value);
            }
            Action::Call { args, .. } => args.iter().flat_map(|v| &v.indices).for_each(f),
        }
    }

    /// Returns the buffer that a store writes. For a call, use [`Intrinsic::writes`].
    pub fn target(&self) -> Option<&Name> {
        match &self.action {
            Action::Store { buffer, .. } => Some(buffer),
            Action::Call { .. } => None,
        }
    }
}

impl Intrinsic {
    /// Returns for each parameter whether the intrinsic writes it.
    pub fn writes(&self) -> Vec<bool> {
        let mut w = vec![false; self.params.len()];
        self.body.visit_blocks(&mut |_, b| {
            if let Some(t) = b.target()
                && let Some(i) = self.params.iter().position(|p| &p.name == t)
            {
                w[i] = true;
            }
        });
        w
    }

    /// Returns for each parameter whether the intrinsic reads it.
    pub fn reads(&self) -> Vec<bool> {
        let mut r = vec![false; self.params.len()];
        self.body.visit_blocks(&mut |_, b| {
            b.each_expr(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Load { buffer, .. } = e
                        && let Some(i) = self.params.iter().position(|p| &p.name == buffer)
                    {
                        r[i] = true;
                    }
                });
            });
        });
        r
    }
}
