//! Splits loop nests of any depth into pieces that an instruction can run: a few micro-ops under two or three loops.

use tilewright_hw::HwConfig;
use tilewright_hw::isa::WidthName;

/// One loop: its number of iterations, and what an iteration adds to the three indices.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Dim {
    /// Iterations.
    pub count: u32,
    /// Added to the indices at each iteration: acc, inp, wgt or dst, a, b.
    pub steps: [u32; 3],
}

impl Dim {
    /// A loop of `count` iterations.
    pub fn new(count: u32, steps: [u32; 3]) -> Dim {
        Dim { count, steps }
    }
}

/// Micro-ops under loops, outermost first. The order of the iterations must not matter.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Nest {
    /// Indices at the start.
    pub at: [u32; 3],
    /// Micro-ops of the innermost body; at least one.
    pub body: Vec<[u32; 3]>,
    /// Loops around it.
    pub dims: Vec<Dim>,
}

/// A part of a nest that fits one instruction.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Piece {
    /// Indices at the start.
    pub at: [u32; 3],
    /// Micro-ops.
    pub body: Vec<[u32; 3]>,
    /// Loops, outermost first; unused ones run once.
    pub loops: [Dim; 3],
}

/// Most micro-ops that a loop is unrolled to, so that one instruction is not split into several.
const UNROLL: usize = 64;

impl Nest {
    /// Splits the nest into pieces for a configuration, with at most `uop_depth` micro-ops per kernel.
    pub fn pieces(&self, config: &HwConfig, uop_depth: u32) -> Vec<Piece> {
        let longest = (1u32 << config.width(WidthName::Loop)) - 1;
        let mut pieces = Vec::new();
        self.cut(config.loops as usize, longest, uop_depth as usize, &mut pieces);
        pieces
    }

    fn cut(&self, loops: usize, longest: u32, uop_depth: usize, pieces: &mut Vec<Piece>) {
        if self.body.is_empty() || self.dims.iter().any(|d| d.count == 0) {
            return;
        }
        if self.body.len() > uop_depth {
            for part in self.body.chunks(uop_depth) {
                Nest { body: part.to_vec(), ..self.clone() }.cut(loops, longest, uop_depth, pieces);
            }
            return;
        }
        let mut dims = join(&self.dims, longest);
        if let Some(i) = dims.iter().position(|d| d.count > longest) {
            // Two halves; the second starts where the first ends.
            let half = dims[i].count / 2;
            let mut second = Nest { dims: dims.clone(), ..self.clone() };
            for (at, step) in second.at.iter_mut().zip(dims[i].steps) {
                *at += half * step;
            }
            second.dims[i].count -= half;
            dims[i].count = half;
            Nest { dims, ..self.clone() }.cut(loops, longest, uop_depth, pieces);
            second.cut(loops, longest, uop_depth, pieces);
            return;
        }
        if dims.len() <= loops {
            let mut filled = [Dim::new(1, [0; 3]); 3];
            filled[..dims.len()].copy_from_slice(&dims);
            pieces.push(Piece { at: self.at, body: self.body.clone(), loops: filled });
            return;
        }
        let smallest = (0..dims.len()).min_by_key(|&i| dims[i].count).unwrap_or(0);
        let dim = dims.remove(smallest);
        let turned = |k: u32, x: [u32; 3]| std::array::from_fn(|o| x[o] + k * dim.steps[o]);
        if self.body.len() * dim.count as usize <= UNROLL.min(uop_depth) {
            let body = (0..dim.count).flat_map(|k| self.body.iter().map(move |&u| turned(k, u))).collect();
            Nest { at: self.at, body, dims }.cut(loops, longest, uop_depth, pieces);
        } else {
            for k in 0..dim.count {
                Nest { at: turned(k, self.at), body: self.body.clone(), dims: dims.clone() }
                    .cut(loops, longest, uop_depth, pieces);
            }
        }
    }
}

/// Drops loops of one iteration, and merges adjacent loops that step evenly.
fn join(dims: &[Dim], longest: u32) -> Vec<Dim> {
    let mut joined: Vec<Dim> = Vec::new();
    for &dim in dims.iter().filter(|d| d.count > 1) {
        match joined.last_mut() {
            Some(outer)
                if (0..3).all(|o| outer.steps[o] == dim.steps[o] * dim.count) && outer.count * dim.count <= longest =>
            {
                *outer = Dim::new(outer.count * dim.count, dim.steps);
            }
            _ => joined.push(dim),
        }
    }
    joined
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All index triples of a nest, sorted.
    fn walk(at: [u32; 3], body: &[[u32; 3]], dims: &[Dim]) -> Vec<[u32; 3]> {
        let mut all: Vec<[u32; 3]> = body.iter().map(|u| std::array::from_fn(|o| u[o] + at[o])).collect();
        for d in dims {
            all = (0..d.count)
                .flat_map(|k| all.iter().map(move |x| std::array::from_fn(|o| x[o] + k * d.steps[o])))
                .collect();
        }
        all.sort_unstable();
        all
    }

    #[test]
    fn pieces_cover_the_nest_once() {
        for loops in [2, 3] {
            let config = HwConfig { loops, ..HwConfig::default() };
            let nests = [
                Nest {
                    at: [1, 2, 3],
                    body: vec![[0, 0, 0], [0, 1, 1]],
                    dims: vec![
                        Dim::new(3, [64, 0, 9]),
                        Dim::new(8, [8, 20, 0]),
                        Dim::new(8, [1, 2, 0]),
                        Dim::new(3, [0, 20, 3]),
                        Dim::new(3, [0, 1, 1]),
                    ],
                },
                Nest { at: [0; 3], body: vec![[0; 3]], dims: vec![Dim::new(5000, [1, 1, 0])] },
                Nest { at: [0; 3], body: vec![[0; 3]], dims: vec![Dim::new(10, [40, 40, 0]), Dim::new(40, [1, 1, 0])] },
            ];
            for nest in nests {
                let pieces = nest.pieces(&config, 100);
                let mut covered: Vec<[u32; 3]> = pieces.iter().flat_map(|p| walk(p.at, &p.body, &p.loops)).collect();
                covered.sort_unstable();
                assert_eq!(covered, walk(nest.at, &nest.body, &nest.dims));
                assert!(pieces.iter().all(|p| loops == 3 || p.loops[2].count == 1));
            }
        }
    }
}
