use super::*;
use tilewright_runtime::artifact::Edge;
use tilewright_runtime::tensor::{DType, NarrowFloat};

fn value(name: &str, shape: &[usize]) -> ValueInfo {
    ValueInfo::new(name, DType::I8, shape.to_vec())
}

fn bytes(shape: &[usize]) -> Tensor {
    let len: usize = shape.iter().product();
    Tensor::new(DType::I8, shape.to_vec(), (0..len).map(|v| v as u8).collect()).unwrap()
}

#[test]
fn names_come_first_and_the_rest_in_order() {
    let (a, b, c) = (value("a", &[1]), value("b", &[1]), value("c", &[1]));
    let given = |names: &[Option<&str>]| -> Vec<(Option<String>, Tensor)> {
        names
            .iter()
            .enumerate()
            .map(|(i, name)| (name.map(str::to_string), Tensor::from_i8(vec![1], &[i as i8]).unwrap()))
            .collect()
    };
    let order = |names: &[Option<&str>]| {
        ordered(&[&a, &b, &c], given(names), None).map(|tensors| tensors.iter().map(|t| t.bytes[0]).collect::<Vec<_>>())
    };
    assert_eq!(order(&[None, Some("a"), None]).unwrap(), [1, 0, 2]);
    let message = |names: &[Option<&str>]| order(names).unwrap_err().to_string();
    assert_eq!(message(&[Some("x")]), "the model has no input x; it has a, b, c");
    assert_eq!(message(&[Some("a"), Some("a")]), "input a is given twice");
    assert_eq!(message(&[None]), "input b (i8 1) is missing; give it with --input b=FILE, or use --input random");
    let rest = vec![Tensor::from_i8(vec![1], &[9]).unwrap(); 3];
    let filled = ordered(&[&a, &b, &c], given(&[Some("b")]), Some(rest)).unwrap();
    assert_eq!(filled.iter().map(|t| t.bytes[0]).collect::<Vec<_>>(), [9, 0, 9]);
    assert_eq!(message(&[None; 4]), "4 arrays given, but the model has 3 inputs; give each once");
}

#[test]
fn a_longer_first_axis_means_more_runs() {
    let (x, y) = (value("x", &[2, 3]), value("y", &[1, 2]));
    let runs = split(&[&x, &y], &[bytes(&[4, 3]), bytes(&[2, 2])]).unwrap();
    assert_eq!(runs.len(), 2);
    assert_eq!(runs[1][0].bytes[..], [6, 7, 8, 9, 10, 11]);
    assert_eq!(runs[1][1].shape, [1, 2]);
    let message = |a: &[usize], b: &[usize]| split(&[&x, &y], &[bytes(a), bytes(b)]).unwrap_err().to_string();
    assert_eq!(message(&[4, 3], &[1, 2]), "input y has data for 1 runs, but input x for 2");
    for shape in [&[3, 3][..], &[2, 4], &[2], &[0, 3], &[1, 3]] {
        let found = shape_text(shape);
        assert_eq!(
            message(shape, &[1, 2]),
            format!("input x is i8 {found}, but the model needs i8 2x3, or a multiple of its first dimension")
        );
    }
    // An input without elements says nothing of the runs.
    let empty = value("e", &[1, 0, 4]);
    assert_eq!(split(&[&empty], &[bytes(&[1, 0, 4])]).unwrap().len(), 1);
    assert_eq!(split(&[&empty, &x], &[bytes(&[1, 0, 4]), bytes(&[4, 3])]).unwrap().len(), 2);
    let error = split(&[&empty], &[bytes(&[1, 1, 4])]).unwrap_err().to_string();
    assert_eq!(error, "input e is i8 1x1x4, but the model needs i8 1x0x4, or a multiple of its first dimension");
}

#[test]
fn accuracy_counts_the_right_answers() {
    let output = Tensor::from_f32(vec![2, 3], &[0.0, 5.0, 1.0, 9.0, 1.0, 2.0]).unwrap();
    let labels = Tensor::from_i8(vec![2], &[1, 2]).unwrap();
    assert_eq!(accuracy(&output, &labels).unwrap(), 0.5);
    let error = accuracy(&output, &Tensor::from_i8(vec![1], &[1]).unwrap()).unwrap_err().to_string();
    assert_eq!(error, "1 labels given for 2 answers; the label file must have one integer for each");
}

#[test]
fn labels_are_checked_before_there_are_answers() {
    let output = value("logits", &[2, 3]);
    let check = |labels: &Tensor| Labels::check(labels, Some(&output), 2);
    let labels = Tensor::from_i8(vec![4], &[0, 1, 2, 0]).unwrap();
    let checked = check(&labels).unwrap();
    let mut logits = [0; 12];
    for at in [0, 4, 8, 10] {
        logits[at] = 1;
    }
    assert_eq!(checked.accuracy(&Tensor::from_i8(vec![4, 3], &logits).unwrap()), 0.75);
    // Runs of a model whose output has one dimension are concatenated along it.
    let one_axis = Labels::check(&labels, Some(&value("y", &[3])), 4).unwrap();
    assert_eq!(one_axis.accuracy(&Tensor::from_i8(vec![12], &logits).unwrap()), 0.75);

    let message = |labels: &Tensor| check(labels).unwrap_err().to_string();
    assert_eq!(
        message(&Tensor::from_i8(vec![3], &[0; 3]).unwrap()),
        "3 labels given for 4 answers; the label file must have one integer for each"
    );
    assert_eq!(
        message(&Tensor::from_f32(vec![4], &[0.0; 4]).unwrap()),
        "the labels are f32; the label file must have integers, of type i8 to i64 or u8 to u64"
    );
    for (last, dtype) in [(-1, DType::I64), (3, DType::I64), (3, DType::U16), (-2, DType::I16), (1 << 40, DType::U64)] {
        let values = [0i64, 0, 0, last];
        let bytes = values.iter().flat_map(|v| v.to_le_bytes()[..dtype.size()].to_vec()).collect();
        assert_eq!(
            message(&Tensor::new(dtype, vec![4], bytes).unwrap()),
            format!("label 3 is {last}, but the model's first output has 3 classes; use 0 to 2")
        );
    }
    assert!(matches!(Labels::check(&labels, None, 2), Err(InputError::NoClasses { .. })));
    assert!(matches!(Labels::check(&labels, Some(&value("y", &[2, 1])), 2), Err(InputError::NoClasses { .. })));
}

/// A graph with one relu, which is an output under two names, and with its input as a third output.
fn named_often() -> Artifact {
    use tilewright_compiler::graph::op::Relu;
    use tilewright_compiler::graph::{DType, GraphBuilder, TensorType};
    let mut b = GraphBuilder::new("named");
    let x = b.input("x", TensorType::new(DType::F32, &[1, 3]));
    let y = b.node("relu", Relu {}, &[x]).unwrap();
    for (name, v) in [("y", y), ("z", x), ("again", y)] {
        b.output(name, v);
    }
    let config = tilewright_hw::config::HwConfig::default();
    let options = crate::model::Options { offload: crate::model::Offload::None, ..crate::model::Options::new(&config) };
    crate::model::build(b.finish().unwrap(), &options, &mut |_, _| {}).unwrap()
}

#[test]
fn outputs_that_pass_others_through_keep_all_names() {
    let artifact = named_often();
    let bytes = artifact.encode();
    let artifact = Artifact::decode("named", &bytes).unwrap();
    let m = &artifact.manifest;
    assert_eq!(m.named_outputs().map(|(name, _)| name).collect::<Vec<_>>(), ["y", "z", "again"]);
    assert_eq!(m.values[m.inputs[0].0 as usize].name, "x");
    assert_eq!(m.outputs[0], m.outputs[2]);
    let (visible, _) = crate::model::values::values(m);
    assert_eq!(visible[0].names(m).collect::<Vec<_>>(), ["x", "x", "z"]);
    let mut session = Session::new(artifact, &Default::default(), None).unwrap();
    let x = Tensor::from_f32(vec![1, 3], &[-1.0, 0.5, 2.0]).unwrap();
    let y = Tensor::from_f32(vec![1, 3], &[0.0, 0.5, 2.0]).unwrap();
    let (outputs, _) = session.run(std::slice::from_ref(&x)).unwrap();
    assert_eq!(outputs, [y.clone(), x, y]);
}

#[test]
fn arrays_have_the_width_of_floats_that_the_file_names() {
    let artifact = named_often();
    let value = &artifact.manifest.values[artifact.manifest.inputs[0].0 as usize];
    let half = |floats| Edge { floats: Some(floats), ..Edge::default() };
    let about = About { outputs: vec![half(NarrowFloat::F16)], ..About::default() };
    let single = Tensor::from_f32(vec![2, 3], &[1.0, -2.5, 0.25, 0.0, 65504.0, 3.0]).unwrap();
    let given = single.to_floats(DType::F16).unwrap();
    let runs = split(&[value], std::slice::from_ref(&single)).unwrap();
    assert_eq!(runs.len(), 2);
    for width in [DType::F16, DType::F64] {
        assert_eq!(split(&[value], &[single.to_floats(width).unwrap()]).unwrap(), runs, "{width}");
    }
    let mut outputs = vec![single.clone(), single.clone()];
    to_file_floats(&about, &mut outputs);
    assert_eq!(outputs, [given, single.clone()]);
    // Types that NumPy does not have: outputs are rounded, and inputs can be bits.
    let about = About { outputs: vec![half(NarrowFloat::F8E4m3fn)], ..About::default() };
    let mut outputs = vec![single];
    to_file_floats(&about, &mut outputs);
    assert!(outputs[0].to_f64()[4].is_nan(), "65504 is out of range");
    assert_eq!(outputs[0].to_f64()[..4], [1.0, -2.5, 0.25, 0.0]);
    let runs = |dtype, edge: NarrowFloat, bytes: Vec<u8>| {
        let bits = Tensor::new(dtype, vec![1, 3], bytes).unwrap();
        arrange(&[value], vec![(None, bits)], None, (Scaling::NONE, &[half(edge)]))
    };
    let brain = runs(DType::U16, NarrowFloat::Bf16, vec![0x80, 0x3f, 0x20, 0xc0, 0, 0]).unwrap();
    let eight = runs(DType::U8, NarrowFloat::F8E4m3fn, vec![0x38, 0xc2, 0]).unwrap();
    assert_eq!(brain[0][0].to_f64(), [1.0, -2.5, 0.0]);
    assert_eq!(eight[0][0].to_f64(), [1.0, -2.5, 0.0]);
    assert!(runs(DType::U16, NarrowFloat::F8E5m2, vec![0; 6]).is_err());
}

#[test]
fn bytes_become_floats_and_images_what_the_model_takes() {
    let x = ValueInfo::new("x", DType::F32, vec![1, 2, 1, 3]);
    let bytes = |shape: &[usize]| Tensor::new(DType::U8, shape.to_vec(), (0..12).collect()).unwrap();
    let scaling = Scaling { mean: 2.0, scale: 4.0 };
    let runs =
        |name: &str, shape: &[usize]| arrange(&[&x], vec![(Some(name.into()), bytes(shape))], None, (scaling, &[]));
    let real =
        |numbers: [u8; 6]| Tensor::from_f32(vec![1, 2, 1, 3], &numbers.map(|n| (f32::from(n) - 2.0) / 4.0)).unwrap();
    let plain = [vec![real([0, 1, 2, 3, 4, 5])], vec![real([6, 7, 8, 9, 10, 11])]];
    for shape in [&[2, 2, 1, 3][..], &[2, 2, 3], &[2, 1, 2, 3, 1]] {
        assert_eq!(runs("any", shape).unwrap(), plain, "{shape:?}");
    }
    let turned = [vec![real([0, 2, 4, 1, 3, 5])], vec![real([6, 8, 10, 7, 9, 11])]];
    assert_eq!(runs("any", &[2, 1, 3, 2]).unwrap(), turned);
    let error = runs("any", &[4, 3]).unwrap_err().to_string();
    assert_eq!(error, "input x is u8 4x3, but the model needs f32 1x2x1x3, or a multiple of its first dimension");
}
