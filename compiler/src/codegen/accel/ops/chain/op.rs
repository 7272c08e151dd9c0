//! What a chain computes.

use crate::codegen::accel::kept::OnChip;
use crate::codegen::accel::ops::conv::Conv;
use crate::codegen::accel::ops::conv::depthwise::is_shared;
use crate::codegen::accel::ops::conv::rest::array_subtracts;
use crate::codegen::accel::view::View;
use tilewright_hw::config::{HwConfig, Mem};

/// A product, a depthwise convolution of its results, and perhaps a pointwise product of the results of that.
#[derive(Debug, Clone, PartialEq)]
pub struct Chain {
    /// The first product.
    pub first: Conv,
    /// The depthwise convolution.
    pub depthwise: Conv,
    /// The last product.
    pub last: Option<Conv>,
    /// View of the first product's results.
    pub wide: View,
    /// View of the depthwise convolution's results.
    pub depth: View,
}

impl Chain {
    /// Returns a chain that begins with a product and a depthwise convolution of its results.
    ///
    /// # Errors
    /// The reason why the accelerator cannot compute both together.
    pub fn new(first: &Conv, depthwise: &Conv, views: [View; 3], config: &HwConfig) -> Result<Chain, String> {
        let [input, wide, depth] = views;
        if config.batch != 1 || !config.block_is_row() || !config.vector_reaches_inp() {
            return Err("strips of several layers need batch = 1, and block_in equal to block_out".into());
        }
        if config.banks(Mem::Inp) < 2 || config.banks(Mem::Acc) < 2 {
            return Err("strips of several layers need two banks of inp and of acc".into());
        }
        check_product(first, input, config)?;
        if !is_shared(depthwise, [wide, depth], OnChip::default(), config) {
            return Err("the array and the vector unit cannot share the depthwise convolution".into());
        }
        Ok(Chain { first: first.clone(), depthwise: depthwise.clone(), last: None, wide, depth })
    }

    /// Returns the chain with a pointwise product of its results.
    ///
    /// # Errors
    /// The reason why the accelerator cannot compute it together with the others.
    pub fn with(&self, last: &Conv, config: &HwConfig) -> Result<Chain, String> {
        if self.last.is_some() {
            return Err("the chain already ends with a product".into());
        }
        if !last.is_pointwise() {
            return Err("only a pointwise product can end a chain".into());
        }
        check_product(last, self.depth, config)?;
        Ok(Chain { last: Some(last.clone()), ..self.clone() })
    }

    /// Number of layers that are computed together.
    pub fn layers(&self) -> usize {
        if self.last.is_some() { 3 } else { 2 }
    }
}

/// Checks that a product can be a part of a chain.
fn check_product(conv: &Conv, input: View, config: &HwConfig) -> Result<(), String> {
    let subtracted = conv.rest.is_empty() || array_subtracts(conv, config).is_some();
    if conv.groups != 1 || conv.slope.is_some() || !conv.epilogue.is_empty() || !subtracted {
        return Err(
            "a product of a chain has no groups, no second requantization, no fused operators, and weights of 8 bits"
                .into(),
        );
    }
    // The rest of an entry with data is filled with zeros.
    let filled = input.has_windows() && !input.c.is_multiple_of(config.block() as usize);
    if filled && conv.pad_value != 0 && !config.dma_pad {
        return Err("the configuration is built without dma_pad".into());
    }
    Ok(())
}
