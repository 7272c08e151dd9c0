//! Quantizes small networks from start to end, run by the reference evaluator.

use super::*;
use crate::frontend::{Sizes, onnx};
use crate::graph::op::*;
use crate::graph::{DType, GraphBuilder, Op, TensorType, eval};
use crate::passes::{OptLevel, optimize};
use crate::suite::Numbers;

fn conv(groups: usize, pad: usize, layout: Layout) -> Conv2d {
    let (strides, dilations) = ([1, 1], [1, 1]);
    Conv2d { strides, pads: [pad; 4], dilations, groups, layout, data_zero_point: 0, weight_zero_point: 0 }
}

fn f32s(shape: &[usize]) -> TensorType {
    TensorType::new(DType::F32, shape)
}

/// A network in TFLite's order: convolutions, a swish in two operators, a residual sum, pooling, a dense layer.
/// `spread` makes the channels of the first convolution's weights unequal.
fn network(spread: f32) -> Graph {
    let mut n = Numbers::new(3);
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", f32s(&[1, 8, 8, 3]));
    let mut weights = |b: &mut GraphBuilder, name: &str, shape: &[usize], factor: f32| {
        let each: usize = shape[1..].iter().product();
        let t = Tensor::from_fn(shape, |i| n.float() * 0.2 * factor.powi((i / each.max(1)) as i32));
        b.constant(name, t)
    };
    let w = weights(&mut b, "w", &[4, 3, 3, 3], spread);
    let bias = weights(&mut b, "bias", &[4], 1.0);
    let v = b.node("conv", conv(1, 1, Layout::Nhwc), &[x, w, bias]).unwrap();
    let relu = b.node("relu", Relu {}, &[v]).unwrap();
    let w = weights(&mut b, "w2", &[4, 1, 1, 4], 1.0);
    let v = b.node("conv2", conv(1, 0, Layout::Nhwc), &[relu, w]).unwrap();
    let s = b.node("sigmoid", Unary::new(UnaryKind::Sigmoid), &[v]).unwrap();
    let v = b.node("swish", Binary { kind: BinaryKind::Mul }, &[v, s]).unwrap();
    let v = b.node("sum", Add {}, &[relu, v]).unwrap();
    let (kernel, strides) = ([2, 2], [2, 2]);
    let pool = MaxPool2d { kernel, strides, pads: [0; 4], dilations: [1, 1], layout: Layout::Nhwc };
    let v = b.node("pool", pool, &[v]).unwrap();
    let v = b.node("flat", Reshape { shape: vec![1, 64] }, &[v]).unwrap();
    let w = weights(&mut b, "w3", &[5, 64], 1.0);
    let v = b.node("dense", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[v, w]).unwrap();
    let v = b.node("softmax", Softmax::float(1, 1.0), &[v]).unwrap();
    b.output("y", v);
    b.finish().unwrap()
}

fn samples(graph: &Graph, count: usize) -> Vec<Vec<Tensor>> {
    let mut n = Numbers::new(17);
    let sample = |_| {
        let shape = |v| graph.ty(v).shape().unwrap();
        graph.inputs().map(|(_, v)| Tensor::from_fn(&shape(v), |_| n.float())).collect()
    };
    (0..count).map(sample).collect()
}

fn options() -> Options {
    Options { method: MethodChoice::All(Method::MinMax), ..Options::default() }
}

fn quantized(graph: &Graph, options: &Options) -> Quantized {
    quantize(graph, &samples(graph, 20), options, &Reference, &mut |_, _, _| {}).unwrap()
}

#[test]
fn a_network_becomes_integer_and_stays_near() {
    let float = network(1.0);
    let graph = prepare(float.clone()).unwrap();
    for method in [Method::MinMax, Method::Percentile(99.99), Method::Mse, Method::Entropy] {
        let q = quantized(&graph, &Options { method: MethodChoice::All(method), ..options() });
        let names: Vec<&str> = q.layers.iter().map(|l| l.name.as_str()).collect();
        assert_eq!(names, ["x", "x/nchw", "relu", "conv2", "swish", "sum", "pool", "pool/nhwc", "flat", "dense"]);
        // Entropy needs more values than these samples have to find a good range.
        let least = if method == Method::Entropy { 12.0 } else { 20.0 };
        for l in &q.layers {
            assert!(l.sqnr_db > least, "{method:?}: {l:?}");
        }
        assert!(q.output_db[0] > least, "{method:?}: {:?}", q.output_db);
        assert_eq!(q.float_nodes, [("softmax".to_string(), "softmax".to_string())]);
        // After writing, reading and making it integer, only inputs, outputs and the last softmax stay float.
        let again = onnx::import(&onnx::write(&q.graph).unwrap(), "q.onnx", None, Sizes::default()).unwrap();
        let (integer, _) = optimize(again, OptLevel::O2, Default::default()).unwrap();
        let floats: Vec<&str> = integer
            .nodes()
            .filter(|(_, n)| integer.ty(n.output()).dtype == DType::F32)
            .map(|(_, n)| n.op.name())
            .collect();
        assert_eq!(floats, ["dequantize", "softmax"], "{method:?}");
        assert!(integer.nodes().any(|(_, n)| matches!(n.op, Op::Lookup(_))));
        assert!(integer.inputs().map(|(n, v)| (n, integer.ty(v))).eq(float.inputs().map(|(n, v)| (n, float.ty(v)))));
        for sample in samples(&float, 4) {
            let (a, b) = (eval(&float, &sample).unwrap(), eval(&integer, &sample).unwrap());
            let far = crate::suite::difference(&b[0], &a[0]);
            assert!(far < 0.1, "{method:?}: {far}");
        }
    }
}

#[test]
fn a_scale_for_each_channel_tells_unequal_channels_apart() {
    let graph = prepare(network(0.1)).unwrap();
    let relu = |per_channel| {
        let q = quantized(&graph, &Options { per_channel, ..options() });
        q.layers.iter().find(|l| l.name == "relu").unwrap().sqnr_db
    };
    let (channel, tensor) = (relu(true), relu(false));
    assert!(channel > tensor, "{channel} and {tensor} dB");
}

/// The inside of a layer normalization stays float; the operand of a matrix product is an integer again.
#[test]
fn what_follows_float_operators_stays_float() {
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", f32s(&[4, 8]));
    let identity = |k: f32| Tensor::from_fn(&[8, 8], move |i| if i % 9 == 0 { k } else { 0.0 });
    let w = b.constant("w", identity(0.5));
    let dense = Dense { data_zero_point: 0, weight_zero_point: 0 };
    let v = b.node("first", dense.clone(), &[x, w]).unwrap();
    let m = b.node("mean", Reduce { kind: ReduceKind::Mean, axes: vec![1], keep_dims: true }, &[v]).unwrap();
    let less = b.node("less", Binary { kind: BinaryKind::Sub }, &[v, m]).unwrap();
    let sq = b.node("square", Binary { kind: BinaryKind::Mul }, &[less, less]).unwrap();
    let v = b.node("second", dense, &[sq, w]).unwrap();
    b.output("y", v);
    let graph = prepare(b.finish().unwrap()).unwrap();
    let q = quantized(&graph, &options());
    let names: Vec<&str> = q.layers.iter().map(|l| l.name.as_str()).collect();
    assert_eq!(names, ["x", "first", "square", "second"]);
    let stay: Vec<&str> = q.float_nodes.iter().map(|(n, _)| n.as_str()).collect();
    assert_eq!(stay, ["mean", "less", "square"]);
}

/// Bias correction subtracts what rounding the weights adds to a layer's mean.
#[test]
fn bias_correction_meets_the_mean() {
    let mut n = Numbers::new(5);
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", f32s(&[1, 16, 6, 6]));
    // Most weights are below half a step, so rounding loses them.
    let w = Tensor::from_fn(&[3, 3, 3, 16], |i| if i % 144 == 0 { 1.0 } else { 0.003 + 0.0005 * n.float() });
    let w = b.constant("w", w);
    let v = b.node("conv", conv(1, 1, Layout::Nchw), &[x, w]).unwrap();
    b.output("y", v);
    let graph = b.finish().unwrap();
    let samples: Vec<Vec<Tensor>> = samples(&graph, 8)
        .into_iter()
        .map(|s| vec![Tensor::from_fn(&[1, 16, 6, 6], |i| 1.0 + 0.1 * s[0].as_slice::<f32>().unwrap()[i])])
        .collect();
    let mean_error = |bias_correction| {
        let options = Options { bias_correction, ..options() };
        let q = quantize(&graph, &samples, &options, &Reference, &mut |_, _, _| {}).unwrap();
        let mean = |g: &Graph| {
            let y = samples.iter().map(|s| eval(g, s).unwrap().remove(0));
            y.flat_map(|y| y.as_slice::<f32>().unwrap().to_vec()).map(f64::from).sum::<f64>()
        };
        (mean(&q.graph) - mean(&graph)).abs() / mean(&graph)
    };
    let (without, with) = (mean_error(false), mean_error(true));
    assert!(without > 0.02 && with < 0.1 * without, "{without} without, {with} with");
}

/// Equalization changes no float result, and helps if all weights share one scale.
#[test]
fn equalisation_balances_unequal_channels() {
    let graph = prepare(network(0.05)).unwrap();
    let plan = Plan::new(&graph);
    let values: Vec<ValueId> = (0..graph.value_count()).map(ValueId).filter(|v| plan.quantized[v.0]).collect();
    let data = samples(&graph, 8);
    let seen = observe::observe(&Reference, &graph, &values, &data, &mut |_| {}).unwrap();
    let seen = values.iter().copied().zip(seen).collect();
    let (scaled, pairs) = equalize::equalize(&graph, &plan, &seen, false).unwrap();
    // The relu's other user is the sum, so nothing can be scaled there.
    assert_eq!((pairs, &scaled), (0, &graph));

    let mut b = GraphBuilder::new("g");
    let mut n = Numbers::new(9);
    let x = b.input("x", f32s(&[1, 3, 8, 8]));
    let w = b.constant("w", Tensor::from_fn(&[4, 3, 3, 3], |i| n.float() * 10f32.powi(-((i / 27) as i32))));
    let bias = b.constant("b", Tensor::vector(vec![0.1f32, 0.1, 0.01, 0.001]));
    let v = b.node("first", conv(1, 1, Layout::Nchw), &[x, w, bias]).unwrap();
    let v = b.node("bounds", Clip { lo: 0.0, hi: f32::INFINITY }, &[v]).unwrap();
    let w = b.constant("w2", Tensor::from_fn(&[4, 3, 3, 1], |_| n.float()));
    let v = b.node("depthwise", conv(4, 1, Layout::Nchw), &[v, w]).unwrap();
    let v = b.node("relu", Clip { lo: 0.0, hi: f32::INFINITY }, &[v]).unwrap();
    let w = b.constant("w3", Tensor::from_fn(&[2, 1, 1, 4], |i| n.float() * 10f32.powi((i % 4) as i32)));
    let v = b.node("second", conv(1, 0, Layout::Nchw), &[v, w]).unwrap();
    b.output("y", v);
    let graph = b.finish().unwrap();
    let options = Options { per_channel: false, equalize: true, ..options() };
    let q = quantized(&graph, &options);
    let e = q.equalized.unwrap();
    assert!(e.pairs == 2 && e.kept() && e.after_db > e.before_db + 3.0, "{e:?}");
    let plan = Plan::new(&graph);
    let values: Vec<ValueId> = (0..graph.value_count()).map(ValueId).filter(|v| plan.quantized[v.0]).collect();
    let data = samples(&graph, 20);
    let seen = observe::observe(&Reference, &graph, &values, &data, &mut |_| {}).unwrap();
    let (scaled, _) = equalize::equalize(&graph, &plan, &values.into_iter().zip(seen).collect(), false).unwrap();
    for sample in &data {
        let (a, b) = (eval(&graph, sample).unwrap(), eval(&scaled, sample).unwrap());
        assert!(crate::suite::difference(&b[0], &a[0]) < 1e-5);
    }
}

/// A convolution, and outputs that only move elements of its data, of a second input and of a constant.
#[test]
fn outputs_that_move_an_input_or_a_constant_are_exact() {
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", f32s(&[1, 3, 4, 4]));
    let z = b.input("z", f32s(&[1, 3, 4, 4]));
    let mut n = Numbers::new(2);
    let w = b.constant("w", Tensor::from_fn(&[3, 1, 1, 3], |_| n.float()));
    let c = b.constant("c", Tensor::vector(vec![0.1f32, 0.7]));
    let flat = b.node("flat", Reshape { shape: vec![1, 48] }, &[x]).unwrap();
    let back = b.node("back", Reshape { shape: vec![1, 3, 4, 4] }, &[flat]).unwrap();
    let turned = b.node("turned", Transpose { perm: vec![0, 2, 3, 1] }, &[z]).unwrap();
    let again = b.node("again", Transpose { perm: vec![0, 3, 1, 2] }, &[turned]).unwrap();
    let y = b.node("y", conv(1, 0, Layout::Nchw), &[back, w]).unwrap();
    let both = b.node("both", Concat { axis: 1 }, &[x, again]).unwrap();
    let second = b.node("second", conv(1, 0, Layout::Nchw), &[again, w]).unwrap();
    // A softmax is float, and the product after it reads integers.
    let soft = b.node("soft", Softmax::float(1, 1.0), &[y]).unwrap();
    let third = b.node("third", conv(1, 0, Layout::Nchw), &[soft, w]).unwrap();
    let list = [("x", x), ("a", flat), ("y", y), ("b", turned), ("c", c), ("d", both), ("e", second), ("f", third)];
    list.iter().for_each(|(name, v)| b.output(name, *v));
    b.output("soft", soft);
    [("x", x), ("a", flat), ("y", y)].iter().for_each(|(name, v)| b.output(name, *v));
    let graph = b.finish().unwrap();
    let q = quantized(&prepare(graph.clone()).unwrap(), &options());
    let again = onnx::import(&onnx::write(&q.graph).unwrap(), "q.onnx", None, Sizes::default()).unwrap();
    let (integer, _) = optimize(again, OptLevel::O2, Default::default()).unwrap();
    let names = |g: &Graph| g.outputs().iter().map(|(name, _)| name.clone()).collect::<Vec<_>>();
    assert_eq!(names(&integer), names(&graph));
    let sample = samples(&graph, 1).remove(0);
    let (want, found) = (eval(&graph, &sample).unwrap(), eval(&integer, &sample).unwrap());
    for ((name, want), found) in names(&graph).iter().zip(&want).zip(&found) {
        if ["x", "a", "b", "c", "d"].contains(&name.as_str()) {
            assert_eq!(found, want, "{name}");
        } else {
            let far = crate::suite::difference(found, want);
            assert!(far > 0.0 && far < 0.05, "{name}: {far}");
        }
    }
    let products =
        integer.nodes().filter(|(_, n)| matches!(n.op, Op::Conv2d(_)) && integer.ty(n.inputs[0]).dtype == DType::I8);
    assert_eq!(products.count(), 3);
}

/// Two inputs with rare peaks, each in front of a convolution with weights that int8 represents exactly. The first
/// result is clipped, so its peaks do not matter; the second is not.
fn peaks() -> (Graph, Vec<Vec<Tensor>>) {
    let mut b = GraphBuilder::new("g");
    for (name, most) in [("clipped", 1.0), ("whole", f32::INFINITY)] {
        let x = b.input(&format!("{name} data"), f32s(&[1, 2, 32, 64]));
        let w = b.constant("w", Tensor::new(&[2, 1, 1, 2], vec![1f32, 64.0 / 127.0, -1.0, 3.0 / 127.0]).unwrap());
        let v = b.node(name, conv(1, 0, Layout::Nchw), &[x, w]).unwrap();
        let v = b.node(&format!("{name} end"), Clip { lo: -most, hi: most }, &[v]).unwrap();
        b.output(name, v);
    }
    let graph = b.finish().unwrap();
    let mut data = samples(&graph, 8);
    // One value in 16,384, so that percentiles cut it.
    for (sample, peak) in [(0, 150.0), (1, -150.0)] {
        for x in &mut data[sample] {
            let small = x.as_slice::<f32>().unwrap().to_vec();
            *x = Tensor::from_fn(&[1, 2, 32, 64], |i| if i == 777 { peak } else { small[i] });
        }
    }
    (graph, data)
}

/// One input needs the range of its peaks and the other does not: no method for both is as good as one for each.
#[test]
fn the_choice_for_each_tensor_beats_the_best_for_all() {
    let (graph, data) = peaks();
    let run = |method| {
        let options = Options { method, ..options() };
        quantize(&graph, &data, &options, &Reference, &mut |_, _, _| {}).unwrap()
    };
    let cost = |q: &Quantized| q.output_db.iter().map(|db| 10f64.powf(-db / 10.0)).sum::<f64>();
    let all = search::METHODS.map(|method| cost(&run(MethodChoice::All(method))));
    let auto = run(MethodChoice::Auto);
    assert!(all.iter().all(|all| cost(&auto) < 0.5 * all), "{} and {all:?}", cost(&auto));
    let of = |name: &str| auto.layers.iter().find(|l| l.name == name).unwrap();
    assert!(of("clipped data").params.scale < 0.2 * of("whole data").params.scale, "{:?}", auto.layers);
    assert_eq!(run(MethodChoice::Auto).layers, auto.layers);
}

/// A network with scales as inputs has the same cost as the quantized network, and no cost if no value is rounded.
#[test]
fn a_trial_costs_what_the_network_costs() {
    let (graph, data) = peaks();
    let plan = Plan::new(&graph);
    let request =
        QuantizeRequest { graph: &graph, plan: &plan, samples: &data, options: &options(), engine: &Reference };
    let (q, found) = request.attempt(&mut |_, _, _| {}).unwrap();
    let inserted = request.inserted(&found.params, &found.seen).unwrap();
    let mut trial = trial::Trial::new(&request, &inserted, 8).unwrap();
    let network = trial.network_cost(&request, &inserted).unwrap().iter().sum::<f64>();
    let mut cost = |values: &dyn Fn(ValueId) -> Option<trial::Representation>| {
        trial.cost(0..8, values).unwrap().iter().sum::<f64>()
    };
    let integers = cost(&|v| found.params.get(&v).copied().map(trial::Representation::Integers));
    let wanted = q.output_db.iter().map(|db| 10f64.powf(-db / 10.0)).sum::<f64>();
    assert!((integers / wanted - 1.0).abs() < 1e-6 && wanted > 1e-4, "{integers} and {wanted}");
    assert!((network / wanted - 1.0).abs() < 1e-6, "{network} and {wanted}");
    let floats = cost(&|_| Some(trial::Representation::Float(512.0)));
    assert!(floats < 1e-8, "{floats}");
}

#[test]
fn nodes_are_kept_in_floats_and_weak_ones_say_what_that_brings() {
    let graph = prepare(network(1.0)).unwrap();
    let plain = quantized(&graph, &Options { weak_db: 200.0, ..options() });
    assert_eq!(plain.weak.len(), plain.layers.len());
    let tried: Vec<&Weak> = plain.weak.iter().filter(|w| w.outputs_db.is_some()).collect();
    assert!(!tried.is_empty() && tried.len() < plain.weak.len());
    let (best, before, after) =
        tried.iter().map(|w| (w, w.outputs_db.unwrap())).map(|(w, db)| (w, db.0, db.1)).next().unwrap();
    assert!(after > before && (before - plain.output_db[0]).abs() < 0.01, "{tried:?}");
    let kept = quantized(&graph, &Options { keep_float: vec![best.name.clone()], ..options() });
    assert!((kept.output_db[0] - after).abs() < 0.01, "{} and {after}", kept.output_db[0]);
    assert!(kept.float_nodes.len() > plain.float_nodes.len());
    // Keeping a relu also keeps the convolution that it belongs to.
    let kept = quantized(&graph, &Options { keep_float: vec!["relu".into()], ..options() });
    let names: Vec<&str> = kept.float_nodes.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(names, ["conv", "relu", "softmax"]);
    assert!(kept.layers.iter().any(|l| l.name == "relu"), "its users take integers: {:?}", kept.layers);
    let options = Options { keep_float: vec!["no".into()], ..options() };
    let e = quantize(&graph, &samples(&graph, 1), &options, &Reference, &mut |_, _, _| {}).unwrap_err().to_string();
    assert!(
        e.starts_with("the model has no node no that computes floats") && e.ends_with("such as conv, conv2, dense"),
        "{e}"
    );
}

#[test]
fn weights_of_seven_bits_stay_within_63() {
    let graph = prepare(network(1.0)).unwrap();
    for per_channel in [true, false] {
        let q = quantized(&graph, &Options { weight_bits: WeightBits::Seven, per_channel, ..options() });
        let weights = q.graph.nodes().filter(|(_, n)| n.name.ends_with("/weight"));
        let most = |n: &crate::graph::Node| {
            let t = q.graph.constant(n.output()).unwrap();
            t.as_slice::<i8>().unwrap().iter().map(|w| w.unsigned_abs()).max().unwrap()
        };
        assert_eq!(weights.map(|(_, n)| most(n)).collect::<Vec<_>>(), [63; 3]);
        let eight = quantized(&graph, &Options { per_channel, ..options() }).output_db[0];
        let lost = eight - q.output_db[0];
        assert!(lost < 6.1, "{lost} dB, where a bit is 6 of the weights' noise alone");
    }
    // A constant matrix with many dimensions counts as weights too.
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", f32s(&[2, 2, 3]));
    let w = b.constant("w", Tensor::from_fn(&[2, 3, 2], |i| i as f32 - 3.0));
    let v = b.node("product", MatMul {}, &[x, w]).unwrap();
    b.output("y", v);
    let q = quantized(&b.finish().unwrap(), &Options { weight_bits: WeightBits::Seven, ..options() });
    let (_, node) = q.graph.nodes().find(|(_, n)| n.name == "product/w").unwrap();
    let integers = q.graph.constant(node.output()).unwrap();
    assert_eq!(integers.as_slice::<i8>().unwrap().iter().max(), Some(&63));
}

/// A bias far above its channel's weights still fits 32 bits.
#[test]
fn dead_channels_keep_their_bias() {
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", f32s(&[1, 4]));
    let w = b.constant("w", Tensor::from_fn(&[2, 4], |i| if i < 4 { 1e-20f32 } else { 1.0 }));
    let bias = b.constant("b", Tensor::vector(vec![3f32, -2.0]));
    let v = b.node("dense", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[x, w, bias]).unwrap();
    b.output("y", v);
    let graph = b.finish().unwrap();
    let q = quantized(&graph, &options());
    let y = eval(&q.graph, &[Tensor::from_fn(&[1, 4], |_| 0f32)]).unwrap();
    let y = y[0].as_slice::<f32>().unwrap();
    assert!((y[0] - 3.0).abs() < 0.03 && (y[1] + 2.0).abs() < 0.03, "{y:?}");
}

#[test]
fn what_cannot_be_quantized_is_refused() {
    let graph = prepare(network(1.0)).unwrap();
    let run = |samples: &[Vec<Tensor>]| quantize(&graph, samples, &options(), &Reference, &mut |_, _, _| {});
    assert!(run(&[]).unwrap_err().to_string().starts_with("there are no calibration data"));
    let mut bad = samples(&graph, 2);
    bad[1][0] = Tensor::from_fn(&[1, 8, 8, 3], |i| if i == 5 { f32::NAN } else { 0.0 });
    let e = run(&bad).unwrap_err().to_string();
    assert_eq!(
        e,
        "value x is not finite for calibration sample 1; leave that sample out, or look at the model with it"
    );
    let again = prepare(quantized(&graph, &options()).graph).unwrap_err().to_string();
    let expected =
        "the model is quantized already: node `x/quantize` is quantize; give the float model that it was made from";
    assert_eq!(again, expected);
    let mut b = GraphBuilder::new("g");
    let x = b.input("x", f32s(&[4]));
    let v = b.node("relu", Relu {}, &[x]).unwrap();
    b.output("y", v);
    let graph = b.finish().unwrap();
    let e = quantize(&graph, &samples(&graph, 1), &options(), &Reference, &mut |_, _, _| {}).unwrap_err();
    assert!(e.to_string().starts_with("the model has no operator that can be quantized"), "{e}");
}
