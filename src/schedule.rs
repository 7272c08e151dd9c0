//! Runs scheduled tensor expressions: the loops on the accelerator, checked against the evaluator.

use anyhow::{Context, Result, bail};
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_compiler::codegen::accel::scheduled::{HostInput, Lowered, Mapping};
use tilewright_compiler::schedule::file::File;
use tilewright_compiler::te::{Array, DType, Definition, Scalar};
use tilewright_compiler::tir;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, RunReport};

/// Shifts of random requantizations: results stay within a few bits of the sums.
const SHIFTS: [i64; 2] = [-12, -4];

/// A tensor expression, scheduled and lowered for a configuration.
#[derive(Debug)]
pub struct Scheduled {
    file: File,
    /// The program of the accelerator.
    pub lowered: Lowered,
    /// The loop program before the first step, and after each.
    pub stages: Vec<String>,
}

/// A run, with what it should have given.
#[derive(Debug)]
pub struct Checked {
    /// Names and values of the outputs.
    pub outputs: Vec<(String, Array)>,
    /// What the device reports.
    pub report: RunReport,
    /// For each output, the number of elements that differ from the evaluator's.
    pub differing: Vec<usize>,
}

/// Applies the steps of a file and lowers the result. Keeps the loop program after each step if `stages` is set.
///
/// # Errors
/// The line of a step that cannot be applied, with the reason; or why the loops cannot become instructions.
pub fn schedule(config: &HwConfig, file: File, stages: bool) -> Result<Scheduled> {
    let mut mapping = Mapping::new(config, &file.program)?;
    let mut seen = Vec::new();
    let mut keep = |mapping: &Mapping, title: String| {
        if stages {
            seen.push(format!("// {title}\n{}", mapping.function()));
        }
    };
    keep(&mapping, "plain loops".into());
    for (line, step) in &file.steps {
        let loops = |mapping: &Mapping| {
            let mut all = Vec::new();
            mapping.function().body.visit_loops(&mut |l| all.push(l.var.to_string()));
            all.join(" ")
        };
        mapping
            .apply(step.clone())
            .map_err(|e| anyhow::anyhow!("line {line}: {e}\nthe loops are: {}", loops(&mapping)))?;
        keep(&mapping, format!("line {line}: {step}"));
    }
    let lowered = mapping.lower()?;
    Ok(Scheduled { file, lowered, stages: seen })
}

impl Scheduled {
    /// Returns name, type and shape of each input.
    pub fn inputs(&self) -> Vec<(String, DType, Vec<i64>)> {
        let inputs = self.file.program.tensors.iter().filter(|t| t.definition == Definition::Input);
        inputs.map(|t| (t.name.to_string(), t.dtype, t.shape())).collect()
    }

    /// Returns multiply-accumulates of the products, if all reductions that multiply are counted.
    pub fn macs(&self) -> u64 {
        let product = |t: &tilewright_compiler::te::Tensor| match &t.definition {
            Definition::Reduce { axes, value, .. } => {
                let mut multiplies = false;
                value.visit(&mut |e| {
                    use tilewright_compiler::te::{BinOp, Expr};
                    multiplies |= matches!(e, Expr::Binary(BinOp::Mul, ..)) && e.dtype() == DType::I32;
                });
                let all = t.axes.iter().chain(axes).map(|a| a.extent.unsigned_abs()).product::<u64>();
                if multiplies { all } else { 0 }
            }
            _ => 0,
        };
        self.file.program.tensors.iter().map(product).sum()
    }

    /// Returns data for every input: those given, and random ones for the others. Multipliers and shifts of
    /// requantizations are random within the ranges that networks use.
    ///
    /// # Errors
    /// A given array has another type or shape, belongs to no input, or is a shift outside of 8 bits.
    pub fn data(&self, given: &[(String, Array)], seed: u64) -> Result<Vec<Array>> {
        let inputs = self.inputs();
        if let Some((name, _)) = given.iter().find(|g| !inputs.iter().any(|i| i.0 == g.0)) {
            let known = inputs.iter().map(|i| i.0.as_str()).collect::<Vec<_>>().join(", ");
            bail!("there is no input {name}; the inputs are {known}");
        }
        let role = |i: usize| {
            let packed = |h: &HostInput| match h {
                HostInput::Params(all) => all.iter().position(|&k| k == i),
                HostInput::Tensor(_) => None,
            };
            self.lowered.inputs.iter().find_map(packed)
        };
        let mut random = StdRng::seed_from_u64(seed);
        let mut all = Vec::new();
        for (i, (name, dtype, shape)) in inputs.iter().enumerate() {
            if let Some((_, array)) = given.iter().find(|g| g.0 == *name) {
                if array.dtype != *dtype || array.shape != *shape {
                    let (a, b) = (format!("{}{:?}", array.dtype, array.shape), format!("{dtype}{shape:?}"));
                    bail!("input {name} is {a}; the expression needs {b}");
                }
                let wide = |k: usize| array.get(k).is_some_and(|v| i8::try_from(v.int()).is_err());
                if role(i) == Some(2) && (0..array.len()).any(wide) {
                    bail!("input {name} is a shift of a requantization, which has 8 bits; some element is larger");
                }
                all.push(array.clone());
                continue;
            }
            let range = match (role(i), dtype) {
                (Some(1), _) => [1 << 30, i64::from(i32::MAX)],
                (Some(2), _) => SHIFTS,
                (_, DType::I32) => [-4096, 4095],
                (_, DType::Bool) => [0, 1],
                (_, DType::U8) => [0, 255],
                _ => [-128, 127],
            };
            let mut array = Array::zeros(*dtype, shape);
            for k in 0..array.len() {
                let v = random.random_range(range[0]..=range[1]);
                array.set(k, if *dtype == DType::F32 { Scalar::F(v as f32 / 64.0) } else { Scalar::I(v) });
            }
            all.push(array);
        }
        Ok(all)
    }

    /// Runs on a device and compares the outputs with the evaluator's.
    ///
    /// # Errors
    /// The device or the evaluator fails.
    pub fn check(&self, device: &mut dyn Device, data: &[Array]) -> Result<Checked> {
        let want = tir::evaluate(&self.file.program, data).context("the evaluator")?;
        let (got, report) = self.lowered.run(device, data, &want)?;
        let differ = |(got, want): (&Array, &Array)| (0..want.len()).filter(|&i| got.get(i) != want.get(i)).count();
        let differing = got.iter().zip(&want).map(differ).collect();
        let names = self.file.program.outputs.iter().map(ToString::to_string);
        Ok(Checked { outputs: names.zip(got).collect(), report, differing })
    }
}
