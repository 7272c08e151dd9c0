//! Runs partitioned graphs on simulators, mostly the functional one, and compares with the reference evaluation bit for
//! bit.

mod auto;
mod chained;
mod drawn;
mod fused;
mod kept;
mod layouts;
mod limits;
mod models;
mod pooled;
mod problems;
mod reshaped;
mod stems;
mod transposed;
mod tuned;
mod weighed;

use super::place::Placed;
use super::{Code, Options, Partition, Region, partition};
use crate::codegen::accel::BuildError;
use crate::cost::Analytic;
use crate::graph::{Graph, Op, Tensor, TensorData, ValueId, eval_all};
use std::collections::HashMap;
use std::sync::Arc;
use tilewright_driver::{race, run_program};
use tilewright_hw::HwConfig;
use tilewright_hw::device::Device;
use tilewright_runtime::artifact::{Image, Packing};
use tilewright_sim::{Csim, CsimOptions, Fsim, Rtl, RtlOptions};

const MEMORY: u64 = 64 << 20;

/// Returns the image of a packing, and the strides of its dimensions in the dense tensor.
fn image(packing: Packing) -> Option<(Image, [usize; 4])> {
    match packing {
        Packing::Dense => None,
        Packing::Nhwc(i) => Some((i, [i.h * i.w * i.c, 1, i.w * i.c, i.c])),
        Packing::Nchw(i) => Some((i, [i.c * i.h * i.w, i.h * i.w, i.w, 1])),
    }
}

fn to_device(packing: Packing, dense: &[i8]) -> Vec<u8> {
    let (image, s) = image(packing).expect("the compiler packs images");
    let packed = image.pack(|n, c, y, x| dense[n * s[0] + c * s[1] + y * s[2] + x * s[3]]);
    packed.into_iter().map(|v| v as u8).collect()
}

fn to_host(packing: Packing, bytes: &[u8], len: usize) -> Vec<i8> {
    let (image, s) = image(packing).expect("the compiler packs images");
    let packed: Vec<i8> = bytes.iter().map(|&b| b as i8).collect();
    let mut dense = vec![0; len];
    image.unpack(&packed, |n, c, y, x, v| dense[n * s[0] + c * s[1] + y * s[2] + x * s[3]] = v);
    dense
}

/// Returns the partition with programs from `build`, which can also reject them.
fn settle(
    graph: &Graph,
    config: &HwConfig,
    options: Options,
    build: &dyn Fn(&Placed) -> Result<Vec<Region>, BuildError>,
) -> Partition {
    super::settle(graph, config, options, &Analytic { config }, build).partition
}

/// Returns the bytes of a tensor that the accelerator writes.
fn bytes(t: &Tensor) -> Vec<i8> {
    match t.data() {
        TensorData::Bool(v) => v.iter().map(|b| i8::from(*b)).collect(),
        _ => t.as_slice::<i8>().unwrap().to_vec(),
    }
}

/// Returns a tensor with these bytes and the type and shape of another one.
fn tensor(like: &Tensor, bytes: &[i8]) -> Tensor {
    match like.data() {
        TensorData::Bool(_) => Tensor::from_fn(like.shape(), |i| bytes[i] != 0),
        _ => Tensor::from_fn(like.shape(), |i| bytes[i]),
    }
}

/// Makes a device for a region.
pub(crate) type NewDevice<'a> = &'a dyn Fn(&HwConfig) -> Box<dyn Device>;

pub(crate) fn fsim(config: &HwConfig) -> Box<dyn Device> {
    Box::new(Fsim::new(config.clone(), MEMORY))
}

/// The cycle model in strict mode: it rejects data races, port conflicts avoided only by timing, and uninitialized
/// reads.
fn csim(config: &HwConfig) -> Box<dyn Device> {
    Box::new(Csim::new(config.clone(), MEMORY, CsimOptions { strict: true, ..CsimOptions::default() }))
}

/// The Verilated design with its assertions.
fn rtl(config: &HwConfig) -> Box<dyn Device> {
    let options = RtlOptions { assertions: true, ..RtlOptions::default() };
    Box::new(Rtl::new(config.clone(), MEMORY, &options).unwrap())
}

/// Runs a partition: accelerator regions on a device, the others with the reference evaluation.
///
/// Compares every value that leaves an accelerator region with `expected`, and returns the number of compared values.
fn run(
    graph: &Graph,
    config: &HwConfig,
    parts: &Partition,
    inputs: &[Tensor],
    expected: &[Arc<Tensor>],
    device: NewDevice,
) -> usize {
    let mut values: HashMap<ValueId, Tensor> =
        inputs.iter().enumerate().map(|(i, t)| (ValueId(i), t.clone())).collect();
    for (_, node) in graph.nodes() {
        if let Op::Constant(c) = &node.op {
            values.insert(node.output(), c.value.as_ref().clone());
        }
    }
    let mut compared = 0;
    for region in &parts.regions {
        let Code::Accel(accel) = &region.code else {
            for &id in &region.nodes {
                let node = graph.node(id);
                let operands: Vec<&Tensor> = node.inputs.iter().map(|v| &values[v]).collect();
                let results = node.op.eval(&operands).unwrap();
                values.extend(node.outputs.iter().copied().zip(results));
            }
            continue;
        };
        let packed: Vec<Vec<u8>> = accel.inputs.iter().map(|&(v, p)| to_device(p, &bytes(&values[&v]))).collect();
        let (results, report) = run_program(device(config).as_mut(), &accel.program, &packed)
            .unwrap_or_else(|error| panic!("{} on {}: {error}", graph.name(), config.name));
        assert!(report.trap.is_none());
        for (&(value, packing), result) in accel.outputs.iter().zip(&results) {
            let want = &expected[value.0];
            let dense = to_host(packing, result, want.len());
            let both = bytes(want).into_iter().zip(dense.iter().copied());
            let wrong: Vec<_> = both.enumerate().filter(|(_, (a, b))| a != b).take(4).collect();
            assert!(
                wrong.is_empty(),
                "{} on {}: (index, (expected, found)) {wrong:?}",
                graph.value_name(value),
                config.name
            );
            values.insert(value, tensor(want, &dense));
            compared += 1;
        }
    }
    compared
}

/// Partitions a graph, checks the programs' dependency tokens, runs it, and compares every value at a border.
fn check(graph: &Graph, config: &HwConfig, inputs: &[Tensor]) -> Partition {
    check_on(graph, config, inputs, &fsim)
}

/// Like [`check`] with fusion; returns the number of lookups and additions that are fused.
fn check_fused(graph: &Graph, config: &HwConfig, inputs: &[Tensor]) -> usize {
    let parts = check_split(graph, config, inputs, (Options { fuse: true, ..Options::default() }, &fsim));
    parts
        .explanations
        .iter()
        .filter(|e| ["lookup", "qadd"].contains(&e.op) && e.why.contains("fused with the operators on its results"))
        .count()
}

/// Like [`check`] on another device.
fn check_on(graph: &Graph, config: &HwConfig, inputs: &[Tensor], device: NewDevice) -> Partition {
    check_split(graph, config, inputs, (Options::default(), device))
}

/// The same with options.
pub(crate) fn check_split(
    graph: &Graph,
    config: &HwConfig,
    inputs: &[Tensor],
    (options, device): (Options, NewDevice),
) -> Partition {
    let parts = partition(graph, config, options);
    for region in &parts.regions {
        if let Code::Accel(accel) = &region.code
            && accel.program.insn_count() < 3000
        {
            let faults = race::check(&accel.program, config);
            assert!(faults.is_empty(), "{} on {}: {}", graph.name(), config.name, faults[0]);
        }
    }
    let expected = eval_all(graph, inputs).unwrap();
    run(graph, config, &parts, inputs, &expected, device);
    parts
}

/// Returns the nodes on the CPU, each with the reason.
fn on_cpu(parts: &Partition) -> Vec<String> {
    let cpu = parts.explanations.iter().filter(|e| e.place == tilewright_runtime::artifact::Place::Cpu);
    cpu.map(|e| format!("{} {}: {}", e.op, e.name, e.why)).collect()
}

fn presets() -> Vec<HwConfig> {
    ["1x4x4", "1x8x8", "1x16x16", "1x32x32", "1x8x16", "4x16x16"].iter().map(|n| HwConfig::load(n).unwrap()).collect()
}

/// Presets, and configurations that differ from them.
fn configs() -> Vec<HwConfig> {
    let mut all = presets();
    let name = |c: HwConfig, name: &str| HwConfig { name: name.into(), ..c };
    let base = HwConfig::default();
    all.push(name(
        HwConfig { block_in: 16, block_out: 4, vector_lanes: 4, requant_lanes: 4, ..base.clone() },
        "1x16x4",
    ));
    let two =
        HwConfig { loops: 2, acc_banks: 1, inp_banks: 1, queue_depth: 2, token_bits: 4, wgt_zp: false, ..base.clone() };
    all.push(name(two, "two loops, one bank"));
    for (batch, block_in, block_out) in [(2, 4, 8), (2, 16, 4), (4, 8, 4), (8, 4, 4)] {
        let several = HwConfig { batch, block_in, block_out, vector_lanes: 8, requant_lanes: 4, ..base.clone() };
        all.push(name(several, &format!("{batch}x{block_in}x{block_out}")));
    }
    let small = HwConfig {
        inp_depth: 256,
        wgt_depth: 256,
        acc_depth: 128,
        out_depth: 128,
        param_depth: 16,
        gemm_uop_depth: 64,
        vector_uop_depth: 32,
        bases: 4,
        wgt_zp: false,
        ..base.clone()
    };
    all.push(name(small, "small memories"));
    let lanes = HwConfig { vector_lanes: 1, requant_lanes: 1, dma_pad: false, ..base };
    all.push(name(HwConfig { batch: 2, block_in: 4, block_out: 8, ..lanes.clone() }, "2x4x8 without dma_pad"));
    all.push(name(HwConfig { block_in: 8, block_out: 8, ..lanes.clone() }, "1x8x8 without dma_pad"));
    // With packed loads and stores, because without them many copies go to the CPU.
    all.push(name(HwConfig { dma_pack: true, ..small_part(lanes) }, "a small part"));
    all
}

/// A configuration for small FPGAs: simpler loads, fewer loops and smaller addresses.
fn small_part(config: HwConfig) -> HwConfig {
    HwConfig {
        block_in: 4,
        block_out: 2,
        dma_pad: false,
        dma_pack: false,
        loops: 2,
        bases: 4,
        offset_bits: 20,
        stride_bits: 16,
        vector_lanes: 1,
        requant_lanes: 1,
        bus_bits: 16,
        ..config
    }
}
