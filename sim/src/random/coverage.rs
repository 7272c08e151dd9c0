//! Records what random programs cover.

use super::Program;
use std::collections::BTreeMap;
use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Op, TAP_STRIDE, Unit, VecDst, VecOp, VecSrc};

/// Counts of instructions, by the features they use.
#[derive(Debug, Clone, Default)]
pub struct Coverage {
    counts: BTreeMap<String, u64>,
    programs: u64,
    overlapping: u64,
}

impl Coverage {
    /// Creates an empty record that lists every item to cover.
    pub fn new() -> Coverage {
        let mut all = Coverage::default();
        let mut list = |name: String| {
            all.counts.insert(name, 0);
        };
        for unit in Unit::ALL {
            list(format!("opcode {}", unit.name()));
            for to in Unit::ALL.into_iter().filter(|to| *to != unit) {
                list(format!("token {} to {}", unit.name(), to.name()));
            }
        }
        for mem in Mem::ALL {
            list(format!("load to {}", mem.name()));
        }
        for what in ["x_before", "x_after", "y_before", "y_after", "z_before", "z_after", "pack", "fill"] {
            list(format!("load {what}"));
        }
        for what in ["from inp", "from out", "pack"] {
            list(format!("store {what}"));
        }
        for loops in 0..=3 {
            list(format!("gemm loops {loops}"));
            list(format!("vector loops {loops}"));
        }
        for accumulate in [false, true] {
            list(format!("gemm accumulate {accumulate}"));
        }
        list("gemm wgt_zp".into());
        for op in VecOp::ALL {
            list(format!("vector {}", op.name()));
        }
        list("mac tap above 0".into());
        list("lut table above entry 0".into());
        for mode in ["single", "double"] {
            list(format!("requant {mode}"));
        }
        for dst in VecDst::ALL {
            list(format!("vector to {dst:?}"));
        }
        for source in [VecSrc::Acc, VecSrc::Out, VecSrc::Inp] {
            list(format!("vector a {source:?}"));
        }
        for source in VecSrc::ALL {
            list(format!("vector b {source:?}"));
        }
        all
    }

    /// Counts a program.
    pub fn add(&mut self, program: &Program) {
        self.programs += 1;
        self.overlapping += u64::from(program.overlaps);
        let mut hit = |name: String| *self.counts.entry(name).or_default() += 1;
        for insn in &program.insns {
            let unit = insn.unit();
            hit(format!("opcode {}", unit.name()));
            for to in insn.push.iter() {
                hit(format!("token {} to {}", unit.name(), to.name()));
            }
            let depth = |counts: [u32; 3]| counts.iter().filter(|c| **c > 1).count();
            match &insn.op {
                Op::Load(x) => {
                    hit(format!("load to {}", x.mem.name()));
                    let used = [
                        ("x_before", x.x_before > 0),
                        ("x_after", x.x_after > 0),
                        ("y_before", x.y_before > 0),
                        ("y_after", x.y_after > 0),
                        ("z_before", x.z_before > 0),
                        ("z_after", x.z_after > 0),
                        ("pack", x.pack),
                        ("fill", x.fill),
                    ];
                    used.iter().filter(|(_, is)| *is).for_each(|(what, _)| hit(format!("load {what}")));
                }
                Op::Store(x) => {
                    hit(format!("store from {}", x.mem.name()));
                    if x.pack {
                        hit("store pack".into());
                    }
                }
                Op::Gemm(x) => {
                    hit(format!("gemm loops {}", depth([x.count0, x.count1, x.count2])));
                    hit(format!("gemm accumulate {}", x.accumulate));
                    if x.wgt_zp != 0 {
                        hit("gemm wgt_zp".into());
                    }
                }
                Op::Vector(x) => {
                    hit(format!("vector loops {}", depth([x.count0, x.count1, x.count2])));
                    hit(format!("vector {}", x.op.name()));
                    if x.op == VecOp::Mac && x.b_at % TAP_STRIDE > 0 {
                        hit("mac tap above 0".into());
                    }
                    if x.op == VecOp::Lut && x.descriptor > 0 {
                        hit("lut table above entry 0".into());
                    }
                    if x.op == VecOp::Requant {
                        hit(format!("requant {:?}", x.mode).to_lowercase());
                    }
                    hit(format!("vector to {:?}", x.dst));
                    hit(format!("vector a {:?}", x.a));
                    hit(format!("vector b {:?}", x.b));
                }
            }
        }
    }

    /// Adds the counts of another record.
    pub fn merge(&mut self, other: &Coverage) {
        self.programs += other.programs;
        self.overlapping += other.overlapping;
        for (name, n) in &other.counts {
            *self.counts.entry(name.clone()).or_default() += n;
        }
    }

    /// Returns the items seen fewer than `least` times.
    pub fn missing(&self, least: u64) -> Vec<&str> {
        self.counts.iter().filter(|(_, n)| **n < least).map(|(name, _)| name.as_str()).collect()
    }

    /// Returns the number of programs, and how many of them let two units run at the same time.
    pub fn programs(&self) -> (u64, u64) {
        (self.programs, self.overlapping)
    }
}

impl std::fmt::Display for Coverage {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        writeln!(f, "{} programs, {} of them with units that run at the same time", self.programs, self.overlapping)?;
        let items: Vec<String> = self.counts.iter().map(|(name, n)| format!("{name} {n}")).collect();
        write!(f, "{}", items.join("; "))
    }
}
