//! Runs scheduled tensor expressions, on the accelerator or on the CPU, and checks them against the evaluator.

#[cfg(feature = "llvm")]
mod cpu;

use std::collections::HashMap;
use std::time::Duration;

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_compiler::codegen::accel::scheduled::{Lowered, Mapping};
use tilewright_compiler::schedule::{Schedule, file::File};
use tilewright_compiler::te::{Array, BinOp, DType, Definition, Expr, Func, Name, Scalar, Tensor};
use tilewright_compiler::tir::{self, Function};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;

#[cfg(feature = "llvm")]
use cpu::on_cpu;

/// Most elements and terms of sums that the evaluator computes.
const MOST_POINTS: f64 = 1e10;

/// Largest relative difference of floats whose operations have another order.
const ROUNDING: f64 = 1e-5;

/// The use of an input in a scaling, which decides its random values.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Role {
    Multiplier,
    /// A shift to the left, as `scale_double` has it.
    ShiftDouble,
    /// A shift to the right, as `scale_single` has it.
    ShiftSingle,
}

/// What a schedule is for.
#[derive(Debug, Clone, Copy)]
pub enum Target<'c> {
    /// The accelerator of a configuration.
    Accelerator(&'c HwConfig),
    /// This machine's processor.
    Cpu,
}

/// The result of a schedule.
#[derive(Debug)]
pub enum Code {
    /// A program of the accelerator.
    Accelerator(Lowered),
    /// Loops for the CPU.
    Cpu(Function),
}

/// A tensor expression, scheduled for a target.
#[derive(Debug)]
pub struct Scheduled {
    file: File,
    /// The program.
    pub code: Code,
    /// The expression with all calls of operators spelled out, then the loop program before the first step, and after
    /// each.
    pub stages: Vec<String>,
}

/// The outputs of a run, compared with the evaluator's.
#[derive(Debug)]
pub struct Checked {
    /// Names and values of the outputs.
    pub outputs: Vec<(String, Array)>,
    /// Cycles that the device reports.
    pub cycles: Option<u64>,
    /// Median time of a run on the CPU.
    pub time: Option<Duration>,
    /// For each output, the number of elements that differ from the evaluator's: any difference of integers, and one above
    /// a relative 1e-5 of floats.
    pub differing: Vec<usize>,
}

/// The steps of one of the two targets.
enum Steps {
    Accelerator(Box<Mapping>),
    Cpu(Box<Schedule>),
}

impl Steps {
    fn function(&self) -> Function {
        match self {
            Steps::Accelerator(mapping) => mapping.function(),
            Steps::Cpu(schedule) => schedule.function().clone(),
        }
    }
}

/// Applies the steps of a file and lowers the result. Keeps the loop program after each step if `stages` is set.
///
/// # Errors
/// The line of a step that cannot be applied, with the reason; or why the loops cannot become instructions.
pub fn schedule(target: Target, file: File, stages: bool) -> Result<Scheduled> {
    let points = |t: &Tensor| {
        let sums = if let Definition::Reduce { axes, .. } = &t.definition { axes.as_slice() } else { &[] };
        t.axes.iter().chain(sums).map(|a| a.extent as f64).product::<f64>()
    };
    let work: f64 = file.program.tensors.iter().map(points).sum();
    if work > MOST_POINTS {
        bail!("the expression has {work:.1e} elements and terms of sums; at most {MOST_POINTS:.1e} can be checked");
    }
    let mut steps = match target {
        Target::Accelerator(config) => Steps::Accelerator(Box::new(Mapping::new(config, &file.program)?)),
        Target::Cpu => Steps::Cpu(Box::new(Schedule::new(tir::lower(&file.program)?))),
    };
    let mut seen = if stages { vec![format!("// expression\n{}", file.program)] } else { Vec::new() };
    let mut keep = |steps: &Steps, title: String| {
        if stages {
            seen.push(format!("// {title}\n{}", steps.function()));
        }
    };
    keep(&steps, "plain loops".into());
    for (line, step) in &file.steps {
        let applied = match &mut steps {
            Steps::Accelerator(mapping) => mapping.apply(step.clone()),
            Steps::Cpu(schedule) => schedule.apply(step.clone()),
        };
        if let Err(e) = applied {
            bail!("line {line}: {e}\nthe loops are: {}", steps.function().loop_names());
        }
        keep(&steps, format!("line {line}: {step}"));
    }
    let code = match steps {
        Steps::Accelerator(mapping) => Code::Accelerator(mapping.lower()?),
        Steps::Cpu(schedule) => Code::Cpu(schedule.into_function()),
    };
    Ok(Scheduled { file, code, stages: seen })
}

impl Scheduled {
    /// Returns the sizes that the file declares, with the values that it was scheduled for.
    pub fn sizes(&self) -> &[(Name, i64)] {
        &self.file.sizes
    }

    /// Returns name, type and shape of each input.
    pub fn inputs(&self) -> Vec<(String, DType, Vec<i64>)> {
        let inputs = self.file.program.tensors.iter().filter(|t| t.definition == Definition::Input);
        inputs.map(|t| (t.name.to_string(), t.dtype, t.shape())).collect()
    }

    /// Returns multiply-accumulates of the products, if all reductions that multiply are counted.
    pub fn macs(&self) -> u64 {
        let product = |t: &Tensor| match &t.definition {
            Definition::Reduce { axes, value, .. } => {
                let mut multiplies = false;
                value.visit(&mut |e| {
                    multiplies |= matches!(e, Expr::Binary(BinOp::Mul, ..)) && e.dtype() != DType::I64;
                });
                let all = t.axes.iter().chain(axes).map(|a| a.extent.unsigned_abs()).product::<u64>();
                if multiplies { all } else { 0 }
            }
            _ => 0,
        };
        self.file.program.tensors.iter().map(product).sum()
    }

    /// Returns which inputs are multipliers and shifts of a scaling.
    fn roles(&self) -> HashMap<String, Role> {
        let mut roles = HashMap::new();
        let mut see = |e: &Expr| {
            let Expr::Call(scale @ (Func::ScaleDouble | Func::ScaleSingle), args) = e else { return };
            let shift = if *scale == Func::ScaleDouble { Role::ShiftDouble } else { Role::ShiftSingle };
            for (arg, role) in args.iter().skip(1).zip([Role::Multiplier, shift]) {
                if let Expr::Load { buffer, .. } = arg {
                    roles.insert(buffer.to_string(), role);
                }
            }
        };
        for t in &self.file.program.tensors {
            match &t.definition {
                Definition::Input => {}
                Definition::Compute(value) => value.visit(&mut see),
                Definition::Reduce { init, value, .. } => {
                    init.visit(&mut see);
                    value.visit(&mut see);
                }
            }
        }
        roles
    }

    /// Returns data for every input: those given, and random ones for the others. Random multipliers and shifts leave
    /// results of a few bits less than the sums have.
    ///
    /// # Errors
    /// A given array has another type or shape, or belongs to no input.
    pub fn data(&self, given: &[(String, Array)], seed: u64) -> Result<Vec<Array>> {
        let inputs = self.inputs();
        if let Some((name, _)) = given.iter().find(|g| !inputs.iter().any(|i| i.0 == g.0)) {
            let known = inputs.iter().map(|i| i.0.as_str()).collect::<Vec<_>>().join(", ");
            bail!("there is no input {name}; the inputs are {known}");
        }
        let roles = self.roles();
        let mut random = StdRng::seed_from_u64(seed);
        let mut all = Vec::new();
        for (name, dtype, shape) in &inputs {
            if let Some((_, array)) = given.iter().find(|g| g.0 == *name) {
                if array.dtype != *dtype || array.shape != *shape {
                    let (a, b) = (format!("{}{:?}", array.dtype, array.shape), format!("{dtype}{shape:?}"));
                    bail!("input {name} is {a}; the expression needs {b}");
                }
                all.push(array.clone());
                continue;
            }
            let range = match (roles.get(name), dtype) {
                (Some(Role::Multiplier), _) => [1 << 30, i64::from(i32::MAX)],
                (Some(Role::ShiftDouble), _) => [-12, -4],
                (Some(Role::ShiftSingle), _) => [34, 42],
                (None, DType::I32) => [-4096, 4095],
                (_, DType::Bool) => [0, 1],
                (_, DType::U8 | DType::U16 | DType::U32 | DType::U64) => [0, 255],
                _ => [-128, 127],
            };
            let mut array = Array::zeros(*dtype, shape);
            for k in 0..array.len() {
                let v = random.random_range(range[0]..=range[1]);
                array.set(k, if dtype.is_float() { Scalar::D(v as f64 / 64.0) } else { Scalar::I(v) });
            }
            all.push(array);
        }
        Ok(all)
    }

    /// Runs and compares the outputs with the evaluator's. `device` runs programs of the accelerator; the CPU needs none.
    ///
    /// # Errors
    /// The device, the CPU's code or the evaluator fails, or there is no device for a program of the accelerator.
    pub fn check(&self, device: Option<&mut dyn Device>, data: &[Array]) -> Result<Checked> {
        let want = tir::evaluate(&self.file.program, data).context("the evaluator")?;
        let (got, cycles, time) = match (&self.code, device) {
            (Code::Accelerator(lowered), Some(device)) => {
                let (got, report) = lowered.run(device, data, &want)?;
                (got, report.cycles, None)
            }
            (Code::Accelerator(_), None) => bail!("the schedule is for the accelerator; it needs a device"),
            (Code::Cpu(function), _) => {
                let (got, time) = on_cpu(function, data)?;
                (got, None, Some(time))
            }
        };
        // Floats may be rounded in another order.
        let same = |a: Option<Scalar>, b: Option<Scalar>| match (a, b) {
            (Some(a @ (Scalar::F(_) | Scalar::D(_))), Some(b)) => {
                let (a, b) = (a.double(), b.double());
                (a.is_nan() && b.is_nan()) || a == b || (a - b).abs() <= ROUNDING * b.abs()
            }
            (a, b) => a == b,
        };
        let differ =
            |(got, want): (&Array, &Array)| (0..want.len()).filter(|&i| !same(got.get(i), want.get(i))).count();
        let differing = got.iter().zip(&want).map(differ).collect();
        let names = self.file.program.outputs.iter().map(ToString::to_string);
        Ok(Checked { outputs: names.zip(got).collect(), cycles, time, differing })
    }
}

#[cfg(not(feature = "llvm"))]
fn on_cpu(_: &Function, _: &[Array]) -> Result<(Vec<Array>, Duration)> {
    bail!("this program was built without LLVM; build it with the feature `llvm`")
}
