//! `schedule`: runs a tensor expression as its schedule says, and checks the result.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use tilewright::device::{self, DeviceKind, Extras};
use tilewright::schedule::{Checked, Code, Scheduled, Target, schedule};
use tilewright_compiler::codegen::accel::scheduled::MemoryUse;
use tilewright_compiler::graph::Tensor;
use tilewright_compiler::schedule::file;
use tilewright_compiler::te::{Array, DType};
use tilewright_hw::HwConfig;
use tilewright_hw::device::Device;
use tilewright_runtime::npy;

use super::progress::tell;
use super::run::{arrays, name_and_path};
use super::{Hw, Verdict, read_file, write_or_print};

/// Arguments of `schedule`.
#[derive(clap::Args)]
pub struct ScheduleArguments {
    /// A tensor expression with its schedule (.te)
    file: PathBuf,
    #[command(flatten)]
    hw: Hw,
    /// The device to run on
    #[arg(long, default_value = "fsim", value_name = "DEVICE")]
    device: DeviceKind,
    /// Data for an input: a .npy file, or a .npz file with an array for each input; inputs without data are random
    #[arg(long, value_name = "[NAME=]FILE")]
    input: Vec<String>,
    /// Seed of the random inputs
    #[arg(long, default_value_t = 1)]
    seed: u64,
    /// Print the loop program before the first step and after each
    #[arg(long)]
    steps: bool,
    /// Print the instructions
    #[arg(long)]
    asm: bool,
    /// Refuse programs that are correct only by accident of timing (csim only)
    #[arg(long)]
    strict: bool,
    /// Write each output as NAME.npy to this folder
    #[arg(long, value_name = "DIR")]
    output_dir: Option<PathBuf>,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

impl ScheduleArguments {
    pub fn run(self) -> Result<Verdict> {
        let name = self.file.display().to_string();
        let config = self.hw.load()?;
        let text = String::from_utf8(read_file(&self.file)?).map_err(|_| anyhow!("{name} is not a text file"))?;
        let file = file::parse(&text).with_context(|| name.clone())?;
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
            format!("{}\n", self.to_json(&config, &scheduled, &checked))
        } else {
            self.to_text(&config, &scheduled, &checked)?
        };
        write_or_print(None, told.as_bytes())?;
        Ok(if checked.differing.iter().all(|&n| n == 0) { Verdict::Fine } else { Verdict::No })
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

    fn to_text(&self, config: &HwConfig, scheduled: &Scheduled, checked: &Checked) -> Result<String> {
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
        let _ = writeln!(text, "{} on {on}", self.file.display());
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
                0 if array.dtype == DType::F32 => {
                    format!("all {} elements agree with the evaluator's within 1e-5", array.len())
                }
                0 => format!("all {} elements equal the evaluator's", array.len()),
                n => format!("{n} of {} elements differ from the evaluator's", array.len()),
            };
            let _ = writeln!(text, "{name:<13} {verdict}");
        }
        Ok(text)
    }

    fn to_json(&self, config: &HwConfig, scheduled: &Scheduled, checked: &Checked) -> serde_json::Value {
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
            "file": self.file.display().to_string(),
            "device": self.device.to_string(),
            "configuration": instructions.map(|_| config.name.clone()),
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
