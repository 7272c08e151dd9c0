//! Graph to artifact: compiles each region of a partition and lists the steps.

use std::collections::{BTreeMap, HashMap, HashSet};
use std::sync::Arc;

use tilewright_compiler::backend::{Backend, BackendError, Operand, OwnConstant};
use tilewright_compiler::graph::op::MOST_STEPS;
use tilewright_compiler::graph::{Graph, GraphError, NodeId, Op, Tensor, ValueId};
use tilewright_compiler::partition::{AccelRegion, Code, Partition};
use tilewright_compiler::passes::{self, Pass, PassError};
use tilewright_hw::config::HwConfig;
use tilewright_hw::interrupt::{self, Interrupted};
use tilewright_runtime::artifact::{
    self, AccelStep, Artifact, ArtifactError, BlobId, CpuTarget, Hardware, Manifest, NodeInfo, Place, Step, StepKind,
};
use tilewright_runtime::cuda::CudaCode;
use tilewright_runtime::tensor::DType;

use super::listing::{self, Layer, Stage};

pub use tilewright_compiler::cost::macs;

/// Errors of compilation.
#[derive(Debug, thiserror::Error)]
pub enum CompileError {
    /// No backend can compile a node, or the toolchain failed.
    #[error(transparent)]
    Backend(#[from] BackendError),
    /// A pass over the CPU's part failed.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// The CPU's part is not a valid graph; this is a bug in the partition.
    #[error("the nodes of a region do not form a graph: {0}")]
    Region(#[from] Box<GraphError>),
    /// A value's shape is not known.
    #[error("value {value} has the open shape {shape}; give its sizes with --bind SYMBOL=SIZE")]
    OpenShape {
        /// The value.
        value: String,
        /// Its type.
        shape: String,
    },
    /// The model needs more memory than the accelerator has.
    #[error(
        "the model needs {need} bytes of memory on {hw} (weights {}, instructions {}, tensors {}), but only \
         {capacity} are available; the largest buffers are {}; use a board with more (host.memory_mib, offset_bits of \
         the configuration), a smaller input or batch, or --offload none",
        parts[0], parts[1], parts[2],
        largest.iter().map(|(name, bytes)| format!("{name} {bytes}")).collect::<Vec<_>>().join(", ")
    )]
    Memory {
        /// The configuration.
        hw: String,
        /// Bytes that the model needs.
        need: u64,
        /// Bytes available.
        capacity: u64,
        /// Bytes of weights, instructions and tensors.
        parts: [u64; 3],
        /// The largest buffers with their bytes.
        largest: Vec<(String, u64)>,
    },
    /// The work was stopped from outside.
    #[error(transparent)]
    Interrupted(#[from] Interrupted),
    /// The code generators disagree.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
}

/// Compiles a graph in integer form with known sizes: every region of the partition, in order. `host` compiles the
/// regions of the CPU or GPU, after `host_passes`. Without such passes, every node's value is a value of the artifact.
///
/// # Errors
/// [`CompileError`], which names the node or value.
pub fn compile(
    graph: &Graph,
    partition: &Partition,
    config: &HwConfig,
    host: &dyn Backend,
    host_passes: &[Box<dyn Pass>],
) -> Result<Artifact, CompileError> {
    let artifact = compile_listed(graph, partition, config, host, host_passes, &[], &BTreeMap::new())?.0;
    check_memory(&artifact, config)?;
    Ok(artifact)
}

/// Like [`compile`], and also lists these stages of all layers. `regions` has the regions of nodes, compiled. The
/// artifact may need more memory than the configuration has: see [`check_memory`].
///
/// # Errors
/// The same as [`compile`], except [`CompileError::Memory`].
pub fn compile_listed(
    graph: &Graph,
    partition: &Partition,
    config: &HwConfig,
    host: &dyn Backend,
    host_passes: &[Box<dyn Pass>],
    stages: &[Stage],
    regions: &BTreeMap<NodeId, Vec<Artifact>>,
) -> Result<(Artifact, Vec<Layer>), CompileError> {
    let mut build = Build::new(graph, stages);
    for (name, id) in graph.inputs() {
        let value = build.value(id, Some(name))?;
        build.manifest.inputs.push(value);
    }
    let mut step_of = BTreeMap::new();
    for region in &partition.regions {
        interrupt::check()?;
        match &region.code {
            Code::Own => build.own_steps(&region.nodes, regions, &mut step_of)?,
            Code::Cpu => build.host(&region.nodes, host, host_passes, &mut step_of)?,
            Code::Accel(accel) => build.accel(&region.nodes, accel, config, &mut step_of)?,
        }
    }
    let mut named: HashSet<ValueId> = graph.inputs().map(|(_, id)| id).collect();
    for (name, id) in graph.outputs() {
        // A value that is also an input or another output keeps its first name.
        let named = !named.insert(*id);
        let value = build.value(*id, Some(name.as_str()).filter(|_| !named))?;
        build.manifest.outputs.push(value);
        build.manifest.output_names.push(name.clone());
    }
    for explanation in &partition.explanations {
        let values = &graph.node(explanation.node).outputs;
        let values = values.iter().map(|value| build.values.get(value).copied()).collect();
        build.manifest.nodes.push(NodeInfo {
            name: explanation.name.clone(),
            op: explanation.op.to_string(),
            place: match step_of.get(&explanation.node).map(|step| &build.manifest.steps[*step as usize].kind) {
                Some(StepKind::Cuda { .. }) => Place::Cuda,
                _ => explanation.place,
            },
            why: match build.products.contains(&explanation.node) {
                true => format!("{}; cuBLASLt computes its product if it is installed", explanation.why),
                false => explanation.why.clone(),
            },
            macs: macs(graph, explanation.node),
            step: step_of.get(&explanation.node).copied(),
            values,
            cost: explanation.cost.clone(),
        });
    }
    let mut artifact = Artifact::new(graph.name(), build.manifest, build.blobs)?;
    if !regions.is_empty() {
        // Regions often have the same constants.
        artifact = Artifact::of_shapes(Vec::new(), &[artifact])?;
    }
    Ok((artifact, build.layers))
}

/// Checks that the artifact fits into the memory of the configuration.
///
/// # Errors
/// [`CompileError::Memory`].
pub fn check_memory(artifact: &Artifact, config: &HwConfig) -> Result<(), CompileError> {
    let (mut need, capacity) = (artifact.device_need(), config.memory_bytes());
    if need.total() <= capacity {
        return Ok(());
    }
    let (hw, parts, total) = (config.name.clone(), [need.constants, need.streams, need.tensors], need.total());
    need.parts.truncate(5);
    Err(CompileError::Memory { hw, need: total, capacity, parts, largest: need.parts })
}

/// An artifact under construction.
struct Build<'g> {
    graph: &'g Graph,
    manifest: Manifest,
    blobs: Vec<Vec<u8>>,
    values: BTreeMap<ValueId, artifact::ValueId>,
    /// Values of constants by the address of their tensors, which are kept alive here.
    constants: HashMap<*const Tensor, (Arc<Tensor>, artifact::ValueId)>,
    /// Nodes with products that a GPU library can compute.
    products: HashSet<NodeId>,
    /// Stages to list.
    stages: &'g [Stage],
    /// The listed layers.
    layers: Vec<Layer>,
}

impl<'g> Build<'g> {
    fn new(graph: &'g Graph, stages: &'g [Stage]) -> Build<'g> {
        let manifest = Manifest::new(graph.name(), &format!("tilewright {}", env!("CARGO_PKG_VERSION")));
        let (values, constants, products) = (BTreeMap::new(), HashMap::new(), HashSet::new());
        Build { graph, manifest, blobs: Vec::new(), values, constants, products, stages, layers: Vec::new() }
    }

    /// The artifact's value for a value of the graph, including a constant's data.
    fn value(&mut self, id: ValueId, name: Option<&str>) -> Result<artifact::ValueId, CompileError> {
        if let Some(known) = self.values.get(&id) {
            if let Some(name) = name {
                self.manifest.values[known.0 as usize].name = name.to_string();
            }
            return Ok(*known);
        }
        let made = self.add(self.graph, id, name)?;
        self.values.insert(id, made);
        Ok(made)
    }

    /// Adds a value of a graph to the artifact; constants with the same tensor share one value.
    fn add(&mut self, graph: &Graph, id: ValueId, name: Option<&str>) -> Result<artifact::ValueId, CompileError> {
        let data = graph.constant(id);
        if let Some((_, known)) = data.and_then(|tensor| self.constants.get(&Arc::as_ptr(tensor))) {
            return Ok(*known);
        }
        let ty = graph.ty(id);
        let name = name.unwrap_or_else(|| graph.value_name(id)).to_string();
        let open = || CompileError::OpenShape { value: name.clone(), shape: ty.to_string() };
        let shape = ty.shape().ok_or_else(open)?;
        let dtype = DType::from_name(ty.dtype.name()).ok_or_else(open)?;
        let constant = data.map(|tensor| self.blob(tensor.to_bytes()));
        let made = artifact::ValueId(self.manifest.values.len() as u32);
        self.manifest.values.push(artifact::ValueInfo { constant, ..artifact::ValueInfo::new(&name, dtype, shape) });
        if let Some(tensor) = data {
            self.constants.insert(Arc::as_ptr(tensor), (tensor.clone(), made));
        }
        Ok(made)
    }

    /// Adds a constant that a backend created.
    fn own(&mut self, constant: OwnConstant) -> Result<artifact::ValueId, CompileError> {
        let OwnConstant { name, dtype, shape, bytes } = constant;
        let open = || CompileError::OpenShape { value: name.clone(), shape: dtype.name().to_string() };
        let dtype = DType::from_name(dtype.name()).ok_or_else(open)?;
        let blob = Some(self.blob(bytes));
        self.manifest
            .values
            .push(artifact::ValueInfo { constant: blob, ..artifact::ValueInfo::new(&name, dtype, shape) });
        Ok(artifact::ValueId(self.manifest.values.len() as u32 - 1))
    }

    fn blob(&mut self, bytes: Vec<u8>) -> BlobId {
        self.blobs.push(bytes);
        BlobId(self.blobs.len() as u32 - 1)
    }

    fn list(&mut self, ids: &[ValueId]) -> Result<Vec<artifact::ValueId>, CompileError> {
        ids.iter().map(|id| self.value(*id, None)).collect()
    }

    /// Compiles a region of the host: cuts it out as a graph of its own, runs the passes and calls the backend.
    fn host(
        &mut self,
        nodes: &[NodeId],
        backend: &dyn Backend,
        host_passes: &[Box<dyn Pass>],
        step_of: &mut BTreeMap<NodeId, u32>,
    ) -> Result<(), CompileError> {
        let cut = self.graph.cut(nodes).map_err(Box::new)?;
        let (part, report) = passes::run(cut.graph, host_passes, passes::Options::default())?;
        // Nodes keep their names. If a pass changed something, only the values at the region's borders match the whole
        // graph.
        let named: HashMap<&str, NodeId> = nodes.iter().map(|id| (self.graph.node(*id).name.as_str(), *id)).collect();
        let mut whole: HashMap<ValueId, ValueId> = part.inputs().map(|(_, v)| v).zip(cut.inputs).collect();
        whole.extend(part.outputs().iter().map(|(_, v)| *v).zip(cut.outputs));
        if report.applied.is_empty() {
            let same = part.nodes().filter_map(|(_, node)| Some((node, named.get(node.name.as_str())?)));
            whole.extend(
                same.flat_map(|(node, id)| {
                    node.outputs.iter().copied().zip(self.graph.node(*id).outputs.iter().copied())
                }),
            );
        }
        let list: Vec<NodeId> = part.nodes().map(|(id, _)| id).collect();
        if !self.stages.is_empty() {
            self.layers.extend(listing::of_host(backend, &part, &list, self.stages)?);
        }
        let regions = [self.manifest.cpu.as_ref().map_or(0, |cpu| cpu.objects.len()), self.manifest.cuda.len()];
        let code = backend.of_region(regions.iter().sum()).compile(&part, &list)?;
        let on_gpu = backend.place() == Place::Cuda;
        let on_gpu_code = code.objects.iter().filter(|_| on_gpu).filter_map(|bytes| CudaCode::decode(bytes).ok());
        let with_products: HashSet<String> =
            on_gpu_code.flat_map(|code| code.entries).filter(|e| !e.library.is_empty()).map(|e| e.symbol).collect();
        let blobs: Vec<BlobId> = code.objects.into_iter().map(|object| self.blob(object)).collect();
        let objects = if on_gpu {
            &mut self.manifest.cuda
        } else {
            let target = CpuTarget { target: code.target.clone(), objects: Vec::new() };
            &mut self.manifest.cpu.get_or_insert(target).objects
        };
        let first = objects.len();
        objects.extend(blobs);
        let own = code.constants.into_iter().map(|constant| self.own(constant)).collect::<Result<Vec<_>, _>>()?;
        let mut inner: HashMap<ValueId, artifact::ValueId> = HashMap::new();
        let mut value = |build: &mut Self, id: ValueId| -> Result<artifact::ValueId, CompileError> {
            if let Some(known) = whole.get(&id) {
                return build.value(*known, None);
            }
            if let Some(known) = inner.get(&id) {
                return Ok(*known);
            }
            let made = build.add(&part, id, None)?;
            inner.insert(id, made);
            Ok(made)
        };
        for entry in code.entries {
            let names: Vec<&str> = entry.nodes.iter().map(|id| part.node(*id).name.as_str()).collect();
            let name = names.last().copied().unwrap_or(&entry.symbol).to_string();
            let mut inputs = Vec::with_capacity(entry.inputs.len());
            for operand in &entry.inputs {
                inputs.push(match operand {
                    Operand::Value(id) => value(self, *id)?,
                    Operand::Own(at) => own[*at],
                });
            }
            let outputs = entry.outputs.iter().map(|id| value(self, *id)).collect::<Result<Vec<_>, _>>()?;
            for id in names.iter().filter_map(|name| named.get(name)) {
                step_of.insert(*id, self.manifest.steps.len() as u32);
            }
            if with_products.contains(&entry.symbol) {
                // The first node of a group is the product that the others were fused into.
                self.products.extend(names.first().and_then(|name| named.get(name)));
            }
            let (place, workspace_bytes) = ((first + entry.object) as u32, entry.workspace_bytes as u64);
            let kind = if on_gpu {
                StepKind::Cuda { entry: entry.symbol, code: place, workspace_bytes }
            } else {
                StepKind::Cpu { function: entry.symbol, object: place, workspace_bytes }
            };
            self.manifest.steps.push(Step { name, kind, inputs, outputs });
        }
        Ok(())
    }

    /// Adds a step for each of these nodes, which call functions of the program or have regions.
    fn own_steps(
        &mut self,
        nodes: &[NodeId],
        regions: &BTreeMap<NodeId, Vec<Artifact>>,
        step_of: &mut BTreeMap<NodeId, u32>,
    ) -> Result<(), CompileError> {
        for id in nodes {
            let node = self.graph.node(*id);
            let compiled = regions.get(id).map_or(&[][..], Vec::as_slice);
            let mut manifests = compiled.iter().map(|region| Box::new(self.region(region)));
            let kind = match &node.op {
                Op::Packed(op) => StepKind::Packed { function: op.function.clone(), attributes: op.values() },
                Op::If(_) => {
                    let Some((then, otherwise)) = manifests.next().zip(manifests.next()) else { continue };
                    StepKind::If { then, otherwise }
                }
                Op::Loop(op) => {
                    let Some(body) = manifests.next() else { continue };
                    StepKind::Loop { body, carried: op.carried as u64, collects: op.collects as u64, most: MOST_STEPS }
                }
                _ => continue,
            };
            drop(manifests);
            let (inputs, outputs) = (self.list(&node.inputs)?, self.list(&node.outputs)?);
            step_of.insert(*id, self.manifest.steps.len() as u32);
            self.manifest.steps.push(Step { name: node.name.clone(), kind, inputs, outputs });
        }
        Ok(())
    }

    /// The manifest of a compiled region, whose blobs become the artifact's.
    fn region(&mut self, region: &Artifact) -> Manifest {
        let first = self.blobs.len() as u32;
        self.blobs.extend((0..region.manifest.blobs.len() as u32).map(|id| region.blob(BlobId(id)).to_vec()));
        if let Some(hardware) = &region.manifest.hardware {
            self.manifest.hardware.get_or_insert_with(|| hardware.clone());
        }
        region.manifest.with_blobs_from(first)
    }

    fn accel(
        &mut self,
        nodes: &[NodeId],
        region: &AccelRegion,
        config: &HwConfig,
        step_of: &mut BTreeMap<NodeId, u32>,
    ) -> Result<(), CompileError> {
        self.manifest.hardware.get_or_insert_with(|| Hardware {
            name: config.name.clone(),
            hash: config.hash(),
            toml: config.to_toml(),
        });
        if !self.stages.is_empty() {
            self.layers.extend(listing::of_accel(self.graph, region, config, self.stages)?);
        }
        let (tensors, layers, runs) = (region.tensors.clone(), region.layers.clone(), region.insn_layers.runs());
        let mut program = region.program.clone();
        let stream = self.blob(std::mem::take(&mut program.stream));
        let constants = self.blob(std::mem::take(&mut program.constants));
        let mut borders = Vec::new();
        for list in [&region.inputs, &region.outputs] {
            let values: Vec<ValueId> = list.iter().map(|(value, _)| *value).collect();
            borders.push((self.list(&values)?, list.iter().map(|(_, packing)| *packing).collect()));
        }
        let (outputs, packed_out) = borders.pop().unwrap_or_default();
        let (inputs, packed_in) = borders.pop().unwrap_or_default();
        for node in nodes {
            step_of.insert(*node, self.manifest.steps.len() as u32);
        }
        let name = nodes.last().map_or("accelerator", |id| &self.graph.node(*id).name).to_string();
        let step =
            AccelStep { program, stream, constants, inputs: packed_in, outputs: packed_out, tensors, layers, runs };
        self.manifest.steps.push(Step { name, kind: StepKind::Accel(step), inputs, outputs });
        Ok(())
    }
}
