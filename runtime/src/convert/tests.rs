use std::time::{SystemTime, UNIX_EPOCH};

use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};

use super::*;
use crate::artifact::Image;

/// Packs element by element, by the definition of the layout.
fn defined(packing: Packing, dense: &[u8]) -> Vec<u8> {
    let (image, strides) = strides(packing);
    let at = |n, c, y, x| dense[n * strides[0] + c * strides[1] + y * strides[2] + x * strides[3]] as i8;
    image.pack(at).into_iter().map(|value| value as u8).collect()
}

/// Unpacks element by element, by the definition of the layout.
fn defined_back(packing: Packing, packed: &[u8], dense: &mut [u8]) {
    let (image, strides) = strides(packing);
    let packed: Vec<i8> = packed.iter().map(|value| *value as i8).collect();
    image.unpack(&packed, |n, c, y, x, value| {
        dense[n * strides[0] + c * strides[1] + y * strides[2] + x * strides[3]] = value as u8;
    });
}

fn strides(packing: Packing) -> (Image, [usize; 4]) {
    match packing {
        Packing::Nchw(i) => (i, [i.c * i.h * i.w, i.h * i.w, i.w, 1]),
        Packing::Nhwc(i) => (i, [i.h * i.w * i.c, 1, i.w * i.c, i.c]),
        Packing::Dense => unreachable!("only images are blocked"),
    }
}

/// Compares both directions with the definition. Bytes that must be written are not what is written at first.
fn check(packing: Packing, random: &mut StdRng, context: &str) {
    let (i, _) = strides(packing);
    let dense: Vec<u8> = (0..i.n * i.c * i.h * i.w).map(|_| random.random()).collect();
    let bytes = packing.device_bytes(dense.len()).unwrap();
    let want = defined(packing, &dense);
    let mut packed: Vec<u8> = want.iter().map(|byte| !byte).collect();
    assert_eq!(packed.len(), bytes, "{packing:?}, {context}");
    pack(packing, &dense, &mut packed);
    assert!(packed == want, "{packing:?}, {context}: packed bytes differ");
    // The device leaves anything in padding channels.
    let random_bytes: Vec<u8> = (0..bytes).map(|_| random.random()).collect();
    for packed in [&want, &random_bytes] {
        let mut want = vec![0; dense.len()];
        defined_back(packing, packed, &mut want);
        let mut back: Vec<u8> = want.iter().map(|byte| !byte).collect();
        unpack(packing, packed, &mut back);
        assert!(back == want, "{packing:?}, {context}: unpacked bytes differ");
    }
}

fn packed(packing: Packing, dense: &[u8]) -> Vec<u8> {
    let mut packed = vec![0; packing.device_bytes(dense.len()).unwrap()];
    pack(packing, dense, &mut packed);
    packed
}

fn both(image: Image, random: &mut StdRng, context: &str) {
    check(Packing::Nhwc(image), random, context);
    check(Packing::Nchw(image), random, context);
}

#[test]
fn random_images_convert_as_the_layout_is_defined() {
    let clock = || SystemTime::now().duration_since(UNIX_EPOCH).map_or(0, |time| u64::from(time.subsec_nanos()));
    let seed = std::env::var("TILEWRIGHT_SEED").ok().and_then(|seed| seed.parse().ok()).unwrap_or_else(clock);
    let context = format!("TILEWRIGHT_SEED={seed}");
    println!("{context}");
    let mut random = StdRng::seed_from_u64(seed);
    for _ in 0..400 {
        let block = [1, 2, 3, 4, 8, 12, 16, 32, 64, 128][random.random_range(0..10)];
        let mut size = |most: usize| if random.random_bool(0.3) { 1 } else { random.random_range(1..=most) };
        let (n, c, h, w) = (size(3), size(3 * block + 1), size(6), size(80));
        let pads = if random.random_bool(0.3) { [0, 1].map(|_| random.random_range(0..4)) } else { [0; 2] };
        both(Image { n, c, h, w, block, fill: random.random(), pads }, &mut random, &context);
    }
}

#[test]
fn every_remainder_of_channels_and_pixels_converts() {
    let mut random = StdRng::seed_from_u64(1);
    for block in [4, 8, 16, 32] {
        for c in (1..=2 * block).chain([3 * block]) {
            for w in [1, 2, 7, 8, 9, 63, 64, 65, 71, 72, 73, 137] {
                both(Image { n: 1, c, h: 1, w, block, fill: -7, pads: [0; 2] }, &mut random, "");
            }
        }
    }
}

#[test]
fn tiles_of_large_rows_join() {
    let mut random = StdRng::seed_from_u64(2);
    for (c, h, w) in [(100, 2, 700), (3, 20, 300), (20_000, 1, 2), (64, 64, 64)] {
        for pads in [[0, 0], [2, 1]] {
            both(Image { n: 2, c, h, w, block: 16, fill: 5, pads }, &mut random, "");
        }
    }
}

#[test]
fn images_without_elements_are_padding() {
    let mut random = StdRng::seed_from_u64(3);
    for (n, c, h, w) in [(0, 3, 2, 2), (1, 0, 2, 2), (1, 3, 0, 2), (1, 3, 2, 0)] {
        both(Image { n, c, h, w, block: 4, fill: 9, pads: [1, 1] }, &mut random, "");
    }
}

#[test]
fn channels_lie_in_blocks_and_come_back() {
    let image = Image { n: 2, c: 3, h: 2, w: 2, block: 4, fill: 9, pads: [0; 2] };
    let nhwc: Vec<u8> = (0..24).collect();
    let blocks = packed(Packing::Nhwc(image), &nhwc);
    assert_eq!(&blocks[..8], [0, 1, 2, 9, 3, 4, 5, 9]);
    let mut back = vec![0; 24];
    unpack(Packing::Nhwc(image), &blocks, &mut back);
    assert_eq!(back, nhwc);
    // The same image with its channels first.
    let mut nchw = vec![0; 24];
    for (at, value) in nhwc.iter().enumerate() {
        let (n, pixel, c) = (at / 12, at / 3 % 4, at % 3);
        nchw[n * 12 + c * 4 + pixel] = *value;
    }
    assert_eq!(packed(Packing::Nchw(image), &nchw), blocks);
    unpack(Packing::Nchw(image), &blocks, &mut back);
    assert_eq!(back, nchw);
}

#[test]
fn padded_columns_stand_around_a_row_and_are_left_out_on_the_way_back() {
    let image = Image { n: 1, c: 2, h: 2, w: 2, block: 2, fill: 9, pads: [1, 2] };
    let dense: Vec<u8> = (0..8).collect();
    let blocks = packed(Packing::Nhwc(image), &dense);
    assert_eq!(blocks, [9, 9, 0, 1, 2, 3, 9, 9, 9, 9, 9, 9, 4, 5, 6, 7, 9, 9, 9, 9]);
    let mut back = vec![0; 8];
    unpack(Packing::Nhwc(image), &blocks, &mut back);
    assert_eq!(back, dense);
}
