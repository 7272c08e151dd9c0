//! Matrix products: runs the loops over micro-ops and checks their indices.

use super::kernel::{GemmLoops, Operands};
use super::loops::{Affine, Loops};
use super::{Fsim, Stop};
use tilewright_hw::device::RunReport;
use tilewright_hw::isa::Gemm;
use tilewright_hw::regs::TrapCause;

impl Fsim {
    pub(super) fn gemm(&mut self, x: &Gemm, most: u64, report: &mut RunReport) -> Result<(), Stop> {
        self.state.refresh_inp();
        let uops = &self.state.gemm_uops;
        let affine = Affine::from(x);
        let walk = GemmLoops { loops: Loops::new(uops, &affine), accumulate: x.accumulate, wgt_zp: x.wgt_zp };
        let depths = [self.config.acc_depth, self.config.inp_depth, self.config.wgt_depth];
        let mut operands = Operands {
            acc: &mut self.state.acc,
            inp: &self.state.inp,
            wgt: &self.state.wgt,
            copies: &self.state.copies,
            batch: self.config.batch as usize,
            block_in: self.config.block_in as usize,
            block_out: self.config.block_out as usize,
        };
        // Indices only grow with the loops, so checking the last pass checks them all.
        if walk.loops.uops.len() == x.uops as usize && walk.last_indices_fit(depths) {
            if x.micro_ops() > most {
                return Err(Stop::Limit);
            }
            self.kernel.run(&walk, &mut operands);
            report.macs += x.micro_ops() * self.config.macs_per_cycle();
            return Ok(());
        }
        Err(match walk.run_checked(&affine, uops, depths, most, &mut operands) {
            done if done < most => Stop::MicroOp(done, TrapCause::Scratchpad),
            _ => Stop::Limit,
        })
    }
}
