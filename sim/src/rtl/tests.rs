//! Tests registers the way a board driver uses them, without the device's own queue.

use super::*;
use crate::functional::Fsim;
use crate::random::{MEMORY_BYTES, generate, sample_config};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use std::time::Duration;
use tilewright_hw::device::Device;
use tilewright_hw::interrupt::Interrupt;
use tilewright_hw::isa::{encode, parse_program};

/// Builds a small design, the same that the differential test builds first.
fn device() -> Option<Rtl> {
    if !tilewright_testing::has_program("verilator") {
        return None;
    }
    let config = sample_config(&mut SmallRng::seed_from_u64(1000));
    // Slow enough that the first command still runs while the others are queued.
    let dram = DramSection { latency: 200, ..config.dram };
    let options = RtlOptions { assertions: true, dram: Some(dram), ..RtlOptions::default() };
    Some(Rtl::new(config, MEMORY_BYTES, &options).expect("the design builds"))
}

impl Rtl {
    fn ring_the_doorbell(&mut self, stream_addr: u64, insns: u32) {
        self.bench.write_reg(regs::STREAM_ADDR_LO, stream_addr as u32);
        self.bench.write_reg(regs::STREAM_ADDR_HI, (stream_addr >> 32) as u32);
        self.bench.write_reg(regs::STREAM_INSNS, insns);
        self.bench.write_reg(regs::DOORBELL, 1);
    }

    fn free_places(&mut self) -> u32 {
        self.bench.read_reg(regs::STATUS) >> 8 & 0xff
    }

    /// Runs until `completed` commands have completed since the reset.
    fn run_to(&mut self, completed: u32) {
        for _ in 0..self.config.ring_entries() + 2 {
            if self.bench.read_reg(regs::COMPLETION) == completed {
                return;
            }
            self.bench.write_reg(regs::IRQ_CLEAR, 1);
            assert_eq!(self.bench.run(100_000), RunEnd::Stopped);
        }
        panic!("{} of {completed} commands have completed", self.bench.read_reg(regs::COMPLETION));
    }
}

/// Writes streams that each copy four bytes that the previous one wrote. Returns their addresses.
fn chain(rtl: &mut Rtl, links: u64) -> Vec<u64> {
    let config = rtl.config.clone();
    (0..links)
        .map(|k| {
            let (from, to) = (4 * k, 4 * (k + 1));
            let text = format!(
                "load mem=out row_bytes=4 offset={from} push=store\nstore mem=out row_bytes=4 offset={to} pop=load"
            );
            let insns = parse_program(&text).expect("a program");
            let bytes: Vec<u8> = insns.iter().flat_map(|insn| encode(insn, &config).expect("fits")).collect();
            let at = 0x8000 + 0x100 * k;
            rtl.write(at, &bytes).expect("inside memory");
            at
        })
        .collect()
}

#[test]
fn commands_wait_in_the_ring() {
    let Some(mut rtl) = device() else { return };
    // One command runs, the ring holds the others, and one more is rejected.
    let ring = rtl.config.ring_entries();
    let queued = ring + 1;
    let streams = chain(&mut rtl, u64::from(queued) + 1);
    rtl.write(0, &[1, 2, 3, 4]).expect("inside memory");
    rtl.write_base(0, Base { addr: 0, limit: 0x1000 });
    for (k, stream) in streams.iter().enumerate() {
        rtl.ring_the_doorbell(*stream, 2);
        let waiting = (k as u32).min(ring);
        assert_eq!(rtl.free_places(), ring - waiting, "after doorbell {k}");
    }
    rtl.run_to(queued);
    let end = 4 * (queued as usize + 1);
    assert_eq!(rtl.memory()[..end], [1, 2, 3, 4].repeat(queued as usize + 1));
    assert_eq!(rtl.memory()[end..end + 4], [0; 4], "the last doorbell found the ring full");
    assert_eq!((rtl.bench.read_reg(regs::STATUS) & 7, rtl.free_places()), (4, ring));
}

#[test]
fn a_trap_empties_the_ring() {
    let Some(mut rtl) = device() else { return };
    let ring = rtl.config.ring_entries();
    let streams = chain(&mut rtl, 3);
    rtl.write(0, &[1, 2, 3, 4]).expect("inside memory");
    // The first store is out of bounds.
    rtl.write_base(0, Base { addr: 0, limit: 4 });
    for stream in &streams {
        rtl.ring_the_doorbell(*stream, 2);
    }
    assert_eq!(rtl.bench.run(100_000), RunEnd::Stopped);
    assert_eq!(rtl.bench.read_reg(regs::TRAP_CAUSE), regs::TrapCause::Limit as u32);
    assert_eq!(rtl.bench.read_reg(regs::COMPLETION), 0);
    rtl.soft_reset().expect("is reset");
    assert_eq!((rtl.bench.read_reg(regs::STATUS), rtl.free_places()), (ring << 8, ring));
    // Bases survive a soft reset. Waiting commands do not run.
    rtl.write_base(0, Base { addr: 0, limit: 0x1000 });
    rtl.ring_the_doorbell(streams[0], 2);
    rtl.run_to(1);
    assert_eq!(rtl.memory()[..12], [1, 2, 3, 4, 1, 2, 3, 4, 0, 0, 0, 0]);
}

#[test]
fn a_soft_reset_ends_a_run_in_any_cycle() {
    let Some(mut rtl) = device() else { return };
    let mut fsim = Fsim::new(rtl.config.clone(), MEMORY_BYTES);
    for seed in 0..40 {
        let (cut, whole) = (generate(&rtl.config, seed, 12), generate(&rtl.config, seed + 1000, 12));
        let command = Command { cycle_limit: Some(40 + 37 * seed), ..cut.command() };
        cut.install(&mut rtl).expect("inside memory");
        let outcome = rtl.run(&command);
        assert!(matches!(outcome, Err(DeviceError::CycleLimit { .. })), "seed {seed}: {outcome:?}");
        let reports = [&mut rtl as &mut dyn Device, &mut fsim].map(|device| {
            whole.install(device).expect("inside memory");
            device.run(&whole.command()).expect("a report")
        });
        assert_eq!((reports[0].trap, reports[0].retired), (None, reports[1].retired), "seed {seed}\n{}", whole.text());
        assert_eq!(rtl.memory(), fsim.memory(), "seed {seed}\n{}", whole.text());
    }
}

#[test]
fn a_run_stops_with_its_work_in_any_cycle() {
    let Some(mut rtl) = device() else { return };
    let mut fsim = Fsim::new(rtl.config.clone(), MEMORY_BYTES);
    for seed in 0..20 {
        let (cut, whole) = (generate(&rtl.config, seed, 60), generate(&rtl.config, seed + 1000, 12));
        cut.install(&mut rtl).expect("inside memory");
        let work = Interrupt::alone();
        let outcome = std::thread::scope(|scope| {
            if seed == 0 {
                work.stop();
            } else {
                scope.spawn(|| {
                    std::thread::sleep(Duration::from_micros(200 * seed));
                    work.stop();
                });
            }
            work.during(|| rtl.run(&cut.command()))
        });
        // A short run can end before.
        let stopped = matches!(outcome, Err(DeviceError::Interrupted(_)));
        assert!(stopped || outcome.is_ok() && seed > 0, "seed {seed}: {outcome:?}");
        let reports = [&mut rtl as &mut dyn Device, &mut fsim].map(|device| {
            cut.install(device).expect("inside memory");
            device.run(&cut.command()).expect("a report");
            whole.install(device).expect("inside memory");
            device.run(&whole.command()).expect("a report")
        });
        assert_eq!((reports[0].trap, reports[0].retired), (None, reports[1].retired), "seed {seed}");
        assert_eq!(rtl.memory(), fsim.memory(), "seed {seed}");
    }
}
