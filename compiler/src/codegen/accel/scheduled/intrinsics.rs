//! The instructions of a configuration as tensor intrinsics, for `tensorize`.
//!
//! Each intrinsic computes what one micro-op does. A schedule names an instruction; which intrinsic that is depends on
//! the block: on the scratchpads of its operands, their types, and its constants. So an instruction has candidates for
//! a block, and `tensorize` takes the first that matches.

use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{Descriptor, VecDst, VecOp, VecSrc};
use tilewright_hw::num::Rounding;

use crate::codegen::accel::mapped;
use crate::te::{BinOp, DType, Expr, Func, Name};
use crate::tir::{Action, Block, Buffer, Function, Intrinsic, Scope};

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
    let simple = SIMPLE.iter().filter(|s| s.op.is_built(config)).map(|s| s.op.name());
    let deep = [VecOp::Requant, VecOp::Mul, VecOp::Qadd].into_iter().filter(|op| op.is_built(config));
    std::iter::once("gemm").chain(simple).chain(deep.map(VecOp::name)).collect()
}

/// A simple operation: its value for operands `A` and `B`, and for bounds `LO` and `HI`.
struct Simple {
    op: VecOp,
    values: &'static [&'static str],
}

/// The simple operations with the forms in which a block can write them.
const SIMPLE: [Simple; 8] = [
    Simple { op: VecOp::Move, values: &["A"] },
    Simple { op: VecOp::Min, values: &["min(A, B)"] },
    Simple { op: VecOp::Max, values: &["max(A, B)"] },
    Simple { op: VecOp::Add, values: &["A + B"] },
    Simple { op: VecOp::Sub, values: &["A - B"] },
    Simple { op: VecOp::Shr, values: &["A >> B"] },
    Simple { op: VecOp::Shl, values: &["A << B"] },
    Simple { op: VecOp::Clip, values: &["min(max(A, LO), HI)", "max(min(A, HI), LO)"] },
];

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
    let target = Target { config, f, dst, indices, value };
    let found = match SIMPLE.iter().find(|s| s.op.name() == name) {
        Some(simple) if simple.op.is_built(config) => target.simple(simple)?,
        Some(_) => return Err(format!("the configuration is built without the operation {name}")),
        None if name == "requant" => target.requant()?,
        None if name == "mul" && VecOp::Mul.is_built(config) => target.mul()?,
        None if name == "qadd" && VecOp::Qadd.is_built(config) => target.qadd()?,
        None => {
            let all = names(config).join(", ");
            return Err(format!("there is no instruction {name}; there are {all}"));
        }
    };
    Ok(found)
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

/// A block that the vector unit shall compute.
struct Target<'t> {
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

impl Target<'_> {
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

    fn simple(&self, simple: &Simple) -> Result<Vec<Candidate>, String> {
        let operands = self.operands()?;
        if let Some(x) = operands.iter().find(|x| x.source == VecSrc::Param) {
            return Err(format!("{} cannot take {} from param", simple.op.name(), x.name));
        }
        let constants = self.constants();
        let mut found = Vec::new();
        for entry in layouts(self.config) {
            for a in &operands {
                if simple.op == VecOp::Clip {
                    // The unit takes the minimum first, which makes a difference if the bounds are in the wrong order.
                    let pairs = constants.iter().flat_map(|lo| constants.iter().map(move |hi| (lo, hi)));
                    for (&lo, &hi) in pairs.filter(|(lo, hi)| lo <= hi) {
                        let descriptor = Descriptor { lo, hi, ..Descriptor::default() };
                        self.forms(simple, entry, [a, a], Some(descriptor), &mut found)?;
                    }
                } else if !simple.op.has_b() {
                    self.forms(simple, entry, [a, a], None, &mut found)?;
                } else {
                    for b in operands.iter().filter(|b| b.name != a.name) {
                        self.forms(simple, entry, [a, b], None, &mut found)?;
                    }
                    for &scalar in &constants {
                        let b = Operand { name: String::new(), source: VecSrc::Scalar, ..a.clone() };
                        let descriptor = Descriptor { scalar, ..Descriptor::default() };
                        self.forms(simple, entry, [a, &b], Some(descriptor), &mut found)?;
                    }
                }
            }
        }
        if found.is_empty() {
            return Err(format!("{} needs operands in scratchpads; the block has none", simple.op.name()));
        }
        Ok(found)
    }

    /// Adds the candidates for given operands: with 32-bit values that saturate in an int8 destination, and, where no
    /// value can leave the range, with plain int8 values.
    fn forms(
        &self,
        simple: &Simple,
        entry: Entry,
        [a, b]: [&Operand; 2],
        descriptor: Option<Descriptor>,
        found: &mut Vec<Candidate>,
    ) -> Result<(), String> {
        let dst = self.dst()?;
        let keeps = matches!(simple.op, VecOp::Move | VecOp::Min | VecOp::Max | VecOp::Clip);
        let is_byte = |x: &Operand| x.dtype == DType::I8;
        let scalars = descriptor.unwrap_or_default();
        let filled = |form: &str, narrow: bool| {
            let suffix = if narrow { "i8" } else { "i32" };
            let text = |x: &Operand| match x.source {
                VecSrc::Scalar => format!("{}{suffix}", scalars.scalar),
                _ if narrow => x.narrow(entry),
                _ => x.wide(entry),
            };
            // `A` and `B` are capitals, so that no other letter of the form is one.
            form.replace('A', &text(a))
                .replace('B', &text(b))
                .replace("LO", &format!("{}{suffix}", scalars.lo))
                .replace("HI", &format!("{}{suffix}", scalars.hi))
        };
        for form in simple.values {
            let wide = filled(form, false);
            let mut values = Vec::new();
            if self.dst.dtype == DType::I8 {
                values.push(format!("i8(min(max({wide}, -128i32), 127i32))"));
                values.push(format!("i8(max(min({wide}, 127i32), -128i32))"));
                let bytes = is_byte(a) && is_byte(b);
                let small = [scalars.scalar, scalars.lo, scalars.hi].iter().all(|v| i8::try_from(*v).is_ok());
                if keeps && bytes && small {
                    values.push(filled(form, true));
                    values.push(format!("i8({wide})"));
                } else if simple.op == VecOp::Clip && small {
                    values.push(format!("i8({wide})"));
                }
            } else {
                values.push(wide);
            }
            for value in values {
                let mut inputs: Vec<&Operand> = Vec::new();
                for x in [a, b] {
                    let known =
                        x.name == "dst" || x.source == VecSrc::Scalar || inputs.iter().any(|o| o.name == x.name);
                    if !known && (simple.op.has_b() || x.name == a.name) {
                        inputs.push(x);
                    }
                }
                let intrinsic = self.intrinsic(simple.op.name(), entry, &inputs, &value)?;
                let param = |x: &Operand| intrinsic.params.iter().position(|p| p.name.as_str() == x.name);
                let with_b = simple.op.has_b();
                let combines = match (a.name.as_str(), b.name.as_str()) {
                    ("dst", _) if with_b => Some(b.source),
                    (_, "dst") if with_b => Some(a.source),
                    _ => None,
                };
                let params = [Some(intrinsic.params.len() - 1), param(a), if with_b { param(b) } else { None }];
                let call = VectorCall {
                    op: simple.op,
                    mode: Rounding::Double,
                    dst,
                    a: a.source,
                    b: if with_b { b.source } else { VecSrc::None },
                    descriptor,
                    params,
                    combines,
                };
                found.push(Candidate { intrinsic, instruction: Instruction::Vector(call) });
            }
        }
        Ok(())
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

    /// Requantization, whose constants are those of the block.
    fn requant(&self) -> Result<Vec<Candidate>, String> {
        const FORM: &str = "requant needs a value of the form i8(offset_clamp(scale_double(SUM + BIAS, MULTIPLIER, \
                            SHIFT), ZERO_POINT, LOW, HIGH)), or with scale_single, with a SUM in acc, the other operands in \
                            param, and bounds from -128 to 127";
        let Clamped { scale, mode, bounds: [zero_point, lo, hi], .. } = self.clamped().ok_or(FORM)?;
        let (dst, bo) = (self.dst()?, self.config.block_out);
        let mut found = Vec::new();
        for entry in layouts(self.config) {
            let body = format!(
                "for o in {bo} {{ block lane {{ out{0} = i8(offset_clamp({1}(acc{0} + bias[o], multiplier[o], \
                 shift[o]), {zero_point}i32, {lo}i32, {hi}i32)) }} }}",
                entry.at("o"),
                scale.name()
            );
            let text = format!(
                "intrinsic requant {{ param acc: i32{0} in acc param bias: i32[{bo}] in param param multiplier: \
                 i32[{bo}] in param param shift: i32[{bo}] in param param out: i8{0} in {1} {2} }}",
                entry.dims(bo),
                self.dst.scope.name(),
                entry.around(&body)
            );
            let intrinsic = mapped::intrinsic(&text).map_err(|e| e.to_string())?;
            let call = VectorCall {
                op: VecOp::Requant,
                mode,
                dst,
                a: VecSrc::Acc,
                b: VecSrc::Param,
                descriptor: Some(Descriptor { zero_point, lo, hi, ..Descriptor::default() }),
                params: [Some(4), Some(0), Some(1)],
                combines: None,
            };
            found.push(Candidate { intrinsic, instruction: Instruction::Vector(call) });
        }
        Ok(found)
    }

    /// A quantized product, whose constants are those of the block.
    fn mul(&self) -> Result<Vec<Candidate>, String> {
        const FORM: &str = "mul needs a value of the form i8(offset_clamp(scale_double((i32(A) - ZERO_A) * (i32(B) - \
                            ZERO_B), MULTIPLIER, SHIFT), ZERO_POINT, LOW, HIGH)), or with scale_single, and bounds from \
                            -128 to 127; zero points of 0 are left out";
        let outer = self.clamped().ok_or(FORM)?;
        let [Expr::Binary(BinOp::Mul, a, b), multiplier, shift] = outer.args else { return Err(FORM.into()) };
        let (multiplier, shift) = (number(multiplier).ok_or(FORM)?, number(shift).ok_or(FORM)?);
        let (a, b) = (factor(a).ok_or(FORM)?, factor(b).ok_or(FORM)?);
        let [zero_point, lo, hi] = outer.bounds;
        let byte = |v: i32| i8::try_from(v).map_err(|_| format!("{v} does not fit the 8 bits of its field"));
        let descriptor = Descriptor {
            zero_point,
            lo,
            hi,
            multiplier,
            shift: byte(shift)?,
            zero_a: byte(a.zero)?,
            zero_b: byte(b.zero)?,
            ..Descriptor::default()
        };
        let value = |entry: Entry| {
            let term = |f: &Factor, name: &str| f.text(&format!("i32({name}{})", entry.at("o")));
            format!(
                "i8(offset_clamp({}({} * {}, {multiplier}i32, {shift}i32), {zero_point}i32, {lo}i32, {hi}i32))",
                outer.scale.name(),
                term(&a, "x"),
                term(&b, "y")
            )
        };
        self.of_two(VecOp::Mul, outer.mode, [&a, &b], descriptor, value)
    }

    /// A quantized sum, whose constants are those of the block.
    fn qadd(&self) -> Result<Vec<Candidate>, String> {
        const FORM: &str = "qadd needs a value of the form i8(offset_clamp(scale_double(scale_double((i32(A) - ZERO_A) \
                            << LEFT, MULTIPLIER_A, SHIFT_A) + scale_double((i32(B) - ZERO_B) << LEFT, MULTIPLIER_B, \
                            SHIFT_B), MULTIPLIER, SHIFT), ZERO_POINT, LOW, HIGH)), with bounds from -128 to 127; zero points of 0 are \
                            left out";
        let outer = self.clamped().filter(|o| o.scale == Func::ScaleDouble).ok_or(FORM)?;
        let [Expr::Binary(BinOp::Add, a, b), multiplier, shift] = outer.args else { return Err(FORM.into()) };
        let (multiplier, shift) = (number(multiplier).ok_or(FORM)?, number(shift).ok_or(FORM)?);
        let term = |e: &Expr| -> Option<(Factor, [i32; 3])> {
            let Expr::Call(Func::ScaleDouble, args) = e else { return None };
            let [Expr::Binary(BinOp::Shl, x, left), multiplier, shift] = args.as_slice() else { return None };
            Some((factor(x)?, [number(left)?, number(multiplier)?, number(shift)?]))
        };
        let ((a, [left, multiplier_a, shift_a]), (b, [left_b, multiplier_b, shift_b])) =
            (term(a).ok_or(FORM)?, term(b).ok_or(FORM)?);
        if left != left_b {
            return Err(format!(
                "qadd shifts both operands to the left by the same number of bits, not {left} and {left_b}"
            ));
        }
        let [zero_point, lo, hi] = outer.bounds;
        let byte = |v: i32| i8::try_from(v).map_err(|_| format!("{v} does not fit the 8 bits of its field"));
        let descriptor = Descriptor {
            zero_point,
            lo,
            hi,
            multiplier,
            shift: byte(shift)?,
            multiplier_a,
            multiplier_b,
            shift_a: byte(shift_a)?,
            shift_b: byte(shift_b)?,
            left_shift: byte(left)? as _,
            zero_a: byte(a.zero)?,
            zero_b: byte(b.zero)?,
            ..Descriptor::default()
        };
        let value = |entry: Entry| {
            let term = |f: &Factor, name: &str, [multiplier, shift]: [i32; 2]| {
                let x = f.text(&format!("i32({name}{})", entry.at("o")));
                format!("scale_double({x} << {left}i32, {multiplier}i32, {shift}i32)")
            };
            format!(
                "i8(offset_clamp(scale_double({} + {}, {multiplier}i32, {shift}i32), {zero_point}i32, {lo}i32, {hi}i32))",
                term(&a, "x", [multiplier_a, shift_a]),
                term(&b, "y", [multiplier_b, shift_b])
            )
        };
        self.of_two(VecOp::Qadd, outer.mode, [&a, &b], descriptor, value)
    }

    /// Candidates of a deep operation on two int8 operands, `x` and `y` in its value.
    fn of_two(
        &self,
        op: VecOp,
        mode: Rounding,
        [a, b]: [&Factor; 2],
        descriptor: Descriptor,
        value: impl Fn(Entry) -> String,
    ) -> Result<Vec<Candidate>, String> {
        let sources = self.operands()?;
        let source = |f: &Factor| -> Result<Operand, String> {
            let scope = self.f.buffer(&f.buffer).map_or(Scope::Global, |b| b.scope);
            let found = sources.iter().find(|o| o.scope == scope && o.dtype == DType::I8);
            found.cloned().ok_or_else(|| format!("{} must be int8, in out or inp", f.buffer))
        };
        let (x, y) = (Operand { name: "x".into(), ..source(a)? }, Operand { name: "y".into(), ..source(b)? });
        let dst = self.dst()?;
        layouts(self.config)
            .map(|entry| {
                let intrinsic = self.intrinsic(op.name(), entry, &[&x, &y], &value(entry))?;
                let (a, b, params) = (x.source, y.source, [Some(2), Some(0), Some(1)]);
                let descriptor = Some(descriptor);
                let call = VectorCall { op, mode, dst, a, b, descriptor, params, combines: None };
                Ok(Candidate { intrinsic, instruction: Instruction::Vector(call) })
            })
            .collect()
    }

    /// Takes a value apart that is scaled, offset and clamped to int8.
    fn clamped(&self) -> Option<Clamped<'_>> {
        let Expr::Cast(DType::I8, inner) = self.value else { return None };
        let Expr::Call(Func::OffsetClamp, args) = inner.as_ref() else { return None };
        let [Expr::Call(scale, scaled), zero, lo, hi] = args.as_slice() else { return None };
        let mode = match scale {
            Func::ScaleDouble => Rounding::Double,
            Func::ScaleSingle => Rounding::Single,
            _ => return None,
        };
        let bounds = [number(zero)?, number(lo)?, number(hi)?];
        // An int8 destination saturates, while the conversion wraps.
        let inside = bounds[1..].iter().all(|v| i8::try_from(*v).is_ok());
        inside.then_some(Clamped { scale: *scale, mode, args: scaled, bounds })
    }
}

/// A value of the form `i8(offset_clamp(SCALE(ARGS), ZERO_POINT, LOW, HIGH))`.
struct Clamped<'v> {
    scale: Func,
    mode: Rounding,
    args: &'v [Expr],
    /// Zero point, lower and upper bound.
    bounds: [i32; 3],
}

/// An int8 operand less its zero point.
struct Factor {
    buffer: Name,
    zero: i32,
}

impl Factor {
    fn text(&self, load: &str) -> String {
        if self.zero == 0 { load.into() } else { format!("({load} - {}i32)", self.zero) }
    }
}

fn factor(e: &Expr) -> Option<Factor> {
    let (load, zero) = match e {
        Expr::Binary(BinOp::Sub, load, zero) => (load.as_ref(), number(zero)?),
        load => (load, 0),
    };
    match load {
        Expr::Cast(DType::I32, load) => match load.as_ref() {
            Expr::Load { buffer, dtype: DType::I8, .. } => Some(Factor { buffer: buffer.clone(), zero }),
            _ => None,
        },
        _ => None,
    }
}

fn number(e: &Expr) -> Option<i32> {
    match e {
        Expr::Int(v, DType::I32) => i32::try_from(*v).ok(),
        _ => None,
    }
}
