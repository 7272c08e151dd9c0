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
fn text_errors_are_all_reported_with_their_place() {
    let text = "graph \"g\" {\n  %0 = input \"x\" : f32[2]\n  %1 = relux \"r\"(%0) : f32[2]\n  %2 = relu \"r\"(%7) : f32[2]\n  \
                %3 = clip \"c\"(%0) {lo = 1.0} : f32[2]\n  output \"y\" = %0 extra\n}\n";
    let errors = text::parse(text, &text::Blobs::new()).unwrap_err();
    let errors: Vec<String> = errors.list().iter().map(|e| e.to_string()).collect();
    assert_eq!(errors.len(), 4, "{errors:#?}");
    assert!(errors[0].starts_with("line 3, column 8: unknown operator `relux`"), "{errors:#?}");
    assert_eq!(errors[1], "line 4, column 17: value %7 is not defined");
    assert_eq!(errors[2], "line 5, column 8: attribute `hi` is missing: a number");
    assert!(errors[3].starts_with("line 6, column 19: expected the end of the line"), "{errors:#?}");
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
    let blob = text::Blobs::from([(blobs.keys().next().unwrap().clone(), vec![0; 5])]);
    let e = text::parse(&text, &blob).unwrap_err().to_string();
    assert!(e.contains("does not fit i8[8,3,2,4]"), "{e}");
}

#[test]
fn the_verifier_reports_every_error() {
    let text = "graph \"g\" {\n  %0 = input \"x\" : f32[2]\n  %1 = input \"x\" : f32[3]\n  %2 = add \"a\"(%0, %1) : f32[2]\n  \
                %3 = relu \"b\"(%0) : f32[7]\n}\n";
    let errors = text::parse(text, &text::Blobs::new()).unwrap_err();
    let errors: Vec<String> = errors.list().iter().map(|e| e.to_string()).collect();
    assert_eq!(
        errors,
        [
            "two inputs have the name `x`",
            "the graph has no output",
            "node `a` (add): operand `b` must be of a shape that broadcasts against f32[2], found f32[3]",
            "node `b` (relu): its type is f32[2], but it is declared as f32[7]",
        ]
    );
}

#[test]
fn outputs_of_one_name_are_one_value() {
    let listed = |second: &str| {
        let text = format!(
            "graph \"g\" {{\n  %0 = input \"x\" : f32[2]\n  %1 = relu \"a\"(%0) : f32[2]\n  output \"y\" = %1\n  output \"y\" = \
             {second}\n}}\n"
        );
        text::parse(&text, &text::Blobs::new()).map_err(|e| e.to_string())
    };
    let graph = listed("%1").unwrap();
    let y = eval(&graph, &[Tensor::vector(vec![-1f32, 2.0])]).unwrap();
    assert_eq!(y, [Tensor::vector(vec![0f32, 2.0]), Tensor::vector(vec![0f32, 2.0])]);
    assert!(listed("%0").unwrap_err().contains("two different values are outputs named `y`"));
}

#[test]
fn tensors_have_up_to_32_dimensions() {
    let relu = |rank: usize| {
        let ty = format!("f32[{}]", vec!["1"; rank].join(","));
        let text = format!(
            "graph \"g\" {{\n  %0 = input \"x\" : {ty}\n  %1 = relu \"y\"(%0) : {ty}\n  output \"y\" = %1\n}}\n"
        );
        text::parse(&text, &text::Blobs::new())
            .map_err(|e| e.list().iter().map(ToString::to_string).collect::<Vec<_>>())
    };
    assert!(relu(32).is_ok());
    let why = "33 dimensions are not supported; the maximum is 32";
    assert_eq!(relu(33).unwrap_err(), [format!("input `x`: {why}"), format!("node `y` (relu): {why}")]);
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
fn operators_refuse_what_they_cannot_take() {
    let check = |op: Op, inputs: &[TensorType], message: &str| {
        let e = op.infer(&inputs.iter().collect::<Vec<_>>()).unwrap_err().to_string();
        assert!(e.contains(message), "{e}");
    };
    let f = |s: &[usize]| TensorType::new(DType::F32, s);
    let i = |s: &[usize]| TensorType::new(DType::I8, s);
    check(conv().into(), &[i(&[1, 9, 7, 4])], "needs 2 to 3 operands, found 1");
    check(conv().into(), &[i(&[1, 9, 7, 4]), i(&[8, 3, 2, 5])], "`weight` must be of 4 input channels");
    check(conv().into(), &[i(&[1, 1, 1, 4]), i(&[8, 9, 2, 4])], "`kernel` covers 9 elements of height, but");
    let stuck = Conv2d { strides: [0, 1], ..conv() };
    check(stuck.into(), &[i(&[1, 9, 7, 4]), i(&[8, 3, 2, 4])], "`strides` must be positive");
    check(Reshape { shape: vec![-1, 5] }.into(), &[f(&[2, 3])], "[-1, 5] does not fit f32[2,3]");
    check(Transpose { perm: vec![0, 0] }.into(), &[f(&[2, 3])], "permutation");
    check(Softmax::float(2, 1.0).into(), &[f(&[2, 3])], "`axis` must be below 2");
    check(Clip { lo: 0.0, hi: 6.5 }.into(), &[i(&[2])], "8-bit integers");
    check(Dense { data_zero_point: 0, weight_zero_point: 0 }.into(), &[f(&[2, 3]), f(&[5, 4])], "of 4 columns");
    let q = Quantize {
        scale: vec![1.0, 0.0],
        zero_point: vec![0, 0],
        axis: 0,
        rounding: QuantRounding::HalfEven,
        dtype: DType::I8,
    };
    check(q.into(), &[f(&[2])], "`scale` must be positive and finite");
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

#[test]
fn a_dimension_left_open_is_carried_through_a_reshape() {
    let x = TensorType { dtype: DType::F32, dims: vec![Dim::Symbol("N".into()), 4.into(), 6.into()] };
    let shape = |s: &[i64]| Op::from(Reshape { shape: s.to_vec() }).infer(&[&x]).map(|t| t[0].to_string());
    assert_eq!(shape(&[-1, 24]).unwrap(), "f32[N,24]");
    assert_eq!(shape(&[0, -1]).unwrap(), "f32[N,24]");
    assert!(shape(&[-1, 23]).is_err());
    assert!(shape(&[24]).is_err());
}

/// Quadratic search for a free name would make this take minutes.
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
