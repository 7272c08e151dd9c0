use super::super::proto::*;
use super::super::testing::{network, node};
use crate::frontend::onnx::{self, Onnx};
use crate::frontend::{Format, Sizes};
use crate::graph::{Tensor, eval};
use prost::Message;

/// `x + c`, both f32[2,3]; `place` adds `c`.
fn sum(place: impl FnOnce(&mut GraphProto)) -> Vec<u8> {
    let mut model = ModelProto::read(&network(&[], &[2, 3], 1, &[], 17)).unwrap();
    let graph = model.graph.as_mut().unwrap();
    graph.node = vec![node("y = Add(x, c)")];
    place(graph);
    model.encode_to_vec()
}

fn result(file: &[u8]) -> Result<Vec<f32>, String> {
    let g = onnx::import(file, "net.onnx", None, Sizes::default()).map_err(|e| e.to_string())?;
    let zeros = Tensor::from_fn(&[2, 3], |_| 0f32);
    Ok(eval(&g, &[zeros]).unwrap()[0].as_slice::<f32>().unwrap().to_vec())
}

fn floats(dims: &[i64], float_data: &[f32]) -> TensorProto {
    let (name, dims, float_data) = ("c".into(), dims.to_vec(), float_data.to_vec());
    TensorProto { name, dims, data_type: 1, float_data, ..TensorProto::default() }
}

/// Two non-zero elements at these positions.
fn sparse(dims: &[i64], indices_dims: &[i64], indices: &[i64]) -> SparseTensorProto {
    let (int64_data, indices_dims) = (indices.to_vec(), indices_dims.to_vec());
    let indices = TensorProto { dims: indices_dims, data_type: 7, int64_data, ..TensorProto::default() };
    SparseTensorProto { values: Some(floats(&[2], &[5.0, -7.5])), indices: Some(indices), dims: dims.to_vec() }
}

#[test]
fn sparse_constants_are_expanded() {
    let want = [0.0, 0.0, 5.0, 0.0, -7.5, 0.0];
    let initializer = |t: SparseTensorProto| result(&sum(|g| g.sparse_initializer = vec![t]));
    let both = [sparse(&[2, 3], &[2], &[2, 4]), sparse(&[2, 3], &[2, 2], &[0, 2, 1, 1])];
    for t in both.clone() {
        assert_eq!(initializer(t).unwrap(), want);
    }
    // As an attribute of a node.
    let constant = |t: SparseTensorProto| {
        let value = AttributeProto {
            name: "sparse_value".into(),
            sparse_tensor: Some(Box::new(t)),
            r#type: 11,
            ..AttributeProto::default()
        };
        result(&sum(|g| g.node.push(NodeProto { attribute: vec![value], ..node("c = Constant()") })))
    };
    assert_eq!(constant(both[0].clone()).unwrap(), want);
    // Bytes that are not listed are 0.
    let mut bytes = sparse(&[2, 3], &[2], &[2, 4]);
    bytes.values =
        Some(TensorProto { data_type: 2, int32_data: vec![5, 200], float_data: vec![], ..floats(&[2], &[]) });
    let cast = result(&sum(|g| {
        bytes.values.as_mut().unwrap().name = "b".into();
        g.sparse_initializer = vec![bytes];
        g.node.push(node("c = Cast(b) to=1"));
    }));
    assert_eq!(cast.unwrap(), [0.0, 0.0, 5.0, 0.0, 200.0, 0.0]);
}

#[test]
fn sparse_constants_that_do_not_fit_are_refused() {
    for (t, want) in [
        (sparse(&[2, 3], &[2], &[2, 6]), "sparse constant `c`: its index 6 is out of range for 6 elements"),
        (sparse(&[2, 3], &[2], &[-1, 4]), "its index -1 is out of range for 6 elements"),
        (sparse(&[2, 3], &[2, 2], &[0, 2, 1, 3]), "its index 3 is out of range for 3 elements"),
        (sparse(&[2, 3], &[2], &[4, 2]), "its indices must be strictly ascending"),
        (sparse(&[2, 3], &[2], &[2, 2]), "its indices must be strictly ascending"),
        (sparse(&[2, 3], &[1], &[2]), "its indices i64[1] do not match 2 values of 2 dimensions"),
        (sparse(&[2, 3], &[2, 3], &[0; 6]), "its indices i64[2,3] do not match 2 values of 2 dimensions"),
        (
            sparse(&[1 << 40], &[2], &[2, 4]),
            "expanded it is f32[1099511627776], which is too much for a file of this size",
        ),
        (sparse(&[1 << 40, 1 << 40], &[2], &[2, 4]), "which is too much for a file of this size"),
        (SparseTensorProto { values: None, ..sparse(&[2, 3], &[2], &[2, 4]) }, "it has no values"),
    ] {
        let e = result(&sum(|g| g.sparse_initializer = vec![t])).unwrap_err();
        assert!(e.contains(want), "{e}");
    }
    let twice = |g: &mut GraphProto| {
        g.sparse_initializer = vec![sparse(&[2, 3], &[2], &[2, 4])];
        g.initializer = vec![floats(&[2, 3], &[1.0; 6])];
    };
    assert!(result(&sum(twice)).unwrap_err().contains("two constants have the name `c`"));
}

#[test]
fn data_that_are_given_twice_or_in_part_are_refused() {
    let constant = |t: TensorProto| result(&sum(|g| g.initializer = vec![t])).map_err(|e| e.to_string());
    let whole = floats(&[2, 3], &[1.0; 6]);
    assert_eq!(constant(whole.clone()).unwrap(), [1.0; 6]);
    let twice = TensorProto { raw_data: vec![0; 24], ..whole.clone() };
    assert!(
        constant(twice).unwrap_err().contains("constant `c`: its data are given twice, as raw bytes and as a list")
    );
    let part = TensorProto { segment: Some(Segment { begin: 6, end: 12 }), ..whole };
    assert!(constant(part).unwrap_err().contains("constant `c`: it is only a segment, elements 6 to 12"));
}

#[test]
fn names_that_are_not_utf_8_are_read() {
    let file = |operator: &str| {
        let mut file = sum(|g| {
            g.initializer = vec![TensorProto { name: "c_QQ".into(), ..floats(&[2, 3], &[1.5; 6]) }];
            g.node = vec![node(&format!("y = {operator}(x, c_QQ)"))];
            g.node[0].name = "n_QQ".into();
            g.name = "g_QQ".into();
        });
        for i in 0..file.len() - 1 {
            if &file[i..i + 2] == b"QQ" {
                file[i..i + 2].copy_from_slice(b"\xfe\xe9");
            }
        }
        file
    };
    assert_eq!(result(&file("Add")).unwrap(), [1.5; 6]);
    assert!(Onnx.about(&file("Add")).is_some());
    // The message spells the bytes of the name.
    let e = result(&file("Bernoulli")).unwrap_err();
    assert!(e.contains("unsupported operators: Bernoulli (node `n_\u{fffd}fe\u{fffd}e9`"), "{e}");
}

#[test]
fn inputs_without_a_shape_take_that_of_their_data() {
    let file = sum(|g| {
        g.initializer = vec![floats(&[3], &[1.0, 2.0, 3.0])];
        g.input[0].r#type.as_mut().unwrap().tensor_type.as_mut().unwrap().shape = None;
    });
    let shape = |sizes: Sizes| {
        let g = onnx::import(&file, "net.onnx", None, &sizes).map_err(|e| e.to_string())?;
        Ok::<_, String>(g.ty(g.outputs()[0].1).shape().unwrap())
    };
    let e = shape(Sizes::default()).unwrap_err();
    assert!(e.contains("input `x` has no shape; give it with --shape x=SIZExSIZE"), "{e}");
    let given = |shape: &[usize]| Sizes { inputs: [("x".to_string(), shape.to_vec())].into(), ..Sizes::default() };
    assert_eq!(shape(given(&[4, 3])).unwrap(), [4, 3]);
    assert_eq!(shape(given(&[])).unwrap(), [3]);
    // Data can hold several runs, so the outermost size is left alone.
    let data =
        |name: Option<&str>| Sizes { data: vec![(name.map(str::to_string), vec![10, 3]).into()], ..Sizes::default() };
    assert_eq!(shape(data(None)).unwrap(), [1, 3]);
    assert_eq!(shape(data(Some("x"))).unwrap(), [1, 3]);
    // The only array belongs to the only open input, whatever its name.
    assert_eq!(shape(data(Some("z"))).unwrap(), [1, 3]);
}
