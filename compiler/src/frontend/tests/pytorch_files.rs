//! Archives of PyTorch: their layouts, and files that cannot be imported. Networks that are right are in `tests/cases`.

use super::*;
use serde_json::{Value, json};
use std::io::Write as _;

/// A zip file with these entries.
fn zipped(entries: &[(&str, &[u8])]) -> Vec<u8> {
    let mut zip = zip::ZipWriter::new(std::io::Cursor::new(Vec::new()));
    let options = zip::write::SimpleFileOptions::default().compression_method(zip::CompressionMethod::Stored);
    for (name, bytes) in entries {
        zip.start_file(*name, options).unwrap();
        zip.write_all(bytes).unwrap();
    }
    zip.finish().unwrap().into_inner()
}

/// The type of a tensor of floats.
fn floats(sizes: &[usize]) -> Value {
    typed(7, sizes)
}

fn typed(dtype: u8, sizes: &[usize]) -> Value {
    let mut strides = vec![1; sizes.len()];
    for i in (1..sizes.len()).rev() {
        strides[i - 1] = strides[i] * sizes[i];
    }
    let list = |list: &[usize]| list.iter().map(|n| json!({ "as_int": n })).collect::<Vec<_>>();
    json!({ "dtype": dtype, "sizes": list(sizes), "strides": list(&strides), "storage_offset": { "as_int": 0 }, "layout": 7 })
}

fn tensor(name: &str) -> Value {
    json!({ "as_tensor": { "name": name } })
}

/// `y = x * weight^T` with weights `[2, 3]`.
fn linear() -> Value {
    let node = json!({
        "target": "torch.ops.aten.linear.default",
        "inputs": [{ "name": "input", "arg": tensor("x") }, { "name": "weight", "arg": tensor("p_weight") }],
        "outputs": [tensor("y")],
        "metadata": {},
    });
    json!({
        "graph_module": {
            "graph": {
                "inputs": [tensor("p_weight"), tensor("x")],
                "outputs": [tensor("y")],
                "nodes": [node],
                "tensor_values": { "p_weight": floats(&[2, 3]), "x": floats(&[1, 3]), "y": floats(&[1, 2]) },
            },
            "signature": {
                "input_specs": [
                    { "parameter": { "arg": { "name": "p_weight" }, "parameter_name": "weight" } },
                    { "user_input": { "arg": tensor("x") } },
                ],
                "output_specs": [{ "user_output": { "arg": tensor("y") } }],
            },
            "module_call_graph": [],
        },
        "schema_version": { "major": 8, "minor": 20 },
    })
}

fn little(list: &[f32]) -> Vec<u8> {
    list.iter().flat_map(|x| x.to_le_bytes()).collect()
}

const WEIGHT: [f32; 6] = [1.0, 2.0, 3.0, 4.0, 5.0, 6.0];

/// An archive of the present layout; `meta` is the type of the weight.
fn archive(program: &Value, meta: &Value, weight: &[u8]) -> Vec<u8> {
    let list = json!({ "config": { "weight": { "path_name": "weight_0", "use_pickle": false, "tensor_meta": meta } } });
    zipped(&[
        ("m/data/weights/weight_0", weight),
        ("m/data/weights/model_weights_config.json", list.to_string().as_bytes()),
        ("m/models/model.json", program.to_string().as_bytes()),
        ("m/archive_format", b"pt2"),
        ("m/byteorder", b"little"),
    ])
}

fn imported(bytes: &[u8]) -> Result<Graph, ImportError> {
    pytorch::import_traced(bytes, "model.pt2", &ImportOptions::default()).map(|(graph, _)| graph)
}

/// What the network makes of `[1, 10, 100]`.
#[track_caller]
fn run(bytes: &[u8]) -> Vec<f32> {
    let graph = imported(bytes).unwrap_or_else(|e| panic!("{e}"));
    let x = Tensor::new(&[1, 3], vec![1f32, 10.0, 100.0]).unwrap();
    eval(&graph, &[x]).unwrap()[0].as_slice::<f32>().unwrap().to_vec()
}

#[track_caller]
fn refused(bytes: &[u8], want: &str) {
    let e = imported(bytes).map(|_| ()).unwrap_err().to_string();
    assert!(e.starts_with("model.pt2") && e.contains(want), "{e}");
}

/// A pickle of a dictionary with the weight, as `torch.save` writes it; `function` makes the tensor.
fn pickled(function: &str) -> Vec<u8> {
    let (module, name) = function.split_once(' ').unwrap();
    let mut b = b"\x80\x02}q\0(X\x06\0\0\0weightq\x01".to_vec();
    b.extend(format!("c{module}\n{name}\n").as_bytes());
    b.extend(b"((X\x07\0\0\0storagectorch\nFloatStorage\nX\x01\0\0\x000X\x03\0\0\0cpuK\x06tQK\0K\x02K\x03\x86K\x03K\x01\x86\x89");
    b.extend(b"ccollections\nOrderedDict\n)RtRu.");
    b
}

/// An archive as torch wrote them up to 2.7.
fn old(pickle: &[u8]) -> Vec<u8> {
    let weights = zipped(&[("archive/data.pkl", pickle), ("archive/data/0", &little(&WEIGHT))]);
    let program = linear().to_string();
    zipped(&[
        ("serialized_exported_program.json", program.as_bytes()),
        ("serialized_state_dict.pt", &weights),
        ("version", b"8.2"),
    ])
}

#[test]
fn weights_are_read_from_all_layouts() {
    let plain = archive(&linear(), &floats(&[2, 3]), &little(&WEIGHT));
    assert_eq!(run(&plain), [321.0, 654.0]);
    assert_eq!(run(&old(&pickled("torch._utils _rebuild_tensor_v2"))), [321.0, 654.0]);
    // The transpose of what is stored, from the second element on.
    let mut meta = floats(&[2, 3]);
    meta["strides"] = json!([{ "as_int": 1 }, { "as_int": 2 }]);
    meta["storage_offset"] = json!({ "as_int": 1 });
    let stored = [0.0, 1.0, 4.0, 2.0, 5.0, 3.0, 6.0];
    assert_eq!(run(&archive(&linear(), &meta, &little(&stored))), [321.0, 654.0]);
    // bfloat16 is the upper half of a float.
    let halves: Vec<u8> = WEIGHT.iter().flat_map(|x| x.to_le_bytes()[2..].to_vec()).collect();
    assert_eq!(run(&archive(&linear(), &typed(13, &[2, 3]), &halves)), [321.0, 654.0]);
}

#[test]
fn nothing_of_a_pickle_is_executed() {
    refused(&old(&pickled("os system")), "names `os.system`; only tensors are read, and nothing is executed");
    refused(&old(&pickled("builtins eval")), "names `builtins.eval`");
    refused(&old(b"\x80\x02cos\nsystem\nX\x02\0\0\0ls\x85R."), "names `os.system`");
    refused(&old(b"\x80\x02}\x81."), "instruction 0x81 of its pickle is not one of tensors");
    let nested = [&b"\x80\x02)"[..], &[0x85; 1000], b"."].concat();
    refused(&old(&nested), "more than 32 values within each other in its pickle");
    refused(&old(b"\x80\x02}"), "its pickle ends too early");
    refused(&old(b""), "its pickle ends too early");
}

#[test]
fn damaged_archives_are_refused_by_name() {
    let good = |program: &Value| archive(program, &floats(&[2, 3]), &little(&WEIGHT));
    let with = |change: fn(&mut Value)| {
        let mut program = linear();
        change(&mut program);
        good(&program)
    };
    let outside = zipped(&[("m/archive_format", b"pt2"), ("m/../../passwd", b"")]);
    refused(&outside, "its entry `m/../../passwd` leads outside the archive");
    refused(&with(|p| p["schema_version"]["major"] = json!(9)), "its schema has version 9, which is newer than 8");
    refused(&zipped(&[("m/archive_format", b"pt2")]), "it has no program");
    let two = [("m/archive_format", &b"pt2"[..]), ("m/models/a.json", b"{}"), ("m/models/b.json", b"{}")];
    refused(&zipped(&two), "it has 2 programs (m/models/a.json, m/models/b.json); save one");
    refused(&zipped(&[("m/archive_format", b"pt2"), ("m/models/model.json", b"{")]), "its program is damaged: ");
    let spec =
        |p: &mut Value| p["graph_module"]["signature"]["input_specs"][0]["parameter"]["parameter_name"] = json!("w");
    refused(&with(spec), "its tensor `w` is missing");
    let few = archive(&linear(), &floats(&[2, 3]), &little(&WEIGHT[..5]));
    refused(&few, "the stored tensor `p_weight`: its 20 bytes are too few for [2, 3]");
    let huge = archive(&linear(), &floats(&[1 << 40, 1 << 40]), &little(&WEIGHT));
    refused(&huge, "it is too large");
    let node = |p: &mut Value| p["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"] = tensor("z");
    refused(&with(node), "node `y` (aten.linear.default): `z` is not defined");
    let result = |p: &mut Value| p["graph_module"]["graph"]["tensor_values"]["y"] = floats(&[1, 5]);
    refused(&with(result), "its result `y` is f32[1,2], but the program declares f32[1,5]");
    let complex = |p: &mut Value| p["graph_module"]["graph"]["tensor_values"]["x"] = typed(10, &[1, 3]);
    refused(&with(complex), "its input `x`: the element type complex float is not supported");
    let many = |p: &mut Value| p["graph_module"]["graph"]["tensor_values"]["x"] = floats(&[1 << 20, 1 << 20]);
    refused(&with(many), "which is more than 2^31 elements");
    // Few elements that are each read many times.
    let mut often = floats(&[1000, 1000, 1000]);
    often["strides"] = json!([{ "as_int": 1 }, { "as_int": 1 }, { "as_int": 1 }]);
    refused(&archive(&linear(), &often, &little(&[0.0; 3000])), "its 12000 bytes are too few for [1000, 1000, 1000]");
    let twice = |p: &mut Value| {
        let node = p["graph_module"]["graph"]["nodes"][0].clone();
        p["graph_module"]["graph"]["nodes"].as_array_mut().unwrap().push(node);
    };
    refused(&with(twice), "`y` is defined twice");
    // A cycle: a node reads what a later node makes.
    let cycle = |p: &mut Value| {
        let mut first = p["graph_module"]["graph"]["nodes"][0].clone();
        first["inputs"][0]["arg"] = tensor("y");
        first["outputs"] = json!([tensor("x2")]);
        p["graph_module"]["graph"]["nodes"][0]["inputs"][0]["arg"] = tensor("x2");
        p["graph_module"]["graph"]["nodes"].as_array_mut().unwrap().insert(0, first);
    };
    refused(&with(cycle), "node `x2` (aten.linear.default): `y` is not defined");
    let sparse = |meta: &mut Value| meta["layout"] = json!(1);
    let mut meta = floats(&[2, 3]);
    sparse(&mut meta);
    refused(&archive(&linear(), &meta, &little(&WEIGHT)), "sparse tensors are not supported");
}

#[test]
fn unsupported_operators_and_arguments_are_named() {
    let mut program = linear();
    program["graph_module"]["graph"]["nodes"][0]["target"] = json!("torch.ops.mine.linear.default");
    let e = imported(&archive(&program, &floats(&[2, 3]), &little(&WEIGHT))).unwrap_err();
    let ImportError::Unsupported { nodes, .. } = &e else { panic!("{e}") };
    assert_eq!((nodes.len(), nodes[0].operator.as_str(), nodes[0].node.as_str()), (1, "mine.linear.default", "y"));
    assert!(e.to_string().contains("; docs/pytorch.md lists the "), "{e}");
    let mut program = linear();
    let more = json!({ "name": "turbo", "arg": { "as_bool": true } });
    program["graph_module"]["graph"]["nodes"][0]["inputs"].as_array_mut().unwrap().push(more);
    refused(&archive(&program, &floats(&[2, 3]), &little(&WEIGHT)), "its argument `turbo` is not supported");
}

/// A program that changes `x` in place through a view, and returns it and another view of it.
#[test]
fn changes_in_place_reach_what_is_viewed_and_other_views() {
    let select = |name: &str, index: i64| {
        json!({
            "target": "torch.ops.aten.select.int",
            "inputs": [
                { "name": "self", "arg": tensor("copy") },
                { "name": "dim", "arg": { "as_int": 1 } },
                { "name": "index", "arg": { "as_int": index } },
            ],
            "outputs": [tensor(name)],
        })
    };
    let node = |target: &str, inputs: Value, output: &str| json!({ "target": target, "inputs": inputs, "outputs": [tensor(output)] });
    let clone = node("torch.ops.aten.clone.default", json!([{ "name": "self", "arg": tensor("x") }]), "copy");
    let flat = node(
        "torch.ops.aten.view.default",
        json!([{ "name": "self", "arg": tensor("copy") }, { "name": "size", "arg": { "as_ints": [3] } }]),
        "flat",
    );
    let add = node(
        "torch.ops.aten.add_.Tensor",
        json!([{ "name": "self", "arg": tensor("part") }, { "name": "other", "arg": { "as_int": 7 } }]),
        "added",
    );
    let mut program = linear();
    let graph = &mut program["graph_module"]["graph"];
    graph["nodes"] = json!([clone, flat, select("part", 1), add, select("after", 1)]);
    graph["outputs"] = json!([tensor("flat"), tensor("after"), tensor("copy")]);
    for (name, sizes) in [("copy", &[1, 3][..]), ("flat", &[3]), ("part", &[1]), ("added", &[1]), ("after", &[1])] {
        graph["tensor_values"][name] = floats(sizes);
    }
    let outputs = ["flat", "after", "copy"].map(|name| json!({ "user_output": { "arg": tensor(name) } }));
    program["graph_module"]["signature"]["output_specs"] = json!(outputs);
    let graph = imported(&archive(&program, &floats(&[2, 3]), &little(&WEIGHT))).unwrap_or_else(|e| panic!("{e}"));
    let x = Tensor::new(&[1, 3], vec![1f32, 10.0, 100.0]).unwrap();
    let found = eval(&graph, &[x]).unwrap();
    let lists: Vec<&[f32]> = found.iter().map(|t| t.as_slice::<f32>().unwrap()).collect();
    assert_eq!(lists, [&[1.0, 17.0, 100.0][..], &[17.0], &[1.0, 17.0, 100.0]]);
}

#[test]
fn a_tensor_that_is_transposed_in_place_is_a_view_of_itself() {
    let node = |target: &str, operand: &str, more: Value, output: &str| {
        let mut inputs = vec![json!({ "name": "self", "arg": tensor(operand) })];
        inputs.extend(more.as_array().unwrap().clone());
        json!({ "target": format!("torch.ops.aten.{target}"), "inputs": inputs, "outputs": [tensor(output)] })
    };
    let int = |name: &str, x: i64| json!({ "name": name, "arg": { "as_int": x } });
    let nodes = [
        node("clone.default", "x", json!([]), "y"),
        node("view.default", "y", json!([{ "name": "size", "arg": { "as_ints": [3, 1] } }]), "z"),
        node("transpose_.default", "z", json!([int("dim0", 0), int("dim1", 1)]), "turned"),
        node("mul_.Tensor", "z", json!([int("other", 2)]), "twice"),
    ];
    let mut program = linear();
    let graph = &mut program["graph_module"]["graph"];
    graph["nodes"] = json!(nodes);
    graph["outputs"] = json!([tensor("y"), tensor("turned")]);
    for (name, sizes) in [("y", [1, 3]), ("z", [3, 1]), ("turned", [1, 3]), ("twice", [1, 3])] {
        graph["tensor_values"][name] = floats(&sizes);
    }
    let outputs = ["y", "turned"].map(|name| json!({ "user_output": { "arg": tensor(name) } }));
    program["graph_module"]["signature"]["output_specs"] = json!(outputs);
    let graph = imported(&archive(&program, &floats(&[2, 3]), &little(&WEIGHT))).unwrap_or_else(|e| panic!("{e}"));
    let x = Tensor::new(&[1, 3], vec![1f32, 10.0, 100.0]).unwrap();
    for found in eval(&graph, &[x]).unwrap() {
        assert_eq!((found.shape(), found.as_slice::<f32>().unwrap()), (&[1, 3][..], &[2.0, 20.0, 200.0][..]));
    }
}

#[test]
fn nodes_that_no_one_uses_are_left_out() {
    let mut program = linear();
    let dead = json!({ "target": "torch.ops.mine.other.default", "inputs": [], "outputs": [tensor("dead")] });
    program["graph_module"]["graph"]["nodes"].as_array_mut().unwrap().push(dead);
    assert_eq!(run(&archive(&program, &floats(&[2, 3]), &little(&WEIGHT))), [321.0, 654.0]);
}

#[test]
fn open_sizes_are_bound_by_symbols_and_expressions() {
    let size = |text: &str| json!({ "as_expr": { "expr_str": text } });
    let mut program = linear();
    let values = &mut program["graph_module"]["graph"]["tensor_values"];
    let twice = "Mul(Integer(2), Symbol('s3', positive=True, integer=True))";
    values["x"]["sizes"][0] = size(twice);
    values["y"]["sizes"][0] = size(twice);
    let bytes = archive(&program, &floats(&[2, 3]), &little(&WEIGHT));
    let of = |name: &str, count: usize| {
        let sizes = Sizes { symbols: [(name.to_owned(), count)].into(), ..Sizes::default() };
        pytorch::import_traced(&bytes, "model.pt2", &sizes.into())
            .map(|(graph, _)| graph.ty(graph.outputs()[0].1).to_string())
    };
    assert_eq!(of("2*s3", 6).unwrap_or_else(|e| panic!("{e}")), "f32[6,2]");
    let e = of("2*s3", 5).unwrap_err().to_string();
    assert!(e.contains("has an input x, whose size 2*s3 cannot be 5"), "{e}");
    let e = of("s9", 5).unwrap_err().to_string();
    assert!(e.contains("has no open dimension s9; it has 2*s3"), "{e}");
}
