//! Layers' schedules on the cycle model with `--strict`, against the evaluator.

use tilewright_hw::HwConfig;
use tilewright_sim::{Csim, CsimOptions};
use tilewright_tensor::testing::{compare, data};

use super::{LayerInput, LayerSchedule};
use crate::codegen::accel::kept::Kept;
use crate::codegen::accel::view::View;

const MEMORY: u64 = 1 << 20;

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
