//! `synth`: builds a board's bitstream from a hardware configuration.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::{Context, Result};
use tilewright::{flow::netlist_check, flow::synth};
use tilewright_hw::config::HwConfig;
use tilewright_hw::flow::board::{Board, legal_mhz};
use tilewright_hw::flow::report::NetlistCheck;
use tilewright_hw::flow::steps;
use tilewright_hw::flow::{FlowError, FlowRequest, RandomPrograms};

use super::{Verdict, progress, write_or_print};

/// Largest number of programs of a check; all of them are in memory at once.
const MOST_PROGRAMS: u64 = 10_000;

/// Arguments of `synth`.
#[derive(clap::Args)]
pub struct Synth {
    /// The board: a name, or the path of a folder with a board.toml; without it, the boards are listed
    #[arg(long, value_name = "NAME|DIR")]
    board: Option<String>,
    /// The hardware configuration: the name of a preset, or a TOML file [default: the board's own]
    #[arg(long, value_name = "NAME|FILE.toml", requires = "board")]
    hw: Option<String>,
    /// The link to use, if the board has several: uart or spi [default: the board's first]
    #[arg(long, value_name = "KIND", requires = "board")]
    host: Option<String>,
    /// Folder for everything: sources, netlists, logs, the bitstream, report.json and summary.txt; files of an earlier
    /// run are removed [default: build/synth/BOARD]
    #[arg(short, long, value_name = "DIR", requires = "board")]
    output: Option<PathBuf>,
    /// Clock of shell and core in MHz [default: the board's own]
    #[arg(long, value_name = "MHZ", value_parser = mhz, allow_negative_numbers = true, requires = "board")]
    mhz: Option<f64>,
    /// Seed of place and route; another seed gives another result [default: the board's own, or 1]
    #[arg(long, requires = "board")]
    seed: Option<u64>,
    /// Keep a result that is slower than the clock
    #[arg(long, requires = "board")]
    allow_slow: bool,
    /// Stop after synthesis and report the resources and the estimated clock of the routed design
    #[arg(long, conflicts_with_all = ["verify", "sources"], requires = "board")]
    estimate: bool,
    /// Time limit of each step: synthesis, place and route, bitstream
    #[arg(long, value_name = "MINUTES", default_value_t = 120.0, value_parser = minutes, requires = "board")]
    time_limit: f64,
    /// Run a network's layer and random programs on the synthesized and the routed netlist and on the bitstream read
    /// back, and compare memory and cycles with the sources
    #[arg(long, requires = "board")]
    verify: bool,
    /// Number of random programs for --verify
    #[arg(long, value_name = "N", default_value_t = 100, value_parser = clap::value_parser!(u64).range(0..=MOST_PROGRAMS), requires = "verify")]
    programs: u64,
    /// Only write the sources; run no tool
    #[arg(long, conflicts_with_all = ["verify", "json"], requires = "board")]
    sources: bool,
    /// List the boards
    #[arg(long)]
    list: bool,
    /// Print one JSON object on standard output
    #[arg(long)]
    json: bool,
}

impl Synth {
    pub fn run(self) -> Result<Verdict> {
        let Some(board) = self.board.as_deref().filter(|_| !self.list) else { return list(self.json) };
        let board = load_board(board, self.host.as_deref())?;
        let config = match &self.hw {
            Some(name) => HwConfig::load(name)?,
            None => board.default_config()?,
        };
        let hw = hw_from_anywhere(self.hw.clone().unwrap_or(board.default_hw()));
        let mhz = self.mhz.unwrap_or(board.core_mhz);
        let seed = self.seed.unwrap_or(board.seed);
        let shell = synth::shell(&board, &config, mhz)?;
        let output = self.output.clone().unwrap_or_else(|| Path::new("build/synth").join(&board.name));
        let request = FlowRequest {
            board: &board,
            config: &config,
            hw: &hw,
            shell: &shell,
            mhz,
            seed,
            allow_slow: self.allow_slow,
            estimate: self.estimate,
            time_limit: Some(Duration::from_secs_f64(60.0 * self.time_limit)),
            checker: netlist_check::name(),
        };
        if self.sources {
            let made = tilewright_hw::flow::write_sources(&request, &output)?;
            let nearest = if (made - mhz).abs() < 0.005 { String::new() } else { format!(", the nearest below {mhz}") };
            let text = format!(
                "sources of {} on {} at {made:.2} MHz{nearest}\nwritten to {}\n",
                config.name,
                board.name,
                output.display()
            );
            write_or_print(None, text.as_bytes())?;
            return Ok(Verdict::Fine);
        }
        if self.verify && netlist_check::cannot(&board).is_none() {
            // Fails before an hour of routing instead of after it.
            tilewright_sim::rtl::find_tools().context("--verify simulates the sources")?;
        }
        let cache = tilewright_sim::rtl::default_cache_dir()?;
        let mut told = Told::default();
        let outcome = tilewright_hw::flow::synthesize(&request, &output, &cache, &mut |event| told.tell(event));
        progress::tell("");
        let outcome = match outcome {
            // The tools ran, and the design does not meet its constraints.
            Err(error @ (FlowError::Slow { .. } | FlowError::TooLarge { .. } | FlowError::Unfit { .. })) => {
                if let FlowError::Slow { report, .. } | FlowError::TooLarge { report, .. } = &error {
                    let text = if self.json { report.json() } else { report.summary() };
                    write_or_print(None, text.as_bytes())?;
                }
                eprintln!("error: {error}");
                return Ok(Verdict::No);
            }
            outcome => outcome.with_context(|| format!("{} on {}", config.name, board.name))?,
        };
        let mut report = outcome.report.clone();
        if self.verify {
            let check = netlist_check::CheckRequest {
                board: &board,
                config: &config,
                shell: &shell,
                mhz,
                programs: self.programs,
                seed,
            };
            let building = |at| tilewright::device::tell_build(at, &progress::tell);
            let checks = &mut report.checks;
            checks.clear();
            let checked =
                netlist_check::check(&check, &outcome, &cache, checks, &mut |event| told.tell(event), &building);
            progress::tell("");
            if checked.is_ok() || NetlistCheck::any_differs(&report.checks) {
                let programs = RandomPrograms { count: self.programs, seed };
                outcome.keep_checks(&cache, netlist_check::name(), programs, &report.checks)?;
            } else if NetlistCheck::any_differs(&outcome.report.checks) {
                // An incomplete check does not override the differences that an earlier one found.
                report.checks = outcome.report.checks.clone();
            }
            // The report keeps what was found before an error.
            report.write(&output)?;
            checked?;
        }
        let text = if self.json { report.json() } else { report.summary() };
        write_or_print(None, text.as_bytes())?;
        if !self.json {
            write_or_print(None, format!("written to {}\n", output.display()).as_bytes())?;
        }
        let differs = NetlistCheck::any_differs(&report.checks);
        Ok(if differs { Verdict::No } else { Verdict::Fine })
    }
}

/// The value of `--hw` so that it works from any folder: an absolute path for a file.
fn hw_from_anywhere(hw: String) -> String {
    let is_file = hw.ends_with(".toml");
    let path = is_file.then(|| std::path::absolute(&hw).ok()).flatten();
    path.map_or(hw, |path| path.display().to_string())
}

/// Parses a clock in MHz.
pub fn mhz(text: &str) -> Result<f64, String> {
    legal_mhz(text.parse().map_err(|_| "not a number; give MHz from 1 to 1000".to_string())?)
}

/// Parses a time limit in minutes.
fn minutes(text: &str) -> Result<f64, String> {
    // A cache folder without a write for a day counts as abandoned, so a step must end sooner.
    let legal = text.parse().ok().filter(|minutes| (0.001..=1380.0).contains(minutes));
    legal.ok_or_else(|| "give minutes from 0.001 to 1380 (23 hours)".into())
}

/// Loads a board, with its link of the given kind if there is one.
pub fn load_board(name: &str, host: Option<&str>) -> Result<Board, FlowError> {
    let board = Board::load(name)?;
    host.map_or(Ok(board.clone()), |kind| board.with_host(kind))
}

fn list(json: bool) -> Result<Verdict> {
    let mut rows = Vec::new();
    for name in Board::names() {
        let board = Board::load(&name)?;
        rows.push((name, board.title, board.device, board.hw, board.core_mhz));
    }
    let text = if json {
        let rows: Vec<_> = rows
            .iter()
            .map(|(name, title, device, hw, mhz)| {
                serde_json::json!({ "name": name, "title": title, "device": device, "hw": hw, "core_mhz": mhz })
            })
            .collect();
        format!("{}\n", serde_json::json!({ "boards": rows }))
    } else {
        let row = |(name, title, _, hw, mhz): &(String, String, String, String, f64)| {
            format!("{name:<16} {hw:<10} {mhz:>5} MHz  {title}\n")
        };
        rows.iter().map(row).collect()
    };
    write_or_print(None, text.as_bytes())?;
    Ok(Verdict::Fine)
}

/// Prints the progress of the flow's steps.
#[derive(Default)]
struct Told {
    step: &'static str,
    begun: Option<Instant>,
    drawn: Option<Instant>,
}

impl Told {
    fn tell(&mut self, event: steps::Progress) {
        match event {
            steps::Progress::Cached(step) => progress::say(&format!("{step}: cached")),
            steps::Progress::Started(step) => {
                (self.step, self.begun, self.drawn) = (step, Some(Instant::now()), None);
                progress::tell(step);
            }
            steps::Progress::Line(line) => {
                let due = self.drawn.is_none_or(|drawn| drawn.elapsed() > Duration::from_millis(200));
                if due && !line.is_empty() {
                    self.drawn = Some(Instant::now());
                    let seconds = self.begun.map_or(0, |begun| begun.elapsed().as_secs());
                    let line: String = line.chars().take(80).collect();
                    progress::tell(&format!("{} {seconds} s  {line}", self.step));
                }
            }
            steps::Progress::Estimated { wanted, mhz } => {
                let doubt = if mhz < wanted { ": less than requested" } else { "" };
                progress::say(&format!("clock: about {mhz:.0} MHz expected once it is routed{doubt}"));
            }
            steps::Progress::Running { what, done, of } => {
                let due = self.drawn.is_none_or(|drawn| drawn.elapsed() > Duration::from_millis(200));
                if due {
                    self.drawn = Some(Instant::now());
                    progress::tell(&format!("{what}: {done} of {of} runs"));
                }
            }
            steps::Progress::Done(step, took) => {
                progress::tell("");
                progress::say(&format!("{step}: {:.1} s", took.as_secs_f64()));
            }
        }
    }
}
