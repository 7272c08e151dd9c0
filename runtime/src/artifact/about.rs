//! What a model's file says about its inputs and outputs in addition to their types: quantization, image preprocessing,
//! class names. Nothing here changes what the model computes.

use serde::{Deserialize, Deserializer, Serialize};

use crate::tensor::NarrowFloat;

/// Preprocessing of an image's channels: `(pixel - mean) / scale`, with pixels from 0 to 255, and one number for all
/// channels or one for each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Normalization {
    /// Subtracted first.
    pub mean: Vec<f32>,
    /// Then divided by.
    pub scale: Vec<f32>,
}

/// One input or output.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// Floating-point type in the model's file, if the compiled model computes with a wider one.
    #[serde(default, skip_serializing_if = "Option::is_none", deserialize_with = "narrow")]
    pub floats: Option<NarrowFloat>,
    /// Scale and zero point of an 8-bit tensor: its real value is `scale * (element - zero_point)`.
    pub quantization: Option<(f32, i32)>,
    /// Image preprocessing.
    pub normalization: Option<Normalization>,
    /// Whether image channels are in the order blue, green, red.
    pub bgr: bool,
}

/// A type by its name. Earlier artifacts can have `f64` here, which is not narrow.
fn narrow<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<NarrowFloat>, D::Error> {
    Ok(Option::<String>::deserialize(deserializer)?.and_then(|name| NarrowFloat::from_name(&name)))
}

/// Facts about all inputs and outputs; what a file does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// In the order of the model's inputs.
    pub inputs: Vec<Edge>,
    /// In the order of the model's outputs.
    pub outputs: Vec<Edge>,
    /// Names of the first output's classes.
    pub class_names: Vec<String>,
}
