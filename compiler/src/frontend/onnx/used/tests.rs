use super::super::proto::*;
use super::super::testing::{network, node, parsed};
use crate::frontend::{Sizes, onnx};
use crate::graph::{Graph, Tensor, eval};
use prost::Message;

/// A model of this node with floats `x`, f32[2,3,4], and constants: integers `i`, `shape` and `split`, bytes `z`
/// (uint8) and `zi` (int8), the number `s`, and `slopes`.
fn model(text: &str, opset: i64) -> ModelProto {
    let file = network(&[], &[2, 3, 4], 1, &[("i", &[1]), ("shape", &[24]), ("split", &[2, 2])], opset);
    let mut model = ModelProto::read(&file).unwrap();
    let graph = model.graph.as_mut().unwrap();
    graph.node = vec![node(text)];
    let byte = |name: &str, data_type| TensorProto {
        name: name.into(),
        data_type,
        int32_data: vec![3],
        ..TensorProto::default()
    };
    let floats = |name: &str, dims: &[i64], float_data: &[f32]| {
        let (name, dims, float_data) = (name.into(), dims.to_vec(), float_data.to_vec());
        TensorProto { name, dims, data_type: 1, float_data, ..TensorProto::default() }
    };
    let constants = [byte("z", 2), byte("zi", 3), floats("s", &[], &[0.5]), floats("slopes", &[3], &[0.5, 2.0, 3.0])];
    graph.initializer.extend(constants);
    model
}

fn read(model: &ModelProto) -> Result<Graph, String> {
    onnx::import(&model.encode_to_vec(), "net.onnx", None, Sizes::default()).map_err(|e| e.to_string())
}

#[track_caller]
fn refused(text: &str, opset: i64, want: &str) {
    let e = read(&model(text, opset)).unwrap_err();
    assert!(e.contains(want), "{e}");
}

#[track_caller]
fn taken(text: &str, opset: i64) -> Graph {
    read(&model(text, opset)).unwrap_or_else(|e| panic!("{text}, set {opset}: {e}"))
}

#[test]
fn attributes_that_a_set_does_not_have_are_refused() {
    let want = "node `y` (Clip): its attribute `min` of 0.5 has no meaning for Clip in operator set 11; remove it, or convert \
                the model to an operator set whose Clip has it";
    refused("y = Clip(x) min=0.5", 11, want);
    for (text, before, from, value) in [
        ("y = ReduceSum(x) axes=[1]", 12, 13, "`axes` of [1]"),
        ("y = ReduceMax(x) axes=[1]", 17, 18, "`axes` of [1]"),
        ("y = Split(x) axis=2 split=[4]", 12, 13, "`split` of [4]"),
        ("y = Add(x, x) axis=0 broadcast=1", 6, 7, "`axis` of 0"),
    ] {
        taken(text, before);
        refused(text, from, value);
    }
    refused("y = Reshape(x, shape) shape=[24]", 5, "`shape` of [24] has no meaning for Reshape in operator set 5");
}

#[test]
fn operands_that_a_set_does_not_have_are_refused() {
    let want = "node `y` (ReduceMax): its operand 1, `i`, has no meaning for ReduceMax in operator set 13; remove it, or \
                convert the model to an operator set whose ReduceMax has it";
    refused("y = ReduceMax(x, i)", 13, want);
    for (text, until, from) in [
        ("y = ReduceSum(x, i)", 12, 13),
        ("y = Clip(x, s)", 10, 11),
        ("y = Unsqueeze(x, i) axes=[1]", 12, 0),
        ("y = Split(x, split) axis=2", 12, 0),
        ("y = Relu(x, x)", 18, 0),
        ("y, j = TopK(x, i) k=1", 9, 0),
    ] {
        refused(text, until, "has no meaning for");
        if from > 0 {
            taken(text, from);
        }
    }
}

#[test]
fn what_changes_no_value_is_taken() {
    for (text, opset) in [
        ("y = DequantizeLinear(z, s, z) axis=1", 13),
        ("y = QuantizeLinear(x, s, z) axis=7 saturate=0", 19),
        ("y = Dropout(x) ratio=0.5 seed=3", 11),
        ("y = Dropout(x, s) seed=3", 12),
        ("y = Dropout(x) is_test=1", 6),
        ("y = MaxPool(x) kernel_shape=[2] storage_order=1", 12),
        ("y = Cast(x) to=1 saturate=0", 19),
        ("y = ReduceSum(x, i) noop_with_empty_axes=1", 13),
        ("y = Pad(x) pads=[0,0,1,0,0,1] mode='reflect' value=0.5", 10),
        ("y = LayerNormalization(x, s) stash_type=1", 17),
        ("y = Add(x, x) broadcast=1", 6),
    ] {
        taken(text, opset);
    }
}

#[test]
fn attributes_that_would_change_values_are_refused() {
    for (text, opset, want) in [
        (
            "y = BatchNormalization(x, slopes, slopes, slopes, slopes) spatial=0",
            8,
            "`spatial` of 0 is not supported; it must be 1",
        ),
        ("y = ConvTranspose(x, x) auto_pad='SAME'", 13, "unknown auto_pad `SAME`; use NOTSET, VALID"),
        ("y = QuantizeLinear(x, s, z) output_dtype=3", 21, "its output_dtype is i8, but its zero point is of type u8"),
        ("y = QuantizeLinear(x, s, z) precision=16", 23, "its precision bf16 is not supported; use FLOAT"),
        ("y = DequantizeLinear(z, s, z) output_dtype=17", 23, "its output_dtype f8e4m3fn is not supported; use FLOAT"),
        ("y = Softmax(x) axis=[1]", 13, "its attribute `axis` is of type INTS; it must be of type INT"),
        ("y = Softmax(x) axis=1 axis=2", 13, "its attribute `axis` is given twice"),
        ("y = Split(x) num_outputs=2 axis=2 split=[2,2]", 18, "its attribute `split` of [2, 2] has no meaning"),
        ("y = com.other.Relu(x)", 13, "unsupported operators: com.other.Relu (node `y`"),
    ] {
        refused(text, opset, want);
    }
    taken("y = QuantizeLinear(x, s, zi) output_dtype=3 precision=1", 23);
    // Files in the first version of the format do not store the type, so the field that has a value defines it.
    let mut model = model("y = Softmax(x)", 13);
    let axis = AttributeProto { r#type: 0, ..parsed("axis", "[1]") };
    model.graph.as_mut().unwrap().node[0].attribute.push(axis);
    assert!(read(&model).unwrap_err().contains("its attribute `axis` is of type INTS"));
}

#[test]
fn integer_convolutions_check_their_kernel_shape() {
    let mut model = model("y = ConvInteger(b, w) kernel_shape=[2]", 13);
    let graph = model.graph.as_mut().unwrap();
    let bytes = |name: &str, dims: &[i64]| TensorProto {
        name: name.into(),
        dims: dims.to_vec(),
        data_type: 2,
        raw_data: vec![1; dims.iter().product::<i64>() as usize],
        ..TensorProto::default()
    };
    graph.initializer.extend([bytes("b", &[1, 1, 5]), bytes("w", &[1, 1, 2])]);
    assert!(read(&model).is_ok());
    model.graph.as_mut().unwrap().node[0].attribute[0].ints = vec![3];
    assert!(read(&model).unwrap_err().contains("its kernel_shape [3] does not match its weights"));
}

#[test]
fn operators_of_early_sets_keep_their_meaning() {
    let run = |text: &str, opset| {
        let x = Tensor::from_fn(&[2, 3, 4], |_| -1f32);
        eval(&taken(text, opset), &[x]).unwrap()[0].as_slice::<f32>().unwrap().to_vec()
    };
    // Slopes are per channel.
    let y = run("y = PRelu(x, slopes)", 6);
    assert_eq!([y[0], y[3], y[4], y[8], y[11]], [-0.5, -0.5, -2.0, -3.0, -3.0]);
    // As in ONNX Runtime: 1.6732 and 1.0507 in set 1.
    let selu = |alpha: f32, gamma: f32| gamma * alpha * ((-1f32).exp() - 1.0);
    assert!((run("y = Selu(x)", 1)[0] - selu(1.6732, 1.0507)).abs() < 1e-6);
    assert!((run("y = Selu(x)", 6)[0] - selu(1.673_263_2, 1.050_701)).abs() < 1e-6);
}

#[test]
fn the_operator_set_is_one() {
    let import = |domain: &str, version| OperatorSetIdProto { domain: domain.into(), version };
    let with = |imports: &[OperatorSetIdProto], ir_version| ModelProto {
        opset_import: imports.to_vec(),
        ir_version,
        ..model("y = Relu(x)", 13)
    };
    assert!(read(&with(&[import("com.microsoft", 1), import("ai.onnx", 13), import("", 13)], 8)).is_ok());
    let e = read(&with(&[import("", 11), import("ai.onnx", 13)], 8)).unwrap_err();
    assert!(e.contains("it names two operator sets, 11 and 13; keep one"), "{e}");
    let e = read(&with(&[import("com.microsoft", 1)], 8)).unwrap_err();
    assert!(e.contains("it does not name its operator set"), "{e}");
    // Files in the first two versions of the format use operator set 1.
    assert!(read(&with(&[], 2)).is_ok());
}
