//! Artifacts that run on a server.

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::DeviceError;
use tilewright_rpc::Remote;
use tilewright_runtime::artifact::{Artifact, ArtifactError, Manifest, Place};
use tilewright_runtime::session::{RunReport, StepReport};
use tilewright_runtime::tensor::Tensor;
use tilewright_runtime::value::Value;
use tilewright_runtime::{CallError, Module};

use crate::device::{DeviceKind, Extras, open_server};

/// Time that the server is asked to measure at a time, so that progress can be shown.
const PIECE_S: f64 = 0.5;

/// Why an artifact does not run on a server.
#[derive(Debug, thiserror::Error)]
pub enum UploadError {
    /// The server's device cannot be had.
    #[error(transparent)]
    Device(#[from] DeviceError),
    /// The artifact cannot be read.
    #[error(transparent)]
    Artifact(#[from] ArtifactError),
    /// A call failed.
    #[error(transparent)]
    Call(#[from] CallError),
    /// The server's answer is not what it should be.
    #[error("{server}: its answer has no {what}; use the same version of Tilewright on both sides")]
    Answer {
        /// The server.
        server: String,
        /// What is missing or wrong.
        what: &'static str,
    },
}

/// An artifact that was uploaded to a server, with a session of it there.
pub struct Uploaded {
    server: String,
    session: Module,
    manifest: Manifest,
}

/// Figures of a step that the server reports.
fn step(map: &Value) -> Option<StepReport> {
    let Value::Map(map) = map else { return None };
    let count = |name: &str| match map.get(name) {
        Some(Value::Integer(count)) => u64::try_from(*count).ok(),
        _ => None,
    };
    let seconds = |name: &str| match map.get(name) {
        Some(Value::Float(seconds)) => Some(*seconds),
        _ => None,
    };
    let Some(Value::String(place)) = map.get("place") else { return None };
    let place = [Place::Accel, Place::Cpu].into_iter().find(|known| known.name() == place)?;
    Some(StepReport {
        wall_s: seconds("seconds")?,
        convert_s: seconds("convert_seconds").unwrap_or_default(),
        cycles: count("cycles"),
        macs: count("macs").unwrap_or_default(),
        bytes: count("bytes_read").zip(count("bytes_written")),
        ..StepReport::on(place)
    })
}

impl Uploaded {
    /// Uploads an artifact to the server of `kind` and makes a session there. `told` receives the steps that take time,
    /// such as the wait for the device.
    ///
    /// # Errors
    /// [`UploadError`].
    pub fn new(
        kind: DeviceKind,
        artifact: &Artifact,
        config: &HwConfig,
        extras: Extras,
        told: &dyn Fn(&str),
    ) -> Result<Uploaded, UploadError> {
        // Without accelerator code, it runs beside any accelerator.
        let config = artifact.manifest.hardware.as_ref().map(|_| config);
        let remote = open_server(kind, None, config, extras, told)?;
        Uploaded::to(&remote, &kind.to_string(), artifact, told)
    }

    /// Uploads an artifact in a session that is open. `server` names the server in messages.
    ///
    /// # Errors
    /// [`UploadError`].
    pub fn to(
        remote: &Remote,
        server: &str,
        artifact: &Artifact,
        told: &dyn Fn(&str),
    ) -> Result<Uploaded, UploadError> {
        let name = artifact.path.rsplit('/').next().unwrap_or_default();
        let bytes = artifact.encode();
        let session = remote.load(name, bytes.into(), &|sent, all| {
            told(&format!("upload: {:.1} of {:.1} MB", sent as f64 / 1e6, all as f64 / 1e6));
        });
        told("");
        Ok(Uploaded { server: server.into(), session: session?, manifest: artifact.manifest.clone() })
    }

    fn call(&self, name: &str, arguments: &[Value]) -> Result<Value, UploadError> {
        Ok(self.session.function(name)?.call(arguments)?)
    }

    fn wrong(&self, what: &'static str) -> UploadError {
        UploadError::Answer { server: self.server.clone(), what }
    }

    /// Runs it once on inputs in the model's order, and fetches the outputs and the server's figures.
    ///
    /// # Errors
    /// [`UploadError`].
    pub fn run(&self, inputs: &[Tensor]) -> Result<(Vec<Tensor>, RunReport), UploadError> {
        let arguments: Vec<Value> = inputs.iter().cloned().map(Value::Tensor).collect();
        let Value::Map(mut report) = self.call("report", &arguments)? else { return Err(self.wrong("report")) };
        let Some(Value::List(outputs)) = report.remove("outputs") else { return Err(self.wrong("outputs")) };
        let wanted = self.manifest.outputs.iter().map(|id| &self.manifest.values[id.0 as usize]);
        let outputs: Vec<Tensor> = outputs
            .into_iter()
            .zip(wanted)
            .filter_map(|(output, wanted)| match output {
                Value::Tensor(tensor) if tensor.dtype == wanted.dtype && tensor.shape == wanted.shape => Some(tensor),
                _ => None,
            })
            .collect();
        if outputs.len() != self.manifest.outputs.len() {
            return Err(self.wrong("outputs of the model's shapes"));
        }
        let Some(Value::List(steps)) = report.get("steps") else { return Err(self.wrong("steps")) };
        let steps = steps.iter().map(step).collect::<Option<Vec<StepReport>>>();
        Ok((outputs, RunReport { steps: steps.ok_or_else(|| self.wrong("figures of each step"))? }))
    }

    /// Seconds of each of `runs` runs by the server's clock, from inputs in its memory to outputs in its memory. `told`
    /// receives how many are done.
    ///
    /// # Errors
    /// [`UploadError`].
    pub fn time(&self, inputs: &[Tensor], runs: usize, told: &mut dyn FnMut(usize)) -> Result<Vec<f64>, UploadError> {
        let mut times: Vec<f64> = Vec::with_capacity(runs);
        let mut next = 1;
        while times.len() < runs {
            let count = next.min(runs - times.len());
            let mut arguments = vec![Value::Integer(count as i64)];
            arguments.extend(inputs.iter().cloned().map(Value::Tensor));
            let found = match self.call("time", &arguments)? {
                Value::Map(mut found) => found.remove("seconds"),
                _ => None,
            };
            let Some(Value::Tensor(seconds)) = found else { return Err(self.wrong("times")) };
            if seconds.len() != count {
                return Err(self.wrong("time of each run"));
            }
            times.extend(seconds.to_f64());
            let each = times.iter().sum::<f64>() / times.len() as f64;
            next = ((PIECE_S / each.max(1e-9)) as usize).clamp(1, 10_000);
            told(times.len());
        }
        Ok(times)
    }
}
