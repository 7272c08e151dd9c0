//! ONNX files made for tests.

use super::proto::*;
use crate::graph::Tensor;
use prost::Message;

/// A network that adds a constant of `len` floats, whose data lie in another file after 4 bytes, to its input.
pub(in crate::frontend) fn external_constant(location: &str, len: usize) -> Vec<u8> {
    let entry = |key: &str, value: String| StringStringEntryProto { key: key.into(), value };
    let dim = DimensionProto { dim_value: Some(len as i64), dim_param: None };
    let shape = TensorShapeProto { dim: vec![dim] };
    let ty = TypeProto { tensor_type: Some(TensorTypeProto { elem_type: 1, shape: Some(shape) }) };
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
    };
    let opset = OperatorSetIdProto { domain: String::new(), version: 17 };
    ModelProto { ir_version: 8, graph: Some(graph), opset_import: vec![opset], metadata_props: vec![] }.encode_to_vec()
}

/// The tensor of a file that holds nothing else; none for an element type that the graph does not have.
pub(in crate::frontend) fn tensor_file(bytes: &[u8]) -> Option<Tensor> {
    super::tensor::tensor(&TensorProto::decode(bytes).unwrap(), None).ok()
}

/// Operators of a file's nodes.
pub(in crate::frontend) fn operators(model: &[u8]) -> Vec<String> {
    let model = ModelProto::decode(model).unwrap();
    model.graph.unwrap().node.into_iter().map(|n| n.op_type).collect()
}

/// The file with all inputs but the first `left` made constants, from the files of their tensors.
pub(in crate::frontend) fn frozen(model: &[u8], inputs: &[Vec<u8>], left: usize) -> Vec<u8> {
    let mut model = ModelProto::decode(model).unwrap();
    let graph = model.graph.as_mut().unwrap();
    for (info, bytes) in graph.input.iter().zip(inputs).skip(left) {
        let t = TensorProto::decode(bytes.as_slice()).unwrap();
        graph.initializer.push(TensorProto { name: info.name.clone(), ..t });
    }
    model.encode_to_vec()
}

/// The file with lists of floats as further attributes of its first node, and as further constants.
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

/// The file with further constants of bytes.
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

/// The file with a text as a further attribute of its first node.
pub(in crate::frontend) fn with_word(model: &[u8], name: &str, word: &str) -> Vec<u8> {
    let mut model = ModelProto::decode(model).unwrap();
    let attribute = AttributeProto { name: name.into(), s: word.into(), r#type: 3, ..Default::default() };
    model.graph.as_mut().unwrap().node[0].attribute.push(attribute);
    model.encode_to_vec()
}

/// A node of a network made for a test: operator, operands, results, and attributes of integers.
pub(crate) type Made<'a> = (&'a str, &'a [&'a str], &'a [&'a str], &'a [(&'a str, &'a [i64])]);

/// A network of these nodes: floats `x` of a shape, with symbols for sizes below 1, to the float `y`; constants of integers.
pub(crate) fn network(nodes: &[Made], x: &[i64], element: i32, constants: &[(&str, &[i64])], opset: i64) -> Vec<u8> {
    let value = |name: &str, shape: &[i64]| {
        let symbol = |i: usize| format!("s{i}");
        let dim = |(i, &n): (usize, &i64)| match n {
            ..1 => DimensionProto { dim_value: None, dim_param: Some(symbol(i)) },
            n => DimensionProto { dim_value: Some(n), dim_param: None },
        };
        let shape = TensorShapeProto { dim: shape.iter().enumerate().map(dim).collect() };
        let tensor_type = Some(TensorTypeProto { elem_type: element, shape: Some(shape) });
        ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type }) }
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
    };
    let opset = OperatorSetIdProto { domain: String::new(), version: opset };
    ModelProto { ir_version: 8, graph: Some(graph), opset_import: vec![opset], metadata_props: vec![] }.encode_to_vec()
}
