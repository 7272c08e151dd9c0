//! Weights that exceed 8 bits after their zero point is subtracted.
//!
//! If the array subtracts the zero point itself, the weights are stored as in the file.
//!
//! Otherwise a weight minus its zero point is in -255..=255. It is clamped to 8 bits for the product. The remainder,
//! which is 0 for most weights, goes into additional weight tiles for the few positions that need them. Their products
//! are added to the same sums ([`super::further`]).

use super::op::Conv;
use super::sizes::Sizes;
use crate::codegen::accel::view::View;
use std::borrow::Cow;
use std::ops::Range;
use tilewright_hw::HwConfig;
use tilewright_hw::layout::Weights;

/// Splits weights minus their zero point into a part clamped to 8 bits and the remainder in -127..=128. The second
/// vector is empty if all weights fit 8 bits.
pub fn split(less: &[i32]) -> (Vec<i8>, Vec<i16>) {
    let first = |w: i32| w.clamp(-128, 127);
    let weights = less.iter().map(|&w| first(w) as i8).collect();
    let rest: Vec<i16> = less.iter().map(|&w| (w - first(w)) as i16).collect();
    (weights, if rest.iter().all(|&r| r == 0) { Vec::new() } else { rest })
}

/// Returns the zero point that the array can subtract itself, so that the weights can be stored as in the file.
pub fn array_subtracts(conv: &Conv, config: &HwConfig) -> Option<i32> {
    conv.weight_zero_point.filter(|_| config.wgt_zp)
}

/// Checks that the array can multiply the weights.
///
/// # Errors
/// A weight is 255 above its zero point and the array does not subtract the zero point: two weight tiles reach only
/// 254.
pub fn fits(conv: &Conv, config: &HwConfig) -> Result<(), String> {
    if array_subtracts(conv, config).is_none() && conv.rest.iter().any(|&r| r > 127) {
        let why = match conv.weight_zero_point {
            Some(_) => "and the configuration is built without wgt_zp",
            None => "and channels have their own zero points",
        };
        return Err(format!("a weight is 255 above its zero point, but two weight tiles reach only 254, {why}"));
    }
    Ok(())
}

/// Additional weight tiles for what exceeds 8 bits, ordered by output tile, input tile and tap.
#[derive(Debug, Default)]
pub struct Rest {
    /// Number of input tiles per output tile.
    in_tiles: usize,
    /// Index of the first additional tile for each output and input tile, with the total number at the end.
    starts: Vec<usize>,
    /// The tap of each tile.
    taps: Vec<usize>,
    /// The tiles' bytes.
    pub bytes: Vec<u8>,
}

impl Rest {
    pub fn new(conv: &Conv, sizes: &Sizes, input: View, config: &HwConfig) -> Rest {
        let in_tiles = sizes.in_tiles;
        // No additional tiles if the array subtracts the zero point itself.
        if conv.rest.is_empty() || array_subtracts(conv, config).is_some() {
            return Rest { in_tiles, ..Rest::default() };
        }
        let within: Vec<i8> = conv.rest.iter().map(|&r| i8::try_from(r).unwrap_or(i8::MAX)).collect();
        let packed = pack(conv, &within, 0, sizes, input, config);
        let taps = conv.kernel[0] * conv.kernel[1];
        let size = (config.block_in * config.block_out) as usize;
        let mut rest = Rest { in_tiles, starts: vec![0], ..Rest::default() };
        for (i, tile) in packed.chunks_exact(size).enumerate() {
            if tile.iter().any(|&w| w != 0) {
                rest.taps.push(i % taps);
                rest.bytes.extend(tile.iter().map(|&w| w as u8));
            }
            if i % taps == taps - 1 {
                rest.starts.push(rest.taps.len());
            }
        }
        rest
    }

    /// Returns the additional tiles of one output tile for some of its input tiles.
    pub fn tiles(&self, out_tile: usize, in_tiles: &Range<usize>) -> Range<usize> {
        let at = |i: usize| self.starts.get(out_tile * self.in_tiles + i).copied().unwrap_or(0);
        at(in_tiles.start)..at(in_tiles.end)
    }

    /// Returns the number of additional tiles of some output tiles for some of their input tiles.
    pub fn count(&self, out_tiles: Range<usize>, in_tiles: &Range<usize>) -> usize {
        if self.taps.is_empty() {
            return 0;
        }
        if in_tiles.start == 0 && in_tiles.end == self.in_tiles {
            let at = |t: usize| self.starts.get(t * self.in_tiles).copied().unwrap_or(self.taps.len());
            return at(out_tiles.end) - at(out_tiles.start);
        }
        out_tiles.map(|t| self.tiles(t, in_tiles).len()).sum()
    }

    /// Returns input tile (counted from the first of the pass) and tap of each additional tile of an output tile.
    pub fn places(&self, out_tile: usize, in_tiles: &Range<usize>) -> Vec<(usize, usize)> {
        let mut list = Vec::new();
        for i in in_tiles.clone() {
            let here = self.tiles(out_tile, &(i..i + 1));
            list.extend(here.map(|t| (i - in_tiles.start, self.taps[t])));
        }
        list
    }
}

/// Returns the zero point that the array must subtract from the stored weights.
pub fn stored_zero_point(conv: &Conv, config: &HwConfig) -> i8 {
    array_subtracts(conv, config).filter(|_| !conv.rest.is_empty()).unwrap_or(0) as i8
}

/// Returns the weights as they are stored.
///
/// If the array subtracts the zero point, the weights are those of the file. Otherwise their zero point is already
/// subtracted and they are clamped to 8 bits.
pub fn stored<'c>(conv: &'c Conv, config: &HwConfig) -> Cow<'c, [i8]> {
    if conv.rest.is_empty() || array_subtracts(conv, config).is_none() {
        return Cow::Borrowed(&conv.weights);
    }
    let zero_point = i32::from(stored_zero_point(conv, config));
    let both = conv.weights.iter().zip(&conv.rest);
    Cow::Owned(both.map(|(&w, &r)| (i32::from(w) + i32::from(r) + zero_point) as i8).collect())
}

/// Packs weights in the order in which gemm reads them, with `fill` at positions without a weight.
///
/// With groups, an output tile has weights only for the input tiles that it needs.
pub fn pack(conv: &Conv, weights: &[i8], fill: i8, sizes: &Sizes, input: View, config: &HwConfig) -> Vec<i8> {
    let taps = conv.kernel[0] * conv.kernel[1];
    let (block_in, block_out) = (config.block_in as usize, config.block_out as usize);
    let out_tiles = sizes.out_blocks * sizes.out_ratio;
    let (outputs, depth) = (conv.finish.bias.len(), conv.depth());
    let per_group = (outputs / conv.groups).max(1);
    let tiles = Weights::new(config, out_tiles * block_out, sizes.in_tiles * block_in, taps);
    let firsts: Vec<usize> = (0..out_tiles).map(|t| sizes.first_tile(conv, t, input, config) * block_in).collect();
    tiles.pack(|o, i, tap| {
        let channel = firsts[o / block_out] + i;
        let within = channel.checked_sub(o / per_group * depth).filter(|&i| i < depth && o < outputs);
        within.map_or(fill, |i| weights[(o * taps + tap) * depth + i])
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_parts_together_are_the_weight_less_its_zero_point() {
        for zero in -128..=127 {
            let raw: Vec<i8> = (-128..=127).map(|w| w as i8).collect();
            let less: Vec<i32> = raw.iter().map(|&w| i32::from(w) - zero).collect();
            let (weights, rest) = split(&less);
            assert_eq!(rest.iter().any(|&r| r > 127), zero == -128);
            let fits = |&w: &i8| (-128..=127).contains(&(i32::from(w) - zero));
            assert_eq!(rest.is_empty(), raw.iter().all(fits));
            for (i, &w) in raw.iter().enumerate() {
                let both = i32::from(weights[i]) + rest.get(i).map_or(0, |&r| i32::from(r));
                assert_eq!(both, i32::from(w) - zero);
            }
        }
    }
}
