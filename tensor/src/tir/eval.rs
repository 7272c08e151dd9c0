//! Interprets loop programs, one scalar operation at a time: the reference that all code generators are tested against.

use std::sync::Arc;

use crate::te::NameMap;

use super::{Action, Block, Function, Intrinsic, Stmt, TirError, View, lower};
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
    let names = f.params.iter().chain(&f.locals).enumerate().map(|(i, b)| (b.name.clone(), i)).collect();
    let mut compiler = Compiler { function: f, buffers: names, vars: NameMap::default(), slots: 0 };
    let code = compiler.stmt(&f.body);
    let names = f.params.iter().chain(&f.locals).map(|b| b.name.clone()).collect();
    let mut machine = Machine { vars: vec![0; compiler.slots], buffers, names };
    machine.run(&code)?;
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
    indices: Vec<Value>,
    value: Value,
}

enum Value {
    Constant(Scalar),
    Var(usize),
    Load(usize, Vec<Value>),
    Binary(BinOp, DType, Box<(Value, Value)>),
    Select(Box<(Value, Value, Value)>),
    Cast(DType, Box<Value>),
    Call(Func, Vec<Value>),
    Pick(Arc<[i64]>, Box<Value>),
}

struct Compiler<'a> {
    function: &'a Function,
    buffers: NameMap<usize>,
    vars: NameMap<usize>,
    slots: usize,
}

impl Compiler<'_> {
    fn stmt(&mut self, s: &Stmt) -> Code {
        match s {
            Stmt::Seq(items) => Code::Seq(items.iter().map(|s| self.stmt(s)).collect()),
            Stmt::For(l) => {
                let slot = self.slots;
                self.slots += 1;
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
            Action::Store { buffer, indices, value } => Code::Block(Leaf {
                name: b.name.clone(),
                reduce: b.reduce.iter().filter_map(|v| self.vars.get(v).copied()).collect(),
                guards: b.guards.iter().map(|g| self.expr(g)).collect(),
                init: b.init.as_ref().map(|i| self.expr(i)),
                buffer: self.buffers.get(buffer).copied().unwrap_or(usize::MAX),
                indices: indices.iter().map(|i| self.expr(i)).collect(),
                value: self.expr(value),
            }),
            Action::Call { intrinsic, args } => match self.function.intrinsic(intrinsic) {
                Some(i) => {
                    let body = expand_call(i, args, &b.guards);
                    self.stmt(&body)
                }
                None => Code::Seq(Vec::new()),
            },
        }
    }

    fn expr(&self, e: &Expr) -> Value {
        match e {
            Expr::Int(v, _) => Value::Constant(Scalar::I(*v)),
            Expr::Float(v, _) => Value::Constant(Scalar::F(*v as f32)),
            Expr::Var(v) => Value::Var(self.vars.get(v).copied().unwrap_or(0)),
            Expr::Load { buffer, indices, .. } => Value::Load(
                self.buffers.get(buffer).copied().unwrap_or(usize::MAX),
                indices.iter().map(|i| self.expr(i)).collect(),
            ),
            Expr::Binary(op, a, b) => Value::Binary(*op, a.dtype(), Box::new((self.expr(a), self.expr(b)))),
            Expr::Select(c, a, b) => Value::Select(Box::new((self.expr(c), self.expr(a), self.expr(b)))),
            Expr::Cast(t, a) => Value::Cast(*t, Box::new(self.expr(a))),
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

struct Machine {
    vars: Vec<i64>,
    buffers: Vec<Array>,
    names: Vec<Name>,
}

impl Machine {
    fn run(&mut self, code: &Code) -> Result<(), TirError> {
        match code {
            Code::Seq(items) => items.iter().try_for_each(|c| self.run(c)),
            Code::For(slot, extent, body) => {
                for i in 0..*extent {
                    self.vars[*slot] = i;
                    self.run(body)?;
                }
                Ok(())
            }
            Code::Block(b) => self.block(b),
        }
    }

    fn block(&mut self, b: &Leaf) -> Result<(), TirError> {
        for g in &b.guards {
            if self.value(g, b)?.int() == 0 {
                return Ok(());
            }
        }
        let at = self.position(b.buffer, &b.indices, b)?;
        if let Some(init) = &b.init
            && b.reduce.iter().all(|&s| self.vars[s] == 0)
        {
            let v = self.value(init, b)?;
            self.buffers[b.buffer].set(at, v);
        }
        let v = self.value(&b.value, b)?;
        self.buffers[b.buffer].set(at, v);
        Ok(())
    }

    fn position(&self, buffer: usize, indices: &[Value], b: &Leaf) -> Result<usize, TirError> {
        let Some(array) = self.buffers.get(buffer) else {
            let (block, index, shape) = (b.name.clone(), Vec::new(), Vec::new());
            return Err(TirError::OutOfBounds { block, buffer: "an unknown buffer".into(), index, shape });
        };
        let mut at = 0;
        let mut inside = indices.len() == array.shape.len();
        for (i, &n) in indices.iter().zip(&array.shape) {
            let i = self.value(i, b)?.int();
            inside &= i >= 0 && i < n;
            at = at * n + i;
        }
        if inside {
            return Ok(at as usize);
        }
        let index = indices.iter().map(|i| Ok(self.value(i, b)?.int())).collect::<Result<_, TirError>>()?;
        let name = self.names[buffer].clone();
        Err(TirError::OutOfBounds { block: b.name.clone(), buffer: name, index, shape: array.shape.clone() })
    }

    fn value(&self, v: &Value, b: &Leaf) -> Result<Scalar, TirError> {
        Ok(match v {
            Value::Constant(c) => *c,
            Value::Var(slot) => Scalar::I(self.vars[*slot]),
            Value::Load(buffer, indices) => {
                let at = self.position(*buffer, indices, b)?;
                self.buffers[*buffer].get(at).unwrap_or(Scalar::I(0))
            }
            Value::Binary(op, t, ab) => scalar::binary(*op, self.value(&ab.0, b)?, self.value(&ab.1, b)?, *t),
            Value::Select(cab) => {
                let chosen = if self.value(&cab.0, b)?.int() != 0 { &cab.1 } else { &cab.2 };
                self.value(chosen, b)?
            }
            Value::Cast(t, a) => scalar::cast(self.value(a, b)?, *t),
            Value::Pick(list, index) => Scalar::I(scalar::pick(list, self.value(index, b)?.int())),
            Value::Call(f, args) => {
                let mut list = [Scalar::I(0); 4];
                for (slot, a) in list.iter_mut().zip(args) {
                    *slot = self.value(a, b)?;
                }
                scalar::call(*f, &list[..args.len().min(4)])
            }
        })
    }
}
