//! What networks take on the CPU alone: `bench_fallback [--threads N] [--runs N] [--steps N] FILE...`.
//!
//! Each model runs on made-up inputs, three times to warm up and then so often as is asked for. It prints one line of JSON a model:
//! seconds to compile, milliseconds (least and median), the run-time's own share of them, and the steps that take longest.

use std::path::Path;
use std::time::Instant;

use anyhow::{Context, Result};
use serde_json::json;
use tilewright::inference::made_up;
use tilewright::model::{self, Offload, Options, Sizes};
use tilewright_hw::HwConfig;
use tilewright_runtime::registry::Registry;
use tilewright_runtime::session::Session;

fn main() -> Result<()> {
    let (mut threads, mut runs, mut steps, mut files) = (1usize, 20usize, 0usize, Vec::new());
    let mut args = std::env::args().skip(1);
    while let Some(arg) = args.next() {
        let mut number = || args.next().and_then(|n| n.parse().ok()).with_context(|| format!("{arg} takes a number"));
        match arg.as_str() {
            "--threads" => threads = number()?,
            "--runs" => runs = number()?.max(1),
            "--steps" => steps = number()?,
            _ => files.push(arg),
        }
    }
    rayon::ThreadPoolBuilder::new().num_threads(threads).build_global()?;
    for file in &files {
        let config = HwConfig::default();
        let started = Instant::now();
        let graph = model::import(Path::new(file), &Sizes::default())?;
        let options = Options { offload: Offload::None, ..Options::new(&config) };
        let artifact = model::build(graph, &options, &mut |_, _| {})?;
        let compile_s = started.elapsed().as_secs_f64();
        let inputs = made_up(&artifact.manifest.input_values());
        let manifest = &artifact.manifest;
        let names: Vec<String> = manifest.steps.iter().map(|step| step.name.clone()).collect();
        let macs: Vec<u64> = (0..names.len() as u32)
            .map(|step| manifest.nodes.iter().filter(|node| node.step == Some(step)).map(|node| node.macs).sum())
            .collect();
        let shapes: Vec<_> = manifest
            .steps
            .iter()
            .map(|step| step.outputs.first().map(|v| manifest.values[v.0 as usize].shape.clone()).unwrap_or_default())
            .collect();
        let mut session = Session::new(artifact, &Registry::new(), None)?;
        let (mut whole, mut parts) = (Vec::new(), vec![Vec::new(); names.len()]);
        for run in 0..runs + 3 {
            let started = Instant::now();
            let (_, report) = session.run(&inputs)?;
            let ms = started.elapsed().as_secs_f64() * 1e3;
            if run >= 3 {
                whole.push(ms);
                parts.iter_mut().zip(&report.steps).for_each(|(list, step)| list.push(step.wall_s * 1e3));
            }
        }
        let median = |list: &mut Vec<f64>| -> f64 {
            list.sort_by(f64::total_cmp);
            list[list.len() / 2]
        };
        let all = median(&mut whole);
        let mut each: Vec<(f64, usize)> = parts.iter_mut().map(median).zip(0..).collect();
        let own = all - each.iter().map(|(ms, _)| ms).sum::<f64>();
        each.sort_by(|a, b| b.0.total_cmp(&a.0));
        let longest: Vec<_> = each
            .iter()
            .take(steps)
            .map(|(ms, i)| {
                let giga_s = macs[*i] as f64 / ms / 1e6;
                json!({ "step": names[*i], "ms": ms, "shape": shapes[*i], "macs": macs[*i], "gmac_s": giga_s })
            })
            .collect();
        println!(
            "{}",
            json!({
                "model": file, "threads": threads, "runs": runs, "compile_s": compile_s, "steps": names.len(),
                "latency_ms": { "min": whole[0], "median": all, "max": whole[whole.len() - 1] }, "own_ms": own,
                "longest": longest,
            })
        );
    }
    Ok(())
}
