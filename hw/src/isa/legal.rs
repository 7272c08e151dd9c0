//! Which encodable instructions a configuration takes. The RTL's decoder holds the same rules; anything else traps.

use super::{Insn, Load, Op, Store, VecDst, VecOp, VecSrc, Vector};
use crate::config::{HwConfig, Mem};
use crate::num::Rounding;

/// Every reason why the fetch unit would trap on `insn`, beginning with the field's name; empty where it is legal.
pub fn illegal_reasons(insn: &Insn, config: &HwConfig) -> Vec<String> {
    let mut reasons = Vec::new();
    let mut need = |holds: bool, reason: &str| {
        if !holds {
            reasons.push(reason.to_string());
        }
    };
    let unit = insn.unit();
    need(!insn.pop.contains(unit), "pop: names the instruction's own unit");
    need(!insn.push.contains(unit), "push: names the instruction's own unit");
    match &insn.op {
        Op::Load(x) => load(x, config, &mut need),
        Op::Store(x) => store(x, config, &mut need),
        Op::Gemm(x) => counts([x.uops, x.count0, x.count1, x.count2], &mut need),
        Op::Vector(x) => vector(x, config, &mut need),
    }
    reasons
}

fn counts(values: [u32; 4], need: &mut impl FnMut(bool, &str)) {
    for (value, name) in values.into_iter().zip(["uops", "count0", "count1", "count2"]) {
        need(value > 0, &format!("{name}: is 0"));
    }
}

fn load(x: &Load, config: &HwConfig, need: &mut impl FnMut(bool, &str)) {
    shape([x.row_bytes, x.rows, x.planes], [x.offset, x.row_stride, x.plane_stride], config, need);
    let packable = matches!(x.mem, Mem::Inp | Mem::Out);
    need(!x.pack || packable, "pack: only inp and out can be packed");
    let unpacked = !x.fill && x.pack_byte == 0 && x.pack_row_stride == 0 && x.pack_plane_stride == 0;
    need(x.pack || unpacked, "pack: is no, but fill or a pack field is set");
    let bytes = if packable { config.entry_bytes(x.mem) } else { 1 };
    need(x.pack_byte < bytes, "pack_byte: lies outside the entry");
}

fn store(x: &Store, config: &HwConfig, need: &mut impl FnMut(bool, &str)) {
    shape([x.row_bytes, x.rows, x.planes], [x.offset, x.row_stride, x.plane_stride], config, need);
    let storable = matches!(x.mem, Mem::Inp | Mem::Out);
    need(storable, "mem: only inp and out can be stored");
    let unpacked = x.pack_byte == 0 && x.pack_row_stride == 0 && x.pack_plane_stride == 0;
    need(x.pack || unpacked, "pack: is no, but a pack field is set");
    let bytes = if storable { config.entry_bytes(x.mem) } else { 1 };
    need(x.pack_byte < bytes, "pack_byte: lies outside the entry");
}

fn shape(counts: [u32; 3], aligned: [u64; 3], config: &HwConfig, need: &mut impl FnMut(bool, &str)) {
    for (value, name) in counts.into_iter().zip(["row_bytes", "rows", "planes"]) {
        need(value > 0, &format!("{name}: is 0"));
    }
    for (value, name) in aligned.into_iter().zip(["offset", "row_stride", "plane_stride"]) {
        need(value % u64::from(config.dma_align) == 0, &format!("{name}: is not a multiple of dma_align"));
    }
}

fn vector(x: &Vector, config: &HwConfig, need: &mut impl FnMut(bool, &str)) {
    counts([x.uops, x.count0, x.count1, x.count2], need);
    need(x.op.is_built(config), "op: the configuration does not build it");
    need(x.mode == Rounding::Double || x.op.has_mode(), "mode: only requant and mul round in single mode");
    let reach = config.vector_reaches_inp();
    need(x.dst != VecDst::Inp || reach, "dst: vector reaches inp only where block_in equals block_out");
    need(matches!(x.a, VecSrc::Acc | VecSrc::Out | VecSrc::Inp), "a: must be acc, out or inp");
    need(x.a != VecSrc::Inp || reach, "a: vector reaches inp only where block_in equals block_out");
    need(x.b != VecSrc::Inp || reach, "b: vector reaches inp only where block_in equals block_out");
    let int8 = |s: VecSrc| matches!(s, VecSrc::Out | VecSrc::Inp);
    match x.op {
        VecOp::Move | VecOp::Clip | VecOp::Lut => need(x.b == VecSrc::None, "b: this operation has no second operand"),
        VecOp::Requant => need(x.b == VecSrc::Param, "b: requant takes it from param"),
        VecOp::Mul | VecOp::Qadd => {
            need(int8(x.a), "a: must be int8 rows");
            need(int8(x.b), "b: must be int8 rows");
        }
        _ => need(x.b != VecSrc::None, "b: this operation has two operands"),
    }
}
