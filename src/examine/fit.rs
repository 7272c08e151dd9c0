//! `compile --board`: whether a model fits the memory of a board, and how fast it is there.

use std::fmt::Write;

use serde_json::{Value, json};
use tilewright_compiler::cost::Clock;
use tilewright_hw::config::HwConfig;
use tilewright_hw::flow::FlowError;
use tilewright_hw::flow::board::Board;
use tilewright_runtime::artifact::{Artifact, DeviceNeed, InsnLayers, LayerEnd, Place, StepKind};
use tilewright_runtime::session::{RunReport, StepReport};

use super::bench::{Frame, on_target};
use super::layers::layers;
use crate::model::clock::CycleModel;

/// The largest buffers that are listed if a model does not fit.
const LISTED: usize = 5;

/// A model on a board.
#[derive(Debug)]
pub struct Fit {
    model: String,
    board: String,
    config: HwConfig,
    /// What the device memory is.
    memory: &'static str,
    available: u64,
    need: DeviceNeed,
    /// Cycles of all programs, by the cycle model; none if one cannot run there.
    cycles: Option<u64>,
    /// The parts of an input's time, if all are known.
    time: Option<Frame>,
    /// Operators on the host.
    host_nodes: usize,
    /// Boards whose memory is large enough.
    larger: Vec<String>,
}

impl Fit {
    /// Compares an artifact that was compiled for a board's configuration with that board.
    ///
    /// # Errors
    /// [`FlowError::Board`] if a board cannot be read.
    pub fn of(artifact: &Artifact, board: &Board, config: &HwConfig) -> Result<Fit, FlowError> {
        let (need, available) = (artifact.device_need(), board.memory_bytes(config));
        let cycles: Vec<Option<u64>> = artifact
            .manifest
            .steps
            .iter()
            .map(|step| match &step.kind {
                StepKind::Accel(accel) => {
                    let mut program = accel.program.clone();
                    program.stream = artifact.blob(accel.stream).to_vec();
                    program.constants = artifact.blob(accel.constants).to_vec();
                    let all = LayerEnd { name: String::new(), end: program.insn_count() };
                    let ends = CycleModel { config }.cycles(&program, &InsnLayers::new(&[all], &[]))?;
                    ends.last().copied()
                }
                _ => Some(0),
            })
            .collect();
        let steps = artifact.manifest.steps.iter().zip(&cycles).map(|(step, cycles)| {
            let place = if matches!(step.kind, StepKind::Accel(_)) { Place::Accel } else { Place::Cpu };
            StepReport { cycles: *cycles, ..StepReport::on(place) }
        });
        let report = RunReport { steps: steps.collect() };
        let times = on_target(artifact, &layers(artifact, &[], None), config, Some(&report));
        let mut larger = Vec::new();
        if need.total() > available {
            for name in Board::names() {
                let other = Board::load(&name)?;
                if other.memory_bytes(&other.default_config()?) >= need.total() {
                    larger.push(name);
                }
            }
        }
        Ok(Fit {
            model: artifact.manifest.model.clone(),
            board: board.name.clone(),
            config: config.clone(),
            memory: board.memory.place(),
            available,
            cycles: cycles.into_iter().sum(),
            time: times.map(|times| Frame::of(&times)),
            host_nodes: artifact.manifest.nodes.iter().filter(|node| node.place == Place::Cpu).count(),
            need,
            larger,
        })
    }

    /// Whether the model fits.
    pub fn fits(&self) -> bool {
        self.need.total() <= self.available
    }

    /// What to do if the model does not fit.
    fn remedy(&self) -> Option<String> {
        if self.fits() {
            return None;
        }
        let mut text = "use a smaller input or batch, or --offload auto or none".to_string();
        if !self.larger.is_empty() {
            let _ = write!(text, ", or a board with enough memory: {}", self.larger.join(", "));
        }
        Some(text)
    }

    /// The answer as text.
    pub fn table(&self) -> String {
        let (need, host) = (&self.need, &self.config.host);
        let mut text = format!("{} on {} at {:.2} MHz\n", self.model, self.board, host.clock_mhz);
        let mut row = |name: &str, figure: String, more: &str| {
            let _ = writeln!(text, "{}", format!("{name:<16}{figure:>16}  {more}").trim_end());
        };
        row("device memory", "bytes".into(), "");
        row("  parameters", need.constants.to_string(), "weights, biases, multipliers, micro-ops");
        row("  activations", need.tensors.to_string(), &format!("{} if each tensor had its own memory", need.apart));
        row("  programs", need.streams.to_string(), "instructions");
        row("  needed", need.total().to_string(), "");
        row("  available", self.available.to_string(), self.memory);
        let share = 100.0 * need.total() as f64 / self.available.max(1) as f64;
        row("fits", if self.fits() { "yes" } else { "NO" }.into(), &format!("{share:.1} % of the memory needed"));
        if let Some(remedy) = self.remedy() {
            for (name, bytes) in need.parts.iter().take(LISTED) {
                row("  large", bytes.to_string(), name);
            }
            row("  remedy", String::new(), &remedy);
        }
        let ms = |time: Option<f64>| time.map_or("n/a".to_string(), |ms| format!("{ms:.3}"));
        let part = |part: fn(&Frame) -> f64| ms(self.time.as_ref().map(part));
        let cycles =
            self.cycles.map_or("a program cannot run there".into(), |n| format!("{n} cycles by the cycle model"));
        let host_work = match self.host_nodes {
            1 => "1 operator".to_string(),
            count => format!("{count} operators"),
        };
        row("time of an input", "ms".into(), "");
        row("  accelerator", part(|t| t.accel_ms), &cycles);
        row("  host", part(|t| t.host_ms), &format!("{host_work} on {}, modeled", host.target));
        row("  conversions", part(|t| t.convert_ms), "of layouts on the host, modeled");
        row("  transfers", part(|t| t.transfer_ms), "to and from device memory, modeled");
        row("  launches", part(|t| t.launch_ms), "of programs, modeled");
        row("  all", ms(self.time.as_ref().map(Frame::latency_ms)), "one part after the other");
        text
    }

    /// The answer as one JSON object; bytes and milliseconds.
    pub fn json(&self) -> Value {
        let need = &self.need;
        let parts = need.parts.iter().take(LISTED).map(|(name, bytes)| json!({ "name": name, "bytes": bytes }));
        json!({
            "model": self.model,
            "board": self.board,
            "hw": self.config.name,
            "clock_mhz": self.config.host.clock_mhz,
            "memory": {
                "parameters": need.constants,
                "activations": need.tensors,
                "activations_apart": need.apart,
                "programs": need.streams,
                "needed": need.total(),
                "available": self.available,
                "place": self.memory,
                "largest": parts.collect::<Vec<_>>(),
            },
            "fits": self.fits(),
            "remedy": self.remedy(),
            "cycles": self.cycles,
            "host": self.config.host.target,
            "host_operators": self.host_nodes,
            "time_ms": self.time.as_ref().map(|time| json!({
                "accelerator": time.accel_ms,
                "host": time.host_ms,
                "conversions": time.convert_ms,
                "transfers": time.transfer_ms,
                "launches": time.launch_ms,
                "all": time.latency_ms(),
            })),
        })
    }
}
