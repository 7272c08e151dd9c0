//! Checks which instructions a configuration accepts. The RTL's decoder applies the same rules; everything else traps.

use super::codec::encode_errors;
use super::{Insn, Load, Op, Store, VecDst, VecOp, VecSrc, Vector};
use crate::config::{HwConfig, Mem};
use crate::num::Rounding;

/// A field whose value a configuration does not accept.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{field} {reason}")]
pub struct Illegal {
    /// The field.
    pub field: &'static str,
    /// What is wrong with its value, and what is possible.
    pub reason: String,
}

/// Every reason why the fetch unit would trap on an encodable `insn`; empty if it is legal.
pub fn illegal_reasons(insn: &Insn, config: &HwConfig) -> Vec<Illegal> {
    let mut rules = Rules(Vec::new());
    let unit = insn.unit();
    rules.need(!insn.pop.contains(unit), "pop", "names the instruction's own unit");
    rules.need(!insn.push.contains(unit), "push", "names the instruction's own unit");
    match &insn.op {
        Op::Load(x) => load(x, config, &mut rules),
        Op::Store(x) => store(x, config, &mut rules),
        Op::Gemm(x) => counts([x.uops, x.count0, x.count1, x.count2], &mut rules),
        Op::Vector(x) => vector(x, config, &mut rules),
    }
    rules.0
}

/// Every reason why a configuration rejects `insn`, at most one per field: values that do not fit their fields, then
/// values that fit but are not legal.
pub fn unfit_reasons(insn: &Insn, config: &HwConfig) -> Vec<Illegal> {
    let mut found: Vec<Illegal> = encode_errors(insn, config)
        .iter()
        .map(|error| Illegal { field: error.field(), reason: error.reason() })
        .collect();
    let legal = illegal_reasons(insn, config);
    for illegal in legal {
        if found.iter().all(|known| known.field != illegal.field) {
            found.push(illegal);
        }
    }
    found
}

/// The rules broken so far.
struct Rules(Vec<Illegal>);

impl Rules {
    fn need(&mut self, holds: bool, field: &'static str, reason: &str) {
        if !holds {
            self.0.push(Illegal { field, reason: reason.to_string() });
        }
    }
}

fn counts(values: [u32; 4], rules: &mut Rules) {
    for (value, name) in values.into_iter().zip(["uops", "count0", "count1", "count2"]) {
        rules.need(value > 0, name, "is 0");
    }
}

fn load(x: &Load, config: &HwConfig, rules: &mut Rules) {
    shape([x.row_bytes, x.rows, x.planes], [x.offset, x.row_stride, x.plane_stride], config, rules);
    let packable = matches!(x.mem, Mem::Inp | Mem::Out);
    rules.need(!x.pack || packable, "pack", "is yes, but only inp and out can be packed");
    let unpacked = !x.fill && x.pack_byte == 0 && x.pack_row_stride == 0 && x.pack_plane_stride == 0;
    rules.need(x.pack || unpacked, "pack", "is no, but fill or a pack field is set");
    let bytes = if packable { config.entry_bytes(x.mem) } else { 1 };
    rules.need(x.pack_byte < bytes, "pack_byte", "is outside the entry");
}

fn store(x: &Store, config: &HwConfig, rules: &mut Rules) {
    shape([x.row_bytes, x.rows, x.planes], [x.offset, x.row_stride, x.plane_stride], config, rules);
    let storable = matches!(x.mem, Mem::Inp | Mem::Out);
    rules.need(storable, "mem", "must be inp or out; nothing else can be stored");
    let unpacked = x.pack_byte == 0 && x.pack_row_stride == 0 && x.pack_plane_stride == 0;
    rules.need(x.pack || unpacked, "pack", "is no, but a pack field is set");
    let bytes = if storable { config.entry_bytes(x.mem) } else { 1 };
    rules.need(x.pack_byte < bytes, "pack_byte", "is outside the entry");
}

fn shape(counts: [u32; 3], aligned: [u64; 3], config: &HwConfig, rules: &mut Rules) {
    for (value, name) in counts.into_iter().zip(["row_bytes", "rows", "planes"]) {
        rules.need(value > 0, name, "is 0");
    }
    for (value, name) in aligned.into_iter().zip(["offset", "row_stride", "plane_stride"]) {
        rules.need(value % u64::from(config.dma_align) == 0, name, "is not a multiple of dma_align");
    }
}

fn vector(x: &Vector, config: &HwConfig, rules: &mut Rules) {
    counts([x.uops, x.count0, x.count1, x.count2], rules);
    if let Some((parameter, false)) = x.op.parameter(config) {
        rules.need(false, "op", &format!("is not built; set {parameter} in the configuration"));
    }
    rules.need(
        x.mode == Rounding::Double || x.op.has_mode(),
        "mode",
        "is single, but only requant and mul have a mode",
    );
    let reach = config.vector_reaches_inp();
    let no_reach = "is inp, but vector reaches inp only if block_in equals block_out";
    rules.need(x.dst != VecDst::Inp || reach, "dst", no_reach);
    rules.need(matches!(x.a, VecSrc::Acc | VecSrc::Out | VecSrc::Inp), "a", "must be acc, out or inp");
    rules.need(x.a != VecSrc::Inp || reach, "a", no_reach);
    rules.need(x.b != VecSrc::Inp || reach, "b", no_reach);
    let int8 = |s: VecSrc| matches!(s, VecSrc::Out | VecSrc::Inp);
    match x.op {
        VecOp::Mac => {
            rules.need(x.dst == VecDst::Acc, "dst", "must be acc for mac");
            rules.need(int8(x.a), "a", "must be out or inp, which hold int8 rows");
            rules.need(x.b == VecSrc::Param, "b", "must be param for mac");
        }
        VecOp::Requant => rules.need(x.b == VecSrc::Param, "b", "must be param for requant"),
        VecOp::Mul | VecOp::Qadd => {
            rules.need(int8(x.a), "a", "must be out or inp, which hold int8 rows");
            rules.need(int8(x.b), "b", "must be out or inp, which hold int8 rows");
        }
        op if op.has_b() => rules.need(x.b != VecSrc::None, "b", "is none, but this operation has two operands"),
        _ => rules.need(x.b == VecSrc::None, "b", "must be none; this operation has no second operand"),
    }
}
