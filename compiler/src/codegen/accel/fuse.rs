//! Fuses element-wise operators and poolings into the tiles of the product before them, and convolutions around a
//! depthwise one into a chain, so that the results between them are neither stored nor loaded.

use super::layer::Layer;
use super::ops::chain::Chain;
use super::ops::conv::Conv;
use super::ops::conv::epilogue::Epilogue;
use super::ops::pairwise::Other;
use super::ops::{Operator, Planned};
use crate::graph::ValueId;
use tilewright_hw::HwConfig;

/// Maximum number of operators that are fused into one product.
const MOST: usize = 2;

/// By how many percent the estimate of fused layers can be above that of the separate ones without a decision. Estimates
/// are not that exact.
const MARGIN: u64 = 8;

/// A product and the layer that reads its result.
#[derive(Clone, Copy)]
pub struct Neighbors<'a> {
    /// The layer of the product.
    pub first: (&'a Layer, &'a Planned),
    /// The layer to fuse into it.
    pub second: (&'a Layer, &'a Planned),
    /// Whether a value other than the product's result is available before the product begins.
    pub ready: &'a dyn Fn(ValueId) -> bool,
}

/// Two layers as one.
pub struct Fused {
    /// The layer.
    pub layer: Layer,
    /// Its plan.
    pub planned: Planned,
    /// If the separate layers take somewhat fewer cycles by the estimate, the reason not to fuse them. Only timed programs
    /// can decide then.
    pub doubt: Option<String>,
}

/// Why two layers are not fused.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum FuseError {
    /// They are not a product and an operator on its results that can be fused in principle.
    Unfit,
    /// They could be fused, but this prevents it.
    Reason(String),
}

impl From<&str> for FuseError {
    fn from(reason: &str) -> FuseError {
        FuseError::Reason(reason.into())
    }
}

/// Number of operators that are fused into the layer's tiles.
pub fn fused(planned: &Planned) -> usize {
    match planned {
        Planned::Conv(conv, _) => conv.epilogue.len(),
        Planned::Chain(chain, _) => chain.layers() - 1,
        _ => 0,
    }
}

/// Whether a pooling is fused into the layer's tiles.
pub fn has_fused_pooling(planned: &Planned) -> bool {
    matches!(planned, Planned::Conv(conv, _) if conv.pooling().is_some())
}

/// Whether the layer is a chain of convolutions.
pub fn is_chain(planned: &Planned) -> bool {
    matches!(planned, Planned::Chain(..))
}

/// Whether the layer is a depthwise convolution, which continues a chain.
pub fn continues_chain(planned: &Planned) -> bool {
    matches!(planned, Planned::Conv(conv, _) if conv.groups > 1)
}

/// Returns the first layer with the second's operator fused into its tiles. `alone`: nothing else reads the first
/// layer's result.
///
/// # Errors
/// The reason why this is impossible or takes more cycles.
pub fn fuse(pair: Neighbors, alone: bool, config: &HwConfig) -> Result<Fused, FuseError> {
    let Neighbors { first: (first, product), second: (second, operator), ready } = pair;
    if let Planned::Conv(next, _) = operator
        && matches!(product, Planned::Conv(..) | Planned::Chain(..))
    {
        return chained(pair, next, alone, config);
    }
    let Planned::Conv(conv, plan) = product else { return Err(FuseError::Unfit) };
    let pool = matches!(operator, Planned::Pool(..));
    let (value, view) = first.output;
    let place = second.inputs.iter().position(|i| *i == (value, view)).ok_or(FuseError::Unfit)?;
    let once = second.inputs.iter().filter(|i| **i == (value, view)).count() == 1;
    if !once || conv.epilogue.len() >= MOST || (plan.is_shared() && !pool) {
        return Err(FuseError::Unfit);
    }
    if !alone {
        return Err("the product's results are also read elsewhere".into());
    }
    let mut layer = first.clone();
    let other = match operator {
        _ if conv.pooling().is_some() => return Err("the product already has a fused pooling".into()),
        Planned::Pool(..) if !conv.epilogue.is_empty() => {
            return Err("the product already has other fused operators".into());
        }
        Planned::Pool(pool, _) => Epilogue::Pool { pool: Box::new(pool.as_ref().clone()), of: view },
        _ if second.output.1 != view => return Err(FuseError::Unfit),
        Planned::Lookup(lookup, _) => Epilogue::Lookup(lookup.table.clone()),
        Planned::Pairwise(pair, _) if pair.b == Other::Tensor => {
            let other = second.inputs[1 - place];
            if other.1 != view || !ready(other.0) {
                return Err(FuseError::Unfit);
            }
            layer.inputs.push(other);
            let op = if place == 0 { pair.op } else { pair.op.swapped() };
            Epilogue::Pair { op, input: layer.inputs.len() - 1 }
        }
        _ => return Err(FuseError::Unfit),
    };
    let mut conv = conv.as_ref().clone();
    conv.epilogue.push(other);
    join(&mut layer, second);
    let planned = Operator::from(conv).plan(&layer, config, true).map_err(FuseError::Reason)?;
    let apart = if pool {
        operator.cycles(second, config)
    } else {
        // By itself, the operator would move its operands and its result over the bus.
        let moved = second.inputs.len() as u64 + 1;
        moved * view.layout(config).bytes() as u64 / u64::from(config.bus_bytes())
    };
    weighed(layer, planned, product.cycles(first, config) + apart, config)
}

/// Compares the estimates of fused layers and of separate ones, which take `apart` cycles.
///
/// # Errors
/// The fused layers take many more cycles.
fn weighed(layer: Layer, planned: Planned, apart: u64, config: &HwConfig) -> Result<Fused, FuseError> {
    let together = planned.cycles(&layer, config);
    let doubt =
        (together > apart).then(|| format!("separately both take {apart} cycles by the estimate, together {together}"));
    match doubt {
        Some(reason) if together > apart + apart / 100 * MARGIN => Err(FuseError::Reason(reason)),
        doubt => Ok(Fused { layer, planned, doubt }),
    }
}

/// Makes a layer end with the next one.
fn join(layer: &mut Layer, next: &Layer) {
    layer.nodes.extend(&next.nodes);
    layer.name.clone_from(&next.name);
    layer.output = next.output;
}

/// Returns a product and the depthwise convolution of its results as a chain, or a chain with a last product.
///
/// # Errors
/// The reason why this is impossible or takes more cycles.
fn chained(pair: Neighbors, next: &Conv, alone: bool, config: &HwConfig) -> Result<Fused, FuseError> {
    let Neighbors { first: (first, product), second: (second, operator), .. } = pair;
    if second.inputs.as_slice() != [first.output] || !alone {
        return Err(FuseError::Unfit);
    }
    let chain = match product {
        Planned::Conv(conv, _) if next.groups > 1 => {
            Chain::new(conv, next, [first.input_view(), first.output.1, second.output.1], config)
        }
        Planned::Chain(chain, _) => chain.with(next, config),
        _ => return Err(FuseError::Unfit),
    };
    let mut layer = first.clone();
    join(&mut layer, second);
    let planned =
        Operator::from(chain.map_err(FuseError::Reason)?).plan(&layer, config, true).map_err(FuseError::Reason)?;
    weighed(layer, planned, product.cycles(first, config) + operator.cycles(second, config), config)
}
