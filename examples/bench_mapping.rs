//! Prints the cycles of networks next to their bounds, as the table of `docs/mapping.md` (`make bench-mapping`).
//!
//! Arguments select networks by name. `--hw NAME` selects a configuration; it can be given several times.

use std::io::Write as _;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result, bail};
use tilewright::examine::mapping::{Mapping, mapping, network};
use tilewright_hw::config::HwConfig;

const NETWORKS: &[&str] =
    &["resnet18", "resnet50", "mobilenet-v2", "deit-tiny", "bert-tiny", "vgg16-batch4", "efficientnet-lite0-int8"];
const CONFIGS: &[&str] = &["1x16x16", "1x8x8", "1x32x32", "4x16x16"];

fn main() -> ExitCode {
    match table() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn table() -> Result<()> {
    let (mut networks, mut configs) = (Vec::new(), Vec::new());
    let mut arguments = std::env::args().skip(1);
    while let Some(argument) = arguments.next() {
        match argument.as_str() {
            "--hw" => configs.push(arguments.next().context("--hw needs the name of a configuration")?),
            option if option.starts_with('-') => bail!("unknown option {option}; use --hw NAME, or names of networks"),
            _ => networks.push(argument),
        }
    }
    if networks.is_empty() {
        networks.extend(NETWORKS.iter().map(|name| name.to_string()));
    }
    if configs.is_empty() {
        configs.extend(CONFIGS.iter().map(|name| name.to_string()));
    }
    let configs = configs.iter().map(|name| HwConfig::load(name)).collect::<Result<Vec<_>, _>>()?;
    println!(
        "| network | configuration | cycles | array used | bound | by | bound / cycles | load, gemm, vector, store busy | \
         programs | on target ms | of it on the host |"
    );
    println!("|---|---|---|---|---|---|---|---|---|---|---|");
    let begin = Instant::now();
    for name in &networks {
        let graph = network(name)?;
        for config in &configs {
            let since = Instant::now();
            println!("{}", row(name, config, mapping(graph.clone(), config).map_err(anyhow::Error::from)));
            std::io::stdout().flush()?;
            eprintln!("{name} on {}: {:.1} s", config.name, since.elapsed().as_secs_f64());
        }
    }
    eprintln!("{} networks, {} configurations: {:.0} s", networks.len(), configs.len(), begin.elapsed().as_secs_f64());
    Ok(())
}

fn row(name: &str, config: &HwConfig, found: Result<Mapping>) -> String {
    let m = match found {
        Ok(mapping) => mapping,
        Err(error) => return format!("| {name} | {} | refused: {error:#} | | | | | | | | |", config.name),
    };
    let busy: Vec<String> = m.busy.iter().map(|share| format!("{:.0}", 100.0 * share)).collect();
    let [all, host] = match m.on_target {
        Some(frame) => [frame.latency_ms(), frame.host_ms + frame.convert_ms].map(|ms| format!("{ms:.1}")),
        None => ["-"; 2].map(String::from),
    };
    format!(
        "| {name} | {} | {} | {:.1} % | {} | {} | {:.1} % | {} % | {} | {all} | {host} |",
        config.name,
        m.cycles,
        100.0 * m.utilization,
        m.roofline.cycles(),
        m.roofline.unit(),
        100.0 * m.share_of_roofline(),
        busy.join(", "),
        m.programs
    )
}
