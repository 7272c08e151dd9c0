//! A reader of pickles that hold named tensors and nothing else. It knows the few instructions that such pickles consist of,
//! makes only tensors of them, and executes nothing: a pickle that names any other function is refused.

use super::schema::{Scalar, Size, TensorMeta};
use crate::frontend::room::Room;
use crate::graph::DType;
use std::collections::HashMap;
use tilewright_runtime::tensor::NarrowFloat;

/// Bytes counted for a value of a pickle.
const VALUE_BYTES: usize = 64;

#[derive(Debug, Clone)]
enum Value {
    None,
    Bool,
    Int(i64),
    Text(String),
    Tuple(Vec<Value>),
    /// A dictionary's keys and values.
    Dict(Vec<(Value, Value)>),
    /// A function or class, by module and name.
    Global(String),
    Storage {
        key: String,
        dtype: Scalar,
    },
    Tensor {
        storage: String,
        meta: TensorMeta,
    },
    Mark,
}

/// What a pickle may name.
const FUNCTIONS: [&str; 4] = [
    "torch._utils._rebuild_tensor_v2",
    "torch._utils._rebuild_parameter",
    "collections.OrderedDict",
    "torch._utils._rebuild_parameter_with_state",
];

/// The element type of a class of storages.
fn storage(class: &str) -> Option<Scalar> {
    Some(match class.strip_prefix("torch.")? {
        "FloatStorage" => Scalar::plain(DType::F32),
        "DoubleStorage" => Scalar::plain(DType::F64),
        "HalfStorage" => Scalar::narrow(NarrowFloat::F16),
        "BFloat16Storage" => Scalar::narrow(NarrowFloat::Bf16),
        "LongStorage" => Scalar::plain(DType::I64),
        "IntStorage" => Scalar::plain(DType::I32),
        "ShortStorage" => Scalar::plain(DType::I16),
        "CharStorage" => Scalar::plain(DType::I8),
        "ByteStorage" => Scalar::plain(DType::U8),
        "BoolStorage" => Scalar::plain(DType::Bool),
        _ => return None,
    })
}

/// The tensors that a pickle's dictionary names: the key of each one's storage, and its type. Other values are left out.
pub(super) fn tensors(bytes: &[u8], room: &mut Room) -> Result<HashMap<String, (String, TensorMeta)>, String> {
    let mut reader = Reader { bytes, at: 0, stack: Vec::new(), memo: HashMap::new(), room };
    let Value::Dict(entries) = reader.run()? else { return Err("its pickle is no dictionary".into()) };
    let tensor = |(key, value)| match (key, value) {
        (Value::Text(name), Value::Tensor { storage, meta }) => Some((name, (storage, meta))),
        _ => None,
    };
    Ok(entries.into_iter().filter_map(tensor).collect())
}

struct Reader<'b, 'r> {
    bytes: &'b [u8],
    at: usize,
    stack: Vec<Value>,
    memo: HashMap<u32, Value>,
    room: &'r mut Room,
}

impl Reader<'_, '_> {
    fn take(&mut self, count: usize) -> Result<&[u8], String> {
        let end = self.at.checked_add(count);
        let found = end.and_then(|end| self.bytes.get(self.at..end)).ok_or("its pickle ends too early")?;
        self.at += count;
        Ok(found)
    }

    fn byte(&mut self) -> Result<u8, String> {
        Ok(self.take(1)?[0])
    }

    fn u32(&mut self) -> Result<u32, String> {
        let bytes = self.take(4)?;
        Ok(u32::from_le_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]))
    }

    fn line(&mut self) -> Result<String, String> {
        let rest = self.bytes.get(self.at..).unwrap_or_default();
        let end = rest.iter().position(|b| *b == b'\n').ok_or("its pickle ends too early")?;
        let line = self.text(end)?;
        self.at += 1;
        Ok(line)
    }

    fn text(&mut self, count: usize) -> Result<String, String> {
        let bytes = self.take(count)?.to_vec();
        self.room.take_for(count, "its pickle")?;
        String::from_utf8(bytes).map_err(|_| "a text of its pickle is not UTF-8".into())
    }

    fn pop(&mut self) -> Result<Value, String> {
        match self.stack.pop() {
            None | Some(Value::Mark) => Err("its pickle is damaged".into()),
            Some(value) => Ok(value),
        }
    }

    /// The values behind the last mark, which is removed.
    fn behind_mark(&mut self) -> Result<Vec<Value>, String> {
        let mark = self.stack.iter().rposition(|v| matches!(v, Value::Mark)).ok_or("its pickle is damaged")?;
        let values = self.stack.split_off(mark + 1);
        self.stack.pop();
        Ok(values)
    }

    fn last(&mut self, count: usize) -> Result<Value, String> {
        let mut values = (0..count).map(|_| self.pop()).collect::<Result<Vec<_>, _>>()?;
        values.reverse();
        Ok(Value::Tuple(values))
    }

    fn set(&mut self, entries: Vec<Value>) -> Result<(), String> {
        let Some(Value::Dict(all)) = self.stack.last_mut() else { return Err("its pickle is damaged".into()) };
        let mut entries = entries.into_iter();
        while let (Some(key), Some(value)) = (entries.next(), entries.next()) {
            if depth(&value) + 1 > DEPTH || depth(&key) > 0 {
                return Err(format!("more than {DEPTH} values within each other in its pickle are not supported"));
            }
            all.push((key, value));
        }
        Ok(())
    }

    /// Runs the pickle's instructions, and returns what it holds.
    fn run(&mut self) -> Result<Value, String> {
        loop {
            self.room.take_for(VALUE_BYTES, "its pickle")?;
            let value = match self.byte()? {
                0x80 => {
                    let protocol = self.byte()?;
                    if protocol > 5 {
                        return Err(format!("its pickle has protocol {protocol}, which is not known"));
                    }
                    continue;
                }
                b'.' => return self.pop(),
                // FRAME
                0x95 => {
                    self.take(8)?;
                    continue;
                }
                b'}' => Value::Dict(Vec::new()),
                b')' | b']' => Value::Tuple(Vec::new()),
                b'(' => Value::Mark,
                b'N' => Value::None,
                0x88 | 0x89 => Value::Bool,
                b'K' => Value::Int(self.byte()?.into()),
                b'M' => {
                    let bytes = self.take(2)?;
                    Value::Int(u16::from_le_bytes([bytes[0], bytes[1]]).into())
                }
                b'J' => Value::Int(self.u32()?.cast_signed().into()),
                // LONG1
                0x8a => {
                    let count = usize::from(self.byte()?);
                    let bytes = self.take(count)?;
                    if count > 8 {
                        return Err("a number of its pickle is too large".into());
                    }
                    let fill = if bytes.last().is_some_and(|b| b & 0x80 != 0) { 0xff } else { 0 };
                    let mut all = [fill; 8];
                    all[..count].copy_from_slice(bytes);
                    Value::Int(i64::from_le_bytes(all))
                }
                b'X' => {
                    let count = self.u32()? as usize;
                    Value::Text(self.text(count)?)
                }
                // SHORT_BINUNICODE
                0x8c => {
                    let count = usize::from(self.byte()?);
                    Value::Text(self.text(count)?)
                }
                b'c' => {
                    let (module, name) = (self.line()?, self.line()?);
                    self.global(&module, &name)?
                }
                // STACK_GLOBAL
                0x93 => {
                    let (name, module) = (self.pop()?, self.pop()?);
                    let (Value::Text(module), Value::Text(name)) = (module, name) else {
                        return Err("its pickle is damaged".into());
                    };
                    self.global(&module, &name)?
                }
                b'q' => {
                    let place = self.byte()?.into();
                    self.memorize(place)?;
                    continue;
                }
                b'r' => {
                    let place = self.u32()?;
                    self.memorize(place)?;
                    continue;
                }
                // MEMOIZE
                0x94 => {
                    let place = u32::try_from(self.memo.len()).map_err(|_| "its pickle is too large")?;
                    self.memorize(place)?;
                    continue;
                }
                b'h' => {
                    let place = self.byte()?.into();
                    self.recall(place)?
                }
                b'j' => {
                    let place = self.u32()?;
                    self.recall(place)?
                }
                b't' => Value::Tuple(self.behind_mark()?),
                0x85 => self.last(1)?,
                0x86 => self.last(2)?,
                0x87 => self.last(3)?,
                b'Q' => {
                    let id = self.pop()?;
                    persistent(id)?
                }
                b'R' => {
                    let (operands, function) = (self.pop()?, self.pop()?);
                    called(function, operands)?
                }
                b'u' => {
                    let entries = self.behind_mark()?;
                    self.set(entries)?;
                    continue;
                }
                b's' => {
                    let (value, key) = (self.pop()?, self.pop()?);
                    self.set(vec![key, value])?;
                    continue;
                }
                // The state of an object, such as the version of a dictionary of weights, changes no tensor.
                b'b' => {
                    self.pop()?;
                    continue;
                }
                // Items of a list; lists are no tensors.
                b'e' => {
                    self.behind_mark()?;
                    continue;
                }
                b'a' | b'0' => {
                    self.pop()?;
                    continue;
                }
                other => return Err(format!("instruction {other:#04x} of its pickle is not one of tensors")),
            };
            if depth(&value) > DEPTH {
                return Err(format!("more than {DEPTH} values within each other in its pickle are not supported"));
            }
            self.stack.push(value);
        }
    }

    fn global(&self, module: &str, name: &str) -> Result<Value, String> {
        let full = format!("{module}.{name}");
        if FUNCTIONS.contains(&full.as_str()) || storage(&full).is_some() {
            return Ok(Value::Global(full));
        }
        Err(format!("its pickle names `{full}`; only tensors are read, and nothing is executed"))
    }

    fn memorize(&mut self, place: u32) -> Result<(), String> {
        // Copies are of tuples of a few values, but a damaged pickle can hold any.
        let value = self.stack.last().ok_or("its pickle is damaged")?;
        self.room.take_for(VALUE_BYTES * weight(value), "its pickle")?;
        self.memo.insert(place, value.clone());
        Ok(())
    }

    fn recall(&mut self, place: u32) -> Result<Value, String> {
        let value = self.memo.get(&place).ok_or("its pickle is damaged")?;
        self.room.take_for(VALUE_BYTES * weight(value), "its pickle")?;
        Ok(value.clone())
    }
}

/// How deep values are within each other at most.
const DEPTH: usize = 32;

/// How deep values are within a value.
fn depth(value: &Value) -> usize {
    match value {
        Value::Tuple(all) => 1 + all.iter().map(depth).max().unwrap_or(0),
        Value::Dict(all) => 1 + all.iter().map(|(key, value)| depth(key).max(depth(value))).max().unwrap_or(0),
        _ => 0,
    }
}

/// The size of a value, in values and texts of as many bytes.
fn weight(value: &Value) -> usize {
    match value {
        Value::Text(text) | Value::Global(text) => 1 + text.len() / VALUE_BYTES,
        Value::Tensor { meta, .. } => 1 + meta.sizes.len() + meta.strides.len(),
        Value::Tuple(all) => 1 + all.iter().map(weight).sum::<usize>(),
        Value::Dict(all) => 1 + all.iter().map(|(key, value)| weight(key) + weight(value)).sum::<usize>(),
        _ => 1,
    }
}

/// The storage that an id says: `('storage', class, key, device, count)`.
fn persistent(id: Value) -> Result<Value, String> {
    let Value::Tuple(id) = id else { return Err("its pickle is damaged".into()) };
    match id.as_slice() {
        [Value::Text(kind), Value::Global(class), Value::Text(key), ..] if kind == "storage" => {
            let dtype = storage(class).ok_or_else(|| format!("storages of `{class}` are not supported"))?;
            Ok(Value::Storage { key: key.clone(), dtype })
        }
        _ => Err("its pickle refers to something that is no storage".into()),
    }
}

/// What one of the known functions makes.
fn called(function: Value, operands: Value) -> Result<Value, String> {
    let (Value::Global(function), Value::Tuple(mut operands)) = (function, operands) else {
        return Err("its pickle calls what is no function".into());
    };
    match function.as_str() {
        "collections.OrderedDict" => Ok(Value::Dict(Vec::new())),
        "torch._utils._rebuild_tensor_v2" => rebuilt(&operands),
        _ if operands.is_empty() => Err(format!("its pickle calls `{function}` without a tensor")),
        "torch._utils._rebuild_parameter" | "torch._utils._rebuild_parameter_with_state" => Ok(operands.swap_remove(0)),
        _ => Err(format!("its pickle calls `{function}`; only tensors are read, and nothing is executed")),
    }
}

/// A tensor of a storage, an offset, sizes and strides.
fn rebuilt(operands: &[Value]) -> Result<Value, String> {
    let list = |v: &Value| {
        let Value::Tuple(all) = v else { return None };
        all.iter().map(|v| if let Value::Int(n) = v { Some(Size::AsInt(*n)) } else { None }).collect::<Option<Vec<_>>>()
    };
    if let [Value::Storage { key, dtype }, Value::Int(offset), sizes, strides, ..] = operands
        && let (Some(sizes), Some(strides)) = (list(sizes), list(strides))
    {
        let storage_offset = Some(Size::AsInt(*offset));
        let meta = TensorMeta { dtype: *dtype, sizes, strides, storage_offset, layout: TensorMeta::STRIDED };
        return Ok(Value::Tensor { storage: key.clone(), meta });
    }
    Err("a tensor of its pickle is damaged".into())
}
