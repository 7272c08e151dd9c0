//! ONNX files made for tests.

use super::proto::*;
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
