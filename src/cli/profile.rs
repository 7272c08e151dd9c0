//! `profile`: profiles a run as an HTML page, or compares two profiles.

use std::path::{Path, PathBuf};

use anyhow::{Context, Result, bail};
use tilewright::device::DEFAULT_HW;
use tilewright::device::DeviceKind;
use tilewright::examine::bench::Runs;
use tilewright::examine::profile::compare::{self, About};
use tilewright::examine::profile::{self, ProfileRequest, page, perfetto};
use tilewright::model::ModelFile;
use tilewright_runtime::files;

use super::workload::Workload;
use super::{Progress, Verdict, read_file, write_or_print};

/// Arguments of `profile`.
#[derive(clap::Args)]
pub struct Profile {
    /// The model (.onnx, .pt2, .tflite, zoo:NAME)
    #[arg(value_parser = ModelFile::parse, required_unless_present = "compare", conflicts_with = "compare")]
    file: Option<ModelFile>,
    /// HTML page to write; its data and a Perfetto trace go next to it, as NAME.json and NAME.trace.json
    #[arg(long, value_name = "FILE.html", required_unless_present = "compare")]
    report: Option<PathBuf>,
    /// Compare two profiles of one model by their data, for example of two configurations or two versions
    #[arg(long, num_args = 2, value_names = ["A.json", "B.json"])]
    compare: Option<Vec<PathBuf>>,
    /// Hardware configuration: the name of a preset or a board, or a TOML file
    #[arg(long = "hw", value_name = "NAME|FILE.toml", default_value = DEFAULT_HW)]
    hw: String,
    #[arg(
        long,
        value_name = "DEVICE",
        default_value = "csim",
        value_parser = |name: &str| DeviceKind::among(name, |spec| spec.exact),
        help = format!("Device to run on: {}", tilewright::device::help(|spec| spec.exact))
    )]
    device: DeviceKind,
    #[command(flatten)]
    workload: Workload,
    /// Warm-up runs of the functions timed on this machine
    #[arg(long, value_name = "N", default_value_t = 2)]
    warm_up: u16,
    /// Measured runs of the functions timed on this machine; cycles come from one run and are exact
    #[arg(long, value_name = "N", default_value_t = 5, value_parser = clap::value_parser!(u16).range(1..))]
    repetitions: u16,
    /// Record the design's signals next to the page, as NAME.fst (rtl only)
    #[arg(long)]
    waves: bool,
}

impl Profile {
    pub fn run(self) -> Result<Verdict> {
        if let Some(report) = &self.report {
            check_writable(report)?;
        }
        match (&self.compare, &self.file, &self.report) {
            (Some(pair), ..) => self.compare(&pair[0], &pair[1]),
            (None, Some(file), Some(report)) => self.profile(file, report),
            _ => bail!("give a model and --report FILE.html, or --compare A.json B.json"),
        }
    }

    fn profile(&self, file: &ModelFile, report: &Path) -> Result<Verdict> {
        let config = self.workload.config(&self.hw)?;
        if !self.device.may_trace() {
            bail!("{} does not report cycles per instruction; profile on csim or rtl", self.device);
        }
        if self.waves && !self.device.spec().waves {
            bail!("--waves is for --device rtl, whose signals it records");
        }
        let [data_path, trace_path, waves_path] =
            ["json", "trace.json", "fst"].map(|ending| report.with_extension(ending));
        let others = [&data_path, &trace_path].into_iter().chain(self.waves.then_some(&waves_path));
        if others.clone().any(|path| path == report) {
            bail!("--report {} is the path of its data file; name a file that ends in .html", report.display());
        }
        for path in others {
            check_writable(path)?;
        }
        let (graph, inputs) = self.workload.graph_and_inputs(file)?;
        // The RTL simulator writes the signals during the run, under a temporary name until the other files are
        // written.
        let waves = self.waves.then(|| files::Unfinished::new(&waves_path, &[])).transpose();
        let waves = waves.with_context(|| format!("cannot write {}", waves_path.display()))?;
        let tuned = self.workload.tuned.read()?;
        let request = ProfileRequest {
            config: &config,
            device: self.device,
            offload: self.workload.offload.into(),
            level: self.workload.level,
            runs: Runs { warm_up: self.warm_up.into(), measured: self.repetitions.into() },
            waves: waves.as_ref().map(|file| file.path()),
            tuned: &tuned,
        };
        let pieces = profile::PIECES + 1;
        let progress = Progress::new("profile", pieces);
        let found = profile::profile(&graph, &inputs, &request, &|what, done| progress.step(what, done, pieces));
        let found = found.with_context(|| file.display().to_string())?;
        progress.step("writing", profile::PIECES, pieces);
        let name = |path: &Path| path.file_name().map(|name| name.to_string_lossy().into_owned());
        let device = self.device.to_string();
        let about = About {
            file: file.display(),
            sha256: About::hash(&read_file(file)?),
            device: &device,
            level: self.workload.level,
            offload: self.workload.offload.name(),
            trace: name(&trace_path),
            waves: name(&waves_path).filter(|_| self.waves),
        };
        let data = found.json(&config, &about);
        let written = [
            (report.to_path_buf(), page::profile(&data).into_bytes()),
            (data_path.clone(), data.to_string().into_bytes()),
            (trace_path.clone(), perfetto(&found, &config).to_string().into_bytes()),
        ];
        files::write_together(&written)
            .map_err(|(path, error)| anyhow::Error::new(error).context(format!("cannot write {}", path.display())))?;
        if let Some(waves) = waves {
            waves.finish().with_context(|| format!("cannot write {}", waves_path.display()))?;
        }
        progress.end();
        let waves_told = about.waves.as_ref().map_or(String::new(), |_| format!(", waves in {}", waves_path.display()));
        let text = format!(
            "{}: {} layers, {} cycles, {:.3} ms at {} MHz; data in {}, trace in {}{waves_told}\n",
            report.display(),
            found.layers.len(),
            found.timeline.cycles,
            found.frame.0.accel_ms,
            config.host.clock_mhz,
            data_path.display(),
            trace_path.display()
        );
        write_or_print(None, text.as_bytes())?;
        Ok(Verdict::Fine)
    }

    fn compare(&self, a: &Path, b: &Path) -> Result<Verdict> {
        if let Some(report) = self.report.as_ref().filter(|report| [a, b].iter().any(|data| is_of(report, data))) {
            bail!("--report {} would overwrite a profile that is compared; name another file", report.display());
        }
        let [name_a, name_b] = [a, b].map(|path| path.display().to_string());
        let first = compare::read(&name_a, &read_file(a)?)?;
        let second = compare::read(&name_b, &read_file(b)?)?;
        let compared = compare::compare((&name_a, &first), (&name_b, &second))?;
        if let Some(report) = &self.report {
            write_or_print(Some(report), page::comparison(&compared).as_bytes())?;
        }
        write_or_print(None, compare::text(&compared).as_bytes())?;
        Ok(Verdict::Fine)
    }
}

/// Whether a path is a profile's data file or a file that was written with it: its page, with any extension, its trace
/// or its waves.
fn is_of(path: &Path, data: &Path) -> bool {
    let is_page = path.file_stem() == data.file_stem() && files::same(files::folder_of(path), files::folder_of(data));
    is_page
        || ["json", "trace.json", "fst"].iter().any(|ending| files::same(path, &data.with_extension(ending)))
        || files::same(path, data)
}

/// Fails before anything runs if a path cannot be written.
fn check_writable(path: &Path) -> Result<()> {
    files::check_writable(path).with_context(|| format!("cannot write {}", path.display()))
}
