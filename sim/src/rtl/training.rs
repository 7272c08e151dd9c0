//! The workload of an instrumented design, by which the compiler lays out frequent code: products during loads, as in
//! compiled networks, and random programs for everything else.

use super::Rtl;
use crate::random::{self, generate};
use tilewright_hw::config::Mem;
use tilewright_hw::device::{Base, Command, Device, DeviceError};
use tilewright_hw::isa::{Gemm, GemmUop, Insn, Load, Unit, UnitSet, WidthName, encode};

/// Device memory that the training needs.
pub(super) const MEMORY_BYTES: u64 = random::MEMORY_BYTES;
const PROGRAMS: u64 = 6;
const LENGTH: usize = 40;

/// Runs the programs and writes the profile.
pub(super) fn train(rtl: &mut Rtl) -> Result<(), DeviceError> {
    for seed in 0..PROGRAMS {
        let program = generate(&rtl.config, seed, LENGTH);
        program.install(rtl)?;
        rtl.run(&program.command())?;
    }
    products(rtl)?;
    rtl.dump_profile()
}

/// Runs four micro-ops in two loops while load fills entries that nothing reads.
fn products(rtl: &mut Rtl) -> Result<(), DeviceError> {
    let config = rtl.config.clone();
    let uops: Vec<u8> = (0..4).flat_map(|k| GemmUop { acc: k % 2, inp: k % 2, wgt: k % 2 }.to_bytes(&config)).collect();
    let entry = config.entry_bytes(Mem::Inp);
    let rows = (config.entries(Mem::Inp) / 2).min(64);
    let count0 = ((1u64 << config.width(WidthName::Loop)) - 1).min(500) as u32;
    let first = Load { mem: Mem::GemmUop, row_bytes: uops.len() as u32, ..Load::default() };
    let gemm = Gemm { uops: 4, count0, count1: 20, ..Gemm::default() };
    let more = Load {
        entry: config.entries(Mem::Inp) - rows,
        row_bytes: entry,
        rows,
        row_stride: entry.into(),
        ..Load::default()
    };
    let only = |unit: Unit| UnitSet::from_iter([unit]);
    let mut insns =
        vec![Insn { push: only(Unit::Gemm), ..Insn::new(first) }, Insn { pop: only(Unit::Load), ..Insn::new(gemm) }];
    insns.extend(std::iter::repeat_n(Insn::new(more), 100));
    let stream = insns.iter().map(|insn| encode(insn, &config)).collect::<Result<Vec<_>, _>>();
    let stream = stream.map_err(|e| DeviceError::Tool {
        tool: "the training of the Verilated design".into(),
        reason: e.to_string(),
        remedy: "this is a bug in the training; report it with the configuration".into(),
    })?;
    rtl.write(0, &uops)?;
    rtl.write(MEMORY_BYTES / 2, &stream.concat())?;
    let bases = vec![Base { addr: 0, limit: MEMORY_BYTES / 2 }];
    let command =
        Command { stream_addr: MEMORY_BYTES / 2, insns: insns.len() as u32, bases, cycle_limit: Some(1 << 24) };
    rtl.run(&command).map(drop)
}
