//! A comparison as text tables.

use super::{Bench, Column, Figures, json::per_second, rows};
use crate::device::dram;
use crate::model::Precision;
use crate::text_table::{Align, table};

/// Longest layer name; longer names are truncated.
const NAME_CHARS: usize = 40;

impl Bench {
    /// The tables: devices, ways to offload, layers.
    pub fn table(&self) -> String {
        let threads = if self.threads == 1 { "1 thread" } else { &format!("{} threads", self.threads) };
        let mut text = format!(
            "{}: {} MACs, -O{}, {threads}, {} warm-up and {} measured runs; medians, with least and greatest\n",
            self.model, self.macs, self.level, self.warm_up, self.repetitions
        );
        if self.precision == Precision::F16 {
            text += "cuda: 16-bit floats in its memory\n";
        }
        for column in &self.columns {
            if let (Some(hw), Ok(_)) = (&column.hw, &column.figures) {
                let (target, memory) = (&hw.host.target, dram::text(&hw.dram, hw.bus_bytes()));
                text += &format!(
                    "{}: {} at {} MHz, target host {target}, dram {memory}\n",
                    column.name, hw.name, hw.host.clock_mhz
                );
            }
        }
        text += &format!("\n{}\n{}", self.devices(), self.layers());
        if !self.offload.is_empty() {
            text += &format!("\n{}", self.ways());
        }
        text
    }

    fn devices(&self) -> String {
        let head = [
            "device",
            "latency ms",
            "least",
            "greatest",
            "accel",
            "launch",
            "host",
            "convert",
            "transfer",
            "per s",
            "over cpu",
            "on target ms",
            "over target",
            "used",
            "MB moved",
            "energy mJ",
        ];
        let mut rows = vec![head.map(String::from).to_vec()];
        for column in &self.columns {
            rows.push(match &column.figures {
                Ok(figures) => self.device(column, figures),
                Err(reason) => vec![column.name.clone(), format!("missing: {reason}")],
            });
        }
        for host in &self.hosts {
            let mut row = vec![format!("{} alone", host.target)];
            row.resize(11, String::new());
            row.push(ms(host.latency_ms));
            row.resize(head.len(), String::new());
            // Several configurations can name the same host.
            if !rows.contains(&row) {
                rows.push(row);
            }
        }
        let mut aligns = vec![Align::Right; head.len()];
        aligns[0] = Align::Left;
        table(&aligns, &rows)
            + "accel: exact cycles at the configuration's clock; host and convert: measured here; launch and transfer: modeled, \
               for boards measured as one; target host: all modeled\n\
               per s: for accelerators from a replay of these parts, in which the host computes for one input while the \
               accelerator computes for another; for cpu and cuda measured, one input after the other\n"
    }

    fn device(&self, column: &Column, figures: &Figures) -> Vec<String> {
        let (spread, frame) = (figures.latency_ms, figures.frame);
        let (over_cpu, over_target) = self.speed_up(column);
        let times = |speed: Option<f64>| speed.map_or("-".into(), |speed| few(speed) + "x");
        let part = |value: f64| if column.hw.is_some() { ms(Some(value)) } else { "-".into() };
        let star = if figures.simulated { "*" } else { "" };
        vec![
            format!("{}{star}", column.name),
            ms(Some(spread.median)),
            ms(Some(spread.min)),
            ms(Some(spread.max)),
            part(frame.accel_ms),
            part(frame.launch_ms),
            ms(Some(frame.host_ms)),
            part(frame.convert_ms),
            part(frame.transfer_ms),
            per_second(figures.stream).map_or("-".into(), few),
            times(over_cpu),
            ms(figures.on_target.map(|frame| frame.latency_ms())),
            times(over_target),
            percent(figures.utilization),
            megabytes(figures.bytes),
            figures.energy_mj.map_or("-".into(), |mj| format!("{mj:.3}")),
        ]
    }

    fn layers(&self) -> String {
        let mut head: Vec<String> = ["layer", "operators", "MACs", "target ms"].map(String::from).to_vec();
        let there: Vec<usize> = (0..self.columns.len()).filter(|at| self.columns[*at].figures.is_ok()).collect();
        for &at in &there {
            let column = &self.columns[at];
            head.push(format!("{} ms", column.name));
            if column.hw.is_some() {
                head.extend(["where", "used", "MB moved"].map(String::from));
            }
        }
        let mut aligns = vec![Align::Right; head.len()];
        (aligns[0], aligns[1]) = (Align::Left, Align::Left);
        let mut lines = vec![head];
        for row in rows(self) {
            let name: String = match row.name.char_indices().nth(NAME_CHARS) {
                Some((at, _)) => format!("{}…", &row.name[..at]),
                None => row.name.clone(),
            };
            let mut line = vec![name, row.ops.clone(), row.macs.to_string(), ms(row.host_ms)];
            for &at in &there {
                let cell = row.cells[at].as_ref();
                line.push(ms(cell.and_then(|cell| cell.latency_ms).map(|ms| ms.median)));
                if self.columns[at].hw.is_some() {
                    line.push(cell.map_or(String::new(), |cell| cell.place.to_string()));
                    line.push(percent(cell.and_then(|cell| cell.utilization)));
                    line.push(megabytes(cell.and_then(|cell| cell.bytes)));
                }
            }
            lines.push(line);
        }
        table(&aligns, &lines)
    }

    fn ways(&self) -> String {
        let head = ["offload", "hw", "layers there", "MACs there", "latency ms", "per s", "on target ms"];
        let mut lines = vec![head.map(String::from).to_vec()];
        for row in &self.offload {
            if let Some(reason) = &row.missing {
                lines.push(vec![row.choice.name().into(), row.hw.clone(), format!("missing: {reason}")]);
                continue;
            }
            lines.push(vec![
                row.choice.name().into(),
                row.hw.clone(),
                format!("{} of {}", row.layers.0, row.layers.1),
                percent(row.offloaded),
                ms(row.latency_ms),
                per_second(row.stream).map_or("-".into(), few),
                ms(row.target_ms),
            ]);
        }
        let mut aligns = [Align::Right; 7];
        (aligns[0], aligns[1]) = (Align::Left, Align::Left);
        table(&aligns, &lines)
    }
}

/// Milliseconds with about four significant digits.
fn ms(value: Option<f64>) -> String {
    match value {
        None => "-".into(),
        Some(value) if value >= 100.0 => format!("{value:.1}"),
        Some(value) if value >= 1.0 => format!("{value:.3}"),
        Some(value) => format!("{value:.4}"),
    }
}

/// A number with two decimals, or as many as needed for two significant digits.
fn few(value: f64) -> String {
    match value {
        value if value >= 100.0 => format!("{value:.1}"),
        value if value >= 0.1 => format!("{value:.2}"),
        0.0 => "0".into(),
        value if value >= 1e-6 => {
            let zeros = (-value.log10()).floor() as usize;
            format!("{value:.*}", zeros + 2)
        }
        value => format!("{value:.1e}"),
    }
}

fn percent(share: Option<f64>) -> String {
    share.map_or("-".into(), |share| format!("{:.1}%", 100.0 * share))
}

fn megabytes(bytes: Option<(u64, u64)>) -> String {
    bytes.map_or("-".into(), |(read, written)| format!("{:.3}", (read + written) as f64 / 1e6))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn small_rates_keep_two_digits() {
        let shown = [6039.66, 52.345, 0.8012, 0.1, 0.0379, 0.00075, 0.0].map(few);
        assert_eq!(shown, ["6039.7", "52.34", "0.80", "0.10", "0.038", "0.00075", "0"]);
    }
}
