//! Builds ONNX files for tests.

use super::proto::*;
use super::tensor::number;
use crate::graph::Tensor;
use prost::Message;

/// The file of a graph with operators of the default domain.
fn model(graph: GraphProto, version: i64) -> Vec<u8> {
    let opset_import = vec![OperatorSetIdProto { domain: String::new(), version }];
    ModelProto { ir_version: 8, graph: Some(graph), opset_import, ..Default::default() }.encode_to_vec()
}

/// Parses a node written as `y, z = domain.Op(x, , c) a=1 b=[2, 3] c=0.5 d='word' e=@f`. An operand can be left out,
/// and `@f` refers to the attribute `f` of a function.
pub(super) fn node(text: &str) -> NodeProto {
    let (outputs, rest) = text.split_once(" = ").unwrap();
    let (operator, rest) = rest.split_once('(').unwrap();
    let (inputs, attributes) = rest.split_once(')').unwrap();
    let names = |list: &str| -> Vec<String> {
        if list.is_empty() { Vec::new() } else { list.split(',').map(|s| s.trim().into()).collect() }
    };
    let (domain, op_type) = operator.rsplit_once('.').unwrap_or(("", operator));
    let (op_type, overload) = op_type.split_once(':').unwrap_or((op_type, ""));
    let mut attribute = Vec::new();
    let mut rest = attributes.trim();
    while let Some((name, behind)) = rest.split_once('=') {
        let end = if behind.starts_with('[') {
            behind.find(']').unwrap() + 1
        } else {
            behind.find(' ').unwrap_or(behind.len())
        };
        attribute.push(parsed(name, &behind[..end]));
        rest = behind[end..].trim();
    }
    NodeProto {
        input: names(inputs),
        output: names(outputs),
        op_type: op_type.into(),
        attribute,
        domain: domain.into(),
        overload: overload.into(),
        ..Default::default()
    }
}

/// Parses an attribute value written as in [`node`].
pub(super) fn parsed(name: &str, value: &str) -> AttributeProto {
    let named = AttributeProto { name: name.into(), ..Default::default() };
    if let Some(of) = value.strip_prefix('@') {
        return AttributeProto { ref_attr_name: of.into(), r#type: 2, ..named };
    }
    if let Some(list) = value.strip_prefix('[') {
        let ints = list.trim_end_matches(']').split(',').map(|s| s.trim().parse().unwrap()).collect();
        return AttributeProto { ints, r#type: 7, ..named };
    }
    if let Some(word) = value.strip_prefix('\'') {
        return AttributeProto { s: word.trim_end_matches('\'').into(), r#type: 3, ..named };
    }
    match value.parse() {
        Ok(i) => AttributeProto { i, r#type: 2, ..named },
        Err(_) => AttributeProto { f: value.parse().unwrap(), r#type: 1, ..named },
    }
}

/// A network that adds a constant of `len` floats to its input. The data of the constant start at byte 4 of another
/// file.
pub(in crate::frontend) fn external_constant(location: &str, len: usize) -> Vec<u8> {
    let entry = |key: &str, value: String| StringStringEntryProto { key: key.into(), value };
    let dim = DimensionProto { dim_value: Some(len as i64), dim_param: None };
    let shape = TensorShapeProto { dim: vec![dim] };
    let ty =
        TypeProto { tensor_type: Some(TensorTypeProto { elem_type: 1, shape: Some(shape) }), ..TypeProto::default() };
    let value = |name: &str| ValueInfoProto { name: name.into(), r#type: Some(ty.clone()) };
    let c = TensorProto {
        name: "c".into(),
        dims: vec![len as i64],
        data_type: 1,
        data_location: 1,
        external_data: vec![
            entry("location", location.into()),
            entry("offset", "4".into()),
            entry("length", (4 * len).to_string()),
        ],
        ..Default::default()
    };
    let add = NodeProto {
        input: vec!["x".into(), "c".into()],
        output: vec!["y".into()],
        op_type: "Add".into(),
        ..Default::default()
    };
    let graph = GraphProto {
        node: vec![add],
        name: "g".into(),
        initializer: vec![c],
        input: vec![value("x")],
        output: vec![value("y")],
        ..Default::default()
    };
    model(graph, 17)
}

/// The tensor in a file that holds nothing else; `None` if the graph does not have its element type.
pub(in crate::frontend) fn tensor_file(bytes: &[u8]) -> Option<Tensor> {
    super::tensor::tensor(&TensorProto::decode(bytes).unwrap(), &[]).ok()
}

/// The operators of a file's nodes.
pub(in crate::frontend) fn operators(model: &[u8]) -> Vec<String> {
    let model = ModelProto::decode(model).unwrap();
    model.graph.unwrap().node.into_iter().map(|n| n.op_type).collect()
}

/// The file with all inputs after the first `left` made constants, read from tensor files.
pub(in crate::frontend) fn frozen(model: &[u8], inputs: &[Vec<u8>], left: usize) -> Vec<u8> {
    let mut model = ModelProto::decode(model).unwrap();
    let graph = model.graph.as_mut().unwrap();
    for (info, bytes) in graph.input.iter().zip(inputs).skip(left) {
        let t = TensorProto::decode(bytes.as_slice()).unwrap();
        graph.initializer.push(TensorProto { name: info.name.clone(), ..t });
    }
    model.encode_to_vec()
}

/// The file with lists of floats added as attributes of its first node and as constants.
pub(in crate::frontend) fn with_floats(
    model: &[u8],
    attributes: &[(&str, &[f32])],
    constants: &[(&str, &[f32])],
) -> Vec<u8> {
    let mut model = ModelProto::decode(model).unwrap();
    let graph = model.graph.as_mut().unwrap();
    for (name, floats) in attributes {
        let name = (*name).into();
        let attribute = AttributeProto { name, floats: floats.to_vec(), r#type: 6, ..Default::default() };
        graph.node[0].attribute.push(attribute);
    }
    for (name, v) in constants {
        let (name, dims, float_data) = ((*name).into(), vec![v.len() as i64], v.to_vec());
        graph.initializer.push(TensorProto { name, dims, data_type: 1, float_data, ..Default::default() });
    }
    model.encode_to_vec()
}

/// A constant of bytes.
pub(in crate::frontend) struct Bytes<'a> {
    pub name: &'a str,
    pub dims: &'a [i64],
    /// [`Bytes::UNSIGNED`] or [`Bytes::SIGNED`].
    pub element: i32,
    pub data: &'a [u8],
}

impl Bytes<'_> {
    pub const UNSIGNED: i32 = 2;
    pub const SIGNED: i32 = 3;
}

/// The file with constants of bytes added.
pub(in crate::frontend) fn with_bytes(model: &[u8], constants: &[Bytes]) -> Vec<u8> {
    let mut model = ModelProto::decode(model).unwrap();
    let tensor = |b: &Bytes| TensorProto {
        name: b.name.into(),
        dims: b.dims.to_vec(),
        data_type: b.element,
        raw_data: b.data.to_vec(),
        ..Default::default()
    };
    model.graph.as_mut().unwrap().initializer.extend(constants.iter().map(tensor));
    model.encode_to_vec()
}

/// The file with its first node's operator in another domain.
pub(in crate::frontend) fn in_domain(model: &[u8], domain: &str) -> Vec<u8> {
    let mut model = ModelProto::decode(model).unwrap();
    model.graph.as_mut().unwrap().node[0].domain = domain.into();
    model.encode_to_vec()
}

/// The file with a text attribute added to its first node.
pub(in crate::frontend) fn with_word(model: &[u8], name: &str, word: &str) -> Vec<u8> {
    let mut model = ModelProto::decode(model).unwrap();
    let attribute = AttributeProto { name: name.into(), s: word.into(), r#type: 3, ..Default::default() };
    model.graph.as_mut().unwrap().node[0].attribute.push(attribute);
    model.encode_to_vec()
}

/// A node of a test network: operator, operands, results, and integer attributes.
pub(crate) type Made<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [(&'a str, &'a [i64])]);

/// A network of these nodes, from an input `x` to the float `y`. Negative sizes of `x` become symbols; constants are
/// integers.
pub(crate) fn network(nodes: &[Made], x: &[i64], element: i32, constants: &[(&str, &[i64])], opset: i64) -> Vec<u8> {
    let value = |name: &str, shape: &[i64]| {
        let symbol = |i: usize| format!("s{i}");
        let dim = |(i, &n): (usize, &i64)| match n {
            ..0 => DimensionProto { dim_value: None, dim_param: Some(symbol(i)) },
            n => DimensionProto { dim_value: Some(n), dim_param: None },
        };
        let shape = TensorShapeProto { dim: shape.iter().enumerate().map(dim).collect() };
        let tensor_type = Some(TensorTypeProto { elem_type: element, shape: Some(shape) });
        ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }) }
    };
    let attribute = |(name, v): &(&str, &[i64])| match v {
        [one] => AttributeProto { name: (*name).into(), i: *one, r#type: 2, ..Default::default() },
        list => AttributeProto { name: (*name).into(), ints: list.to_vec(), r#type: 7, ..Default::default() },
    };
    let words = |list: &[&str]| list.iter().map(|s| s.to_string()).collect();
    let node = |(op, inputs, outputs, attributes): &Made| NodeProto {
        input: words(inputs),
        output: words(outputs),
        op_type: (*op).into(),
        attribute: attributes.iter().map(attribute).collect(),
        ..Default::default()
    };
    let constant = |(name, v): &(&str, &[i64])| TensorProto {
        name: (*name).into(),
        dims: vec![v.len() as i64],
        data_type: 7,
        int64_data: v.to_vec(),
        ..Default::default()
    };
    let graph = GraphProto {
        node: nodes.iter().map(node).collect(),
        name: "g".into(),
        initializer: constants.iter().map(constant).collect(),
        input: vec![value("x", x)],
        output: vec![value("y", &[])],
        ..Default::default()
    };
    model(graph, opset)
}

/// A value of an attribute.
pub(in crate::frontend) enum Value<'a> {
    Int(i64),
    Ints(&'a [i64]),
    Float(f32),
    Floats(&'a [f32]),
    Word(&'a str),
    Words(&'a [&'a str]),
}

/// An operand of a network with one node.
#[derive(Clone)]
pub(in crate::frontend) enum Operand {
    /// An input of the network.
    Given(Tensor),
    Constant(Tensor),
    /// The node has no operand here.
    Missing,
}

/// A network with one node named `node`, operands `in0`, `in1`, … and results `out0`, ….
pub(in crate::frontend) fn single(
    op: &str,
    attributes: &[(&str, Value)],
    operands: &[Operand],
    outputs: usize,
    opset: i64,
) -> Vec<u8> {
    let sizes = |t: &Tensor| t.shape().iter().map(|&d| d as i64).collect::<Vec<_>>();
    let attribute = |(name, v): &(&str, Value)| {
        let named = AttributeProto { name: (*name).into(), ..Default::default() };
        match v {
            Value::Int(i) => AttributeProto { i: *i, r#type: 2, ..named },
            Value::Ints(v) => AttributeProto { ints: v.to_vec(), r#type: 7, ..named },
            Value::Float(f) => AttributeProto { f: *f, r#type: 1, ..named },
            Value::Floats(v) => AttributeProto { floats: v.to_vec(), r#type: 6, ..named },
            Value::Word(s) => AttributeProto { s: (*s).into(), r#type: 3, ..named },
            Value::Words(v) => AttributeProto { strings: v.iter().map(|&s| s.into()).collect(), r#type: 8, ..named },
        }
    };
    let (mut input, mut initializer, mut names) = (Vec::new(), Vec::new(), Vec::new());
    for (i, operand) in operands.iter().enumerate() {
        let name = format!("in{i}");
        match operand {
            Operand::Missing => {
                names.push(String::new());
                continue;
            }
            Operand::Constant(t) => initializer.push(TensorProto {
                name: name.clone(),
                dims: sizes(t),
                data_type: number(t.dtype()),
                raw_data: t.to_bytes(),
                ..Default::default()
            }),
            Operand::Given(t) => {
                let dim = |d| DimensionProto { dim_value: Some(d), dim_param: None };
                let shape = Some(TensorShapeProto { dim: sizes(t).into_iter().map(dim).collect() });
                let tensor_type = Some(TensorTypeProto { elem_type: number(t.dtype()), shape });
                input.push(ValueInfoProto {
                    name: name.clone(),
                    r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }),
                });
            }
        }
        names.push(name);
    }
    let results: Vec<String> = (0..outputs).map(|i| format!("out{i}")).collect();
    let node = NodeProto {
        name: "node".into(),
        op_type: op.into(),
        input: names,
        output: results.clone(),
        attribute: attributes.iter().map(attribute).collect(),
        ..Default::default()
    };
    let output = results.into_iter().map(|name| ValueInfoProto { name, r#type: None }).collect();
    model(GraphProto { node: vec![node], name: "g".into(), initializer, input, output, ..Default::default() }, opset)
}
