//! A comparison as CSV: a line for each device and layer, and one for each whole device.

use super::{Bench, Column, LayerTime, Spread};

/// The header line.
const HEAD: &str = "device,hw,layer,operator,where,latency_ms_min,latency_ms_median,latency_ms_max,target_host_ms,macs,cycles,\
                    utilization,bytes_read,bytes_written,missing";

/// Significant digits of a number that is not a count; the JSON form has full precision.
const DIGITS: usize = 9;

impl Bench {
    /// The CSV text with its header. Lines of whole devices have no layer name.
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
    let ms = ms.map(|ms| [ms.min, ms.median, ms.max]);
    [0, 1, 2].map(|at| number(ms.map(|ms| ms[at]))).join(",")
}

/// Formats a number with [`DIGITS`] significant digits, without trailing zeros; further digits of a sum would be noise.
fn number(value: Option<f64>) -> String {
    let Some(value) = value else { return String::new() };
    let rounded = format!("{value:.*e}", DIGITS - 1);
    rounded.parse().unwrap_or(value).to_string()
}

/// Quotes a field if it contains a separator.
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
    fn numbers_have_the_digits_that_mean_something() {
        let shown = [0.1 + 0.2, 1.0 / 3.0, 12345.6789, 2e-9 / 3.0, 0.0, 34637930.0].map(|value| number(Some(value)));
        assert_eq!(shown, ["0.3", "0.333333333", "12345.6789", "0.000000000666666667", "0", "34637930"]);
        let exactly = spread(Some(Spread { min: 0.1 + 0.2, median: 0.5, max: 0.7 }));
        assert_eq!((exactly.as_str(), spread(None).as_str(), number(None).as_str()), ("0.3,0.5,0.7", ",,", ""));
    }

    #[test]
    fn fields_that_hold_commas_are_quoted() {
        assert_eq!(quoted("a,b \"c\""), "\"a,b \"\"c\"\"\"");
        assert_eq!((quoted("plain"), HEAD.split(',').count()), ("plain".to_string(), 15));
    }
}
