use super::*;
use tilewright_compiler::graph::Op;

/// Multiplications of a float network's products.
fn macs(graph: &Graph) -> u64 {
    let size = |v| graph.ty(v).shape().unwrap_or_default();
    let of = |node: &tilewright_compiler::graph::Node| {
        let results: usize = size(node.output()).iter().product();
        let depth: usize = match &node.op {
            Op::Conv2d(_) => size(node.inputs[1])[1..].iter().product(),
            Op::Dense(_) => size(node.inputs[1])[1],
            Op::MatMul(_) => size(node.inputs[0]).last().copied().unwrap_or(0),
            _ => 0,
        };
        (results * depth) as u64
    };
    graph.nodes().map(|(_, node)| of(node)).sum()
}

#[test]
fn networks_have_the_multiplications_that_their_papers_name() {
    // In millions, fully connected layers included.
    let known = [
        ("resnet18", 1814),
        ("resnet34", 3664),
        ("resnet50", 4089),
        ("mobilenet-v1", 569),
        ("mobilenet-v2", 301),
        ("deit-tiny", 1254),
        ("bert-tiny", 59),
    ];
    for (name, millions) in known {
        let found = macs(&float(name).unwrap());
        assert_eq!((found + 500_000) / 1_000_000, millions, "{name}");
    }
    let sum: u64 = LAYERS.iter().map(|l| l.times * l.macs()).sum();
    assert_eq!(sum / 256, 6_623_232);
    for l in LAYERS {
        assert_eq!(macs(&float(l.name).unwrap()), l.macs(), "{}", l.name);
    }
}

#[test]
fn a_quantized_layer_neither_saturates_nor_vanishes() {
    use tilewright_compiler::quantize::Engine;
    let graph = quantized("resnet18-c10-add").unwrap();
    let inputs = input(&graph);
    let values = Compiled::new(&HwConfig::default()).open(&graph).unwrap().run(&inputs).unwrap();
    let result = values[0].as_slice::<f32>().unwrap();
    let greatest = result.iter().fold(0f32, |a, &b| a.max(b));
    let at_end = result.iter().filter(|&&v| v == greatest).count();
    let there = result.iter().filter(|&&v| v > greatest / 16.0).count();
    assert!(at_end * 1000 < result.len(), "{at_end} of {} are the greatest", result.len());
    assert!(there * 3 > result.len(), "{there} of {}", result.len());
    assert_eq!(onnx("resnet18-c10", false).unwrap(), onnx("resnet18-c10", false).unwrap());
}

#[test]
fn a_batch_has_the_same_weights_and_more_products() {
    let [one, four] = ["mobilenet-v2", "mobilenet-v2-batch4"].map(|name| float(name).unwrap());
    assert_eq!(macs(&four), 4 * macs(&one));
    let weights = |graph: &Graph| -> Vec<_> {
        graph.nodes().filter(|(_, node)| matches!(node.op, Op::Constant(_))).map(|(_, node)| node.op.clone()).collect()
    };
    assert!(weights(&one) == weights(&four));
    assert_eq!(four.ty(four.outputs()[0].1).shape(), Some(vec![4, 1000]));
    for wrong in ["vgg16-batch0", "vgg16-batch65", "vgg16-batch", "deit-tiny-batch4", "resnet18-c2-batch4"] {
        assert!(matches!(float(wrong), Err(ShapeError::Unknown { .. })), "{wrong}");
    }
}

#[test]
fn an_unknown_name_is_told_the_known_ones() {
    let error = float("alexnet").unwrap_err().to_string();
    assert!(error.starts_with("there is no network shape named alexnet; use one of resnet18, "), "{error}");
}
