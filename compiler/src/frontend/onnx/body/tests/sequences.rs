//! Sequences and optional values.

use super::*;

/// The model of these nodes, whose output is `y`. It also has the numbers `zero`, `one`, `back` (-1) and `far`.
fn of(list: &[&str]) -> ModelProto {
    of_nodes(nodes(list))
}

fn of_nodes(list: Vec<NodeProto>) -> ModelProto {
    let mut model = model(list, vec![]);
    let whole =
        |name: &str, v| TensorProto { name: name.into(), data_type: 7, int64_data: vec![v], ..Default::default() };
    let graph = model.graph.as_mut().unwrap();
    graph.initializer.extend([whole("zero", 0), whole("one", 1), whole("back", -1), whole("far", 9)]);
    model
}

/// A model with a further input `at`, one integer.
fn with_position(list: &[&str]) -> ModelProto {
    let mut model = of(list);
    let tensor_type = Some(TensorTypeProto { elem_type: 7, shape: Some(TensorShapeProto::default()) });
    let ty = TypeProto { tensor_type, ..TypeProto::default() };
    model.graph.as_mut().unwrap().input.push(ValueInfoProto { name: "at".into(), r#type: Some(ty) });
    model
}

fn with_graph(text: &str, body: GraphProto) -> NodeProto {
    let attribute = AttributeProto { name: "body".into(), g: Some(Box::new(body)), r#type: 5, ..Default::default() };
    NodeProto { attribute: vec![attribute], ..node(text) }
}

fn body(inputs: &[&str], outputs: &[&str], list: &[&str]) -> GraphProto {
    let info = |name: &&str| ValueInfoProto { name: name.to_string(), r#type: None };
    GraphProto { input: inputs.iter().map(info).collect(), ..graph(outputs, nodes(list)) }
}

#[test]
fn sequences_are_built_and_taken_apart() {
    gives(&of(&["n = Neg(x)", "s = SequenceConstruct(x, n)", "y = SequenceAt(s, one)"]), |x| -x);
    gives(&of(&["n = Neg(x)", "s = SequenceConstruct(x, n)", "y = SequenceAt(s, back)"]), |x| -x);
    let grown = ["e = SequenceEmpty()", "s = SequenceInsert(e, x)", "n = Neg(x)"];
    gives(&of(&[&grown[..], &["t = SequenceInsert(s, n, zero)", "y = SequenceAt(t, zero)"]].concat()), |x| -x);
    // Counted from the end, the place is before the last.
    gives(&of(&[&grown[..], &["t = SequenceInsert(s, n, back)", "y = SequenceAt(t, zero)"]].concat()), |x| -x);
    gives(
        &of(&[&grown[..], &["t = SequenceInsert(s, n)", "u = SequenceErase(t)", "y = SequenceAt(u, back)"]].concat()),
        |x| x,
    );
    gives(&of(&["s = SplitToSequence(x) axis=0 keepdims=0", "y = ConcatFromSequence(s) axis=0 new_axis=1"]), |x| x);
    gives(&of(&["s = SplitToSequence(x, one) axis=1", "y = ConcatFromSequence(s) axis=1"]), |x| x);
    let counted = ["s = SplitToSequence(x) axis=1", "l = SequenceLength(s)", "f = Cast(l) to=1", "y = Mul(x, f)"];
    gives(&of(&counted), |x| 3.0 * x);
}

#[test]
fn positions_can_be_known_at_run_time() {
    let model = with_position(&["n = Neg(x)", "s = SequenceConstruct(x, n)", "y = SequenceAt(s, at)"]);
    let (graph, _) = take(&model).unwrap();
    let x = Tensor::new(&[2, 3], X.to_vec()).unwrap();
    for (at, sign) in [(0, 1.0), (1, -1.0), (-1, -1.0), (-2, 1.0)] {
        let found = eval(&graph, &[x.clone(), Tensor::scalar(at as i64)]).unwrap();
        assert_eq!(found[0].as_slice::<f32>().unwrap(), X.map(|x| sign * x), "{at}");
    }
    refused(&with_position(&["e = SequenceEmpty()", "y = SequenceInsert(e, x, at)"]), "`at`, must be a constant");
}

#[test]
fn graphs_run_for_each_tensor() {
    let mapped = with_graph("m = SequenceMap(s, x)", body(&["a", "b"], &["c"], &["c = Sub(a, b)"]));
    let mut list = nodes(&["n = Neg(x)", "s = SequenceConstruct(x, n)"]);
    list.extend([mapped, node("y = SequenceAt(m, one)")]);
    gives(&of_nodes(list), |x| -2.0 * x);
}

/// A loop that puts twice its step's data into a sequence.
fn grows(limit: &str) -> Vec<NodeProto> {
    let inner = ["d = Add(x, x)", "kept = Identity(goes)", "t = SequenceInsert(s, d)"];
    let step = body(&["i", "goes", "s"], &["kept", "t"], &inner);
    let mut list = nodes(&["e = SequenceEmpty()"]);
    list.push(with_graph(&format!("all = Loop({limit}, , e)"), step));
    list.extend(nodes(&["y = ConcatFromSequence(all) axis=0"]));
    list
}

#[test]
fn loops_of_known_steps_carry_sequences() {
    let (graph, _) = take(&of_nodes(grows("three"))).unwrap();
    let found = eval(&graph, &[Tensor::new(&[2, 3], X.to_vec()).unwrap()]).unwrap();
    assert_eq!(found[0].shape(), [6, 3]);
    assert_eq!(found[0].as_slice::<f32>().unwrap(), X.map(|x| 2.0 * x).repeat(3));
    let mut open = with_position(&[]);
    open.graph.as_mut().unwrap().node = grows("at");
    refused(&open, "it carries a sequence or an optional value");
}

#[test]
fn optional_values_are_there_or_not() {
    let chosen = |list: &[&str]| {
        let mut list = nodes(list);
        list.push(either("c"));
        of_nodes(list)
    };
    gives(&chosen(&["o = Optional(x)", "c = OptionalHasElement(o)"]), relu);
    gives(&chosen(&["o = Optional()", "c = OptionalHasElement(o)"]), |x| -x);
    gives(&of(&["o = Optional(x)", "y = OptionalGetElement(o)"]), |x| x);
    refused(&of(&["o = Optional()", "y = OptionalGetElement(o)"]), "`o`, is an optional value that is not there");
    refused(&of(&["o = Optional()", "y = Relu(o)"]), "`o` is an optional value that is not there");
}

#[test]
fn sequences_at_the_edge_are_their_tensors() {
    let mut model = of(&["n = Neg(x)", "y = SequenceConstruct(n, x)"]);
    let (graph, _) = take(&model).unwrap();
    assert_eq!(graph.outputs().iter().map(|(name, _)| name.to_owned()).collect::<Vec<_>>(), ["y_0", "y_1"]);
    // An input that is a sequence has the tensors that something is given for.
    let input = &mut model.graph.as_mut().unwrap().input[0];
    let of_tensors = TypeOf { elem_type: input.r#type.take().map(Box::new) };
    input.r#type = Some(TypeProto { sequence_type: Some(of_tensors), ..TypeProto::default() });
    model.graph.as_mut().unwrap().node = nodes(&["y = ConcatFromSequence(x) axis=0"]);
    refused(&model, "its input `x` is a sequence; say how many tensors it has");
    let shapes = [("x_0", vec![2, 3]), ("x_1", vec![2, 3])];
    let sizes = Sizes { inputs: shapes.map(|(name, shape)| (name.to_owned(), shape)).into(), ..Sizes::default() };
    let (graph, _) = onnx::import_traced(&model.encode_to_vec(), "net.onnx", &[], &sizes.into()).unwrap();
    let parts = [X, X.map(|x| -x)].map(|v| Tensor::new(&[2, 3], v.to_vec()).unwrap());
    let found = eval(&graph, &parts).unwrap();
    assert_eq!(found[0].as_slice::<f32>().unwrap(), [X, X.map(|x| -x)].concat());
}

#[test]
fn what_sequences_cannot_do_is_refused() {
    refused(&of(&["s = SequenceConstruct(x)", "y = Relu(s)"]), "`s` is a sequence; it must be a tensor");
    refused(&of(&["y = SequenceAt(x, zero)"]), "operand 0, `x`, must be a sequence");
    refused(&of(&["s = SequenceConstruct(x)", "y = SequenceAt(s, far)"]), "its position 9 is not in a sequence of 1");
    refused(
        &of(&["e = SequenceEmpty()", "y = SequenceInsert(e, x, back)"]),
        "its position -1 is not in a sequence of 0",
    );
    refused(&of(&["e = SequenceEmpty()", "y = SequenceErase(e)"]), "its sequence has no tensors");
    refused(&of(&["e = SequenceEmpty()", "y = ConcatFromSequence(e) axis=0"]), "its sequence has no tensors");
    refused(&of(&["y = SequenceEmpty()"]), "its output `y` is a sequence of no tensors");
    refused(&of(&["c = Cast(x) to=7", "s = SequenceConstruct(x, c)", "y = SequenceAt(s, zero)"]), "cannot be added to");
    refused(&of(&["y = SplitToSequence(x, zero) axis=0"]), "its `split` must be positive");
    refused(&of(&["y = SplitToSequence(x, three) axis=0"]), "does not match");
}
