//! Runs models and artifacts on a device.

use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::{Value, json};
use tilewright::device::ModelRunner;
use tilewright::examine::bench::Spread;
use tilewright::examine::dump::{Dump, INDEX};
use tilewright::examine::trace;
use tilewright::model::Uploaded;
use tilewright::model::given::Given;
use tilewright::model::inference::{self, Labels, Results};
use tilewright::{examine::explain, examine::stalls};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{Artifact, NodeCost, Place};
use tilewright_runtime::npy;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;
use tilewright_runtime::tensor::{Tensor, shape_text};

use super::answers::{self, Names};
use super::arguments::{Run, counters, refuse};
use super::outputs::OutputFiles;
use crate::cli::{Progress, Verdict, progress, write_or_print};

/// Seconds before the run.
struct Times {
    load_s: f64,
    compile_s: f64,
    open_s: f64,
}

pub fn run(args: &Run, bytes: &[u8]) -> Result<Verdict> {
    let mut given = Given::read(&args.input, args.file.entry())?;
    given.check(args.preprocess.as_ref())?;
    let labels = args.labels.as_deref().map(|path| npy::read(path).map(|labels| (path, labels))).transpose()?;
    let started = Instant::now();
    refuse(
        &[(args.upload && args.device.lender().is_none(), "--upload")],
        "for the device of a server; use --device remote:HOST:PORT",
    )?;
    let mut larger = None;
    let (artifact, mut config, mut times) = if Artifact::is_one(bytes) {
        let artifact = args.params.decode(&args.file, args.file.display(), bytes)?;
        let (artifact, padded) = tilewright::model::for_data(artifact, &given.data())?;
        larger = padded;
        let config = match &artifact.manifest.hardware {
            Some(hardware) if args.hw.is_default() => HwConfig::parse(&hardware.name, &hardware.toml)?,
            _ => args.hw.load()?,
        };
        (artifact, config, Times { load_s: started.elapsed().as_secs_f64(), compile_s: 0.0, open_s: 0.0 })
    } else {
        refuse(&[(args.params.is_given(), "--params")], "for artifacts; a model file has its parameters itself")?;
        let config = args.config()?;
        if args.device.model_runner() == Some(ModelRunner::Gpu) {
            tilewright_runtime::cuda::available()?;
        }
        let (artifact, load_s, compile_s) =
            args.compilation.compile(&args.file, &config, args.device, args.dump_tensors.is_some(), &given.data())?;
        if args.device.is_accelerator() {
            args.compilation.advise(&artifact, &args.file);
        }
        (artifact, config, Times { load_s, compile_s, open_s: 0.0 })
    };
    args.apply_dram(&mut config)?;
    if args.explain {
        // With --json, standard output contains only the JSON object, which includes the table's data.
        let table = explain::table(&artifact.manifest);
        if args.json { eprint!("{table}") } else { write_or_print(None, table.as_bytes())? }
    }
    let model = artifact.manifest.input_values();
    let (pictures, sample) = (given.pictures.clone(), given.sample);
    let preprocess = args.file.preprocess(args.preprocess.as_ref());
    if let Some(larger) = &larger {
        given.pad(&model, larger)?;
    }
    let runs = given.runs(&model, &artifact.manifest.about, &preprocess)?;
    let first = artifact.manifest.outputs.first().map(|id| &artifact.manifest.values[id.0 as usize]);
    let labels = labels
        .map(|(path, labels)| Labels::check(&labels, first, runs.len()).with_context(|| path.display().to_string()));
    let labels = labels.transpose()?;
    let names = Names::of(args.class_names.as_deref(), &artifact.manifest)?;
    let files = args.output_dir.as_deref().map(|dir| OutputFiles::plan(dir, &artifact.manifest)).transpose()?;
    let mut dump = match &args.dump_tensors {
        Some(dir) => Some(Dump::new(dir, &artifact.manifest, runs.len()).context("--dump-tensors")?),
        None => None,
    };
    if args.device.is_accelerator() {
        artifact.check_hardware(&config)?;
    }
    let started = Instant::now();
    let mut served = None;
    let mut results = if args.upload {
        let uploaded = Uploaded::new(args.device, &artifact, &config, args.extras(), &progress::tell)?;
        times.open_s = started.elapsed().as_secs_f64();
        let progress = Progress::new("run", runs.len());
        let results = inference::collect(&runs, |inputs| uploaded.run(inputs), |done| progress.at(done))?;
        progress.end();
        served =
            args.repeat.zip(runs.first()).map(|(repeat, inputs)| on_server(&uploaded, inputs, repeat)).transpose()?;
        results
    } else {
        let device = args.open(&config)?;
        times.open_s = started.elapsed().as_secs_f64();
        let mut session = Session::new(artifact.clone(), Registry::global(), device)?;
        let progress = Progress::new("run", runs.len());
        let mut watch = |id, bytes: &[u8]| {
            if let Some(dump) = &mut dump {
                dump.take(id, bytes);
            }
        };
        match args.dump_tensors {
            // Watching copies every value back from its device, so do it only for a dump.
            Some(_) => inference::run_watched(&mut session, &runs, &mut watch, |done| progress.at(done))?,
            None => inference::run(&mut session, &runs, |done| progress.at(done))?,
        }
    };
    if let Some(larger) = larger {
        results.outputs = larger.cut(results.outputs);
    }
    inference::to_file_floats(&artifact.manifest.about, &mut results.outputs);
    if let (Some(dump), Some(dir)) = (dump, &args.dump_tensors) {
        let about = json!({ "device": args.device.to_string(), "hw": config.name, "runs": runs.len() });
        let done = dump.finish(&artifact.manifest, about).context("--dump-tensors")?;
        let (dir, hidden) = (dir.display(), done.hidden);
        crate::cli::say(&format!("{dir}: {} values; {hidden} more stay inside their steps; see {INDEX}", done.written));
    }
    let watched = args.trace.is_some() || args.top_stalls.is_some();
    let programs = if watched { trace::programs(&config, &artifact)? } else { Vec::new() };
    let parts = if watched { trace::parts(&artifact, &results.reports, &programs) } else { Vec::new() };
    if let Some(path) = &args.trace {
        trace::write(path, &config, &parts).with_context(|| format!("--trace {}", path.display()))?;
    }
    let stalls = args.top_stalls.map(|most| stalls::worst(&parts, most as usize));
    let accuracy = labels.zip(results.outputs.first()).map(|(labels, output)| labels.accuracy(output));
    let files = files.map(|files| files.write(&results.outputs)).transpose()?.unwrap_or_default();
    let mut report = json(args, &config, &artifact, &results, &times, accuracy, &files);
    if let (Some(names), Some(output)) = (names, results.outputs.first()) {
        report["answers"] = names.json(&names.answers(output, &artifact.manifest, args.top as usize));
    }
    let expected = args.file.entry().filter(|_| sample).map(|entry| entry.expected.compare(&results.outputs));
    let expected = expected.transpose().map_err(anyhow::Error::msg)?;
    if let Some(found) = &expected {
        report["expected"] = json!({ "holds": found.holds(), "largest_difference": found.largest,
                                     "tolerance": found.tolerance, "of": found.what });
    }
    if let Some(times) = &served {
        report["server_ms"] = times.json();
        report["repeats"] = json!(args.repeat);
    }
    if let Some(stalls) = &stalls {
        report["stalls"] = stalls.json();
    }
    let text = match args.json {
        true => format!("{report}\n"),
        false => {
            let stalls = stalls.map_or_else(String::new, |stalls| stalls.table());
            summary(&report, &artifact, &results) + &stalls + &answers::text(&report["answers"], &pictures)
        }
    };
    write_or_print(None, text.as_bytes())?;
    if expected.is_some_and(|found| !found.holds()) {
        return Ok(Verdict::No);
    }
    Ok(Verdict::Fine)
}

/// Milliseconds of repeated runs by the server's clock.
fn on_server(uploaded: &Uploaded, inputs: &[Tensor], repeat: u32) -> Result<Spread> {
    let progress = Progress::new("repeat", repeat as usize);
    let times = uploaded.time(inputs, repeat as usize, &mut |done| progress.at(done))?;
    progress.end();
    Ok(Spread::of(times.into_iter().map(|seconds| 1e3 * seconds).collect()))
}

fn json(
    args: &Run,
    config: &HwConfig,
    artifact: &Artifact,
    results: &Results,
    times: &Times,
    accuracy: Option<f64>,
    files: &[String],
) -> Value {
    let manifest = &artifact.manifest;
    let step_sum = |step: u32, f: &dyn Fn(&tilewright_runtime::session::StepReport) -> Option<f64>| -> Option<f64> {
        results.reports.iter().map(|report| report.steps.get(step as usize).and_then(f)).sum()
    };
    let nodes: Vec<Value> = manifest
        .nodes
        .iter()
        .map(|node| {
            json!({ "name": node.name, "op": node.op, "where": node.place.to_string(), "why": node.why,
                            "macs": node.macs, "step": node.step, "cost": node.cost.as_ref().map(cost) })
        })
        .collect();
    let steps: Vec<Value> = manifest
        .steps
        .iter()
        .zip(0u32..)
        .map(|(step, index)| {
            let place = results.reports.first().and_then(|r| r.steps.get(index as usize)).map(|s| s.place.to_string());
            json!({
                "name": step.name,
                "where": place,
                "by": results.reports.first().and_then(|r| r.steps.get(index as usize)).and_then(|s| s.by),
                "wall_s": step_sum(index, &|s| Some(s.wall_s)),
                "cycles": step_sum(index, &|s| s.cycles.map(|c| c as f64)).map(|c| c as u64),
                "counters": counters(results.reports.iter().filter_map(|r| r.steps.get(index as usize)?.counters.as_ref())),
            })
        })
        .collect();
    let outputs: Vec<Value> = manifest
        .named_outputs()
        .zip(&results.outputs)
        .enumerate()
        .map(|(index, ((name, _), tensor))| {
            json!({ "name": name, "dtype": tensor.dtype.name(), "shape": tensor.shape,
                    "file": files.get(index) })
        })
        .collect();
    json!({
        "model": manifest.model,
        "device": args.device.to_string(),
        "hw": config.name,
        "hw_hash": format!("{:016x}", config.hash()),
        "runs": results.runs(),
        "cycles": results.cycles(),
        "macs": manifest.macs() * results.runs() as u64,
        "utilization": results.utilization(artifact, config.macs_per_cycle()),
        "wall_s": results.wall_s(),
        "accel_s": results.seconds_on(Place::Accel),
        "cpu_s": results.seconds_on(Place::Cpu),
        "cuda_s": results.seconds_on(Place::Cuda),
        "load_s": times.load_s,
        "compile_s": times.compile_s,
        "open_s": times.open_s,
        "dram": args.memory(config),
        "offloaded_macs_fraction": manifest.offloaded_share(),
        "nodes": nodes,
        "steps": steps,
        "outputs": outputs,
        "accuracy": accuracy,
    })
}

/// A node's cost in each place, in microseconds.
fn cost(cost: &NodeCost) -> Value {
    let us = |ns: Option<u64>| ns.map(|ns| ns as f64 / 1e3);
    json!({
        "layer": cost.layer,
        "accel_cycles": cost.accel_cycles,
        "accel_us": us(cost.accel_ns),
        "cpu_us": us(cost.cpu_ns),
        "cpu_from": if cost.cpu_measured { "measured" } else { "modeled" },
        "moving_us": cost.moving_ns.map(|ns| ns as f64 / 1e3),
    })
}

/// The figures as text.
fn summary(report: &Value, artifact: &Artifact, results: &Results) -> String {
    let number = |key: &str| report[key].as_f64().unwrap_or(0.0);
    let mut text = format!(
        "{} on {} ({}), {} run(s)\n",
        artifact.manifest.model,
        report["device"].as_str().unwrap_or(""),
        report["hw"].as_str().unwrap_or(""),
        results.runs()
    );
    if let Some(cycles) = report["cycles"].as_u64() {
        let used = report["utilization"].as_f64();
        let used = used.map(|share| format!(" ({:.1} % of the multipliers' time used)", 100.0 * share));
        text += &format!("cycles        {cycles}{}\n", used.unwrap_or_default());
        text += &format!("dram          {}\n", report["dram"].as_str().unwrap_or(""));
        let speed = cycles as f64 / number("accel_s").max(1e-9) / 1e6;
        text += &format!("speed         {speed:.2} million cycles per second\n");
    }
    text += &match report["offloaded_macs_fraction"].as_f64() {
        Some(share) => format!("MACs          {} ({:.2} % on the accelerator)\n", report["macs"], 100.0 * share),
        None => "MACs          0 (the network has no products)\n".into(),
    };
    text += &format!(
        "time          {:.3} s in devices; read {:.3} s, compile {:.3} s, open {:.3} s\n",
        number("wall_s"),
        number("load_s"),
        number("compile_s"),
        number("open_s")
    );
    if let Some(times) = report["server_ms"].as_object() {
        let ms = |key: &str| times[key].as_f64().unwrap_or(0.0);
        text += &format!(
            "on the server median {:.3} ms of {} runs ({:.3} to {:.3} ms)\n",
            ms("median"),
            report["repeats"],
            ms("min"),
            ms("max")
        );
    }
    if let Some(accuracy) = report["accuracy"].as_f64() {
        text += &format!("accuracy      {:.2} %\n", 100.0 * accuracy);
    }
    if let Some(largest) = report["expected"]["largest_difference"].as_f64() {
        let holds = if report["expected"]["holds"] == true { "as expected" } else { "NOT as expected" };
        let of = report["expected"]["of"].as_str().unwrap_or("");
        text += &format!("sample        {holds}: largest difference in an output's {of} {largest:.2e}\n");
    }
    for ((name, _), tensor) in artifact.manifest.named_outputs().zip(&results.outputs) {
        let first: Vec<String> = (0..tensor.len().min(10)).map(|i| tensor.number(i).to_string()).collect();
        let more = if tensor.len() > 10 { " …" } else { "" };
        text += &format!(
            "output        {name}: {} {} [{}{more}]\n",
            tensor.dtype,
            shape_text(&tensor.shape),
            first.join(" ")
        );
    }
    text
}
