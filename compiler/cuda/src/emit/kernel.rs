//! Emits a nest as a kernel.

use std::cell::RefCell;
use std::collections::{HashMap, HashSet};
use std::fmt::Write;

use tilewright_compiler::te::{DType, Expr, Name};
use tilewright_compiler::tir::affine::interval;
use tilewright_compiler::tir::{
    Action, Block, Bounds, Buffer, For, Function, LoopKind, Scope, Stmt, expand_call, simplify,
};

use super::registers::{self, Own};
use super::{Language, c_type, uses};
use crate::EmitError;

/// Shared memory that every GPU provides per block, in bytes.
const SHARED_BYTES: i64 = 48 << 10;
/// Most threads in a block.
const MOST_THREADS: i64 = 1024;
/// Most blocks in the second and third dimension.
const MOST_BLOCKS: i64 = 65_535;

/// A kernel's text and launch dimensions.
pub(super) struct Written {
    pub text: String,
    pub grid: [u32; 3],
    pub block: [u32; 3],
}

/// A reduction whose value is currently in a register.
struct Held {
    buffer: Name,
    indices: Vec<Expr>,
}

/// A kernel under construction.
pub(super) struct Kernel<'f> {
    f: &'f Function,
    language: Language,
    half: bool,
    wide: Option<&'f Name>,
    nest: Stmt,
    params: Vec<&'f Buffer>,
    pub(super) bounds: Bounds,
    block: [i64; 3],
    grid: [i64; 3],
    owns: HashMap<Name, Own>,
    names: RefCell<HashMap<Name, String>>,
    held: Option<Held>,
    loops: Vec<For>,
    text: String,
}

impl<'f> Kernel<'f> {
    pub fn new(
        f: &'f Function,
        language: Language,
        (half, wide): (bool, Option<&'f Name>),
        nest: &Stmt,
        params: &[&'f Buffer],
    ) -> Result<Kernel<'f>, EmitError> {
        let nest = expanded(f, nest);
        let (mut block, mut grid) = ([1i64; 3], [1i64; 3]);
        let mut bounds = Bounds::default();
        let mut problem = None;
        nest.visit_loops(&mut |l| {
            bounds.insert(l.var.clone(), (0, (l.extent - 1).max(0)));
            if l.extent > i32::MAX as i64 {
                problem = Some(format!("{} iterations of {}", l.extent, l.var));
            }
            if let Some(d) = l.kind.thread() {
                block[d] = block[d].max(l.extent);
            }
            if let Some(d) = l.kind.block() {
                grid[d] = grid[d].max(l.extent);
            }
        });
        if block.iter().product::<i64>() > MOST_THREADS {
            problem = Some(format!("{block:?} threads in a block"));
        }
        if grid[1..].iter().any(|&n| n > MOST_BLOCKS) {
            problem = Some(format!("a grid of {grid:?} blocks"));
        }
        if let Some(p) = problem {
            return Err(EmitError::Size(p));
        }
        let mut owns = HashMap::new();
        for b in f.locals.iter().filter(|b| b.scope == Scope::Local && uses(f, &nest, &b.name)) {
            owns.insert(b.name.clone(), registers::own(&nest, b, &bounds, &block)?);
        }
        let params = params.to_vec();
        let names = RefCell::default();
        let (held, loops, text) = (None, Vec::new(), String::new());
        Ok(Kernel { f, language, half, wide, nest, params, bounds, block, grid, owns, names, held, loops, text })
    }

    /// Emits the kernel. Returns `None` if it has nothing to do.
    pub fn emit(mut self, name: &str) -> Result<Option<Written>, EmitError> {
        let mut empty = false;
        self.nest.visit_loops(&mut |l| empty |= l.extent == 0 && l.kind != LoopKind::Serial);
        if empty || matches!(&self.nest, Stmt::For(l) if l.extent == 0) {
            return Ok(None);
        }
        let mut list = Vec::new();
        for b in self.params.clone() {
            let reads_only = self.f.inputs().iter().any(|p| p.name == b.name);
            let word = if reads_only { "const " } else { "" };
            let restrict = if self.language == Language::Cuda { "__restrict__" } else { "restrict" };
            list.push(format!("{word}{} *{restrict} {}", self.stored(b), self.name(&b.name)));
        }
        let threads: i64 = self.block.iter().product();
        let kind = match self.language {
            Language::Cuda => format!("extern \"C\" __global__ void __launch_bounds__({threads})"),
            Language::C99 if threads * self.grid.iter().product::<i64>() > 1 => {
                return Err(EmitError::Bound("C has no blocks of threads to bind loops to".into()));
            }
            Language::C99 => "static void".to_string(),
        };
        self.text = format!("{kind} {name}({}) {{\n", list.join(", "));
        let begin = self.text.len();
        self.declare()?;
        let nest = std::mem::replace(&mut self.nest, Stmt::Seq(Vec::new()));
        self.stmt(&nest, 1)?;
        if self.language == Language::C99 {
            // A parameter whose values do not matter, such as indices into one element, is no mistake.
            let words = |c: char| !c.is_alphanumeric() && c != '_';
            let used: HashSet<&str> = self.text[begin..].split(words).collect();
            let names = self.params.iter().map(|b| self.name(&b.name));
            let unused: String =
                names.filter(|n| !used.contains(n.as_str())).map(|n| format!("  (void){n};\n")).collect();
            self.text.insert_str(begin, &unused);
        }
        self.text += "}\n\n";
        let size = |n: [i64; 3]| n.map(|n| n as u32);
        Ok(Some(Written { grid: size(self.grid), block: size(self.block), text: self.text }))
    }

    /// Declares the arrays of the block and of the thread.
    fn declare(&mut self) -> Result<(), EmitError> {
        let mut bytes = 0;
        for b in &self.f.locals {
            if !uses(self.f, &self.nest, &b.name) {
                continue;
            }
            let (ty, name) = (c_type(b.dtype), self.name(&b.name));
            match b.scope {
                Scope::Global => {}
                Scope::Shared => {
                    let n = pitched(&b.shape).iter().product::<i64>();
                    bytes += n * b.dtype.size_bytes() as i64;
                    let _ = writeln!(self.text, "  __shared__ {ty} {name}[{n}];");
                }
                Scope::Local => {
                    let n = self.owns.get(&b.name).map_or(b.len(), |o| o.shape.iter().product());
                    let _ = writeln!(self.text, "  {ty} {name}[{}];", n.max(1));
                }
                other => {
                    return Err(EmitError::Bound(format!(
                        "buffer {} is in {}, which a GPU does not have",
                        b.name,
                        other.name()
                    )));
                }
            }
        }
        if bytes > SHARED_BYTES {
            return Err(EmitError::Size(format!(
                "{bytes} bytes of shared memory, but a block has only {SHARED_BYTES}"
            )));
        }
        Ok(())
    }

    /// Returns the type of a buffer's elements in memory.
    fn stored(&self, b: &Buffer) -> &'static str {
        if self.is_half(b) { "tw_half" } else { c_type(b.dtype) }
    }

    fn is_half(&self, b: &Buffer) -> bool {
        let is_wide = self.wide == Some(&b.name);
        self.half && !is_wide && b.dtype == DType::F32 && self.f.params.iter().any(|p| p.name == b.name)
    }

    /// Returns a unique C name for a name of the program.
    fn name(&self, n: &Name) -> String {
        if let Some(known) = self.names.borrow().get(n) {
            return known.clone();
        }
        let plain: String = n.as_str().chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        let base = format!("v_{plain}");
        let mut names = self.names.borrow_mut();
        let taken = |t: &String| names.values().any(|v| v == t);
        let free = std::iter::once(base.clone()).chain((2..).map(|i| format!("{base}_{i}"))).find(|t| !taken(t));
        let free = free.unwrap_or(base);
        names.insert(n.clone(), free.clone());
        free
    }

    pub(super) fn var(&self, v: &Name) -> Result<String, EmitError> {
        if self.bounds.contains_key(v) {
            Ok(self.name(v))
        } else {
            Err(EmitError::Program(format!("variable {v} is not bound")))
        }
    }

    fn find(&self, name: &Name) -> Result<&'f Buffer, EmitError> {
        self.f.buffer(name).ok_or_else(|| EmitError::Program(format!("unknown buffer {name}")))
    }

    /// Returns the C expression of an element.
    fn element(&self, b: &Buffer, indices: &[Expr]) -> Result<String, EmitError> {
        let loops: Vec<&For> = self.loops.iter().collect();
        let (shape, indices) = match self.owns.get(&b.name) {
            Some(own) => (own.shape.clone(), indices.iter().map(|e| registers::inner(e, &loops)).collect()),
            None if b.scope == Scope::Shared => (pitched(&b.shape), indices.to_vec()),
            None => (b.shape.clone(), indices.to_vec()),
        };
        let mut sum = Expr::int(0);
        for ((e, n), whole) in indices.iter().zip(&shape).zip(&b.shape) {
            // 0 is the only valid index. Guarded threads past the end could compute another one.
            let only = *whole == 1;
            sum = sum * *n + if only { Expr::int(0) } else { e.clone() };
        }
        let at = simplify(&sum, &self.bounds);
        Ok(format!("{}[{}]", self.name(&b.name), self.long(&at)?.0))
    }

    pub(super) fn load(&self, buffer: &Name, indices: &[Expr]) -> Result<String, EmitError> {
        if self.held.as_ref().is_some_and(|h| &h.buffer == buffer && h.indices == indices) {
            return Ok("sum".into());
        }
        let b = self.find(buffer)?;
        let element = self.element(b, indices)?;
        Ok(if self.is_half(b) { format!("tw_widen({element})") } else { element })
    }

    fn line(&mut self, depth: usize, text: &str) {
        let _ = writeln!(self.text, "{}{text}", "  ".repeat(depth));
    }

    fn in_thread(&self) -> bool {
        self.loops.iter().any(|l| l.kind.thread().is_some())
    }

    fn stmt(&mut self, s: &Stmt, depth: usize) -> Result<(), EmitError> {
        match s {
            Stmt::Seq(items) => {
                // Shared buffers read and written since the last barrier.
                let (mut read, mut written): (Vec<Name>, Vec<Name>) = (Vec::new(), Vec::new());
                for item in items {
                    let (reads, writes) = self.shared_in(item);
                    let meets = |a: &[Name], b: &[Name]| a.iter().any(|n| b.contains(n));
                    if meets(&written, &reads) || meets(&written, &writes) || meets(&read, &writes) {
                        self.wait(depth)?;
                        (read, written) = (Vec::new(), Vec::new());
                    }
                    self.stmt(item, depth)?;
                    read.extend(reads);
                    written.extend(writes);
                }
                Ok(())
            }
            Stmt::For(l) => self.repeat(l, depth),
            Stmt::Block(b) => self.leaf(b, depth),
        }
    }

    /// Returns the shared buffers that a statement reads, and those that it writes.
    fn shared_in(&self, s: &Stmt) -> (Vec<Name>, Vec<Name>) {
        let (mut reads, mut writes) = (Vec::new(), Vec::new());
        let shared = |n: &Name| self.f.buffer(n).is_some_and(|b| b.scope == Scope::Shared);
        s.visit_blocks(&mut |_, b| {
            writes.extend(b.target().filter(|n| shared(n)).cloned());
            b.each_expr(&mut |e| {
                e.visit(&mut |e| {
                    if let Expr::Load { buffer, .. } = e
                        && shared(buffer)
                    {
                        reads.push(buffer.clone());
                    }
                });
            });
        });
        (reads, writes)
    }

    fn shares(&self, s: &Stmt) -> bool {
        let (reads, writes) = self.shared_in(s);
        !reads.is_empty() || !writes.is_empty()
    }

    fn wait(&mut self, depth: usize) -> Result<(), EmitError> {
        if self.in_thread() {
            return Err(EmitError::Bound("a barrier would be needed within a loop over threads".into()));
        }
        self.line(depth, "__syncthreads();");
        Ok(())
    }

    fn repeat(&mut self, l: &For, depth: usize) -> Result<(), EmitError> {
        if let Some((block, chain)) = held_reduction(l) {
            return self.reduction(block, &chain, depth);
        }
        let v = self.name(&l.var);
        let axis = |d: usize| ["x", "y", "z"][d];
        let bound = match (l.kind.block(), l.kind.thread()) {
            (Some(d), _) => Some((format!("blockIdx.{}", axis(d)), self.grid[d])),
            (_, Some(d)) => Some((format!("threadIdx.{}", axis(d)), self.block[d])),
            _ => None,
        };
        self.loops.push(l.clone());
        let outcome = match bound {
            Some((source, extent)) => {
                self.line(depth, "{");
                self.line(depth + 1, &format!("const int {v} = {source};"));
                if extent != l.extent {
                    if l.kind.block().is_some() && self.shares(&l.body) {
                        return Err(EmitError::Bound(format!(
                            "only some blocks run loop {}, which uses shared memory",
                            l.var
                        )));
                    }
                    self.line(depth + 1, &format!("if ({v} < {})", l.extent));
                    self.line(depth + 1, "{");
                }
                self.stmt(&l.body, depth + 1)?;
                if extent != l.extent {
                    self.line(depth + 1, "}");
                }
                self.line(depth, "}");
                Ok(())
            }
            None => {
                if l.kind == LoopKind::Unrolled && self.language == Language::Cuda {
                    self.line(depth, "#pragma unroll");
                }
                self.line(depth, &format!("for (int {v} = 0; {v} < {}; {v}++) {{", l.extent));
                let mut outcome = self.stmt(&l.body, depth + 1);
                // The next iteration can overwrite what a slower thread still reads.
                if outcome.is_ok() && !self.in_thread() && self.shares(&l.body) {
                    outcome = self.wait(depth + 1);
                }
                self.line(depth, "}");
                outcome
            }
        };
        self.loops.pop();
        outcome
    }

    /// Emits a reduction over directly nested loops, with its value in a register.
    fn reduction(&mut self, block: &Block, chain: &[For], depth: usize) -> Result<(), EmitError> {
        let (Some(init), Action::Store { buffer, indices, value }) = (&block.init, &block.action) else {
            return Err(EmitError::Program(format!("block {} is not a reduction", block.name)));
        };
        let b = self.find(buffer)?;
        let inner = depth + 1;
        self.open(block, b, depth)?;
        let init = self.expr(init)?;
        self.line(inner, &format!("{} sum = {init};", c_type(b.dtype)));
        for (i, l) in chain.iter().enumerate() {
            let v = self.name(&l.var);
            if l.kind == LoopKind::Unrolled && self.language == Language::Cuda {
                self.line(inner + i, "#pragma unroll");
            }
            self.line(inner + i, &format!("for (int {v} = 0; {v} < {}; {v}++) {{", l.extent));
        }
        self.held = Some(Held { buffer: buffer.clone(), indices: indices.clone() });
        let value = self.stored_value(buffer, indices, value);
        self.held = None;
        self.line(inner + chain.len(), &format!("sum = {};", value?));
        for i in (0..chain.len()).rev() {
            self.line(inner + i, "}");
        }
        self.store(b, indices, "sum", inner)?;
        self.line(depth, "}");
        Ok(())
    }

    fn store(&mut self, b: &Buffer, indices: &[Expr], value: &str, depth: usize) -> Result<(), EmitError> {
        let element = self.element(b, indices)?;
        let value = if self.is_half(b) { format!("tw_narrow({value})") } else { value.to_string() };
        self.line(depth, &format!("{element} = {value};"));
        Ok(())
    }

    /// Opens a block with its guards. If no loop covers a thread or block dimension, only index 0 of that dimension
    /// writes.
    fn open(&mut self, b: &Block, target: &Buffer, depth: usize) -> Result<(), EmitError> {
        let mut guards = Vec::new();
        for g in &b.guards {
            if interval(g, &self.bounds) != Some((1, 1)) {
                guards.push(self.expr(g)?);
            }
        }
        for d in 0..3 {
            let axis = ["x", "y", "z"][d];
            let thread = self.loops.iter().any(|l| l.kind.thread() == Some(d));
            if self.block[d] > 1 && !thread && target.scope != Scope::Local {
                guards.push(format!("threadIdx.{axis} == 0"));
            }
            let block = self.loops.iter().any(|l| l.kind.block() == Some(d));
            if self.grid[d] > 1 && !block && target.scope == Scope::Global {
                guards.push(format!("blockIdx.{axis} == 0"));
            }
        }
        let head = if guards.is_empty() { "{".to_string() } else { format!("if ({}) {{", guards.join(" && ")) };
        self.line(depth, &head);
        Ok(())
    }

    fn leaf(&mut self, b: &Block, depth: usize) -> Result<(), EmitError> {
        let Action::Store { buffer, indices, value } = &b.action else {
            return Err(EmitError::Program(format!("block {} calls an unknown intrinsic", b.name)));
        };
        let target = self.find(buffer)?;
        self.open(b, target, depth)?;
        if let Some(init) = &b.init {
            let first: Vec<String> =
                b.reduce.iter().map(|v| Ok(format!("{} == 0", self.var(v)?))).collect::<Result<_, EmitError>>()?;
            let init = self.expr(init)?;
            self.line(
                depth + 1,
                &format!("if ({})", if first.is_empty() { "true".into() } else { first.join(" && ") }),
            );
            self.store(target, indices, &init, depth + 2)?;
        }
        let value = self.stored_value(buffer, indices, value)?;
        self.store(target, indices, &value, depth + 1)?;
        self.line(depth, "}");
        Ok(())
    }
}

/// Returns the extents of a shared buffer in memory. Rows have an odd number of elements, so that threads in different
/// rows use different banks.
fn pitched(shape: &[i64]) -> Vec<i64> {
    let mut shape = shape.to_vec();
    if let [.., _, last] = shape.as_mut_slice() {
        *last |= 1;
    }
    shape
}

/// Returns the statement with calls of intrinsics expanded.
fn expanded(f: &Function, s: &Stmt) -> Stmt {
    match s {
        Stmt::Seq(items) => Stmt::Seq(items.iter().map(|s| expanded(f, s)).collect()),
        Stmt::For(l) => Stmt::For(For { body: Box::new(expanded(f, &l.body)), ..l.clone() }),
        Stmt::Block(b) => match &b.action {
            Action::Call { intrinsic, args } => match f.intrinsic(intrinsic) {
                Some(i) => expand_call(i, args, &b.guards),
                None => s.clone(),
            },
            Action::Store { .. } => s.clone(),
        },
    }
}

/// Returns the block and loops of a reduction if it consists of exactly these directly nested loops.
fn held_reduction(l: &For) -> Option<(&Block, Vec<For>)> {
    let mut chain = vec![l.clone()];
    let mut body = &*l.body;
    while let Stmt::For(inner) = body {
        chain.push(inner.clone());
        body = &inner.body;
    }
    let Stmt::Block(b) = body else { return None };
    let Action::Store { indices, .. } = &b.action else { return None };
    let serial = chain.iter().all(|l| l.kind.block().or(l.kind.thread()).is_none());
    let all = chain.len() == b.reduce.len() && chain.iter().all(|l| b.reduce.contains(&l.var));
    let outside = |e: &Expr| !chain.iter().any(|l| e.uses(&l.var));
    let fits = b.init.is_some() && serial && all && indices.iter().chain(&b.guards).all(outside);
    fits.then_some((b, chain))
}
