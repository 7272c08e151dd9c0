//! Reads the description in an ONNX file: metadata properties with the names that the format's page "Metadata" defines.

use super::proto::{ModelProto, ValueInfoProto};
use super::tensor;
use tilewright_runtime::artifact::{About, Edge, Normalization};

/// The file's description; image properties apply to the first input.
pub fn about(bytes: &[u8]) -> Option<About> {
    let model = ModelProto::read(bytes).ok()?;
    let property = |key: &str| model.metadata_props.iter().find(|p| p.key == key).map(|p| p.value.as_str());
    let normalization = property("Image.NominalPixelRange").and_then(|range| {
        let (mean, scale) = match range {
            "NominalRange_0_255" => (0.0, 1.0),
            "Normalized_0_1" => (0.0, 255.0),
            "Normalized_1_1" => (127.5, 127.5),
            _ => return None,
        };
        Some(Normalization { mean: vec![mean], scale: vec![scale] })
    });
    let bgr = property("Image.BitmapPixelFormat").is_some_and(|format| format.starts_with("Bgr"));
    let edge = |info: &ValueInfoProto| {
        let floats = info.tensor_type().and_then(|ty| tensor::element(ty.elem_type).ok()?.float);
        Edge { floats, ..Edge::default() }
    };
    let graph = model.graph.as_ref();
    let given = |info: &&ValueInfoProto| graph.is_some_and(|g| g.constants().all(|name| name != info.name));
    let edges = |list: Option<&Vec<ValueInfoProto>>| list.into_iter().flatten().filter(given).map(edge).collect();
    let (mut inputs, outputs): (Vec<Edge>, _) = (edges(graph.map(|g| &g.input)), edges(graph.map(|g| &g.output)));
    if inputs.is_empty() {
        inputs.push(Edge::default());
    }
    inputs[0] = Edge { normalization, bgr, ..inputs[0].clone() };
    Some(About { inputs, outputs, class_names: Vec::new() })
}

#[cfg(test)]
mod tests {
    use super::super::proto::{GraphProto, StringStringEntryProto, TensorProto, TensorTypeProto, TypeProto};
    use super::*;
    use prost::Message;
    use tilewright_runtime::tensor::NarrowFloat;

    #[test]
    fn properties_say_how_pictures_are_prepared() {
        let about_of = |properties: &[(&str, &str)]| {
            let property =
                |&(key, value): &(&str, &str)| StringStringEntryProto { key: key.into(), value: value.into() };
            let metadata_props = properties.iter().map(property).collect();
            about(&ModelProto { metadata_props, ..ModelProto::default() }.encode_to_vec()).expect("it decodes").inputs
                [0]
            .clone()
        };
        let edge = about_of(&[("Image.NominalPixelRange", "Normalized_1_1"), ("Image.BitmapPixelFormat", "Bgr8")]);
        assert_eq!(edge.normalization, Some(Normalization { mean: vec![127.5], scale: vec![127.5] }));
        assert!(edge.bgr);
        assert_eq!(about_of(&[("author", "somebody")]), Edge::default());
        assert_eq!(about(b"\xff\xff no model"), None);
    }

    #[test]
    fn widths_of_floats_are_told_in_the_order_of_inputs_and_outputs() {
        let value = |name: &str, elem_type| {
            let tensor_type = Some(TensorTypeProto { elem_type, shape: None });
            ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }) }
        };
        let weight = TensorProto { name: "w".into(), ..TensorProto::default() };
        let graph = GraphProto {
            input: vec![value("w", 10), value("a", 1), value("b", 10)],
            output: vec![value("y", 16), value("z", 11)],
            initializer: vec![weight],
            ..GraphProto::default()
        };
        let file = ModelProto { graph: Some(graph), ..ModelProto::default() }.encode_to_vec();
        let found = about(&file).expect("it decodes");
        let floats = |edges: &[Edge]| edges.iter().map(|e| e.floats).collect::<Vec<_>>();
        assert_eq!(floats(&found.inputs), [None, Some(NarrowFloat::F16)]);
        assert_eq!(floats(&found.outputs), [Some(NarrowFloat::Bf16), None]);
    }
}
