//! The server as a module: its functions, and `load`, which makes sessions of uploaded artifacts.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Mutex, PoisonError};

use tilewright_runtime::artifact::{Manifest, StepKind, ValueId};
use tilewright_runtime::function::{AnyError, Args};
use tilewright_runtime::module::{Functions, SessionModule};
use tilewright_runtime::session::DynamicSession;
use tilewright_runtime::value::Value;
use tilewright_runtime::{Artifact, Function, Module, Registry, SharedDevice};
use tokio::sync::{OwnedSemaphorePermit, Semaphore, watch};

use super::busy::Busy;
use crate::LOAD;
use crate::native::{Native, Offer};

/// A server's functions.
///
/// | function | arguments | result |
/// |---|---|---|
/// | `load` | a name for messages, the bytes of an artifact | a module of kind `session`, on the session's device |
///
/// and those that the server was given.
pub(crate) struct MachineModule {
    pub name: String,
    pub functions: Registry,
    pub device: Option<SharedDevice>,
    pub budget: Budget,
    pub cpu_code: CpuCode,
}

/// What happens to artifacts with code for the CPU.
pub(crate) enum CpuCode {
    Refused,
    /// It runs in a process of its own, which ends when the flag is set, and whose requests are work of the session.
    InProcess(Native, watch::Receiver<bool>, Arc<Busy>),
    /// This is that process.
    Here,
}

/// What a client's models can take.
#[derive(Clone)]
pub(crate) struct Budget {
    /// Memory of the models.
    memory: Bytes,
    /// Inputs and outputs of frames.
    frame_bytes: Bytes,
    frames: Arc<Semaphore>,
    processes: Arc<Semaphore>,
}

/// A number of bytes that is taken by parts. Copies share it.
#[derive(Clone)]
struct Bytes {
    taken: Arc<AtomicU64>,
    most: u64,
}

/// Frames of a session that are computed, wait for that, or were not fetched: those of a shape that are computed at the
/// same time, and 8 more.
const FRAMES: usize = 10;
/// Processes of a session for CPU code.
const PROCESSES: usize = 8;

/// A part of the bytes, until it is dropped.
struct Taken(Arc<AtomicU64>, u64);

impl Bytes {
    fn new(most: u64) -> Bytes {
        Bytes { taken: Arc::default(), most }
    }

    /// Takes a part. If there is not so much left, the error is what the other parts have.
    fn take(&self, bytes: u64) -> Result<Taken, u64> {
        let taken = self.taken.fetch_add(bytes, Ordering::Relaxed);
        let part = Taken(self.taken.clone(), bytes);
        match taken.checked_add(bytes) {
            Some(all) if all <= self.most => Ok(part),
            _ => Err(taken),
        }
    }
}

/// Room for a frame, until it is dropped.
struct Room {
    _frame: OwnedSemaphorePermit,
    _bytes: Taken,
}

impl Budget {
    /// Most bytes of memory of the models, and of inputs and outputs of frames.
    pub fn new(memory: u64, frames: u64) -> Budget {
        Budget {
            memory: Bytes::new(memory),
            frame_bytes: Bytes::new(frames),
            frames: Arc::new(Semaphore::new(FRAMES)),
            processes: Arc::new(Semaphore::new(PROCESSES)),
        }
    }

    /// Room for a frame whose inputs and outputs have so many bytes.
    fn frame(&self, name: &str, bytes: u64) -> Result<Room, AnyError> {
        let frame = self.frames.clone().try_acquire_owned().map_err(|_| {
            format!("{FRAMES} frames were submitted and not waited for, the limit of a session; wait for one")
        })?;
        let bytes = self.frame_bytes.take(bytes).map_err(|taken| {
            format!(
                "a frame of {name} has {bytes} bytes of inputs and outputs and the frames that were not waited for have \
                 {taken}, but the server allows {}; wait for a frame, or raise its --max-frame-memory",
                self.frame_bytes.most
            )
        })?;
        Ok(Room { _frame: frame, _bytes: bytes })
    }

    /// Room for a process, until it is dropped.
    fn process(&self, name: &str) -> Result<OwnedSemaphorePermit, AnyError> {
        let room = self.processes.clone().try_acquire_owned();
        room.map_err(|_| {
            format!(
                "{name} needs a process for its CPU code and the session has {PROCESSES}, its limit; drop a model, or \
                 open another session"
            )
            .into()
        })
    }

    fn take(&self, name: &str, bytes: u64) -> Result<Taken, AnyError> {
        self.memory.take(bytes).map_err(|taken| {
            format!(
                "{name} needs {bytes} bytes of memory and the session's models have {taken}, but the server allows {}; \
                 raise its --max-memory, or close a model",
                self.memory.most
            )
            .into()
        })
    }
}

impl Drop for Taken {
    fn drop(&mut self) {
        self.0.fetch_sub(self.1, Ordering::Relaxed);
    }
}

/// Whether a session of the artifact loads code for the processor.
pub(crate) fn has_native_code(artifact: &Artifact) -> bool {
    let native = |manifest: &Manifest| {
        let objects = manifest.cpu.as_ref().is_some_and(|cpu| !cpu.objects.is_empty());
        objects || manifest.steps.iter().any(|step| matches!(step.kind, StepKind::Cpu { .. }))
    };
    artifact.manifest.parts().into_iter().any(native)
}

fn has_gpu_code(artifact: &Artifact) -> bool {
    let on_gpu = |manifest: &Manifest| {
        !manifest.cuda.is_empty() || manifest.steps.iter().any(|step| matches!(step.kind, StepKind::Cuda { .. }))
    };
    artifact.manifest.parts().into_iter().any(on_gpu)
}

/// Bytes of memory that a session of an artifact takes at most, its shapes together.
fn need(artifact: &Artifact) -> u64 {
    let values = |manifest: &Manifest| {
        let variable = manifest.values.iter().filter(|value| value.constant.is_none());
        let sum = variable.fold(0u64, |sum, value| sum.saturating_add(value.bytes() as u64));
        let workspace = manifest.steps.iter().map(|step| match step.kind {
            StepKind::Cpu { workspace_bytes, .. } => workspace_bytes,
            _ => 0,
        });
        sum.saturating_add(workspace.max().unwrap_or(0))
    };
    let of_parts = artifact.manifest.parts().into_iter().map(values);
    of_parts.fold(artifact.blob_bytes() as u64, u64::saturating_add)
}

/// Bytes of the inputs and outputs of a frame, those of the largest shape.
fn frame_bytes(artifact: &Artifact) -> u64 {
    let of_shape = |manifest: &Manifest| {
        let bytes = |id: &ValueId| manifest.values[id.0 as usize].bytes() as u64;
        manifest.inputs.iter().chain(&manifest.outputs).map(bytes).fold(0, u64::saturating_add)
    };
    artifact.manifest.of_each_shape().map(of_shape).max().unwrap_or(0)
}

impl MachineModule {
    /// What processes for CPU code can use of it.
    fn offer(&self) -> Offer {
        Offer {
            device: self.device.clone(),
            functions: self.functions.clone(),
            most: self.budget.memory.most,
            frames: self.budget.frame_bytes.most,
        }
    }

    fn load(&self, args: Args) -> Result<Module, AnyError> {
        args.count(2, Some(2))?;
        let (name, bytes) = (args.get::<String>(0)?, args.get::<bytes::Bytes>(1)?);
        // Everything is checked here, before any of it is used.
        let artifact = Artifact::decode(name, bytes)?;
        if has_gpu_code(&artifact) {
            return Err(format!("{name} has code for a GPU, which servers do not run; compile it for the CPU").into());
        }
        let (taken, frame_bytes) = (self.budget.take(name, need(&artifact))?, frame_bytes(&artifact));
        let mut process = None;
        let session = match &self.cpu_code {
            CpuCode::Refused if has_native_code(&artifact) => {
                return Err(format!(
                    "{name} has code for the CPU, which this server does not run for clients; start it with \
                     --allow-native, or run the model without --upload, so that your machine computes these operators"
                )
                .into());
            }
            CpuCode::InProcess(native, stopped, busy) if has_native_code(&artifact) => {
                if let Some(device) = &self.device {
                    artifact.check_hardware(device.config())?;
                }
                process = Some(self.budget.process(name)?);
                native.load(name, bytes, &self.offer(), stopped.clone(), busy.clone())?
            }
            _ => {
                let session = DynamicSession::of_artifact(artifact, &self.functions, self.device.clone())?;
                Module::new(SessionModule::new(session))
            }
        };
        Ok(Module::new(Loaded { session, frame_bytes, budget: self.budget.clone(), _process: process, _taken: taken }))
    }
}

impl Functions for MachineModule {
    fn kind(&self) -> &'static str {
        "server"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn names(&self) -> Vec<String> {
        let given = self.functions.names().into_iter().filter(|name| name != LOAD);
        std::iter::once(LOAD.to_string()).chain(given).collect()
    }

    fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError> {
        Ok(match name {
            LOAD => Some(Function::new(name, move |args| Ok(self.load(args)?.into()))),
            _ => self.functions.get(name),
        })
    }
}

/// A session that has a part of the budget.
struct Loaded {
    session: Module,
    /// Of inputs and outputs of a frame.
    frame_bytes: u64,
    budget: Budget,
    // After the session, which ends the process.
    _process: Option<OwnedSemaphorePermit>,
    _taken: Taken,
}

impl Loaded {
    /// Submits a frame, which has room until it was waited for or its function is dropped.
    fn submit(self: &Arc<Self>, submit: &Function, args: Args) -> Result<Value, AnyError> {
        let room = self.budget.frame(&self.session.name(), self.frame_bytes)?;
        let Value::Function(wait) = submit.call(args.values())? else {
            return Err(format!("{} returned no function", submit.name()).into());
        };
        let (session, frame) = (self.clone(), Mutex::new(Some((wait, room))));
        let wait = Function::new("wait", move |args| {
            args.count(0, Some(0))?;
            let _session = &session;
            let frame = frame.lock().unwrap_or_else(PoisonError::into_inner).take();
            let (wait, _room) = frame.ok_or("this frame was waited for already")?;
            Ok(wait.call(&[])?)
        });
        Ok(Value::Function(wait))
    }
}

impl Functions for Loaded {
    fn kind(&self) -> &'static str {
        self.session.kind()
    }

    fn name(&self) -> String {
        self.session.name()
    }

    fn names(&self) -> Vec<String> {
        self.session.names()
    }

    fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError> {
        let function = self.session.function(name)?;
        // Its session's part of the budget lives as long as the function.
        let is_submit = name == "submit";
        Ok(Some(Function::new(name, move |args| match is_submit {
            true => self.submit(&function, args),
            false => Ok(function.call(args.values())?),
        })))
    }
}
