//! Loads and stores of elements, and of vectors of them in vectorized loops.

use inkwell::types::BasicTypeEnum;
use inkwell::values::{BasicValue, BasicValueEnum, PointerValue};
use inkwell::{AddressSpace, IntPredicate};
use tilewright_compiler::te::{BinOp, DType, Expr, Name};
use tilewright_compiler::tir::{Action, Affine, Block, Buffer, Stmt, View};

use super::Emitter;
use super::expr::reads;
use super::value::{Emitted, Value};
use crate::EmitError;

/// How the lanes of a vectorized loop access memory.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Lanes {
    /// All at the same address.
    Same,
    /// At consecutive addresses.
    Next,
    /// At any addresses.
    Apart,
}

/// Returns how the iterations of `var` access a buffer with these dimensions, as far as they are known.
fn lanes(dims: &[Option<i64>], indices: &[Expr], var: &Name) -> Lanes {
    let (mut step, mut sum) = (Some(1i64), 0i64);
    for (e, n) in indices.iter().zip(dims).rev() {
        match (coefficient(e, var), step) {
            (Some(0), _) => {}
            (Some(times), Some(step)) => sum += times * step,
            _ => return Lanes::Apart,
        }
        step = step.zip(*n).map(|(step, n)| step * n);
    }
    match sum {
        0 => Lanes::Same,
        1 => Lanes::Next,
        _ => Lanes::Apart,
    }
}

/// Returns by how much an index grows in each iteration of `var`, or `None` if that is not always the same or not known.
fn coefficient(e: &Expr, var: &Name) -> Option<i64> {
    if !e.uses(var) {
        return Some(0);
    }
    match e {
        Expr::Var(_) => Some(1),
        Expr::Binary(BinOp::Add, a, b) => Some(coefficient(a, var)? + coefficient(b, var)?),
        Expr::Binary(BinOp::Sub, a, b) => Some(coefficient(a, var)? - coefficient(b, var)?),
        Expr::Binary(BinOp::Mul, a, b) => match (Affine::of(a)?.as_constant(), Affine::of(b)?.as_constant()) {
            (Some(times), _) => Some(times * coefficient(b, var)?),
            (_, Some(times)) => Some(times * coefficient(a, var)?),
            _ => None,
        },
        _ => None,
    }
}

impl<'c> Emitter<'_, 'c> {
    fn memory_type(&self, t: DType) -> BasicTypeEnum<'c> {
        match t {
            t if t.is_float() => self.float_type(t).into(),
            DType::Bool => self.context.i8_type().into(),
            t => self.int_type(t).into(),
        }
    }

    fn buffer(&self, name: &Name) -> Result<Buffer, EmitError> {
        let found = self.function.buffer(name).cloned();
        found.ok_or_else(|| EmitError::Program(format!("unknown buffer {name}")))
    }

    /// Returns the element's address, that of lane 0 in a vectorized loop.
    fn place(&mut self, b: &Buffer, indices: &[Expr]) -> Result<PointerValue<'c>, EmitError> {
        let mut at: Value<'c> = self.i64(0).into();
        let mut first = |e: &mut Self| -> Result<(), EmitError> {
            for (axis, i) in indices.iter().enumerate() {
                let (i, n) = (e.expr(i)?.into_int_value(), e.dim(b, axis)?);
                let before = e.builder.build_int_nsw_mul(at.into_int_value(), n, "")?;
                at = e.builder.build_int_nsw_add(before, i, "")?.into();
            }
            Ok(())
        };
        self.in_lane(0, &mut first)?;
        let Some(&base) = self.buffers.get(&b.name) else {
            return Err(EmitError::Program(format!("buffer {} has no memory", b.name)));
        };
        let at = [at.into_int_value()];
        // SAFETY: accesses of a verified function stay within their buffers; the evaluator checks the same indices.
        Ok(unsafe { self.builder.build_in_bounds_gep(self.memory_type(b.dtype), base, &at, "")? })
    }

    /// Returns the address of a view's first element.
    pub(super) fn view_place(&mut self, view: &View) -> Result<PointerValue<'c>, EmitError> {
        let b = self.buffer(&view.buffer)?;
        let first = self.i64(0);
        for dim in &view.dims {
            self.vars.insert(dim.clone(), first.into());
        }
        self.place(&b, &view.indices)
    }

    /// Emits code for one lane of the enclosing vectorized loop, if there is one.
    fn in_lane<T>(&mut self, i: i64, f: &mut dyn FnMut(&mut Self) -> Result<T, EmitError>) -> Result<T, EmitError> {
        let Some((var, n)) = self.lane.take() else { return f(self) };
        let all = self.vars.insert(var.clone(), self.i64(i).into());
        let mask = self.mask.take();
        let done = f(self);
        if let Some(all) = all {
            self.vars.insert(var.clone(), all);
        }
        (self.lane, self.mask) = (Some((var, n)), mask);
        done
    }

    fn lanes_of(&self, b: &Buffer, indices: &[Expr]) -> Lanes {
        self.lane.as_ref().map_or(Lanes::Same, |(var, _)| lanes(&self.known_dims(b), indices, var))
    }

    pub(super) fn load(&mut self, buffer: &Name, indices: &[Expr]) -> Emitted<'c> {
        let b = self.buffer(buffer)?;
        let (how, n) = (self.lanes_of(&b, indices), self.lane.as_ref().map(|l| l.1));
        if let (Lanes::Apart, Some(n)) = (how, n) {
            let mut list = Vec::new();
            for i in 0..n {
                list.push(self.in_lane(i64::from(i), &mut |e| e.load(buffer, indices))?);
            }
            return self.gathered(&list);
        }
        let at = self.place(&b, indices)?;
        let one = self.memory_type(b.dtype);
        let v = match (how, n, self.mask) {
            (Lanes::Next, Some(n), Some(mask)) => {
                let ty = self.wide_type(one, Some(n));
                let zero = self.spread(one.const_zero(), n)?.into();
                let align = self.context.i32_type().const_int(b.dtype.size_bytes() as u64, false);
                let ptr = self.context.ptr_type(AddressSpace::default());
                self.intrinsic("llvm.masked.load", &[ty, ptr.into()], &[at.into(), align.into(), mask.into(), zero])?
            }
            (Lanes::Next, Some(n), None) => {
                let v = self.builder.build_load(self.wide_type(one, Some(n)), at, "")?;
                self.align(v.as_instruction_value(), b.dtype)?;
                v
            }
            _ => self.builder.build_load(one, at, "")?,
        };
        if b.dtype == DType::Bool { self.compare(IntPredicate::NE, v, self.like(v, 0)) } else { Ok(v) }
    }

    /// Sets the alignment of a vector access to that of its elements.
    pub(super) fn align(&self, i: Option<inkwell::values::InstructionValue<'c>>, t: DType) -> Result<(), EmitError> {
        match i {
            Some(i) => i.set_alignment(t.size_bytes() as u32).map_err(|e| EmitError::Llvm(e.to_string())),
            None => Ok(()),
        }
    }

    pub(super) fn store(&mut self, b: &Buffer, indices: &[Expr], v: Value<'c>) -> Result<(), EmitError> {
        let v = if b.dtype == DType::Bool { self.resize(v, self.context.i8_type(), true)? } else { v };
        let Some(n) = self.lane.as_ref().map(|l| l.1) else {
            let at = self.place(b, indices)?;
            self.builder.build_store(at, v)?;
            return Ok(());
        };
        if self.lanes_of(b, indices) != Lanes::Next {
            for i in 0..n {
                let own = self.lane_of(v, i)?;
                let at = self.in_lane(i64::from(i), &mut |e| e.place(b, indices))?;
                self.builder.build_store(at, own)?;
            }
            return Ok(());
        }
        let at = self.place(b, indices)?;
        let v = self.spread(v, n)?;
        let Some(mask) = self.mask else {
            let stored = self.builder.build_store(at, v)?;
            return self.align(Some(stored), b.dtype);
        };
        let (ty, ptr) = (v.get_type(), self.context.ptr_type(AddressSpace::default()));
        let align = self.context.i32_type().const_int(b.dtype.size_bytes() as u64, false);
        let args = [v.into(), at.into(), align.into(), mask.into()];
        self.call_own("llvm.masked.store", &[ty.into(), ptr.into()], &args).map(|_| ())
    }

    /// Returns whether every block in `body` can run the iterations of `var` as vector lanes.
    pub(super) fn vectorizes(&self, body: &Stmt, var: &Name) -> bool {
        let mut good = true;
        body.visit_blocks(&mut |_, b| good &= self.block_vectorizes(b, var));
        good
    }

    fn block_vectorizes(&self, b: &Block, var: &Name) -> bool {
        let Action::Store { buffer, indices, .. } = &b.action else { return false };
        let how = |buffer: &Name, indices: &[Expr]| {
            self.function.buffer(buffer).map(|b| lanes(&self.known_dims(b), indices, var))
        };
        let masked = b.guards.iter().any(|g| g.uses(var));
        let target = how(buffer, indices);
        let mut good = !b.reduce.contains(var)
            && (target == Some(Lanes::Next) || (target == Some(Lanes::Apart) && !masked))
            && !b.guards.iter().any(reads);
        b.each_expr(&mut |e| {
            e.visit(&mut |e| match e {
                // Under a mask, reads must be shared by all lanes or consecutive.
                Expr::Load { buffer, indices, .. } => {
                    let how = how(buffer, indices);
                    good &= match how {
                        Some(Lanes::Same) => !masked || !indices.iter().any(|i| i.uses(var)),
                        Some(Lanes::Next) => true,
                        _ => !masked,
                    };
                }
                Expr::Select(c, x, y) => good &= !(c.uses(var) || reads(c)) || !(reads(x) || reads(y)),
                _ => {}
            });
        });
        good
    }

    /// Returns whether any lane of a mask is set.
    pub(super) fn any(&self, mask: Value<'c>) -> Result<inkwell::values::IntValue<'c>, EmitError> {
        match self.intrinsic("llvm.vector.reduce.or", &[mask.get_type()], &[mask])? {
            BasicValueEnum::IntValue(v) => Ok(v),
            _ => Err(EmitError::Llvm("a mask is not a vector".into())),
        }
    }
}
