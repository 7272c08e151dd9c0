//! A layer of a real network as a program of the check.

use std::path::Path;

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_compiler::graph::Graph;
use tilewright_compiler::partition::{self, AccelRegion, Code, Region};
use tilewright_compiler::passes::{self, OptLevel, PassError, optimize};
use tilewright_driver::{DeviceMemory, DriverError, Loaded};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;
use tilewright_sim::Fsim;
use tilewright_sim::random::MEMORY_BYTES;

use super::job::Job;
use crate::model::zoo::{self, ZooError};
use crate::model::{self, ModelError, Sizes};

/// The network; it is small enough that a layer's data crosses a serial line in a million cycles or two.
pub(super) const NETWORK: &str = "lenet-int8";
/// Operators that the layer must have: one of these products, and a requantization.
const PRODUCTS: [&str; 2] = ["conv2d", "dense"];
const REQUANTIZE: &str = "requantize";

/// Why the layer could not be compiled.
#[derive(Debug, thiserror::Error)]
pub enum LayerError {
    /// The network cannot be written into the cache.
    #[error(transparent)]
    Zoo(#[from] ZooError),
    /// It cannot be imported.
    #[error(transparent)]
    Model(#[from] ModelError),
    /// It cannot be converted to integer form.
    #[error(transparent)]
    Pass(#[from] PassError),
    /// The compiled layer cannot be loaded.
    #[error(transparent)]
    Driver(#[from] DriverError),
    /// The compiled layer cannot be decoded.
    #[error("instruction {0} of the layer does not decode; this is a bug in the compiler")]
    Decode(usize),
}

/// Picks the network's layer for a configuration: of the convolutions with requantization the one that moves the fewest
/// bytes, or else of the other products. Its data is random. None if the configuration supports no such layer.
pub(super) fn job(config: &HwConfig, cache: &Path, seed: u64) -> Result<Option<Job>, LayerError> {
    let graph = model::import(&zoo::find(NETWORK)?.extract(cache)?, Sizes::default())?;
    let (graph, _) = optimize(graph, OptLevel::O0, passes::Options::default())?;
    let partition = partition::partition(&graph, config, partition::Options::of_level(OptLevel::O0));
    let mut best: Option<((usize, u64), &Region, &AccelRegion)> = None;
    for region in &partition.regions {
        let Code::Accel(accel) = &region.code else { continue };
        let Some(product) = PRODUCTS.iter().position(|op| has(&graph, region, op)) else { continue };
        let summary = accel.program.summary(config).map_err(|(index, _)| LayerError::Decode(index))?;
        let cost = (product, summary.load_bytes + summary.store_bytes + accel.program.stream.len() as u64);
        if has(&graph, region, REQUANTIZE) && best.is_none_or(|(least, ..)| cost < least) {
            best = Some((cost, region, accel));
        }
    }
    let Some((_, region, accel)) = best else { return Ok(None) };
    let ops: Vec<&str> = region.nodes.iter().map(|node| graph.node(*node).op.name()).collect();
    let last = region.nodes.last().map_or("", |node| &graph.node(*node).name);
    let name = format!("{NETWORK}'s {last} ({})", ops.join(", "));

    let mut device = Fsim::new(config.clone(), MEMORY_BYTES);
    let mut rng = SmallRng::seed_from_u64(seed);
    let mut memory = DeviceMemory::new(MEMORY_BYTES, config);
    let loaded = Loaded::new(&mut device, &mut memory, &accel.program)?;
    let command = loaded.command().clone();
    for input in &accel.program.inputs {
        let base = command.bases[input.region.0 as usize].addr;
        let bytes: Vec<u8> = (0..input.bytes).map(|_| rng.random()).collect();
        device.write(base + input.offset, &bytes).map_err(DriverError::from)?;
    }
    Ok(Some(Job { name, text: String::new(), writes: vec![(0, device.memory().to_vec())], command, is_program: false }))
}

fn has(graph: &Graph, region: &Region, op: &str) -> bool {
    region.nodes.iter().any(|node| graph.node(*node).op.name() == op)
}
