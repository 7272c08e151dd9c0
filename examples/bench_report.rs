//! Measures the report of a network of ResNet-18's shape: its size, how long headless Chromium takes to open it, and
//! how long a zoom step takes. Each time, the browser starts without a cache.

use std::path::Path;
use std::process::ExitCode;
use std::time::Instant;

use anyhow::{Context, Result};
use tilewright::device::DeviceKind;
use tilewright::examine::bench::Runs;
use tilewright::examine::profile::compare::About;
use tilewright::examine::profile::{ProfileRequest, page, profile};
use tilewright::model::inference::made_up;
use tilewright::model::plans::Tuned;
use tilewright::model::shapes;
use tilewright::model::{self, Offload, Sizes};
use tilewright_hw::config::HwConfig;
use tilewright_testing::browser::Browser;

const NETWORK: &str = "resnet18";
const OPENINGS: usize = 7;
/// Number of zoom steps on each open page: in to a fiftieth of the run, and out again.
const STEPS: usize = 20;

fn main() -> ExitCode {
    match measure() {
        Ok(()) => ExitCode::SUCCESS,
        Err(error) => {
            eprintln!("error: {error:#}");
            ExitCode::from(2)
        }
    }
}

fn measure() -> Result<()> {
    let dir = tempfile::tempdir()?;
    let path = dir.path().join("report.html");
    let bytes = report(dir.path(), &path)?;
    let (mut loaded, mut drawn, mut zooms) = (Vec::new(), Vec::new(), Vec::new());
    for opening in 0..OPENINGS {
        let folder = dir.path().join(format!("browser-{opening}"));
        let mut browser = Browser::start(&folder).context("there is no Chromium; run scripts/setup.sh --browser")?;
        let begun = Instant::now();
        browser.open(&path);
        drawn.push(begun.elapsed().as_secs_f64() * 1e3);
        let load = browser.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd");
        loaded.push(load.as_f64().context("the page tells when it was loaded")?);
        let steps = browser.evaluate(&format!(
            "(() => {{ const live = charts.find(c => c.box.id === 'timeline-chart').live, took = []; \
             for (let i = 1; i <= {STEPS}; i++) {{ const in_ = 49 * (1 - Math.abs(2 * i / {STEPS} - 1)), begun = performance.now(); \
             live.dispatchAction({{ type: 'dataZoom', start: in_, end: 100 - in_ }}); live.getZr().flush(); \
             took.push(performance.now() - begun); }} return took; }})()"
        ));
        zooms.extend(steps.as_array().context("times of steps")?.iter().filter_map(serde_json::Value::as_f64));
        let complaints = browser.complaints();
        anyhow::ensure!(complaints.is_empty(), "the page complains: {}", complaints.join("; "));
    }
    println!("report         {NETWORK} on csim, 1x16x16: {:.2} MB", bytes as f64 / 1e6);
    println!("loaded, ms     {} of {OPENINGS} browsers", spread(loaded));
    println!("drawn, ms      {} of {OPENINGS} browsers", spread(drawn));
    println!("zoom step, ms  {} of {} steps", spread(zooms), OPENINGS * STEPS);
    Ok(())
}

/// Writes the report, and returns its size in bytes.
fn report(dir: &Path, path: &Path) -> Result<usize> {
    let model_path = dir.join("network.onnx");
    let bytes = shapes::onnx(NETWORK, false)?;
    std::fs::write(&model_path, bytes)?;
    let graph = model::import(&model_path, Sizes::default())?;
    let inputs = made_up(&model::inputs(&graph)?.iter().collect::<Vec<_>>());
    let config = HwConfig::load("1x16x16")?;
    let runs = Runs { warm_up: 0, measured: 1 };
    let request = ProfileRequest {
        config: &config,
        device: DeviceKind::CSIM,
        offload: Offload::All,
        level: 2,
        runs,
        waves: None,
        tuned: &Tuned::default(),
    };
    let found = profile(&graph, &inputs, &request, &|_, _| {})?;
    let about = About { file: NETWORK, device: "csim", level: 2, offload: "all", ..About::default() };
    let text = page::profile(&found.json(&config, &about));
    std::fs::write(path, &text)?;
    Ok(text.len())
}

/// Median, minimum and maximum.
fn spread(mut samples: Vec<f64>) -> String {
    samples.sort_by(f64::total_cmp);
    let at = |index: usize| samples.get(index).copied().unwrap_or(0.0);
    format!("{:.0} ({:.0} to {:.0})", at(samples.len() / 2), at(0), at(samples.len().saturating_sub(1)))
}
