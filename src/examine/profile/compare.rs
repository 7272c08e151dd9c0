//! Compares two profiles of one model.

use serde_json::{Value, json};

use super::json::{FORMAT, VERSION};
use crate::text_table::{Align, table};

pub use super::json::About;

/// Why two profiles cannot be compared.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// The file is not a profile.
    #[error("{file} is not a profile; give the .json file that profile --report writes next to its page")]
    Foreign {
        /// The file.
        file: String,
    },
    /// Written by another version of the program.
    #[error("{file} is a profile of version {found}, but this program reads {VERSION}; profile the model again")]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u64,
    },
    /// The profiles are of different models, or of one model with different inputs.
    #[error("{a} is of {model_a}, but {b} of {model_b}; compare profiles of one model with the same input sizes")]
    Models {
        /// The first file.
        a: String,
        /// Its model.
        model_a: String,
        /// The second file.
        b: String,
        /// Its model.
        model_b: String,
    },
}

/// Reads a profile's text.
///
/// # Errors
/// [`CompareError::Foreign`] or [`CompareError::Version`].
pub fn read(file: &str, text: &[u8]) -> Result<Value, CompareError> {
    let foreign = || CompareError::Foreign { file: file.to_string() };
    let value: Value = serde_json::from_slice(text).map_err(|_| foreign())?;
    if value["format"] != FORMAT {
        return Err(foreign());
    }
    match value["version"].as_u64() {
        Some(VERSION) => Ok(value),
        found => Err(CompareError::Version { file: file.to_string(), found: found.unwrap_or(0) }),
    }
}

/// How a figure is formatted; the page uses the same names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Shown {
    Count,
    Bytes,
    Number,
    Share,
}

impl Shown {
    fn name(self) -> &'static str {
        match self {
            Shown::Count => "count",
            Shown::Bytes => "bytes",
            Shown::Number => "number",
            Shown::Share => "share",
        }
    }

    fn text(self, value: &Value) -> String {
        let Some(value) = value.as_f64() else { return "-".into() };
        match self {
            Shown::Count | Shown::Bytes => format!("{value:.0}"),
            Shown::Number => format!("{value:.4}"),
            Shown::Share => format!("{:.1} %", 100.0 * value),
        }
    }
}

/// Figures to compare, on the terminal and on the page: name, JSON pointer in the summary, and format.
const FIGURES: [(&str, &str, Shown); 9] = [
    ("cycles", "/cycles", Shown::Count),
    ("accelerator, ms", "/accelerator_ms", Shown::Number),
    ("array used", "/utilization", Shown::Share),
    ("MACs offloaded", "/offloaded_macs_fraction", Shown::Share),
    ("bytes read", "/bytes_read", Shown::Bytes),
    ("bytes written", "/bytes_written", Shown::Bytes),
    ("an input on the target host, ms (modeled)", "/on_target_host/latency_ms", Shown::Number),
    ("answers per second of a stream there (modeled)", "/on_target_host/throughput_per_s", Shown::Number),
    ("energy, mJ", "/energy_mj", Shown::Number),
];

/// Those of [`FIGURES`] that at least one summary has, with both values.
fn figures<'a>(a: &'a Value, b: &'a Value) -> impl Iterator<Item = (&'static str, Shown, &'a Value, &'a Value)> {
    let of = |summary: &'a Value, place| summary.pointer(place).unwrap_or(&Value::Null);
    let both = FIGURES.into_iter().map(move |(name, place, shown)| (name, shown, of(a, place), of(b, place)));
    both.filter(|(.., a, b)| !(a.is_null() && b.is_null()))
}

/// Compares two profiles; layers are matched by name.
///
/// # Errors
/// [`CompareError::Models`].
pub fn compare((file_a, a): (&str, &Value), (file_b, b): (&str, &Value)) -> Result<Value, CompareError> {
    let identity = |v: &Value| (v["model"]["sha256"].clone(), v["model"]["inputs"].clone());
    let named = |v: &Value| {
        let shapes: Vec<String> =
            v["model"]["inputs"].as_array().into_iter().flatten().map(|i| i["shape"].to_string()).collect();
        // The start of the hash tells two files of the same name apart.
        let hash: String = v["model"]["sha256"].as_str().unwrap_or_default().chars().take(8).collect();
        format!("{} ({hash}) {}", v["model"]["file"].as_str().unwrap_or("a model"), shapes.join(" "))
    };
    if identity(a) != identity(b) {
        let (a_file, b_file) = (file_a.to_string(), file_b.to_string());
        return Err(CompareError::Models { a: a_file, model_a: named(a), b: b_file, model_b: named(b) });
    }
    let side = |file: &str, v: &Value| {
        json!({ "file": file, "hw": v["hw"]["name"], "clock_mhz": v["hw"]["clock_mhz"], "device": v["device"],
                "level": v["level"], "offload": v["offload"], "dram": v["dram"], "producer": v["producer"],
                "summary": v["summary"] })
    };
    let figures: Vec<Value> = figures(&a["summary"], &b["summary"])
        .map(|(name, shown, a, b)| json!({ "name": name, "shown": shown.name(), "a": a, "b": b }))
        .collect();
    let list = |v: &Value| v["layers"].as_array().cloned().unwrap_or_default();
    let (first, mut second) = (list(a), list(b));
    let mut rows = Vec::new();
    for layer in first {
        let at = second.iter().position(|other| other["name"] == layer["name"]);
        let other = at.map_or(Value::Null, |at| second.remove(at));
        rows.push(json!({ "name": layer["name"], "op": layer["op"], "a": layer, "b": other }));
    }
    // Layers that only the second profile has.
    rows.extend(
        second.into_iter().map(|other| json!({ "name": other["name"], "op": other["op"], "a": null, "b": other })),
    );
    let [a_side, b_side] = [side(file_a, a), side(file_b, b)];
    Ok(json!({ "model": a["model"]["file"], "a": a_side, "b": b_side, "figures": figures, "layers": rows }))
}

/// A comparison as text.
pub fn text(compared: &Value) -> String {
    let ratio = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) if a > 0.0 => format!("{:.3}", b / a),
        _ => "-".into(),
    };
    let row = |name: &str, op: &str, shown: Shown, a: &Value, b: &Value| {
        vec![name.into(), op.into(), shown.text(a), shown.text(b), ratio(a, b)]
    };
    let differs = |key: &str| compared["a"][key] != compared["b"][key];
    let side = |side: &Value| {
        let word = |key: &str| side[key].as_str().unwrap_or("");
        let mut told = format!("{}: {} on {}, -O{}", word("file"), word("hw"), word("device"), side["level"]);
        if differs("offload") {
            told += &format!(", --offload {}", word("offload"));
        }
        if differs("clock_mhz") {
            told += &format!(", {} MHz", side["clock_mhz"]);
        }
        if differs("dram") {
            told += &format!(", dram {}", word("dram"));
        }
        told
    };
    let mut rows = vec![["", "", "a", "b", "b / a"].map(String::from).to_vec()];
    let of_both = figures(&compared["a"]["summary"], &compared["b"]["summary"]);
    rows.extend(of_both.map(|(name, shown, a, b)| row(name, "", shown, a, b)));
    rows.push(["layer", "operators", "a ms", "b ms", "b / a"].map(String::from).to_vec());
    for layer in compared["layers"].as_array().into_iter().flatten() {
        let (name, op) = (layer["name"].as_str().unwrap_or(""), layer["op"].as_str().unwrap_or(""));
        rows.push(row(name, op, Shown::Number, &layer["a"]["ms"], &layer["b"]["ms"]));
    }
    let aligns = [Align::Left, Align::Left, Align::Right, Align::Right, Align::Right];
    format!(
        "{}\na  {}\nb  {}\n{}",
        compared["model"].as_str().unwrap_or(""),
        side(&compared["a"]),
        side(&compared["b"]),
        table(&aligns, &rows)
    )
}
