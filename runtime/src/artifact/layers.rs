//! Which layer of a program each instruction belongs to.

use serde::{Deserialize, Serialize};

/// A layer of a program.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerEnd {
    /// The name of its last node.
    pub name: String,
    /// Number of instructions of this layer and of all earlier ones.
    pub end: usize,
}

/// Consecutive instructions of a stream that belong to one layer.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize)]
pub struct LayerRun {
    /// Index of the layer.
    pub layer: u32,
    /// Number of instructions.
    pub insns: u32,
}

/// The layer of each instruction of a stream.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct InsnLayers {
    layers: usize,
    of: Vec<usize>,
}

impl InsnLayers {
    /// The layers of a stream: as the runs say or, without runs, one layer after the other.
    pub fn new(layers: &[LayerEnd], runs: &[LayerRun]) -> InsnLayers {
        let of = if runs.is_empty() {
            let begins = std::iter::once(0).chain(layers.iter().map(|layer| layer.end));
            let sizes = layers.iter().zip(begins).map(|(layer, begin)| layer.end.saturating_sub(begin));
            sizes.enumerate().flat_map(|(layer, insns)| std::iter::repeat_n(layer, insns)).collect()
        } else {
            runs.iter().flat_map(|run| std::iter::repeat_n(run.layer as usize, run.insns as usize)).collect()
        };
        InsnLayers { layers: layers.len(), of }
    }

    /// The layers of a stream that has the instructions of a program in another order. `places` are the instructions'
    /// places in the program.
    pub fn ordered(layers: &[LayerEnd], places: &[u32]) -> InsnLayers {
        let program = InsnLayers::new(layers, &[]);
        let of = places.iter().map(|&place| program.of(place as usize).unwrap_or(layers.len())).collect();
        InsnLayers { of, ..program }
    }

    /// Number of layers; those without instructions count too.
    pub fn layers(&self) -> usize {
        self.layers
    }

    /// Index of an instruction's layer; `None` if it belongs to no layer.
    pub fn of(&self, place: usize) -> Option<usize> {
        self.of.get(place).copied().filter(|&layer| layer < self.layers)
    }

    /// The runs from which [`InsnLayers::new`] gives the same; none if the layers come one after the other.
    pub fn runs(&self) -> Vec<LayerRun> {
        if self.of.is_sorted() {
            return Vec::new();
        }
        let equal = self.of.chunk_by(|a, b| a == b);
        equal.map(|run| LayerRun { layer: run[0] as u32, insns: run.len() as u32 }).collect()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instructions_of_two_layers_can_alternate() {
        let layers = [("a", 2), ("none", 2), ("b", 5)].map(|(name, end)| LayerEnd { name: name.into(), end });
        let plain = InsnLayers::new(&layers, &[]);
        assert_eq!(
            (0..6).map(|place| plain.of(place)).collect::<Vec<_>>(),
            [0, 0, 2, 2, 2, 9].map(|l| (l < 3).then_some(l))
        );
        assert!(plain.runs().is_empty());
        let mixed = InsnLayers::ordered(&layers, &[0, 2, 1, 3, 4]);
        let runs = [(0, 1), (2, 1), (0, 1), (2, 2)].map(|(layer, insns)| LayerRun { layer, insns });
        assert_eq!(mixed.runs(), runs);
        assert_eq!(InsnLayers::new(&layers, &runs), mixed);
        assert_eq!(InsnLayers::ordered(&layers, &[0, 1, 2, 3, 4]), plain);
    }
}
