//! Translates loop programs to LLVM IR.
//!
//! A function becomes two: the packed function that callers see, which unpacks pointers and lays out the workspace, and
//! an inner function whose parameters are the buffers, marked as not aliasing each other. The body of a parallel loop
//! becomes a function of its own that the thread pool calls.

mod dot;
mod expr;
mod memory;
mod num;
mod open;
mod strict;
mod value;

use std::collections::BTreeMap;

use inkwell::AddressSpace;
use inkwell::attributes::{Attribute, AttributeLoc};
use inkwell::builder::Builder;
use inkwell::context::Context;
use inkwell::module::{Linkage, Module};
use inkwell::types::BasicMetadataTypeEnum;
use inkwell::values::{FunctionValue, IntValue, PointerValue, VectorValue};
use tilewright_compiler::te::{Expr, Name};
use tilewright_compiler::tir::{Action, Block, Buffer, For, Function, LoopKind, Stmt, expand_call};

use crate::{Architecture, EmitError, Processor};
pub(crate) use open::{NUMBERS, Open, SIZES, size};
use value::{IntOp, Value};

/// Alignment of each buffer in the workspace.
const ALIGN: usize = 64;

/// Adds a function to a module as the packed function `symbol`. Returns the size of its workspace in bytes.
///
/// # Errors
/// [`EmitError`] if LLVM rejects it or CPU code does not support a construct.
pub fn emit<'c>(
    context: &'c Context,
    module: &Module<'c>,
    processor: &Processor,
    symbol: &str,
    f: &Function,
) -> Result<usize, EmitError> {
    emit_open(context, module, processor, symbol, f, &Open::default())
}

/// Like [`emit`], but some numbers of the function are arguments. The workspace size that it returns holds for the
/// numbers that `f` has now.
pub(crate) fn emit_open<'c>(
    context: &'c Context,
    module: &Module<'c>,
    processor: &Processor,
    symbol: &str,
    f: &Function,
    open: &Open,
) -> Result<usize, EmitError> {
    let processor = &processor.for_function(has_floats(f));
    let builder = context.create_builder();
    let ptr = context.ptr_type(AddressSpace::default());
    let (places, bytes) = open.workspace(f);
    let global: Vec<&Buffer> =
        f.params.iter().chain(f.locals.iter().zip(&places).filter(|p| p.1.is_some()).map(|p| p.0)).collect();

    // The inner function.
    let args: Vec<BasicMetadataTypeEnum> = global.iter().map(|_| ptr.into()).collect();
    let name = format!("{symbol}.body");
    let inner = module.add_function(&name, context.void_type().fn_type(&args, false), Some(Linkage::Internal));
    mark_buffers(context, processor, inner, global.len() as u32);
    builder.position_at_end(context.append_basic_block(inner, "entry"));
    let mut e = Emitter {
        context,
        module,
        builder,
        processor,
        symbol,
        function: f,
        open,
        llvm: inner,
        buffers: BTreeMap::new(),
        vars: BTreeMap::new(),
        lane: None,
        mask: None,
        tasks: 0,
        reassociate: false,
    };
    for (i, b) in global.iter().enumerate() {
        let p = inner.get_nth_param(i as u32).ok_or_else(|| EmitError::Llvm("a parameter is missing".into()))?;
        e.buffers.insert(b.name.clone(), p.into_pointer_value());
    }
    for b in f.locals.iter().filter(|b| open.on_stack(b)) {
        e.allocate(b)?;
    }
    e.load_sizes()?;
    e.stmt(&f.body)?;
    e.builder.build_return(None)?;

    // The packed function.
    let i32t = context.i32_type();
    let outer = module.add_function(symbol, i32t.fn_type(&[ptr.into()], false), None);
    processor.mark(context, outer);
    let b = &e.builder;
    b.position_at_end(context.append_basic_block(outer, "entry"));
    let list =
        outer.get_first_param().ok_or_else(|| EmitError::Llvm("a parameter is missing".into()))?.into_pointer_value();
    let element = |i: usize| -> Result<PointerValue<'c>, EmitError> {
        // SAFETY: the caller passes as many pointers as `backend.rs` of the compiler specifies, which is more than `i`.
        let at = unsafe { b.build_in_bounds_gep(ptr, list, &[context.i64_type().const_int(i as u64, false)], "")? };
        Ok(b.build_load(ptr, at, "")?.into_pointer_value())
    };
    let mut args = Vec::new();
    for i in 0..f.params.len() {
        args.push(element(i)?.into());
    }
    let base = element(f.params.len())?;
    let offsets = open.offsets(f);
    for (at, place) in places.into_iter().flatten().enumerate() {
        let mut offset = context.i64_type().const_int(place as u64, false);
        if offsets > 0 {
            let sizes = f.params.iter().position(|b| b.name.as_str() == SIZES);
            let sizes =
                sizes.and_then(|at| args.get(at)).copied().ok_or_else(|| EmitError::Program("no sizes".into()))?;
            offset = open::word(context, b, sizes, open.sizes + at)?;
        }
        // SAFETY: the caller's workspace has the size that this function returns, so every offset is inside it.
        let at = unsafe { b.build_in_bounds_gep(context.i8_type(), base, &[offset], "")? };
        args.push(at.into());
    }
    b.build_call(inner, &args, "")?;
    b.build_return(Some(&i32t.const_zero()))?;
    Ok(bytes)
}

/// Whether a function computes with floats.
fn has_floats(f: &Function) -> bool {
    let mut found = f.params.iter().chain(&f.locals).any(|buffer| buffer.dtype.is_float());
    f.body.visit_blocks(&mut |_, block| block.each_expr(&mut |e| e.visit(&mut |e| found |= e.dtype().is_float())));
    found
}

fn mark_buffers(context: &Context, processor: &Processor, f: FunctionValue<'_>, buffers: u32) {
    processor.mark(context, f);
    for (key, places) in
        [("noalias", AttributeLoc::Param as fn(u32) -> AttributeLoc), ("nocapture", AttributeLoc::Param)]
    {
        let id = Attribute::get_named_enum_kind_id(key);
        for i in 0..buffers {
            f.add_attribute(places(i), context.create_enum_attribute(id, 0));
        }
    }
    let noinline = Attribute::get_named_enum_kind_id("noinline");
    f.add_attribute(AttributeLoc::Function, context.create_enum_attribute(noinline, 0));
}

/// The state of emitting one LLVM function.
struct Emitter<'a, 'c> {
    context: &'c Context,
    module: &'a Module<'c>,
    builder: Builder<'c>,
    processor: &'a Processor,
    symbol: &'a str,
    function: &'a Function,
    open: &'a Open,
    llvm: FunctionValue<'c>,
    buffers: BTreeMap<Name, PointerValue<'c>>,
    vars: BTreeMap<Name, Value<'c>>,
    /// The enclosing vectorized loop and its number of lanes.
    lane: Option<(Name, u32)>,
    /// The lanes that the enclosing guards allow to write.
    mask: Option<VectorValue<'c>>,
    /// Number of parallel loops so far.
    tasks: usize,
    /// Whether the current sum can be evaluated in any order.
    reassociate: bool,
}

impl<'c> Emitter<'_, 'c> {
    fn i64(&self, v: i64) -> IntValue<'c> {
        self.context.i64_type().const_int(v as u64, true)
    }

    fn stmt(&mut self, s: &Stmt) -> Result<(), EmitError> {
        match s {
            Stmt::Seq(items) => items.iter().try_for_each(|s| self.stmt(s)),
            Stmt::For(l) if l.extent < 1 && !self.open.extents.contains_key(&l.var) => Ok(()),
            Stmt::For(l) => match l.kind {
                LoopKind::Unrolled => (0..l.extent).try_for_each(|i| {
                    self.vars.insert(l.var.clone(), self.i64(i).into());
                    self.stmt(&l.body)
                }),
                _ if l.extent == 1 && !self.open.extents.contains_key(&l.var) => {
                    self.vars.insert(l.var.clone(), self.i64(0).into());
                    self.stmt(&l.body)
                }
                LoopKind::Parallel if self.has_threads() && self.lane.is_none() && !self.shares_scratch(l) => {
                    self.parallel(l)
                }
                LoopKind::Vectorized if self.lane.is_none() && self.vectorizes(&l.body, &l.var) => self.vectorized(l),
                _ => self.repeat(l),
            },
            Stmt::Block(b) => self.block(b),
        }
    }

    /// Whether loops are shared between threads. WebAssembly has none.
    fn has_threads(&self) -> bool {
        self.processor.architecture() != Architecture::Wasm
    }

    /// Emits a loop that tests its condition at the end, because it has at least one iteration.
    fn repeat(&mut self, l: &For) -> Result<(), EmitError> {
        let extent = self.extent(l)?;
        let before = self.builder.get_insert_block().ok_or_else(|| EmitError::Llvm("no block".into()))?;
        let body = self.context.append_basic_block(self.llvm, l.var.as_str());
        let after = self.context.append_basic_block(self.llvm, &format!("{}.end", l.var));
        self.builder.build_unconditional_branch(body)?;
        self.builder.position_at_end(body);
        let phi = self.builder.build_phi(self.context.i64_type(), l.var.as_str())?;
        let i = phi.as_basic_value().into_int_value();
        self.vars.insert(l.var.clone(), i.into());
        self.stmt(&l.body)?;
        let next = self.builder.build_int_nuw_add(i, self.i64(1), "")?;
        let more = self.builder.build_int_compare(inkwell::IntPredicate::ULT, next, extent, "")?;
        let end = self.builder.get_insert_block().ok_or_else(|| EmitError::Llvm("no block".into()))?;
        self.builder.build_conditional_branch(more, body, after)?;
        phi.add_incoming(&[(&self.i64(0), before), (&next, end)]);
        self.builder.position_at_end(after);
        Ok(())
    }

    /// Emits a loop whose iterations are vector lanes.
    fn vectorized(&mut self, l: &For) -> Result<(), EmitError> {
        let lanes: Vec<IntValue<'c>> = (0..l.extent).map(|i| self.i64(i)).collect();
        self.vars.insert(l.var.clone(), inkwell::types::VectorType::const_vector(&lanes).into());
        self.lane = Some((l.var.clone(), l.extent as u32));
        let done = self.stmt(&l.body);
        self.lane = None;
        self.vars.remove(&l.var);
        done
    }

    /// Returns the local buffers that are used only within the loop.
    fn own_buffers(&self, l: &For) -> Vec<&Buffer> {
        let uses = |s: &Stmt| -> BTreeMap<Name, usize> {
            let mut n = BTreeMap::new();
            s.visit_blocks(&mut |_, b| {
                let mut add = |name: &Name| *n.entry(name.clone()).or_insert(0) += 1;
                b.each_expr(&mut |e| {
                    e.visit(&mut |e| {
                        if let Expr::Load { buffer, .. } = e {
                            add(buffer);
                        }
                    });
                });
                match &b.action {
                    Action::Store { buffer, .. } => add(buffer),
                    Action::Call { args, .. } => args.iter().for_each(|v| add(&v.buffer)),
                }
            });
            n
        };
        let (inside, all) = (uses(&l.body), uses(&self.function.body));
        let own = |b: &&Buffer| inside.get(&b.name).is_some_and(|n| all.get(&b.name) == Some(n));
        self.function.locals.iter().filter(own).collect()
    }

    /// Returns whether the loop is the only user of a workspace buffer. Its iterations would share one copy.
    fn shares_scratch(&self, l: &For) -> bool {
        self.own_buffers(l).iter().any(|b| !self.open.on_stack(b))
    }

    /// Allocates a buffer on the stack of the current function.
    fn allocate(&mut self, b: &Buffer) -> Result<(), EmitError> {
        let ty = self.context.i8_type().array_type((b.size_bytes() as u32).max(1));
        let p = self.builder.build_alloca(ty, b.name.as_str())?;
        if let Some(i) = p.as_instruction() {
            i.set_alignment(ALIGN as u32).map_err(|e| EmitError::Llvm(e.to_string()))?;
        }
        self.buffers.insert(b.name.clone(), p);
        Ok(())
    }

    /// Emits `tw_parallel_for(task, context, extent)`. The context holds the buffers and the outer variables.
    fn parallel(&mut self, l: &For) -> Result<(), EmitError> {
        let (context, module, extent) = (self.context, self.module, self.extent(l)?);
        let (ptr, i64t, void) = (context.ptr_type(AddressSpace::default()), context.i64_type(), context.void_type());
        // Each iteration gets its own copy of a stack buffer that only the body uses.
        let own: Vec<Buffer> = self.own_buffers(l).into_iter().cloned().collect();
        let shared = self.buffers.iter().filter(|(n, _)| own.iter().all(|b| b.name != **n));
        let buffers: Vec<(Name, PointerValue<'c>)> = shared.map(|(n, p)| (n.clone(), *p)).collect();
        let vars: Vec<(Name, Value<'c>)> = self.vars.iter().map(|(n, v)| (n.clone(), *v)).collect();
        let name = format!("{}.task{}", self.symbol, self.tasks);
        self.tasks += 1;

        // The body, over buffers and variables.
        let mut args: Vec<BasicMetadataTypeEnum> = buffers.iter().map(|_| ptr.into()).collect();
        args.extend(vars.iter().map(|_| BasicMetadataTypeEnum::from(i64t)));
        args.push(i64t.into());
        let work = module.add_function(&format!("{name}.body"), void.fn_type(&args, false), Some(Linkage::Internal));
        mark_buffers(context, self.processor, work, buffers.len() as u32);
        let missing = || EmitError::Llvm("a parameter is missing".into());
        let mut inner = Emitter {
            context,
            module,
            builder: context.create_builder(),
            processor: self.processor,
            symbol: &name,
            function: self.function,
            open: self.open,
            llvm: work,
            buffers: BTreeMap::new(),
            vars: BTreeMap::new(),
            lane: None,
            mask: None,
            tasks: 0,
            reassociate: false,
        };
        for (i, (n, _)) in buffers.iter().enumerate() {
            let p = work.get_nth_param(i as u32).ok_or_else(missing)?.into_pointer_value();
            inner.buffers.insert(n.clone(), p);
        }
        let outer_and_own = vars.iter().map(|v| &v.0).chain(std::iter::once(&l.var));
        for (i, n) in outer_and_own.enumerate() {
            let v = work.get_nth_param((buffers.len() + i) as u32).ok_or_else(missing)?;
            inner.vars.insert(n.clone(), v);
        }
        inner.builder.position_at_end(context.append_basic_block(work, "entry"));
        for b in &own {
            inner.allocate(b)?;
        }
        inner.stmt(&l.body)?;
        inner.builder.build_return(None)?;

        // The task that the pool calls unpacks the context.
        let task = module.add_function(&name, void.fn_type(&[ptr.into(), i64t.into()], false), Some(Linkage::Internal));
        self.processor.mark(context, task);
        let b = context.create_builder();
        b.position_at_end(context.append_basic_block(task, "entry"));
        let list = task.get_first_param().ok_or_else(missing)?.into_pointer_value();
        let mut call = Vec::new();
        for i in 0..buffers.len() + vars.len() {
            // SAFETY: the context below has this many words.
            let at = unsafe { b.build_in_bounds_gep(i64t, list, &[i64t.const_int(i as u64, false)], "")? };
            if i < buffers.len() {
                call.push(b.build_load(ptr, at, "")?.into());
            } else {
                call.push(b.build_load(i64t, at, "")?.into());
            }
        }
        call.push(task.get_nth_param(1).ok_or_else(missing)?.into());
        b.build_call(work, &call, "")?;
        b.build_return(None)?;

        // The call.
        let pool = module.get_function("tw_parallel_for").unwrap_or_else(|| {
            let ty = void.fn_type(&[ptr.into(), ptr.into(), i64t.into()], false);
            module.add_function("tw_parallel_for", ty, None)
        });
        let b = &self.builder;
        let words = i64t.array_type((buffers.len() + vars.len()) as u32);
        let list = b.build_alloca(words, "context")?;
        for i in 0..buffers.len() + vars.len() {
            // SAFETY: the array has this many words.
            let at = unsafe { b.build_in_bounds_gep(i64t, list, &[i64t.const_int(i as u64, false)], "")? };
            match buffers.get(i) {
                Some((_, p)) => b.build_store(at, *p)?,
                None => b.build_store(at, vars[i - buffers.len()].1)?,
            };
        }
        let task = task.as_global_value().as_pointer_value();
        b.build_call(pool, &[task.into(), list.into(), extent.into()], "")?;
        Ok(())
    }

    fn block(&mut self, b: &Block) -> Result<(), EmitError> {
        let (buffer, indices, value) = match &b.action {
            Action::Store { buffer, indices, value } => (buffer, indices, value),
            Action::Call { intrinsic, args } => {
                let Some(i) = self.function.intrinsic(intrinsic) else {
                    return Err(EmitError::Program(format!("block {} calls an unknown intrinsic {intrinsic}", b.name)));
                };
                if b.guards.is_empty() && self.lane.is_none() && self.dot(&i.clone(), args)? {
                    return Ok(());
                }
                // Expand an intrinsic of another machine by its description.
                return self.stmt(&expand_call(i, args, &b.guards));
            }
        };
        let end = self.guarded(&b.guards)?;
        let Some(target) = self.function.buffer(buffer).cloned() else {
            return Err(EmitError::Program(format!("block {} writes an unknown buffer {buffer}", b.name)));
        };
        if let Some(init) = &b.init {
            let mut first = self.context.bool_type().const_int(1, false);
            for r in &b.reduce {
                let v = self.vars[r].into_int_value();
                let zero = self.builder.build_int_compare(inkwell::IntPredicate::EQ, v, self.i64(0), "")?;
                first = self.builder.build_and(first, zero, "")?;
            }
            let (body, end) = self.branch_blocks("init");
            self.builder.build_conditional_branch(first, body, end)?;
            self.builder.position_at_end(body);
            let v = self.expr(init)?;
            self.store(&target, indices, v)?;
            self.builder.build_unconditional_branch(end)?;
            self.builder.position_at_end(end);
        }
        // A float sum of products can be reordered. Everything else is computed as written.
        self.reassociate = !b.reduce.is_empty()
            && target.dtype.is_float()
            && matches!(value, Expr::Binary(tilewright_compiler::te::BinOp::Add, _, v)
                if matches!(&**v, Expr::Binary(tilewright_compiler::te::BinOp::Mul, ..)));
        let v = self.expr(value)?;
        self.reassociate = false;
        self.store(&target, indices, v)?;
        self.mask = None;
        if let Some(end) = end {
            self.builder.build_unconditional_branch(end)?;
            self.builder.position_at_end(end);
        }
        Ok(())
    }

    /// Emits a branch around code that runs only if the guards hold; in a vectorized loop, sets the mask of lanes.
    /// Returns the block after the guarded code.
    fn guarded(&mut self, guards: &[Expr]) -> Result<Option<inkwell::basic_block::BasicBlock<'c>>, EmitError> {
        if guards.is_empty() {
            return Ok(None);
        }
        let mut holds = self.context.bool_type().const_int(1, false);
        let mut mask: Option<Value<'c>> = None;
        for g in guards {
            match self.expr(g)? {
                Value::IntValue(g) => holds = self.builder.build_and(holds, g, "")?,
                g => mask = Some(mask.map_or(Ok(g), |m| self.int(IntOp::And, m, g))?),
            }
        }
        if let Some(m) = mask {
            holds = self.builder.build_and(holds, self.any(m)?, "")?;
            self.mask = Some(m.into_vector_value());
        }
        let (body, end) = self.branch_blocks("where");
        self.builder.build_conditional_branch(holds, body, end)?;
        self.builder.position_at_end(body);
        Ok(Some(end))
    }

    fn branch_blocks(
        &self,
        name: &str,
    ) -> (inkwell::basic_block::BasicBlock<'c>, inkwell::basic_block::BasicBlock<'c>) {
        let body = self.context.append_basic_block(self.llvm, name);
        (body, self.context.append_basic_block(self.llvm, &format!("{name}.end")))
    }
}
