//! Runs a whole comparison: compiles for both sides, runs both on the same inputs, and compares their values.

use std::path::PathBuf;

use anyhow::Result;
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, StepKind};
use tilewright_runtime::tensor::Tensor;

use super::report::{Parted, Report};
use super::{Comparison, Other, Outputs, Reference, Side, Tolerance, compare_all, departure};
use crate::device::{self, DeviceKind, DeviceNameError, Extras};

/// The other side of a comparison, by its name on the command line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Right {
    /// A device.
    Device(DeviceKind),
    /// Arrays in a `.npz` file, named after values.
    Npz(PathBuf),
    /// A folder that `run --dump-tensors` wrote.
    Folder(PathBuf),
}

impl std::str::FromStr for Right {
    type Err = String;

    fn from_str(text: &str) -> Result<Right, String> {
        match text.split_once(':') {
            Some(("npz", path)) => Ok(Right::Npz(path.into())),
            Some(("dir", path)) => Ok(Right::Folder(path.into())),
            _ => text
                .parse()
                .map(Right::Device)
                .map_err(|e: DeviceNameError| format!("{e}, or npz:FILE or dir:DIR for arrays")),
        }
    }
}

/// Sides that cannot be compared, and what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct Refused(pub String);

macro_rules! refuse {
    ($($text:tt)*) => { return Err(Refused(format!($($text)*)).into()) };
}

/// Compiles the model for a device and a configuration, with or without keeping every layer's result.
pub type CompileFor<'a> = dyn Fn(DeviceKind, &HwConfig, bool) -> Result<Artifact> + 'a;

/// Inputs of each run, for a compiled model.
pub type RunsFor<'a> = dyn Fn(&Artifact) -> Result<Vec<Vec<Tensor>>> + 'a;

/// Whether the model's file has a value of this name.
pub type Knows<'a> = dyn Fn(&str) -> Result<bool> + 'a;

/// What is compared.
pub enum Model<'a> {
    /// An artifact, which runs as it is.
    Artifact(&'a Artifact),
    /// A model that is compiled for both sides.
    Compiled {
        /// Compiles it.
        compile: &'a CompileFor<'a>,
        /// Whether its file has a value of this name.
        knows: &'a Knows<'a>,
        /// Whether also the ordinary program is compared, which keeps no values.
        ordinary: bool,
    },
}

/// What is compared, and how.
pub struct DiffRequest<'a> {
    /// The model's name in messages.
    pub name: &'a str,
    /// One side.
    pub a: DeviceKind,
    /// Its configuration.
    pub hw_a: &'a HwConfig,
    /// The other side.
    pub b: &'a Right,
    /// Its configuration, if it differs.
    pub hw_b: Option<&'a HwConfig>,
    /// Differences that count as equal.
    pub tolerance: Tolerance,
}

/// The other side, ready to compare.
enum Ready {
    Side(Box<Side>),
    Arrays(Reference),
}

/// Compares a model's values on two sides, run by run up to the first one in which they differ. If they are equal, the
/// ordinary programs, which keep no values, are compared with those that keep them.
///
/// `told` receives what takes time; `ran` the number of runs done, and of all.
///
/// # Errors
/// Errors of compilation, of the devices and of the sessions; arrays that do not match the model.
pub fn diff(
    model: &Model,
    runs: &RunsFor,
    request: &DiffRequest,
    told: &dyn Fn(&str),
    ran: &mut dyn FnMut(usize, usize),
) -> Result<Report> {
    let DiffRequest { name, a: kind_a, hw_a, b: right, tolerance, .. } = *request;
    if request.hw_b.is_some() && !matches!(right, Right::Device(kind) if kind.is_accelerator()) {
        refuse!("--hw-b is for an accelerator; leave it out, or give --b fsim, --b csim or --b rtl");
    }
    let hw_b = request.hw_b.unwrap_or(hw_a);
    if let Model::Artifact(artifact) = model {
        check_sides(name, artifact, kind_a, right)?;
    }
    let compile = |kind: DeviceKind, config: &HwConfig, keep: bool| match model {
        Model::Artifact(artifact) => Ok((*artifact).clone()),
        Model::Compiled { compile, .. } => compile(kind, config, keep),
    };
    let open = |artifact: Artifact, kind: DeviceKind, config: &HwConfig| -> Result<Side> {
        if kind.is_accelerator() {
            artifact.check_hardware(config)?;
        }
        let device = device::open(kind, config, Extras::default(), told)?;
        Ok(Side::new(artifact, config, device)?)
    };
    let artifact_a = compile(kind_a, hw_a, true)?;
    let runs = runs(&artifact_a)?;
    let mut other = match right {
        Right::Device(kind) => {
            let own = |kind: DeviceKind| (!kind.is_accelerator()).then_some(kind);
            let same = hw_a.hash() == hw_b.hash() && own(*kind) == own(kind_a);
            let artifact_b = if same { artifact_a.clone() } else { compile(*kind, hw_b, true)? };
            Ready::Side(Box::new(open(artifact_b, *kind, hw_b)?))
        }
        Right::Npz(path) => Ready::Arrays(Reference::from_npz(path, runs.len())?),
        Right::Folder(path) => Ready::Arrays(Reference::from_folder(path, runs.len())?),
    };
    if let Ready::Arrays(arrays) = &other {
        let knows = |value: &str| match model {
            Model::Artifact(_) => false,
            Model::Compiled { knows, .. } => knows(value).unwrap_or(false),
        };
        arrays.check(&artifact_a.manifest, &knows)?;
    }
    let mut a = open(artifact_a, kind_a, hw_a)?;
    let names = [
        name_of(kind_a, hw_a, request),
        match right {
            Right::Device(kind) => name_of(*kind, hw_b, request),
            Right::Npz(path) | Right::Folder(path) => path.display().to_string(),
        },
    ];
    let mut last = Comparison::default();
    let mut parted = None;
    let mut outputs: [Vec<Outputs>; 2] = Default::default();
    for (run, inputs) in runs.iter().enumerate() {
        a.run(inputs)?;
        outputs[0].push(a.outputs());
        let theirs = match &mut other {
            Ready::Side(b) => {
                b.run(inputs)?;
                outputs[1].push(b.outputs());
                Other::Side(b)
            }
            Ready::Arrays(arrays) => Other::Arrays(arrays, run),
        };
        last = compare_all(&a, &theirs, &tolerance)?;
        if !last.is_equal() {
            parted = Some(run);
            break;
        }
        ran(run + 1, runs.len());
    }
    if last.values.is_empty() && last.unlike.is_empty() {
        refuse!("{name}: the two sides have no value in common; give a model that computes something from its inputs");
    }
    let mut ordinary = None;
    // A device may be there only once, and the ordinary programs are compared on it next.
    a.close();
    if let Ready::Side(b) = &mut other {
        b.close();
    }
    if parted.is_none() && matches!(model, Model::Compiled { ordinary: true, .. }) {
        let of_b = match right {
            Right::Device(kind) if (*kind, hw_b.hash()) != (kind_a, hw_a.hash()) => Some((*kind, hw_b)),
            _ => None,
        };
        for (place, of) in [Some((kind_a, hw_a)), of_b].into_iter().enumerate() {
            let Some((kind, config)) = of.filter(|(kind, _)| kind.is_accelerator()) else { continue };
            let mut side = open(compile(kind, config, false)?, kind, config)?;
            if let Some(found) = departure(&mut side, &runs, &outputs[place], &tolerance)? {
                ordinary = Some((names[place].clone(), found));
                break;
            }
        }
    }
    let b = if let Ready::Side(b) = other { Some(b) } else { None };
    let parted = Parted { run: parted.unwrap_or(0), comparison: last };
    Ok(Report { names, runs: runs.len(), tolerance, a, b, parted, ordinary })
}

/// Refuses the CPU if the artifact contains accelerator programs.
fn check_sides(file: &str, artifact: &Artifact, a: DeviceKind, b: &Right) -> Result<()> {
    if !artifact.manifest.steps.iter().any(|step| matches!(step.kind, StepKind::Accel(_))) {
        return Ok(());
    }
    if !a.is_accelerator() {
        refuse!(
            "{file} is compiled for an accelerator, so --a {a} cannot run it; give --a fsim, --a csim, --a rtl or the \
             model's file"
        );
    }
    if let Right::Device(b) = b
        && !b.is_accelerator()
    {
        refuse!(
            "{file} is compiled for an accelerator, so --b {b} cannot run it; give --b csim, --b rtl, --b dir:DIR, --b \
             npz:FILE or the model's file"
        );
    }
    Ok(())
}

fn name_of(kind: DeviceKind, config: &HwConfig, request: &DiffRequest) -> String {
    let with_config = request.hw_b.is_some() && kind.is_accelerator();
    if with_config { format!("{kind} {}", config.name) } else { kind.to_string() }
}
