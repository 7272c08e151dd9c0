//! Matrix products: the loops around the micro-ops, their checks, and the copies that the kernels read.

use super::kernel::{Operands, Walk};
use super::{Fsim, Stop};
use tilewright_hw::device::RunReport;
use tilewright_hw::isa::Gemm;
use tilewright_hw::regs::TrapCause;

impl Fsim {
    pub(super) fn gemm(&mut self, x: &Gemm, report: &mut RunReport) -> Result<(), Stop> {
        self.refresh();
        let depth = self.state.gemm_uops.len();
        let last_uop = x.uop as usize + x.uops as usize;
        let in_memory = last_uop.min(depth);
        let uops = &self.state.gemm_uops[(x.uop as usize).min(depth)..in_memory];
        let walk = Walk {
            uops,
            counts: [x.count0, x.count1, x.count2],
            base: [x.acc, x.inp, x.wgt],
            steps: [[x.acc0, x.inp0, x.wgt0], [x.acc1, x.inp1, x.wgt1], [x.acc2, x.inp2, x.wgt2]],
            accumulate: x.accumulate,
            wgt_zp: x.wgt_zp,
        };
        let depths = [self.config.acc_depth, self.config.inp_depth, self.config.wgt_depth];
        let mut operands = Operands {
            acc: &mut self.state.acc,
            inp: &self.state.inp_wide,
            wgt: &self.state.wgt_wide,
            batch: self.config.batch as usize,
            block_in: self.config.block_in as usize,
            block_out: self.config.block_out as usize,
        };
        let passes = x.count0 as u64 * x.count1 as u64 * x.count2 as u64;
        // Indices only grow with the loops, so the last pass decides whether any of them leaves its memory.
        if last_uop <= depth && walk.last_indices_fit(depths) {
            self.kernel.run(&walk, &mut operands);
            report.macs += passes * u64::from(x.uops) * self.config.macs_per_cycle();
            return Ok(());
        }
        Err(Stop::MicroOp(walk.run_checked(x.uops as usize, depths, &mut operands), TrapCause::Scratchpad))
    }

    /// Brings the widened copies of inp and wgt up to date.
    fn refresh(&mut self) {
        let state = &mut self.state;
        let stale = std::mem::take(&mut state.inp_stale);
        let entry = (self.config.batch * self.config.block_in) as usize;
        let range = stale.from * entry..stale.to * entry;
        for (wide, byte) in state.inp_wide[range.clone()].iter_mut().zip(&state.inp[range]) {
            *wide = i16::from(*byte as i8);
        }
        let stale = std::mem::take(&mut state.wgt_stale);
        let (inputs, outputs) = (self.config.block_in as usize, self.config.block_out as usize);
        let entry = inputs * outputs;
        let range = stale.from * entry..stale.to * entry;
        let tiles = state.wgt_wide[range.clone()].chunks_exact_mut(entry).zip(state.wgt[range].chunks_exact(entry));
        for (wide, tile) in tiles {
            // Pairs of inputs, within a pair the outputs, so that one multiply-add instruction serves many outputs.
            for (pair, wide) in wide.chunks_exact_mut(2 * outputs).enumerate() {
                for (o, two) in wide.chunks_exact_mut(2).enumerate() {
                    let at = o * inputs + 2 * pair;
                    two[0] = i16::from(tile[at] as i8);
                    two[1] = i16::from(tile[at + 1] as i8);
                }
            }
        }
    }
}
