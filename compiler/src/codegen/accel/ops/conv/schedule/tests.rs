use super::*;
use crate::codegen::accel::kept::OnChip;
use crate::codegen::accel::operator::AccelOperator;
use crate::codegen::accel::ops::conv::ConvPlan;
use crate::codegen::accel::ops::conv::epilogue::Epilogue;
use crate::codegen::accel::ops::pairwise::PairOp;
use crate::codegen::accel::ops::pool::random_pool;
use crate::codegen::accel::scheduled::tests::{check_layer, check_varied, finish, kept, slope};
use crate::graph::ValueId;
use crate::graph::op::Layout;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::isa::VecOp;
use tilewright_hw::num::{Qadd, QaddOperand};

/// Sizes of a convolution under test.
#[derive(Clone)]
pub struct Sized {
    pub images: usize,
    pub channels: [usize; 2],
    pub image: [usize; 2],
    pub kernel: [usize; 2],
    pub strides: [usize; 2],
    pub pads: [usize; 4],
    pub dilations: [usize; 2],
    pub groups: usize,
}

/// A square kernel on one image.
pub fn plain(kernel: usize, stride: usize, pad: usize) -> Sized {
    Sized {
        images: 1,
        channels: [20, 37],
        image: [9, 11],
        kernel: [kernel; 2],
        strides: [stride; 2],
        pads: [pad; 4],
        dilations: [1; 2],
        groups: 1,
    }
}

pub fn conv(s: &Sized, epilogue: Vec<Epilogue>) -> (Conv, Layer) {
    let [inputs, outputs] = s.channels;
    let out =
        |k: usize| (s.image[k] + s.pads[k] + s.pads[k + 2] - (s.kernel[k] - 1) * s.dilations[k] - 1) / s.strides[k] + 1;
    let input = View::new(Layout::Nhwc, s.images, inputs, s.image[0], s.image[1]);
    let output = View::new(Layout::Nhwc, s.images, outputs, out(0), out(1));
    let weights = (0..outputs * s.kernel[0] * s.kernel[1] * inputs / s.groups).map(|i| (i * 37 % 251) as i32 as i8);
    let finish = finish(outputs, -7);
    let conv = Conv {
        kernel: s.kernel,
        strides: s.strides,
        pads: s.pads,
        dilations: s.dilations,
        groups: s.groups,
        weights: weights.collect(),
        rest: Vec::new(),
        weight_zero_point: None,
        pad_value: -5,
        finish,
        slope: None,
        epilogue,
    };
    let mut inputs = vec![(ValueId(0), input)];
    inputs.extend((1..=conv.epilogue.len()).map(|i| (ValueId(i), output)));
    let layer = Layer {
        nodes: Vec::new(),
        name: "conv".into(),
        inputs,
        output: (ValueId(9), output),
        on_chip: OnChip::default(),
        given: None,
    };
    (conv, layer)
}

/// Random weights beyond 8 bits, often none. Few of them are not 0, or many.
pub fn random_rest(rng: &mut StdRng, weights: usize) -> Vec<i16> {
    let mut rest = match rng.random_range(0..6) {
        0..=2 => return Vec::new(),
        3 => return (0..weights).map(|_| rng.random_range(-127..=127)).collect(),
        _ => vec![0; weights],
    };
    for _ in 0..rng.random_range(1..=12) {
        rest[rng.random_range(0..weights)] = rng.random_range(1..=127);
    }
    rest
}

/// Checks plans of a convolution: every third of those that fit, up to `most`. Returns how many.
pub fn check_plans(conv: &Conv, layer: &Layer, config: &HwConfig, most: usize) -> usize {
    let plans = conv.plans(layer, config, most);
    for plan in &plans {
        let schedule = conv.schedule(plan, layer, config, Constants::Given);
        check_layer(config, &schedule.unwrap_or_else(|| panic!("{plan:?} has no schedule")));
    }
    plans.len()
}

#[test]
fn schedules_compute_the_convolution() {
    let sizes = [
        plain(3, 1, 1),
        plain(1, 1, 0),
        Sized { images: 2, image: [8, 9], ..plain(1, 2, 0) },
        Sized { pads: [0, 0, 1, 1], image: [8, 8], ..plain(3, 2, 0) },
        Sized { kernel: [3, 2], dilations: [2, 3], ..plain(3, 1, 1) },
        Sized { channels: [64, 8], image: [1, 1], ..plain(1, 1, 0) },
        // Parameters of all channels do not fit param twice.
        Sized { channels: [20, 2048], image: [3, 2], ..plain(1, 1, 0) },
    ];
    let mut checked = 0;
    for name in ["1x16x16", "1x4x4"] {
        let config = HwConfig::load(name).unwrap();
        for s in &sizes {
            let (conv, layer) = conv(s, Vec::new());
            checked += check_plans(&conv, &layer, &config, 6);
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn groups_read_their_own_channels() {
    // Depthwise, several groups in a block, a group in a block, and more inputs than outputs.
    let sizes = [([37, 37], 37), ([32, 32], 8), ([48, 48], 3), ([64, 32], 32), ([64, 32], 2)];
    let mut checked = 0;
    // Without the vector unit's products, the array computes depthwise layers too.
    for (name, vector_mac) in [("1x16x16", true), ("1x16x16", false), ("1x4x4", false)] {
        let config = HwConfig { vector_mac, ..HwConfig::load(name).unwrap() };
        for (channels, groups) in sizes {
            let (conv, layer) = conv(&Sized { channels, groups, image: [6, 7], ..plain(3, 1, 1) }, Vec::new());
            checked += check_plans(&conv, &layer, &config, 4);
        }
    }
    assert!(checked > 40, "{checked}");
}

#[test]
fn a_second_requantization_writes_over_the_sums() {
    let config = HwConfig::load("1x16x16").unwrap();
    let mut checked = 0;
    for op in [VecOp::Max, VecOp::Min] {
        let (mut conv, layer) = conv(&Sized { image: [7, 6], ..plain(3, 1, 1) }, Vec::new());
        conv.slope = Some(slope(&conv.finish, op));
        for plan in conv.plans(&layer, &config, 4) {
            let schedule = conv.schedule(&plan, &layer, &config, Constants::Given).unwrap();
            check_layer(&config, &schedule);
            checked += 1;
        }
    }
    assert!(checked > 5, "{checked}");
}

/// A quantized addition, and a lookup of its results.
fn add_and_lookup() -> [Epilogue; 2] {
    let operand = |zero_point, shift| QaddOperand { zero_point, multiplier: 1_518_500_250, shift };
    let (a, b, out) = (operand(-3, 0), operand(5, -1), operand(7, -19));
    let add = PairOp::Add(Qadd { a, b, out, left_shift: 20, lo: -128, hi: 90 });
    let table = (0..256i32).map(|i| (i * 7 % 256) as i8).collect();
    [Epilogue::Pair { op: add, input: 1 }, Epilogue::Lookup(table)]
}

#[test]
fn fused_operators_follow_the_product() {
    let config = HwConfig::load("1x16x16").unwrap();
    let s = Sized { channels: [40, 40], image: [7, 6], ..plain(3, 1, 1) };
    let epilogue = add_and_lookup();
    for n in 0..=2 {
        let (conv, layer) = conv(&s, epilogue[..n].to_vec());
        assert!(check_plans(&conv, &layer, &config, 4) > 2);
    }
}

/// A random convolution with a pooling of its results; `None` if no window fits.
fn pooled(rng: &mut StdRng) -> Option<(Conv, Layer)> {
    let kernel = [rng.random_range(1..=3), rng.random_range(1..=3)];
    let sized = Sized {
        images: rng.random_range(1..=2),
        channels: [rng.random_range(1..40), rng.random_range(1..40)],
        image: [rng.random_range(3..14), rng.random_range(3..14)],
        kernel,
        strides: [rng.random_range(1..=2), rng.random_range(1..=2)],
        pads: [0, 1, 0, 1].map(|k| rng.random_range(0..kernel[k])),
        dilations: [1; 2],
        groups: 1,
    };
    let (mut conv, mut layer) = conv(&sized, Vec::new());
    let of = layer.output.1;
    let (pool, output) = random_pool(rng, of)?;
    conv.slope = rng.random_bool(0.3).then(|| slope(&conv.finish, VecOp::Max));
    if rng.random_range(0..3) == 0 {
        conv.rest = random_rest(rng, conv.weights.len());
    }
    conv.epilogue = vec![Epilogue::Pool { pool: Box::new(pool), of }];
    layer.output.1 = output;
    Some((conv, layer))
}

/// Lets some tensors of a layer stay in inp; `None` if they do not fit.
fn some_kept(rng: &mut StdRng, conv: &Conv, layer: &Layer) -> Option<OnChip> {
    let kept = |view: View, border: u32, entry: u32| kept(view, border, entry, conv.pad_value);
    let (from, to) = (kept(layer.input_view(), 2, 0), kept(layer.output_view(), 0, 1400));
    if layer.input_view().n > 1 || from.entries() > 1300 || to.entries() > 600 {
        return None;
    }
    let [input, output, stored] = [rng.random(), rng.random(), rng.random()];
    Some(OnChip {
        input: Some(from).filter(|_| input),
        output: Some(to).filter(|_| output),
        stored: output && stored,
        room: Some((from.entries(), 1400 - from.entries())),
    })
}

#[test]
fn poolings_read_the_results_on_the_chip() {
    check_pooled(5);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn many_poolings_read_the_results_on_the_chip() {
    check_pooled(200);
}

/// Checks at least `wanted` plans of random convolutions with poolings on each of several configurations.
fn check_pooled(wanted: usize) {
    check_varied(3, [wanted, 30 * wanted], |rng, config| {
        let (conv, layer) = pooled(rng)?;
        Some(check_plans(&conv, &layer, config, 3))
    });
}

#[test]
fn results_of_poolings_stay_on_the_chip() {
    let mut rng = StdRng::seed_from_u64(4);
    let config = HwConfig::load("1x16x16").unwrap();
    let mut checked = 0;
    while checked < 40 {
        let Some((conv, mut layer)) = pooled(&mut rng) else { continue };
        let Some(on_chip) = some_kept(&mut rng, &conv, &layer) else { continue };
        layer.on_chip = on_chip;
        checked += check_plans(&conv, &layer, &config, 2);
    }
}

/// Files of layers whose tensors stay in inp run by themselves: they load and store these tensors.
#[test]
fn kept_tensors_are_buffers_that_hold_all_elements() {
    let config = HwConfig::load("1x16x16").unwrap();
    let mut checked = 0;
    let sizes = [(plain(3, 1, 1), 0), (plain(1, 1, 0), 0), (Sized { image: [8, 9], ..plain(1, 2, 0) }, 0)];
    // With fused operators too.
    for (s, fused) in sizes.into_iter().chain([(plain(3, 1, 1), 1), (plain(1, 1, 0), 2)]) {
        for (input, output, stored) in [(true, false, false), (false, true, false), (true, true, true)] {
            let (conv, mut layer) = conv(&s, add_and_lookup()[..fused].to_vec());
            let kept = |view: View, border: u32, entry: u32| kept(view, border, entry, conv.pad_value);
            let (from, to) = (kept(layer.input_view(), 1, 0), kept(layer.output_view(), 0, 1500));
            let on_chip = OnChip {
                input: input.then_some(from),
                output: output.then_some(to),
                stored,
                room: Some((from.entries(), 1500 - from.entries())),
            };
            layer.on_chip = on_chip;
            checked += check_plans(&conv, &layer, &config, 3);
        }
    }
    assert!(checked > 25, "{checked}");
}

#[test]
fn windows_become_channels() {
    let config = HwConfig::load("1x16x16").unwrap();
    let s = Sized { images: 2, channels: [3, 20], image: [23, 21], pads: [3, 3, 2, 3], ..plain(7, 2, 3) };
    let (conv, layer) = conv(&s, Vec::new());
    let (layer, conv) = conv.host_form(&layer, &config).unwrap();
    let tiles: Vec<_> = conv.packed(&layer, &config).collect();
    assert!(tiles.len() > 10, "{tiles:?}");
    for tile in tiles.iter().step_by((tiles.len() / 6).max(1)) {
        let schedule = conv.schedule(&ConvPlan::Packed(*tile), &layer, &config, Constants::Given).unwrap();
        check_layer(&config, &schedule);
    }
}

/// Loads that cannot pad fill the rest of an entry with zeros, while padding has another value.
#[test]
fn windows_of_partial_blocks_need_no_padding_loads() {
    let mut checked = 0;
    for dma_pack in [true, false] {
        let config = HwConfig { dma_pad: false, dma_pack, ..HwConfig::load("1x16x16").unwrap() };
        for s in [plain(3, 1, 1), Sized { images: 2, image: [8, 9], ..plain(5, 2, 2) }] {
            let (conv, layer) = conv(&Sized { channels: [3, 20], ..s }, Vec::new());
            let (layer, conv) = conv.host_form(&layer, &config).unwrap();
            assert!(layer.input_view().has_windows());
            checked += check_plans(&conv, &layer, &config, 4);
        }
    }
    assert!(checked > 12, "{checked}");
}

/// Few weights exceed 8 bits, in different numbers for the channels that are computed together.
#[test]
fn only_tiles_with_weights_beyond_8_bits_are_multiplied() {
    let config = HwConfig::load("1x16x16").unwrap();
    let (mut conv, layer) = conv(&Sized { channels: [40, 100], image: [4, 3], ..plain(3, 1, 1) }, Vec::new());
    let cycles = |conv: &Conv, tile: &ConvTile| {
        let schedule = conv.schedule(&ConvPlan::Tiles(*tile), &layer, &config, Constants::Given).unwrap();
        check_layer(&config, &schedule)
    };
    let any = conv.plans(&layer, &config, 1).into_iter().find_map(|plan| match plan {
        ConvPlan::Tiles(tile) => Some(tile),
        _ => None,
    });
    let tile = ConvTile { rows: 2, columns: 3, out_blocks: 2, ..any.unwrap() };
    for in_blocks in [1, 3] {
        let tile = ConvTile { in_blocks, ..tile };
        conv.rest = Vec::new();
        let without = cycles(&conv, &tile);
        conv.rest = vec![0; conv.weights.len()];
        // Output channels 3, 70 and 71, input channel 39, tap 4; output channel 3 has another tap.
        for (o, i, tap) in [(3, 39, 4), (3, 0, 8), (70, 39, 4), (71, 39, 4)] {
            conv.rest[(o * 9 + tap) * 40 + i] = 100;
        }
        let few = cycles(&conv, &tile);
        conv.rest = vec![100; conv.weights.len()];
        let all = cycles(&conv, &tile);
        assert!(few < without + 500 && all > without + 2000, "{without} {few} {all}");
    }
}

/// A random convolution; `None` if no window fits.
fn random(rng: &mut StdRng) -> Option<(Conv, Layer)> {
    let kernel = if rng.random_range(0..3) == 0 { [1, 1] } else { [0; 2].map(|_| rng.random_range(1..=3)) };
    let plain = rng.random_range(0..3) == 0;
    let groups = [1, 1, 1, 2, 3, 4, 5][rng.random_range(0..7)];
    let s = Sized {
        images: rng.random_range(1..=5),
        channels: match rng.random_range(0..4) {
            0 => [0; 2].map(|_| 16 * groups * rng.random_range(1..=2)),
            _ => [0; 2].map(|_| groups * rng.random_range(1..=40 / groups)),
        },
        image: [rng.random_range(1..=9), rng.random_range(1..=9)],
        kernel,
        strides: if plain { [1; 2] } else { [0; 2].map(|_| rng.random_range(1..=3)) },
        pads: if plain { [0; 4] } else { [0, 1, 0, 1].map(|k| rng.random_range(0..kernel[k].max(2))) },
        dilations: [0; 2].map(|_| rng.random_range(1..=2)),
        groups,
    };
    let fits = |k: usize| s.image[k] + s.pads[k] + s.pads[k + 2] > (s.kernel[k] - 1) * s.dilations[k];
    if !(fits(0) && fits(1)) {
        return None;
    }
    let epilogue = add_and_lookup()[..rng.random_range(0..=2)].to_vec();
    let (mut conv, layer) = conv(&s, epilogue);
    if rng.random_range(0..3) == 0 {
        conv.pad_value = 0;
    }
    if rng.random_range(0..4) == 0 {
        conv.slope = Some(slope(&conv.finish, VecOp::Max));
    }
    conv.rest = random_rest(rng, conv.weights.len());
    Some((conv, layer))
}

#[test]
fn random_convolutions_run_on_other_configurations() {
    check_random(4);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn many_random_convolutions_run_on_other_configurations() {
    check_random(60);
}

/// Checks at least `wanted` plans of random convolutions on each of several configurations.
fn check_random(wanted: usize) {
    check_varied(3, [wanted, 15 * wanted], |rng, config| {
        let (conv, layer) = random(rng)?;
        Some(check_plans(&conv, &layer, config, 3))
    });
}
