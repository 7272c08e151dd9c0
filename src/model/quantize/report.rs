//! The report of a quantization, as text and as JSON.

use serde_json::json;

use super::{QuantizeOptions, Quantized};

/// What a quantization did.
pub struct Report<'a> {
    /// What it was asked for.
    pub options: &'a QuantizeOptions,
    /// Number of samples.
    pub samples: usize,
    /// The quantized network.
    pub quantized: &'a Quantized,
    /// Accuracy of the float and of the quantized network, as fractions, if there is labeled data.
    pub accuracies: Option<(f64, f64)>,
}

impl Report<'_> {
    /// The report as one JSON object; `output` is the file of the quantized model.
    pub fn json(&self, model: &str, output: &str) -> serde_json::Value {
        let finite = |x: f64| x.is_finite().then_some(x);
        let layers: Vec<_> = self
            .quantized
            .layers
            .iter()
            .map(|l| {
                json!({ "name": l.name, "op": l.op, "scale": l.params.scale, "zero_point": l.params.zero_point,
                        "method": l.method.name(), "sqnr_db": finite(l.sqnr_db) })
            })
            .collect();
        let weak: Vec<_> = self
            .quantized
            .weak
            .iter()
            .map(|w| {
                json!({ "name": w.name, "sqnr_db": finite(w.sqnr_db), "outputs_db": w.outputs_db.and_then(|db| finite(db.0)),
                        "outputs_db_in_floats": w.outputs_db.and_then(|db| finite(db.1)) })
            })
            .collect();
        let stay: Vec<_> =
            self.quantized.float_nodes.iter().map(|(name, op)| json!({ "name": name, "op": op })).collect();
        json!({
            "model": model,
            "output": output,
            "method": self.options.method.name(),
            "per_channel": self.options.per_channel,
            "weight_bits": self.options.weight_bits.number(),
            "bias_correction": self.options.bias_correction,
            "equalized": self.quantized.equalized.map(|e| {
                json!({ "pairs": e.pairs, "before_db": finite(e.before_db), "after_db": finite(e.after_db), "kept": e.kept() })
            }),
            "samples": self.samples,
            "layers": layers,
            "output_sqnr_db": self.quantized.output_db.iter().map(|x| finite(*x)).collect::<Vec<_>>(),
            "weak": weak,
            "float_nodes": stay,
            "accuracy_float": self.accuracies.map(|a| a.0),
            "accuracy_quantized": self.accuracies.map(|a| a.1),
        })
    }

    /// The report as text.
    pub fn text(&self) -> String {
        let (quantized, accuracies) = (self.quantized, self.accuracies);
        // Names are not shortened, because --keep-float needs the whole name.
        let wide = quantized.layers.iter().map(|l| l.name.chars().count()).max().unwrap_or_default().max(48);
        let mut text = format!(
            "{:<wide$}  {:<16} {:>11} {:>5}  {:<10} {:>7}\n",
            "layer", "operator", "scale", "zero", "method", "SQNR dB"
        );
        // No noise: "exact". No signal: "lost".
        let decibels = |x: f64| match x {
            x if x.is_finite() => format!("{x:.1}"),
            f64::NEG_INFINITY => "lost".to_string(),
            _ => "exact".to_string(),
        };
        for l in &quantized.layers {
            let (scale, zero) = (l.params.scale, l.params.zero_point);
            text += &format!(
                "{:<wide$}  {:<16} {scale:>11.4e} {zero:>5}  {:<10} {:>7}\n",
                l.name,
                l.op,
                l.method.name(),
                decibels(l.sqnr_db)
            );
        }
        for db in &quantized.output_db {
            text += &format!("output        SQNR {} dB\n", decibels(*db));
        }
        if let Some(e) = &quantized.equalized {
            let (before, after) = (decibels(e.before_db), decibels(e.after_db));
            let kept = if e.kept() { "kept" } else { "not kept" };
            text += &format!(
                "equalization  {} pairs of layers, output SQNR {before} dB without, {after} dB with: {kept}\n",
                e.pairs
            );
        }
        for w in &quantized.weak {
            let brings = w.outputs_db.map(|(before, after)| {
                let (before, after) = (decibels(before), decibels(after));
                format!("; with --keep-float {} the outputs have {after} dB instead of {before} dB", w.name)
            });
            text +=
                &format!("weak          {}: SQNR {} dB{}\n", w.name, decibels(w.sqnr_db), brings.unwrap_or_default());
        }
        if !quantized.float_nodes.is_empty() {
            let names: Vec<String> =
                quantized.float_nodes.iter().take(8).map(|(name, op)| format!("{name} ({op})")).collect();
            let more = quantized.float_nodes.len().saturating_sub(8);
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            text += &format!("stays float   {}{more}\n", names.join(", "));
        }
        if let Some((float, int8)) = accuracies {
            let (a, b) = (100.0 * float, 100.0 * int8);
            text += &format!("accuracy      float {a:.2} %, quantized {b:.2} %, loss {:.2} points\n", a - b);
        }
        text
    }
}
