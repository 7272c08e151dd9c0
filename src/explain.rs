//! Where each operator runs and why, and what it takes there and elsewhere, as a table.

use tilewright_runtime::artifact::{Manifest, NodeInfo};

/// The nodes of a model, one a line. Figures of a layer stand in the line of its first node.
pub fn table(manifest: &Manifest) -> String {
    let total = manifest.macs().max(1) as f64;
    let width =
        |f: fn(&NodeInfo) -> usize, least: usize| manifest.nodes.iter().map(f).max().unwrap_or(0).clamp(least, 48);
    let (names, ops) = (width(|n| n.name.chars().count(), 4), width(|n| n.op.len(), 8));
    let measured = manifest.nodes.iter().filter_map(|n| n.cost.as_ref()).any(|c| c.cpu_measured);
    let cpu = if measured { "CPU measured" } else { "CPU modelled" };
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
    let source = if measured { "is this machine's" } else { "is that of a model of the configuration's host" };
    text + &format!(
        "accelerator: by the cycle model for layers that run there, else estimated; the CPU's time {source}; to move: what \
         layouts, transfers and launches would take more if these nodes alone ran in the other place\n"
    )
}

/// Time on the accelerator, on the CPU, and what changes with a move.
fn figures(node: &NodeInfo) -> [String; 3] {
    let Some(cost) = &node.cost else { return Default::default() };
    if cost.layer != node.name {
        return ["\"".into(), "\"".into(), "\"".into()];
    }
    let us = |ns: Option<f64>| ns.map_or("-".to_string(), |ns| format!("{:.1} us", ns / 1e3));
    [us(cost.accel_ns.map(|n| n as f64)), us(cost.cpu_ns.map(|n| n as f64)), us(cost.moving_ns.map(|n| n as f64))]
}
