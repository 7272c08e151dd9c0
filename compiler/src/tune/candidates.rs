//! Plans of a layer one by one, to measure how fast they are drawn, estimated and timed.

use super::draw::random;
use super::tasks::programs;
use crate::codegen::accel::Planned;
use crate::codegen::accel::space::Space;
use crate::cost::Clock;
use crate::graph::Graph;
use crate::partition::Partition;
use crate::partition::window::{Surroundings, Window};
use rand::SeedableRng;
use rand::rngs::StdRng;
use tilewright_hw::HwConfig;

/// The plans of a layer of a partition.
pub struct Candidates<'a> {
    window: Window,
    around: Surroundings<'a>,
    space: Space,
    rng: StdRng,
}

impl<'a> Candidates<'a> {
    /// The plans of the layer with this index, counted over all programs; `None` if there is no such layer.
    pub fn new(
        graph: &'a Graph,
        config: &'a HwConfig,
        partition: &'a Partition,
        layer: usize,
        seed: u64,
    ) -> Option<Candidates<'a>> {
        let mut left = layer;
        for program in programs(graph, config, partition) {
            let count = program.layers.len();
            if left < count {
                let window = Window::around(left, count, |i| program.layers[i].clone());
                let (own, planned) = window.own();
                let space = planned.space(own, config);
                return Some(Candidates { window, around: program.around, space, rng: StdRng::seed_from_u64(seed) });
            }
            left -= count;
        }
        None
    }

    /// Name of the layer.
    pub fn name(&self) -> &str {
        &self.window.own().0.name
    }

    /// Draws decisions, and returns their plan with its estimated cycles; `None` if they do not fit.
    pub fn draw(&mut self) -> Option<Planned> {
        let decisions = random(&self.space, &mut self.rng)?;
        let (layer, planned) = self.window.own();
        let plan = planned.with(&decisions, layer, self.around.config).ok()?;
        (plan.cycles(layer, self.around.config) > 0).then_some(plan)
    }

    /// Returns the estimated cycles of a plan, or without one of the plan that the layer has.
    pub fn estimate(&self, plan: Option<&Planned>) -> u64 {
        let (layer, planned) = self.window.own();
        plan.unwrap_or(planned).cycles(layer, self.around.config)
    }

    /// Returns the exact cycles of the layer with a plan, without its neighbors and in the program's own order; `None`
    /// if the program cannot be built or run.
    pub fn cycles_alone(&self, plan: &Planned, clock: &dyn Clock) -> Option<u64> {
        self.window.alone(plan.clone()).cycles_in_order(&self.around, clock)
    }

    /// Returns the exact cycles of the layer with a plan together with its neighbors; `None` if the program cannot be
    /// built or run.
    pub fn cycles(&self, plan: &Planned, clock: &dyn Clock) -> Option<u64> {
        self.window.with(plan.clone()).least_cycles(&self.around, clock)
    }
}
