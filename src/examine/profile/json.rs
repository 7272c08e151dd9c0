//! A profile as one JSON object: the data of the page and of comparisons.

use serde_json::{Value, json};
use sha2::{Digest, Sha256};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::Unit;
use tilewright_hw::regs::UnitState;
use tilewright_runtime::artifact::{NodeCost, Place};

use super::Profile;
use crate::examine::bench::{Frame, Spread, Stream, time_on_host};
use crate::examine::layers::OnAccel;
use crate::{device::dram, examine::explain};

/// Value of the key `format`.
pub const FORMAT: &str = "tilewright-profile";
/// Version of the format; increased when older readers would misread it.
pub const VERSION: u64 = 3;

/// Facts about a run that the profile itself does not contain.
#[derive(Debug, Clone, Default)]
pub struct About<'a> {
    /// The model file as the user wrote it.
    pub file: &'a str,
    /// SHA-256 of the model's file.
    pub sha256: String,
    /// The device's name.
    pub device: &'a str,
    /// Optimization level.
    pub level: u8,
    /// Value of `--offload`.
    pub offload: &'a str,
    /// File name of the trace next to the report.
    pub trace: Option<String>,
    /// File name of the waves next to the report.
    pub waves: Option<String>,
}

impl About<'_> {
    /// SHA-256 of the bytes of a model's file, in hexadecimal.
    pub fn hash(bytes: &[u8]) -> String {
        Sha256::digest(bytes).iter().map(|byte| format!("{byte:02x}")).collect()
    }
}

impl Profile {
    /// The whole profile as JSON.
    pub fn json(&self, config: &HwConfig, about: &About) -> Value {
        let manifest = &self.artifact.manifest;
        let ms_of = |cycles: u64| cycles as f64 / config.host.clock_mhz / 1e3;
        let inputs: Vec<Value> = manifest
            .input_values()
            .iter()
            .map(|value| json!({ "name": value.name, "dtype": value.dtype.name(), "shape": value.shape }))
            .collect();
        let nodes: Vec<Value> = self
            .network
            .nodes
            .iter()
            .map(|node| {
                let info = &manifest.nodes[node.index];
                json!({ "name": info.name, "op": info.op, "where": info.place.to_string(), "why": info.why,
                        "cost": explain::cost_of_layer(info).map(cost), "macs": info.macs, "layer": node.layer,
                        "reads": node.reads, "at": [node.lane, node.depth] })
            })
            .collect();
        let layers: Vec<Value> = self
            .layers
            .iter()
            .map(|layer| {
                let accel = layer.accel;
                let cycles = accel.and_then(|accel| accel.cycles);
                let on_host = (layer.place != Place::Accel && layer.step.is_some())
                    .then(|| time_on_host(&self.layers, layer, &self.timed).median);
                json!({
                    "name": layer.name, "op": layer.operators(), "where": layer.place.to_string(), "macs": layer.macs,
                    "step": layer.step, "cycles": cycles, "ms": cycles.map(ms_of).or(on_host),
                    "span_cycles": accel.and_then(|accel| accel.span),
                    "busy_cycles": accel.filter(|accel| accel.cycles.is_some()).map(|accel| busy(&accel)),
                    "read": accel.map(|accel| accel.read), "written": accel.map(|accel| accel.written),
                    "utilization": layer.utilization(config.macs_per_cycle()),
                    "target_host_ms": layer.host_ns.map(|ns| ns as f64 / 1e6),
                })
            })
            .collect();
        let steps: Vec<Value> = manifest
            .steps
            .iter()
            .zip(&self.report.steps)
            .enumerate()
            .map(|(number, (step, exact))| {
                let walls = self.timed.iter().map(|run| run.steps[number].wall_s * 1e3).collect();
                let ms = exact.cycles.map_or_else(|| Spread::of(walls).median, ms_of);
                json!({ "name": step.name, "where": exact.place.to_string(), "ms": ms, "cycles": exact.cycles })
            })
            .collect();
        let bus = self.report.steps.iter().filter_map(|step| step.bytes).reduce(|a, b| (a.0 + b.0, a.1 + b.1));
        let array_macs: u64 = self.report.steps.iter().map(|step| step.macs).sum();
        let cycles = self.timeline.cycles;
        let bytes = bus.map(|(read, written)| read + written);
        let energy = config.energy.as_ref().zip(bytes);
        let macs = manifest.offloaded_macs();
        json!({
            "format": FORMAT, "version": VERSION, "producer": concat!("tilewright ", env!("CARGO_PKG_VERSION")),
            "model": { "name": manifest.model, "file": about.file, "sha256": about.sha256, "inputs": inputs,
                       "macs": manifest.macs() },
            "hw": { "name": config.name, "hash": format!("{:016x}", config.hash()), "clock_mhz": config.host.clock_mhz,
                    "target": config.host.target, "toml": config.to_toml() },
            "runs": { "warm_up": self.runs.warm_up, "measured": self.timed.len() },
            "device": about.device, "level": about.level, "offload": about.offload,
            "dram": dram::text(&config.dram, config.bus_bytes()),
            "summary": {
                "cycles": cycles, "accelerator_ms": ms_of(cycles), "macs": manifest.macs(),
                "offloaded_macs_fraction": manifest.offloaded_share(),
                "utilization": (cycles > 0).then(|| macs as f64 / (cycles * config.macs_per_cycle()) as f64),
                "array_macs": array_macs, "bytes_read": bus.map(|b| b.0), "bytes_written": bus.map(|b| b.1),
                "here": parts(&self.frame), "on_target_host": self.on_target.as_ref().map(parts),
                "target_host_alone_ms": self.host_alone_ms,
                "energy_mj": energy.map(|(energy, bytes)| energy.millijoules(array_macs, bytes, ms_of(cycles))),
                "energy_source": config.energy.as_ref().map(|energy| &energy.source),
            },
            "ceilings": { "macs_per_cycle": config.macs_per_cycle(), "bytes_per_cycle": config.dram.bytes_per_cycle(config.bus_bytes()) },
            "nodes": nodes, "layers": layers, "steps": steps,
            "timeline": {
                "cycles": cycles, "titles": self.timeline.titles,
                "layers": self.timeline.layers.iter().map(|(name, from, to)| json!([name, from, to])).collect::<Vec<_>>(),
                "states": UnitState::ALL.iter().map(|state| state.name()).collect::<Vec<_>>(),
                "units": self.timeline.units.iter().map(|unit| json!({ "name": unit.name, "insns": unit.insns,
                    "merged": unit.merged, "states": unit.states, "pieces": unit.pieces })).collect::<Vec<_>>(),
            },
            "occupancy": {
                "step": self.occupancy.step,
                "memories": self.occupancy.memories.iter().map(|(name, entries, most)|
                    json!({ "name": name, "entries": entries, "most": most })).collect::<Vec<_>>(),
            },
            "traffic": self.traffic.iter().map(|moved| json!({ "name": moved.name, "kind": moved.kind,
                "read": moved.read, "written": moved.written })).collect::<Vec<_>>(),
            "explain": { "cpu": explain::cpu_title(manifest), "note": explain::note(manifest) },
            "trace": about.trace, "waves": about.waves,
        })
    }
}

/// Cycles in which each unit worked for a layer, by unit name.
fn busy(accel: &OnAccel) -> Value {
    Unit::ALL.iter().map(|unit| (unit.name().to_string(), json!(accel.busy[*unit as usize]))).collect()
}

fn cost(cost: &NodeCost) -> Value {
    json!({ "accel_ns": cost.accel_ns, "cpu_ns": cost.cpu_ns, "moving_ns": cost.moving_ns })
}

fn parts((frame, stream): &(Frame, Option<Stream>)) -> Value {
    json!({ "latency_ms": frame.latency_ms(), "accelerator": frame.accel_ms, "launch": frame.launch_ms,
            "host": frame.host_ms, "convert": frame.convert_ms, "transfer": frame.transfer_ms,
            "throughput_per_s": stream.map(|stream| stream.per_second()), "stream": stream.map(|stream| stream.json()) })
}
