//! A comparison as one JSON object.

use serde_json::{Map, Value, json};
use tilewright_hw::config::HwConfig;

use super::{Bench, Column, Figures, Frame, LayerTime, OffloadRow, Stream, rows};
use crate::device::dram;

impl Bench {
    /// All figures. `devices.NAME` has the figures of an accelerator or the CPU, or the key `missing` with a reason.
    pub fn json(&self) -> Value {
        let devices: Map<String, Value> =
            self.columns.iter().map(|column| (column.name.clone(), self.column(column))).collect();
        let layers: Vec<Value> = rows(self)
            .iter()
            .map(|row| {
                let cells = self.columns.iter().zip(&row.cells);
                let cells = cells.filter_map(|(column, cell)| Some((column.name.clone(), layer(cell.as_ref()?))));
                json!({ "name": row.name, "op": row.ops, "macs": row.macs, "target_host_ms": row.host_ms,
                        "devices": cells.collect::<Map<_, _>>() })
            })
            .collect();
        let hosts: Map<String, Value> = self
            .hosts
            .iter()
            .map(|host| {
                (host.hw.clone(), json!({ "target": host.target, "latency_ms": host.latency_ms, "from": "modeled" }))
            })
            .collect();
        json!({
            "model": self.model, "macs": self.macs, "threads": self.threads, "warm_up": self.warm_up,
            "repetitions": self.repetitions, "level": self.level, "gpu_floats": self.precision.name(), "devices": devices, "target_hosts": hosts,
            "layers": layers, "offload": self.offload.iter().map(offload).collect::<Vec<_>>(),
        })
    }

    fn column(&self, column: &Column) -> Value {
        let figures = match &column.figures {
            Ok(figures) => figures,
            Err(reason) => {
                return json!({ "device": column.device, "hw": column.hw.as_ref().map(|hw| &hw.name),
                               "latency_ms": null, "missing": reason });
            }
        };
        let speed = self.speed_up(column);
        let mut object = json!({
            "device": column.device,
            "latency_ms": figures.latency_ms.json(),
            "latency_from": figures.from(),
            "parts_ms": frame(&figures.frame),
            "throughput_per_s": per_second(figures.stream), "stream": figures.stream.map(|stream| stream.json()),
            "speed_up_over_cpu": speed.0,
            "speed_up_over_target_host": speed.1,
            "on_target_host": figures.on_target.map(|on_target| {
                let mut parts = frame(&on_target);
                parts["latency_ms"] = json!(on_target.latency_ms());
                parts["throughput_per_s"] = json!(per_second(figures.stream_on_target));
                parts["stream"] = json!(figures.stream_on_target.map(|stream| stream.json()));
                parts["from"] = json!("modeled, with the accelerator's exact cycles");
                parts
            }),
            "cycles": figures.cycles, "macs": self.macs, "array_macs": figures.array_macs,
            "utilization": figures.utilization, "offloaded_macs_fraction": figures.offloaded,
            "bytes_moved": figures.bytes.map(bytes), "energy_mj": figures.energy_mj,
            "wall_ms": figures.wall_ms.json(), "outputs_equal_cpu": figures.agrees,
            "layers": figures.layers.iter().map(layer).collect::<Vec<_>>(),
        });
        if let Some(hw) = &column.hw {
            object["hw"] = hardware(hw);
        }
        object
    }

    /// Speed-ups over this machine's CPU alone and over the configuration's target host alone; none for simulation
    /// time.
    pub fn speed_up(&self, column: &Column) -> (Option<f64>, Option<f64>) {
        let (Ok(figures), Some(hw)) = (&column.figures, &column.hw) else { return (None, None) };
        let host = self.hosts.iter().find(|host| host.hw == hw.name).and_then(|host| host.latency_ms);
        let over = |alone: Option<f64>, ms: f64| alone.filter(|_| ms > 0.0).map(|alone| alone / ms);
        let cpu = Some(self.cpu_ms).filter(|_| !figures.simulated);
        (over(cpu, figures.latency_ms.median), figures.on_target.and_then(|frame| over(host, frame.latency_ms())))
    }
}

impl Figures {
    /// Source of its latency.
    pub fn from(&self) -> &'static str {
        match (self.cycles, self.simulated) {
            (Some(_), _) if self.is_board => {
                "accelerator: cycles at clock_mhz; host and conversions: measured; transfers: measured, launches among them"
            }
            (Some(_), _) => {
                "accelerator: cycles at clock_mhz; host and conversions: measured; launches and transfers: modeled"
            }
            (None, true) => "measured: the simulator's own time, not hardware's",
            (None, false) => "measured",
        }
    }
}

/// Describes the accelerator's configuration.
fn hardware(hw: &HwConfig) -> Value {
    json!({ "name": hw.name, "hash": format!("{:016x}", hw.hash()), "clock_mhz": hw.host.clock_mhz,
            "target": hw.host.target, "macs_per_cycle": hw.macs_per_cycle(),
            "dram": dram::text(&hw.dram, hw.bus_bytes()),
            "energy_source": hw.energy.as_ref().map(|energy| &energy.source) })
}

fn frame(frame: &Frame) -> Value {
    json!({ "accelerator": frame.accel_ms, "launch": frame.launch_ms, "host": frame.host_ms,
            "convert": frame.convert_ms, "transfer": frame.transfer_ms })
}

/// Answers per second of a stream.
pub(super) fn per_second(stream: Option<Stream>) -> Option<f64> {
    stream.map(|stream| stream.per_second())
}

fn bytes((read, written): (u64, u64)) -> Value {
    json!({ "read": read, "written": written })
}

fn layer(layer: &LayerTime) -> Value {
    json!({ "name": layer.name, "op": layer.ops, "nodes": layer.nodes, "where": layer.place.to_string(),
            "latency_ms": layer.latency_ms.map(|ms| ms.json()), "target_host_ms": layer.host_ms, "macs": layer.macs,
            "cycles": layer.cycles, "utilization": layer.utilization, "bytes_moved": layer.bytes.map(bytes) })
}

fn offload(row: &OffloadRow) -> Value {
    json!({ "hw": row.hw, "offload": row.choice.name(), "layers_offloaded": row.layers.0, "layers": row.layers.1,
            "offloaded_macs_fraction": row.offloaded, "latency_ms": row.latency_ms,
            "throughput_per_s": per_second(row.stream), "throughput_from": row.stream.map(|stream| stream.how.text()),
            "target_host_latency_ms": row.target_ms, "missing": row.missing })
}
