//! Imports one node of the program.

use super::context::{Context, Value};
use super::ops::Operator;
use super::schema::{Argument, Float, Name, Node, OptionalTensor, Scalar, Size, Symbolic};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::SemanticBuilder;
use crate::graph::op::{BinaryKind, Narrow};
use crate::graph::{DType, Tensor, ValueId};
use std::cell::RefCell;
use std::collections::HashSet;
use std::ops::{Deref, DerefMut};

pub(super) struct NodeContext<'c, 'a> {
    pub cx: &'c mut Context<'a>,
    pub proto: &'a Node,
    /// Arguments that the import has read.
    used: RefCell<HashSet<&'a str>>,
}

impl Deref for NodeContext<'_, '_> {
    type Target = SemanticBuilder;

    fn deref(&self) -> &SemanticBuilder {
        &self.cx.net
    }
}

impl DerefMut for NodeContext<'_, '_> {
    fn deref_mut(&mut self) -> &mut SemanticBuilder {
        &mut self.cx.net
    }
}

/// An operand of arithmetic: a tensor, or a number, which adapts to the type of tensors.
#[derive(Debug, Clone, Copy)]
pub(super) enum Operand {
    Tensor(ValueId),
    Int(i64),
    Float(f64),
    Bool(bool),
}

/// Types in the order in which they absorb each other.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Category {
    Bool,
    Int,
    Float,
}

fn category(dtype: DType) -> Category {
    match dtype {
        DType::Bool => Category::Bool,
        other if other.is_float() => Category::Float,
        _ => Category::Int,
    }
}

/// The type of the result of two types of the same category.
fn joined(a: DType, b: DType) -> DType {
    if a == b {
        return a;
    }
    let signed = |bytes: usize| match bytes {
        1 => DType::I8,
        2 => DType::I16,
        4 => DType::I32,
        _ => DType::I64,
    };
    match (a, b) {
        (DType::F64, _) | (_, DType::F64) => DType::F64,
        // uint8 and a type with a sign become one with a sign that has more bits.
        (DType::U8, DType::I8) | (DType::I8, DType::U8) => DType::I16,
        _ => signed(a.size_bytes().max(b.size_bytes())),
    }
}

impl<'c, 'a> NodeContext<'c, 'a> {
    pub fn new(cx: &'c mut Context<'a>, proto: &'a Node) -> NodeContext<'c, 'a> {
        NodeContext { cx, proto, used: RefCell::default() }
    }

    /// Applies the operator to the node's first argument in place: it changes the tensor, and all views of it.
    pub fn in_place(&mut self, operator: &Operator) -> Result<Value, Reason> {
        let first = self.proto.inputs.first().ok_or("it has no operands")?;
        let Argument::AsTensor(name) = &first.arg else { return Err("what it changes is no tensor".into()) };
        if operator.is_view {
            // Only what the name means changes, not the elements.
            let value = (operator.import)(self)?;
            self.cx.seen_as(self.proto, &name.name, &value);
            return Ok(value);
        }
        let dtype = self.cx.scalar_type(&name.name);
        let Value::Tensor(v) = (operator.import)(self)? else { return Err("its result is no tensor".into()) };
        let v = match dtype {
            Some(to) => self.converted("in_place", v, to)?,
            None => v,
        };
        let old = self.cx.value(&name.name)?;
        if let Value::Tensor(old) = old {
            let (old, new) = (self.shape(old)?, self.shape(v)?);
            if old != new {
                return Err(format!("it changes a tensor of shape {old:?} to one of {new:?}").into());
            }
        }
        self.cx.changed(&name.name, v)?;
        self.cx.note_alias(self.proto, &name.name);
        Ok(v.into())
    }

    /// Fails if the node has arguments that the import has not read.
    pub fn check_arguments(&self) -> Result<(), Reason> {
        let used = self.used.borrow();
        match self.proto.inputs.iter().find(|input| !used.contains(input.name.as_str())) {
            Some(input) => Err(format!("its argument `{}` is not supported", input.name).into()),
            None => Ok(()),
        }
    }

    fn argument(&self, name: &str) -> Option<&'a Argument> {
        let input = self.proto.inputs.iter().find(|input| input.name == name)?;
        self.used.borrow_mut().insert(&input.name);
        Some(&input.arg)
    }

    /// Whether the program has this argument.
    pub fn has(&self, name: &str) -> bool {
        self.proto.inputs.iter().any(|input| input.name == name)
    }

    /// Notes that arguments change no value, such as a device.
    pub fn ignore(&self, names: &[&str]) {
        for name in names {
            self.argument(name);
        }
    }

    /// Arguments without names, in their order.
    pub fn positional(&self) -> Vec<&'a Argument> {
        self.used.borrow_mut().insert("");
        self.proto.inputs.iter().filter(|input| input.name.is_empty()).map(|input| &input.arg).collect()
    }

    fn symbolic(&mut self, symbolic: &Symbolic) -> Result<Value, Reason> {
        match symbolic {
            Symbolic::Name(name) => self.cx.value(name),
            Symbolic::Int(n) => Ok(Value::Int(*n)),
            Symbolic::Float(x) => Ok(Value::Float(x.0)),
            Symbolic::Bool(x) => Ok(Value::Bool(*x)),
        }
    }

    /// The value of an argument.
    pub fn of(&mut self, argument: &Argument) -> Result<Value, Reason> {
        let tensors =
            |n: &mut Self, list: &[Name]| list.iter().map(|of| n.cx.value(&of.name)).collect::<Result<_, _>>();
        Ok(match argument {
            Argument::AsNone(_) | Argument::AsOptionalTensor(OptionalTensor::AsNone(_)) => Value::None,
            Argument::AsTensor(of) | Argument::AsOptionalTensor(OptionalTensor::AsTensor(of)) => {
                self.cx.value(&of.name)?
            }
            Argument::AsTensors(list) => Value::List(tensors(self, list)?),
            Argument::AsOptionalTensors(list) => {
                let of = |one: &OptionalTensor| match one {
                    OptionalTensor::AsTensor(of) => self.cx.value(&of.name),
                    OptionalTensor::AsNone(_) => Ok(Value::None),
                };
                Value::List(list.iter().map(of).collect::<Result<_, _>>()?)
            }
            Argument::AsInt(n) => Value::Int(*n),
            Argument::AsInts(list) => Value::List(list.iter().map(|n| Value::Int(*n)).collect()),
            Argument::AsFloat(x) => Value::Float(x.0),
            Argument::AsFloats(list) => Value::List(list.iter().map(|Float(x)| Value::Float(*x)).collect()),
            Argument::AsBool(x) => Value::Bool(*x),
            Argument::AsBools(list) => Value::List(list.iter().map(|x| Value::Bool(*x)).collect()),
            Argument::AsString(text) => Value::Text(text.clone()),
            Argument::AsSymInt(of) | Argument::AsSymFloat(of) | Argument::AsSymBool(of) => self.symbolic(of)?,
            Argument::AsSymInts(list) => {
                Value::List(list.iter().map(|of| self.symbolic(of)).collect::<Result<_, _>>()?)
            }
            _ => return Err("an argument is of a kind that is not supported".into()),
        })
    }

    /// An argument; `None` if it is left out.
    pub fn value(&mut self, name: &str) -> Result<Value, Reason> {
        match self.argument(name) {
            Some(argument) => self.of(argument),
            None => Ok(Value::None),
        }
    }

    /// A tensor that must be there.
    pub fn tensor(&mut self, name: &str) -> Result<ValueId, Reason> {
        self.optional(name)?.ok_or_else(|| format!("its argument `{name}` is missing").into())
    }

    pub fn optional(&mut self, name: &str) -> Result<Option<ValueId>, Reason> {
        match self.value(name)? {
            Value::Tensor(v) => Ok(Some(v)),
            Value::None => Ok(None),
            _ => Err(format!("its argument `{name}` must be a tensor").into()),
        }
    }

    /// A list of tensors; elements can be `None`.
    pub fn optional_tensors(&mut self, name: &str) -> Result<Vec<Option<ValueId>>, Reason> {
        let wrong = || Reason(format!("its argument `{name}` must be a list of tensors"));
        let Value::List(list) = self.value(name)? else { return Err(wrong()) };
        let of = |value| match value {
            Value::Tensor(v) => Ok(Some(v)),
            Value::None => Ok(None),
            _ => Err(wrong()),
        };
        list.into_iter().map(of).collect()
    }

    pub fn tensors(&mut self, name: &str) -> Result<Vec<ValueId>, Reason> {
        let list = self.optional_tensors(name)?.into_iter().collect::<Option<Vec<_>>>();
        list.ok_or_else(|| format!("its argument `{name}` must be a list of tensors").into())
    }

    /// A number, a truth value, or a constant tensor of one element, as a number.
    pub fn number(&mut self, name: &str) -> Result<Option<f64>, Reason> {
        Ok(match self.value(name)? {
            Value::None => None,
            Value::Int(n) => Some(n as f64),
            Value::Float(x) => Some(x),
            Value::Bool(x) => Some(f64::from(u8::from(x))),
            Value::Tensor(v) => match self.constant_of(v).map(|t| t.doubles()).as_deref() {
                Some([one]) => Some(*one),
                _ => return Err(format!("its argument `{name}` must be a known number").into()),
            },
            _ => return Err(format!("its argument `{name}` must be a number").into()),
        })
    }

    /// A number in single precision.
    pub fn single(&mut self, name: &str, default: f32) -> Result<f32, Reason> {
        Ok(self.number(name)?.map_or(default, |x| x as f32))
    }

    pub fn int(&mut self, name: &str, default: i64) -> Result<i64, Reason> {
        Ok(self.optional_int(name)?.unwrap_or(default))
    }

    pub fn optional_int(&mut self, name: &str) -> Result<Option<i64>, Reason> {
        match self.value(name)? {
            Value::None => Ok(None),
            Value::Int(n) => Ok(Some(n)),
            Value::Bool(x) => Ok(Some(x.into())),
            Value::Tensor(v) => match self.constant_of(v).map(|t| t.ints()).as_deref() {
                Some([one]) => {
                    Ok(Some(i64::try_from(*one).map_err(|_| format!("its argument `{name}` is too large"))?))
                }
                _ => {
                    self.must_know(v);
                    Err(format!("its argument `{name}` must be known at import").into())
                }
            },
            _ => Err(format!("its argument `{name}` must be a whole number").into()),
        }
    }

    pub fn flag(&mut self, name: &str, default: bool) -> Result<bool, Reason> {
        match self.value(name)? {
            Value::None => Ok(default),
            Value::Bool(x) => Ok(x),
            Value::Int(n) => Ok(n != 0),
            _ => Err(format!("its argument `{name}` must be a truth value").into()),
        }
    }

    pub fn text(&mut self, name: &str) -> Result<Option<String>, Reason> {
        match self.value(name)? {
            Value::None => Ok(None),
            Value::Text(text) => Ok(Some(text)),
            _ => Err(format!("its argument `{name}` must be a text").into()),
        }
    }

    /// Whole numbers; one number is a list of it.
    pub fn ints(&mut self, name: &str) -> Result<Option<Vec<i64>>, Reason> {
        let wrong = || Reason(format!("its argument `{name}` must be whole numbers"));
        let of = |value| match value {
            Value::Int(n) => Ok(n),
            _ => Err(wrong()),
        };
        match self.value(name)? {
            Value::None => Ok(None),
            Value::List(list) => list.into_iter().map(of).collect::<Result<_, _>>().map(Some),
            one => Ok(Some(vec![of(one)?])),
        }
    }

    /// Numbers; one number is a list of it.
    pub fn floats(&mut self, name: &str) -> Result<Option<Vec<f64>>, Reason> {
        let of = |value| match value {
            Value::Int(n) => Ok(n as f64),
            Value::Float(x) => Ok(x),
            _ => Err(Reason(format!("its argument `{name}` must be numbers"))),
        };
        match self.value(name)? {
            Value::None => Ok(None),
            Value::List(list) => list.into_iter().map(of).collect::<Result<_, _>>().map(Some),
            one => Ok(Some(vec![of(one)?])),
        }
    }

    /// `N` sizes that must not be negative: one for all, one for each, or this one for all if they are left out.
    pub fn sizes<const N: usize>(&mut self, name: &str, default: usize) -> Result<[usize; N], Reason> {
        let list = self.ints(name)?.unwrap_or_default();
        let sizes = list.iter().map(|&n| usize::try_from(n)).collect::<Result<Vec<_>, _>>();
        let sizes = sizes.map_err(|_| format!("its argument `{name}` must not be negative"))?;
        match sizes.as_slice() {
            [] => Ok([default; N]),
            [one] => Ok([*one; N]),
            many => many.try_into().map_err(|_| format!("its argument `{name}` must have {N} numbers").into()),
        }
    }

    /// The argument `dim`, or another one that names a dimension, counted from the end if negative.
    pub fn dim(&mut self, name: &str, default: i64, rank: usize) -> Result<usize, Reason> {
        let dim = self.int(name, default)?;
        self.axis(dim, rank)
    }

    /// The same, where tensors without dimensions have a dimension 0.
    pub fn dim_of_any(&mut self, name: &str, default: i64, rank: usize) -> Result<usize, Reason> {
        let dim = self.int(name, default)?;
        self.axis(dim, rank.max(1))
    }

    /// Dimensions, ascending; all of them if there are none.
    pub fn dims(&mut self, name: &str, rank: usize) -> Result<Vec<usize>, Reason> {
        let list = self.ints(name)?.unwrap_or_default();
        if list.is_empty() || rank == 0 {
            return Ok((0..rank).collect());
        }
        self.axes(&list, rank)
    }

    /// The argument that is an element type.
    pub fn scalar_type(&mut self, name: &str) -> Option<Scalar> {
        match self.argument(name) {
            Some(Argument::AsScalarType(number)) => Some(Scalar::of(*number)),
            _ => None,
        }
    }

    /// The element type that the program declares for the node's `i`-th result, in the graph.
    pub fn result_type(&self, i: usize) -> Result<DType, Reason> {
        Ok(self.result_scalar(i)?.dtype()?)
    }

    /// The same, as in the file.
    pub fn result_scalar(&self, i: usize) -> Result<Scalar, Reason> {
        let found = match self.proto.outputs.get(i) {
            Some(Argument::AsTensor(of)) => self.cx.scalar_type(&of.name),
            _ => None,
        };
        found.ok_or_else(|| "the program does not declare the type of its result".into())
    }

    /// The strides and the offset in its storage that the program declares for a tensor that is an argument.
    pub fn declared_strides(&self, name: &str) -> Option<(Vec<usize>, usize)> {
        let Some(Argument::AsTensor(of)) = self.argument(name) else { return None };
        let meta = self.cx.graph.tensor_values.get(&of.name)?;
        let known = |size: &Size| usize::try_from(size.known(&self.cx.symbols)?).ok();
        let offset = meta.storage_offset.as_ref().map_or(Some(0), known)?;
        Some((meta.strides.iter().map(known).collect::<Option<_>>()?, offset))
    }

    /// Converts a tensor to an element type of the file.
    pub fn converted(&mut self, suffix: &str, v: ValueId, to: Scalar) -> Result<ValueId, Reason> {
        let dtype = to.dtype()?;
        let from = self.ty(v).dtype;
        match to.narrowed() {
            Some(float) => {
                let v = self.cast("float", v, DType::F32)?;
                self.node(suffix, Narrow { float, saturate: false }, &[v])
            }
            // Floats become truth values and whole numbers towards zero.
            None if dtype == DType::Bool && from.is_float() => {
                let zero = self.zero_like(v)?;
                let equal = self.binary("equal", BinaryKind::Equal, v, zero)?;
                self.unary(suffix, crate::graph::op::UnaryKind::Not, equal)
            }
            None => self.cast(suffix, v, dtype),
        }
    }

    /// A zero of a tensor's type.
    pub fn zero_like(&mut self, v: ValueId) -> Result<ValueId, Reason> {
        let dtype = self.ty(v).dtype;
        self.numeral("zero", 0.0, dtype)
    }

    /// A number of an element type, as a tensor without dimensions.
    pub fn numeral(&mut self, suffix: &str, x: f64, dtype: DType) -> Result<ValueId, Reason> {
        let t = match dtype {
            DType::F64 => Tensor::scalar(x),
            _ => Tensor::scalar(x as f32),
        };
        if dtype.is_float() {
            return Ok(self.made(suffix, t));
        }
        self.whole(suffix, x as i64, dtype)
    }

    /// A whole number of an element type.
    pub fn whole(&mut self, suffix: &str, x: i64, dtype: DType) -> Result<ValueId, Reason> {
        let v = self.made(suffix, Tensor::scalar(x));
        self.cast(suffix, v, dtype)
    }

    /// A value times the number that is an argument; without it, the value itself.
    pub fn times(&mut self, name: &str, v: ValueId) -> Result<ValueId, Reason> {
        let factor = self.number(name)?.unwrap_or(1.0);
        if factor == 1.0 {
            return Ok(v);
        }
        let dtype = self.ty(v).dtype;
        let factor = self.numeral(name, factor, dtype)?;
        self.binary(&format!("times_{name}"), BinaryKind::Mul, v, factor)
    }

    /// An argument as an operand of arithmetic.
    pub fn operand(&mut self, name: &str) -> Result<Operand, Reason> {
        match self.value(name)? {
            Value::Tensor(v) => Ok(Operand::Tensor(v)),
            Value::Int(n) => Ok(Operand::Int(n)),
            Value::Float(x) => Ok(Operand::Float(x)),
            Value::Bool(x) => Ok(Operand::Bool(x)),
            _ => Err(format!("its argument `{name}` must be a tensor or a number").into()),
        }
    }

    /// An operand as a tensor of this type.
    pub fn as_type(&mut self, suffix: &str, operand: Operand, dtype: DType) -> Result<ValueId, Reason> {
        match operand {
            Operand::Tensor(v) if dtype == DType::Bool => self.converted(suffix, v, Scalar::plain(DType::Bool)),
            Operand::Tensor(v) => self.cast(suffix, v, dtype),
            Operand::Int(n) if dtype.is_float() => self.numeral(suffix, n as f64, dtype),
            Operand::Int(n) => self.whole(suffix, n, dtype),
            Operand::Float(x) if dtype == DType::Bool => self.whole(suffix, (x != 0.0).into(), dtype),
            Operand::Float(x) => self.numeral(suffix, x, dtype),
            Operand::Bool(x) => self.whole(suffix, x.into(), dtype),
        }
    }

    /// The type in which operands are computed together. A number changes the type of tensors only if it is of a higher
    /// category, and so does a tensor without dimensions beside others.
    pub fn common_type(&self, operands: &[Operand]) -> DType {
        let mut found: [Option<DType>; 3] = [None; 3];
        for operand in operands {
            let (level, dtype) = match *operand {
                Operand::Tensor(v) => (usize::from(self.ty(v).rank() == 0), self.ty(v).dtype),
                Operand::Int(_) => (2, DType::I64),
                Operand::Float(_) => (2, DType::F32),
                Operand::Bool(_) => (2, DType::Bool),
            };
            let joined = match found[level] {
                Some(known) if category(known) == category(dtype) => joined(known, dtype),
                Some(known) if category(known) > category(dtype) => known,
                _ => dtype,
            };
            found[level] = Some(joined);
        }
        let higher = |known: DType, next: DType| if category(next) > category(known) { next } else { known };
        found.into_iter().flatten().reduce(higher).unwrap_or(DType::F32)
    }
}
