//! Description of an artifact: values, the steps that compute them, and the model's nodes as people know them.

mod check;

use serde::{Deserialize, Serialize};
use tilewright_driver::AccelProgram;
use tilewright_hw::isa::ISA_VERSION;
use tilewright_hw::layout::{Activation, LAYOUT_VERSION};

use super::{About, Bucket, InsnLayers, LayerEnd, LayerRun, OpenValue, ParametersFile};
use crate::packed::Attributes;
use crate::placement::Buffer;
use crate::tensor::{DType, byte_len};

/// Most steps of a loop.
pub const MOST_STEPS: u64 = 1 << 20;

/// Index into [`Manifest::values`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct ValueId(pub u32);

/// Index into [`Manifest::blobs`].
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
pub struct BlobId(pub u32);

/// The whole description of a compiled model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Manifest {
    /// Name of the model.
    pub model: String,
    /// Program that wrote it, with its version.
    pub producer: String,
    /// [`tilewright_hw::isa::ISA_VERSION`] of the writer.
    pub isa_version: u32,
    /// [`tilewright_hw::layout::LAYOUT_VERSION`] of the writer.
    pub layout_version: u32,
    /// The accelerator, if any step runs on one.
    pub hardware: Option<Hardware>,
    /// The processor, if any step runs on it.
    pub cpu: Option<CpuTarget>,
    /// CUDA code ([`crate::cuda::CudaCode`]) of the steps that run on a GPU.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub cuda: Vec<BlobId>,
    /// Every tensor of the compiled model.
    pub values: Vec<ValueInfo>,
    /// The model's inputs, in its order.
    pub inputs: Vec<ValueId>,
    /// The model's outputs, in its order.
    pub outputs: Vec<ValueId>,
    /// Names of the outputs, as many as outputs; empty in files of older writers, where the values' names apply. An
    /// input, and a value that is several outputs, has a name of its own for each output.
    #[serde(default)]
    pub output_names: Vec<String>,
    /// The outputs whose number of rows is known only when the model has run.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub counted: Vec<Counted>,
    /// The steps to run, in order.
    pub steps: Vec<Step>,
    /// What the model's file says about inputs and outputs.
    #[serde(default)]
    pub about: About,
    /// The model's operators: where each runs, and why.
    pub nodes: Vec<NodeInfo>,
    /// Offsets and checksums of the blobs.
    pub blobs: Vec<BlobInfo>,
    /// The file with the blobs that are apart, if there are any.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub parameters: Option<ParametersFile>,
    /// The model compiled for other shapes of its inputs; these manifests have no blobs of their own.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub variants: Vec<Manifest>,
    /// The inputs with the sizes that the model leaves open; empty if it is compiled for one shape.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub open_inputs: Vec<OpenValue>,
    /// The open sizes that can be padded up to those of this shape; empty if the model was not compiled for that.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub buckets: Vec<Bucket>,
}

/// The configuration that accelerator steps were compiled for.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Hardware {
    /// Its name.
    pub name: String,
    /// Its hash.
    #[serde(with = "hash_text")]
    pub hash: u64,
    /// The configuration file's text.
    pub toml: String,
}

/// The object code of CPU steps and the processor that it needs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct CpuTarget {
    /// Architecture, processor and features, in the toolchain's notation.
    pub target: String,
    /// The object files.
    pub objects: Vec<BlobId>,
}

/// A tensor.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct ValueInfo {
    /// Its name in the model, or a generated one.
    pub name: String,
    /// Element type.
    pub dtype: DType,
    /// Shape, row-major.
    pub shape: Vec<usize>,
    /// The elements, if it is a constant.
    pub constant: Option<BlobId>,
    /// The elements of an input, if the model is compiled for these alone.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub fixed: Option<Vec<u8>>,
    /// What the model's file says about it.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub source: Option<Source>,
}

/// An output whose number of rows is known only when the model has run. It has room for the most rows that there can be;
/// a further output is the number of those that are there.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counted {
    /// The place of the output among the model's outputs.
    pub output: usize,
    /// The dimension of its rows.
    pub axis: usize,
    /// Elements of the dimension that belong to a row.
    pub each: usize,
    /// The place of the output that is the number.
    pub count: usize,
}

/// What a model's file says about a tensor.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Source {
    /// Its name in the file; the first of several.
    pub tensor: String,
    /// Its further names in the file, such as those of an identity's results.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub aliases: Vec<String>,
    /// Scale and zero point in the compiled model: the real value of one integer step, and the integer that means 0.
    pub quantization: Option<(f32, i32)>,
    /// Whether it is uint8 in the file; the compiled model then stores 128 less.
    pub unsigned: bool,
}

impl Source {
    /// All of its names in the file.
    pub fn names(&self) -> impl Iterator<Item = &str> {
        std::iter::once(&self.tensor).chain(&self.aliases).map(String::as_str)
    }
}

impl ValueInfo {
    /// A value that is computed or given.
    pub fn new(name: &str, dtype: DType, shape: Vec<usize>) -> ValueInfo {
        ValueInfo { name: name.to_string(), dtype, shape, constant: None, fixed: None, source: None }
    }

    /// Bytes of the tensor.
    pub fn bytes(&self) -> usize {
        byte_len(self.dtype, &self.shape).unwrap_or(0)
    }
}

/// One step of a run.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Step {
    /// Name for people, from the nodes that it covers.
    pub name: String,
    /// Where and how it runs.
    pub kind: StepKind,
    /// What it reads.
    pub inputs: Vec<ValueId>,
    /// What it writes.
    pub outputs: Vec<ValueId>,
}

/// Where a step runs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
#[allow(clippy::large_enum_variant, reason = "a manifest has a few steps, each made once")]
pub enum StepKind {
    /// A function of the artifact's object code.
    Cpu {
        /// Its symbol.
        function: String,
        /// Index into [`CpuTarget::objects`].
        object: u32,
        /// Bytes of scratch memory that it needs.
        workspace_bytes: u64,
    },
    /// An entry of the artifact's CUDA code.
    Cuda {
        /// Its name.
        entry: String,
        /// Index into [`Manifest::cuda`].
        code: u32,
        /// Bytes of the GPU's memory that it needs in addition to inputs and outputs.
        workspace_bytes: u64,
    },
    /// A packed function that the program has registered by name.
    Packed {
        /// Its name.
        function: String,
        /// The node's attributes, which it gets behind the inputs.
        #[serde(default, skip_serializing_if = "Attributes::is_empty")]
        attributes: Attributes,
    },
    /// A driver program.
    Accel(AccelStep),
    /// One of two regions. The step's first input is the condition; the regions get the others.
    If {
        /// Runs if the condition is true. Like that of another shape, a region's manifest has no blobs of its own.
        then: Box<Manifest>,
        /// Runs if it is false.
        otherwise: Box<Manifest>,
    },
    /// A region that runs once for each step. The step's inputs are the limit, the condition, the carried values, and what
    /// else the region gets; its outputs are the last carried values, and the collected values of all steps. The region
    /// gets the step's number in place of limit and condition, and returns the condition before the rest.
    Loop {
        /// What runs in each step.
        body: Box<Manifest>,
        /// Number of carried values.
        carried: u64,
        /// Number of steps that collected values are from.
        collects: u64,
        /// Most steps.
        most: u64,
    },
}

impl StepKind {
    /// The manifests of its regions.
    pub fn regions(&self) -> Vec<&Manifest> {
        match self {
            StepKind::If { then, otherwise } => vec![then, otherwise],
            StepKind::Loop { body, .. } => vec![body],
            _ => Vec::new(),
        }
    }

    /// The manifests of its regions, to change them.
    pub(super) fn regions_mut(&mut self) -> Vec<&mut Manifest> {
        match self {
            StepKind::If { then, otherwise } => vec![then, otherwise],
            StepKind::Loop { body, .. } => vec![body],
            _ => Vec::new(),
        }
    }
}

/// A driver program, with its bulk in blobs.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct AccelStep {
    /// The program without stream and constants.
    pub program: AccelProgram,
    /// Its stream.
    pub stream: BlobId,
    /// Its constants.
    pub constants: BlobId,
    /// How the step's inputs are laid out in device memory, in the order of the program's bindings.
    pub inputs: Vec<Packing>,
    /// How the step's outputs are laid out in device memory.
    pub outputs: Vec<Packing>,
    /// Places and lifetimes of tensors in the program's memory.
    #[serde(default)]
    pub tensors: Vec<TensorPlace>,
    /// The program's layers, in the order in which they compute; empty if an earlier version compiled it.
    #[serde(default)]
    pub layers: Vec<LayerEnd>,
    /// The layers of the stream's instructions, in the stream's order; empty if they come one after the other.
    #[serde(default, skip_serializing_if = "Vec::is_empty")]
    pub runs: Vec<LayerRun>,
}

impl AccelStep {
    /// The layer of each instruction of its stream.
    pub fn insn_layers(&self) -> InsnLayers {
        InsnLayers::new(&self.layers, &self.runs)
    }
}

/// A tensor in the memory of a program's tensors; its lifetime is counted in the program's layers.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct TensorPlace {
    /// Its name.
    pub name: String,
    /// First byte.
    pub offset: u64,
    /// Bytes and lifetime.
    pub buffer: Buffer,
}

/// How a tensor of a model is laid out in device memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Packing {
    /// Byte for byte as on the host.
    Dense,
    /// `[N, H, W, C]` on the host, channels in blocks on the device.
    Nhwc(Image),
    /// `[N, C, H, W]` on the host, channels in blocks on the device.
    Nchw(Image),
}

/// Sizes of an int8 tensor with channels in blocks.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct Image {
    /// Images.
    pub n: usize,
    /// Channels.
    pub c: usize,
    /// Rows.
    pub h: usize,
    /// Columns.
    pub w: usize,
    /// Channels of a block.
    pub block: usize,
    /// ValueInfo of padding channels and columns.
    pub fill: i8,
    /// Padding columns on the device, before and after the tensor's columns.
    #[serde(default)]
    pub pads: [usize; 2],
}

impl Packing {
    /// Bytes on the device of a tensor of `dense` bytes; `None` if the image's sizes overflow or its block is 0.
    pub fn device_bytes(&self, dense: usize) -> Option<usize> {
        self.bytes(dense).map(|(_, device)| device)
    }

    /// Bytes on the host and on the device; `dense` is the tensor's size. `None` on overflow.
    fn bytes(&self, dense: usize) -> Option<(usize, usize)> {
        match self {
            Packing::Dense => Some((dense, dense)),
            Packing::Nhwc(i) | Packing::Nchw(i) => {
                let rows = i.n.checked_mul(i.h)?;
                let pixels = rows.checked_mul(i.w)?;
                let wide = rows.checked_mul(i.w.checked_add(i.pads[0])?.checked_add(i.pads[1])?)?;
                let blocks = i.c.checked_add(i.block.checked_sub(1)?)? / i.block;
                Some((pixels.checked_mul(i.c)?, wide.checked_mul(blocks)?.checked_mul(i.block)?))
            }
        }
    }
}

impl Image {
    /// The layout in device memory, including the padding columns.
    pub fn layout(&self) -> Activation {
        Activation { n: self.n, c: self.c, h: self.h, w: self.w + self.pads[0] + self.pads[1], block: self.block }
    }

    /// Packs the elements that `at(n, c, y, x)` returns into the bytes of device memory.
    pub fn pack(&self, at: impl Fn(usize, usize, usize, usize) -> i8) -> Vec<i8> {
        self.layout().pack(self.fill, |n, c, y, x| self.column(x).map_or(self.fill, |x| at(n, c, y, x)))
    }

    /// Calls `put(n, c, y, x, value)` for every element of the tensor. Bytes past the end of `packed` read as 0.
    pub fn unpack(&self, packed: &[i8], mut put: impl FnMut(usize, usize, usize, usize, i8)) {
        self.layout().unpack(packed, |n, c, y, x, value| {
            if let Some(x) = self.column(x) {
                put(n, c, y, x, value);
            }
        });
    }

    /// The tensor's column for a column on the device, unless that is padding.
    fn column(&self, x: usize) -> Option<usize> {
        x.checked_sub(self.pads[0]).filter(|x| *x < self.w)
    }
}

/// Where an operator runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(rename_all = "lowercase")]
pub enum Place {
    /// On the accelerator.
    Accel,
    /// On the host's processor.
    Cpu,
    /// On the host's GPU.
    Cuda,
}

impl Place {
    /// Its name in files and tables.
    pub fn name(self) -> &'static str {
        match self {
            Place::Accel => "accel",
            Place::Cpu => "cpu",
            Place::Cuda => "cuda",
        }
    }
}

impl std::fmt::Display for Place {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(self.name())
    }
}

/// An operator of the model.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct NodeInfo {
    /// Its name.
    pub name: String,
    /// Its kind.
    pub op: String,
    /// Where it runs.
    pub place: Place,
    /// Why it runs there.
    pub why: String,
    /// Multiply-accumulates of the network, without padding.
    pub macs: u64,
    /// The step that computes it, an index into [`Manifest::steps`]; `None` if compilation left nothing to do.
    pub step: Option<u32>,
    /// The values that it defines, in order; `None` for a value that stays inside its step.
    #[serde(default)]
    pub values: Vec<Option<ValueId>>,
    /// Its cost in each place.
    #[serde(default)]
    pub cost: Option<NodeCost>,
}

/// Cost of a node in each place, together with the other nodes that the accelerator computes in one go with it. All of
/// these nodes have the same figures, which count once.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct NodeCost {
    /// The first of these nodes.
    pub layer: String,
    /// Estimated cycles on the accelerator, if it can compute them.
    pub accel_cycles: Option<u64>,
    /// The same in nanoseconds.
    pub accel_ns: Option<u64>,
    /// Nanoseconds on the CPU, if sizes are known.
    pub cpu_ns: Option<u64>,
    /// Whether the CPU's time was measured; otherwise it comes from the model of the host that the configuration names.
    pub cpu_measured: bool,
    /// Nanoseconds of layout conversions, transfers and launches that moving only these nodes to the other place would
    /// add.
    pub moving_ns: Option<i64>,
}

/// Location of a blob in the file.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct BlobInfo {
    /// Name for people.
    pub name: String,
    /// First byte, from the file's start.
    pub offset: u64,
    /// Bytes.
    pub len: u64,
    /// Checksum, hexadecimal.
    pub sha256: String,
    /// Whether it is in the file of parameters; the offset then counts from that file's start.
    #[serde(default, skip_serializing_if = "std::ops::Not::not")]
    pub apart: bool,
}

impl Manifest {
    /// A description of a model without values and steps, of this program's versions.
    pub fn new(model: &str, producer: &str) -> Manifest {
        Manifest {
            model: model.to_string(),
            producer: producer.to_string(),
            isa_version: ISA_VERSION,
            layout_version: LAYOUT_VERSION,
            hardware: None,
            cpu: None,
            cuda: Vec::new(),
            values: Vec::new(),
            inputs: Vec::new(),
            outputs: Vec::new(),
            output_names: Vec::new(),
            counted: Vec::new(),
            steps: Vec::new(),
            about: About::default(),
            nodes: Vec::new(),
            blobs: Vec::new(),
            parameters: None,
            variants: Vec::new(),
            open_inputs: Vec::new(),
            buckets: Vec::new(),
        }
    }

    /// The model's inputs, in its order.
    pub fn input_values(&self) -> Vec<&ValueInfo> {
        self.inputs.iter().map(|id| &self.values[id.0 as usize]).collect()
    }

    /// The model's outputs with their names, in its order.
    pub fn named_outputs(&self) -> impl Iterator<Item = (&str, ValueId)> {
        self.outputs.iter().enumerate().map(|(place, id)| {
            let own = || self.values[id.0 as usize].name.as_str();
            (self.output_names.get(place).map_or_else(own, String::as_str), *id)
        })
    }

    /// Multiply-accumulates of one run of the network.
    pub fn macs(&self) -> u64 {
        self.nodes.iter().map(|node| node.macs).sum()
    }

    /// Multiply-accumulates that the accelerator computes.
    pub fn offloaded_macs(&self) -> u64 {
        self.nodes.iter().filter(|node| node.place == Place::Accel).map(|node| node.macs).sum()
    }

    /// The accelerator's share of the multiply-accumulates, if the network has any.
    pub fn offloaded_share(&self) -> Option<f64> {
        let macs = self.macs();
        (macs > 0).then(|| self.offloaded_macs() as f64 / macs as f64)
    }

    /// This manifest, those of other shapes, and those of all regions.
    pub fn parts(&self) -> Vec<&Manifest> {
        let mut all = vec![self];
        let mut at = 0;
        while let Some(manifest) = all.get(at).copied() {
            all.extend(&manifest.variants);
            all.extend(manifest.steps.iter().flat_map(|step| step.kind.regions()));
            at += 1;
        }
        all
    }

    /// This manifest and those of its regions, at all depths; not those of other shapes.
    pub fn with_regions(&self) -> Vec<&Manifest> {
        let regions = self.steps.iter().flat_map(|step| step.kind.regions());
        std::iter::once(self).chain(regions.flat_map(Manifest::with_regions)).collect()
    }
}

/// Hashes as hexadecimal text, because JSON numbers lose bits above 2^53.
mod hash_text {
    use serde::{Deserialize, Deserializer, Serializer, de::Error};

    pub fn serialize<S: Serializer>(hash: &u64, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.serialize_str(&format!("{hash:016x}"))
    }

    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<u64, D::Error> {
        let text = String::deserialize(deserializer)?;
        u64::from_str_radix(&text, 16).map_err(D::Error::custom)
    }
}
