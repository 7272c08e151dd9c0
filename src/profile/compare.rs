//! Two profiles of one model side by side.

use serde_json::{Value, json};

use super::json::{FORMAT, VERSION};
use crate::text_table::{Align, table};

pub use super::json::About;

/// Why two results do not compare.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum CompareError {
    /// Something else than a profile.
    #[error("{file} is no profile; give the .json file that profile --report writes beside its page")]
    Foreign {
        /// The file.
        file: String,
    },
    /// Written by another version of the program.
    #[error("{file} is a profile of version {found}, this program reads {VERSION}; profile the model again")]
    Version {
        /// The file.
        file: String,
        /// Its version.
        found: u64,
    },
    /// Results of different models, or of one with different inputs.
    #[error(
        "{a} is of {model_a}, {b} of {model_b}: profiles of two models, or of other sizes of its inputs, do not compare"
    )]
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

/// Puts two profiles side by side, layers by their names.
///
/// # Errors
/// [`CompareError::Models`].
pub fn compare((file_a, a): (&str, &Value), (file_b, b): (&str, &Value)) -> Result<Value, CompareError> {
    let identity = |v: &Value| (v["model"]["sha256"].clone(), v["model"]["inputs"].clone());
    let named = |v: &Value| {
        let shapes: Vec<String> =
            v["model"]["inputs"].as_array().into_iter().flatten().map(|i| i["shape"].to_string()).collect();
        format!("{} {}", v["model"]["file"].as_str().unwrap_or("a model"), shapes.join(" "))
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
    let list = |v: &Value| v["layers"].as_array().cloned().unwrap_or_default();
    let (first, mut second) = (list(a), list(b));
    let mut rows = Vec::new();
    for layer in first {
        let at = second.iter().position(|other| other["name"] == layer["name"]);
        let other = at.map_or(Value::Null, |at| second.remove(at));
        rows.push(json!({ "name": layer["name"], "op": layer["op"], "a": layer, "b": other }));
    }
    // What only the second cuts so.
    rows.extend(
        second.into_iter().map(|other| json!({ "name": other["name"], "op": other["op"], "a": null, "b": other })),
    );
    Ok(json!({ "model": a["model"]["file"], "a": side(file_a, a), "b": side(file_b, b), "layers": rows }))
}

/// A comparison for people.
pub fn text(compared: &Value) -> String {
    let number = |v: &Value| {
        v.as_f64().map_or("-".to_string(), |n| if n.fract() == 0.0 { format!("{n:.0}") } else { format!("{n:.4}") })
    };
    let ratio = |a: &Value, b: &Value| match (a.as_f64(), b.as_f64()) {
        (Some(a), Some(b)) if a > 0.0 => format!("{:.3}", b / a),
        _ => "-".into(),
    };
    let row =
        |name: &str, op: &str, a: &Value, b: &Value| vec![name.into(), op.into(), number(a), number(b), ratio(a, b)];
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
    let (a, b) = (&compared["a"]["summary"], &compared["b"]["summary"]);
    for (name, key) in [
        ("cycles", "cycles"),
        ("accelerator ms", "accelerator_ms"),
        ("bytes read", "bytes_read"),
        ("bytes written", "bytes_written"),
        ("utilization", "utilization"),
    ] {
        rows.push(row(name, "", &a[key], &b[key]));
    }
    rows.push(row("latency on target ms", "", &a["on_target_host"]["latency_ms"], &b["on_target_host"]["latency_ms"]));
    rows.push(["layer", "operators", "a ms", "b ms", "b / a"].map(String::from).to_vec());
    for layer in compared["layers"].as_array().into_iter().flatten() {
        let (name, op) = (layer["name"].as_str().unwrap_or(""), layer["op"].as_str().unwrap_or(""));
        rows.push(row(name, op, &layer["a"]["ms"], &layer["b"]["ms"]));
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
