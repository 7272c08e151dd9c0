//! Networks of the zoo in full.

use serde_json::{Value, json};

use super::zoo::{Entry, Expected, PREFIX, Sample};
use super::{ModelFile, Sizes, classes, import};

/// Describes a network in full: its file, inputs, outputs, sample and source.
///
/// # Errors
/// Why it cannot be extracted or read.
pub fn describe(entry: &Entry) -> anyhow::Result<Value> {
    let name = format!("{PREFIX}{}", entry.name);
    let file = ModelFile::parse(&name).map_err(anyhow::Error::msg)?;
    let graph = import(&file, &Sizes { data: file.sample_shapes(), ..Sizes::default() })?;
    let inputs: Vec<_> = graph.inputs().map(|(name, id)| format!("{name}: {}", graph.ty(id))).collect();
    let outputs: Vec<_> = graph.outputs().iter().map(|(name, id)| format!("{name}: {}", graph.ty(*id))).collect();
    let sample = match entry.sample {
        Sample::Array(_) => "an array".to_string(),
        Sample::Picture(file, _) => format!("the picture {file}"),
    };
    let names = classes::names(entry.class_names);
    let expected = match entry.expected {
        Expected::Arrays(_, tolerance) => format!("each element within {tolerance} of the reference"),
        Expected::Classes(classes, tolerance) => {
            let guess = |(class, p): &(usize, f64)| {
                format!("{} {:.0} %", names.get(*class).map_or("", String::as_str), 100.0 * p)
            };
            let list: Vec<String> = classes.iter().map(guess).collect();
            format!("{}, within {:.0} points", list.join(", "), 100.0 * tolerance)
        }
    };
    Ok(json!({
        "name": name, "title": entry.title, "source": entry.source, "licence": entry.licence, "bytes": entry.bytes.len(),
        "file": file.to_path_buf(), "inputs": inputs, "outputs": outputs, "classes": names.len(),
        "preprocess": entry.preprocess, "sample": sample, "expected": expected,
    }))
}
