//! Graphs are read back from their text and JSON forms, with all of their constants.

use std::path::{Path, PathBuf};

use tilewright_compiler::frontend::{Sizes, import_with};
use tilewright_compiler::graph::op::{Add, Relu};
use tilewright_compiler::graph::{DType, Graph, GraphBuilder, Tensor, TensorType};
use tilewright_hw::Form;

fn check(what: &str, graph: &Graph) {
    let text = graph.to_text();
    for again in [Graph::from_text(&text), Graph::from_json(&graph.to_json())] {
        let again = again.unwrap_or_else(|error| panic!("{what}: {error}"));
        assert_eq!(again.to_text(), text, "{what}");
        assert_eq!(again.nodes().len(), graph.nodes().len(), "{what}");
    }
}

fn models(folder: &Path, found: &mut Vec<PathBuf>) {
    for entry in std::fs::read_dir(folder).expect("the folder is there") {
        let path = entry.expect("it can be listed").path();
        match path.extension().and_then(|ending| ending.to_str()) {
            _ if path.is_dir() => models(&path, found),
            Some("onnx" | "tflite") => found.push(path),
            _ => {}
        }
    }
}

#[test]
fn committed_models_are_read_back() {
    let mut all = Vec::new();
    models(&Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models"), &mut all);
    all.sort();
    assert!(all.len() > 5, "{all:?}");
    let mut read = 0;
    // Some of the files are of operators that are refused.
    for path in &all {
        if let Ok(graph) = import_with(path, Sizes::default()) {
            check(&path.display().to_string(), &graph);
            read += 1;
        }
    }
    assert!(read > all.len() / 2, "{read} of {}", all.len());
}

/// Random numbers, the same each time.
struct Random(u64);

impl Random {
    fn below(&mut self, n: usize) -> usize {
        self.0 = self.0.wrapping_mul(6364136223846793005).wrapping_add(1442695040888963407);
        (self.0 >> 33) as usize % n
    }
}

#[test]
fn random_graphs_are_read_back() {
    for seed in 0..200 {
        let mut random = Random(seed);
        let mut b = GraphBuilder::new(["net", "a \"b\"", "ü/x:0"][random.below(3)]);
        let shape = [1 + random.below(3), 1 + random.below(9), 1 + random.below(9)];
        let len: usize = shape.iter().product();
        let mut values = vec![b.input("x", TensorType::new(DType::F32, &shape))];
        for node in 0..1 + random.below(8) {
            let a = values[random.below(values.len())];
            let made = match random.below(3) {
                0 => b.node(&format!("relu {node}"), Relu {}, &[a]).unwrap(),
                1 => {
                    let special = [0.0, -0.0, 1e-45, f32::MAX, f32::INFINITY, f32::NAN, 0.1];
                    let elements: Vec<f32> = (0..len).map(|_| special[random.below(7)]).collect();
                    b.constant(&format!("c{node}"), Tensor::new(&shape, elements).unwrap())
                }
                _ => {
                    let other = values[random.below(values.len())];
                    b.node("", Add {}, &[a, other]).unwrap()
                }
            };
            values.push(made);
        }
        b.output("y", *values.last().unwrap());
        check(&format!("seed {seed}"), &b.finish().unwrap());
    }
}

#[test]
fn changed_forms_are_refused() {
    let mut b = GraphBuilder::new("net");
    let c = b.constant("c", Tensor::vector(vec![1.5f32; 64]));
    b.output("y", c);
    let graph = b.finish().unwrap();
    let text = graph.to_text();
    let error = Graph::from_text(&text.replace("# blob", "#")).unwrap_err().to_string();
    assert!(error.starts_with("this is no graph: "), "{error}");
    assert!(Graph::from_text(&text.replace("0000c03f", "0000c03x")).unwrap_err().to_string().contains("hexadecimal"));
    assert!(Graph::from_json(&serde_json::json!({ "text": text })).unwrap_err().to_string().contains("constants"));
}
