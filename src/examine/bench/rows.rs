//! Aligns the layers of all devices in rows.

use std::collections::HashMap;

use super::{Bench, Figures, LayerTime};

/// A layer in the comparison.
#[derive(Debug, Clone, PartialEq)]
pub struct LayerRow {
    /// Name of its first node, or of its step if compilation added it.
    pub name: String,
    /// Its operators.
    pub ops: String,
    /// Multiply-accumulates of the network.
    pub macs: u64,
    /// Modeled milliseconds on the first configuration's target host.
    pub host_ms: Option<f64>,
    /// Each device's figures of the layer. None if it has none, or if it divides the model differently and has them in
    /// the row of its layer's first node.
    pub cells: Vec<Option<LayerTime>>,
}

/// The rows: the layers of the first accelerator, or else of the first device. If another device divides the model
/// differently, its layers that begin in one row are added up there. Steps that compilation added only for other
/// devices get rows at the end.
pub fn rows(bench: &Bench) -> Vec<LayerRow> {
    let there = || bench.columns.iter().filter_map(|column| Some((column, column.figures.as_ref().ok()?)));
    let first = there().find(|(column, _)| column.hw.is_some()).or(there().next());
    let Some((_, first)) = first else { return Vec::new() };
    let mut layers: Vec<&LayerTime> = first.layers.iter().collect();
    for layer in there().flat_map(|(_, figures)| &figures.layers).filter(|layer| layer.nodes.is_empty()) {
        if !layers.iter().any(|known| known.nodes.is_empty() && known.name == layer.name) {
            layers.push(layer);
        }
    }
    let mut row_of: HashMap<&str, usize> = HashMap::new();
    let mut row_of_added: HashMap<&str, usize> = HashMap::new();
    for (row, layer) in layers.iter().enumerate() {
        layer.nodes.iter().for_each(|node| {
            row_of.entry(node).or_insert(row);
        });
        if layer.nodes.is_empty() {
            row_of_added.entry(&layer.name).or_insert(row);
        }
    }
    let row_of = |layer: &LayerTime| match layer.nodes.first() {
        Some(node) => row_of.get(node.as_str()).copied(),
        None => row_of_added.get(layer.name.as_str()).copied(),
    };
    let cells: Vec<Vec<Option<LayerTime>>> = bench
        .columns
        .iter()
        .map(|column| match &column.figures {
            Ok(figures) => cells(figures, row_of, layers.len()),
            Err(_) => vec![None; layers.len()],
        })
        .collect();
    let row = |(at, layer): (usize, &&LayerTime)| LayerRow {
        name: layer.name.clone(),
        ops: layer.ops.clone(),
        macs: layer.macs,
        host_ms: layer.host_ms,
        cells: cells.iter().map(|column| column[at].clone()).collect(),
    };
    layers.iter().enumerate().map(row).collect()
}

fn cells(figures: &Figures, row_of: impl Fn(&LayerTime) -> Option<usize>, rows: usize) -> Vec<Option<LayerTime>> {
    let mut cells: Vec<Option<LayerTime>> = vec![None; rows];
    for layer in &figures.layers {
        let Some(row) = row_of(layer) else { continue };
        cells[row] = Some(match cells[row].take() {
            Some(before) => joined(before, layer),
            None => layer.clone(),
        });
    }
    cells
}

/// The sum of two layers in one row.
fn joined(before: LayerTime, layer: &LayerTime) -> LayerTime {
    let latency_ms = before.latency_ms.zip(layer.latency_ms).map(|(a, b)| super::Spread {
        min: a.min + b.min,
        median: a.median + b.median,
        max: a.max + b.max,
    });
    LayerTime {
        latency_ms,
        cycles: before.cycles.zip(layer.cycles).map(|(a, b)| a + b),
        bytes: before.bytes.zip(layer.bytes).map(|(a, b)| (a.0 + b.0, a.1 + b.1)),
        utilization: None,
        macs: before.macs + layer.macs,
        ..before
    }
}
