//! Simple operations of the vector unit.

use tilewright_hw::isa::{Descriptor, VecOp, VecSrc};
use tilewright_hw::num::Rounding;

use super::entry::{Entry, layouts};
use super::instruction::{Candidate, Instruction, VectorCall};
use super::stored::{Operand, StoredValue};
use crate::te::{DType, Expr, Name};
use crate::tir::Scope;

/// A simple operation: its value for operands `A` and `B`, and for bounds `LO` and `HI`.
pub(super) struct Simple {
    pub op: VecOp,
    values: &'static [&'static str],
}

/// The simple operations with the forms in which a block can write them.
pub(super) const SIMPLE: &[Simple] = &[
    Simple { op: VecOp::Move, values: &["A"] },
    Simple { op: VecOp::Min, values: &["min(A, B)"] },
    Simple { op: VecOp::Max, values: &["max(A, B)"] },
    Simple { op: VecOp::Add, values: &["A + B"] },
    Simple { op: VecOp::Sub, values: &["A - B"] },
    Simple { op: VecOp::Shr, values: &["A >> B"] },
    Simple { op: VecOp::Shl, values: &["A << B"] },
    Simple { op: VecOp::Clip, values: &["min(max(A, LO), HI)", "max(min(A, HI), LO)"] },
];

impl StoredValue<'_> {
    /// Returns the candidates of a simple operation.
    ///
    /// # Errors
    /// Why none can compute the value.
    pub(super) fn simple(&self, simple: &Simple) -> Result<Vec<Candidate>, String> {
        if let (VecOp::Clip, Expr::Int(value, _)) = (simple.op, self.value) {
            return self.fill(*value);
        }
        let operands = self.operands()?;
        if let Some(x) = operands.iter().find(|x| x.source == VecSrc::Param) {
            return Err(format!("{} cannot take {} from param", simple.op.name(), x.name));
        }
        if let (true, Some(both)) = (simple.op.has_b(), self.read_twice()) {
            return Err(format!(
                "{} needs two buffers, but both operands are {both}; copy one of them to a buffer of its own",
                simple.op.name()
            ));
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

    /// Returns the buffer of the only element that the value loads, if it loads it more than once.
    fn read_twice(&self) -> Option<Name> {
        let mut loads = Vec::new();
        self.value.visit(&mut |e| {
            if let Expr::Load { buffer, indices, .. } = e {
                loads.push((buffer.clone(), indices.clone()));
            }
        });
        let (buffer, _) = loads.first().filter(|first| loads.len() > 1 && loads.iter().all(|load| load == *first))?;
        Some(buffer.clone())
    }

    /// Returns the candidates of a clip that writes a constant: both of its bounds.
    ///
    /// # Errors
    /// The vector unit cannot write the destination.
    fn fill(&self, value: i64) -> Result<Vec<Candidate>, String> {
        let bound = i32::try_from(value).map_err(|e| e.to_string())?;
        let call = VectorCall {
            op: VecOp::Clip,
            mode: Rounding::Double,
            dst: self.dst()?,
            a: VecSrc::Acc,
            b: VecSrc::None,
            descriptor: Some(Descriptor { lo: bound, hi: bound, ..Descriptor::default() }),
            params: [Some(0), None, None],
            table: None,
            combines: None,
        };
        let form = |entry| {
            let intrinsic = self.intrinsic("clip", entry, &[], &format!("{value}{}", self.dst.dtype))?;
            Ok(Candidate { intrinsic, instruction: Instruction::Vector(call.clone()) })
        };
        layouts(self.config).map(form).collect()
    }

    /// Returns the candidates of a lookup in a table, which is in param.
    ///
    /// # Errors
    /// The block is no lookup.
    pub(super) fn lut(&self) -> Result<Vec<Candidate>, String> {
        const FORM: &str = "lut needs a value of the form TABLE[i64(A) + 128], with A int8 in out or inp, and TABLE a copy in \
                            param of an input i8[256]";
        let Expr::Load { indices, .. } = self.value else { return Err(FORM.into()) };
        let mut found = indices.first().into_iter().flat_map(|e| self.operands_of(e)).collect::<Result<Vec<_>, _>>()?;
        let (Some(x), true) = (found.pop().filter(|x| x.dtype == DType::I8), found.is_empty()) else {
            return Err(FORM.into());
        };
        let dst = self.dst()?;
        let form = |entry| {
            let value = format!("table[i64({}) + 128]", x.narrow(entry));
            let table = Operand { name: "table".into(), source: VecSrc::Param, scope: Scope::Param, dtype: DType::I8 };
            let intrinsic = self.with_table(entry, &table, &x, &value)?;
            let call = VectorCall {
                op: VecOp::Lut,
                mode: Rounding::Double,
                dst,
                a: x.source,
                b: VecSrc::None,
                descriptor: None,
                params: [Some(2), Some(1), None],
                table: Some(0),
                combines: None,
            };
            Ok(Candidate { intrinsic, instruction: Instruction::Vector(call) })
        };
        layouts(self.config).map(form).collect()
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
        let is_byte = |x: &Operand| matches!(x.dtype, DType::I8 | DType::Bool);
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
            let bytes = is_byte(a) && is_byte(b);
            let small = [scalars.scalar, scalars.lo, scalars.hi].iter().all(|v| i8::try_from(*v).is_ok());
            if self.dst.dtype == DType::Bool {
                values.push(wide);
                if bytes && small {
                    values.push(filled(form, true));
                }
            } else if self.dst.dtype == DType::I8 {
                values.push(format!("i8(min(max({wide}, -128i32), 127i32))"));
                values.push(format!("i8(max(min({wide}, 127i32), -128i32))"));
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
                // A form that is no truth value cannot be stored as one, and the other way round.
                let Ok(intrinsic) = self.intrinsic(simple.op.name(), entry, &inputs, &value) else { continue };
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
                    table: None,
                    combines,
                };
                found.push(Candidate { intrinsic, instruction: Instruction::Vector(call) });
            }
        }
        Ok(())
    }
}
