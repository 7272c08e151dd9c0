use super::*;
use crate::codegen::accel::kept::OnChip;
use crate::codegen::accel::scheduled::tests::{check_layer, check_varied, finish, slope};
use crate::graph::ValueId;
use crate::graph::op::Layout;
use rand::Rng;
use rand::rngs::StdRng;
use tilewright_hw::isa::VecOp;

/// A random transposed convolution; `None` if it has no output.
fn random(rng: &mut StdRng) -> Option<(ConvTranspose, Layer)> {
    let groups = [1, 1, 1, 2, 3][rng.random_range(0..5)];
    let [inputs, outputs] = [0; 2].map(|_| groups * rng.random_range(1..=40 / groups));
    let images = rng.random_range(1..=3);
    let image = [0; 2].map(|_| rng.random_range(1..=7));
    let kernel = [0; 2].map(|_| rng.random_range(1..=4));
    let strides = match rng.random_range(0..2) {
        0 => [2; 2],
        _ => [0; 2].map(|_| rng.random_range(1..=4)),
    };
    let dilations = if rng.random_range(0..3) == 0 { [0; 2].map(|_| rng.random_range(1..=3)) } else { [1; 2] };
    let pads = [0, 1].map(|k: usize| rng.random_range(0..=kernel[k]));
    let mut size = [0usize; 2];
    for k in 0..2 {
        let all: usize =
            (image[k] - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1 + rng.random_range(0..strides[k]);
        size[k] = all.checked_sub(2 * pads[k]).filter(|size| *size > 0)?;
    }
    let data_zero_point = [0, -7][rng.random_range(0..2)];
    let op = op::ConvTranspose2d {
        strides,
        pads,
        size,
        dilations,
        groups,
        layout: Layout::Nhwc,
        data_zero_point,
        weight_zero_point: 0,
    };
    let shape = [outputs, kernel[0], kernel[1], inputs / groups];
    let finish = finish(outputs, -7);
    let slope = (rng.random_range(0..4) == 0).then(|| slope(&finish, VecOp::Max));
    // Without their zero point, some weights need more than 8 bits.
    let zero_point = [0, 0, 60][rng.random_range(0..3)];
    let few = if rng.random() { 1.0 } else { 0.01 };
    let count = shape.iter().product();
    let weight = |rng: &mut StdRng| if rng.random_bool(few) { rng.random_range(-128..=127) } else { 0 } - zero_point;
    let weights = (0..count).map(|_| weight(rng)).collect();
    // Zero points of channels cannot be subtracted by the array.
    let weight_zero_point = Some(zero_point).filter(|_| rng.random());
    let values = Values { shape, weights, weight_zero_point, finish, slope };
    let views = [
        View::new(Layout::Nhwc, images, inputs, image[0], image[1]),
        View::new(Layout::Nhwc, images, outputs, size[0], size[1]),
    ];
    let transposed = phases(&op, views, &values).ok()?;
    let layer = Layer {
        nodes: Vec::new(),
        name: "conv".into(),
        inputs: vec![(ValueId(0), views[0])],
        output: (ValueId(9), views[1]),
        on_chip: OnChip::default(),
        given: None,
    };
    Some((transposed, layer))
}

#[test]
fn random_layers_run_by_schedules() {
    check_random(2);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn many_random_layers_run_by_schedules() {
    check_random(60);
}

/// Checks at least `wanted` plans of random layers on each of several configurations. The expression is that of the layer:
/// the convolution of each phase is compared elsewhere with the graph's operator.
fn check_random(wanted: usize) {
    check_varied(7, [wanted, 10 * wanted], |rng, config| {
        let (transposed, layer) = random(rng)?;
        let mut plans = transposed.plans(&layer, config, 40);
        // The plans with the fewest estimated cycles, and others, but none whose program exceeds the memory.
        let view = layer.output_view();
        let tiles = |t: &ConvTile| view.n * view.h.div_ceil(t.rows) * view.w.div_ceil(t.columns);
        plans.retain(|plan| tiles(&plan.tile) <= 100);
        plans = plans.into_iter().enumerate().filter(|(i, _)| [0, 1, 7, 25].contains(i)).map(|(_, p)| p).collect();
        for plan in &plans {
            let schedule = transposed.schedule(plan, &layer, config, Constants::Given);
            check_layer(config, &schedule.unwrap_or_else(|| panic!("{plan:?} has no schedule")));
        }
        Some(plans.len())
    });
}

#[test]
fn phases_meet_the_taps_that_reach_them() {
    let sizes = || (1usize..5).flat_map(|a| (1usize..4).map(move |b| (a, b)));
    for ((stride, dilation), (kernel, pad)) in sizes().flat_map(|a| sizes().map(move |b| (a, b))) {
        for phase in 0..stride {
            for pad in [0, pad, 3 * pad] {
                let found = Taps::new(phase, [stride, dilation, pad, kernel]).unwrap();
                assert!(found.before <= (found.taps.len() - 1) * found.dilation);
                for t in 0..5 {
                    let out = (phase + t * stride) as i64;
                    let mut wanted: Vec<(i64, usize)> = (-60..60)
                        .flat_map(|i| (0..kernel).map(move |k| (i, k)))
                        .filter(|&(i, k)| i * stride as i64 + (k * dilation) as i64 - pad as i64 == out)
                        .collect();
                    wanted.sort_unstable();
                    let row = |m: usize| (t + m * found.dilation) as i64 - found.before as i64;
                    let all = found.taps.iter().enumerate();
                    let met: Vec<_> = all.filter_map(|(m, tap)| tap.map(|tap| (row(m), tap))).collect();
                    assert_eq!(met, wanted, "{stride} {dilation} {pad} {kernel}: {found:?}");
                }
            }
        }
    }
    assert_eq!(Taps::new(0, [1, 1, 20_000, 1]), Err(TOO_MANY.into()));
}
