//! The text and JSON reports of `diff`.

use super::{Comparison, ComputedBy, Departure, Difference, Side, Spot, Tolerance, Written, spot};
use crate::model::values::Visible;
use serde_json::{Value as Json, json};
use tilewright_runtime::tensor::{DType, Number, shape_text};

/// The first run in which the sides differ.
pub struct Parted {
    /// Index of the run, from 0.
    pub run: usize,
    /// Comparison of that run.
    pub comparison: Comparison,
}

/// The result of a comparison, to print as text or JSON.
pub struct Report {
    /// Names of the sides.
    pub names: [String; 2],
    /// Number of runs.
    pub runs: usize,
    /// Differences that count as equal.
    pub tolerance: Tolerance,
    /// One side.
    pub a: Side,
    /// The other side, if it is a device.
    pub b: Option<Box<Side>>,
    /// The run that was compared last.
    pub parted: Parted,
    /// The side whose ordinary program has a different result from the compared one, which keeps its values.
    pub ordinary: Option<(String, Departure)>,
}

impl Report {
    /// Whether all values are equal, also those of the ordinary programs.
    pub fn is_equal(&self) -> bool {
        self.parted.comparison.is_equal() && self.ordinary.is_none()
    }

    fn first(&self) -> Option<(&Visible, &Difference)> {
        self.parted.comparison.first()
    }

    /// The place in each side's program that computes the first element that differs.
    fn spots(&self, value: &Visible, difference: &Difference) -> [Option<Spot>; 2] {
        let of = |side: &Side| {
            let same = side.visible().iter().find(|v| v.name == value.name)?;
            spot(side.artifact(), side.config(), same, difference.first)
        };
        [of(&self.a), self.b.as_deref().and_then(of)]
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let comparison = &self.parted.comparison;
        let [a, b] = &self.names;
        let manifest = &self.a.artifact().manifest;
        let compared = comparison.values.len();
        let mut text = format!("{}: {a} and {b}, {compared} values compared", manifest.model);
        if comparison.alone > 0 {
            text += &format!(", {} skipped that {b} does not show", comparison.alone);
        }
        text += &format!(", {} run(s)\n", self.runs);
        if let Some((value, types)) = comparison.unlike.first() {
            text += &format!(
                "{} values have a different type or shape on {b}; the first is {}: {a} {}, {b} {}\n",
                comparison.unlike.len(),
                value.name,
                types[0],
                types[1]
            );
        }
        let Some((value, difference)) = self.first() else {
            if !comparison.unlike.is_empty() {
                return text;
            }
            return text + &self.ordinary_text();
        };
        let of = value.value(manifest);
        let op = value.node.map_or("input", |node| manifest.nodes[node].op.as_str());
        text += &format!(
            "{} of them differ in run {}; the first is {} ({op}, {} {})\n",
            comparison.differing(),
            self.parted.run + 1,
            value.name,
            of.dtype,
            shape_text(&of.shape)
        );
        text += &format!(
            "element     {:?}: {a} {}, {b} {}\n",
            difference.index,
            number(of.dtype, difference.values[0]),
            number(of.dtype, difference.values[1])
        );
        text += &format!(
            "differing   {} of {} elements, by at most {}\n",
            difference.differing, difference.elements, difference.largest
        );
        let spots = self.spots(value, difference);
        for ((name, spot), value) in self.names.iter().zip(&spots).zip(difference.values) {
            if let Some(spot) = spot {
                text += &spot_text(name, spot, &number(of.dtype, value));
            }
        }
        text
    }

    fn ordinary_text(&self) -> String {
        let Some((side, Departure { run, output, difference })) = &self.ordinary else { return "equal\n".into() };
        format!(
            "with kept values both are equal; on {side} the ordinary program differs from the one with kept values:\n\
             output {output}{:?} of run {} is {}, with kept values {}; {} of {} elements differ, by at most {}\n",
            difference.index,
            run + 1,
            difference.values[1],
            difference.values[0],
            difference.differing,
            difference.elements,
            difference.largest
        )
    }

    /// The report as one JSON object.
    pub fn json(&self) -> Json {
        let comparison = &self.parted.comparison;
        let manifest = &self.a.artifact().manifest;
        let first = self.first().map(|(value, difference)| {
            let of = value.value(manifest);
            let spots = self.spots(value, difference);
            json!({
                "run": self.parted.run, "name": value.name, "node": value.node.map(|node| &manifest.nodes[node].name),
                "op": value.node.map(|node| &manifest.nodes[node].op), "dtype": of.dtype.name(), "shape": of.shape,
                "index": difference.index, "a": difference.values[0], "b": difference.values[1],
                "differing": difference.differing, "elements": difference.elements, "largest": difference.largest,
                "a_made": spots[0].as_ref().map(spot_json), "b_made": spots[1].as_ref().map(spot_json),
            })
        });
        let unlike: Vec<Json> =
            comparison.unlike.iter().map(|(value, [a, b])| json!({ "name": value.name, "a": a, "b": b })).collect();
        let ordinary = self.ordinary.as_ref().map(|(side, found)| {
            let difference = &found.difference;
            json!({
                "side": side, "run": found.run, "output": found.output, "index": difference.index,
                "kept": difference.values[0], "ordinary": difference.values[1], "differing": difference.differing,
                "elements": difference.elements, "largest": difference.largest,
            })
        });
        json!({
            "model": manifest.model, "equal": self.is_equal(), "unlike": unlike, "ordinary": ordinary, "a": self.names[0], "b": self.names[1],
            "tolerance": { "steps": self.tolerance.steps, "relative": self.tolerance.relative },
            "runs": self.runs, "compared": comparison.values.len(), "not_shown_by_b": comparison.alone,
            "differing": comparison.differing(), "first": first,
        })
    }
}

/// Formats a number in its type's precision.
fn number(dtype: DType, value: Number) -> String {
    if dtype == DType::F32 { format!("{}", value.to_f64() as f32) } else { value.to_string() }
}

fn spot_text(name: &str, spot: &Spot, value: &str) -> String {
    let mut text = format!("{name}: {value} was computed on {} in step {}\n", spot.place, spot.step);
    match &spot.made {
        ComputedBy::Function(function) => text += &format!("  function  {function}\n"),
        ComputedBy::Unknown(why) => text += &format!("  not traced: {why}\n"),
        ComputedBy::Stream(written) => {
            text += &format!(
                "  tile      {} (store {} of {} of the value)\n",
                tile_text(written),
                written.number[0],
                written.number[1]
            );
            for (index, insn) in &written.makers {
                text += &format!("  {index:<9} {insn}\n");
            }
            if written.summed > 1 {
                text += &format!("            last of {} accumulated products\n", written.summed);
            }
            let (mem, entry, byte) = written.from;
            text += &format!("  {:<9} {}  # byte {byte} of {mem} entry {entry}\n", written.store.0, written.store.1);
        }
    }
    text
}

fn tile_text(written: &Written) -> String {
    let Some([n, c, y, x]) = &written.tile else { return "bytes of a plain tensor".into() };
    let images = if n.len() > 1 || n.start > 0 { format!("images {}..{}, ", n.start, n.end) } else { String::new() };
    format!("{images}channels {}..{}, rows {}..{}, columns {}..{}", c.start, c.end, y.start, y.end, x.start, x.end)
}

fn spot_json(spot: &Spot) -> Json {
    let made = match &spot.made {
        ComputedBy::Function(function) => json!({ "function": function }),
        ComputedBy::Unknown(why) => json!({ "unknown": why }),
        ComputedBy::Stream(written) => {
            let insn = |(index, text): &(usize, String)| json!({ "index": index, "text": text });
            let range = |at: usize| written.tile.as_ref().map(|tile| [tile[at].start, tile[at].end]);
            json!({
                "tile": { "images": range(0), "channels": range(1), "rows": range(2), "columns": range(3) },
                "store_number": written.number[0], "stores": written.number[1],
                "store": insn(&written.store), "makers": written.makers.iter().map(insn).collect::<Vec<_>>(),
                "summed": written.summed,
                "from": { "memory": written.from.0, "entry": written.from.1, "byte": written.from.2 },
            })
        }
    };
    json!({ "step": spot.step, "where": spot.place.to_string(), "made": made })
}
