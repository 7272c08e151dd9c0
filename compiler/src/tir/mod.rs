//! Loop programs: loops over blocks that read and write buffers.
//!
//! A [`Function`] has buffers, each in a memory scope, and a tree of statements whose leaves are blocks. A block
//! computes one element from others, or calls a tensor intrinsic, whose meaning is itself a small function carried
//! along; so a program is complete, prints, parses back and runs in the evaluator whatever has been done to it.
//! Indices are affine in the loop variables wherever a schedule needs to understand them ([`affine`]).
//!
//! Schedules rewrite these programs; code generators read them.

pub mod affine;
mod error;
mod eval;
mod lower;
mod parse;
mod print;
mod simplify;
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
pub use verify::verify;

/// Where a buffer lies.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Scope {
    /// Memory that everyone sees: DRAM, the host's heap.
    Global,
    /// Registers or the stack of the unit that computes.
    Local,
    /// The accelerator's input scratchpad.
    Inp,
    /// Its weight scratchpad.
    Wgt,
    /// Its accumulators.
    Acc,
    /// Its output scratchpad.
    Out,
    /// Its parameter memory.
    Param,
    /// Memory on the chip of a GPU that the threads of one block share.
    Shared,
}

impl Scope {
    /// Every scope with its name in text.
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

    /// Its name in text.
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
    /// Where it lies.
    pub scope: Scope,
}

impl Buffer {
    /// Number of elements.
    pub fn len(&self) -> i64 {
        self.shape.iter().product()
    }

    /// True where an extent is 0.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Bytes of the whole buffer.
    pub fn size_bytes(&self) -> usize {
        self.len().max(0) as usize * self.dtype.size_bytes()
    }
}

/// How the iterations of a loop are carried out. All kinds mean the same.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum LoopKind {
    /// One after the other.
    Serial,
    /// Spread over threads.
    Parallel,
    /// As lanes of vector instructions.
    Vectorized,
    /// Written out.
    Unrolled,
    /// Overlapped as the stages of a pipeline (virtual threads).
    Pipeline,
    /// One iteration a block of a GPU's grid, along its first dimension.
    BlockX,
    /// Along its second.
    BlockY,
    /// Along its third.
    BlockZ,
    /// One iteration a thread of a block, along its first dimension.
    ThreadX,
    /// Along its second.
    ThreadY,
    /// Along its third.
    ThreadZ,
}

impl LoopKind {
    /// Every kind with its word in text.
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
    /// Those that stand for blocks of a GPU's grid, first dimension first.
    pub const BLOCKS: [LoopKind; 3] = [LoopKind::BlockX, LoopKind::BlockY, LoopKind::BlockZ];
    /// Those that stand for threads of a block, first dimension first.
    pub const THREADS: [LoopKind; 3] = [LoopKind::ThreadX, LoopKind::ThreadY, LoopKind::ThreadZ];

    /// Its word in text.
    pub fn name(self) -> &'static str {
        LoopKind::NAMES[self as usize].1
    }

    /// The dimension of a GPU's grid that it stands for.
    pub fn block(self) -> Option<usize> {
        LoopKind::BLOCKS.iter().position(|k| *k == self)
    }

    /// The dimension of a block of threads that it stands for.
    pub fn thread(self) -> Option<usize> {
        LoopKind::THREADS.iter().position(|k| *k == self)
    }
}

/// A loop from 0 to its extent.
#[derive(Debug, Clone, PartialEq)]
pub struct For {
    /// Its variable, unique within the function; it also names the loop in schedules.
    pub var: Name,
    /// Number of iterations.
    pub extent: i64,
    /// How they are carried out.
    pub kind: LoopKind,
    /// What is repeated.
    pub body: Box<Stmt>,
}

/// A part of a buffer, as an intrinsic sees it: `indices` is where its element at `dims` lies.
#[derive(Debug, Clone, PartialEq)]
pub struct View {
    /// The buffer.
    pub buffer: Name,
    /// One variable a dimension of the intrinsic's parameter.
    pub dims: Vec<Name>,
    /// One index a dimension of the buffer, over loop variables and `dims`.
    pub indices: Vec<Expr>,
}

/// What a block does.
#[derive(Debug, Clone, PartialEq)]
pub enum Action {
    /// Writes one element.
    Store {
        /// The buffer written.
        buffer: Name,
        /// One index a dimension.
        indices: Vec<Expr>,
        /// The element; a reduction reads the element written and combines it with another.
        value: Expr,
    },
    /// Runs a tensor intrinsic on parts of buffers, in the order of its parameters.
    Call {
        /// One of the function's intrinsics.
        intrinsic: Name,
        /// Its arguments.
        args: Vec<View>,
    },
}

/// A unit of computation that schedules name.
#[derive(Debug, Clone, PartialEq)]
pub struct Block {
    /// Its name, unique within the function.
    pub name: Name,
    /// The enclosing loops over which it reduces.
    pub reduce: Vec<Name>,
    /// It only runs where all of these hold.
    pub guards: Vec<Expr>,
    /// Stored first where every reduction loop is at 0; only together with [`Action::Store`].
    pub init: Option<Expr>,
    /// What it does.
    pub action: Action,
}

/// A statement.
#[derive(Debug, Clone, PartialEq)]
pub enum Stmt {
    /// One after the other.
    Seq(Vec<Stmt>),
    /// A loop.
    For(For),
    /// A leaf.
    Block(Block),
}

/// What a tensor intrinsic does, on parameters of its own.
#[derive(Debug, Clone, PartialEq)]
pub struct Intrinsic {
    /// Its name, unique within the function that carries it.
    pub name: Name,
    /// Its parameters; the scope says where an argument must lie.
    pub params: Vec<Buffer>,
    /// Its meaning: loops over the parameters.
    pub body: Stmt,
}

/// A loop program.
#[derive(Debug, Clone, PartialEq)]
pub struct Function {
    /// Its name.
    pub name: Name,
    /// The tensor intrinsics that it calls.
    pub intrinsics: Vec<Intrinsic>,
    /// Buffers that the caller gives, inputs before outputs.
    pub params: Vec<Buffer>,
    /// How many of the parameters, at the end, are outputs.
    pub outputs: usize,
    /// Buffers that live while the function runs.
    pub locals: Vec<Buffer>,
    /// What it does.
    pub body: Stmt,
}

impl Function {
    /// The buffer of that name.
    pub fn buffer(&self, name: &Name) -> Option<&Buffer> {
        self.params.iter().chain(&self.locals).find(|b| &b.name == name)
    }

    /// The intrinsic of that name.
    pub fn intrinsic(&self, name: &Name) -> Option<&Intrinsic> {
        self.intrinsics.iter().find(|i| &i.name == name)
    }

    /// The parameters that the function reads only.
    pub fn inputs(&self) -> &[Buffer] {
        &self.params[..self.params.len().saturating_sub(self.outputs)]
    }

    /// The parameters that the function writes.
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

    /// Calls `f` on each loop, outside in.
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

    /// The loop of that variable.
    pub fn find_loop(&self, var: &Name) -> Option<&For> {
        let mut found = None;
        self.visit_loops(&mut |l| {
            if &l.var == var {
                found = Some(l);
            }
        });
        found
    }

    /// The block of that name.
    pub fn find_block(&self, name: &Name) -> Option<&Block> {
        let mut found = None;
        self.visit_blocks(&mut |_, b| {
            if &b.name == name {
                found = Some(b);
            }
        });
        found
    }

    /// Calls `f` on each block for change.
    pub fn each_block_mut(&mut self, f: &mut dyn FnMut(&mut Block)) {
        match self {
            Stmt::Seq(list) => list.iter_mut().for_each(|s| s.each_block_mut(f)),
            Stmt::For(l) => l.body.each_block_mut(f),
            Stmt::Block(b) => f(b),
        }
    }
}

impl Block {
    /// Every expression of the block, for change: guards, init, indices and value. View variables stay bound.
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

    /// Every expression of the block.
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

    /// The buffer that a store writes; an intrinsic's written arguments are told by its description.
    pub fn target(&self) -> Option<&Name> {
        match &self.action {
            Action::Store { buffer, .. } => Some(buffer),
            Action::Call { .. } => None,
        }
    }
}

impl Intrinsic {
    /// For each parameter whether the intrinsic writes it.
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

    /// For each parameter whether the intrinsic reads it.
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
