//! Tests every vector operation that the table in `hw/src/isa/vector.rs` defines, on the functional simulator and the
//! RTL.

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Base, Command, Device};
use tilewright_hw::isa::{Insn, Load, Unit, VecDst, VecOp, VecSrc, Vector, VectorUop, encode};
use tilewright_sim::{Fsim, Rtl, RtlOptions};

const MEMORY: u64 = 1 << 16;
/// Rows of each operand.
const ROWS: u32 = 64;
const OPERANDS: u64 = 0x4000;
const UOPS: u64 = 0x3000;

/// Returns operands where arithmetic is likely to fail, and random ones.
fn operands(rng: &mut SmallRng, count: usize) -> Vec<i32> {
    const CORNERS: [i32; 9] = [0, 1, -1, 31, 32, 127, -128, i32::MAX, i32::MIN];
    (0..count)
        .map(|_| match rng.random_range(0..3) {
            0 => CORNERS[rng.random_range(0..CORNERS.len())],
            1 => rng.random_range(-3..3),
            _ => rng.random(),
        })
        .collect()
}

/// Runs an operation on operands in acc and returns the resulting rows of acc.
fn run(device: &mut dyn Device, op: VecOp, a: &[i32], b: &[i32]) -> Vec<i32> {
    let config = device.config().clone();
    let row_bytes = config.entry_bytes(Mem::Acc);
    let second = config.acc_depth / config.acc_banks;
    let load = |offset: u64, entry: u32| Load {
        mem: Mem::Acc,
        offset,
        entry,
        row_bytes,
        rows: ROWS,
        row_stride: row_bytes.into(),
        ..Load::default()
    };
    let uop = VectorUop::default().to_bytes(&config);
    let uops = Load { mem: Mem::VectorUop, offset: UOPS, row_bytes: uop.len() as u32, ..Load::default() };
    let bytes = |values: &[i32]| values.iter().flat_map(|v| v.to_le_bytes()).collect::<Vec<u8>>();
    let all = u64::from(ROWS * row_bytes);
    let mut last = Insn::new(load(OPERANDS + all, second));
    last.push.insert(Unit::Vector);
    let vector = Vector {
        op,
        dst: VecDst::Acc,
        a: VecSrc::Acc,
        b: if op.has_b() { VecSrc::Acc } else { VecSrc::None },
        b_at: second,
        dst_at: ROWS,
        count0: ROWS,
        dst0: 1,
        a0: 1,
        b0: 1,
        ..Vector::default()
    };
    let mut vector = Insn::new(vector);
    vector.pop.insert(Unit::Load);
    let program = [Insn::new(uops), Insn::new(load(OPERANDS, 0)), last, vector];
    let stream: Vec<u8> = program.iter().flat_map(|insn| encode(insn, &config).expect("fits")).collect();
    for (at, bytes) in [(0, stream), (UOPS, uop), (OPERANDS, bytes(a)), (OPERANDS + all, bytes(b))] {
        device.write(at, &bytes).expect("inside memory");
    }
    let bases = vec![Base { addr: 0, limit: MEMORY }];
    let command = Command { stream_addr: 0, insns: program.len() as u32, bases, cycle_limit: Some(100_000) };
    let report = device.run(&command).expect("ends");
    assert_eq!(report.trap, None, "{} on {}", op.name(), device.name());
    let found = device.scratchpad(Mem::Acc, ROWS, ROWS).expect("in range");
    found.chunks_exact(4).map(|w| i32::from_le_bytes([w[0], w[1], w[2], w[3]])).collect()
}

/// Configurations with each kind of vector unit: with lanes, and serial.
fn configs() -> [HwConfig; 2] {
    let lanes = HwConfig::load("1x4x4").expect("a preset");
    // The operands are in different banks.
    let serial = HwConfig { acc_banks: 2, ..HwConfig::load("1x4x2").expect("a preset") };
    assert!(!lanes.vector_serial() && serial.vector_serial());
    [lanes, serial]
}

#[test]
fn simple_operations_mean_what_the_table_says() {
    let mut rng = SmallRng::seed_from_u64(1);
    for (config, least) in configs().into_iter().zip([7, 5]) {
        let mut devices: Vec<Box<dyn Device>> = vec![Box::new(Fsim::new(config.clone(), MEMORY))];
        if tilewright_testing::has_program("verilator") {
            let options = RtlOptions { assertions: true, ..RtlOptions::default() };
            devices.push(Box::new(Rtl::new(config.clone(), MEMORY, &options).expect("the design builds")));
        }
        let mut seen = 0;
        for &op in VecOp::ALL {
            let Some(meaning) = op.simple().filter(|_| op.is_built(&config)) else { continue };
            let count = (ROWS * config.row_elements()) as usize;
            let (a, b) = (operands(&mut rng, count), operands(&mut rng, count));
            let expected: Vec<i32> = a.iter().zip(&b).map(|(a, b)| meaning(*a, *b)).collect();
            for device in &mut devices {
                let found = run(device.as_mut(), op, &a, &b);
                if let Some(i) = (0..count).find(|&i| found[i] != expected[i]) {
                    let (name, on, config) = (op.name(), device.name(), &config.name);
                    panic!(
                        "{name} of {} and {} is {} on {on} ({config}), the table says {}",
                        a[i], b[i], found[i], expected[i]
                    );
                }
            }
            seen += 1;
        }
        assert!(seen >= least, "only {seen} operations of {} have a meaning of their own", config.name);
    }
}
