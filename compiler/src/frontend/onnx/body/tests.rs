use super::super::proto::*;
use super::super::testing::{network, node, parsed};
use crate::frontend::{Sizes, Sources, onnx};
use crate::graph::{Graph, Tensor, eval};
use prost::Message;
use std::time::{Duration, Instant};

mod sequences;

/// A model from floats `x`, f32[2,3], to `y`, with the booleans `yes` and `no`, the number `two` and `three` integers.
fn model(nodes: Vec<NodeProto>, functions: Vec<FunctionProto>) -> ModelProto {
    let mut model = ModelProto::read(&network(&[], &[2, 3], 1, &[("three", &[3])], 18)).unwrap();
    let graph = model.graph.as_mut().unwrap();
    graph.node = nodes;
    let truth =
        |name: &str, t| TensorProto { name: name.into(), data_type: 9, int32_data: vec![t], ..TensorProto::default() };
    graph.initializer.extend([truth("yes", 1), truth("no", 0), floats("two", &[], &[2.0])]);
    ModelProto { functions, ..model }
}

fn opsets(list: &[(&str, i64)]) -> Vec<OperatorSetIdProto> {
    list.iter().map(|&(domain, version)| OperatorSetIdProto { domain: domain.into(), version }).collect()
}

fn floats(name: &str, dims: &[i64], v: &[f32]) -> TensorProto {
    let (dims, float_data) = (dims.to_vec(), v.to_vec());
    TensorProto { name: name.into(), dims, data_type: 1, float_data, ..TensorProto::default() }
}

fn nodes(list: &[&str]) -> Vec<NodeProto> {
    list.iter().map(|text| node(text)).collect()
}

/// A branch with these nodes and outputs.
fn graph(outputs: &[&str], list: Vec<NodeProto>) -> GraphProto {
    let info = |name: &&str| ValueInfoProto { name: name.to_string(), r#type: None };
    GraphProto { node: list, output: outputs.iter().map(info).collect(), ..GraphProto::default() }
}

/// `outputs = If(condition)` with these branches.
fn choice(outputs: &str, condition: &str, then: GraphProto, other: GraphProto) -> NodeProto {
    let branch = |name: &str, g: GraphProto| AttributeProto {
        name: name.into(),
        g: Some(Box::new(g)),
        r#type: 5,
        ..AttributeProto::default()
    };
    let mut n = node(&format!("{outputs} = If({condition})"));
    n.attribute = vec![branch("then_branch", then), branch("else_branch", other)];
    n
}

/// A function of `my.lib` with its operands, results, attributes without defaults, and attributes with defaults.
fn function(name: &str, signature: [&[&str]; 3], defaults: &[(&str, &str)], list: &[&str]) -> FunctionProto {
    let [input, output, attribute] = signature.map(|names| names.iter().map(|s| s.to_string()).collect());
    FunctionProto {
        name: name.into(),
        domain: "my.lib".into(),
        input,
        output,
        attribute,
        attribute_proto: defaults.iter().map(|(name, value)| parsed(name, value)).collect(),
        node: nodes(list),
        opset_import: opsets(&[("", 18), ("my.lib", 1)]),
        ..FunctionProto::default()
    }
}

fn take(model: &ModelProto) -> Result<(Graph, Sources), String> {
    let sizes = Sizes::default();
    onnx::import_traced(&model.encode_to_vec(), "net.onnx", &[], &(&sizes).into()).map_err(|e| e.to_string())
}

const X: [f32; 6] = [-3.0, -2.0, -1.0, 1.0, 2.0, 3.0];

/// The results for [`X`].
#[track_caller]
fn run(model: &ModelProto) -> Vec<Tensor> {
    let (graph, _) = take(model).unwrap_or_else(|e| panic!("{e}"));
    eval(&graph, &[Tensor::new(&[2, 3], X.to_vec()).unwrap()]).unwrap()
}

#[track_caller]
fn gives(model: &ModelProto, want: impl Fn(f32) -> f32) {
    assert_eq!(run(model)[0].as_slice::<f32>().unwrap(), X.map(want));
}

#[track_caller]
fn refused(model: &ModelProto, want: &str) {
    let e = take(model).map(|_| ()).unwrap_err();
    assert!(e.contains(want), "{e}");
}

fn relu(x: f32) -> f32 {
    x.max(0.0)
}

/// Relu of x or its negative, into `y`.
fn either(condition: &str) -> NodeProto {
    choice("y", condition, graph(&["t"], nodes(&["t = Relu(x)"])), graph(&["e"], nodes(&["e = Neg(x)"])))
}

#[test]
fn the_branch_of_a_known_condition_is_taken() {
    gives(&model(vec![either("yes")], vec![]), relu);
    gives(&model(vec![either("no")], vec![]), |x| -x);
    // The condition comes from a Constant node after it in the file.
    let mut constant = node("c = Constant()");
    let truth = TensorProto { data_type: 9, int32_data: vec![1], ..TensorProto::default() };
    constant.attribute = vec![AttributeProto { name: "value".into(), t: Some(truth), r#type: 4, ..Default::default() }];
    gives(&model(vec![either("c"), constant], vec![]), relu);
    // The condition follows from the sizes of the data.
    let sizes = |equal: &str| {
        let mut list = nodes(&["s = Shape(x) start=1", equal]);
        list.push(either("c"));
        model(list, vec![])
    };
    gives(&sizes("c = Equal(s, three)"), relu);
    gives(&sizes("c = Less(s, three)"), |x| -x);
}

#[test]
fn a_condition_that_the_run_computes_chooses_a_region() {
    let above = |limit: &str, choice: NodeProto| {
        let mut list = nodes(&["m = ReduceMax(x) keepdims=0", &format!("c = Less({limit}, m)")]);
        list.push(choice);
        model(list, vec![])
    };
    // The largest of X is 3.
    gives(&above("two", either("c")), relu);
    gives(&above("m", either("c")), |x| -x);
    let (made, _) = take(&above("two", either("c"))).unwrap();
    let text = crate::graph::text::print(&made);
    assert_eq!(crate::graph::text::parse(&text, &Default::default()).unwrap(), made, "{text}");
    // Within each other; the inner one reads a value of the outer graph, and a constant.
    let inner = choice("i", "c", graph_of("i2", &["k = Neg(x)", "i2 = Add(k, two)"]), graph_of("x", &[]));
    let outer = choice("y", "c", graph(&["i"], vec![inner]), graph_of("n", &["n = Neg(x)"]));
    gives(&above("two", outer.clone()), |x| 2.0 - x);
    gives(&above("m", outer), |x| -x);
    let other = choice("y", "c", graph_of("a", &["a = Shape(x)"]), graph_of("x", &[]));
    let want =
        "(If): its branches return i64[2] and f32[2,3]; make them return the same types, or the condition a constant";
    refused(&above("two", other), want);
    let unknown = choice("y", "c", graph_of("a", &["a = Relu(nothing)"]), graph_of("x", &[]));
    refused(&above("two", unknown), "node `y/a` (Relu): `nothing` is not defined");
}

/// A branch with one output.
fn graph_of(output: &str, list: &[&str]) -> GraphProto {
    graph(&[output], nodes(list))
}

/// `outputs = operator(operands)` with this body, whose inputs are `takes`, and attributes.
fn repeated(text: &str, takes: &[&str], body: GraphProto) -> NodeProto {
    let input = takes.iter().map(|name| ValueInfoProto { name: name.to_string(), r#type: None }).collect();
    let body = GraphProto { input, ..body };
    let mut n = node(text);
    n.attribute.push(AttributeProto { name: "body".into(), g: Some(Box::new(body)), r#type: 5, ..Default::default() });
    n
}

#[test]
fn loops_end_by_their_limit_or_their_condition() {
    // Doubles x until its largest element is above a limit that the run computes, at most `limit` times.
    let doubling = |limit: &str, collects: bool| {
        let list = nodes(&["d = Add(v, v)", "m = ReduceMax(d) keepdims=0", "go = Less(m, most)"]);
        let outputs: &[&str] = if collects { &["go", "d", "m"] } else { &["go", "d"] };
        let made = if collects { "y, all" } else { "y" };
        let body = graph(outputs, list);
        let mut all = nodes(&["s = ReduceSum(x) keepdims=0", "hundred = Mul(ten, ten)", "most = Add(hundred, s)"]);
        all.push(repeated(&format!("{made} = Loop({limit}, , x)"), &["i", "c", "v"], body));
        let mut model = model(all, vec![]);
        let graph = model.graph.as_mut().unwrap();
        graph.initializer.push(floats("ten", &[], &[10.0]));
        model
    };
    // The largest is 3, 6, 12, 24, 48, 96, 192.
    gives(&doubling("", false), |x| 64.0 * x);
    gives(&doubling("three", false), |x| 8.0 * x);
    let (graph, _) = take(&doubling("", false)).unwrap();
    let text = crate::graph::text::print(&graph);
    assert_eq!(crate::graph::text::parse(&text, &Default::default()).unwrap(), graph, "{text}");
    let want = "(Loop): it collects values, whose number is known only at run time";
    refused(&doubling("three", true), want);
}

#[test]
fn a_loop_collects_a_value_of_each_step_and_can_change_sizes() {
    let taken = |v: &str| {
        let body =
            graph(&["c2", "n", "r"], nodes(&["n = Mul(v, two)", "r = ReduceSum(n) keepdims=0", "c2 = Identity(c)"]));
        let mut list = vec![repeated(&format!("y, all = Loop(three, yes, {v})"), &["i", "c", "v"], body)];
        list.push(node("out = Identity(all)"));
        model(list, vec![])
    };
    let mut model = taken("x");
    let out = ValueInfoProto { name: "out".into(), ..model.graph.as_ref().unwrap().output[0].clone() };
    model.graph.as_mut().unwrap().output.push(out);
    let made = run(&model);
    assert_eq!(made[0].as_slice::<f32>().unwrap(), X.map(|x| 8.0 * x));
    assert_eq!((made[1].shape(), made[1].as_slice::<f32>().unwrap()), (&[3][..], &[0.0, 0.0, 0.0][..]));
    // Rows are added in each step: the import takes the steps one by one.
    let body = graph(&["c", "n"], nodes(&["n = Concat(v, v) axis=0"]));
    let made = run(&self::model(vec![repeated("y = Loop(three, yes, x)", &["i", "c", "v"], body)], vec![]));
    assert_eq!(made[0].shape(), [16, 3]);
    // Nor can a slice that begins at the step be computed in one. It is of the columns.
    let body = graph(&["c", "n"], nodes(&["e = Add(i, one)", "p = Slice(x, i, e, one)", "n = Add(v, p)"]));
    let mut model = self::model(vec![repeated("y = Loop(one, yes, x)", &["i", "c", "v"], body)], vec![]);
    let one =
        TensorProto { name: "one".into(), dims: vec![1], data_type: 7, int64_data: vec![1], ..Default::default() };
    model.graph.as_mut().unwrap().initializer.push(one);
    let body = &mut model.graph.as_mut().unwrap().node[0].attribute[0].g.as_mut().unwrap().input[0];
    let dim = DimensionProto { dim_value: Some(1), dim_param: None };
    let shape = TensorShapeProto { dim: vec![dim] };
    body.r#type = Some(TypeProto {
        tensor_type: Some(TensorTypeProto { elem_type: 7, shape: Some(shape) }),
        ..TypeProto::default()
    });
    assert_eq!(run(&model)[0].as_slice::<f32>().unwrap(), [-6.0, -5.0, -4.0, 2.0, 3.0, 4.0]);
}

#[test]
fn scans_run_over_slices_in_both_directions() {
    let scan = |attributes: &str| {
        let body = graph(&["n", "n"], nodes(&["n = Add(s, e)"]));
        let text = format!("last, y = Scan(zeros, x) num_scan_inputs=1 {attributes}");
        let mut model = model(vec![repeated(&text, &["s", "e"], body)], vec![]);
        model.graph.as_mut().unwrap().initializer.push(floats("zeros", &[2], &[0.0, 0.0]));
        model
    };
    let of = |attributes: &str| run(&scan(attributes))[0].clone();
    // Columns of X are (-3, 1), (-2, 2), (-1, 3).
    let forward = of("scan_input_axes=[1]");
    assert_eq!((forward.shape(), forward.as_slice::<f32>().unwrap()), (&[3, 2][..], &[-3., 1., -5., 3., -6., 6.][..]));
    let back = of("scan_input_axes=[1] scan_input_directions=[1] scan_output_axes=[1] scan_output_directions=[1]");
    assert_eq!((back.shape(), back.as_slice::<f32>().unwrap()), (&[2, 3][..], &[-6., -3., -1., 6., 5., 3.][..]));
    refused(&scan("scan_input_axes=[2]"), "its axis 2 is out of range");
    refused(&scan("scan_input_axes=[1, 0]"), "its attribute `scan_input_axes` must have 1 numbers, found 2");
}

#[test]
fn conditions_that_are_none_are_refused() {
    refused(&model(vec![either("d")], vec![]), "node `y` (If): `d` is not defined");
    refused(&model(vec![either("two")], vec![]), "its condition must be one truth value, found f32[]");
    let mut half = either("no");
    half.attribute.pop();
    refused(&model(vec![half], vec![]), "its attribute `else_branch` is missing");
    let two = choice("y, z", "yes", graph(&["x"], vec![]), graph(&["x"], vec![]));
    refused(&model(vec![two], vec![]), "it has 2 outputs, but its branch has 1");
}

#[test]
fn branches_use_and_hide_names_around_them() {
    // `a` is computed after the `If` in the file, `b` is another value inside the branch, `w` is a constant of its own.
    let mut then = graph(&["t", "a"], nodes(&["b = Add(a, w)", "t = Mul(b, two)"]));
    then.initializer = vec![floats("w", &[], &[10.0])];
    let mut list = vec![choice("p, q", "yes", then, graph(&["x", "x"], vec![]))];
    list.extend(nodes(&["a = Abs(x)", "b = Neg(x)", "r = Add(p, q)", "y = Add(r, b)"]));
    let mut with_w = model(list, vec![]);
    with_w.graph.as_mut().unwrap().initializer.push(floats("w", &[], &[-1.0]));
    gives(&with_w, |x| (x.abs() + 10.0) * 2.0 + x.abs() - x);
    // A branch can return an outer value or a constant unchanged; its own names are not visible after it.
    let mut constant = graph(&["k"], vec![]);
    constant.initializer = vec![floats("k", &[], &[4.0])];
    let mut list = vec![choice("p", "no", graph(&["x"], vec![]), constant)];
    list.extend(nodes(&["y = Mul(x, p)"]));
    gives(&model(list.clone(), vec![]), |x| 4.0 * x);
    list[1] = node("y = Mul(x, k)");
    refused(&model(list, vec![]), "node `y` (Mul): `k` is not defined");
}

#[test]
fn branches_lie_in_branches() {
    let inner = |c: &str| choice("i", c, graph(&["a"], nodes(&["a = Add(r, x)"])), graph(&["r"], vec![]));
    let outer = |c: &str| {
        let mut then = nodes(&["r = Relu(x)"]);
        then.push(inner(c));
        then.extend(nodes(&["o = Neg(i)"]));
        model(vec![choice("y", "yes", graph(&["o"], then), graph(&["x"], vec![]))], vec![])
    };
    gives(&outer("yes"), |x| -(relu(x) + x));
    gives(&outer("no"), |x| -relu(x));
}

#[test]
fn quantized_layers_lie_in_branches_and_functions() {
    let quantized = ["q = QuantizeLinear(x, scale, zero)", "d = DequantizeLinear(q, scale, zero)"];
    let zero = TensorProto { name: "zero".into(), data_type: 2, int32_data: vec![128], ..TensorProto::default() };
    let constants = [floats("scale", &[], &[0.75]), zero];
    let want = |x: f32| (x / 0.75).round_ties_even() * 0.75;
    // uint8 leaves the branch as uint8.
    let mut then = graph(&["q"], nodes(&quantized[..1]));
    then.initializer = constants.to_vec();
    let mut list = vec![choice("q", "yes", then, graph(&["x"], vec![]))];
    list.extend(nodes(&["y = DequantizeLinear(q, scale, zero)"]));
    let mut branch = model(list, vec![]);
    branch.graph.as_mut().unwrap().initializer.extend(constants.clone());
    gives(&branch, want);
    let f = function("Rounded", [&["x", "scale", "zero"], &["d"], &[]], &[], &quantized);
    let mut call = model(nodes(&["y = my.lib.Rounded(x, scale, zero)"]), vec![f]);
    call.graph.as_mut().unwrap().initializer.extend(constants);
    gives(&call, want);
}

#[test]
fn what_a_branch_that_is_not_taken_has_is_not_looked_at() {
    let unknown = || graph(&["u"], nodes(&["u = Bernoulli(x)", "v = Det(u)"]));
    let plain = || graph(&["t"], nodes(&["t = Relu(x)"]));
    gives(&model(vec![choice("y", "yes", plain(), unknown())], vec![]), relu);
    let want = "unsupported operators: Bernoulli (node `y/u`), Det (node `y/v`; similar to DFT)";
    refused(&model(vec![choice("y", "no", plain(), unknown())], vec![]), want);
}

#[test]
fn functions_are_those_of_their_own_domain() {
    let negative = || function("Relu", [&["a"], &["b"], &[]], &[], &["b = Neg(a)"]);
    gives(&model(nodes(&["y = my.lib.Relu(x)"]), vec![negative()]), |x| -x);
    gives(&model(nodes(&["y = Relu(x)"]), vec![negative()]), relu);
    gives(&model(nodes(&["y = ai.onnx.Relu(x)"]), vec![negative()]), relu);
    refused(&model(nodes(&["y = other.Relu(x)"]), vec![negative()]), "unsupported operators: other.Relu (node `y`");
    // The default domain has two names.
    let own = FunctionProto { domain: "ai.onnx".into(), name: "Twice".into(), ..negative() };
    gives(&model(nodes(&["y = Twice(x)"]), vec![own]), |x| -x);
    let other = FunctionProto { overload: "abs".into(), node: nodes(&["b = Abs(a)"]), ..negative() };
    gives(&model(nodes(&["y = my.lib.Relu:abs(x)"]), vec![negative(), other.clone()]), f32::abs);
    gives(&model(nodes(&["y = my.lib.Relu(x)"]), vec![negative(), other.clone()]), |x| -x);
    refused(&model(nodes(&["y = my.lib.Relu:sign(x)"]), vec![other.clone()]), "operators: my.lib.Relu:sign (node `y`");
    refused(&model(vec![], vec![other.clone(), other]), "two of its functions have the name `my.lib.Relu:abs`");
}

#[test]
fn calls_give_attributes_or_leave_them_to_defaults() {
    let list = &["s = LeakyRelu(a) alpha=@slope", "b = Mul(s, two)", "two = Constant() value_float=@factor"];
    let f = function("F", [&["a"], &["b"], &["slope"]], &[("factor", "3.5")], list);
    let call = |text: &str| model(nodes(&[text]), vec![f.clone()]);
    let leaky = |slope: f32, factor: f32| move |x: f32| if x < 0.0 { slope * x * factor } else { x * factor };
    gives(&call("y = my.lib.F(x) slope=0.5 factor=2.0"), leaky(0.5, 2.0));
    gives(&call("y = my.lib.F(x) slope=0.5"), leaky(0.5, 3.5));
    gives(&call("y = my.lib.F(x)"), leaky(0.01, 3.5));
    refused(&call("y = my.lib.F(x) slop=0.5"), "the model's function `my.lib.F` has no attribute `slop`");
    refused(
        &call("y = my.lib.F(x) slope=1"),
        "node `y/s` (LeakyRelu): its attribute `alpha` is of type INT; it must be of type FLOAT",
    );
    let unknown = function("F", [&["a"], &["b"], &[]], &[], &["b = LeakyRelu(a) alpha=@slope"]);
    let want =
        "node `y/b` (LeakyRelu): its attribute `alpha` refers to `slope`, an attribute that `my.lib.F` does not have";
    refused(&model(nodes(&["y = my.lib.F(x)"]), vec![unknown]), want);
    let outside = "its attribute `alpha` refers to the attribute `slope` of a function, but the node is in none";
    refused(&model(nodes(&["y = LeakyRelu(x) alpha=@slope"]), vec![]), outside);
    // Attributes pass through a function to one that it calls, and into its branches.
    let mut through = function("G", [&["a"], &["b"], &["slope"]], &[], &[]);
    let then = graph(&["t"], nodes(&["t = my.lib.F(a) slope=@slope factor=1.0"]));
    through.node = vec![choice("b", "c", then, graph(&["a"], vec![]))];
    through.input.push("c".into());
    gives(&model(nodes(&["y = my.lib.G(x, yes) slope=0.25"]), vec![f.clone(), through]), leaky(0.25, 1.0));
}

#[test]
fn calls_may_leave_operands_and_results_out() {
    let list = &["c = Clip(a, lo, hi)", "n = Neg(a)", "s = Add(c, n)"];
    let f = function("F", [&["a", "lo", "hi"], &["c", "n", "s"], &[]], &[], list);
    let call = |list: &[&str]| model(nodes(list), vec![f.clone()]);
    gives(&call(&["y = my.lib.F(x, , two)"]), |x| x.min(2.0));
    gives(&call(&["y = my.lib.F(x, two)"]), |x| x.max(2.0));
    gives(&call(&["y = my.lib.F(x)"]), |x| x);
    gives(&call(&["p, , q = my.lib.F(x, two)", "y = Sub(p, q)"]), |x| x.max(2.0) - (x.max(2.0) - x));
    gives(&call(&[", y = my.lib.F(x, two)"]), |x| -x);
    refused(&call(&["y = my.lib.F(x, two, two, two)"]), "it has 4 operands, but the model's function `my.lib.F` has 3");
    refused(&call(&["y, a, b, c = my.lib.F(x)"]), "it has 4 outputs, but the model's function `my.lib.F` has 3");
    let none = function("F", [&["a"], &["b"], &[]], &[], &["c = Neg(a)"]);
    refused(&model(nodes(&["y = my.lib.F(x)"]), vec![none]), "node `y` (my.lib.F): `b` is not defined");
    // Reading an output that the import of an operator leaves out is an error at the reader.
    let pooled = [
        "k = Constant() value_ints=[0, 1, 4]",
        "r = Unsqueeze(a, k)",
        "p, places = MaxPool(r) kernel_shape=[1, 1, 1]",
        "b = Squeeze(p, k)",
    ];
    let places = function("F", [&["a"], &["b", "places"], &[]], &[], &pooled);
    let dropped = model(nodes(&["d, m = my.lib.F(x)", "y = Relu(d)"]), vec![places.clone()]);
    gives(&dropped, relu);
    let used = model(nodes(&["d, m = my.lib.F(x)", "y = Relu(m)"]), vec![places]);
    refused(&used, "node `y` (Relu): `m` is not supported: it is an additional output of node `d/p` (MaxPool)");
}

#[test]
fn names_in_a_function_are_its_own() {
    // `x`, `y`, `two` and `t` are also defined outside, as other values.
    let list = &["t = Neg(y)", "x = Add(t, two)", "two = Abs(y)"];
    let f = function("F", [&["y"], &["x"], &[]], &[], list);
    let main = ["t = Mul(x, two)", "u = my.lib.F(t)", "y = Add(u, t)"];
    gives(&model(nodes(&main), vec![f.clone()]), |x| (2.0 * x).abs());
    let outside = function("F", [&["a"], &["b"], &[]], &[], &["b = Mul(a, two)"]);
    refused(&model(nodes(&["y = my.lib.F(x)"]), vec![outside]), "node `y/b` (Mul): `two` is not defined");
    let (_, sources) = take(&model(nodes(&main), vec![f])).unwrap();
    assert!(sources.knows("u") && sources.knows("u/two") && !sources.knows("u/u"));
}

#[test]
fn functions_have_operator_sets_of_their_own() {
    // Before set 13 both have their axes in an attribute.
    let list = &["c = Unsqueeze(a) axes=[0]", "b = ReduceSum(c) axes=[0] keepdims=0"];
    let at = |imports: &[(&str, i64)]| {
        let opset_import = opsets(imports);
        let f = FunctionProto { opset_import, ..function("F", [&["a"], &["b"], &[]], &[], list) };
        model(nodes(&["y = my.lib.F(x)"]), vec![f])
    };
    gives(&at(&[("", 11)]), |x| x);
    refused(&at(&[("", 18)]), "node `y/c` (Unsqueeze): it has no axes");
    refused(&at(&[("my.lib", 1)]), "node `y/c` (Unsqueeze): the function that it is in does not name its operator set");
    refused(&at(&[("", 99)]), "function `my.lib.F`: its operator set is 99; sets 1 to 27 are supported");
}

#[test]
fn all_unsupported_operators_of_functions_are_listed() {
    let f = function("F", [&["a"], &["b"], &[]], &[], &["d = Det(a)", "b = my.lib.G(d)"]);
    let g = function("G", [&["a"], &["b"], &[]], &[], &["b = Bernoulli(a)"]);
    let main = nodes(&["u = my.lib.F(x)", "v = my.lib.F(u)", "y = Nothing(v)"]);
    let want = "unsupported operators: Nothing (node `y`), Det (node `u/d`; similar to DFT), Bernoulli (node `u/b/b`)";
    refused(&model(main, vec![f, g]), want);
}

#[test]
fn functions_that_call_themselves_are_refused() {
    let f = function("F", [&["a"], &["b"], &[]], &[], &["b = my.lib.G(a)"]);
    let g = function("G", [&["a"], &["b"], &[]], &[], &["b = my.lib.F(a)"]);
    let want = "node `y/b/b` (my.lib.F): the model's function `my.lib.F` calls itself, which is not supported";
    refused(&model(nodes(&["y = my.lib.F(x)"]), vec![f, g]), want);
    // Also through a branch.
    let mut h = function("H", [&["a", "c"], &["b"], &[]], &[], &[]);
    h.node = vec![choice("b", "c", graph(&["t"], nodes(&["t = my.lib.H(a, c)"])), graph(&["a"], vec![]))];
    refused(&model(nodes(&["y = my.lib.H(x, yes)"]), vec![h]), "the model's function `my.lib.H` calls itself");
}

/// Functions that each call the next one `width` times; the last calls an operator.
fn tower(height: usize, width: usize) -> Vec<FunctionProto> {
    let level = |i: usize| {
        let callee = if i + 1 == height { "Neg".into() } else { format!("my.lib.F{}", i + 1) };
        let name = |k: usize| if k == width { "b".into() } else { format!("t{k}") };
        let text: Vec<String> = (0..width)
            .map(|k| format!("{} = {callee}({})", name(k + 1), if k == 0 { "a".into() } else { name(k) }))
            .collect();
        let list: Vec<&str> = text.iter().map(String::as_str).collect();
        function(&format!("F{i}"), [&["a"], &["b"], &[]], &[], &list)
    };
    (0..height).map(level).collect()
}

#[test]
fn functions_in_functions_are_bounded() {
    let call = || nodes(&["y = my.lib.F0(x)"]);
    gives(&model(call(), tower(5, 2)), |x| x);
    gives(&model(call(), tower(32, 1)), |x| -x);
    refused(&model(call(), tower(33, 1)), "more than 32 nested calls and branches are not supported");
    let began = Instant::now();
    refused(&model(call(), tower(30, 2)), "more nodes, which is too much for a file of this size");
    assert!(began.elapsed() < Duration::from_secs(5), "{:?}", began.elapsed());
    // An operator that becomes many nodes counts as many.
    let mut list: Vec<String> = (1..1000).map(|i| format!("v{i}, i{i} = TopK(t{}, k)", i - 1)).collect();
    list.extend((1..1000).map(|i| format!("t{i} = Concat(v{i}, t0) axis=1")));
    list.extend(["t0 = Concat(a, a, a, a, a, a, a, a, a, a) axis=1".into(), "k = Constant() value_ints=[30]".into()]);
    list.push("b = Add(t999, t999)".into());
    let list: Vec<&str> = list.iter().map(String::as_str).collect();
    let f = function("F0", [&["a"], &["b"], &[]], &[], &list);
    refused(
        &model(call(), vec![f]),
        "(TopK): its function becomes too many nodes, which is too much for a file of this size",
    );
}
