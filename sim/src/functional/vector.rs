//! Element-wise operations on rows.

#[cfg(target_arch = "x86_64")]
mod lanes;
mod plan;

use self::plan::Plan;
#[cfg(target_arch = "x86_64")]
use super::kernel::Kernel;
use super::loops::Affine;
use super::{Fsim, Stop};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{DESCRIPTOR_BYTES, Descriptor, PARAM_ROWS, TABLE_BYTES, VecOp, VecSrc, Vector};
use tilewright_hw::num::{Requant, quantized_add, quantized_mul, requantize};
use tilewright_hw::regs::TrapCause;

/// Returns whether an operation's index is in bounds. In param, it counts whole entries, or taps for `mac`.
pub(crate) fn is_inside(config: &HwConfig, op: VecOp, mem: Mem, index: u64) -> bool {
    if mem != Mem::Param {
        return index < u64::from(config.entries(mem));
    }
    u32::try_from(index).is_ok_and(|index| {
        let (entry, row) = op.param_entry(index);
        entry < config.param_depth && row < PARAM_ROWS
    })
}

/// The constants that an instruction reads before its first micro-op.
struct Constants {
    descriptor: Descriptor,
    table: [i8; TABLE_BYTES],
}

/// Rows of both operands and of the results, widened to 32 bits.
struct Scratch {
    a: Vec<i32>,
    b: Vec<i32>,
    result: Vec<i32>,
}

impl Scratch {
    fn new(config: &HwConfig, x: &Vector, constants: &Constants) -> Scratch {
        let zeros = vec![0; config.row_elements() as usize];
        let mut b = zeros.clone();
        if x.b == VecSrc::Scalar {
            b.fill(constants.descriptor.scalar);
        }
        Scratch { a: zeros.clone(), b, result: zeros }
    }
}

/// Builds the requantization of a channel from its bias, multiplier and shift.
fn requant(x: &Vector, d: &Descriptor, [bias, multiplier, shift]: [i32; 3]) -> Requant {
    Requant { bias, multiplier, shift: shift as i8, zero_point: d.zero_point, lo: d.lo, hi: d.hi, mode: x.mode }
}

impl Fsim {
    pub(super) fn vector(&mut self, x: &Vector, most: u64) -> Result<(), Stop> {
        let (mut descriptor, mut table) = (Descriptor::default(), [0; TABLE_BYTES]);
        if x.op.needs_descriptor(x.b) {
            if x.descriptor + self.config.constant_entries(x.op) > self.config.param_depth {
                return Err(Stop::Constants);
            }
            if x.op == VecOp::Lut {
                table = self.table(x.descriptor);
            } else {
                descriptor = self.descriptor(x.descriptor);
            }
        }
        // Take the micro-ops out, so that running them can borrow the other memories mutably.
        let uops = std::mem::take(&mut self.state.vector_uops);
        let constants = Constants { descriptor, table };
        let end = match Plan::new(&self.config, x, &uops) {
            Some(_) if x.micro_ops() > most => Err(Stop::Limit),
            Some(plan) => {
                self.planned(x, &plan, &constants);
                Ok(())
            }
            None => self.checked(x, &uops, &constants, most),
        };
        self.state.vector_uops = uops;
        end
    }

    /// Runs an instruction whose rows are all known to follow the rules.
    fn planned(&mut self, x: &Vector, plan: &Plan, constants: &Constants) {
        if let Some(entries) = plan.entries(x.b.mem(), Mem::Param)
            && x.op != VecOp::Mac
        {
            self.state.refresh_words(entries);
        }
        if !self.on_lanes(x, plan, constants) {
            let mut scratch = Scratch::new(&self.config, x, constants);
            plan.loops.for_each(|index| self.row(x, constants, index.map(|i| i as u32), &mut scratch));
        }
        if let Some(entries) = plan.entries(Some(x.dst.mem()), Mem::Inp) {
            self.state.changed_inp(entries);
        }
    }

    /// Runs it on as many elements at once as the machine's registers hold. Returns `false` if the machine or the
    /// instruction's constants do not allow it.
    #[cfg(target_arch = "x86_64")]
    fn on_lanes(&mut self, x: &Vector, plan: &Plan, constants: &Constants) -> bool {
        let sizes = [self.config.row_elements(), self.config.block_out];
        // SAFETY: `Kernel::is_usable` found the instructions, and block_out a multiple of the lane count; a plan's
        // indices are in bounds.
        unsafe {
            match self.kernel {
                Kernel::Avx512 => lanes::run_avx512(x, plan, constants, &mut self.state, sizes),
                Kernel::Avx2 => lanes::run_avx2(x, plan, constants, &mut self.state, sizes),
                Kernel::Portable => false,
            }
        }
    }

    #[cfg(not(target_arch = "x86_64"))]
    fn on_lanes(&mut self, _: &Vector, _: &Plan, _: &Constants) -> bool {
        false
    }

    /// Runs an instruction row by row, up to the first row that breaks a rule or exceeds `most`.
    fn checked(&mut self, x: &Vector, uops: &[[u32; 3]], constants: &Constants, most: u64) -> Result<(), Stop> {
        let dst_mem = x.dst.mem();
        let a_mem = x.a.mem();
        let b_mem = x.b.mem();
        let mut written = x.op.is_deep().then(|| vec![false; self.config.entries(dst_mem) as usize]);
        let mut scratch = Scratch::new(&self.config, x, constants);
        let mut done = 0;
        Affine::from(x).for_each(uops, |_, index| {
            if done == most {
                return Err(Stop::Limit);
            }
            let trap = |cause| Err(Stop::MicroOp(done, cause));
            let Some(index) = index else { return trap(TrapCause::Scratchpad) };
            for (index, mem) in index.iter().zip([Some(dst_mem), a_mem, b_mem]) {
                if mem.is_some_and(|m| !is_inside(&self.config, x.op, m, *index)) {
                    return trap(TrapCause::Scratchpad);
                }
            }
            let [dst_at, a_at, b_at] = index.map(|i| i as u32);
            if let (Some(am), Some(bm)) = (a_mem, b_mem)
                && am == bm
                && self.config.bank_of(am, a_at) == self.config.bank_of(bm, b_at)
            {
                return trap(TrapCause::Collision);
            }
            if let Some(written) = &mut written {
                for (name, mem, at) in [("a", a_mem, a_at), ("b", b_mem, b_at)] {
                    if mem == Some(dst_mem) && written[at as usize] {
                        return Err(Stop::Program(format!(
                            "{} reads {name} from entry {at} of {}, which this instruction has already written; deep \
                             operations do not forward, so split the instruction",
                            x.op.name(),
                            dst_mem.name()
                        )));
                    }
                }
                written[dst_at as usize] = true;
            }
            if b_mem == Some(Mem::Param) && x.op != VecOp::Mac {
                self.state.refresh_words(b_at as usize..b_at as usize + 1);
            }
            if dst_mem == Mem::Inp {
                self.state.changed_inp(dst_at as usize..dst_at as usize + 1);
            }
            self.row(x, constants, [dst_at, a_at, b_at], &mut scratch);
            done += 1;
            Ok(())
        })
    }

    /// Runs one row: reads the operands, computes, and writes the results.
    fn row(&mut self, x: &Vector, constants: &Constants, [dst, a, b]: [u32; 3], scratch: &mut Scratch) {
        self.read_row(x.a, a, &mut scratch.a);
        match x.op {
            VecOp::Requant => {}
            VecOp::Mac => {
                self.read_row(VecSrc::Acc, dst, &mut scratch.result);
                self.read_taps(b, &mut scratch.b);
            }
            _ => self.read_row(x.b, b, &mut scratch.b),
        }
        self.compute(x, constants, b, scratch);
        self.write_row(x.dst.mem(), dst, &scratch.result);
    }

    fn descriptor(&self, entry: u32) -> Descriptor {
        let at = (entry * self.config.param_entry_bytes()) as usize;
        let mut bytes = [0; DESCRIPTOR_BYTES];
        bytes.copy_from_slice(&self.state.param[at..at + DESCRIPTOR_BYTES]);
        Descriptor::from_bytes(&bytes)
    }

    fn table(&self, entry: u32) -> [i8; TABLE_BYTES] {
        let (whole, part) = (self.config.param_entry_bytes() as usize, self.config.table_entry_bytes() as usize);
        let mut table = [0; TABLE_BYTES];
        for (k, bytes) in table.chunks_mut(part).enumerate() {
            let at = (entry as usize + k) * whole;
            for (to, from) in bytes.iter_mut().zip(&self.state.param[at..]) {
                *to = *from as i8;
            }
        }
        table
    }

    /// Reads each channel's tap at index `at` of param, repeated for every row of the batch.
    fn read_taps(&self, at: u32, row: &mut [i32]) {
        let (entry, tap) = VecOp::Mac.param_entry(at);
        let outputs = self.config.block_out as usize;
        let taps = &self.state.param[(entry * PARAM_ROWS + tap) as usize * outputs..][..outputs];
        for (value, byte) in row.iter_mut().zip(taps.iter().cycle()) {
            *value = i32::from(*byte as i8);
        }
    }

    /// Returns bias, multiplier and shift of each channel in a param entry, `[3][block_out]`.
    fn words(&self, entry: u32) -> &[i32] {
        let words = 3 * self.config.block_out as usize;
        &self.state.words()[entry as usize * words..][..words]
    }

    fn read_row(&self, source: VecSrc, entry: u32, row: &mut [i32]) {
        let n = row.len();
        let at = entry as usize * n;
        let widen = |row: &mut [i32], bytes: &[u8]| {
            for (wide, byte) in row.iter_mut().zip(bytes) {
                *wide = i32::from(*byte as i8);
            }
        };
        match source {
            VecSrc::Acc => row.copy_from_slice(&self.state.acc[at..at + n]),
            VecSrc::Out => widen(row, &self.state.out[at..at + n]),
            VecSrc::Inp => widen(row, &self.state.inp[at..at + n]),
            VecSrc::Param => {
                let biases = &self.words(entry)[..self.config.block_out as usize];
                row.iter_mut().zip(biases.iter().cycle()).for_each(|(value, bias)| *value = *bias);
            }
            VecSrc::Scalar | VecSrc::None => {}
        }
    }

    fn write_row(&mut self, mem: Mem, entry: u32, row: &[i32]) {
        let at = entry as usize * row.len();
        let narrow = |bytes: &mut [u8]| {
            for (byte, value) in bytes.iter_mut().zip(row) {
                *byte = (*value).clamp(i8::MIN.into(), i8::MAX.into()) as u8;
            }
        };
        match mem {
            Mem::Acc => self.state.acc[at..at + row.len()].copy_from_slice(row),
            Mem::Out => narrow(&mut self.state.out[at..at + row.len()]),
            _ => narrow(&mut self.state.inp[at..at + row.len()]),
        }
    }

    /// Computes the results of a row. For `requant`, `b` is the param entry. For `mac`, the results must already hold
    /// the destination's row.
    fn compute(&self, x: &Vector, Constants { descriptor: d, table }: &Constants, b: u32, scratch: &mut Scratch) {
        let both = scratch.result.iter_mut().zip(scratch.a.iter().zip(&scratch.b));
        match x.op {
            VecOp::Requant => {
                let words = self.words(b);
                let n = self.config.block_out as usize;
                let channels = words[..n].iter().zip(&words[n..2 * n]).zip(&words[2 * n..]);
                for ((y, (a, _)), ((bias, multiplier), shift)) in both.zip(channels.cycle()) {
                    *y = requantize(*a, &requant(x, d, [*bias, *multiplier, *shift]));
                }
            }
            VecOp::Mul => {
                let r = d.product(x.mode);
                both.for_each(|(y, (a, b))| *y = quantized_mul(*a, *b, d.zero_a.into(), d.zero_b.into(), &r));
            }
            VecOp::Qadd => {
                let q = d.qadd();
                both.for_each(|(y, (a, b))| *y = quantized_add(*a, *b, &q));
            }
            VecOp::Mac => both.for_each(|(y, (a, b))| {
                *y = y.wrapping_add((a - i32::from(d.zero_a)) * (b - i32::from(d.zero_b)));
            }),
            VecOp::Lut => both.for_each(|(y, (a, _))| *y = table[usize::from(*a as u8)].into()),
            VecOp::Clip => both.for_each(|(y, (a, _))| *y = d.lo.max(d.hi.min(*a))),
            op => {
                // The decoder accepts only operations that the configuration builds, and all the remaining ones are
                // simple.
                if let Some(simple) = op.simple() {
                    both.for_each(|(y, (a, b))| *y = simple(*a, *b));
                }
            }
        }
    }
}

#[cfg(test)]
mod tests;
