//! Converts tensors between the host's dense layout and the blocked layout of device memory, at the speed of memory.
//!
//! [`Activation`](tilewright_hw::layout::Activation) defines the blocked layout. The code here computes the same with
//! copies of whole blocks if channels are last on the host, and with transposed tiles if they are first. Tests compare
//! the two.

mod planes;
mod rows;
mod runs;
#[cfg(test)]
mod tests;

use crate::artifact::Packing;
use runs::Runs;

/// Converts a dense tensor to its bytes in device memory. [`Packing::device_bytes`] is their number.
///
/// # Panics
/// If `dense` or `packed` has not the packing's size.
pub fn pack(packing: Packing, dense: &[u8], packed: &mut [u8]) {
    let image = match packing {
        Packing::Dense => return packed.copy_from_slice(dense),
        Packing::Nhwc(image) | Packing::Nchw(image) => image,
    };
    let runs = Runs::of(&image);
    runs.check(dense, packed);
    if runs.is_empty() {
        packed.fill(image.fill as u8);
    } else if runs.is_vector() {
        for (out, vector) in packed.chunks_exact_mut(runs.blocks * runs.block).zip(dense.chunks_exact(runs.c)) {
            let (channels, padding) = out.split_at_mut(vector.len());
            channels.copy_from_slice(vector);
            padding.fill(image.fill as u8);
        }
    } else {
        match packing {
            Packing::Nchw(_) => planes::pack(&runs, dense, packed),
            _ => rows::pack(&runs, dense, packed),
        }
    }
}

/// Converts a tensor in device memory to the dense tensor: the inverse of [`pack`].
///
/// # Panics
/// If `packed` or `dense` has not the packing's size.
pub fn unpack(packing: Packing, packed: &[u8], dense: &mut [u8]) {
    let image = match packing {
        Packing::Dense => return dense.copy_from_slice(packed),
        Packing::Nhwc(image) | Packing::Nchw(image) => image,
    };
    let runs = Runs::of(&image);
    runs.check(dense, packed);
    if runs.is_empty() {
        return;
    }
    if runs.is_vector() {
        for (vector, from) in dense.chunks_exact_mut(runs.c).zip(packed.chunks_exact(runs.blocks * runs.block)) {
            vector.copy_from_slice(&from[..vector.len()]);
        }
        return;
    }
    match packing {
        Packing::Nchw(_) => planes::unpack(&runs, packed, dense),
        _ => rows::unpack(&runs, packed, dense),
    }
}
