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
    ModelProto { ir_version: 8, graph: Some(graph), opset_import: vec![opset] }.encode_to_vec()
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
