//! [`LlvmBackend`]: compiles regions of a graph to object code for a processor.

use std::collections::HashMap;
use std::path::PathBuf;
use std::sync::{Arc, Mutex, PoisonError};
use tilewright_runtime::artifact::Place;

use inkwell::context::Context;
use tilewright_compiler::backend::{
    Backend, BackendError, Entry, Listing, ObjectCode, Operand, OwnConstant, in_region,
};
use tilewright_compiler::codegen::accel::space::{Decisions, Space};
use tilewright_compiler::graph::{DType, Graph, NodeId, Op};
use tilewright_compiler::groups::{groups, is_elementwise};
use tilewright_compiler::records::{Records, Replay, Workload};
use tilewright_compiler::schedule::{Source, Step, hoist};
use tilewright_compiler::te::{Program, ops};
use tilewright_compiler::tir;

use crate::aside::{Wanted, aside};
use crate::constants::Constants;
use crate::emit::{Open, emit, emit_open};
use crate::schedule::{Tile, TileSpace, scheduled};
use crate::{EmitError, Processor, cache, shared};

/// Compiles graphs to CPU code, by default for this machine.
#[derive(Debug, Clone)]
pub struct LlvmBackend {
    processor: Processor,
    cache: Option<PathBuf>,
    symbols: String,
    /// Whether code is shared by shapes.
    shared: bool,
    records: Option<Arc<Records>>,
    /// How the code compiled so far uses the records.
    replay: Arc<Mutex<Replay>>,
}

/// A layer whose code has decisions.
#[derive(Debug, Clone, PartialEq)]
pub struct TunedLayer {
    /// Its nodes.
    pub nodes: Vec<NodeId>,
    /// What determines its time: the processor, the computation and its shapes, but no values.
    pub workload: Workload,
    /// The decisions with their possible values.
    pub space: Space,
    /// The decisions without records.
    pub decisions: Decisions,
}

/// Default prefix of function names.
const SYMBOLS: &str = "tw";

impl LlvmBackend {
    /// Creates a backend for this machine.
    ///
    /// # Errors
    /// [`BackendError::Toolchain`] if LLVM cannot generate code for it.
    pub fn new() -> Result<LlvmBackend, BackendError> {
        let processor =
            Processor::detect().map_err(|e| BackendError::Toolchain { backend: "cpu", message: e.to_string() })?;
        Ok(LlvmBackend::for_processor(processor))
    }

    /// Creates a backend for another processor. Values computed at compile time, such as packed weights, use code for
    /// this machine if it cannot run the other processor's code.
    pub fn for_processor(processor: Processor) -> LlvmBackend {
        let (symbols, replay) = (SYMBOLS.into(), Arc::default());
        LlvmBackend { processor, cache: None, symbols, shared: false, records: None, replay }
    }

    /// Returns a backend for this machine with the same cache.
    pub(crate) fn here(&self) -> Result<LlvmBackend, BackendError> {
        Ok(LlvmBackend { cache: self.cache.clone(), ..LlvmBackend::new()? })
    }

    /// Caches generated code in a folder.
    pub fn with_cache(self, folder: impl Into<PathBuf>) -> LlvmBackend {
        LlvmBackend { cache: Some(folder.into()), ..self }
    }

    /// Makes code that functions of the same structure share, whatever their extents, if there is a cache
    /// ([`shared`](crate::shared)). The first one of a structure gets code of its own.
    #[must_use]
    pub fn for_any_shape(self) -> LlvmBackend {
        LlvmBackend { shared: true, ..self }
    }

    /// Uses the decisions of records for layers that have one, and counts anew which are used.
    pub fn with_records(self, records: Records) -> LlvmBackend {
        let records = Some(Arc::new(records)).filter(|records| !records.is_empty());
        LlvmBackend { records, replay: Arc::default(), ..self }
    }

    /// Returns the layers whose code has decisions, in the order of the graph.
    pub fn layers(&self, graph: &Graph, nodes: &[NodeId]) -> Vec<TunedLayer> {
        let layer = |group: Vec<NodeId>| {
            let (tile, space) = Tile::of(graph, *group.first()?, &self.for_group(graph, &group))?;
            let workload = self.workload(graph, &group)?;
            Some(TunedLayer { nodes: group, workload, space: space.space(&tile), decisions: space.decisions(&tile) })
        };
        groups(graph, nodes, MOST_JOINED, joins).into_iter().filter_map(layer).collect()
    }

    /// What determines the time of a group of nodes; `None` if there is no code for it.
    fn workload(&self, graph: &Graph, group: &[NodeId]) -> Option<Workload> {
        let outputs = &graph.node(*group.last()?).outputs;
        let region = ops::program(graph, "layer", group, outputs).ok()?;
        Some(Workload::new(&format!("{}on {}", region.program, self.processor.key())))
    }

    /// Returns the tile of a group's record, or else the given one.
    fn tuned(&self, graph: &Graph, group: &[NodeId], (tile, space): (Tile, TileSpace), replay: &mut Replay) -> Tile {
        let Some(records) = &self.records else { return tile };
        let workload = self.workload(graph, group);
        match workload.and_then(|workload| Some(space.tile(&tile, records.anywhere(&workload)?))) {
            Some(Ok(tuned)) => {
                replay.used += 1;
                return tuned;
            }
            Some(Err(reason)) => *replay.refused.entry(reason).or_default() += 1,
            None => {}
        }
        tile
    }

    /// The processor for the function of these nodes.
    fn for_group(&self, graph: &Graph, group: &[NodeId]) -> Processor {
        let values = group.iter().flat_map(|id| graph.node(*id).inputs.iter().chain(&graph.node(*id).outputs));
        let floats = values.into_iter().any(|value| graph.ty(*value).dtype.is_float());
        self.processor.for_function(floats)
    }

    /// Sets the prefix of function names, which must start like an identifier.
    pub fn with_symbols(self, prefix: &str) -> LlvmBackend {
        LlvmBackend { symbols: prefix.into(), ..self }
    }

    /// Returns the processor that code is generated for.
    pub fn processor(&self) -> &Processor {
        &self.processor
    }
}

/// Compiles loop programs into one object. Returns its bytes, and the workspace size of each function in bytes.
///
/// # Errors
/// The index of the function that failed, and why.
pub fn compile_functions(
    processor: &Processor,
    functions: &[(String, tir::Function)],
) -> Result<(Vec<u8>, Vec<usize>), (usize, EmitError)> {
    let functions = functions.iter().map(|(symbol, f)| (symbol.clone(), f.clone(), Open::default()));
    compile_open(processor, functions.collect())
}

/// Like [`compile_functions`], but some numbers of each program are arguments. The workspace sizes that it returns hold
/// for the numbers that the program has now.
///
/// # Errors
/// The same as [`compile_functions`].
pub(crate) fn compile_open(
    processor: &Processor,
    functions: Vec<(String, tir::Function, Open)>,
) -> Result<(Vec<u8>, Vec<usize>), (usize, EmitError)> {
    let (processor, all) = (processor.clone(), functions.len());
    let compile = move |wanted: &Wanted| {
        let context = Context::create();
        let module = context.create_module("tilewright");
        let mut workspaces = Vec::new();
        for (i, (symbol, f, open)) in functions.iter().enumerate() {
            wanted.check().map_err(|e| (i, e.into()))?;
            workspaces.push(emit_open(&context, &module, &processor, symbol, f, open).map_err(|e| (i, e))?);
        }
        wanted.check().map_err(|e| (all, e.into()))?;
        let bytes = processor.object(&module).map_err(|e| (all, e))?;
        Ok((bytes, workspaces))
    };
    aside(compile).map_err(|e| (all, e))?
}

/// Most nodes in one function. Each stage is scheduled in view of all others, so scheduling time grows with the square
/// of their number.
const MOST_JOINED: usize = 64;

impl Backend for LlvmBackend {
    fn name(&self) -> &'static str {
        "cpu"
    }

    fn place(&self) -> Place {
        Place::Cpu
    }

    fn of_region(&self, number: usize) -> Box<dyn Backend> {
        Box::new(self.clone().with_symbols(&in_region(&self.symbols, number)))
    }

    fn compile(&self, graph: &Graph, nodes: &[NodeId]) -> Result<ObjectCode, BackendError> {
        let Planned { functions, mut entries, code_of, own, replay, .. } = self.plan(graph, nodes)?;
        self.replay.lock().unwrap_or_else(PoisonError::into_inner).add(replay);
        let failed = |i: usize, e: EmitError| {
            let entry = functions.get(i).map_or("the whole region", |f| f.0.as_str()).to_string();
            BackendError::Codegen { entry, message: e.to_string() }
        };
        let target = format!("{} {} {}", self.processor.triple, self.processor.cpu, self.processor.features);
        let mut constants = own.compute(graph, self)?;
        let Some(cache) = self.cache.as_ref().filter(|_| self.shared) else {
            let (bytes, workspaces) = self.code(&functions).map_err(|(i, e)| failed(i, e))?;
            for (e, place) in entries.iter_mut().zip(code_of) {
                e.workspace_bytes = workspaces[place];
            }
            return Ok(ObjectCode { objects: vec![bytes], target, entries, constants });
        };
        let mut objects = Vec::with_capacity(functions.len());
        let mut made = Vec::with_capacity(functions.len());
        for (i, (symbol, function)) in functions.iter().enumerate() {
            let code = shared::code(cache, &self.processor, function).map_err(|e| failed(i, e))?;
            objects.push(code.object);
            let mut further = Vec::new();
            let bytes = |words: &[i64]| words.iter().flat_map(|n| n.to_le_bytes()).collect();
            let floats = |list: &[f32]| list.iter().flat_map(|x| x.to_le_bytes()).collect();
            for (what, dtype, count, bytes) in [
                ("sizes", DType::I64, code.sizes.len(), bytes(&code.sizes)),
                ("factors", DType::F32, code.numbers.len(), floats(&code.numbers)),
            ] {
                if count > 0 {
                    further.push(Operand::Own(constants.len()));
                    constants.push(OwnConstant { name: format!("{symbol} {what}"), dtype, shape: vec![count], bytes });
                }
            }
            made.push((further, code.workspace_bytes));
        }
        for (e, place) in entries.iter_mut().zip(code_of) {
            let (further, workspace_bytes) = &made[place];
            (e.symbol, e.object, e.workspace_bytes) = (shared::SYMBOL.into(), place, *workspace_bytes);
            e.inputs.extend(further);
        }
        Ok(ObjectCode { objects, target, entries, constants })
    }

    fn replay(&self) -> Replay {
        self.replay.lock().unwrap_or_else(PoisonError::into_inner).clone()
    }

    fn forms(&self) -> &'static [&'static str] {
        &[LLVM, ASM]
    }

    fn listings(&self, graph: &Graph, nodes: &[NodeId], forms: &[&str]) -> Result<Vec<Listing>, BackendError> {
        let Planned { functions, sources, entries, code_of, .. } = self.plan(graph, nodes)?;
        let listing = |(entry, place): (Entry, usize)| {
            let ((symbol, function), (program, steps)) = (&functions[place], &sources[place]);
            let mut code = Vec::new();
            for form in self.forms().iter().filter(|form| forms.contains(form)) {
                let text = self.text(symbol, function, form);
                let text = text.map_err(|e| BackendError::Codegen { entry: symbol.clone(), message: e.to_string() })?;
                code.push((*form, text));
            }
            let (program, steps, function) = (program.clone(), steps.clone(), function.clone());
            Ok(Listing { nodes: entry.nodes, program, steps, function, code })
        };
        entries.into_iter().zip(code_of).map(listing).collect()
    }
}

/// Forms of code that are listed: LLVM IR before LLVM's passes, and assembly.
const LLVM: &str = "llvm";
const ASM: &str = "asm";

/// The plan for compiling a region.
pub(crate) struct Planned {
    /// Scheduled functions with their symbols.
    pub(crate) functions: Vec<(String, tir::Function)>,
    /// For each function, the tensor expression and the steps that it comes from.
    sources: Vec<(Program, Vec<Step>)>,
    entries: Vec<Entry>,
    /// For each entry, the index of its function.
    code_of: Vec<usize>,
    own: Constants,
    /// How records are used.
    replay: Replay,
}

impl LlvmBackend {
    /// Returns the code of one function as text.
    fn text(&self, symbol: &str, function: &tir::Function, form: &str) -> Result<String, EmitError> {
        let context = Context::create();
        let module = context.create_module(symbol);
        emit(&context, &module, &self.processor, symbol, function)?;
        match form {
            LLVM => Ok(module.print_to_string().to_string()),
            _ => self.processor.assembly(&module),
        }
    }

    /// Compiles loop programs into one object, or takes it from the cache. Also returns the workspace size of each
    /// function in bytes.
    ///
    /// # Errors
    /// The same as [`compile_functions`].
    pub(crate) fn code(&self, functions: &[(String, tir::Function)]) -> Result<cache::Code, (usize, EmitError)> {
        let kept = self.cache.as_ref().map(|cache| cache::Entry::of(cache, &self.processor, functions));
        if let Some(code) = kept.as_ref().and_then(cache::Entry::read) {
            return Ok(code);
        }
        let code = compile_functions(&self.processor, functions)?;
        kept.inspect(|kept| kept.write(&code));
        Ok(code)
    }

    /// Plans the functions of a region and what they read.
    ///
    /// # Errors
    /// The same as [`Backend::compile`].
    pub(crate) fn plan(&self, graph: &Graph, nodes: &[NodeId]) -> Result<Planned, BackendError> {
        let mut functions: Vec<(String, tir::Function)> = Vec::new();
        let mut sources = Vec::new();
        // Networks repeat their blocks. Nodes with the same computation on the same shapes share a function.
        let mut known: HashMap<String, usize> = HashMap::new();
        let mut own = Constants::default();
        let (mut entries, mut code_of, mut replay) = (Vec::new(), Vec::new(), Replay::default());
        for group in groups(graph, nodes, MOST_JOINED, joins) {
            let last = *group.last().unwrap_or(&nodes[0]);
            let node = graph.node(last);
            let symbol = format!("{}_{}_{}", self.symbols, last.0, node.op.name());
            let unsupported =
                |e: String| BackendError::Unsupported { node: node.name.clone(), op: node.op.name().into(), reason: e };
            let processor = self.for_group(graph, &group);
            let tile = group.first().and_then(|product| Tile::of(graph, *product, &processor));
            let tile = tile.map(|tile| self.tuned(graph, &group, tile, &mut replay));
            let blocks = |id: NodeId| tile.filter(|_| group.first() == Some(&id)).map(|tile| tile.blocks());
            let region = ops::program_in_blocks(graph, "entry", &group, &node.outputs, &blocks);
            let region = region.map_err(|e| unsupported(e.to_string()))?;
            let function = tir::lower(&region.program).map_err(|e| unsupported(e.to_string()))?;
            let constant: Vec<bool> = region.inputs.iter().map(|v| graph.constant(*v).is_some()).collect();
            let hoisted = hoist(function, &constant);
            let parts: Vec<usize> = hoisted.parts.iter().map(|part| own.add(part.clone(), &region.inputs)).collect();
            let inputs = hoisted.inputs.iter().map(|source| match source {
                Source::Input(i) => Operand::Value(region.inputs[*i]),
                Source::Part(p) => Operand::Own(parts[*p]),
            });
            let inputs = inputs.collect();
            let place = *known.entry(format!("{}{tile:?}", hoisted.rest)).or_insert_with(|| {
                let program = hoisted.program(&region.program);
                let scheduled = scheduled(hoisted.rest, tile.as_ref());
                sources.push((program, scheduled.trace().to_vec()));
                functions.push((symbol, scheduled.into_function()));
                functions.len() - 1
            });
            let symbol = functions[place].0.clone();
            code_of.push(place);
            entries.push(Entry {
                symbol,
                nodes: group,
                inputs,
                outputs: region.outputs,
                object: 0,
                workspace_bytes: 0,
            });
        }
        Ok(Planned { functions, sources, entries, code_of, own, replay })
    }
}

/// Returns whether an operator computes one element at a time, so that it can be inlined where its result is read.
fn joins(op: &Op) -> bool {
    is_elementwise(op) && !matches!(op, Op::Select(_))
}
