//! The engine. `tests/files/passes` has what each pass does.

use super::*;

/// A float network with something to do for every simplifying pass.
fn messy() -> Graph {
    let mut b = GraphBuilder::new("messy");
    let x = b.input("x", TensorType::new(DType::F32, &[2, 3, 6, 6]));
    let mut f = noise(5);
    let mut float = |b: &mut GraphBuilder, name: &str, shape: &[usize]| {
        let t = Tensor::from_fn(shape, |i| f32::from(f(i)) / 64.0);
        b.constant(name, t)
    };
    let w = float(&mut b, "w", &[4, 3, 3, 3]);
    let bias = float(&mut b, "bias", &[4, 1, 1]);
    let half = float(&mut b, "half", &[1]);
    let unused = b.node("unused", Relu {}, &[x]).unwrap();
    b.node("unused2", Relu {}, &[unused]).unwrap();
    let pad = Pad { before: vec![0, 0, 1, 0], after: vec![0, 0, 1, 2], value: 0.0 };
    let v = b.node("pad", pad, &[x]).unwrap();
    let conv = Conv2d {
        strides: [2, 1],
        pads: [0, 1, 1, 0],
        dilations: [1, 1],
        groups: 1,
        layout: Layout::Nchw,
        data_zero_point: 0,
        weight_zero_point: 0,
    };
    let v = b.node("conv", conv, &[v, w]).unwrap();
    let v = b.node("add", Add {}, &[v, bias]).unwrap();
    let v = b.node("relu", Relu {}, &[v]).unwrap();
    let v = b.node("clip", Clip { lo: -1.0, hi: 2.5 }, &[v]).unwrap();
    let v = b.node("open", Clip { lo: f32::NEG_INFINITY, hi: f32::INFINITY }, &[v]).unwrap();
    let v = b.node("t1", Transpose { perm: vec![0, 2, 3, 1] }, &[v]).unwrap();
    let v = b.node("t2", Transpose { perm: vec![0, 3, 1, 2] }, &[v]).unwrap();
    let v = b.node("pool", GlobalAvgPool { layout: Layout::Nchw, lo: -128, hi: 127 }, &[v]).unwrap();
    let v = b.node("t3", Transpose { perm: vec![0, 2, 3, 1] }, &[v]).unwrap();
    let v = b.node("r1", Reshape { shape: vec![0, -1] }, &[v]).unwrap();
    let v = b.node("r2", Reshape { shape: vec![2, 2, 2] }, &[v]).unwrap();
    let sum = b.node("known", Add {}, &[half, half]).unwrap();
    let v = b.node("scaled", Add {}, &[v, sum]).unwrap();
    b.output("y", v);
    b.finish().unwrap()
}

fn input() -> Tensor {
    let mut f = noise(9);
    Tensor::from_fn(&[2, 3, 6, 6], |i| f32::from(f(i)) / 32.0)
}

fn ops(g: &Graph) -> Vec<&'static str> {
    g.nodes().map(|(_, n)| n.op.name()).filter(|&n| n != "constant").collect()
}

#[test]
fn the_engine_stops_counts_and_dumps() {
    let g = messy();
    let mut dumped = Vec::new();
    let mut dump = |pass: &'static str, g: &Graph| dumped.push((pass, g.nodes().len()));
    let options = Options { dump: Some(&mut dump), ..Options::default() };
    let (_, report) = optimize(g.clone(), OptLevel::O2, options).unwrap();
    assert_eq!(dumped.len(), pipelines::passes(OptLevel::O2).len());
    assert_eq!(dumped[0].0, "dead_code");
    // Removing the second unused node also removes the first.
    assert_eq!(report.count("dead_code"), 1);
    assert_eq!(report.count("fold_bias"), 1);
    assert_eq!(report.count("fold_pad"), 1);
    let expected = eval(&g, &[input()]).unwrap();
    for n in 0..=report.applied.len() {
        let (h, r) = optimize(g.clone(), OptLevel::O2, Options { stop_after: Some(n), ..Options::default() }).unwrap();
        assert_eq!(r.applied, report.applied[..n]);
        let found = eval(&h, &[input()]).unwrap();
        let (a, b) = (expected[0].as_slice::<f32>().unwrap(), found[0].as_slice::<f32>().unwrap());
        assert!(a.iter().zip(b).all(|(x, y)| (x - y).abs() < 1e-5), "after patch {n}");
    }
}

#[test]
fn every_patch_leaves_a_sound_graph() {
    let mut seen = 0;
    let mut watch = |change: Change| {
        seen += 1;
        assert!(crate::graph::verify(change.after).is_empty(), "patch {}\n{}", change.number, change.after);
        assert_eq!(change.places.len(), change.before.value_count());
        for (v, place) in change.places.iter().enumerate() {
            let ty = change.before.ty(ValueId(v));
            assert!(place.is_none_or(|place| change.after.ty(place) == ty), "patch {}", change.number);
        }
        assert!(change.replaced.iter().all(|v| change.places[v.0].is_some()), "patch {}", change.number);
    };
    let (_, report) =
        optimize(messy(), OptLevel::O2, Options { watch: Some(&mut watch), ..Options::default() }).unwrap();
    assert_eq!(seen, report.applied.len());
}

/// This would take hours if each patch looked at the whole graph.
#[test]
fn a_long_chain_is_simplified() {
    const NODES: usize = 50_000;
    let mut b = GraphBuilder::new("chain");
    let mut v = b.input("x", TensorType::new(DType::F32, &[4]));
    for i in 0..NODES {
        v = b.node(&format!("relu{i}"), Relu {}, &[v]).unwrap();
    }
    b.output("y", v);
    let (g, report) = optimize(b.finish().unwrap(), OptLevel::O2, Options::default()).unwrap();
    assert_eq!(ops(&g), ["clip"]);
    assert_eq!(report.count("canonicalize"), 2 * NODES - 1);
}

#[test]
fn of_nodes_with_one_name_the_first_keeps_it() {
    #[derive(Debug)]
    struct Named;
    impl Pass for Named {
        fn name(&self) -> &'static str {
            "named"
        }
        fn rewrite(&self, view: &View, at: crate::graph::NodeId) -> Option<Patch> {
            let node = view.graph.node(at);
            let crate::graph::Op::Relu(_) = node.op else { return None };
            let mut p = Patch::new("named");
            let first = p.node("b", Clip { lo: 0.0, hi: 9.0 }, &[node.inputs[0].into()]);
            let second = p.node("b", Clip { lo: 0.0, hi: 8.0 }, &[first]);
            Some(p.replace(node.output(), second))
        }
    }
    let mut b = GraphBuilder::new("g");
    let mut v = b.input("x", TensorType::new(DType::F32, &[4]));
    for name in ["b.1", "a", "b", "b.2"] {
        let clip = Clip { lo: 0.0, hi: 7.0 };
        v = if name == "a" { b.node(name, Relu {}, &[v]) } else { b.node(name, clip, &[v]) }.unwrap();
    }
    b.output("y", v);
    let (g, _) = run(b.finish().unwrap(), &boxed(Named), Options::default()).unwrap();
    let names: Vec<&str> = g.nodes().map(|(_, n)| n.name.as_str()).collect();
    // The old `b` comes after the new ones, and the second of those takes the name of the last node.
    assert_eq!(names, ["b.1", "b", "b.2", "b.3", "b.2.1"]);
}

#[test]
fn a_wrong_patch_is_named() {
    #[derive(Debug)]
    struct Wrong;
    impl Pass for Wrong {
        fn name(&self) -> &'static str {
            "wrong"
        }
        fn rewrite(&self, view: &View, at: crate::graph::NodeId) -> Option<Patch> {
            let node = view.graph.node(at);
            let pool = matches!(node.op, crate::graph::Op::GlobalAvgPool(_));
            pool.then(|| Patch::new("pool away").replace(node.output(), node.inputs[0]))
        }
    }
    let e = run(messy(), &boxed(Wrong), Options::default()).unwrap_err().to_string();
    assert!(
        e.starts_with("pass `wrong`, patch 1 (pool away at `pool`): `pool` of type f32[2,4,1,1] is replaced by"),
        "{e}"
    );
    #[derive(Debug)]
    struct Endless;
    impl Pass for Endless {
        fn name(&self) -> &'static str {
            "endless"
        }
        fn rewrite(&self, view: &View, at: crate::graph::NodeId) -> Option<Patch> {
            let node = view.graph.node(at);
            let mut p = Patch::new("again");
            let inputs: Vec<Ref> = node.inputs.iter().map(|&v| v.into()).collect();
            let n = p.node(&node.name, node.op.clone(), &inputs);
            Some(p.replace(node.output(), n))
        }
    }
    let e = run(messy(), &boxed(Endless), Options::default()).unwrap_err().to_string();
    assert!(e.contains("did not terminate after"), "{e}");
}
