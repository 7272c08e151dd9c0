//! The table of `--explain`: where each operator runs and why, and its cost there and elsewhere.

use tilewright_runtime::artifact::{Manifest, NodeCost, NodeInfo};

/// The table with one line per node. The line of a layer's first node has the layer's figures.
pub fn table(manifest: &Manifest) -> String {
    let total = manifest.macs().max(1) as f64;
    let width =
        |f: fn(&NodeInfo) -> usize, least: usize| manifest.nodes.iter().map(f).max().unwrap_or(0).clamp(least, 48);
    let (names, ops) = (width(|n| n.name.chars().count(), 4), width(|n| n.op.len(), 8));
    let cpu = cpu_title(manifest);
    let mut text = format!(
        "{:<names$}  {:<ops$}  {:<5}  {:>12}  {:>6}  {:>13}  {cpu:>13}  {:>13}  why\n",
        "node", "operator", "where", "MACs", "share", "accelerator", "to move"
    );
    for node in &manifest.nodes {
        let share = 100.0 * node.macs as f64 / total;
        let [accel, cpu, moving] = figures(node);
        text.push_str(&format!(
            "{:<names$}  {:<ops$}  {:<5}  {:>12}  {:>5.1}%  {accel:>13}  {cpu:>13}  {moving:>13}  {}\n",
            node.name,
            node.op,
            node.place.to_string(),
            node.macs,
            share,
            node.why
        ));
    }
    text + &note(manifest) + "\n"
}

fn cpu_measured(manifest: &Manifest) -> bool {
    manifest.nodes.iter().filter_map(|n| n.cost.as_ref()).any(|c| c.cpu_measured)
}

/// The heading of the column with CPU times.
pub fn cpu_title(manifest: &Manifest) -> &'static str {
    if cpu_measured(manifest) { "CPU measured" } else { "CPU modeled" }
}

/// Explains where the times come from.
pub fn note(manifest: &Manifest) -> String {
    let source = match cpu_measured(manifest) {
        true => "is measured on this machine",
        false => "comes from a model of the configuration's host",
    };
    format!(
        "accelerator: by the cycle model for layers that run there, else estimated; the CPU's time {source}; to move: \
         how much more layout changes, transfers and launches would take if only these nodes ran in the other place"
    )
}

/// The cost of a layer, only for its first node.
pub fn cost_of_layer(node: &NodeInfo) -> Option<&NodeCost> {
    node.cost.as_ref().filter(|cost| cost.layer == node.name)
}

/// Time on the accelerator, time on the CPU, and the extra cost of a move.
fn figures(node: &NodeInfo) -> [String; 3] {
    if node.cost.is_none() {
        return Default::default();
    }
    let Some(cost) = cost_of_layer(node) else { return ["\"".into(), "\"".into(), "\"".into()] };
    let us = |ns: Option<f64>| ns.map_or("-".to_string(), |ns| format!("{:.1} us", ns / 1e3));
    [us(cost.accel_ns.map(|n| n as f64)), us(cost.cpu_ns.map(|n| n as f64)), us(cost.moving_ns.map(|n| n as f64))]
}
