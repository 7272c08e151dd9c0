//! Layers' schedules on the cycle model with `--strict`, against the evaluator.

use rand::SeedableRng;
use rand::rngs::StdRng;
use tilewright_hw::HwConfig;
use tilewright_hw::isa::VecOp;
use tilewright_hw::num::Rounding;
use tilewright_sim::{Csim, CsimOptions};
use tilewright_tensor::testing::{compare, data};

use super::{LayerInput, LayerSchedule};
use crate::codegen::accel::finish::{Finish, Slope};
use crate::codegen::accel::kept::Kept;
use crate::codegen::accel::view::View;

const MEMORY: u64 = 1 << 20;

/// Returns configurations with several batch rows, blocks of different widths, and without what is optional.
fn varied_configs() -> Vec<HwConfig> {
    let load = |name: &str| HwConfig::load(name).unwrap();
    let sized = |name: &str, batch, block_in, block_out| HwConfig { batch, block_in, block_out, ..load(name) };
    vec![
        load("1x16x16"),
        load("4x16x16"),
        load("1x8x16"),
        load("1x4x2"),
        load("1x4x4-ecp5"),
        HwConfig { dma_pad: false, ..load("1x16x16") },
        HwConfig { dma_pad: false, ..sized("4x16x16", 2, 16, 16) },
        sized("4x16x16", 3, 16, 16),
        sized("4x16x16", 2, 8, 16),
        sized("4x16x16", 2, 16, 8),
        sized("1x16x16", 1, 16, 4),
        sized("1x16x16", 1, 4, 16),
    ]
}

/// Checks random layers on each of [`varied_configs`] until `check` has checked `wanted` plans of them. It checks those of
/// one random layer, if there is one, and returns their number; at most `most` times for each configuration.
pub fn check_varied(seed: u64, [wanted, most]: [usize; 2], check: impl Fn(&mut StdRng, &HwConfig) -> Option<usize>) {
    let mut rng = StdRng::seed_from_u64(seed);
    for config in varied_configs() {
        let (mut checked, mut left) = (0, most);
        while checked < wanted && left > 0 {
            left -= 1;
            checked += check(&mut rng, &config).unwrap_or(0);
        }
        assert!(checked >= wanted, "{} {checked}", config.name);
    }
}

/// Returns a requantization of some channels.
pub fn finish(channels: usize, shift: i8) -> Finish {
    Finish {
        bias: (0..channels as i32).map(|c| 50 * c - 300).collect(),
        multiplier: vec![1_500_000_000; channels],
        shift: (0..channels).map(|c| shift - (c % 4) as i8).collect(),
        zero_point: 3,
        lo: -128,
        hi: 120,
        mode: Rounding::Double,
    }
}

/// Returns a second requantization by which negative results get another factor.
pub fn slope(finish: &Finish, op: VecOp) -> Slope {
    let Finish { bias, multiplier, .. } = finish.clone();
    let shift = vec![-9; bias.len()];
    Slope { bias, multiplier, shift, mode: Rounding::Double, op }
}

/// Returns where a tensor stays in inp, with a border on each side.
pub fn kept(view: View, border: u32, entry: u32, pad_value: i8) -> Kept {
    Kept {
        entry,
        blocks: view.c.div_ceil(16) as u32,
        image: [view.h as u32, view.w as u32],
        border: [border; 4],
        pad_value,
    }
}

/// Runs a layer's schedule on random operands and compares with the evaluator. Returns exact cycles.
pub fn check_layer(config: &HwConfig, layer: &LayerSchedule) -> u64 {
    let m = layer.mapping(config).unwrap_or_else(|e| panic!("{e}\n{}", layer.program));
    let quick = layer.without_checks(config).map(|quick| quick.function().to_string());
    assert_eq!(quick, Some(m.function().to_string()));
    let mut inputs = data(&layer.program);
    for (array, input) in inputs.iter_mut().zip(&layer.inputs) {
        if let LayerInput::Constant(values) = input {
            assert_eq!((&array.shape, array.dtype), (&values.shape, values.dtype), "{}", layer.program);
            *array = values.clone();
        }
    }
    let mut device = Csim::new(config.clone(), MEMORY, CsimOptions { strict: true, ..CsimOptions::default() });
    compare(&mut device, &m, &layer.program, &inputs).0
}
