use super::*;
use tilewright_hw::device::Device;
use tilewright_hw::isa::{Descriptor, GemmUop, VectorUop, encode, parse_program};

const STREAM: u64 = 0x8000;

fn small() -> HwConfig {
    let text = "batch = 1\nblock_in = 4\nblock_out = 4\ninp_depth = 16\nwgt_depth = 16\nacc_depth = 16\nout_depth = 16\n\
                param_depth = 16\ngemm_uop_depth = 16\nvector_uop_depth = 16\nvector_lanes = 4\nrequant_lanes = 4\n\
                token_bits = 3\nvector_mac = true\nvector_lut = true\nwgt_zp = true";
    HwConfig::parse("small", text).expect("a legal configuration")
}

fn command(config: &HwConfig, fsim: &mut Fsim, program: &str) -> Command {
    let insns = parse_program(program).expect("a program");
    let bytes: Vec<u8> = insns.iter().flat_map(|i| encode(i, config).expect("fits")).collect();
    fsim.write(STREAM, &bytes).expect("inside memory");
    let limit = fsim.memory_bytes();
    Command { stream_addr: STREAM, insns: insns.len() as u32, bases: vec![Base { addr: 0, limit }], cycle_limit: None }
}

/// Runs a program on memory that holds `data` from address 0 and is zero elsewhere.
fn run(program: &str, data: &[u8]) -> (Fsim, Result<RunReport, DeviceError>) {
    let config = small();
    let mut fsim = Fsim::new(config.clone(), 0x10000);
    fsim.write(0, data).expect("inside memory");
    let command = command(&config, &mut fsim, program);
    let report = fsim.run(&command);
    (fsim, report)
}

fn trap_of(program: &str) -> (TrapUnit, TrapCause, u32) {
    let (_, report) = run(program, &[]);
    let trap = report.expect("a report").trap.expect("a trap");
    (trap.unit, trap.cause, trap.ordinal)
}

#[test]
fn plain_loads_pad_every_dimension() {
    let data: Vec<u8> = (1..=20).collect();
    let (mut fsim, report) = run(
        "load mem=inp row_bytes=5 rows=1 planes=1 row_stride=5 plane_stride=5 pad_value=-7 x_before=1 y_before=1 z_after=1",
        &data,
    );
    assert_eq!(report.expect("runs").retired, [1, 0, 0, 0]);
    let p = 249;
    let pad_row = [p; 12];
    let expected = [pad_row, [p, p, p, p, 1, 2, 3, 4, 5, p, p, p], pad_row, pad_row];
    assert_eq!(fsim.scratchpad(Mem::Inp, 0, 12).expect("in range"), expected.concat());
    // One more row of padding does not fit.
    assert_eq!(
        trap_of("load mem=inp row_bytes=5 planes=1 x_before=1 y_after=1 z_after=2"),
        (TrapUnit::Load, TrapCause::Scratchpad, 0)
    );
}

#[test]
fn pads_of_acc_are_words() {
    let (mut fsim, _) = run("load mem=acc row_bytes=6 pad_value=-2 x_after=1", &[1, 2, 3, 4, 5, 6]);
    let mut expected = vec![1, 2, 3, 4, 5, 6, 255, 255];
    expected.extend([254, 255, 255, 255].repeat(6));
    assert_eq!(fsim.scratchpad(Mem::Acc, 0, 2).expect("in range"), expected);
}

#[test]
fn packed_rows_keep_or_fill_what_follows() {
    let data: Vec<u8> = (1..=9).collect();
    let first = "load mem=out row_bytes=16 offset=32\n";
    let pack =
        "load mem=out row_bytes=3 rows=2 row_stride=3 pack=yes pack_byte=2 pack_row_stride=5 x_after=1 pad_value=99";
    let (mut fsim, _) = run(&format!("{first}{pack}"), &data);
    assert_eq!(fsim.scratchpad(Mem::Out, 0, 4).expect("in range"), [0, 0, 1, 2, 3, 99, 0, 4, 5, 6, 99, 0, 0, 0, 0, 0]);
    let (mut fsim, _) = run(&format!("{first}{pack} fill=yes"), &data);
    assert_eq!(
        fsim.scratchpad(Mem::Out, 0, 4).expect("in range"),
        [0, 0, 1, 2, 3, 99, 99, 4, 5, 6, 99, 99, 0, 0, 0, 0]
    );
}

#[test]
fn a_layer_runs() {
    let config = small();
    let mut data = vec![0u8; 0x200];
    data[..4].copy_from_slice(&[1, 2, 3, 252]);
    for (i, w) in data[0x10..0x20].iter_mut().enumerate() {
        *w = (i as i8 - 8) as u8;
    }
    data[0x20..0x22].copy_from_slice(&GemmUop { acc: 1, inp: 0, wgt: 0 }.to_bytes(&config));
    data[0x30..0x34].copy_from_slice(&VectorUop { dst: 2, a: 1, b: 1 }.to_bytes(&config));
    // Param entry 1: bias 10, multiplier one half, shift 0; entry 2: the descriptor.
    for o in 0..4 {
        data[0x40 + o] = 10;
        data[0x40 + 7 * 4 + o] = 0x40;
    }
    let descriptor = Descriptor { lo: -128, hi: 127, zero_point: -3, ..Default::default() };
    data[0x40 + 36..0x40 + 72].copy_from_slice(&descriptor.to_bytes());
    let (fsim, report) = run(
        "load mem=inp row_bytes=4\nload mem=wgt offset=16 row_bytes=16\nload mem=guop offset=32 row_bytes=2\n\
         load mem=vuop offset=48 row_bytes=4\nload mem=param offset=64 row_bytes=72 entry=9 push=gemm\n\
         gemm accumulate=no pop=load push=vector\n\
         vector op=requant dst=out a=acc b=param descriptor=2 pop=gemm push=store\n\
         store entry=2 row_bytes=4 offset=0x100 pop=vector",
        &data,
    );
    let report = report.expect("runs");
    assert_eq!((report.trap, report.retired, report.macs), (None, [5, 1, 1, 1], 16));
    let expected: Vec<u8> = (0..4)
        .map(|o| {
            let sum: i32 = [1, 2, 3, -4].iter().enumerate().map(|(i, x)| x * (o * 4 + i as i32 - 8)).sum();
            // Half of the sum, rounded half up, plus the zero point.
            (((sum + 10 + 1) >> 1) - 3) as u8
        })
        .collect();
    assert_eq!(fsim.memory()[0x100..0x104], expected);
}

#[test]
fn traps_name_unit_cause_and_ordinal() {
    use TrapCause::*;
    use TrapUnit::*;
    let cases = [
        ("load row_bytes=4\nload offset=0xffff row_bytes=2", (Load, Limit, 1)),
        ("load row_bytes=65 mem=inp", (Load, Scratchpad, 0)),
        ("load row_bytes=4 base=3", (Load, Limit, 0)),
        ("store mem=out entry=15 row_bytes=5", (Store, Scratchpad, 0)),
        ("store mem=wgt", (Fetch, Field, 0)),
        ("gemm\ngemm uop=15 uops=2", (Gemm, Scratchpad, 1)),
        ("gemm acc=15 acc0=1 count0=2", (Gemm, Scratchpad, 0)),
        ("vector op=add b=param b_at=15 b2=1 count2=2", (Vector, Scratchpad, 0)),
        ("vector op=add a=acc b=acc dst=acc", (Vector, Collision, 0)),
        ("vector op=move dst_at=15 dst2=1 count2=2", (Vector, Scratchpad, 0)),
        ("gemm pop=load", (Gemm, Deadlock, 0)),
        (&"load push=gemm\n".repeat(9), (Load, Token, 7)),
    ];
    for (program, expected) in cases {
        assert_eq!(trap_of(program), expected, "{program}");
    }
}

#[test]
fn a_bus_error_belongs_to_the_instruction() {
    let config = small();
    let mut fsim = Fsim::new(config.clone(), 0x10000);
    let mut command = command(&config, &mut fsim, "load row_bytes=8 offset=0xfff8\nload row_bytes=8 offset=0xfffc");
    command.bases[0].limit = 0x20000;
    let trap = fsim.run(&command).expect("a report").trap.expect("a trap");
    assert_eq!((trap.unit, trap.cause, trap.ordinal), (TrapUnit::Load, TrapCause::Bus, 1));
    command.stream_addr = 0x10000;
    let trap = fsim.run(&command).expect("a report").trap.expect("a trap");
    assert_eq!((trap.unit, trap.cause), (TrapUnit::Fetch, TrapCause::Bus));
}

#[test]
fn bytes_that_are_no_instruction_trap_in_fetch() {
    let mut fsim = Fsim::new(small(), 0x10000);
    fsim.write(STREAM + 32, &[0x01, 0x10]).expect("inside memory");
    for (place, cause) in [(0, TrapCause::Opcode), (1, TrapCause::Field)] {
        let command = Command { stream_addr: STREAM + 32 * place, insns: 1, ..Default::default() };
        let trap = fsim.run(&command).expect("a report").trap.expect("a trap");
        assert_eq!((trap.unit, trap.cause, trap.ordinal), (TrapUnit::Fetch, cause, 0));
    }
}

#[test]
fn deep_operations_do_not_read_what_they_wrote() {
    let (_, report) = run("vector op=requant dst=acc a=acc b=param dst_at=1 a0=1 count0=2", &[]);
    let error = report.expect_err("a program error");
    assert!(matches!(error, DeviceError::Program { index: 0, .. }), "{error}");
    let (_, report) = run("vector op=requant dst=acc a=acc b=param dst0=1 a0=1 count0=2", &[]);
    assert_eq!(report.expect("in place is fine").trap, None);
}

#[test]
fn steps_can_be_watched() {
    let config = small();
    let mut fsim = Fsim::new(config.clone(), 0x10000);
    fsim.write(0, &[5; 4]).expect("inside memory");
    let mut command =
        command(&config, &mut fsim, "load row_bytes=4 push=store\nstore mem=inp row_bytes=4 offset=8 pop=load");
    let mut stepper = fsim.step_through(&command).expect("starts");
    assert!(matches!(stepper.step(), Ok(StepResult::Retired(_))));
    assert_eq!(stepper.tokens(0, 3), 1);
    assert_eq!(stepper.device().scratchpad(Mem::Inp, 0, 1).expect("in range"), [5; 4]);
    assert_eq!(stepper.device().memory()[8], 0);
    assert!(matches!(stepper.step(), Ok(StepResult::Retired(_))));
    assert_eq!(stepper.tokens(0, 3), 0);
    assert_eq!(stepper.step().expect("no error"), StepResult::Finished);
    assert_eq!(fsim.memory()[8..12], [5; 4]);
    command.cycle_limit = Some(1);
    assert!(matches!(fsim.run(&command), Err(DeviceError::InsnLimit { limit: 1 })));
}

#[test]
fn every_kernel_computes_the_same() {
    for (batch, block_in, block_out) in
        [(1, 16, 16), (4, 16, 16), (1, 32, 32), (1, 8, 16), (2, 2, 8), (1, 64, 8), (1, 4, 4)]
    {
        let text = format!(
            "batch = {batch}\nblock_in = {block_in}\nblock_out = {block_out}\ninp_depth = 16\nwgt_depth = 16\n\
             acc_depth = 16\nout_depth = 16\nvector_lanes = 4\nrequant_lanes = 2"
        );
        let config = HwConfig::parse("kernel", &text).expect("a legal configuration");
        let mut results = Vec::new();
        for kernel in [Kernel::Portable, Kernel::Avx2, Kernel::Avx512] {
            let mut fsim = Fsim::new(config.clone(), 0x20000).with_kernel(kernel);
            let mut seed = 1u32;
            for byte in fsim.memory_mut()[..0x10000].iter_mut() {
                seed = seed.wrapping_mul(0x19660d).wrapping_add(0x3c6ef35f);
                *byte = (seed >> 24) as u8;
            }
            let extremes = [0x80; 256];
            fsim.write(0, &extremes).expect("inside memory");
            let all = |mem| config.entries(mem) * config.entry_bytes(mem);
            let uop = GemmUop { acc: 1, inp: 2, wgt: 3 }.to_bytes(&config);
            fsim.write(0x1f000, &uop).expect("inside memory");
            let program = format!(
                "load mem=inp row_bytes={}\nload mem=wgt row_bytes={}\nload mem=acc row_bytes={}\n\
                 load mem=guop offset=0x1f000 row_bytes={}\n\
                 gemm count0=3 count1=2 count2=2 acc0=1 inp0=2 wgt0=3 acc1=4 inp1=1 wgt1=2 inp2=5 wgt2=3\n\
                 gemm accumulate=no acc=3 inp=1 count0=2 acc0=2 wgt0=1",
                all(Mem::Inp).min(0xffff),
                all(Mem::Wgt).min(0xffff),
                all(Mem::Acc).min(0xffff),
                uop.len()
            );
            let command = command(&config, &mut fsim, &program);
            let report = fsim.run(&command).expect("runs");
            assert_eq!(report.trap, None);
            results.push(fsim.scratchpad(Mem::Acc, 0, 16).expect("in range"));
        }
        assert!(results.iter().all(|r| *r == results[0]), "{batch} x {block_in} x {block_out}");
    }
}

#[test]
fn taps_are_multiplied_and_accumulated_less_their_zero_points() {
    let mut data = vec![0u8; 0x100];
    // One inp row; row 5 of param entry 1, which loads address as entry 9 + 5; the descriptor in entry 2.
    data[..4].copy_from_slice(&[1, 2, 250, 127]);
    data[0x10..0x14].copy_from_slice(&[3, 4, 128, 6]);
    let descriptor = Descriptor { zero_a: -128, zero_b: 7, ..Default::default() };
    data[0x20..0x20 + 36].copy_from_slice(&descriptor.to_bytes());
    data[0x60..0x70].copy_from_slice(&[100i32, -100, 0, i32::MAX].map(i32::to_le_bytes).concat());
    let program = |tap: u32| {
        format!(
            "load mem=inp row_bytes=4\nload mem=param entry=14 offset=16 row_bytes=4\n\
             load mem=param entry=18 offset=32 row_bytes=36\nload mem=vuop offset=128 row_bytes=4\n\
             load mem=acc entry=3 offset=96 row_bytes=16 push=vector\n\
             vector op=mac dst=acc a=inp b=param descriptor=2 count0=2 dst_at=3 b_at={tap} pop=load"
        )
    };
    let (mut fsim, report) = run(&program(16 + 5), &data);
    assert_eq!(report.expect("runs").trap, None);
    let inp = [1, 2, -6, 127];
    let taps = [3, 4, -128, 6];
    let expected: Vec<u8> = [100i32, -100, 0, i32::MAX]
        .iter()
        .enumerate()
        .flat_map(|(c, old)| old.wrapping_add(2 * (inp[c] + 128) * (taps[c] - 7)).to_le_bytes())
        .collect();
    assert_eq!(fsim.scratchpad(Mem::Acc, 3, 1).expect("in range"), expected);
    // An entry has nine rows, so the index of a tenth is out of bounds.
    let (_, report) = run(&program(16 + 9), &data);
    assert_eq!(report.expect("a report").trap.map(|t| t.cause), Some(TrapCause::Scratchpad));
}

#[test]
fn bytes_are_looked_up() {
    // The table fills the first eight of nine rows in eight entries.
    let table: Vec<u8> = (0..=255u8).map(|i| i.wrapping_mul(7).wrapping_add(3)).collect();
    let mut data = vec![0u8; 0x200];
    data[..256].copy_from_slice(&table);
    data[0x100..0x104].copy_from_slice(&[0, 1, 0x80, 0xff]);
    let (mut fsim, report) = run(
        "load mem=param entry=18 row_bytes=32 rows=8 row_stride=32 x_after=1\nload mem=vuop offset=0x180 row_bytes=4\n\
         load mem=inp offset=0x100 row_bytes=4 push=vector\nvector op=lut dst=out a=inp descriptor=2 dst_at=1 pop=load",
        &data,
    );
    assert_eq!(report.expect("runs").trap, None);
    let expected = [0usize, 1, 0x80, 0xff].map(|i| table[i]);
    assert_eq!(fsim.scratchpad(Mem::Out, 1, 1).expect("in range"), expected);
}

#[test]
fn weights_have_a_zero_point() {
    let mut data = vec![0u8; 0x100];
    data[..4].copy_from_slice(&[1, 2, 253, 4]);
    for (i, w) in data[0x10..0x20].iter_mut().enumerate() {
        *w = (i as i8 - 8) as u8;
    }
    let (mut fsim, report) = run(
        "load mem=inp row_bytes=4\nload mem=wgt offset=16 row_bytes=16\nload mem=guop offset=128 row_bytes=2 push=gemm\n\
         gemm accumulate=no wgt_zp=-100 pop=load",
        &data,
    );
    assert_eq!(report.expect("runs").trap, None);
    let expected: Vec<u8> = (0..4)
        .flat_map(|o| {
            let sum: i32 = [1, 2, -3, 4].iter().enumerate().map(|(i, x)| x * (o * 4 + i as i32 - 8 + 100)).sum();
            sum.to_le_bytes()
        })
        .collect();
    assert_eq!(fsim.scratchpad(Mem::Acc, 0, 1).expect("in range"), expected);
}

#[test]
fn simulators_stop_with_the_work_that_uses_them() {
    let config = HwConfig::load("1x4x4").expect("is a preset");
    let program = crate::random::generate(&config, 5, 40);
    let devices: [Box<dyn Device>; 2] = [
        Box::new(Fsim::new(config.clone(), config.memory_bytes())),
        Box::new(crate::Csim::new(config.clone(), config.memory_bytes(), crate::CsimOptions::default())),
    ];
    for mut device in devices {
        program.install(device.as_mut()).expect("it is written");
        let work = interrupt::Interrupt::alone();
        work.during(|| device.run(&program.command())).expect("it runs");
        work.stop();
        let error = work.during(|| device.run(&program.command())).unwrap_err();
        assert!(matches!(error, DeviceError::Interrupted(_)), "{}: {error}", device.name());
        device.run(&program.command()).expect("other work runs");
    }
}
