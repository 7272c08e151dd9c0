//! Runs random instructions on every kernel: matrix products in all loop shapes, and vector operations. Results on
//! lanes must equal the scalar ones, which call `tilewright_hw::num`.

use super::is_inside;
use super::plan::Plan;
use crate::functional::loops::Affine;
use crate::{Fsim, Kernel};
use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Base, Command, Device, RunReport};
use tilewright_hw::isa::{
    Gemm, GemmUop, INSN_BYTES, Insn, Load, Op, VecDst, VecOp, VecSrc, Vector, VectorUop, encode, illegal_reasons,
};
use tilewright_hw::num::Rounding;

const DATA: u64 = 0x8000;
const COUNT: u32 = 8;

fn config(batch: u32, block_in: u32, block_out: u32) -> HwConfig {
    let text = format!(
        "batch = {batch}\nblock_in = {block_in}\nblock_out = {block_out}\ninp_depth = 64\nwgt_depth = 16\n\
         acc_depth = 64\nout_depth = 64\nparam_depth = 16\ngemm_uop_depth = 16\nvector_uop_depth = 16\n\
         vector_lanes = 4\nrequant_lanes = 2\nvector_shift = true\nvector_mul = true\nvector_qadd = true\n\
         vector_mac = true\nvector_lut = true\nwgt_zp = true"
    );
    HwConfig::parse("lanes", &text).expect("a legal configuration")
}

/// Returns words where arithmetic is likely to fail, and random words down to small ones.
fn word(rng: &mut SmallRng) -> i32 {
    const CORNERS: [i32; 10] = [0, 1, -1, 127, -128, 1 << 30, -(1 << 30), i32::MAX, i32::MIN, i32::MIN + 1];
    match rng.random_range(0..4) {
        0 => CORNERS[rng.random_range(0..CORNERS.len())],
        1 => rng.random_range(-300..300),
        _ => rng.random::<i32>() >> rng.random_range(0..31),
    }
}

fn random_bytes(rng: &mut SmallRng, len: usize) -> Vec<u8> {
    (0..len.div_ceil(4)).flat_map(|_| word(rng).to_le_bytes()).take(len).collect()
}

/// Returns param entries whose byte rows form likely words.
fn random_param(rng: &mut SmallRng, config: &HwConfig) -> Vec<u8> {
    let n = config.block_out as usize;
    let mut bytes = vec![0; (config.entries(Mem::Param) * config.entry_bytes(Mem::Param)) as usize];
    for entry in bytes.chunks_exact_mut(9 * n) {
        if rng.random_ratio(1, 3) {
            let random = random_bytes(rng, entry.len());
            entry.copy_from_slice(&random);
            continue;
        }
        for o in 0..n {
            let words = [word(rng), word(rng)].map(i32::to_le_bytes).concat();
            for (k, byte) in words.iter().enumerate() {
                entry[k * n + o] = *byte;
            }
            entry[8 * n + o] = rng.random_range(-40i8..40) as u8;
        }
    }
    bytes
}

/// Runs an instruction on filled memories and returns what it leaves in them.
fn run(config: &HwConfig, kernel: Kernel, contents: &[(Mem, Vec<u8>)], op: Op) -> (Outcome, Vec<Vec<u8>>) {
    let mut device = Fsim::new(config.clone(), 1 << 18).with_kernel(kernel);
    let mut at = DATA;
    let mut program = Vec::new();
    for (mem, bytes) in contents {
        device.write(at, bytes).expect("inside memory");
        let row_bytes = bytes.len() as u32 / 8;
        let (offset, row_stride) = (at, row_bytes.into());
        program.push(Insn::new(Load { mem: *mem, offset, row_bytes, rows: 8, row_stride, ..Load::default() }));
        at += bytes.len() as u64;
    }
    program.push(Insn::new(op));
    let stream: Vec<u8> = program.iter().flat_map(|i| encode(i, config).expect("fits")).collect();
    device.write(0, &stream).expect("inside memory");
    let insns = (stream.len() / INSN_BYTES) as u32;
    let bases = vec![Base { addr: 0, limit: device.memory_bytes() }];
    let outcome = device.run(&Command { stream_addr: 0, insns, bases, cycle_limit: None }).map_err(|e| e.to_string());
    let all = |device: &mut Fsim, m| device.scratchpad(m, 0, config.entries(m)).expect("in range");
    let left = [Mem::Acc, Mem::Out, Mem::Inp].map(|m| all(&mut device, m)).to_vec();
    (outcome, left)
}

type Outcome = Result<RunReport, String>;

fn filled(rng: &mut SmallRng, config: &HwConfig) -> Vec<(Mem, Vec<u8>)> {
    let uop = |rng: &mut SmallRng, most: u32| rng.random_range(0..most);
    let gemm =
        (0..COUNT).flat_map(|_| GemmUop { acc: uop(rng, 3), inp: uop(rng, 9), wgt: uop(rng, 4) }.to_bytes(config));
    let gemm = gemm.collect();
    let vector =
        (0..COUNT).flat_map(|_| VectorUop { dst: uop(rng, 3), a: uop(rng, 9), b: uop(rng, 4) }.to_bytes(config));
    let vector = vector.collect();
    let bytes = |m| (config.entries(m) * config.entry_bytes(m)) as usize;
    let mut contents = vec![(Mem::GemmUop, gemm), (Mem::VectorUop, vector), (Mem::Param, random_param(rng, config))];
    for mem in [Mem::Acc, Mem::Out, Mem::Inp, Mem::Wgt] {
        contents.push((mem, random_bytes(rng, bytes(mem))));
    }
    contents
}

fn is_usable(kernel: Kernel, config: &HwConfig) -> bool {
    if !kernel.is_usable(config) {
        eprintln!("skipped: {kernel:?} cannot be used on this machine");
        return false;
    }
    true
}

#[test]
fn products_are_the_same_on_every_kernel() {
    let rng = &mut SmallRng::seed_from_u64(11);
    for (batch, block_in, block_out) in [(1, 16, 16), (4, 16, 16), (1, 32, 32), (2, 8, 16), (1, 4, 32)] {
        let config = config(batch, block_in, block_out);
        if !is_usable(Kernel::Avx512, &config) {
            continue;
        }
        for _ in 0..150 {
            let mut few = |most: u32| rng.random_range(0..most);
            let gemm = Gemm {
                accumulate: few(3) > 0,
                wgt_zp: if few(3) == 0 { few(256) as u8 as i8 } else { 0 },
                uop: few(3),
                uops: 1 + few(5),
                count0: 1 + few(3),
                count1: 1 + few(5),
                count2: 1 + few(4),
                acc: few(4),
                inp: few(4),
                wgt: few(4),
                acc0: few(6),
                inp0: few(6),
                wgt0: few(6) / 4,
                acc1: few(3),
                inp1: few(3),
                wgt1: few(6) / 4,
                acc2: few(3),
                inp2: few(3),
                wgt2: few(6) / 5,
            };
            let contents = filled(rng, &config);
            let plain = run(&config, Kernel::Portable, &contents, gemm.into());
            for kernel in [Kernel::Avx2, Kernel::Avx512] {
                let fast = run(&config, kernel, &contents, gemm.into());
                assert!(plain == fast, "{kernel:?}, {batch}x{block_in}x{block_out}: {gemm:?}");
            }
        }
    }
}

#[test]
fn lanes_compute_what_the_plain_operations_compute() {
    let rng = &mut SmallRng::seed_from_u64(12);
    let mut on_lanes = vec![0; VecOp::ALL.len()];
    for (batch, block) in [(1, 16), (2, 16), (1, 32), (1, 8)] {
        let config = config(batch, block, block);
        let kernels = [Kernel::Avx512, Kernel::Avx2].into_iter().filter(|kernel| is_usable(*kernel, &config));
        let kernels: Vec<Kernel> = kernels.collect();
        for round in 0..100 * VecOp::ALL.len() {
            let op = VecOp::ALL[round % VecOp::ALL.len()];
            let mut few = |most: u32| rng.random_range(0..most);
            let tap = if op == VecOp::Mac { 16 } else { 1 };
            let vector = Vector {
                op,
                mode: if op.has_mode() && few(2) > 0 { Rounding::Single } else { Rounding::Double },
                dst: VecDst::ALL[few(3) as usize],
                a: VecSrc::ALL[few(3) as usize],
                b: if op.has_b() { VecSrc::ALL[few(5) as usize] } else { VecSrc::None },
                descriptor: few(14),
                uop: few(3),
                uops: 1 + few(4) / 3,
                count0: 1 + few(3),
                count1: 1 + few(4),
                count2: 1 + few(2),
                dst_at: few(4) * 8,
                a_at: few(4) * 8,
                b_at: few(4) * 2,
                dst0: few(4),
                a0: few(4),
                b0: few(2) * tap,
                dst1: few(3),
                a1: few(3),
                b1: few(2) * tap,
                dst2: few(3),
                a2: few(3),
                b2: few(2) * tap,
            };
            if !illegal_reasons(&Insn::new(vector), &config).is_empty() {
                continue;
            }
            let mut contents = filled(rng, &config);
            if rng.random_ratio(3, 4) {
                // Bounds and zero points in the ranges that networks use.
                let entry = (9 * block) as usize;
                for d in contents[2].1.chunks_exact_mut(entry) {
                    let words = [word(rng), -128, rng.random_range(-10..127), rng.random_range(-128..128)];
                    if vector.b != VecSrc::Param {
                        d[..16].copy_from_slice(&words.map(i32::to_le_bytes).concat());
                    }
                }
            }
            let plain = run(&config, Kernel::Portable, &contents, vector.into());
            let uops: Vec<[u32; 3]> = contents[1]
                .1
                .chunks_exact(config.vector_uop_bytes() as usize)
                .map(|raw| VectorUop::from_bytes(raw, &config))
                .map(|uop| [uop.dst, uop.a, uop.b])
                .collect();
            on_lanes[round % VecOp::ALL.len()] += usize::from(Plan::new(&config, &vector, &uops).is_some());
            for kernel in &kernels {
                let fast = run(&config, *kernel, &contents, vector.into());
                assert!(plain == fast, "{kernel:?}, {batch}x{block}x{block}: {vector:?}");
            }
        }
    }
    assert!(on_lanes.iter().all(|n| *n > 5), "instructions on lanes by operation: {on_lanes:?}");
}

#[test]
fn a_plan_is_made_only_where_no_row_breaks_a_rule() {
    let rng = &mut SmallRng::seed_from_u64(13);
    let config = config(1, 4, 4);
    let (mut planned, mut in_place) = (0, 0);
    for round in 0..200_000 {
        let op = VecOp::ALL[round % VecOp::ALL.len()];
        let near = rng.random_range(1..8);
        let mut few = |most: u32| rng.random_range(0..most);
        let uops: Vec<[u32; 3]> = (0..3).map(|_| [0; 3].map(|_| few(near))).collect();
        let mut x = Vector {
            op,
            dst: VecDst::ALL[few(3) as usize],
            a: VecSrc::ALL[few(3) as usize],
            b: VecSrc::ALL[few(6) as usize],
            uop: few(2),
            uops: 1 + few(8) / 5,
            count0: 1 + few(3),
            count1: 1 + few(4),
            count2: 1 + few(2),
            dst_at: few(64),
            a_at: few(64),
            b_at: few(64),
            dst0: few(near),
            a0: few(near),
            b0: few(2) * 16,
            dst1: few(near),
            a1: few(near),
            b1: few(near),
            dst2: few(near),
            a2: few(near),
            b2: few(near) * 8,
            ..Vector::default()
        };
        if few(4) == 0 {
            (x.a_at, x.a0, x.a1, x.a2) = (x.dst_at, x.dst0, x.dst1, x.dst2);
        }
        let uops: Vec<[u32; 3]> = if few(2) == 0 { uops } else { uops.iter().map(|u| [u[0], u[0], u[2]]).collect() };
        if Plan::new(&config, &x, &uops).is_none() {
            continue;
        }
        let mut written = Vec::new();
        let (dst, a, b) = (x.dst.mem(), x.a.mem(), x.b.mem());
        let sound = Affine::from(&x).for_each(&uops, |_, index| {
            let index = index.ok_or("micro-op")?;
            for (index, mem) in index.iter().zip([Some(dst), a, b]) {
                if mem.is_some_and(|m| !is_inside(&config, op, m, *index)) {
                    return Err("outside");
                }
            }
            let [dst_at, a_at, b_at] = index.map(|i| i as u32);
            if let (Some(a), Some(b)) = (a, b)
                && a == b
                && config.bank_of(a, a_at) == config.bank_of(b, b_at)
            {
                return Err("collision");
            }
            for (mem, at) in [(a, a_at), (b, b_at)] {
                if op.is_deep() && mem == Some(dst) && written.contains(&at) {
                    return Err("reads what it wrote");
                }
            }
            written.push(dst_at);
            Ok(())
        });
        assert_eq!(sound, Ok(()), "{x:?} of {uops:?}");
        planned += 1;
        in_place += usize::from(op.is_deep() && a == Some(dst) && x.a_at == x.dst_at);
    }
    assert!(planned > 10_000 && in_place > 100, "{planned} planned, {in_place} in place");
}
