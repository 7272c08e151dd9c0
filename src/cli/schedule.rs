//! `schedule`: runs a tensor expression as its schedule says, and checks the result.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use tilewright::device::{self, DeviceKind, Extras};
use tilewright::model::ModelFile;
use tilewright::model::given::{arrays, name_and_path};
use tilewright::model::schedules::ScheduleFile;
use tilewright::schedule::{Checked, Code, Scheduled, Target, schedule};
use tilewright_compiler::codegen::accel::scheduled::MemoryUse;
use tilewright_compiler::graph::Tensor;
use tilewright_compiler::schedule::file;
use tilewright_compiler::te::Array;
use tilewright_compiler::te::ops::Library;
use tilewright_compiler::te::text::Names;
use tilewright_hw::HwConfig;
use tilewright_hw::device::Device;
use tilewright_runtime::npy;

use super::compilation::Compilation;
use super::progress::tell;
use super::{Hw, Verdict, read_file, write_or_print};

/// Arguments of `schedule`.
#[derive(clap::Args)]
pub struct ScheduleArguments {
    /// A tensor expression with its schedule (.te)
    #[arg(required_unless_present = "of", conflicts_with = "of")]
    file: Option<PathBuf>,
    /// Write the schedule that the compiler chose for a layer of a model, instead of running one; without a layer, list
    /// the layers of the accelerator
    #[arg(long, value_name = "MODEL[:LAYER]")]
    of: Option<String>,
    /// File for the schedule of `--of` [default: standard output]
    #[arg(short, long, value_name = "FILE", requires = "of", conflicts_with = "output_dir")]
    output: Option<PathBuf>,
    #[command(flatten)]
    compilation: Compilation,
    #[command(flatten)]
    hw: Hw,
    /// The device to run on
    #[arg(long, default_value = "fsim", value_name = "DEVICE", conflicts_with = "of")]
    device: DeviceKind,
    /// Data for an input: a .npy file, or a .npz file with an array for each input; inputs without data are random
    #[arg(long, value_name = "[NAME=]FILE", conflicts_with = "of")]
    input: Vec<String>,
    /// Seed of the random inputs
    #[arg(long, default_value_t = 1, conflicts_with = "of")]
    seed: u64,
    /// Print the expression with calls of operators spelled out, and the loop program before the first step and after each
    #[arg(long, conflicts_with = "of")]
    steps: bool,
    /// Print the instructions
    #[arg(long, conflicts_with = "of")]
    asm: bool,
    /// Refuse programs that are correct only by accident of timing (csim only)
    #[arg(long, conflicts_with = "of")]
    strict: bool,
    /// Write each output as NAME.npy to this folder; with --of MODEL, the schedules of all layers as LAYER.te
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long, conflicts_with = "of")]
    json: bool,
}

impl ScheduleArguments {
    pub fn run(self) -> Result<Verdict> {
        let config = self.hw.load()?;
        let Some(path) = &self.file else { return self.write_of(&config) };
        if let Some(option) = self.compilation.given().into_iter().find(|option| *option != "--bind") {
            bail!("{option} is for a model; add --of MODEL");
        }
        let name = path.display().to_string();
        let text = String::from_utf8(read_file(path)?).map_err(|_| anyhow!("{name} is not a text file"))?;
        let given = self.compilation.import(&[])?.sizes.symbols.into_iter();
        let given: Vec<_> = given.map(|(size, value)| (size.into(), value as i64)).collect();
        let file =
            file::parse_with(&text, &Names { sizes: &given, operators: &Library }).with_context(|| name.clone())?;
        let target = if self.device == DeviceKind::CPU { Target::Cpu } else { Target::Accelerator(&config) };
        let scheduled = schedule(target, file, self.steps).with_context(|| name.clone())?;
        let data = scheduled.data(&self.given(&scheduled)?, self.seed)?;
        let extras = Extras { strict: self.strict, ..Extras::default() };
        let mut device = device::open(self.device, &config, extras, &tell)?;
        if device.is_none() && self.device != DeviceKind::CPU {
            bail!("{} runs no schedules; use --device fsim, csim, rtl or cpu", self.device);
        }
        let device = device.as_mut().map(|d| d.as_mut() as &mut dyn Device);
        let checked = scheduled.check(device, &data).with_context(|| name.clone())?;
        if let Some(folder) = &self.output_dir {
            write(folder, &checked)?;
        }
        let told = if self.json {
            format!("{}\n", self.to_json(&name, &config, &scheduled, &checked))
        } else {
            self.to_text(&name, &config, &scheduled, &checked)?
        };
        write_or_print(None, told.as_bytes())?;
        Ok(if checked.differing.iter().all(|&n| n == 0) { Verdict::Fine } else { Verdict::No })
    }

    /// Writes schedules of a model's layers.
    fn write_of(&self, config: &HwConfig) -> Result<Verdict> {
        let (model, layer) = model_and_layer(self.of.as_deref().unwrap_or_default());
        let file = ModelFile::parse(&model).map_err(anyhow::Error::msg)?;
        let all = self.compilation.schedules(&file, config)?;
        if all.is_empty() {
            bail!("no layer of {model} runs on the accelerator {}", config.name);
        }
        let text = |s: &ScheduleFile| format!("// Layer {} of {model} on {}.\n{}", s.layer, config.name, s.file);
        let list = || all.iter().map(|s| s.layer.as_str()).collect::<Vec<_>>().join(", ");
        match (&layer, &self.output_dir) {
            (Some(_), Some(_)) => bail!("--output-dir is for the schedules of all layers; use -o for that of one"),
            (Some(layer), None) => {
                let found = all
                    .iter()
                    .find(|s| s.layer == *layer || s.stem == *layer)
                    .ok_or_else(|| anyhow!("{model} has no layer {layer} on the accelerator; there are: {}", list()))?;
                write_or_print(self.output.as_ref(), text(found).as_bytes())?;
            }
            (None, Some(folder)) => {
                std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
                for schedule in &all {
                    let path = folder.join(format!("{}.te", schedule.stem));
                    write_or_print(Some(&path), text(schedule).as_bytes())?;
                }
            }
            (None, None) => {
                let lines: String = all.iter().map(|s| format!("{}\n", s.layer)).collect();
                write_or_print(self.output.as_ref(), lines.as_bytes())?;
            }
        }
        Ok(Verdict::Fine)
    }

    /// Reads the data that were given.
    fn given(&self, scheduled: &Scheduled) -> Result<Vec<(String, Array)>> {
        let inputs = scheduled.inputs();
        let mut given: Vec<(String, Array)> = Vec::new();
        for argument in &self.input {
            let (name, path) = name_and_path(argument);
            for (name, tensor) in arrays(name.as_deref(), path)? {
                let first = || inputs.iter().map(|i| i.0.clone()).find(|i| !given.iter().any(|g| g.0 == *i));
                let Some(name) = name.or_else(first) else {
                    bail!("{path}: every input has data already");
                };
                if given.iter().any(|g| g.0 == name) {
                    bail!("{path}: input {name} has data already");
                }
                let tensor = Tensor::try_from(&tensor).map_err(|e| anyhow!("{path}: {e}"))?;
                let shape = tensor.shape().iter().map(|&n| n as i64).collect();
                given.push((name, Array { dtype: tensor.dtype(), shape, bytes: tensor.to_bytes() }));
            }
        }
        Ok(given)
    }

    fn to_text(&self, name: &str, config: &HwConfig, scheduled: &Scheduled, checked: &Checked) -> Result<String> {
        let mut text = String::new();
        for stage in &scheduled.stages {
            let _ = writeln!(text, "{stage}");
        }
        let on = match &scheduled.code {
            Code::Accelerator(_) => format!("{} ({})", self.device, config.name),
            Code::Cpu(_) => self.device.to_string(),
        };
        if let (true, Code::Accelerator(lowered)) = (self.asm, &scheduled.code) {
            let program = lowered.program.disassemble(config);
            text += &program.map_err(|(i, e)| anyhow!("instruction {i}: {e}"))?;
            text.push('\n');
        }
        let _ = writeln!(text, "{name} on {on}");
        if !scheduled.sizes().is_empty() {
            let sizes = scheduled.sizes().iter().map(|(size, value)| format!("{size} = {value}"));
            let _ = writeln!(text, "sizes         {}", sizes.collect::<Vec<_>>().join(", "));
        }
        if let Some(cycles) = checked.cycles {
            let used =
                utilization(config, scheduled, cycles).map(|u| format!(" ({u:.1} % of the multipliers' time used)"));
            let _ = writeln!(text, "cycles        {cycles}{}", used.unwrap_or_default());
        }
        if let Some(time) = checked.time {
            let us = time.as_secs_f64() * 1e6;
            let rate = match scheduled.macs() {
                0 => String::new(),
                macs => format!(", {:.2} GMAC/s", macs as f64 / time.as_secs_f64().max(1e-9) / 1e9),
            };
            let _ = writeln!(text, "time          {us:.1} us, the median of several runs{rate}");
        }
        if let Code::Accelerator(lowered) = &scheduled.code {
            let _ = writeln!(text, "instructions  {}", lowered.program.insn_count());
            for MemoryUse { mem, used, entries } in &lowered.footprint {
                let _ = writeln!(text, "{:<13} {used} of {entries} entries", mem.name());
            }
        }
        for ((name, array), wrong) in checked.outputs.iter().zip(&checked.differing) {
            let verdict = match wrong {
                0 if array.dtype.is_float() => {
                    format!("all {} elements agree with the evaluator's within 1e-5", array.len())
                }
                0 => format!("all {} elements equal the evaluator's", array.len()),
                n => format!("{n} of {} elements differ from the evaluator's", array.len()),
            };
            let _ = writeln!(text, "{name:<13} {verdict}");
        }
        Ok(text)
    }

    fn to_json(&self, name: &str, config: &HwConfig, scheduled: &Scheduled, checked: &Checked) -> serde_json::Value {
        let entries = |m: &MemoryUse| (m.mem.name().to_string(), json!({ "used": m.used, "entries": m.entries }));
        let outputs = checked.outputs.iter().zip(&checked.differing);
        let output = |((name, array), wrong): (&(String, Array), &usize)| {
            (name.clone(), json!({ "elements": array.len(), "differing": wrong }))
        };
        let (instructions, footprint) = match &scheduled.code {
            Code::Accelerator(lowered) => {
                let all: serde_json::Map<_, _> = lowered.footprint.iter().map(entries).collect();
                (Some(lowered.program.insn_count()), Some(all))
            }
            Code::Cpu(_) => (None, None),
        };
        json!({
            "file": name,
            "device": self.device.to_string(),
            "configuration": instructions.map(|_| config.name.clone()),
            "sizes": scheduled.sizes().iter().map(|(n, v)| (n.to_string(), json!(v))).collect::<serde_json::Map<_, _>>(),
            "cycles": checked.cycles,
            "us": checked.time.map(|t| t.as_secs_f64() * 1e6),
            "macs": scheduled.macs(),
            "utilization": checked.cycles.and_then(|c| utilization(config, scheduled, c)).map(|u| u / 100.0),
            "instructions": instructions,
            "footprint": footprint,
            "outputs": outputs.map(output).collect::<serde_json::Map<_, _>>(),
        })
    }
}

/// Divides `MODEL:LAYER`. The name of a model in the zoo, and of a layer, can have colons.
fn model_and_layer(of: &str) -> (String, Option<String>) {
    let is_model =
        |text: &str| Path::new(text).exists() || (text.starts_with("zoo:") && text.matches(':').count() == 1);
    let colons = of.match_indices(':').map(|(at, _)| at);
    let found = colons.map(|at| (&of[..at], &of[at + 1..])).find(|(model, _)| is_model(model));
    match found {
        _ if is_model(of) => (of.into(), None),
        Some((model, layer)) => (model.into(), Some(layer.into())),
        None => (of.into(), None),
    }
}

/// Returns the share of the array's time in percent that the products use.
fn utilization(config: &HwConfig, scheduled: &Scheduled, cycles: u64) -> Option<f64> {
    let macs = scheduled.macs();
    (macs > 0 && cycles > 0).then(|| 100.0 * macs as f64 / (cycles * config.macs_per_cycle()) as f64)
}

/// Writes the outputs.
fn write(folder: &Path, checked: &Checked) -> Result<()> {
    std::fs::create_dir_all(folder).with_context(|| format!("cannot create {}", folder.display()))?;
    for (name, array) in &checked.outputs {
        let shape: Vec<usize> = array.shape.iter().map(|&n| n as usize).collect();
        let tensor = Tensor::from_bytes(array.dtype, &shape, &array.bytes)
            .ok_or_else(|| anyhow!("output {name} has another size than its shape"))?;
        npy::write(&folder.join(format!("{name}.npy")), &(&tensor).into())?;
    }
    Ok(())
}
