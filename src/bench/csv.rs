//! A comparison as comma-separated values: a line for each device and layer, and one for each device's whole.

use super::{Bench, Column, LayerTime, Spread};

/// The columns.
const HEAD: &str = "device,hw,layer,operator,where,latency_ms_min,latency_ms_median,latency_ms_max,target_host_ms,macs,cycles,\
                    utilization,bytes_read,bytes_written,missing";

impl Bench {
    /// The text, with its head; the whole of a device has no layer's name.
    pub fn csv(&self) -> String {
        let mut text = format!("{HEAD}\n");
        for column in &self.columns {
            let hw = column.hw.as_ref().map_or("", |hw| &hw.name);
            let start = [quoted(&column.device), quoted(hw)].join(",");
            match &column.figures {
                Ok(figures) => {
                    text += &format!("{start},{}\n", self.whole(column));
                    figures.layers.iter().for_each(|layer| text += &format!("{start},{}\n", line(layer)));
                }
                Err(reason) => text += &format!("{start},{}{}\n", ",".repeat(12), quoted(reason)),
            }
        }
        text
    }

    fn whole(&self, column: &Column) -> String {
        let Ok(figures) = &column.figures else { return String::new() };
        let host = figures.on_target.map(|frame| frame.latency_ms());
        let bytes = figures.bytes.map(|b| [b.0, b.1].map(|n| n.to_string())).unwrap_or_default();
        let [read, written] = bytes;
        format!(
            ",,,{},{},{},{},{},{read},{written},",
            spread(Some(figures.latency_ms)),
            number(host),
            self.macs,
            figures.cycles.map_or(String::new(), |c| c.to_string()),
            number(figures.utilization),
        )
    }
}

fn line(layer: &LayerTime) -> String {
    let [read, written] = layer.bytes.map(|b| [b.0, b.1].map(|n| n.to_string())).unwrap_or_default();
    format!(
        "{},{},{},{},{},{},{},{},{read},{written},",
        quoted(&layer.name),
        quoted(&layer.ops),
        layer.place,
        spread(layer.latency_ms),
        number(layer.host_ms),
        layer.macs,
        layer.cycles.map_or(String::new(), |c| c.to_string()),
        number(layer.utilization),
    )
}

fn spread(ms: Option<Spread>) -> String {
    ms.map_or(",,".to_string(), |ms| format!("{},{},{}", ms.min, ms.median, ms.max))
}

fn number(value: Option<f64>) -> String {
    value.map_or(String::new(), |value| value.to_string())
}

/// A field in quotes where it has what would end it.
fn quoted(text: &str) -> String {
    match text.contains([',', '"', '\n', '\r']) {
        true => format!("\"{}\"", text.replace('"', "\"\"")),
        false => text.to_string(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn fields_that_hold_commas_are_quoted() {
        assert_eq!(quoted("a,b \"c\""), "\"a,b \"\"c\"\"\"");
        assert_eq!((quoted("plain"), HEAD.split(',').count()), ("plain".to_string(), 15));
    }
}
