//! Minimum cut of a flow network between two sides.

/// Capacity of an edge that must not be cut.
pub(super) const NEVER: u64 = u64::MAX / 4;

/// A flow network. Its first two nodes are the source and the sink.
pub(super) struct Network {
    /// For each node its edges: far end, residual capacity, and index of the opposite edge in the far end's list.
    edges: Vec<Vec<(usize, u64, usize)>>,
}

/// The node on the near side.
pub(super) const SOURCE: usize = 0;
/// The node on the far side.
pub(super) const SINK: usize = 1;

impl Network {
    /// A network with only source and sink.
    pub fn new() -> Network {
        Network { edges: vec![Vec::new(), Vec::new()] }
    }

    /// Adds a node and returns its index.
    pub fn node(&mut self) -> usize {
        self.edges.push(Vec::new());
        self.edges.len() - 1
    }

    /// Adds the cost of a cut with `from` on the near side and `to` on the far side.
    pub fn edge(&mut self, from: usize, to: usize, cost: u64) {
        if from == to || cost == 0 {
            return;
        }
        let (at, back) = (self.edges[from].len(), self.edges[to].len());
        self.edges[from].push((to, cost.min(NEVER), back));
        self.edges[to].push((from, 0, at));
    }

    /// Returns for each node whether the minimum cut leaves it on the near side. If several cuts have the same cost,
    /// the one with the most nodes on the near side is used.
    pub fn near(mut self) -> Vec<bool> {
        loop {
            let levels = self.levels();
            if levels[SINK].is_none() {
                break;
            }
            let mut next = vec![0; self.edges.len()];
            while self.push(&levels, &mut next) {}
        }
        // Nodes that can no longer reach the sink are on the near side.
        let mut far = vec![false; self.edges.len()];
        let mut open = vec![SINK];
        far[SINK] = true;
        while let Some(at) = open.pop() {
            for &(from, _, back) in &self.edges[at] {
                if !far[from] && self.edges[from][back].1 > 0 {
                    far[from] = true;
                    open.push(from);
                }
            }
        }
        far.into_iter().map(|far| !far).collect()
    }

    /// Returns distances from the source along edges with residual capacity.
    fn levels(&self) -> Vec<Option<usize>> {
        let mut levels = vec![None; self.edges.len()];
        levels[SOURCE] = Some(0);
        let mut open = std::collections::VecDeque::from([(SOURCE, 0)]);
        while let Some((at, level)) = open.pop_front() {
            for &(to, left, _) in &self.edges[at] {
                if left > 0 && levels[to].is_none() {
                    levels[to] = Some(level + 1);
                    open.push_back((to, level + 1));
                }
            }
        }
        levels
    }

    /// Sends as much flow as possible along one more shortest path; false if there is no such path.
    fn push(&mut self, levels: &[Option<usize>], next: &mut [usize]) -> bool {
        let mut path: Vec<(usize, usize)> = Vec::new();
        let mut at = SOURCE;
        while at != SINK {
            let ahead = |to: usize| levels[to].is_some() && levels[to] == levels[at].map(|l| l + 1);
            let found =
                (next[at]..self.edges[at].len()).find(|&e| self.edges[at][e].1 > 0 && ahead(self.edges[at][e].0));
            match found {
                Some(e) => {
                    next[at] = e;
                    path.push((at, e));
                    at = self.edges[at][e].0;
                }
                None => {
                    next[at] = self.edges[at].len();
                    let Some((before, _)) = path.pop() else { return false };
                    next[before] += 1;
                    at = before;
                }
            }
        }
        let most = path.iter().map(|&(at, e)| self.edges[at][e].1).min().unwrap_or(0);
        for (at, e) in path {
            let (to, _, back) = self.edges[at][e];
            self.edges[at][e].1 -= most;
            self.edges[to][back].1 += most;
        }
        true
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Compares with every cut of small networks.
    #[test]
    fn no_cut_is_cheaper() {
        let mut state = 1u64;
        let mut below = |n: u64| {
            state = state.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
            (state >> 33) % n
        };
        for round in 0..300 {
            let nodes = 2 + below(7) as usize;
            let mut network = Network::new();
            (2..nodes).for_each(|_| assert!(network.node() > SINK));
            let edges: Vec<(usize, usize, u64)> = (0..below(20))
                .map(|_| (below(nodes as u64) as usize, below(nodes as u64) as usize, below(30)))
                .filter(|(a, b, _)| a != b)
                .collect();
            edges.iter().for_each(|&(a, b, cost)| network.edge(a, b, cost));
            let cost = |near: &dyn Fn(usize) -> bool| -> u64 {
                edges.iter().filter(|(a, b, _)| near(*a) && !near(*b)).map(|e| e.2).sum()
            };
            let sides = |mask: u32| move |n: usize| mask >> n & 1 == 1;
            let all = (0..1u32 << nodes).filter(|m| m & 3 == 1);
            let least = all.clone().map(|m| cost(&sides(m))).min().unwrap();
            let near = network.near();
            assert_eq!(cost(&|n| near[n]), least, "round {round}: {edges:?}");
            let most = all.filter(|m| cost(&sides(*m)) == least).map(u32::count_ones).max().unwrap();
            assert_eq!(near.iter().filter(|n| **n).count() as u32, most, "round {round}: {edges:?}");
        }
    }
}
