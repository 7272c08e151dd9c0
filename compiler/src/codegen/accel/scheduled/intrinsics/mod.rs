//! The instructions of a configuration as tensor intrinsics, for `tensorize`.
//!
//! [`simple`] has the operations of the vector lanes, [`deep`] those of the requantize lanes. Each intrinsic computes what one micro-op does. A schedule names an instruction; which intrinsic that is depends on
//! the block: on the scratchpads of its operands, their types, and its constants. So an instruction has candidates for
//! a block, and `tensorize` takes the first that matches.

use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{Descriptor, VecDst, VecOp, VecSrc};
use tilewright_hw::num::Rounding;

mod deep;
mod simple;

use crate::codegen::accel::mapped;
use crate::te::{DType, Expr, Name};
use crate::tir::{Action, Block, Buffer, Function, Intrinsic, Scope};
use simple::SIMPLE;

/// An intrinsic, and the instruction that a call of it becomes.
#[derive(Debug, Clone, PartialEq)]
pub struct Candidate {
    /// The intrinsic.
    pub intrinsic: Intrinsic,
    /// The instruction.
    pub instruction: Instruction,
}

/// An instruction without its indices.
#[derive(Debug, Clone, PartialEq)]
pub enum Instruction {
    /// A product of gemm. The parameters are inp, wgt and acc.
    Gemm,
    /// An operation of the vector unit.
    Vector(VectorCall),
}

/// An operation of the vector unit, as a call of an intrinsic.
#[derive(Debug, Clone, PartialEq)]
pub struct VectorCall {
    /// The operation.
    pub op: VecOp,
    /// Rounding.
    pub mode: Rounding,
    /// Destination.
    pub dst: VecDst,
    /// First operand.
    pub a: VecSrc,
    /// Second operand.
    pub b: VecSrc,
    /// Its scalars, if it has any.
    pub descriptor: Option<Descriptor>,
    /// Parameters of the intrinsic that are destination, first and second operand.
    pub params: [Option<usize>; 3],
    /// The operand that is not the destination, if the operation combines the destination with it.
    pub combines: Option<VecSrc>,
}

/// Names of the instructions that [`candidates`] knows.
pub fn names(config: &HwConfig) -> Vec<&'static str> {
    let built = VecOp::ALL.iter().filter(|op| is_known(**op) && op.is_built(config));
    std::iter::once("gemm").chain(built.map(|op| op.name())).collect()
}

/// Returns whether an operation has a form for schedules.
fn is_known(op: VecOp) -> bool {
    SIMPLE.iter().any(|s| s.op == op) || matches!(op, VecOp::Requant | VecOp::Mul | VecOp::Qadd)
}

/// Returns the intrinsics that the instruction `name` could be for a block.
///
/// # Errors
/// Why no intrinsic of that name can compute the block.
pub fn candidates(config: &HwConfig, f: &Function, block: &Block, name: &str) -> Result<Vec<Candidate>, String> {
    if name == "gemm" {
        return Ok(layouts(config).filter_map(|l| gemm(config, l)).collect());
    }
    let Action::Store { buffer, indices, value } = &block.action else {
        return Err(format!("block {} already calls an intrinsic", block.name));
    };
    let Some(dst) = f.buffer(buffer) else { return Err(format!("there is no buffer {buffer}")) };
    let stored = StoredValue { config, f, dst, indices, value };
    let Some(op) = VecOp::ALL.iter().copied().find(|op| op.name() == name && is_known(*op)) else {
        return Err(format!("there is no instruction {name}; there are {}", names(config).join(", ")));
    };
    if !op.is_built(config) {
        return Err(format!("the configuration is built without the operation {name}"));
    }
    match SIMPLE.iter().find(|s| s.op == op) {
        Some(simple) => stored.simple(simple),
        None => match op {
            VecOp::Requant => stored.requant(),
            VecOp::Mul => stored.mul(),
            _ => stored.qadd(),
        },
    }
}

/// How a block loops over an entry: with a loop over batch rows, or without it if there is only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct Entry {
    rows: Option<u32>,
}

fn layouts(config: &HwConfig) -> impl Iterator<Item = Entry> {
    let one = (config.batch == 1).then_some(Entry { rows: None });
    one.into_iter().chain([Entry { rows: Some(config.batch) }])
}

impl Entry {
    fn dims(self, last: u32) -> String {
        self.rows.map_or(format!("[{last}]"), |n| format!("[{n}, {last}]"))
    }

    fn at(self, last: &str) -> String {
        self.rows.map_or(format!("[{last}]"), |_| format!("[n, {last}]"))
    }

    fn around(self, body: &str) -> String {
        self.rows.map_or(body.to_string(), |n| format!("for n in {n} {{ {body} }}"))
    }
}

fn gemm(config: &HwConfig, entry: Entry) -> Option<Candidate> {
    let (bi, bo) = (config.block_in, config.block_out);
    let (acc, inp) = (entry.at("o"), entry.at("i"));
    let body = format!(
        "for o in {bo} {{ for i in {bi} {{ block mac reduce(i) {{ acc{acc} = acc{acc} + i32(inp{inp}) * i32(wgt[o, i]) }} }} }}"
    );
    let text = format!(
        "intrinsic gemm {{ param inp: i8{} in inp param wgt: i8[{bo}, {bi}] in wgt param acc: i32{} in acc {} }}",
        entry.dims(bi),
        entry.dims(bo),
        entry.around(&body)
    );
    Some(Candidate { intrinsic: mapped::intrinsic(&text).ok()?, instruction: Instruction::Gemm })
}

/// A value that the vector unit shall compute and store.
struct StoredValue<'t> {
    config: &'t HwConfig,
    f: &'t Function,
    dst: &'t Buffer,
    indices: &'t [Expr],
    value: &'t Expr,
}

/// An operand of an operation.
#[derive(Clone)]
struct Operand {
    /// Its name in the intrinsic: `dst` if it is the destination.
    name: String,
    source: VecSrc,
    scope: Scope,
    dtype: DType,
}

impl Operand {
    /// Returns its value as text, widened to 32 bits.
    fn wide(&self, entry: Entry) -> String {
        let value = self.narrow(entry);
        if self.dtype == DType::I32 { value } else { format!("i32({value})") }
    }

    fn narrow(&self, entry: Entry) -> String {
        format!("{}{}", self.name, entry.at("o"))
    }
}

impl StoredValue<'_> {
    fn dst(&self) -> Result<VecDst, String> {
        match self.dst.scope {
            Scope::Acc => Ok(VecDst::Acc),
            Scope::Out => Ok(VecDst::Out),
            Scope::Inp if self.config.vector_reaches_inp() => Ok(VecDst::Inp),
            scope => Err(format!(
                "the vector unit cannot write {}, which is in {}; it writes acc, out, and inp if block_in equals block_out",
                self.dst.name,
                scope.name()
            )),
        }
    }

    /// Returns the places that the value loads, each once. The destination has the name `dst`.
    fn operands(&self) -> Result<Vec<Operand>, String> {
        let mut seen: Vec<(Name, Vec<Expr>)> = Vec::new();
        self.value.visit(&mut |e| {
            if let Expr::Load { buffer, indices, .. } = e
                && !seen.iter().any(|s| s.0 == *buffer && s.1 == *indices)
            {
                seen.push((buffer.clone(), indices.clone()));
            }
        });
        let mut found = Vec::new();
        for (i, (buffer, indices)) in seen.iter().enumerate() {
            let Some(b) = self.f.buffer(buffer) else { return Err(format!("there is no buffer {buffer}")) };
            let source = match b.scope {
                Scope::Acc => VecSrc::Acc,
                Scope::Out => VecSrc::Out,
                Scope::Inp if self.config.vector_reaches_inp() => VecSrc::Inp,
                Scope::Param => VecSrc::Param,
                scope => {
                    return Err(format!(
                        "the vector unit cannot read {buffer}, which is in {}; it reads acc, out, and inp if block_in \
                         equals block_out",
                        scope.name()
                    ));
                }
            };
            let own = *buffer == self.dst.name && indices == self.indices;
            let name = if own { "dst".into() } else { format!("x{i}") };
            found.push(Operand { name, source, scope: b.scope, dtype: b.dtype });
        }
        Ok(found)
    }

    /// Returns the integer constants of the value, each once.
    fn constants(&self) -> Vec<i32> {
        let mut all = Vec::new();
        self.value.visit(&mut |e| {
            if let Expr::Int(v, DType::I32 | DType::I8) = e
                && let Ok(v) = i32::try_from(*v)
                && !all.contains(&v)
            {
                all.push(v);
            }
        });
        all
    }

    fn intrinsic(&self, name: &str, entry: Entry, inputs: &[&Operand], value: &str) -> Result<Intrinsic, String> {
        let bo = self.config.block_out;
        let params: Vec<String> = inputs
            .iter()
            .map(|x| format!("param {}: {}{} in {}", x.name, x.dtype, entry.dims(bo), x.scope.name()))
            .collect();
        let body = format!("for o in {bo} {{ block lane {{ dst{} = {value} }} }}", entry.at("o"));
        let text = format!(
            "intrinsic {name} {{ {} param dst: {}{} in {} {} }}",
            params.join(" "),
            self.dst.dtype,
            entry.dims(bo),
            self.dst.scope.name(),
            entry.around(&body)
        );
        mapped::intrinsic(&text).map_err(|e| e.to_string())
    }
}
