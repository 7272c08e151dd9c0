//! Where each operator runs and why, as a table.

use tilewright_runtime::artifact::Manifest;

/// The nodes of a model, one a line.
pub fn table(manifest: &Manifest) -> String {
    let total = manifest.macs().max(1) as f64;
    let width = |f: fn(&tilewright_runtime::artifact::NodeInfo) -> usize, least: usize| {
        manifest.nodes.iter().map(f).max().unwrap_or(0).clamp(least, 48)
    };
    let (names, ops) = (width(|n| n.name.chars().count(), 4), width(|n| n.op.len(), 8));
    let mut text =
        format!("{:<names$}  {:<ops$}  {:<5}  {:>12}  {:>6}  why\n", "node", "operator", "where", "MACs", "share");
    for node in &manifest.nodes {
        let share = 100.0 * node.macs as f64 / total;
        text.push_str(&format!(
            "{:<names$}  {:<ops$}  {:<5}  {:>12}  {:>5.1}%  {}\n",
            node.name,
            node.op,
            node.place.to_string(),
            node.macs,
            share,
            node.why
        ));
    }
    text
}
