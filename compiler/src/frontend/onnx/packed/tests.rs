use crate::frontend::onnx::proto::*;
use crate::frontend::onnx::testing::{network, node};
use crate::frontend::onnx::{import, write};
use crate::frontend::{ImportOptions, Sizes};
use crate::graph::op::Packed;
use crate::graph::{DType, Graph, Op, Tensor, TensorType, eval, text};
use prost::Message;
use std::collections::BTreeMap;
use tilewright_runtime::value::Value;
use tilewright_runtime::{Function, Registry};

fn info(name: &str, elem_type: i32, shape: &[Result<i64, &str>]) -> ValueInfoProto {
    let dim = |d: &Result<i64, &str>| DimensionProto { dim_value: d.ok(), dim_param: d.err().map(Into::into) };
    let shape = TensorShapeProto { dim: shape.iter().map(dim).collect() };
    let tensor_type = Some(TensorTypeProto { elem_type, shape: Some(shape) });
    ValueInfoProto { name: name.into(), r#type: Some(TypeProto { tensor_type, ..TypeProto::default() }) }
}

/// A model of these nodes from `x`, of `element` and [n, 4], with declared types, and constants `c`.
fn model(nodes: &[&str], element: i32, declared: &[ValueInfoProto]) -> Vec<u8> {
    let file = network(&[], &[2, 4], element, &[("c", &[7, 8])], 17);
    let mut model = ModelProto::read(&file).unwrap();
    let graph = model.graph.as_mut().unwrap();
    graph.node = nodes.iter().map(|text| node(text)).collect();
    graph.input = vec![info("x", element, &[Err("n"), Ok(4)])];
    graph.value_info = declared.to_vec();
    graph.output = vec![info("y", 1, &[Err("n"), Ok(4)])];
    model.encode_to_vec()
}

fn read(bytes: &[u8]) -> Result<Graph, String> {
    let sizes = Sizes { symbols: [("n".to_string(), 2)].into(), ..Sizes::default() };
    let packed = ["my.ops".to_string()].into();
    import(bytes, "net.onnx", None, ImportOptions { sizes, packed, ..ImportOptions::default() })
        .map_err(|e| e.to_string())
}

fn packed(graph: &Graph) -> &Packed {
    let found = graph.nodes().find_map(|(_, node)| match &node.op {
        Op::Packed(packed) => Some(packed),
        _ => None,
    });
    found.unwrap()
}

#[test]
fn a_node_of_a_named_domain_calls_a_function() {
    let nodes = ["a, k = my.ops.Keep:two(x, c) by=3 eps=0.5 mode='l\"2' axes=[1, 2]", "y = Neg(a)"];
    let declared = [info("a", 1, &[Err("n"), Ok(4)]), info("k", 7, &[Ok(1)])];
    let graph = read(&model(&nodes, 1, &declared)).unwrap();
    let op = packed(&graph);
    assert_eq!(op.function, "my.ops.Keep:two");
    assert_eq!(op.types, [TensorType::new(DType::F32, &[2, 4]), TensorType::new(DType::I64, &[1])]);

    let printed = text::print(&graph);
    let line = r#"packed "a"(%0, %1) {function = "my.ops.Keep:two", attributes = [["axes", [1, 2]], ["by", 3], ["eps", 0.5], ["mode", "l\"2"]]} : f32[2,4], i64[1]"#;
    assert!(printed.contains(line), "{printed}");
    assert_eq!(text::parse(&printed, &Default::default()).unwrap(), graph);
    let packed_domain = || ImportOptions { packed: ["my.ops".to_string()].into(), ..ImportOptions::default() };
    let again = import(&write(&graph).unwrap(), "again.onnx", None, packed_domain()).unwrap();
    assert_eq!(packed(&again), op);

    let e = eval(&graph, &[Tensor::from_fn(&[2, 4], |i| i as f32)]).unwrap_err().to_string();
    assert!(e.contains("the function my.ops.Keep:two: it is not registered"), "{e}");
    Registry::global().add(Function::new("my.ops.Keep:two", |args| {
        args.count(3, Some(3))?;
        let attributes = args.get::<BTreeMap<String, Value>>(2)?;
        let text: Vec<String> = attributes.iter().map(|(name, value)| format!("{name}={value}")).collect();
        assert_eq!(text.join(" "), r#"axes=[1, 2] by=3 eps=0.5 mode="l\"2""#);
        let k = tilewright_runtime::Tensor::from(&Tensor::vector(vec![9i64]));
        Ok(Value::from_iter([args.values()[0].clone(), Value::Tensor(k)]))
    }));
    let found = eval(&graph, &[Tensor::from_fn(&[2, 4], |i| i as f32)]).unwrap();
    assert_eq!(found, [Tensor::from_fn(&[2, 4], |i| -(i as f32))]);
}

/// Bytes that the file calls unsigned reach the function as such.
#[test]
fn a_function_gets_and_returns_the_files_element_types() {
    Registry::global().add(Function::new("my.ops.Bytes", |args| {
        let x = args.get::<tilewright_runtime::Tensor>(0)?;
        assert_eq!(x.bytes.as_ref(), [0, 1, 2, 250, 251, 252, 253, 254]);
        Ok(args.values()[0].clone())
    }));
    let nodes = ["a = my.ops.Bytes(x)", "y = Cast(a) to=1"];
    let graph = read(&model(&nodes, 2, &[info("a", 2, &[Err("n"), Ok(4)])])).unwrap();
    let x = Tensor::new(&[2, 4], vec![0u8, 1, 2, 250, 251, 252, 253, 254]).unwrap();
    let found = eval(&graph, &[x]).unwrap();
    assert_eq!(found, [Tensor::new(&[2, 4], vec![0f32, 1.0, 2.0, 250.0, 251.0, 252.0, 253.0, 254.0]).unwrap()]);
}

#[test]
fn what_a_function_cannot_be_is_refused_with_a_remedy() {
    let float = |name: &str| info(name, 1, &[Err("n"), Ok(4)]);
    let refused = |nodes: &[&str], declared: &[ValueInfoProto]| read(&model(nodes, 1, declared)).unwrap_err();
    let wrong = "net.onnx: node `a` (my.ops.F): the type of its output `a` is not known; declare element type and shape in \
                 the file's value_info";
    let e = refused(&["a = my.ops.F(x)", "y = Neg(a)"], &[]);
    assert!(e.starts_with(wrong), "{e}");
    let open = info("a", 1, &[Err("m"), Ok(4)]);
    let e = refused(&["a = my.ops.F(x)", "y = Neg(a)"], &[open]);
    assert!(e.contains("its output `a` is f32[m,4], but no input has the size `m`; declare it as"), "{e}");
    let no_shape = ValueInfoProto {
        name: "a".into(),
        r#type: Some(TypeProto {
            tensor_type: Some(TensorTypeProto { elem_type: 1, shape: None }),
            ..TypeProto::default()
        }),
    };
    let e = refused(&["a = my.ops.F(x)", "y = Neg(a)"], &[no_shape]);
    assert!(e.contains("value `a` has no shape; declare one"), "{e}");
    let e = refused(&["a = my.ops.F(x, , c)", "y = Neg(a)"], &[float("a")]);
    assert!(e.contains("its operand 1 is left out, but functions take all operands"), "{e}");
    let e = refused(&["a, , b = my.ops.F(x)", "y = Neg(a)"], &[float("a"), float("b")]);
    assert!(e.contains("its output 1 has no name, so that its type is not known; name it"), "{e}");
    let e = refused(&["a = my.ops.F(x) k=1 k=2", "y = Neg(a)"], &[float("a")]);
    assert!(e.contains("its attribute `k` is given twice"), "{e}");
    let e = refused(&["a = other.F(x)", "y = Neg(a)"], &[float("a")]);
    assert!(e.contains("other.F (node `a`"), "{e}");
    assert!(e.contains("--packed other"), "{e}");
}

/// Functions have no part in what the compiler evaluates, even of constants.
#[test]
fn a_function_of_constants_is_called_when_the_model_runs() {
    Registry::global().add(Function::new("my.ops.Never", |_| Err("called by the compiler".into())));
    let nodes = ["a = my.ops.Never(c)", "y = Add(a, x)"];
    let graph = read(&model(&nodes, 1, &[info("a", 1, &[Ok(4)])])).unwrap();
    let passes = crate::passes::pipelines::passes(crate::passes::OptLevel::O3);
    let (graph, _) = crate::passes::run(graph, &passes, Default::default()).unwrap();
    assert_eq!(packed(&graph).function, "my.ops.Never");
}
