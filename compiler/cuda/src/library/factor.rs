//! The factors of a product, and loops as digits of a number.

use std::collections::HashMap;

use tilewright_compiler::te::{Axis, BinOp, DType, Expr, Name, Program};
use tilewright_compiler::tir::Affine;

/// A factor: an element of a tensor minus a zero point.
#[derive(Debug, Clone)]
pub struct Operand {
    /// The tensor.
    pub tensor: Name,
    /// Whether the tensor is an input of the program.
    pub given: bool,
    /// The element's position in the tensor as a function of the loops.
    pub place: Affine,
    indices: Vec<Expr>,
    dtype: DType,
    zero: i64,
}

impl Operand {
    /// Reads a factor of floats or bytes. Returns `None` for other expressions.
    pub fn of(p: &Program, e: &Expr) -> Option<Operand> {
        let (e, zero) = match e {
            Expr::Binary(BinOp::Sub, value, zero) => match &**zero {
                Expr::Int(zero, DType::I32) => (&**value, *zero),
                _ => return None,
            },
            other => (other, 0),
        };
        let (e, widened) = match e {
            Expr::Cast(DType::I32, value) => (&**value, true),
            other => (other, false),
        };
        let Expr::Load { buffer, dtype, indices } = e else { return None };
        match (dtype, widened) {
            (DType::F32, false) if zero == 0 => {}
            (DType::I8 | DType::U8, true) => {}
            _ => return None,
        }
        let tensor = p.tensor(buffer)?;
        let mut place = Affine::default();
        for (index, extent) in indices.iter().zip(tensor.shape()) {
            place = place.times(extent).plus(&Affine::of(index)?, 1);
        }
        let given = p.inputs().any(|t| &t.name == buffer);
        Some(Operand { tensor: buffer.clone(), given, place, indices: indices.clone(), dtype: *dtype, zero })
    }

    /// Returns the type of the tensor's elements.
    pub fn dtype(&self) -> DType {
        self.dtype
    }

    /// Returns the zero point of the elements that [`Operand::element`] returns.
    pub fn signed_zero(&self) -> i64 {
        if self.dtype == DType::U8 { self.zero - 128 } else { self.zero }
    }

    /// Returns the element with variables replaced. Floats are unchanged; bytes are converted to signed.
    pub fn element(&self, values: &HashMap<Name, Expr>) -> Expr {
        let at = |e: &Expr| e.substitute(&|v| Some(values.get(v).cloned().unwrap_or(Expr::int(0))));
        let indices = self.indices.iter().map(at).collect();
        let load = Expr::Load { buffer: self.tensor.clone(), dtype: self.dtype, indices };
        if self.dtype == DType::U8 { (load.cast(DType::I32) - 128).cast(DType::I8) } else { load }
    }
}

/// Loop variables as digits of a number, the most significant first.
#[derive(Debug, Clone)]
pub struct Digits(Vec<(Name, i64)>);

impl Digits {
    /// Creates digits from axes.
    pub fn new<'a>(axes: impl Iterator<Item = &'a Axis>) -> Digits {
        Digits(axes.map(|a| (a.var.clone(), a.extent)).collect())
    }

    /// Returns how many numbers there are.
    pub fn count(&self) -> i64 {
        self.0.iter().map(|d| d.1).product()
    }

    /// Returns the variables in order.
    pub fn vars(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().map(|d| &d.0)
    }

    /// Returns the digits sorted by decreasing step in memory.
    pub fn sorted(&self, place: &Affine) -> Digits {
        let mut list = self.0.clone();
        list.sort_by_key(|(v, _)| -place.coefficient(v));
        Digits(list)
    }

    /// Returns the step in memory from one number to the next, or `None` if it is not constant. It is 0 for a single
    /// number.
    pub fn step(&self, place: &Affine) -> Option<i64> {
        let mut step = None;
        for (var, extent) in self.0.iter().rev() {
            let c = place.coefficient(var);
            match step {
                None => step = Some((c, c * extent)),
                Some((first, next)) if next == c => step = Some((first, c * extent)),
                Some(_) => return None,
            }
        }
        Some(step.map_or(0, |s| s.0))
    }

    /// Returns the number for given values of the variables.
    pub fn number(&self, value: impl Fn(&Name) -> Expr) -> Expr {
        let digit = |sum: Expr, (var, extent): &(Name, i64)| sum * *extent + value(var);
        match &self.0[..] {
            [] => Expr::int(0),
            [first, rest @ ..] => rest.iter().fold(value(&first.0), digit),
        }
    }

    /// Inserts the value of each variable into `values`, computed from the number. The first digit passes its end if
    /// the number does.
    pub fn decode(&self, number: &Expr, values: &mut HashMap<Name, Expr>) {
        let mut below = 1;
        for (at, (var, extent)) in self.0.iter().enumerate().rev() {
            let mut value = number.clone();
            if below > 1 {
                value = value / below;
            }
            if at > 0 {
                value = Expr::binary(BinOp::Mod, value, Expr::int(*extent));
            }
            values.insert(var.clone(), value);
            below *= extent;
        }
    }
}
