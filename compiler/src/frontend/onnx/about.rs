//! The description that ONNX files may carry: properties with the names that the format's page "Metadata" gives them.

use super::proto::ModelProto;
use prost::Message;
use tilewright_runtime::artifact::{About, Edge, Normalization};

/// What the file says; of several inputs it means the first.
pub fn about(bytes: &[u8]) -> Option<About> {
    let model = ModelProto::decode(bytes).ok()?;
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
    Some(About { inputs: vec![Edge { quantization: None, normalization, bgr }], ..About::default() })
}

#[cfg(test)]
mod tests {
    use super::super::proto::StringStringEntryProto;
    use super::*;

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
}
