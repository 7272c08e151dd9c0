//! What a model's file says of its inputs and outputs beside their types: quantization, how pictures are prepared, names
//! of classes. Nothing here changes what the model computes.

use serde::{Deserialize, Serialize};

use crate::tensor::DType;

/// Preparation of a picture's channels: `(pixel - mean) / scale`, pixels from 0 to 255, with one number for all channels or
/// one for each.
#[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
pub struct Normalization {
    /// Subtracted first.
    pub mean: Vec<f32>,
    /// Divided by then.
    pub scale: Vec<f32>,
}

/// One input or output.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct Edge {
    /// Its type of floats in the model's file, where the compiled model computes with others.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub floats: Option<DType>,
    /// Scale and zero point of a tensor of 8 bits: its real value is `scale * (element - zero_point)`.
    pub quantization: Option<(f32, i32)>,
    /// How pictures are prepared.
    pub normalization: Option<Normalization>,
    /// Whether the channels of pictures are blue, green, red.
    pub bgr: bool,
}

/// All of it; what a file does not say is absent.
#[derive(Debug, Clone, Default, PartialEq, Serialize, Deserialize)]
pub struct About {
    /// In the order of the model's inputs.
    pub inputs: Vec<Edge>,
    /// In the order of the model's outputs.
    pub outputs: Vec<Edge>,
    /// Names of the first output's classes.
    pub class_names: Vec<String>,
}
