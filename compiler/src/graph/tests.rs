use super::op::*;
use super::*;
use tilewright_hw::num::Rounding;

fn conv() -> Conv2d {
    Conv2d {
        strides: [2, 1],
        pads: [1, 0, 1, 2],
        dilations: [1, 2],
        groups: 1,
        layout: Layout::Nhwc,
        data_zero_point: -3,
        weight_zero_point: 5,
    }
}

/// A small integer network with a large and several small constants.
fn sample() -> Graph {
    let mut b = GraphBuilder::new("a \"quoted\" name");
    let w = b.constant("w", Tensor::from_fn(&[8, 3, 2, 4], |i| (i * 37 % 251) as i8));
    // An input added after a constant: `finish` puts inputs first.
    let x = b
        .input("x", TensorType { dtype: DType::I8, dims: vec![Dim::Symbol("N".into()), 9.into(), 7.into(), 4.into()] });
    let acc = b.node("conv", conv(), &[x, w]).unwrap();
    let vector = |b: &mut GraphBuilder, n: &str, v: i32| b.constant(n, Tensor::vector(vec![v; 8]));
    let (bias, m, s) = (vector(&mut b, "bias", 7), vector(&mut b, "m", 1 << 30), vector(&mut b, "s", -7));
    let r = Requantize { axis: 3, zero_point: 4, lo: -100, hi: 100, mode: Rounding::Double };
    let y = b.node("conv", r, &[acc, bias, m, s]).unwrap();
    b.output("y", y);
    b.finish().unwrap()
}

#[test]
fn text_reads_back_to_the_same_graph() {
    let g = sample();
    let (text, blobs) = text::print_with_blobs(&g);
    assert_eq!(blobs.len(), 1);
    assert_eq!(text::parse(&text, &blobs).unwrap(), g, "{text}");
    assert!(text.contains("requantize \"conv.1\"(%2, %3, %4, %5) {axis = 3, zero_point = 4, "), "{text}");
}

#[test]
fn text_that_is_cut_or_wrong_gives_errors_and_no_panic() {
    let (text, blobs) = text::print_with_blobs(&sample());
    for end in (0..text.len() - 3).filter(|&i| text.is_char_boundary(i)) {
        assert!(text::parse(&text[..end], &blobs).is_err(), "{}", &text[..end]);
    }
    for i in 0..text.len() {
        for with in ["", "%", "\"", "-", "9", "\u{e9}", "["] {
            let mutated = format!("{}{with}{}", &text[..i], &text[i + 1..]);
            let _ = text::parse(&mutated, &blobs);
        }
    }
}

#[test]
fn outputs_of_one_name_have_one_result() {
    let text = "graph \"g\" {\n  %0 = input \"x\" : f32[2]\n  %1 = relu \"a\"(%0) : f32[2]\n  output \"y\" = %1\n  output \"y\" = \
                %1\n}\n";
    let graph = text::parse(text, &text::Blobs::new()).unwrap();
    let y = eval(&graph, &[Tensor::vector(vec![-1f32, 2.0])]).unwrap();
    assert_eq!(y, [Tensor::vector(vec![0f32, 2.0]), Tensor::vector(vec![0f32, 2.0])]);
}

/// What text and builder cannot express; `tests/files/graph` has the other errors.
#[test]
fn the_verifier_finds_values_out_of_place() {
    let ty = TensorType::new(DType::F32, &[2]);
    let relu = |inputs: usize, outputs: usize| Node {
        name: "relu".into(),
        op: op::Relu {}.into(),
        inputs: vec![ValueId(inputs)],
        outputs: vec![ValueId(outputs)],
    };
    let check = |nodes: Vec<Node>, output: usize, expected: &[&str]| {
        let def = |i: usize| if i == 0 { Def::Input(0) } else { Def::Node(NodeId(i - 1), 0) };
        let values = (0..=nodes.len()).map(|i| Value { ty: ty.clone(), def: def(i) }).collect();
        let outputs = vec![("y".to_owned(), ValueId(output))];
        let g = Graph::of_parts("g".into(), vec!["x".into()], values, nodes, outputs);
        let errors: Vec<String> = verify(&g).iter().map(|e| e.to_string()).collect();
        assert_eq!(errors, expected);
    };
    check(vec![relu(1, 1)], 1, &["node `relu`: operand 0 is not defined before its use"]);
    check(vec![relu(0, 0)], 0, &["node `relu`: output 0 is not a value that the node defines"]);
    check(vec![relu(0, 1)], 2, &["output `y` names a value that is not defined"]);
    check(vec![relu(0, 1), relu(1, 2)], 2, &["two nodes have the name `relu`"]);
}

#[test]
fn evaluation_checks_its_inputs() {
    let g = sample();
    let e = eval(&g, &[Tensor::vector(vec![1i8])]).unwrap_err().to_string();
    assert_eq!(e, "input `x` must be i8[N,9,7,4], found i8[1]");
    assert!(eval(&g, &[]).unwrap_err().to_string().contains("0 inputs given, but the graph has 1: x"));
    let y = eval(&g, &[Tensor::from_fn(&[2, 9, 7, 4], |i| (i * 91 % 256) as u8 as i8)]).unwrap();
    assert_eq!(y[0].shape(), [2, 5, 7, 8]);
    let bound = g.bind(&[("N".to_owned(), 2)].into()).unwrap();
    assert_eq!(bound.ty(bound.outputs()[0].1).to_string(), "i8[2,5,7,8]");
}

#[test]
fn convolution_equals_its_definition() {
    let op = conv();
    let x = Tensor::from_fn(&[1, 9, 7, 4], |i| (i * 91 % 256) as u8 as i8);
    let w = Tensor::from_fn(&[8, 3, 2, 4], |i| (i * 37 % 251) as u8 as i8);
    let y = &Op::from(op.clone()).eval(&[&x, &w]).unwrap()[0];
    assert_eq!(y.shape(), [1, 5, 7, 8]);
    let place = |o: usize, k: usize, s: usize, d: usize, p: usize| (o * s + k * d) as isize - p as isize;
    for (oh, ow, oc) in (0..5).flat_map(|h| (0..7).flat_map(move |w| (0..8).map(move |c| (h, w, c)))) {
        let mut sum = 0;
        for (kh, kw, c) in (0..3).flat_map(|h| (0..2).flat_map(move |w| (0..4).map(move |c| (h, w, c)))) {
            let (h, v) = (place(oh, kh, 2, 1, 1), place(ow, kw, 1, 2, 0));
            if (0..9).contains(&h) && (0..7).contains(&v) {
                let x = x.at::<i8>(&[0, h as usize, v as usize, c]).unwrap();
                sum += (i32::from(x) + 3) * (i32::from(w.at::<i8>(&[oc, kh, kw, c]).unwrap()) - 5);
            }
        }
        assert_eq!(y.at::<i32>(&[0, oh, ow, oc]), Some(sum));
    }
    // The same in the other layout.
    let nchw = Op::from(Conv2d { layout: Layout::Nchw, ..op });
    let other = &nchw.eval(&[&x.transposed(&[0, 3, 1, 2]).unwrap(), &w]).unwrap()[0];
    assert_eq!(other.transposed(&[0, 2, 3, 1]).unwrap(), *y);
}

#[test]
fn averages_divide_with_ties_away_from_zero() {
    let op = AvgPool2d {
        kernel: [2, 2],
        strides: [1, 1],
        pads: [0, 0, 1, 1],
        count_include_pad: false,
        layout: Layout::Nhwc,
        lo: -128,
        hi: 127,
        unsigned: false,
    };
    let x = Tensor::new(&[1, 2, 2, 1], vec![-3i8, -4, -1, -2]).unwrap();
    let y = &Op::from(op.clone()).eval(&[&x]).unwrap()[0];
    // -10/4 = -2.5, -6/2, -3/2 = -1.5, -2/1
    assert_eq!(y.as_slice::<i8>().unwrap(), [-3, -3, -2, -2]);
    // Of 125, 124, 127 and 126: 125.5 and 126.5 go up.
    let op = AvgPool2d { unsigned: true, ..op };
    let y = &Op::from(op).eval(&[&x]).unwrap()[0];
    assert_eq!(y.as_slice::<i8>().unwrap(), [-2, -3, -1, -2]);
}

/// A try for each name that is taken would make this a matter of minutes.
#[test]
fn many_nodes_of_one_name_get_numbers() {
    let mut b = GraphBuilder::new("net");
    let mut v = b.input("x", TensorType::new(DType::F32, &[1]));
    b.node("n.2", Relu {}, &[v]).unwrap();
    for _ in 0..100_000 {
        v = b.node("n", Relu {}, &[v]).unwrap();
    }
    b.output("y", v);
    let graph = b.finish().unwrap();
    let names: Vec<&str> = graph.nodes().skip(1).map(|(_, n)| n.name.as_str()).collect();
    assert_eq!(names[..4], ["n", "n.1", "n.3", "n.4"]);
    assert_eq!(names[99_999], "n.100000");
}

/// Inputs can be added after nodes; the graph has them first.
#[test]
fn a_builder_tells_what_became_of_its_values() {
    let mut b = GraphBuilder::new("g");
    let a = b.input("a", TensorType::new(DType::F32, &[2]));
    let r = b.node("r", Relu {}, &[a]).unwrap();
    let c = b.input("c", TensorType::new(DType::F32, &[2]));
    let s = b.node("s", Add {}, &[r, c]).unwrap();
    b.output("y", s);
    let (graph, places) = b.finish_numbered().unwrap();
    let names = [a, r, c, s].map(|v| graph.value_name(places.of(v)).to_string());
    assert_eq!(names, ["a", "r", "c", "s"]);
    assert_ne!(places.of(c), c);
}
