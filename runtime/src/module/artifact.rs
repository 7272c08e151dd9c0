//! An artifact as a module.

use std::sync::Arc;

use super::described::{inputs, outputs};
use super::device::{DeviceModule, open_device};
use super::session::SessionModule;
use super::{Functions, Module};
use crate::artifact::{Artifact, Manifest, Step, StepKind, ValueId};
use crate::function::{AnyError, Args, Function};
use crate::registry::Registry;
use crate::session::{DynamicSession, Session};
use crate::value::Value;

/// An artifact's functions.
///
/// | function | arguments | result |
/// |---|---|---|
/// | `session` | a device: its name, its module, or none | a session, which is a module |
/// | `inputs`, `outputs` | | lists of maps with `name`, `dtype` and `shape`; an input's open size is its name, an output's is none |
/// | `steps` | | the names of its steps |
/// | `config` | | the hardware's configuration as TOML; none if nothing runs on an accelerator |
/// | `manifest` | | its description as JSON |
/// | `step:NAME` | the inputs of a step of the host, each once and without constants | the outputs of that step, a list |
pub struct ArtifactModule {
    artifact: Artifact,
    functions: Registry,
}

const STEP: &str = "step:";

impl ArtifactModule {
    /// The functions of an artifact. Its sessions look for packed functions and for devices in `functions`.
    pub fn new(artifact: Artifact, functions: Registry) -> ArtifactModule {
        ArtifactModule { artifact, functions }
    }

    /// The artifact.
    pub fn artifact(&self) -> &Artifact {
        &self.artifact
    }

    fn session(&self, args: Args) -> Result<Value, AnyError> {
        args.count(0, Some(1))?;
        let device = match args.values().first() {
            None | Some(Value::None) => None,
            Some(Value::Module(module)) => Some(DeviceModule::of(module)?.clone()),
            _ => {
                let hardware = self.artifact.manifest.hardware.as_ref();
                let name = args.get::<String>(0)?;
                // Without accelerator code, no device is opened.
                let config = hardware.map(|hardware| &hardware.toml);
                let opened = config.map(|config| open_device(&self.functions, name, config)).transpose()?;
                opened.map(|module| DeviceModule::of(&module).cloned()).transpose()?
            }
        };
        let session = DynamicSession::of_artifact(self.artifact.clone(), &self.functions, device)?;
        Ok(Module::new(SessionModule::new(session)).into())
    }

    /// The steps that need no accelerator and no GPU.
    fn host_steps(&self) -> impl Iterator<Item = &Step> {
        let steps = self.artifact.manifest.steps.iter();
        steps.filter(|step| matches!(step.kind, StepKind::Cpu { .. } | StepKind::Packed { .. }))
    }

    /// The function that computes one step: a session of nothing else.
    fn step(&self, name: &str) -> Result<Option<Function>, AnyError> {
        let Some(step) = self.host_steps().find(|step| step.name == name) else { return Ok(None) };
        let manifest = &self.artifact.manifest;
        let mut inputs: Vec<ValueId> = Vec::new();
        for id in &step.inputs {
            if manifest.values[id.0 as usize].constant.is_none() && !inputs.contains(id) {
                inputs.push(*id);
            }
        }
        let alone = Manifest {
            inputs,
            outputs: step.outputs.clone(),
            output_names: Vec::new(),
            steps: vec![step.clone()],
            nodes: Vec::new(),
            ..manifest.clone()
        };
        let session = Session::on(self.artifact.with_manifest(alone)?, &self.functions, None)?;
        Module::new(SessionModule::new(session.into())).function("run").map(Some).map_err(AnyError::from)
    }
}

type Body = fn(&ArtifactModule, Args) -> Result<Value, AnyError>;

/// The functions but those of single steps.
const FUNCTIONS: [(&str, Body); 6] = [
    ("session", ArtifactModule::session),
    ("inputs", |module, _| Ok(inputs(&module.artifact.inputs()))),
    ("outputs", |module, _| Ok(outputs(&module.artifact.manifest))),
    ("steps", |module, _| {
        let steps = module.artifact.manifest.steps.iter();
        Ok(steps.map(|step| Value::from(step.name.as_str())).collect())
    }),
    ("config", |module, _| {
        let hardware = module.artifact.manifest.hardware.as_ref();
        Ok(hardware.map_or(Value::None, |hardware| hardware.toml.as_str().into()))
    }),
    ("manifest", |module, _| Ok(serde_json::to_string(&module.artifact.manifest)?.into())),
];

impl Functions for ArtifactModule {
    fn kind(&self) -> &'static str {
        "artifact"
    }

    fn name(&self) -> String {
        self.artifact.path.clone()
    }

    fn names(&self) -> Vec<String> {
        let own = FUNCTIONS.iter().map(|(name, _)| name.to_string());
        own.chain(self.host_steps().map(|step| format!("{STEP}{}", step.name))).collect()
    }

    fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError> {
        match FUNCTIONS.iter().find(|(known, _)| *known == name) {
            Some((_, body)) => Ok(Some(Function::new(name, move |args| body(&self, args)))),
            None => name.strip_prefix(STEP).map_or(Ok(None), |step| self.step(step)),
        }
    }
}

#[cfg(test)]
mod tests {
    use crate::session::tests::{artifact, functions, x};
    use crate::tensor::Tensor;

    use super::*;

    fn call(module: &Module, name: &str, args: &[Value]) -> Result<Value, String> {
        module.function(name).and_then(|function| function.call(args)).map_err(|error| error.to_string())
    }

    fn tensors(value: &Value) -> Vec<Tensor> {
        let Value::List(values) = value else { panic!("{value} is no list") };
        values.iter().map(|value| <&Tensor>::try_from(value).unwrap().clone()).collect()
    }

    #[test]
    fn an_artifact_opens_sessions_and_computes_single_steps() {
        let model = Module::new(ArtifactModule::new(artifact(), functions()));
        let own = ["config", "inputs", "manifest", "outputs", "session", "step:add2", "step:add3", "steps"];
        assert_eq!(model.names(), own);
        let inputs = "[{\"dtype\": \"i8\", \"name\": \"x\", \"shape\": [1, 3]}]";
        assert_eq!(call(&model, "inputs", &[]).unwrap().to_string(), inputs);
        assert_eq!(call(&model, "steps", &[]).unwrap().to_string(), "[\"add2\", \"add3\"]");
        let Value::Module(session) = call(&model, "session", &[]).unwrap() else { panic!("no session") };
        assert_eq!(call(&session, "inputs", &[]).unwrap().to_string(), inputs);
        let outputs = call(&session, "run", &[x(&[1, 1, 1]).into()]).unwrap();
        assert_eq!(tensors(&outputs), [x(&[4, 6, 8]), x(&[2, 3, 4])]);
        let Value::Map(report) = call(&session, "report", &[x(&[1, 1, 1]).into()]).unwrap() else { panic!("no map") };
        assert_eq!(tensors(&report["outputs"]), tensors(&outputs));
        // A constant is no argument, and a value that is read twice is one.
        assert_eq!(tensors(&call(&model, "step:add2", &[x(&[0, 0, 1]).into()]).unwrap()), [x(&[1, 2, 4])]);
        assert_eq!(tensors(&call(&model, "step:add3", &[x(&[0, 0, 1]).into()]).unwrap()), [x(&[0, 0, 2])]);
    }

    #[test]
    fn wrong_calls_say_what_is_wrong() {
        let model = Module::new(ArtifactModule::new(artifact(), functions()));
        let unknown = call(&model, "step:add9", &[]).unwrap_err();
        assert!(unknown.starts_with("no function of sum is named step:add9; there are: config, "), "{unknown}");
        assert_eq!(
            call(&model, "session", &[1.into()]).unwrap_err(),
            "argument 0 of session: it is an integer where a string is expected"
        );
        let this = Value::Module(model.clone());
        assert_eq!(
            call(&model, "session", &[this]).unwrap_err(),
            "session: sum is no device but a module of kind artifact"
        );
        let Value::Module(session) = call(&model, "session", &[]).unwrap() else { panic!("no session") };
        assert_eq!(call(&session, "run", &[]).unwrap_err(), "run: 0 inputs given, but the model has 1: x");
        assert_eq!(
            call(&session, "run", &["x".into()]).unwrap_err(),
            "argument 0 of run: it is a string where a tensor is expected"
        );
    }
}
