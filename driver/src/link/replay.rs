//! Decides whether a command can be run again after part of it ran.

use crate::access::{Kernel, footprint};
use crate::set::EntrySet;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::Command;
use tilewright_hw::isa::{Decoder, GemmUop, INSN_BYTES, Load, Op, VectorUop};

/// Whether a command reads only those entries of scratchpads and micro-op memories that it has written itself, so that
/// what part of an earlier run left there does not matter. `memory` is as it was before the command. A command that
/// cannot be analyzed does not count as self-contained.
pub fn is_self_contained(command: &Command, memory: &[u8], config: &HwConfig) -> bool {
    follow(command, memory, config).is_some()
}

fn follow(command: &Command, memory: &[u8], config: &HwConfig) -> Option<()> {
    let range = command.stream();
    let stream = memory.get(usize::try_from(range.start).ok()?..usize::try_from(range.end).ok()?)?;
    let decoder = Decoder::new(config);
    let mut written = Mem::ALL.map(|mem| EntrySet::new(config.entries(mem)));
    let mut uops =
        [Mem::GemmUop, Mem::VectorUop].map(|m| vec![0u8; (config.entries(m) * config.entry_bytes(m)) as usize]);
    for bytes in stream.as_chunks::<INSN_BYTES>().0 {
        let op = decoder.decode(bytes).ok()?.op;
        let found = match &op {
            Op::Gemm(x) => {
                let bytes = config.gemm_uop_bytes() as usize;
                let raw = entries(&uops[0], x.uop, x.uops, bytes)?;
                let kernel: Vec<GemmUop> = raw.chunks(bytes).map(|b| GemmUop::from_bytes(b, config)).collect();
                footprint(&op, Kernel::Gemm(&kernel), config)
            }
            Op::Vector(x) => {
                let bytes = config.vector_uop_bytes() as usize;
                let raw = entries(&uops[1], x.uop, x.uops, bytes)?;
                let kernel: Vec<VectorUop> = raw.chunks(bytes).map(|b| VectorUop::from_bytes(b, config)).collect();
                footprint(&op, Kernel::Vector(&kernel), config)
            }
            _ => footprint(&op, Kernel::None, config),
        }
        .ok()?;
        let known = found.scratch.iter().filter(|t| !t.write).all(|t| written[t.mem as usize].covers(&t.set));
        if !known {
            return None;
        }
        match &op {
            Op::Load(x) if x.pack => whole_entries(x, config, &mut written[x.mem as usize]),
            _ => found.scratch.iter().filter(|t| t.write).for_each(|t| written[t.mem as usize].insert_all(&t.set)),
        }
        if let (Op::Load(x), Some(dram)) = (&op, &found.dram)
            && matches!(x.mem, Mem::GemmUop | Mem::VectorUop)
        {
            let base = command.bases.get(x.base as usize)?;
            let to = &mut uops[usize::from(x.mem == Mem::VectorUop)];
            let mut at = (x.entry * config.entry_bytes(x.mem)) as usize;
            for span in &dram.spans {
                let start = usize::try_from(base.addr.checked_add(span.start)?).ok()?;
                let source = memory.get(start..start.checked_add((span.end - span.start) as usize)?)?;
                to.get_mut(at..at + source.len())?.copy_from_slice(source);
                at += source.len();
            }
        }
    }
    Some(())
}

fn entries(memory: &[u8], first: u32, count: u32, bytes: usize) -> Option<&[u8]> {
    memory.get(first as usize * bytes..(first as usize + count as usize) * bytes)
}

/// The entries that a packed load writes completely; in other entries it keeps bytes.
fn whole_entries(x: &Load, config: &HwConfig, written: &mut EntrySet) {
    let size = u64::from(config.entry_bytes(x.mem));
    for plane in 0..u64::from(x.z_before + x.planes + x.z_after) {
        for row in 0..u64::from(x.y_before + x.rows + x.y_after) {
            let start = u64::from(x.entry) * size
                + u64::from(x.pack_byte)
                + row * u64::from(x.pack_row_stride)
                + plane * u64::from(x.pack_plane_stride);
            let end = start + u64::from(x.x_before + x.row_bytes + x.x_after);
            let end = if x.fill { end.next_multiple_of(size) } else { end };
            for entry in start.div_ceil(size)..end / size {
                // The load's footprint was found to be inside the memory.
                let _ = written.insert(entry);
            }
        }
    }
}
