//! A session as a module.

use std::ops::{Deref, DerefMut};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::Functions;
use super::described::{inputs, outputs};
use crate::artifact::{Place, ValueId, ValueInfo};
use crate::clock::Moment;
use crate::function::{AnyError, Args, Function};
use crate::session::{DynamicSession, RunReport, SessionError, TensorMut, TensorRef};
use crate::tensor::{DType, Tensor};
use crate::value::Value;

/// Most runs that one call times.
const MOST_RUNS: usize = 1 << 20;

/// A session's functions.
///
/// | function | arguments | result |
/// |---|---|---|
/// | `run` | the inputs, one by one or as a list | a list of the outputs |
/// | `report` | the inputs, likewise | a map of `outputs`, `seconds`, `cycles` and `steps`, a list of maps |
/// | `submit` | the inputs, likewise | a function without arguments, which waits for the frame and returns a list of the outputs; frames that were submitted are computed at the same time |
/// | `time` | how often, then the inputs | a map of `seconds`, an f64 tensor with the time of each run from its inputs to its outputs, and `cycles` of a run |
/// | `inputs`, `outputs` | | lists of maps with `name`, `dtype` and `shape`, as those of the artifact |
/// | `specialize` | a shape for each input: lists of integers | makes the model ready for these shapes, and describes its outputs for them |
/// | `specialized` | | how often a shape was made ready |
/// | `close` | | frees the model's memory, also that of the device; every later call is [`SessionError::Closed`] |
pub struct SessionModule {
    /// `None` once it is closed.
    session: Mutex<Option<DynamicSession>>,
    is_closed: AtomicBool,
    /// Inputs and outputs. Readable while another thread runs the session; outputs are none if they depend on input
    /// shapes.
    about: [Value; 2],
    edges: [Vec<ValueInfo>; 2],
    name: String,
}

/// A session that is open, for one thread.
struct Open<'a>(MutexGuard<'a, Option<DynamicSession>>);

impl Deref for Open<'_> {
    type Target = DynamicSession;

    fn deref(&self) -> &DynamicSession {
        self.0.as_ref().expect("`lock` refuses a closed session")
    }
}

impl DerefMut for Open<'_> {
    fn deref_mut(&mut self) -> &mut DynamicSession {
        self.0.as_mut().expect("`lock` refuses a closed session")
    }
}

impl SessionModule {
    /// The functions of a session.
    pub fn new(session: DynamicSession) -> SessionModule {
        let about = [inputs(session.inputs()), session.manifest().map_or(Value::None, outputs)];
        let edges = session.manifest().map(|manifest| {
            let infos = |ids: &[ValueId]| ids.iter().map(|id| manifest.values[id.0 as usize].clone()).collect();
            [infos(&manifest.inputs), infos(&manifest.outputs)]
        });
        let edges = edges.unwrap_or_default();
        SessionModule {
            name: session.name().to_string(),
            about,
            edges,
            session: Mutex::new(Some(session)),
            is_closed: AtomicBool::new(false),
        }
    }

    /// The model's inputs and outputs, for the first of its shapes.
    pub fn edges(&self) -> &[Vec<ValueInfo>; 2] {
        &self.edges
    }

    /// The session, for one thread at a time.
    fn lock(&self) -> Result<Open<'_>, SessionError> {
        let session = match self.session.try_lock() {
            Ok(session) => session,
            // What a panic leaves in a session's memory is written before it is read.
            Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
            Err(TryLockError::WouldBlock) => return Err(SessionError::Busy),
        };
        if session.is_some() { Ok(Open(session)) } else { Err(SessionError::Closed) }
    }

    /// Whether it was closed.
    pub fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::Relaxed)
    }

    /// Frees the model's memory, also that of the device, after the frames that were submitted. Does nothing if it was
    /// closed before.
    ///
    /// # Errors
    /// [`SessionError::Busy`] while another thread runs it.
    pub fn close(&self) -> Result<(), SessionError> {
        match self.lock() {
            Ok(mut open) => {
                self.is_closed.store(true, Ordering::Relaxed);
                open.0.take();
                Ok(())
            }
            Err(SessionError::Closed) => Ok(()),
            Err(error) => Err(error),
        }
    }

    fn check_open(&self) -> Result<(), SessionError> {
        if self.is_closed() { Err(SessionError::Closed) } else { Ok(()) }
    }

    /// Runs the session; see [`Session::run_into`](crate::session::Session::run_into).
    ///
    /// # Errors
    /// [`SessionError`]; that is [`SessionError::Busy`] while another thread runs it.
    pub fn run_into(&self, inputs: &[TensorRef], outputs: &mut [TensorMut]) -> Result<RunReport, SessionError> {
        self.lock()?.run_into(inputs, outputs)
    }

    fn specialize(&self, args: Args) -> Result<Value, AnyError> {
        let mut session = self.lock()?;
        let size = |value: &Value| -> Result<usize, AnyError> {
            let size = *<&i64>::try_from(value)?;
            usize::try_from(size).map_err(|_| format!("the size {size} of a shape is negative").into())
        };
        let shape = |value: &Value| <&Vec<Value>>::try_from(value)?.iter().map(size).collect::<Result<_, AnyError>>();
        let shapes = args.values().iter().map(shape).collect::<Result<Vec<Vec<usize>>, AnyError>>()?;
        let dtypes: Vec<DType> = session.inputs().iter().map(|input| input.dtype).collect();
        args.count(dtypes.len(), Some(dtypes.len()))?;
        let pairs = shapes.iter().zip(dtypes);
        let inputs: Vec<TensorRef> = pairs.map(|(shape, dtype)| TensorRef { dtype, shape, bytes: &[] }).collect();
        Ok(outputs(&session.description_for(&inputs)?))
    }

    fn submit(&self, args: Args) -> Result<Value, AnyError> {
        let pending = Mutex::new(Some(self.lock()?.submit(args.tensors(0)?)?));
        let wait = Function::new("wait", move |args| {
            args.count(0, Some(0))?;
            let mut pending = match pending.try_lock() {
                Ok(pending) => pending,
                Err(TryLockError::Poisoned(poisoned)) => poisoned.into_inner(),
                Err(TryLockError::WouldBlock) => return Err("another thread waits for this frame".into()),
            };
            // A wait that is stopped leaves the frame to another one.
            let outcome = pending.as_ref().ok_or("this frame was waited for already")?.wait_once()?;
            *pending = None;
            let (outputs, _) = outcome?;
            Ok(outputs.into_iter().map(Value::Tensor).collect())
        });
        Ok(Value::Function(wait))
    }

    fn time(&self, args: Args) -> Result<Value, AnyError> {
        let times = *args.get::<i64>(0)?;
        let runs = usize::try_from(times).ok().filter(|runs| (1..=MOST_RUNS).contains(runs));
        let runs = runs.ok_or_else(|| format!("{times} runs cannot be timed; ask for 1 to {MOST_RUNS}"))?;
        let (mut session, given) = (self.lock()?, args.tensors(1)?);
        let mut seconds = Vec::with_capacity(runs * size_of::<f64>());
        let mut cycles = None;
        for _ in 0..runs {
            let begun = Moment::now();
            let (_, report) = session.run(&given)?;
            seconds.extend(begun.elapsed().as_secs_f64().to_le_bytes());
            cycles = report.cycles();
        }
        let seconds = Tensor { dtype: DType::F64, shape: vec![runs], bytes: seconds.into() };
        Ok(Value::from_iter([("seconds", seconds.into()), ("cycles", cycles.into())]))
    }

    fn report(&self, args: Args) -> Result<Value, AnyError> {
        let (mut session, given) = (self.lock()?, args.tensors(0)?);
        let (outputs, report) = session.run(&given)?;
        let ran = session.last().map_or(&[][..], |session| &session.artifact().manifest.steps);
        let steps = ran.iter().zip(&report.steps).map(|(step, done)| {
            let mut map = vec![
                ("name", step.name.as_str().into()),
                ("place", done.place.name().into()),
                ("seconds", done.wall_s.into()),
            ];
            if done.place == Place::Accel {
                map.extend([
                    ("convert_seconds", done.convert_s.into()),
                    ("cycles", done.cycles.into()),
                    ("macs", Value::Integer(done.macs as i64)),
                    ("bytes_read", done.bytes.map(|(read, _)| read).into()),
                    ("bytes_written", done.bytes.map(|(_, written)| written).into()),
                ]);
            }
            map.into_iter().collect::<Value>()
        });
        Ok(Value::from_iter([
            ("outputs", outputs.into_iter().map(Value::Tensor).collect()),
            ("seconds", report.wall_s().into()),
            ("cycles", report.cycles().into()),
            ("steps", steps.collect()),
        ]))
    }
}

type Body = fn(&SessionModule, Args) -> Result<Value, AnyError>;

const FUNCTIONS: [(&str, Body); 9] = [
    ("run", |module, args| {
        let (outputs, _) = module.lock()?.run(&args.tensors(0)?)?;
        Ok(outputs.into_iter().map(Value::Tensor).collect())
    }),
    ("report", SessionModule::report),
    ("time", SessionModule::time),
    ("submit", SessionModule::submit),
    ("inputs", |module, _| {
        module.check_open()?;
        Ok(module.about[0].clone())
    }),
    ("outputs", |module, _| {
        module.check_open()?;
        match &module.about[1] {
            Value::None => Err("the outputs depend on the inputs' shapes; call specialize with shapes".into()),
            known => Ok(known.clone()),
        }
    }),
    ("specialize", SessionModule::specialize),
    ("specialized", |module, _| Ok(Value::Integer(module.lock()?.specialized() as i64))),
    ("close", |module, args| {
        args.count(0, Some(0))?;
        module.close()?;
        Ok(Value::None)
    }),
];

impl Functions for SessionModule {
    fn kind(&self) -> &'static str {
        "session"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn names(&self) -> Vec<String> {
        FUNCTIONS.iter().map(|(name, _)| name.to_string()).collect()
    }

    fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError> {
        let body = FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, body)| *body);
        Ok(body.map(|body| Function::new(name, move |args| body(&self, args))))
    }
}
