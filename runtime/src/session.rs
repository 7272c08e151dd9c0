//! Runs an artifact: CPU steps by its object code, packed steps by functions of the program, accelerator steps on a
//! device.

mod accel;
mod dynamic;
mod error;
mod flow;
mod frames;
#[cfg(feature = "cuda")]
mod gpu;
#[cfg(not(feature = "cuda"))]
#[path = "session/no_gpu.rs"]
mod gpu;
mod native;
mod packed;
mod report;
#[cfg(test)]
pub(crate) mod tests;
mod values;

use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::Arc;

use bytes::Bytes;
use tilewright_hw::device::Device;
use tilewright_hw::interrupt;

use crate::artifact::{Artifact, Counted, Larger, Manifest, Place, Step, StepKind, ValueId};
use crate::buffer::AlignedBytes;
use crate::clock::Moment;
use crate::device::SharedDevice;
use crate::registry::Registry;
use crate::tensor::{Tensor, refs, shape_text};
pub use crate::tensor::{TensorMut, TensorRef};
use accel::{Accelerator, LoadedProgram};
pub use dynamic::{DynamicSession, OfArtifact, Specialize};
pub use error::SessionError;
use flow::{Flow, Opened, Region};
pub use frames::{Frames, Pending};
use gpu::OnGpu;
use native::Native;
use packed::Packed;
pub use report::{RunReport, StepReport};
use values::{Taken, Values};

/// Receives what steps write, as soon as each has ended.
type Watch<'a> = dyn FnMut(ValueId, &[u8]) + 'a;

enum Action {
    Packed(Packed),
    Native(Native),
    Accel(LoadedProgram),
    Cuda,
    Flow,
}

/// A model that is loaded. Sessions for several frames share it.
struct Model {
    artifact: Artifact,
    actions: Vec<Action>,
}

impl Model {
    fn check_inputs(&self, inputs: &[TensorRef]) -> Result<(), SessionError> {
        let manifest = &self.artifact.manifest;
        let values = manifest.input_values();
        if values.len() != inputs.len() {
            let names = values.iter().map(|value| value.name.clone()).collect();
            return Err(SessionError::InputCount { given: inputs.len(), names });
        }
        for (value, tensor) in values.iter().zip(inputs) {
            if value.dtype != tensor.dtype {
                let name = value.name.clone();
                return Err(SessionError::InputType { name, found: tensor.dtype, wanted: value.dtype });
            }
            if value.shape != tensor.shape || value.bytes() != tensor.bytes.len() {
                let (found, wanted) = (tensor.shape.to_vec(), value.shape.clone());
                return Err(SessionError::InputShape { name: value.name.clone(), found, wanted });
            }
            if let Some(fixed) = value.fixed.as_deref().filter(|fixed| *fixed != tensor.bytes) {
                let text = |bytes: &[u8]| {
                    let (dtype, shape) = (value.dtype, value.shape.clone());
                    let numbers = Tensor { dtype, shape, bytes: Bytes::copy_from_slice(bytes) }.to_f64();
                    numbers.iter().map(f64::to_string).collect::<Vec<_>>().join(" ")
                };
                let (found, wanted) = (text(tensor.bytes), text(fixed));
                return Err(SessionError::InputValue { name: value.name.clone(), found, wanted });
            }
        }
        Ok(())
    }
}

/// A model that is ready to run, any number of times.
pub struct Session {
    model: Arc<Model>,
    values: Values,
    /// Scratch memory of CPU steps, which use it one after the other.
    workspace: AlignedBytes,
    accelerator: Option<Accelerator>,
    gpu: Option<OnGpu>,
    /// For each step, what runs its regions, if it has any.
    flows: Vec<Option<Flow>>,
}

impl Session {
    /// Prepares an artifact. `functions` holds the functions that packed steps call; `device` runs accelerator steps.
    ///
    /// # Errors
    /// [`SessionError::NoFunction`], [`SessionError::NotRegistered`], [`SessionError::NoDevice`], or
    /// [`SessionError::Artifact`] if the device's configuration is not the artifact's.
    pub fn new(
        artifact: Artifact,
        functions: &Registry,
        device: Option<Box<dyn Device>>,
    ) -> Result<Session, SessionError> {
        Session::on(artifact, functions, device.map(SharedDevice::new))
    }

    /// Like [`Session::new`], on a device that other sessions may use too.
    ///
    /// # Errors
    /// As [`Session::new`].
    pub fn on(artifact: Artifact, functions: &Registry, device: Option<SharedDevice>) -> Result<Session, SessionError> {
        if let Some(device) = &device {
            artifact.check_hardware(device.config())?;
        }
        let accel = artifact.manifest.steps.iter().filter_map(|step| match &step.kind {
            StepKind::Accel(accel) => Some((step, accel)),
            _ => None,
        });
        let (step, programs): (Vec<_>, Vec<_>) = accel.map(|(step, accel)| (step, &accel.program)).unzip();
        let wrong = |source| {
            let step = step.first().map_or_else(String::new, |step| step.name.clone());
            SessionError::Accel { step, source }
        };
        let open = |region: &Manifest| -> Opened {
            Ok(Box::new(Session::on(artifact.of_part(region), functions, device.clone())?))
        };
        let flow = |step| Flow::new(step, &open);
        let flows = artifact.manifest.steps.iter().map(flow).collect::<Result<Vec<_>, _>>()?;
        let accelerator = device.map(|device| Accelerator::new(device, programs.into_iter()));
        let accelerator = accelerator.transpose().map_err(wrong)?;
        let gpu = OnGpu::load(&artifact)?;
        let objects = native::load(&artifact)?;
        let mut actions = Vec::with_capacity(artifact.manifest.steps.len());
        for step in &artifact.manifest.steps {
            actions.push(match &step.kind {
                StepKind::Cpu { function, object, .. } => {
                    let native = objects.get(*object as usize).and_then(|object| Native::new(object.clone(), function));
                    Action::Native(native.ok_or_else(|| no_function(step, function))?)
                }
                StepKind::Packed { function, attributes } => {
                    let function = functions.get(function).ok_or_else(|| not_registered(step, function))?;
                    Action::Packed(Packed::new(function, attributes, step, &artifact.manifest))
                }
                StepKind::Cuda { .. } => Action::Cuda,
                StepKind::If { .. } | StepKind::Loop { .. } => Action::Flow,
                StepKind::Accel(accel) => {
                    let accelerator =
                        accelerator.as_ref().ok_or_else(|| SessionError::NoDevice { step: step.name.clone() })?;
                    let program = LoadedProgram::load(accel, &artifact, accelerator)
                        .map_err(|source| SessionError::Accel { step: step.name.clone(), source })?;
                    Action::Accel(program)
                }
            });
        }
        let values = Values::new(&artifact.manifest)?;
        let workspace = workspace(&artifact.manifest)?;
        Ok(Session { model: Arc::new(Model { artifact, actions }), values, workspace, accelerator, gpu, flows })
    }

    /// A session of the same loaded model for another frame, with memory of its own for the values. Both can run at the
    /// same time: while one is on the accelerator, the other can be on the host, and its next program can wait in the
    /// device.
    ///
    /// # Errors
    /// [`SessionError::Memory`], or [`SessionError::Cuda`] if the model does not fit another time into the GPU's memory.
    pub fn for_another_frame(&self) -> Result<Session, SessionError> {
        let artifact = &self.model.artifact;
        let flows = self.flows.iter().map(|flow| flow.as_ref().map(Flow::for_another_frame).transpose());
        Ok(Session {
            flows: flows.collect::<Result<_, _>>()?,
            values: Values::new(&artifact.manifest)?,
            workspace: workspace(&artifact.manifest)?,
            accelerator: self.accelerator.as_ref().map(Accelerator::for_another_frame),
            gpu: OnGpu::load(artifact)?,
            model: self.model.clone(),
        })
    }

    /// Whether these are as many inputs as the model has, of its element types and shapes, and of the values that it is
    /// compiled for. Elements can be missing.
    fn takes(&self, inputs: &[TensorRef]) -> bool {
        let manifest = &self.model.artifact.manifest;
        let fits = |(id, tensor): (&ValueId, &TensorRef)| {
            let value = &manifest.values[id.0 as usize];
            let fixed = value.fixed.as_deref().filter(|_| !tensor.bytes.is_empty());
            value.dtype == tensor.dtype
                && value.shape == tensor.shape
                && fixed.is_none_or(|fixed| fixed == tensor.bytes)
        };
        manifest.inputs.len() == inputs.len() && manifest.inputs.iter().zip(inputs).all(fits)
    }

    /// The artifact that it runs.
    pub fn artifact(&self) -> &Artifact {
        &self.model.artifact
    }

    /// The device of accelerator steps.
    pub fn device(&self) -> Option<&SharedDevice> {
        self.accelerator.as_ref().map(Accelerator::device)
    }

    /// Runs the model once on inputs in its order.
    ///
    /// # Errors
    /// The input variants of [`SessionError`], before anything runs; [`SessionError::Step`] with the step that failed.
    pub fn run(&mut self, inputs: &[Tensor]) -> Result<(Vec<Tensor>, RunReport), SessionError> {
        let report = self.run_steps(&refs(inputs), None)?;
        Ok((self.outputs(), report))
    }

    /// Like [`Session::run`], but on the caller's memory: it writes the outputs there, in the model's order.
    ///
    /// # Errors
    /// As [`Session::run`], and the output variants of [`SessionError`], before anything runs.
    pub fn run_into(&mut self, inputs: &[TensorRef], outputs: &mut [TensorMut]) -> Result<RunReport, SessionError> {
        self.check_outputs(outputs, |_, shape| shape.to_vec())?;
        let report = self.run_steps(inputs, None)?;
        for (id, output) in self.model.artifact.manifest.outputs.iter().zip(outputs) {
            output.bytes.copy_from_slice(self.values.read(&self.model.artifact, *id));
        }
        Ok(report)
    }

    /// Like [`Session::run`]; calls `watch` with the inputs, and with what each step wrote as soon as it has ended.
    ///
    /// # Errors
    /// As [`Session::run`].
    pub fn run_watched(
        &mut self,
        inputs: &[Tensor],
        watch: &mut dyn FnMut(ValueId, &[u8]),
    ) -> Result<(Vec<Tensor>, RunReport), SessionError> {
        let report = self.run_steps(&refs(inputs), Some(watch))?;
        Ok((self.outputs(), report))
    }

    /// Runs all steps. Values that GPU steps write are copied to the host if they are watched, read there, or outputs.
    fn run_steps(&mut self, inputs: &[TensorRef], mut watch: Option<&mut Watch>) -> Result<RunReport, SessionError> {
        self.model.check_inputs(inputs)?;
        let Model { artifact, actions } = &*self.model;
        let manifest = &artifact.manifest;
        for (id, tensor) in manifest.inputs.iter().zip(inputs) {
            self.values.write(*id).copy_from_slice(tensor.bytes);
            if let Some(gpu) = &mut self.gpu {
                gpu.host_wrote(*id);
            }
            if let Some(watch) = &mut watch {
                watch(*id, tensor.bytes);
            }
        }
        let mut report = RunReport::default();
        for (number, (step, action)) in manifest.steps.iter().zip(actions).enumerate() {
            interrupt::check()?;
            if let (Action::Cuda, Some(gpu)) = (action, &mut self.gpu) {
                gpu.run(artifact, number, &self.values)?;
                if let Some(watch) = &mut watch {
                    for id in &step.outputs {
                        gpu.fetch(&manifest.values, *id, self.values.write(*id))?;
                        watch(*id, self.values.read(artifact, *id));
                    }
                }
                report.steps.push(StepReport { by: Some(gpu.computed_by(number)), ..StepReport::on(Place::Cuda) });
                continue;
            }
            if let Some(gpu) = &mut self.gpu {
                for id in &step.inputs {
                    gpu.fetch(&manifest.values, *id, self.values.write(*id))?;
                }
                step.outputs.iter().for_each(|id| gpu.host_wrote(*id));
            }
            // Outputs leave the table while the step borrows its inputs from it. The manifest's check has verified that
            // no step reads what it writes.
            let mut taken: Vec<Taken> = step.outputs.iter().map(|id| self.values.take(*id)).collect();
            let started = Moment::now();
            // A function of the program can panic; the outputs go back also then, for the next run.
            let outcome = catch_unwind(AssertUnwindSafe(|| {
                let read: Vec<&[u8]> = step.inputs.iter().map(|id| self.values.read(artifact, *id)).collect();
                let mut written: Vec<&mut [u8]> = taken.iter_mut().map(Taken::bytes).collect();
                if let Some(flow) = &mut self.flows[number] {
                    return flow.run(step, &read, &mut written);
                }
                let step = || step.name.clone();
                match (action, self.accelerator.as_mut()) {
                    (Action::Native(native), _) => native
                        .call(&read, &mut written, &mut self.workspace)
                        .map(|()| StepReport::on(Place::Cpu))
                        .map_err(|reason| SessionError::Step { step: step(), reason }),
                    (Action::Packed(packed), _) => packed
                        .call(&read, &mut written)
                        .map(|()| StepReport::on(Place::Cpu))
                        .map_err(|reason| SessionError::Step { step: step(), reason }),
                    (Action::Accel(program), Some(accelerator)) => program
                        .run(accelerator, &read, &mut written)
                        .map_err(|source| SessionError::Accel { step: step(), source }),
                    (Action::Accel(_) | Action::Cuda | Action::Flow, _) => Err(SessionError::NoDevice { step: step() }),
                }
            }));
            for (id, taken) in step.outputs.iter().zip(taken) {
                self.values.put(*id, taken);
            }
            let mut done = outcome.unwrap_or_else(|panic| resume_unwind(panic))?;
            done.wall_s = started.elapsed().as_secs_f64();
            if let Some(watch) = &mut watch {
                for id in &step.outputs {
                    watch(*id, self.values.read(artifact, *id));
                }
            }
            report.steps.push(done);
        }
        if let Some(gpu) = &mut self.gpu {
            for id in &manifest.outputs {
                gpu.fetch(&manifest.values, *id, self.values.write(*id))?;
            }
            for (step, seconds) in gpu.finish()? {
                report.steps[step].wall_s = seconds;
            }
        }
        Ok(report)
    }

    /// The outputs of the last run, with as many rows as there are.
    fn outputs(&self) -> Vec<Tensor> {
        let manifest = &self.model.artifact.manifest;
        let outputs: Vec<Tensor> = manifest.outputs.iter().map(|id| self.tensor(*id)).collect();
        if manifest.counted.is_empty() {
            return outputs;
        }
        let mut kept = vec![Vec::new(); outputs.len()];
        for Counted { output, axis, each, count } in &manifest.counted {
            let most = outputs[*output].shape[*axis];
            let rows = outputs[*count].get_f64(0).max(0.0) as usize;
            kept[*output].push((*axis, rows.saturating_mul(*each).min(most)));
        }
        Larger { shapes: Vec::new(), kept }.cut(outputs)
    }

    /// An output value, as the last run left it.
    fn tensor(&self, id: ValueId) -> Tensor {
        let value = &self.model.artifact.manifest.values[id.0 as usize];
        let bytes = Bytes::from_owner(AlignedBytes::copy_of(self.values.read(&self.model.artifact, id)));
        Tensor { dtype: value.dtype, shape: value.shape.clone(), bytes }
    }

    /// Checks memory for outputs; `wanted` turns an output's place and shape into the shape that is written.
    fn check_outputs(
        &self,
        outputs: &[TensorMut],
        wanted: impl Fn(usize, &[usize]) -> Vec<usize>,
    ) -> Result<(), SessionError> {
        let manifest = &self.model.artifact.manifest;
        if manifest.outputs.len() != outputs.len() {
            let names = manifest.named_outputs().map(|(name, _)| name.to_string()).collect();
            return Err(SessionError::OutputCount { given: outputs.len(), names });
        }
        for (place, ((name, id), output)) in manifest.named_outputs().zip(outputs).enumerate() {
            let value = &manifest.values[id.0 as usize];
            let shape = wanted(place, &value.shape);
            let bytes = shape.iter().product::<usize>() * value.dtype.size();
            if value.dtype != output.dtype || shape != output.shape || bytes != output.bytes.len() {
                return Err(SessionError::Output {
                    name: name.to_string(),
                    found: format!("{} {}", output.dtype, shape_text(output.shape)),
                    wanted: format!("{} {}", value.dtype, shape_text(&shape)),
                });
            }
        }
        Ok(())
    }
}

fn not_registered(step: &Step, function: &str) -> SessionError {
    SessionError::NotRegistered { step: step.name.clone(), function: function.to_string() }
}

fn no_function(step: &Step, function: &str) -> SessionError {
    SessionError::NoFunction { step: step.name.clone(), function: function.to_string() }
}

impl Region for Session {
    fn compute(&mut self, given: &[&[u8]], written: &mut [&mut [u8]]) -> Result<Option<u64>, SessionError> {
        let model = self.model.clone();
        let manifest = &model.artifact.manifest;
        let values = manifest.input_values();
        let inputs: Vec<TensorRef> = (values.iter().zip(given))
            .map(|(value, bytes)| TensorRef { dtype: value.dtype, shape: &value.shape, bytes })
            .collect();
        let report = self.run_steps(&inputs, None)?;
        for (id, written) in manifest.outputs.iter().zip(written) {
            written.copy_from_slice(self.values.read(&model.artifact, *id));
        }
        Ok(report.cycles())
    }

    fn for_another_frame(&self) -> Opened {
        Ok(Box::new(Session::for_another_frame(self)?))
    }
}

/// Scratch memory for CPU steps: as much as the one that needs most.
fn workspace(manifest: &Manifest) -> Result<AlignedBytes, SessionError> {
    let bytes = |step: &Step| match &step.kind {
        StepKind::Cpu { workspace_bytes, .. } => *workspace_bytes,
        _ => 0,
    };
    let Some(step) = manifest.steps.iter().max_by_key(|step| bytes(step)) else { return Ok(AlignedBytes::default()) };
    let memory = usize::try_from(bytes(step)).ok().and_then(AlignedBytes::try_zeroed);
    memory.ok_or_else(|| SessionError::Memory { what: step.name.clone(), bytes: bytes(step) })
}
