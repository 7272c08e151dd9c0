//! Element-wise work on rows.

use super::{Fsim, Stop};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::{
    DESCRIPTOR_BYTES, Descriptor, PARAM_BIAS_ROW, PARAM_MULTIPLIER_ROW, PARAM_ROWS, PARAM_SHIFT_ROW, TABLE_BYTES,
    VecOp, VecSrc, Vector,
};
use tilewright_hw::num::{Requant, quantized_add, quantized_mul, requantize};
use tilewright_hw::regs::TrapCause;

/// Whether an operation's index lies in its memory; of param it counts whole entries, or `mac`'s taps.
pub(crate) fn is_inside(config: &HwConfig, op: VecOp, mem: Mem, index: u64) -> bool {
    if mem != Mem::Param {
        return index < u64::from(config.entries(mem));
    }
    u32::try_from(index).is_ok_and(|index| {
        let (entry, row) = op.param_entry(index);
        entry < config.param_depth && row < PARAM_ROWS
    })
}

/// Visits the indices of dst, a and b of every micro-op of an instruction, in its order, until `visit` stops it. `None`
/// stands for a micro-op outside its memory.
pub(crate) fn for_each_micro_op<E>(
    x: &Vector,
    uops: &[[u32; 3]],
    mut visit: impl FnMut(Option<[u64; 3]>) -> Result<(), E>,
) -> Result<(), E> {
    let wide = |v: [u32; 3]| -> [u64; 3] { [v[0].into(), v[1].into(), v[2].into()] };
    let steps = [[x.dst0, x.a0, x.b0], [x.dst1, x.a1, x.b1], [x.dst2, x.a2, x.b2]].map(wide);
    let on = |at: [u64; 3], by: [u64; 3]| [at[0] + by[0], at[1] + by[1], at[2] + by[2]];
    let mut at0 = wide([x.dst_at, x.a_at, x.b_at]);
    for _ in 0..x.count0 {
        let mut at1 = at0;
        for _ in 0..x.count1 {
            let mut at2 = at1;
            for _ in 0..x.count2 {
                for u in 0..x.uops as usize {
                    visit(uops.get(x.uop as usize + u).map(|uop| on(wide(*uop), at2)))?;
                }
                at2 = on(at2, steps[2]);
            }
            at1 = on(at1, steps[1]);
        }
        at0 = on(at0, steps[0]);
    }
    Ok(())
}

impl Fsim {
    pub(super) fn vector(&mut self, x: &Vector) -> Result<(), Stop> {
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
        let dst_mem = x.dst.mem();
        let a_mem = x.a.mem();
        let b_mem = x.b.mem();
        let mut written = x.op.is_deep().then(|| vec![false; self.config.entries(dst_mem) as usize]);
        let n = self.config.row_elements() as usize;
        let (mut a, mut b, mut result) = (vec![0; n], vec![0; n], vec![0; n]);
        if x.b == VecSrc::Scalar {
            b.fill(descriptor.scalar);
        }
        // The parameters of one entry serve many rows; nothing changes them while an instruction runs.
        let (mut held, mut requants) = (None, Vec::new());
        // The micro-ops are taken out so that the walk over them may change the other memories.
        let uops = std::mem::take(&mut self.state.vector_uops);
        let mut done = 0;
        let end = for_each_micro_op(x, &uops, |index| {
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
                            "{} reads {name} from entry {at} of {}, which this instruction wrote before; deep \
                             operations do not forward, so split the instruction",
                            x.op.name(),
                            dst_mem.name()
                        )));
                    }
                }
                written[dst_at as usize] = true;
            }
            self.read_row(x.a, a_at, &mut a);
            match x.op {
                VecOp::Requant if held == Some(b_at) => {}
                VecOp::Requant => {
                    requants = self.requants(x, &descriptor, b_at);
                    held = Some(b_at);
                }
                VecOp::Mac => {
                    self.read_row(VecSrc::Acc, dst_at, &mut result);
                    self.read_taps(b_at, &mut b);
                }
                _ => self.read_row(x.b, b_at, &mut b),
            }
            self.compute(x, (&descriptor, &table), &requants, [&a, &b], &mut result);
            self.write_row(dst_mem, dst_at, &result);
            done += 1;
            Ok(())
        });
        self.state.vector_uops = uops;
        end
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

    /// The taps of each channel at index `at` of param, for every row of the batch.
    fn read_taps(&self, at: u32, row: &mut [i32]) {
        let (entry, tap) = VecOp::Mac.param_entry(at);
        let outputs = self.config.block_out as usize;
        for (e, value) in row.iter_mut().enumerate() {
            *value = i32::from(self.param_byte(entry, tap, e % outputs) as i8);
        }
    }

    /// Byte `row` of channel `o` in a param entry.
    fn param_byte(&self, entry: u32, row: u32, o: usize) -> u8 {
        let outputs = self.config.block_out as usize;
        self.state.param[(entry * PARAM_ROWS + row) as usize * outputs + o]
    }

    fn param_word(&self, entry: u32, row: u32, o: usize) -> i32 {
        i32::from_le_bytes([0, 1, 2, 3].map(|i| self.param_byte(entry, row + i, o)))
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
                let outputs = self.config.block_out as usize;
                for (e, value) in row.iter_mut().enumerate() {
                    *value = self.param_word(entry, PARAM_BIAS_ROW, e % outputs);
                }
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
            _ => {
                narrow(&mut self.state.inp[at..at + row.len()]);
                self.state.inp_stale.add(entry as usize, entry as usize + 1);
            }
        }
    }

    /// The requantization of each channel by a param entry.
    fn requants(&self, x: &Vector, d: &Descriptor, entry: u32) -> Vec<Requant> {
        (0..self.config.block_out as usize)
            .map(|o| Requant {
                bias: self.param_word(entry, PARAM_BIAS_ROW, o),
                multiplier: self.param_word(entry, PARAM_MULTIPLIER_ROW, o),
                shift: self.param_byte(entry, PARAM_SHIFT_ROW, o) as i8,
                zero_point: d.zero_point,
                lo: d.lo,
                hi: d.hi,
                mode: x.mode,
            })
            .collect()
    }

    /// The results of a row's elements; for `mac`, `result` holds the destination's row.
    fn compute(
        &self,
        x: &Vector,
        (d, table): (&Descriptor, &[i8; TABLE_BYTES]),
        requants: &[Requant],
        [a, b]: [&[i32]; 2],
        result: &mut [i32],
    ) {
        let both = result.iter_mut().zip(a.iter().zip(b));
        match x.op {
            VecOp::Requant => {
                for (y, (a, r)) in result.iter_mut().zip(a.iter().zip(requants.iter().cycle())) {
                    *y = requantize(*a, r);
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
                // The decoder lets only operations through that the configuration builds, all of which have a meaning.
                if let Some(simple) = op.simple() {
                    both.for_each(|(y, (a, b))| *y = simple(*a, *b));
                }
            }
        }
    }
}
