//! What an instrumented design runs, so that the compiler lays out its code by what is done often: streams of products
//! under loads, as compiled networks have them, and random programs for everything else.

use super::Rtl;
use crate::random::{self, generate};
use tilewright_hw::config::Mem;
use tilewright_hw::device::{Base, Command, Device, DeviceError};
use tilewright_hw::isa::{GemmUop, WidthName, encode, parse_program};

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

/// Four micro-ops under two loops, while load fills entries that nobody reads.
fn products(rtl: &mut Rtl) -> Result<(), DeviceError> {
    let config = rtl.config.clone();
    let uops: Vec<u8> = (0..4).flat_map(|k| GemmUop { acc: k % 2, inp: k % 2, wgt: k % 2 }.to_bytes(&config)).collect();
    let entry = config.entry_bytes(Mem::Inp);
    let rows = (config.entries(Mem::Inp) / 2).min(64);
    let count = ((1u64 << config.width(WidthName::Loop)) - 1).min(500);
    let text = format!(
        "load mem=guop row_bytes={} push=gemm\n\
         gemm uops=4 count0={count} count1=20 acc=0 pop=load\n\
         load mem=inp entry={} row_bytes={entry} rows={rows} row_stride={entry}\n",
        uops.len(),
        config.entries(Mem::Inp) - rows,
    );
    // Both lines are within every configuration's fields; where one were not, the profile would only be poorer.
    let Ok(lines) = parse_program(&text) else { return Ok(()) };
    let mut insns = vec![lines[0], lines[1]];
    insns.extend(std::iter::repeat_n(lines[2], 100));
    let Ok(stream) = insns.iter().map(|insn| encode(insn, &config)).collect::<Result<Vec<_>, _>>() else {
        return Ok(());
    };
    rtl.write(0, &uops)?;
    rtl.write(MEMORY_BYTES / 2, &stream.concat())?;
    let bases = vec![Base { addr: 0, limit: MEMORY_BYTES / 2 }];
    let command =
        Command { stream_addr: MEMORY_BYTES / 2, insns: insns.len() as u32, bases, cycle_limit: Some(1 << 24) };
    rtl.run(&command).map(drop)
}
