//! A session as a module.

use std::sync::{Arc, Mutex, MutexGuard, TryLockError};

use super::Functions;
use super::artifact::values;
use crate::artifact::{Place, ValueId, ValueInfo};
use crate::function::{AnyError, Args, Function};
use crate::session::{RunReport, Session, SessionError, TensorMut, TensorRef};
use crate::value::Value;

/// A session's functions.
///
/// | function | arguments | result |
/// |---|---|---|
/// | `run` | the inputs, one by one or as a list | a list of the outputs |
/// | `report` | the inputs, likewise | a map of `outputs`, `seconds`, `cycles` and `steps`, a list of maps |
/// | `inputs`, `outputs` | | lists of maps with `name`, `dtype` and `shape` |
pub struct SessionModule {
    session: Mutex<Session>,
    /// Its inputs and outputs, which are known while it runs.
    about: [Value; 2],
    edges: [Vec<ValueInfo>; 2],
    name: String,
}

impl SessionModule {
    /// The functions of a session.
    pub fn new(session: Session) -> SessionModule {
        let manifest = &session.artifact().manifest;
        let about = [values(manifest, &manifest.inputs), values(manifest, &manifest.outputs)];
        let infos = |ids: &[ValueId]| ids.iter().map(|id| manifest.values[id.0 as usize].clone()).collect();
        let edges = [infos(&manifest.inputs), infos(&manifest.outputs)];
        SessionModule { name: session.artifact().path.clone(), about, edges, session: Mutex::new(session) }
    }

    /// The model's inputs and outputs.
    pub fn edges(&self) -> &[Vec<ValueInfo>; 2] {
        &self.edges
    }

    /// The session, for one thread at a time.
    fn lock(&self) -> Result<MutexGuard<'_, Session>, SessionError> {
        match self.session.try_lock() {
            Ok(session) => Ok(session),
            // What a panic leaves in a session's memory is written before it is read.
            Err(TryLockError::Poisoned(poisoned)) => Ok(poisoned.into_inner()),
            Err(TryLockError::WouldBlock) => Err(SessionError::Busy),
        }
    }

    /// Runs the session; see [`Session::run_into`].
    ///
    /// # Errors
    /// [`SessionError`]; that is [`SessionError::Busy`] while another thread runs it.
    pub fn run_into(&self, inputs: &[TensorRef], outputs: &mut [TensorMut]) -> Result<RunReport, SessionError> {
        self.lock()?.run_into(inputs, outputs)
    }

    fn report(&self, args: Args) -> Result<Value, AnyError> {
        let mut session = self.lock()?;
        let (outputs, report) = session.run(&args.tensors(0)?)?;
        let steps = session.artifact().manifest.steps.iter().zip(&report.steps);
        let steps = steps.map(|(step, done)| {
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

impl Functions for SessionModule {
    fn kind(&self) -> &'static str {
        "session"
    }

    fn name(&self) -> String {
        self.name.clone()
    }

    fn names(&self) -> Vec<String> {
        ["run", "report", "inputs", "outputs"].map(String::from).to_vec()
    }

    fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError> {
        Ok(Some(match name {
            "run" => Function::new(name, move |args| {
                let (outputs, _) = self.lock()?.run(&args.tensors(0)?)?;
                Ok(outputs.into_iter().map(Value::Tensor).collect())
            }),
            "report" => Function::new(name, move |args| self.report(args)),
            "inputs" => Function::new(name, move |_| Ok(self.about[0].clone())),
            "outputs" => Function::new(name, move |_| Ok(self.about[1].clone())),
            _ => return Ok(None),
        }))
    }
}
