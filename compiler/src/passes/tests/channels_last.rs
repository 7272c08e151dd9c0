use super::*;
use crate::passes::pipelines;
use tilewright_runtime::tensor::near;

/// Products, poolings and operators between them, on channels-first images.
fn images() -> Graph {
    let mut b = GraphBuilder::new("images");
    let x = b.input("x", TensorType::new(DType::F32, &[2, 3, 9, 8]));
    let mut f = noise(21);
    let mut float = |b: &mut GraphBuilder, name: &str, shape: &[usize]| {
        b.constant(name, Tensor::from_fn(shape, |i| f32::from(f(i)) / 64.0))
    };
    let conv = |strides: [usize; 2], pads: [usize; 4], groups: usize| Conv2d {
        strides,
        pads,
        dilations: [1, 1],
        groups,
        layout: Layout::Nchw,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let (w1, b1) = (float(&mut b, "w1", &[8, 3, 3, 3]), float(&mut b, "b1", &[8]));
    let w2 = float(&mut b, "w2", &[8, 3, 3, 1]);
    let w3 = float(&mut b, "w3", &[8, 1, 1, 8]);
    let scale = float(&mut b, "scale", &[8, 1, 1]);
    let row = float(&mut b, "row", &[4]);
    let a = b.node("first", conv([2, 2], [1, 1, 1, 1], 1), &[x, w1, b1]).unwrap();
    let a = b.node("relu", Relu {}, &[a]).unwrap();
    let c = b.node("depthwise", conv([1, 1], [1, 1, 1, 1], 8), &[a, w2]).unwrap();
    let c = b.node("scaled", Binary { kind: BinaryKind::Mul }, &[c, scale]).unwrap();
    let c = b.node("by_column", Add {}, &[c, row]).unwrap();
    let d = b.node("point", conv([1, 1], [0; 4], 1), &[c, w3]).unwrap();
    let sum = b.node("sum", Add {}, &[d, a]).unwrap();
    let both = b.node("both", Concat { axis: 1 }, &[sum, a]).unwrap();
    let part = Slice { starts: vec![0, 2, 1, 0], sizes: vec![2, 9, 4, 4], steps: vec![1, 1, 1, 1] };
    let both = b.node("part", part, &[both]).unwrap();
    let pad = Pad { before: vec![0, 0, 1, 0], after: vec![0, 0, 0, 2], value: 0.5 };
    let both = b.node("border", pad, &[both]).unwrap();
    let pool =
        MaxPool2d { kernel: [2, 3], strides: [1, 1], pads: [0, 1, 1, 0], dilations: [1, 1], layout: Layout::Nchw };
    let both = b.node("pool", pool, &[both]).unwrap();
    let squeeze = Reduce { kind: ReduceKind::Mean, axes: vec![2, 3], keep_dims: true };
    let mean = b.node("mean", squeeze, &[both]).unwrap();
    let gated = b.node("gated", Binary { kind: BinaryKind::Mul }, &[both, mean]).unwrap();
    let all = b.node("all", GlobalAvgPool { layout: Layout::Nchw, lo: -128, hi: 127 }, &[gated]).unwrap();
    let flat = b.node("flat", Reshape { shape: vec![2, 9] }, &[all]).unwrap();
    b.output("flat", flat);
    b.output("sum", sum);
    b.finish().unwrap()
}

#[test]
fn images_with_channels_last_give_the_same_results() {
    let g = images();
    let mut f = noise(4);
    let input = Tensor::from_fn(&[2, 3, 9, 8], |i| f32::from(f(i)) / 32.0);
    let before = eval(&g, std::slice::from_ref(&input)).unwrap();
    let (after, report) = run(g, &pipelines::cpu_passes(OptLevel::O2), Options::default()).unwrap();
    for (a, b) in before.iter().zip(&eval(&after, &[input]).unwrap()) {
        let (a, b) = (a.as_slice::<f32>().unwrap(), b.as_slice::<f32>().unwrap());
        assert_eq!(a.len(), b.len());
        for (x, y) in a.iter().zip(b) {
            assert!(near(f64::from(*y), f64::from(*x), 1e-4), "{x} became {y}");
        }
    }
    assert!(report.count("channels_last") > 10);
    // Only the input image and the output that is an image are transposed.
    let turned: Vec<&str> =
        after.nodes().filter(|(_, n)| matches!(n.op, Op::Transpose(_))).map(|(_, n)| n.name.as_str()).collect();
    assert_eq!(turned.len(), 2, "{turned:?}");
}
