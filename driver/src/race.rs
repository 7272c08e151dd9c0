//! Checks a finished stream from the stream alone: program order must be a legal execution, and a token path must order
//! any two instructions of different units that conflict.

use crate::access::{self, Footprint, Kernel};
use crate::program::AccelProgram;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{GemmUop, Insn, Op, Unit, VectorUop};

/// A fault of a stream.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// A pop without an earlier push: program order is not a legal execution.
    #[error("instruction {index} pops a token of {} that no earlier instruction has pushed", from.name())]
    PopBeforePush {
        /// Place of the popping instruction.
        index: usize,
        /// The pushing unit.
        from: Unit,
    },
    /// More tokens in flight than a counter holds, with a full queue of the popping unit.
    #[error("instruction {index} pushes more tokens to {} than its counter holds", to.name())]
    Overflow {
        /// Place of the pushing instruction.
        index: usize,
        /// The popping unit.
        to: Unit,
    },
    /// Two conflicting instructions that no token orders.
    #[error("instructions {first} and {second} conflict on {what}, but no token orders them")]
    Race {
        /// The earlier one.
        first: usize,
        /// The later one.
        second: usize,
        /// Memory, bank port or device memory.
        what: String,
    },
    /// An instruction that cannot be decoded, or that would trap.
    #[error("instruction {index}: {what}")]
    Bad {
        /// Place.
        index: usize,
        /// Reason.
        what: String,
    },
}

/// For each instruction, the least number of each unit's instructions that have retired when it starts.
///
/// # Errors
/// Every pop without a push, and every push that could overflow its counter.
pub fn clocks(program: &[Insn], config: &HwConfig) -> Result<Vec<[usize; 4]>, Vec<Fault>> {
    let mut faults = Vec::new();
    let mut pushed: [[Vec<[usize; 4]>; 4]; 4] = Default::default();
    let mut popped = [[0usize; 4]; 4];
    let mut clock = [[0usize; 4]; 4];
    let mut retired = [0usize; 4];
    let mut starts = Vec::new();
    let most = (1usize << config.token_bits) - 1;
    for (index, insn) in program.iter().enumerate() {
        let unit = insn.unit();
        let u = unit as usize;
        for from in insn.pop.iter() {
            let f = from as usize;
            match pushed[f][u].get(popped[f][u]) {
                Some(theirs) => {
                    for (mine, theirs) in clock[u].iter_mut().zip(theirs) {
                        *mine = (*mine).max(*theirs);
                    }
                }
                None => faults.push(Fault::PopBeforePush { index, from }),
            }
            popped[f][u] += 1;
        }
        starts.push(clock[u]);
        retired[u] += 1;
        let mut at_push = clock[u];
        at_push[u] = retired[u];
        for to in insn.push.iter() {
            let t = to as usize;
            pushed[u][t].push(at_push);
            if pushed[u][t].len().saturating_sub(popped[u][t]) + config.queue_depth as usize >= most {
                faults.push(Fault::Overflow { index, to });
            }
        }
    }
    if faults.is_empty() { Ok(starts) } else { Err(faults) }
}

/// Returns what every instruction of a program touches. The contents of micro-op memories follow from the program's own
/// loads.
///
/// # Errors
/// The first instruction that would trap, or whose micro-ops do not come from the constants.
pub fn footprints(program: &AccelProgram, config: &HwConfig) -> Result<(Vec<Insn>, Vec<Footprint>), Fault> {
    let insns = program.decode(config).map_err(|(index, e)| Fault::Bad { index, what: e.to_string() })?;
    let mut memories =
        [Mem::GemmUop, Mem::VectorUop].map(|m| vec![0u8; (config.entries(m) * config.entry_bytes(m)) as usize]);
    let mut found = Vec::new();
    for (index, insn) in insns.iter().enumerate() {
        let bad = |what: String| Fault::Bad { index, what };
        let uops = |memory: &[u8], bytes: u32, first: u32, count: u32| -> Option<Vec<u8>> {
            Some(memory.get((first * bytes) as usize..((first + count) * bytes) as usize)?.to_vec())
        };
        let outside = || bad("micro-ops outside their memory".into());
        let footprint = match &insn.op {
            Op::Gemm(x) => {
                let bytes = config.gemm_uop_bytes();
                let raw = uops(&memories[0], bytes, x.uop, x.uops).ok_or_else(outside)?;
                let kernel: Vec<GemmUop> = raw.chunks(bytes as usize).map(|b| GemmUop::from_bytes(b, config)).collect();
                access::footprint(&insn.op, Kernel::Gemm(&kernel), config)
            }
            Op::Vector(x) => {
                let bytes = config.vector_uop_bytes();
                let raw = uops(&memories[1], bytes, x.uop, x.uops).ok_or_else(outside)?;
                let kernel: Vec<VectorUop> =
                    raw.chunks(bytes as usize).map(|b| VectorUop::from_bytes(b, config)).collect();
                access::footprint(&insn.op, Kernel::Vector(&kernel), config)
            }
            _ => access::footprint(&insn.op, Kernel::None, config),
        };
        let footprint = footprint.map_err(|o| bad(format!("entry {} is outside {}", o.entry, o.mem.name())))?;
        if let (Op::Load(x), Some(dram)) = (&insn.op, &footprint.dram)
            && matches!(x.mem, Mem::GemmUop | Mem::VectorUop)
        {
            let memory = &mut memories[usize::from(x.mem == Mem::VectorUop)];
            let mut at = (x.entry * config.entry_bytes(x.mem)) as usize;
            for span in &dram.spans {
                let (start, end) = (span.start as usize, span.end as usize);
                let source = (dram.base == 0).then(|| program.constants.get(start..end)).flatten();
                let source = source.ok_or_else(|| bad("micro-ops do not come from the constants".into()))?;
                memory
                    .get_mut(at..at + source.len())
                    .ok_or_else(|| bad("micro-ops outside their memory".into()))?
                    .copy_from_slice(source);
                at += source.len();
            }
        }
        found.push(footprint);
    }
    Ok((insns, found))
}

/// Returns why two instructions of different units must not run at the same time, or `None`.
pub fn conflict(a: &Footprint, b: &Footprint, config: &HwConfig) -> Option<String> {
    for x in &a.scratch {
        for y in b.scratch.iter().filter(|y| y.mem == x.mem) {
            if x.write != y.write {
                if x.set.intersects(&y.set) {
                    return Some(format!("entries of {}", x.mem.name()));
                }
            } else {
                let bank = config.entries(x.mem) / config.banks(x.mem);
                if x.set.banks(bank) & y.set.banks(bank) != 0 {
                    let kind = if x.write { "write" } else { "read" };
                    return Some(format!("a {kind} port of {}", x.mem.name()));
                }
            }
        }
    }
    let (x, y) = (a.dram.as_ref()?, b.dram.as_ref()?);
    let meet = x.base == y.base
        && (x.write || y.write)
        && x.spans.iter().any(|s| y.spans.iter().any(|t| s.start < t.end && t.start < s.end));
    meet.then(|| format!("bytes of region {}", x.base))
}

/// Finds every fault of a program. It compares each pair of instructions of different units, so it is meant for
/// programs of a few thousand instructions.
pub fn check(program: &AccelProgram, config: &HwConfig) -> Vec<Fault> {
    let (insns, footprints) = match footprints(program, config) {
        Ok(found) => found,
        Err(fault) => return vec![fault],
    };
    let starts = match clocks(&insns, config) {
        Ok(starts) => starts,
        Err(faults) => return faults,
    };
    let mut ordinals = Vec::new();
    let mut counts = [0usize; 4];
    for insn in &insns {
        ordinals.push(counts[insn.unit() as usize]);
        counts[insn.unit() as usize] += 1;
    }
    let mut faults = Vec::new();
    for second in 0..insns.len() {
        for first in 0..second {
            let unit = insns[first].unit() as usize;
            if unit == insns[second].unit() as usize || starts[second][unit] > ordinals[first] {
                continue;
            }
            if let Some(what) = conflict(&footprints[first], &footprints[second], config) {
                faults.push(Fault::Race { first, second, what });
            }
        }
    }
    faults
}
