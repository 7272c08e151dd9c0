//! Values of calls as messages. The bytes of tensors and byte strings go ahead of the message in pieces; the rest is a
//! small tree.

use bytes::Bytes;
use prost::Message;
use tilewright_runtime::tensor::{DType, Tensor, byte_len};
use tilewright_runtime::value::Value;
use tilewright_runtime::{Function, Module};

use crate::wire::{self, value};

/// Most bytes of a tree. What a reader needs for one is some times as much.
pub(crate) const TREE: usize = 256 << 10;
/// How deep lists and maps can be nested. Each level takes three nested messages, of which a reader of protobuf allows a
/// hundred.
const DEPTH: usize = 24;

/// Why values cannot be sent or read.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub(crate) enum ValueError {
    #[error(
        "the values have {0} bytes without tensors and byte strings, but {TREE} can be sent; use tensors for numbers"
    )]
    Large(usize),
    #[error("lists and maps are nested more than {DEPTH} deep")]
    Deep,
    #[error("the message is damaged: {0}")]
    Damaged(&'static str),
    #[error("its tensors and byte strings have {0} bytes, but {1} were sent")]
    Bulk(u64, usize),
    #[error("{0} is not of this server; pass functions and modules that it returned, and none of this program")]
    Foreign(String),
    #[error("it refers to object {0}, which this session does not have")]
    Unknown(u64),
    #[error("the session has {0} modules and functions of the server, its limit; drop some")]
    Many(usize),
}

/// What gives functions and modules numbers, and finds them again.
pub(crate) trait Objects {
    /// The message for a module.
    fn module(&mut self, module: &Module) -> Result<wire::Object, ValueError>;
    /// The message for a function.
    fn function(&mut self, function: &Function) -> Result<wire::Object, ValueError>;
    /// The module of a message.
    fn to_module(&mut self, object: wire::Object) -> Result<Module, ValueError>;
    /// The function of a message.
    fn to_function(&mut self, object: wire::Object) -> Result<Function, ValueError>;
}

/// Values for the wire.
#[derive(Debug)]
pub(crate) struct Packed {
    /// The encoded tree.
    pub tree: Vec<u8>,
    /// The bytes that go ahead.
    pub bulk: Vec<Bytes>,
}

/// The message for a list of values.
pub(crate) fn pack_list(values: &[Value], objects: &mut dyn Objects) -> Result<Packed, ValueError> {
    let mut bulk = Vec::new();
    let values = values.iter().map(|value| put(value, objects, &mut bulk, 1)).collect::<Result<_, _>>()?;
    packed(&wire::List { values }, bulk)
}

/// The message for a value.
pub(crate) fn pack(value: &Value, objects: &mut dyn Objects) -> Result<Packed, ValueError> {
    let mut bulk = Vec::new();
    let tree = put(value, objects, &mut bulk, 0)?;
    packed(&tree, bulk)
}

fn packed(tree: &impl Message, bulk: Vec<Bytes>) -> Result<Packed, ValueError> {
    let tree = tree.encode_to_vec();
    if tree.len() > TREE { Err(ValueError::Large(tree.len())) } else { Ok(Packed { tree, bulk }) }
}

fn put(
    value: &Value,
    objects: &mut dyn Objects,
    bulk: &mut Vec<Bytes>,
    depth: usize,
) -> Result<wire::Value, ValueError> {
    use value::Kind;
    if depth > DEPTH {
        return Err(ValueError::Deep);
    }
    let kind = match value {
        Value::None => Kind::None(wire::Nothing {}),
        Value::Integer(value) => Kind::Integer(*value),
        Value::Float(value) => Kind::Real(*value),
        Value::String(text) => Kind::Text(text.clone()),
        Value::Bytes(bytes) => {
            bulk.push(bytes.clone());
            Kind::Bytes(bytes.len() as u64)
        }
        Value::Tensor(tensor) => {
            bulk.push(tensor.bytes.clone());
            let shape = tensor.shape.iter().map(|size| *size as u64).collect();
            Kind::Tensor(wire::Tensor { dtype: tensor.dtype.name().into(), shape })
        }
        Value::Function(function) => Kind::Function(objects.function(function)?),
        Value::Module(module) => Kind::Module(objects.module(module)?),
        Value::List(list) => {
            let values = list.iter().map(|value| put(value, objects, bulk, depth + 1)).collect::<Result<_, _>>()?;
            Kind::List(wire::List { values })
        }
        Value::Map(map) => {
            let entry = |(name, value): (&String, &Value)| {
                let value = Some(put(value, objects, bulk, depth + 1)?);
                Ok(wire::Entry { name: name.clone(), value })
            };
            Kind::Map(wire::Map { entries: map.iter().map(entry).collect::<Result<_, ValueError>>()? })
        }
    };
    Ok(wire::Value { kind: Some(kind) })
}

/// The values of a message for a list.
pub(crate) fn unpack_list(tree: &[u8], bulk: Bytes, objects: &mut dyn Objects) -> Result<Vec<Value>, ValueError> {
    let list: wire::List = read(tree)?;
    let mut reader = Reader { sent: bulk.len(), bulk, needed: 0, objects };
    let values = list.values.into_iter().map(|value| reader.take(value)).collect::<Result<_, _>>()?;
    reader.end(values)
}

/// The value of a message for one.
pub(crate) fn unpack(tree: &[u8], bulk: Bytes, objects: &mut dyn Objects) -> Result<Value, ValueError> {
    let value: wire::Value = read(tree)?;
    let mut reader = Reader { sent: bulk.len(), bulk, needed: 0, objects };
    let value = reader.take(value)?;
    reader.end(value)
}

fn read<M: Message + Default>(tree: &[u8]) -> Result<M, ValueError> {
    if tree.len() > TREE {
        return Err(ValueError::Large(tree.len()));
    }
    M::decode(tree).map_err(|_| ValueError::Damaged("it is no value"))
}

struct Reader<'a> {
    /// Bytes that no value has taken yet.
    bulk: Bytes,
    sent: usize,
    needed: u64,
    objects: &'a mut dyn Objects,
}

impl Reader<'_> {
    fn end<T>(self, value: T) -> Result<T, ValueError> {
        if self.bulk.is_empty() { Ok(value) } else { Err(ValueError::Bulk(self.needed, self.sent)) }
    }

    fn bytes(&mut self, len: u64) -> Result<Bytes, ValueError> {
        self.needed = self.needed.saturating_add(len);
        match usize::try_from(len) {
            Ok(len) if len <= self.bulk.len() => Ok(self.bulk.split_to(len)),
            _ => Err(ValueError::Bulk(self.needed, self.sent)),
        }
    }

    fn tensor(&mut self, tensor: wire::Tensor) -> Result<Tensor, ValueError> {
        let dtype = DType::from_name(&tensor.dtype).ok_or(ValueError::Damaged("an element type is unknown"))?;
        let sizes = tensor.shape.into_iter().map(usize::try_from).collect::<Result<Vec<usize>, _>>();
        let shape = sizes.map_err(|_| ValueError::Damaged("a tensor is too large"))?;
        let len = byte_len(dtype, &shape).ok_or(ValueError::Damaged("a tensor is too large"))?;
        let bytes = self.bytes(len as u64)?;
        // Whoever reads its elements in place finds them aligned.
        let aligned = bytes.as_ptr().addr().is_multiple_of(dtype.size());
        let bytes = if aligned { bytes } else { Bytes::copy_from_slice(&bytes) };
        Ok(Tensor { dtype, shape, bytes })
    }

    fn take(&mut self, value: wire::Value) -> Result<Value, ValueError> {
        use value::Kind;
        Ok(match value.kind.ok_or(ValueError::Damaged("a value has no kind"))? {
            Kind::None(_) => Value::None,
            Kind::Integer(value) => Value::Integer(value),
            Kind::Real(value) => Value::Float(value),
            Kind::Text(text) => Value::String(text),
            Kind::Bytes(len) => Value::Bytes(self.bytes(len)?),
            Kind::Tensor(tensor) => Value::Tensor(self.tensor(tensor)?),
            Kind::Function(object) => Value::Function(self.objects.to_function(object)?),
            Kind::Module(object) => Value::Module(self.objects.to_module(object)?),
            Kind::List(list) => {
                Value::List(list.values.into_iter().map(|value| self.take(value)).collect::<Result<_, _>>()?)
            }
            Kind::Map(map) => {
                let entry = |entry: wire::Entry| {
                    let value = entry.value.ok_or(ValueError::Damaged("an entry has no value"))?;
                    Ok((entry.name, self.take(value)?))
                };
                Value::Map(map.entries.into_iter().map(entry).collect::<Result<_, ValueError>>()?)
            }
        })
    }
}

#[cfg(test)]
pub(crate) mod tests {
    use super::*;

    /// Without functions and modules.
    pub(crate) struct Nothing;

    impl Objects for Nothing {
        fn module(&mut self, module: &Module) -> Result<wire::Object, ValueError> {
            Err(ValueError::Foreign(module.name()))
        }
        fn function(&mut self, function: &Function) -> Result<wire::Object, ValueError> {
            Err(ValueError::Foreign(function.name().into()))
        }
        fn to_module(&mut self, object: wire::Object) -> Result<Module, ValueError> {
            Err(ValueError::Unknown(object.id))
        }
        fn to_function(&mut self, object: wire::Object) -> Result<Function, ValueError> {
            Err(ValueError::Unknown(object.id))
        }
    }

    fn nested(levels: usize) -> Value {
        (0..levels).fold(Value::Integer(1), |inner, level| match level % 2 {
            0 => Value::List(vec![inner]),
            _ => Value::from_iter([("x", inner)]),
        })
    }

    fn crossed(value: &Value) -> Result<Value, ValueError> {
        let Packed { tree, bulk } = pack(value, &mut Nothing)?;
        unpack(&tree, bulk.concat().into(), &mut Nothing)
    }

    #[test]
    fn values_cross_whole() {
        let tensor = Tensor::from_f32(vec![2, 1], &[1.5, -2.0]).unwrap();
        let values = [
            Value::None,
            Value::Integer(i64::MIN),
            Value::Float(0.1),
            "text".into(),
            Value::Bytes(Bytes::from_static(b"odd")),
            Value::Tensor(tensor.clone()),
            Value::List(Vec::new()),
            nested(DEPTH),
            Value::from_iter([Value::Bytes(Bytes::from_static(b"o")), tensor.clone().into(), "x".into()]),
        ];
        for value in values {
            assert_eq!(format!("{:?}", crossed(&value).unwrap()), format!("{value:?}"));
        }
        // Behind an odd number of bytes, a tensor is aligned all the same.
        let both = Value::from_iter([Value::Bytes(Bytes::from_static(b"o")), tensor.into()]);
        let Value::List(list) = crossed(&both).unwrap() else { panic!("is a list") };
        let Value::Tensor(tensor) = &list[1] else { panic!("is a tensor") };
        assert_eq!(tensor.bytes.as_ptr().addr() % 4, 0);
    }

    #[test]
    fn what_cannot_be_sent_is_told() {
        assert_eq!(crossed(&nested(DEPTH + 1)).unwrap_err(), ValueError::Deep);
        let many = Value::List(vec![Value::Integer(1); TREE / 4]);
        assert!(matches!(crossed(&many), Err(ValueError::Large(_))));
        let function = Function::new("own", |_| Ok(Value::None));
        assert_eq!(crossed(&function.into()).unwrap_err(), ValueError::Foreign("own".into()));
    }

    #[test]
    fn damaged_messages_are_refused() {
        let tensor = |dtype: &str, shape: &[u64]| {
            let tensor = wire::Tensor { dtype: dtype.into(), shape: shape.to_vec() };
            let tree = wire::Value { kind: Some(value::Kind::Tensor(tensor)) }.encode_to_vec();
            unpack(&tree, Bytes::from_static(&[0; 8]), &mut Nothing).map(|_| ()).unwrap_err().to_string()
        };
        assert_eq!(tensor("f33", &[2]), "the message is damaged: an element type is unknown");
        assert_eq!(tensor("f32", &[1 << 40, 1 << 40]), "the message is damaged: a tensor is too large");
        assert_eq!(tensor("f32", &[3]), "its tensors and byte strings have 12 bytes, but 8 were sent");
        assert_eq!(tensor("f32", &[1]), "its tensors and byte strings have 4 bytes, but 8 were sent");
        let wrong = |tree: &[u8]| unpack(tree, Bytes::new(), &mut Nothing).map(|_| ()).unwrap_err().to_string();
        assert_eq!(wrong(&[0xff; 9]), "the message is damaged: it is no value");
        assert_eq!(wrong(&[]), "the message is damaged: a value has no kind");
        assert!(wrong(&vec![0; TREE + 1]).contains("use tensors for numbers"));
    }
}
