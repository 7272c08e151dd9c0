//! Plans of convolutions.

use super::depthwise::DepthwiseTile;
use super::tiles::ConvTile;

/// How a convolution is cut into tiles.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ConvPlan {
    /// Tiles of a product on the array.
    Tiles(ConvTile),
    /// Tiles of a product whose loads turn whole windows into channels.
    Packed(ConvTile),
    /// Tiles of a depthwise product that the array and the vector unit share.
    Depthwise(DepthwiseTile),
}

impl ConvPlan {
    /// Whether the array and the vector unit share a depthwise product.
    pub fn is_shared(&self) -> bool {
        matches!(self, ConvPlan::Depthwise(_))
    }

    /// Estimated cycles.
    pub fn cycles(&self) -> u64 {
        match self {
            ConvPlan::Tiles(tile) | ConvPlan::Packed(tile) => tile.cycles,
            ConvPlan::Depthwise(tile) => tile.cycles,
        }
    }
}
