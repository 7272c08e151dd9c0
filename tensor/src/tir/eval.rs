//! Interprets loop programs, one scalar operation at a time: the reference that all code generators are tested against.

use std::cell::Cell;
use std::sync::Arc;

use tilewright_hw::interrupt::{self, Interrupted};

use crate::te::NameMap;

use super::{Action, Affine, Block, Function, Intrinsic, Stmt, TirError, View, lower};
use crate::te::{Array, BinOp, DType, Expr, Func, Name, Program, Scalar, scalar};

/// Returns the outputs of a tensor expression.
///
/// # Errors
/// The errors of [`lower()`] and [`run`].
pub fn evaluate(program: &Program, inputs: &[Array]) -> Result<Vec<Array>, TirError> {
    run(&lower(program)?, inputs)
}

/// Returns the outputs of a verified function for these inputs.
///
/// Locals and outputs start with a fill pattern (0x5a), so that programs that read them before writing give wrong
/// results.
///
/// # Errors
/// [`TirError::Argument`] if an input does not fit, [`TirError::OutOfBounds`] if an access is outside its buffer.
pub fn run(f: &Function, inputs: &[Array]) -> Result<Vec<Array>, TirError> {
    let describe = |t: DType, shape: &[i64]| format!("{t}{shape:?}");
    let argument = |index, expected, found| TirError::Argument { function: f.name.clone(), index, expected, found };
    let wanted = f.inputs();
    if wanted.len() != inputs.len() {
        let (index, found) = (inputs.len(), format!("{} arguments", inputs.len()));
        return Err(argument(index, format!("one of {} inputs", wanted.len()), found));
    }
    let mut buffers = Vec::new();
    for (i, (b, a)) in wanted.iter().zip(inputs).enumerate() {
        if b.dtype != a.dtype || b.shape != a.shape {
            return Err(argument(i, describe(b.dtype, &b.shape), describe(a.dtype, &a.shape)));
        }
        buffers.push(a.clone());
    }
    for b in f.output_buffers().iter().chain(&f.locals) {
        let mut a = Array::zeros(b.dtype, &b.shape);
        a.bytes.fill(0x5a);
        buffers.push(a);
    }
    let names: Vec<Name> = f.params.iter().chain(&f.locals).map(|b| b.name.clone()).collect();
    let numbers = names.iter().cloned().zip(0..).collect();
    let shapes = buffers.iter().map(|a| a.shape.clone()).collect();
    let mut compiler =
        Compiler { function: f, buffers: numbers, shapes, vars: NameMap::default(), extents: Vec::new() };
    let code = compiler.stmt(&f.body);
    let mut machine = Machine { vars: vec![0; compiler.extents.len()], buffers, fault: Cell::default(), rounds: 0 };
    match machine.run(&code) {
        Ok(()) => {}
        Err(Stop::Fault(block, fault)) => return Err(fault.described(block, &names, &machine.buffers)),
        Err(Stop::Interrupted(stopped)) => return Err(stopped.into()),
    }
    let first = wanted.len();
    Ok(machine.buffers.drain(first..first + f.outputs).collect())
}

/// Statements with names resolved.
enum Code {
    Seq(Vec<Code>),
    For(usize, i64, Box<Code>),
    Block(Leaf),
}

struct Leaf {
    name: Name,
    reduce: Vec<usize>,
    guards: Vec<Value>,
    init: Option<Value>,
    buffer: usize,
    place: Place,
    value: Value,
}

/// A number that is affine in the loop variables, by their slots.
struct Linear {
    constant: i64,
    terms: Box<[(usize, i64)]>,
}

impl Linear {
    fn at(&self, vars: &[i64]) -> i64 {
        self.terms.iter().fold(self.constant, |sum, (slot, c)| sum.wrapping_add(vars[*slot].wrapping_mul(*c)))
    }
}

/// Where a buffer is accessed.
enum Place {
    /// The row-major position, which is inside the buffer for all values of the loop variables.
    Inside(Linear),
    /// The indices, which may be outside.
    Checked(Vec<Value>),
}

enum Value {
    Constant(Scalar),
    Linear(Linear),
    Load(usize, Place),
    Binary(BinOp, DType, Box<(Value, Value)>),
    Select(Box<(Value, Value, Value)>),
    Cast(DType, DType, Box<Value>),
    Bitcast(DType, Box<Value>),
    Call(Func, Vec<Value>),
    Pick(Arc<[i64]>, Box<Value>),
}

struct Compiler<'a> {
    function: &'a Function,
    buffers: NameMap<usize>,
    shapes: Vec<Vec<i64>>,
    vars: NameMap<usize>,
    /// The extent of each slot's loop.
    extents: Vec<i64>,
}

impl Compiler<'_> {
    fn stmt(&mut self, s: &Stmt) -> Code {
        match s {
            Stmt::Seq(items) => Code::Seq(items.iter().map(|s| self.stmt(s)).collect()),
            Stmt::For(l) => {
                let slot = self.extents.len();
                self.extents.push(l.extent);
                let old = self.vars.insert(l.var.clone(), slot);
                let body = self.stmt(&l.body);
                match old {
                    Some(o) => self.vars.insert(l.var.clone(), o),
                    None => self.vars.remove(&l.var),
                };
                Code::For(slot, l.extent, Box::new(body))
            }
            Stmt::Block(b) => self.block(b),
        }
    }

    fn block(&mut self, b: &Block) -> Code {
        match &b.action {
            Action::Store { buffer, indices, value } => {
                let (buffer, place) = self.place(buffer, indices);
                Code::Block(Leaf {
                    name: b.name.clone(),
                    reduce: b.reduce.iter().filter_map(|v| self.vars.get(v).copied()).collect(),
                    guards: b.guards.iter().map(|g| self.expr(g)).collect(),
                    init: b.init.as_ref().map(|i| self.expr(i)),
                    buffer,
                    place,
                    value: self.expr(value),
                })
            }
            Action::Call { intrinsic, args } => match self.function.intrinsic(intrinsic) {
                Some(i) => {
                    let body = expand_call(i, args, &b.guards);
                    self.stmt(&body)
                }
                None => Code::Seq(Vec::new()),
            },
        }
    }

    fn linear(&self, a: &Affine) -> Option<Linear> {
        let terms = a.terms.iter().map(|(v, c)| Some((*self.vars.get(v)?, c))).collect::<Option<_>>()?;
        Some(Linear { constant: a.constant, terms })
    }

    /// Returns whether an index is inside an extent for all values of the loop variables.
    fn is_inside(&self, index: &Linear, extent: i64) -> bool {
        let (mut least, mut most) = (i128::from(index.constant), i128::from(index.constant));
        for (slot, c) in &index.terms {
            let reach = i128::from(*c) * i128::from((self.extents[*slot] - 1).max(0));
            if reach < 0 { least += reach } else { most += reach }
        }
        least >= 0 && most < i128::from(extent)
    }

    fn place(&self, buffer: &Name, indices: &[Expr]) -> (usize, Place) {
        let number = self.buffers.get(buffer).copied().unwrap_or(usize::MAX);
        let inside = || {
            let shape = self.shapes.get(number).filter(|shape| shape.len() == indices.len())?;
            let mut position = Affine::default();
            for (index, extent) in indices.iter().zip(shape) {
                let index = Affine::of(index)?;
                if !self.is_inside(&self.linear(&index)?, *extent) {
                    return None;
                }
                position = position.times(*extent).plus(&index, 1);
            }
            self.linear(&position)
        };
        let place = match inside() {
            Some(position) => Place::Inside(position),
            None => Place::Checked(indices.iter().map(|i| self.expr(i)).collect()),
        };
        (number, place)
    }

    fn expr(&self, e: &Expr) -> Value {
        // Affine expressions have 64 bits, as the sum of their terms.
        if let Some(linear) = Affine::of(e).and_then(|a| self.linear(&a)) {
            return Value::Linear(linear);
        }
        match e {
            Expr::Int(v, _) => Value::Constant(Scalar::I(*v)),
            Expr::Float(v, t) => Value::Constant(scalar::cast(Scalar::D(*v), DType::F64, *t)),
            Expr::Var(v) => {
                Value::Linear(Linear { constant: 0, terms: [(self.vars.get(v).copied().unwrap_or(0), 1)].into() })
            }
            Expr::Load { buffer, indices, .. } => {
                let (buffer, place) = self.place(buffer, indices);
                Value::Load(buffer, place)
            }
            Expr::Binary(op, a, b) => Value::Binary(*op, a.dtype(), Box::new((self.expr(a), self.expr(b)))),
            Expr::Select(c, a, b) => Value::Select(Box::new((self.expr(c), self.expr(a), self.expr(b)))),
            Expr::Cast(t, a) => Value::Cast(a.dtype(), *t, Box::new(self.expr(a))),
            Expr::Bitcast(t, a) => Value::Bitcast(*t, Box::new(self.expr(a))),
            Expr::Call(f, args) => Value::Call(*f, args.iter().map(|a| self.expr(a)).collect()),
            Expr::Pick(list, index) => Value::Pick(Arc::clone(list), Box::new(self.expr(index))),
        }
    }
}

/// Expands a call of an intrinsic to loops. Its variables get the intrinsic's name as a prefix, so that none collides
/// with the caller's.
pub fn expand_call(intrinsic: &Intrinsic, args: &[View], guards: &[Expr]) -> Stmt {
    let param = |name: &Name| intrinsic.params.iter().position(|p| &p.name == name).and_then(|i| args.get(i));
    let rename = |v: &Name| Name::from(format!("{}.{v}", intrinsic.name));
    let place = |v: &View, indices: &[Expr]| -> Vec<Expr> {
        let at = |d: &Name| v.dims.iter().position(|n| n == d).and_then(|i| indices.get(i).cloned());
        v.indices.iter().map(|e| e.substitute(&at)).collect()
    };
    let inside = |e: &Expr| {
        e.substitute(&|v| Some(Expr::Var(rename(v)))).rewrite(&mut |e| match &e {
            Expr::Load { buffer, dtype, indices } => match param(buffer) {
                Some(v) => Expr::Load { buffer: v.buffer.clone(), dtype: *dtype, indices: place(v, indices) },
                None => e,
            },
            _ => e,
        })
    };
    let mut body = intrinsic.body.clone();
    body.each_block_mut(&mut |b| {
        b.reduce = b.reduce.iter().map(rename).collect();
        b.each_expr_mut(&mut |e| *e = inside(e));
        b.guards.extend(guards.iter().cloned());
        if let Action::Store { buffer, indices, .. } = &mut b.action
            && let Some(v) = param(buffer)
        {
            *indices = place(v, indices);
            *buffer = v.buffer.clone();
        }
    });
    fn loops(s: &mut Stmt, rename: &dyn Fn(&Name) -> Name) {
        match s {
            Stmt::Seq(items) => items.iter_mut().for_each(|s| loops(s, rename)),
            Stmt::For(l) => {
                l.var = rename(&l.var);
                loops(&mut l.body, rename);
            }
            Stmt::Block(_) => {}
        }
    }
    loops(&mut body, &rename);
    body
}

/// An access outside of its buffer.
struct Fault {
    buffer: usize,
    index: Vec<i64>,
}

impl Fault {
    fn described(self, block: Name, names: &[Name], buffers: &[Array]) -> TirError {
        let Fault { buffer, index } = self;
        let name = names.get(buffer).cloned().unwrap_or_else(|| "an unknown buffer".into());
        let shape = buffers.get(buffer).map(|a| a.shape.clone()).unwrap_or_default();
        TirError::OutOfBounds { block, buffer: name, index, shape }
    }
}

struct Machine {
    vars: Vec<i64>,
    buffers: Vec<Array>,
    /// The first access outside of a buffer, which read 0 or wrote nothing.
    fault: Cell<Option<Box<Fault>>>,
    /// Rounds of loops that were run.
    rounds: u64,
}

/// Why a run ended before its end.
enum Stop {
    /// A block accessed an element outside of a buffer.
    Fault(Name, Box<Fault>),
    Interrupted(Interrupted),
}

/// Rounds of loops between two looks whether the work is stopped; some milliseconds.
const LOOK: u64 = 1 << 14;

impl Machine {
    /// Runs code; stops after a block with a fault, and soon after the work is stopped.
    fn run(&mut self, code: &Code) -> Result<(), Stop> {
        match code {
            Code::Seq(items) => items.iter().try_for_each(|c| self.run(c)),
            Code::For(slot, extent, body) => {
                for i in 0..*extent {
                    self.vars[*slot] = i;
                    self.run(body)?;
                    self.rounds += 1;
                    if self.rounds.is_multiple_of(LOOK) {
                        interrupt::check().map_err(Stop::Interrupted)?;
                    }
                }
                Ok(())
            }
            Code::Block(b) => {
                self.block(b);
                match self.fault.take() {
                    None => Ok(()),
                    Some(fault) => Err(Stop::Fault(b.name.clone(), fault)),
                }
            }
        }
    }

    fn block(&mut self, b: &Leaf) {
        if b.guards.iter().any(|g| self.value(g).int() == 0) {
            return;
        }
        let Some(at) = self.position(b.buffer, &b.place) else { return };
        if let Some(init) = &b.init
            && b.reduce.iter().all(|&s| self.vars[s] == 0)
        {
            let v = self.value(init);
            self.buffers[b.buffer].set(at, v);
        }
        let v = self.value(&b.value);
        self.buffers[b.buffer].set(at, v);
    }

    /// Returns the row-major position; notes a fault and returns `None` if it is outside the buffer.
    #[inline]
    fn position(&self, buffer: usize, place: &Place) -> Option<usize> {
        match place {
            Place::Inside(position) => Some(position.at(&self.vars) as usize),
            Place::Checked(indices) => self.checked(buffer, indices),
        }
    }

    fn checked(&self, buffer: usize, indices: &[Value]) -> Option<usize> {
        let array = self.buffers.get(buffer);
        let shape = array.map_or(&[][..], |a| &a.shape);
        let (mut at, mut inside) = (0, array.is_some() && indices.len() == shape.len());
        for (i, &n) in indices.iter().zip(shape) {
            let i = self.value(i).int();
            inside &= i >= 0 && i < n;
            at = at * n + i;
        }
        if inside {
            return Some(at as usize);
        }
        // Indices can have faults of their own, which come first.
        let index = indices.iter().map(|i| self.value(i).int()).collect();
        let earlier = self.fault.take();
        self.fault.set(earlier.or_else(|| Some(Box::new(Fault { buffer, index }))));
        None
    }

    fn value(&self, v: &Value) -> Scalar {
        match v {
            Value::Constant(c) => *c,
            Value::Linear(linear) => Scalar::I(linear.at(&self.vars)),
            Value::Load(buffer, place) => {
                let at = self.position(*buffer, place);
                at.and_then(|at| self.buffers[*buffer].get(at)).unwrap_or(Scalar::I(0))
            }
            Value::Binary(op, t, ab) => scalar::binary(*op, self.value(&ab.0), self.value(&ab.1), *t),
            Value::Select(cab) => self.value(if self.value(&cab.0).int() != 0 { &cab.1 } else { &cab.2 }),
            Value::Cast(from, to, a) => scalar::cast(self.value(a), *from, *to),
            Value::Bitcast(t, a) => scalar::bitcast(self.value(a), *t),
            Value::Pick(list, index) => Scalar::I(scalar::pick(list, self.value(index).int())),
            Value::Call(f, args) => {
                let mut list = [Scalar::I(0); 4];
                for (slot, a) in list.iter_mut().zip(args) {
                    *slot = self.value(a);
                }
                scalar::call(*f, &list[..args.len().min(4)])
            }
        }
    }
}
