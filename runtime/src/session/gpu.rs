//! Steps on a GPU: values stay in its memory between steps, and are copied to the host if something there reads them.

use std::path::PathBuf;

use half::f16;
use half::slice::HalfFloatSliceExt;

use super::values::{Values, lives};
use crate::artifact::{Artifact, Step, StepKind, ValueId, ValueInfo};
use crate::cuda::{CudaCode, CudaEntry, CudaError, Gpu, GpuMemory, Mark, Program};
use crate::placement::{Buffer, place};
use crate::tensor::DType;

/// Alignment of every value in the GPU's memory.
const ALIGN: u64 = 256;

/// Which copies of a value are valid.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Copy {
    Host,
    Gpu,
    Both,
}

/// A GPU with an artifact's code, constants and room for its values.
pub(super) struct OnGpu {
    gpu: Gpu,
    programs: Vec<Program>,
    /// For each step, its entry and the index of its program.
    entries: Vec<Option<(usize, CudaEntry)>>,
    memory: GpuMemory,
    /// The address of its first byte.
    base: u64,
    /// Offset of each value in the memory, if a GPU step reads or writes it.
    places: Vec<Option<usize>>,
    copies: Vec<Copy>,
    half: bool,
    workspace: usize,
    marks: Vec<(usize, Mark, Mark)>,
}

/// Folder of the cache of compiled code.
fn cache() -> Option<PathBuf> {
    Some(tilewright_hw::cache::folder()?.join("cuda"))
}

impl OnGpu {
    /// Prepares a GPU, if a step needs one.
    ///
    /// # Errors
    /// [`CudaError::Unavailable`] without a GPU, [`CudaError::Damaged`], or the driver's.
    pub fn load(artifact: &Artifact) -> Result<Option<OnGpu>, CudaError> {
        let manifest = &artifact.manifest;
        if !manifest.steps.iter().any(|step| matches!(step.kind, StepKind::Cuda { .. })) {
            return Ok(None);
        }
        let gpu = Gpu::open()?;
        let decode = |id| CudaCode::decode(artifact.blob(id)).map_err(CudaError::Damaged);
        let codes = manifest.cuda.iter().map(|id| decode(*id)).collect::<Result<Vec<_>, _>>()?;
        let half = codes.iter().any(|code| code.half);
        if codes.iter().any(|code| code.half != half) {
            return Err(CudaError::Damaged("its parts keep floats in different widths".into()));
        }
        let mut entries = Vec::with_capacity(manifest.steps.len());
        let mut scratch = 0;
        for step in &manifest.steps {
            let StepKind::Cuda { entry, code, workspace_bytes } = &step.kind else {
                entries.push(None);
                continue;
            };
            let (inputs, outputs) = (step.inputs.len(), step.outputs.len());
            let found = codes[*code as usize].entry(entry, inputs, outputs, *workspace_bytes);
            entries.push(Some((*code as usize, found.map_err(CudaError::Damaged)?.clone())));
            scratch = scratch.max(*workspace_bytes);
        }
        let (places, bytes) = plan(artifact, half);
        let workspace = bytes.next_multiple_of(ALIGN) as usize;
        let memory = gpu.allocate(workspace + scratch as usize)?;
        let programs = codes.iter().map(|code| gpu.load(code, cache().as_deref())).collect::<Result<_, _>>()?;
        let copies = vec![Copy::Host; manifest.values.len()];
        let base = memory.address();
        let mut on = OnGpu { gpu, programs, entries, memory, base, places, copies, half, workspace, marks: Vec::new() };
        for (value, index) in manifest.values.iter().zip(0..) {
            if let Some(blob) = value.constant {
                on.send(&manifest.values, ValueId(index), artifact.blob(blob))?;
            }
        }
        Ok(Some(on))
    }

    /// Notes that the host has written a value.
    pub fn host_wrote(&mut self, id: ValueId) {
        self.copies[id.0 as usize] = Copy::Host;
    }

    /// Runs a GPU step, which may still be running when this returns.
    ///
    /// # Errors
    /// The driver's.
    pub fn run(&mut self, artifact: &Artifact, number: usize, host: &Values) -> Result<(), CudaError> {
        let step = &artifact.manifest.steps[number];
        for id in &step.inputs {
            if self.copies[id.0 as usize] == Copy::Host {
                self.send(&artifact.manifest.values, *id, host.read(artifact, *id))?;
            }
        }
        let base = self.base;
        let address = |id: &ValueId| self.places[id.0 as usize].map(|at| base + at as u64);
        let addresses = |ids: &[ValueId]| ids.iter().map(address).collect::<Option<Vec<u64>>>();
        let none = || CudaError::Damaged(format!("step {} has values without memory", step.name));
        let (inputs, outputs) = (addresses(&step.inputs).ok_or_else(none)?, addresses(&step.outputs).ok_or_else(none)?);
        let (program, entry) = self.entries[number].as_ref().ok_or_else(none)?;
        let begun = self.gpu.mark()?;
        let workspace = base + self.workspace as u64;
        self.gpu.launch(&self.programs[*program], entry, &inputs, &outputs, workspace)?;
        self.marks.push((number, begun, self.gpu.mark()?));
        for id in &step.outputs {
            self.copies[id.0 as usize] = Copy::Gpu;
        }
        Ok(())
    }

    /// What computes a step: `kernels`, or the name of the library that computes its product.
    pub fn computed_by(&self, number: usize) -> &'static str {
        let entry = self.entries.get(number).and_then(Option::as_ref);
        entry.map_or("kernels", |(program, entry)| self.programs[*program].computed_by(&entry.symbol))
    }

    /// Copies a value to the host's buffer, if only the GPU has it.
    ///
    /// # Errors
    /// The driver's, also those of earlier steps.
    pub fn fetch(&mut self, values: &[ValueInfo], id: ValueId, host: &mut [u8]) -> Result<(), CudaError> {
        let (Copy::Gpu, Some(at)) = (self.copies[id.0 as usize], self.places[id.0 as usize]) else { return Ok(()) };
        if self.is_half(&values[id.0 as usize]) {
            let mut bytes = vec![0; host.len() / 2];
            self.gpu.read(&self.memory, at, &mut bytes)?;
            widen(&bytes, host);
        } else {
            self.gpu.read(&self.memory, at, host)?;
        }
        self.copies[id.0 as usize] = Copy::Both;
        Ok(())
    }

    /// Waits for all steps; returns the seconds that each took on the GPU.
    ///
    /// # Errors
    /// The driver's, if a kernel failed.
    pub fn finish(&mut self) -> Result<Vec<(usize, f64)>, CudaError> {
        self.gpu.wait()?;
        self.marks.drain(..).map(|(step, from, to)| Ok((step, Gpu::seconds(&from, &to)?))).collect()
    }

    fn is_half(&self, value: &ValueInfo) -> bool {
        self.half && value.dtype == DType::F32
    }

    /// Copies a value's bytes to its place, if it has one.
    fn send(&mut self, values: &[ValueInfo], id: ValueId, bytes: &[u8]) -> Result<(), CudaError> {
        let Some(at) = self.places[id.0 as usize] else { return Ok(()) };
        if self.is_half(&values[id.0 as usize]) {
            self.gpu.write(&mut self.memory, at, &narrowed(bytes))?;
        } else {
            self.gpu.write(&mut self.memory, at, bytes)?;
        }
        self.copies[id.0 as usize] = Copy::Both;
        Ok(())
    }
}

/// Floats that are converted at a time, in registers of the widest kind.
const AT_A_TIME: usize = 256;

/// Bytes of floats of 32 bits, as floats of 16 bits.
fn narrowed(wide: &[u8]) -> Vec<u8> {
    let mut all = Vec::with_capacity(wide.len() / 2);
    let (mut from, mut to) = ([0f32; AT_A_TIME], [f16::ZERO; AT_A_TIME]);
    for part in wide.chunks(4 * AT_A_TIME) {
        let count = part.len() / 4;
        for (value, bytes) in from.iter_mut().zip(part.as_chunks::<4>().0) {
            *value = f32::from_le_bytes(*bytes);
        }
        to[..count].convert_from_f32_slice(&from[..count]);
        all.extend(to[..count].iter().flat_map(|value| value.to_le_bytes()));
    }
    all
}

/// Writes floats of 16 bits, given as bytes, as floats of 32 bits.
fn widen(narrow: &[u8], wide: &mut [u8]) {
    let (mut from, mut to) = ([f16::ZERO; AT_A_TIME], [0f32; AT_A_TIME]);
    for (part, written) in narrow.chunks(2 * AT_A_TIME).zip(wide.chunks_mut(4 * AT_A_TIME)) {
        let count = part.len() / 2;
        for (value, bytes) in from.iter_mut().zip(part.as_chunks::<2>().0) {
            *value = f16::from_le_bytes(*bytes);
        }
        from[..count].convert_to_f32_slice(&mut to[..count]);
        for (bytes, value) in written.as_chunks_mut::<4>().0.iter_mut().zip(&to[..count]) {
            *bytes = value.to_le_bytes();
        }
    }
}

/// Offsets of the values that GPU steps read or write, and the bytes of all. Constants and outputs keep their places to
/// the end, other values while they are needed.
fn plan(artifact: &Artifact, half: bool) -> (Vec<Option<usize>>, u64) {
    let manifest = &artifact.manifest;
    let on_gpu = |step: &Step| matches!(step.kind, StepKind::Cuda { .. });
    let lives = lives(manifest);
    let (mut numbers, mut buffers) = (Vec::new(), Vec::new());
    for (index, value) in manifest.values.iter().enumerate() {
        let id = ValueId(index as u32);
        let uses = |step: &Step| step.inputs.contains(&id) || step.outputs.contains(&id);
        if !manifest.steps.iter().any(|step| on_gpu(step) && uses(step)) {
            continue;
        }
        let bytes = if half && value.dtype == DType::F32 { value.bytes() / 2 } else { value.bytes() };
        // Constants stay for the next run.
        let (first, last) = lives[index].map_or((0, manifest.steps.len() + 1), |life| (life.first, life.last));
        numbers.push(index);
        buffers.push(Buffer { bytes: bytes.max(1) as u64, first, last });
    }
    let placed = place(&buffers, ALIGN);
    let mut places = vec![None; manifest.values.len()];
    for (index, at) in numbers.into_iter().zip(placed.offsets) {
        places[index] = Some(at as usize);
    }
    (places, placed.bytes)
}
