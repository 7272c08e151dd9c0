//! Random small configurations.

use rand::Rng;
use rand::rngs::SmallRng;
use rand::seq::IndexedRandom;
use tilewright_hw::config::{Counters, DramSection, HwConfig};

fn pick<T: Copy>(rng: &mut SmallRng, from: &[T]) -> T {
    *from.choose(rng).unwrap_or(&from[0])
}

/// Returns a random legal configuration, small enough to build and run fast.
pub fn sample_config(rng: &mut SmallRng) -> HwConfig {
    sample_config_with(rng, |_| {})
}

/// Returns a random legal configuration with some parameters fixed by `fix`.
pub fn sample_config_with(rng: &mut SmallRng, fix: impl Fn(&mut HwConfig)) -> HwConfig {
    loop {
        let mut config = candidate(rng);
        fix(&mut config);
        if config.violations().is_empty() {
            return config;
        }
    }
}

fn candidate(rng: &mut SmallRng) -> HwConfig {
    let (block_in, block_out) = if rng.random_bool(0.6) {
        let block = pick(rng, &[2, 4, 8, 8, 16]);
        (block, block)
    } else {
        (pick(rng, &[2, 4, 8, 16]), pick(rng, &[2, 4, 8, 16]))
    };
    let batch = pick(rng, &[1, 1, 1, 2, 4]);
    let row: u32 = batch * block_out;
    let lanes = |rng: &mut SmallRng| row >> rng.random_range(0..=row.ilog2().min(3));
    let depth = |rng: &mut SmallRng| pick(rng, &[16, 16, 32, 64]);
    let bus_bits = pick(rng, &[16, 32, 64, 64, 128, 256, 512]);
    let max_burst_beats = pick(rng, &[1, 2, 4, 8, 16, 32]);
    let mut config = HwConfig {
        name: "sampled".into(),
        batch,
        block_in,
        block_out,
        inp_depth: depth(rng),
        wgt_depth: pick(rng, &[16, 16, 32]),
        acc_depth: depth(rng),
        out_depth: depth(rng),
        param_depth: pick(rng, &[8, 16, 32]),
        gemm_uop_depth: pick(rng, &[16, 32, 64]),
        vector_uop_depth: pick(rng, &[16, 32, 64]),
        inp_banks: pick(rng, &[1, 2, 4]),
        acc_banks: pick(rng, &[1, 2, 4, 8]),
        out_banks: pick(rng, &[1, 2, 4]),
        bus_bits,
        offset_bits: pick(rng, &[20, 24, 32, 40]),
        stride_bits: pick(rng, &[12, 16, 20, 24]),
        bases: pick(rng, &[4, 8, 16]),
        loops: pick(rng, &[2, 3, 3]),
        dma_align: pick(rng, &[1, 1, 1, 2, bus_bits / 8]),
        dma_pad: rng.random_bool(0.8),
        dma_pack: batch > 1 || rng.random_bool(0.7),
        max_burst_beats,
        outstanding: pick(rng, &[2, 4, 8, 32]),
        load_buffer_beats: max_burst_beats.max(4) * pick(rng, &[1, 2, 4]),
        store_buffer_beats: max_burst_beats.max(4) * pick(rng, &[1, 2, 4]),
        fetch_buffer_insns: pick(rng, &[4, 8, 16]),
        queue_depth: pick(rng, &[2, 4, 8]),
        lean: rng.random_bool(0.3),
        token_bits: pick(rng, &[4, 5, 6]),
        vector_lanes: lanes(rng),
        requant_lanes: lanes(rng),
        requant_serial: rng.random_bool(0.25),
        vector_shift: rng.random_bool(0.8),
        vector_mul: rng.random_bool(0.8),
        vector_qadd: rng.random_bool(0.8),
        vector_mac: rng.random_bool(0.8),
        vector_lut: rng.random_bool(0.8),
        wgt_zp: rng.random_bool(0.8),
        mul_stages: rng.random_range(0..=3),
        counters: pick(rng, &[Counters::Causes, Counters::Causes, Counters::Busy, Counters::None]),
        ..HwConfig::default()
    };
    if config.lean && rng.random_bool(0.5) {
        make_serial(&mut config);
    }
    config.vector_stages = rng.random_range(0..=2);
    config
}

/// Changes a configuration to use the serial vector unit.
pub fn make_serial(config: &mut HwConfig) {
    (config.lean, config.requant_serial) = (true, true);
    (config.vector_lanes, config.requant_lanes) = (1, 1);
    (config.vector_shift, config.vector_mul, config.vector_qadd) = (false, false, false);
    (config.vector_mac, config.vector_lut) = (false, false);
}

/// Returns random memory timing.
pub fn sample_dram(rng: &mut SmallRng) -> DramSection {
    DramSection {
        latency: pick(rng, &[0, 1, 3, 7, 20, 64, 150]),
        beat_sixteenths: pick(rng, &[8, 16, 16, 16, 20, 32, 67]),
        shared: rng.random_bool(0.7),
        row_open_sixteenths: pick(rng, &[0, 0, 16, 100]),
        burst_sixteenths: pick(rng, &[0, 0, 0, 7, 160]),
    }
}
