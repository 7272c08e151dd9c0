//! RNN, GRU and LSTM, compared with plain loops, and their errors.

use super::*;
use crate::frontend::onnx::testing::{Operand, Value, network, single};
use rand::{Rng, SeedableRng, rngs::SmallRng};

/// A random node.
#[derive(Debug, Clone)]
struct Case {
    op: &'static str,
    steps: usize,
    batch: usize,
    input: usize,
    hidden: usize,
    /// `forward`, `reverse` or `bidirectional`.
    direction: &'static str,
    batch_first: bool,
    lengths: Option<Vec<i32>>,
    /// Names with alpha and beta, in order for each direction; the defaults if `None`.
    activations: Option<Vec<(&'static str, f32, f32)>>,
    clip: Option<f32>,
    /// `linear_before_reset` of a GRU, `input_forget` of an LSTM.
    flag: bool,
    bias: bool,
    initial: bool,
    peepholes: bool,
}

const ACTIVATIONS: [&str; 11] = [
    "Tanh",
    "Sigmoid",
    "Relu",
    "Affine",
    "LeakyRelu",
    "ThresholdedRelu",
    "ScaledTanh",
    "HardSigmoid",
    "Elu",
    "Softsign",
    "Softplus",
];

const BOUNDED: [&str; 5] = ["Tanh", "Sigmoid", "ScaledTanh", "HardSigmoid", "Softsign"];

fn activation(name: &str, a: f32, b: f32, x: f64) -> f64 {
    let (a, b) = (f64::from(a), f64::from(b));
    match name {
        "Tanh" => x.tanh(),
        "Sigmoid" => 1.0 / (1.0 + (-x).exp()),
        "Relu" => x.max(0.0),
        "Affine" => a * x + b,
        "LeakyRelu" => {
            if x < 0.0 {
                a * x
            } else {
                x
            }
        }
        "ThresholdedRelu" => {
            if x > a {
                x
            } else {
                0.0
            }
        }
        "ScaledTanh" => a * (b * x).tanh(),
        "HardSigmoid" => (a * x + b).clamp(0.0, 1.0),
        "Elu" => {
            if x < 0.0 {
                a * (x.exp() - 1.0)
            } else {
                x
            }
        }
        "Softsign" => x / (1.0 + x.abs()),
        "Softplus" => (1.0 + x.exp()).ln(),
        other => panic!("{other}"),
    }
}

impl Case {
    fn random(rng: &mut SmallRng) -> Case {
        let op = ["RNN", "GRU", "LSTM"][rng.random_range(0..3)];
        let (steps, batch) = (rng.random_range(1..12), rng.random_range(1..4));
        let direction = ["forward", "reverse", "bidirectional"][rng.random_range(0..3)];
        let mut case = Case {
            op,
            steps,
            batch,
            input: rng.random_range(1..6),
            hidden: rng.random_range(1..6),
            direction,
            batch_first: rng.random(),
            lengths: rng.random::<bool>().then(|| (0..batch).map(|_| rng.random_range(1..=steps as i32)).collect()),
            activations: None,
            clip: rng.random_bool(0.3).then(|| rng.random_range(0.1..1.5)),
            flag: op != "RNN" && rng.random(),
            bias: rng.random(),
            initial: rng.random(),
            peepholes: op == "LSTM" && rng.random(),
        };
        if rng.random() {
            // Gates use bounded functions, and so does what enters the others, so that no state grows from step to
            // step.
            let pick = |rng: &mut SmallRng, i: usize| {
                let name = if i == 0 && op != "RNN" {
                    BOUNDED[rng.random_range(0..5)]
                } else {
                    ACTIVATIONS[rng.random_range(0..11)]
                };
                (name, rng.random_range(0.1..0.9), rng.random_range(0.1..0.9))
            };
            let count = case.directions() * case.functions();
            let list: Vec<_> = (0..count).map(|i| pick(rng, i % case.functions())).collect();
            if list.iter().any(|a| !BOUNDED.contains(&a.0)) {
                case.clip = Some(rng.random_range(0.1..1.5));
            }
            case.activations = Some(list);
        }
        case
    }

    fn directions(&self) -> usize {
        if self.direction == "bidirectional" { 2 } else { 1 }
    }

    fn gates(&self) -> usize {
        match self.op {
            "RNN" => 1,
            "GRU" => 3,
            _ => 4,
        }
    }

    fn functions(&self) -> usize {
        match self.op {
            "RNN" => 1,
            "GRU" => 2,
            _ => 3,
        }
    }

    /// The node's operands, with directions and steps outside the batch.
    fn operands(&self, rng: &mut SmallRng) -> Vec<Option<Tensor>> {
        let (d, g, h) = (self.directions(), self.gates() * self.hidden, self.hidden);
        let mut floats = |shape: &[usize]| Tensor::from_fn(shape, |_| rng.random_range(-1f32..1.0));
        let x = floats(&[self.steps, self.batch, self.input]);
        let (w, r) = (floats(&[d, g, self.input]), floats(&[d, g, h]));
        let b = self.bias.then(|| floats(&[d, 2 * g]));
        let lengths = self.lengths.clone().map(Tensor::vector);
        let state = [d, self.batch, h];
        let first = self.initial.then(|| floats(&state));
        let mut all = vec![Some(x), Some(w), Some(r), b, lengths, first];
        if self.op == "LSTM" {
            all.push(self.initial.then(|| floats(&state)));
            all.push(self.peepholes.then(|| floats(&[d, 3 * h])));
        }
        all
    }

    /// Y, Y_h and Y_c by the format's formulas, with directions and steps outside the batch.
    fn expected(&self, o: &[Option<Tensor>]) -> Vec<Vec<f64>> {
        let at = |i: usize, index: usize| -> f64 {
            o.get(i).and_then(Option::as_ref).map_or(0.0, |t| f64::from(t.as_slice::<f32>().unwrap()[index]))
        };
        let (t, n, k, h, dirs) = (self.steps, self.batch, self.input, self.hidden, self.directions());
        let g = self.gates() * h;
        let mut y = vec![0.0; t * dirs * n * h];
        let (mut last_h, mut last_c) = (vec![0.0; dirs * n * h], vec![0.0; dirs * n * h]);
        let defaults: &[&str] = if self.op == "RNN" { &["Tanh"] } else { &["Sigmoid", "Tanh", "Tanh"] };
        for d in 0..dirs {
            let act = |i: usize, x: f64| {
                let clip = |x: f64| self.clip.map_or(x, |c| x.clamp(-f64::from(c), f64::from(c)));
                // `clip` does not apply to the cell state.
                let x = if i == 2 { x } else { clip(x) };
                match &self.activations {
                    Some(list) => {
                        let (name, a, b) = list[d * self.functions() + i];
                        activation(name, a, b, x)
                    }
                    None => activation(defaults[i], 0.0, 0.0, x),
                }
            };
            let reverse = self.direction == "reverse" || d == 1;
            for b in 0..n {
                let mut hs: Vec<f64> = (0..h).map(|j| at(5, (d * n + b) * h + j)).collect();
                let mut cs: Vec<f64> = (0..h).map(|j| at(6, (d * n + b) * h + j)).collect();
                let length = self.lengths.as_ref().map_or(t, |l| l[b] as usize);
                for i in 0..length {
                    let s = if reverse { length - 1 - i } else { i };
                    let from_x = |row: usize| -> f64 {
                        let products = (0..k).map(|j| at(0, (s * n + b) * k + j) * at(1, (d * g + row) * k + j));
                        products.sum::<f64>() + at(3, d * 2 * g + row)
                    };
                    let from_h =
                        |row: usize, hs: &[f64]| -> f64 { (0..h).map(|j| hs[j] * at(2, (d * g + row) * h + j)).sum() };
                    let own = |row: usize| at(3, d * 2 * g + g + row);
                    let sum = |row: usize| from_x(row) + from_h(row, &hs) + own(row);
                    let peep = |gate: usize, j: usize, c: f64| at(7, d * 3 * h + gate * h + j) * c;
                    let (mut next_h, mut next_c) = (vec![0.0; h], vec![0.0; h]);
                    match self.op {
                        "RNN" => (0..h).for_each(|j| next_h[j] = act(0, sum(j))),
                        "GRU" => {
                            let reset: Vec<f64> = (0..h).map(|j| act(0, sum(h + j))).collect();
                            let held: Vec<f64> = (0..h).map(|j| reset[j] * hs[j]).collect();
                            for j in 0..h {
                                let z = act(0, sum(j));
                                let row = 2 * h + j;
                                let new = if self.flag {
                                    from_x(row) + reset[j] * (from_h(row, &hs) + own(row))
                                } else {
                                    from_x(row) + from_h(row, &held) + own(row)
                                };
                                next_h[j] = (1.0 - z) * act(1, new) + z * hs[j];
                            }
                        }
                        _ => {
                            for j in 0..h {
                                let i = act(0, sum(j) + peep(0, j, cs[j]));
                                let f = if self.flag { 1.0 - i } else { act(0, sum(2 * h + j) + peep(2, j, cs[j])) };
                                next_c[j] = f * cs[j] + i * act(1, sum(3 * h + j));
                                let o = act(0, sum(h + j) + peep(1, j, next_c[j]));
                                next_h[j] = o * act(2, next_c[j]);
                            }
                        }
                    }
                    (hs, cs) = (next_h, next_c);
                    y[((s * dirs + d) * n + b) * h..][..h].copy_from_slice(&hs);
                }
                last_h[(d * n + b) * h..][..h].copy_from_slice(&hs);
                last_c[(d * n + b) * h..][..h].copy_from_slice(&cs);
            }
        }
        if self.op == "LSTM" { vec![y, last_h, last_c] } else { vec![y, last_h] }
    }

    fn model(&self, operands: &[Operand]) -> Vec<u8> {
        let list = self.activations.clone().unwrap_or_default();
        let names: Vec<&str> = list.iter().map(|a| a.0).collect();
        let takes = |which: &[&str], name: &str| which.contains(&name);
        let first = ["Affine", "LeakyRelu", "ThresholdedRelu", "ScaledTanh", "HardSigmoid", "Elu"];
        let alphas: Vec<f32> = list.iter().filter(|a| takes(&first, a.0)).map(|a| a.1).collect();
        let betas: Vec<f32> =
            list.iter().filter(|a| takes(&["Affine", "ScaledTanh", "HardSigmoid"], a.0)).map(|a| a.2).collect();
        let mut attributes = vec![
            ("direction", Value::Word(self.direction)),
            ("hidden_size", Value::Int(self.hidden as i64)),
            ("layout", Value::Int(self.batch_first.into())),
        ];
        if self.activations.is_some() {
            attributes.push(("activations", Value::Words(&names)));
            attributes.push(("activation_alpha", Value::Floats(&alphas)));
            attributes.push(("activation_beta", Value::Floats(&betas)));
        }
        if let Some(clip) = self.clip {
            attributes.push(("clip", Value::Float(clip)));
        }
        match self.op {
            "GRU" => attributes.push(("linear_before_reset", Value::Int(self.flag.into()))),
            "LSTM" => attributes.push(("input_forget", Value::Int(self.flag.into()))),
            _ => {}
        }
        single(self.op, &attributes, operands, if self.op == "LSTM" { 3 } else { 2 }, 22)
    }
}

fn import_one(file: &[u8]) -> Result<Graph, String> {
    onnx::import(file, "net.onnx", None, Sizes::default()).map_err(|e| e.to_string())
}

/// The network's results for the operands that are its inputs.
fn results(file: &[u8], operands: &[Operand]) -> Vec<Tensor> {
    let given: Vec<Tensor> =
        operands.iter().filter_map(|o| if let Operand::Given(t) = o { Some(t.clone()) } else { None }).collect();
    eval(&import_one(file).unwrap(), &given).unwrap()
}

/// Compares a layer's results with those of the formulas; returns its graph.
fn check(case: &Case, rng: &mut SmallRng) -> Graph {
    let tensors = case.operands(rng);
    let expected = case.expected(&tensors);
    let frozen: bool = rng.random();
    let turn = |i: usize, t: Tensor| match i {
        0 | 5 | 6 if case.batch_first => t.transposed(&[1, 0, 2]).unwrap(),
        _ => t,
    };
    let operand = |(i, t): (usize, Option<Tensor>)| match t.map(|t| turn(i, t)) {
        None => Operand::Missing,
        Some(t) if frozen && i > 0 => Operand::Constant(t),
        Some(t) => Operand::Given(t),
    };
    let operands: Vec<Operand> = tensors.into_iter().enumerate().map(operand).collect();
    let found = results(&case.model(&operands), &operands);
    assert_eq!(found.len(), expected.len());
    for (i, (f, e)) in found.into_iter().zip(&expected).enumerate() {
        // Y is [steps, directions, batch, hidden] or [batch, steps, directions, hidden].
        let f = match (case.batch_first, i) {
            (true, 0) => f.transposed(&[1, 2, 0, 3]).unwrap(),
            (true, _) => f.transposed(&[1, 0, 2]).unwrap(),
            _ => f,
        };
        let shape = [case.steps, case.directions(), case.batch, case.hidden];
        assert_eq!(f.shape(), &shape[usize::from(i > 0)..], "{case:?}");
        let values = f.as_slice::<f32>().unwrap().iter().zip(e);
        let worst = values.map(|(&f, &e)| (f64::from(f) - e).abs() / e.abs().max(1.0)).fold(0.0, f64::max);
        assert!(worst < 2e-5, "result {i} differs by {worst}: {case:?}");
    }
    import_one(&case.model(&operands)).unwrap()
}

#[test]
fn recurrences_are_those_of_plain_loops() {
    let mut rng = SmallRng::seed_from_u64(11);
    let mut seen = std::collections::HashSet::new();
    for _ in 0..300 {
        let case = Case::random(&mut rng);
        seen.insert((case.op, case.direction, case.batch_first, case.lengths.is_some(), case.flag));
        check(&case, &mut rng);
    }
    assert!(seen.len() > 50, "{}", seen.len());
}

#[test]
fn long_recurrences_are_those_of_plain_loops() {
    let mut rng = SmallRng::seed_from_u64(12);
    for steps in 257..297 {
        let mut case = Case::random(&mut rng);
        let lengths = (0..case.batch).map(|_| rng.random_range(1..=steps as i32)).collect();
        (case.steps, case.activations) = (steps, None);
        case.lengths = case.lengths.map(|_| lengths);
        let graph = check(&case, &mut rng);
        assert!(graph.nodes().any(|(_, node)| matches!(node.op, crate::graph::Op::Loop(_))), "{case:?}");
    }
}

#[test]
fn recurrences_are_those_of_onnx_runtime() {
    let (found, expected) = super::run(&models("onnx-runtime"), "recurrent.onnx");
    assert_eq!(found.len(), expected.len());
    for (i, (f, e)) in found.iter().zip(&expected).enumerate() {
        let r = relative(f, e);
        assert!(r < 1e-5, "result {i} differs by {r}");
    }
}

fn zeros(shape: &[usize]) -> Operand {
    Operand::Given(Tensor::from_fn(shape, |_| 0f32))
}

#[track_caller]
fn refused(op: &str, attributes: &[(&str, Value)], operands: &[Operand], want: &str) {
    let e = import_one(&single(op, attributes, operands, 1, 17)).unwrap_err();
    assert!(e.contains(&format!("node `node` ({op}): {want}")), "{e}");
}

#[test]
fn what_does_not_suit_a_recurrence_is_named() {
    let weights = |w: &[usize], r: &[usize]| vec![zeros(&[5, 2, 3]), zeros(w), zeros(r)];
    let good = || weights(&[1, 16, 3], &[1, 16, 4]);
    let with = |more: &[Operand]| [good(), more.to_vec()].concat();
    let lengths = |v: &[i32]| Operand::Constant(Tensor::vector(v.to_vec()));
    refused(
        "LSTM",
        &[],
        &weights(&[1, 12, 3], &[1, 16, 4]),
        "its W must be f32[1,16,3] (directions, gates times hidden_size, X's columns), found f32[1,12,3]",
    );
    refused("LSTM", &[], &weights(&[1, 16, 3], &[1, 12, 4]), "its R must be f32[1,16,4] (directions");
    refused("LSTM", &[], &weights(&[1, 16, 3], &[16, 4]), "its R must have 3 dimensions, found f32[16,4]");
    refused("LSTM", &[("hidden_size", Value::Int(5))], &good(), "its hidden_size 5 does not match its R, f32[1,16,4]");
    refused("LSTM", &[], &with(&[zeros(&[1, 16])]), "its B must be f32[1,32] (directions, twice");
    refused(
        "LSTM",
        &[("direction", Value::Word("bidirectional"))],
        &good(),
        "its W must be f32[2,16,3] (directions, gates times hidden_size, X's columns), found f32[1,16,3]",
    );
    refused(
        "LSTM",
        &[("direction", Value::Word("backward"))],
        &good(),
        "unknown direction `backward`; use forward, reverse or bidirectional",
    );
    refused("LSTM", &[("layout", Value::Int(2))], &good(), "its layout must be 0 or 1, found 2");
    let missing = || vec![Operand::Missing, Operand::Missing];
    let initial = [missing(), vec![zeros(&[2, 1, 4])]].concat();
    refused(
        "LSTM",
        &[],
        &with(&initial),
        "its initial_h must be f32[1,2,4] (directions, batch, hidden_size), found f32[2,1,4]",
    );
    let peepholes = [missing(), missing(), vec![zeros(&[1, 4])]].concat();
    refused("LSTM", &[], &with(&peepholes), "its P must be f32[1,12] (directions, three times hidden_size");
    refused(
        "LSTM",
        &[],
        &with(&[Operand::Missing, lengths(&[5, 6])]),
        "its sequence_lens has 6; lengths must be from 1 to 5",
    );
    refused(
        "LSTM",
        &[],
        &with(&[Operand::Missing, lengths(&[5])]),
        "its sequence_lens must be i32[2], one per sequence",
    );
    refused("LSTM", &[("clip", Value::Float(-1.0))], &good(), "its clip -1 must not be negative");
    let names = |list| [("activations", Value::Words(list))];
    refused(
        "LSTM",
        &names(&["Sigmoid", "Swish", "Tanh"]),
        &good(),
        "unknown activation `Swish`; use one of Affine, Elu, HardSigmoid, LeakyRelu, Relu, ScaledTanh, Sigmoid,",
    );
    refused("LSTM", &names(&["Sigmoid"]), &good(), "its activations must be 3 names, found 1");
    refused(
        "LSTM",
        &names(&["Affine", "Tanh", "Tanh"]),
        &good(),
        "its activation Affine needs a parameter; add it to `activation_alpha`",
    );
    refused(
        "GRU",
        &[("input_forget", Value::Int(1))],
        &good(),
        "its attribute `input_forget` is not supported; GRU has activation_alpha",
    );
    let long = vec![zeros(&[(1 << 20) + 1, 1, 1]), zeros(&[1, 1, 1]), zeros(&[1, 1, 1])];
    refused(
        "RNN",
        &[],
        &long,
        "its 1048577 steps are not supported; the maximum is 1048576: set a shorter sequence with --bind or --shape, and export Y_h",
    );
    refused("RNN", &[], &[zeros(&[2, 3]), zeros(&[1, 1, 3]), zeros(&[1, 1, 1])], "its X must be f32 with 3 dimensions");
}

#[test]
fn a_sequence_of_open_length_is_refused() {
    let numbers: &[(&str, &[i64])] = &[("w_shape", &[1, 4, 3]), ("r_shape", &[1, 4, 4])];
    let zero = |shape, name| ("ConstantOfShape", [shape], [name]);
    let (w, r) = (zero("w_shape", "w"), zero("r_shape", "r"));
    let weights = [(w.0, &w.1[..], &w.2[..], &[][..]), (r.0, &r.1[..], &r.2[..], &[][..])];
    let chain = [("Tanh", &["x"][..], &["a"][..], &[][..]), ("RNN", &["a", "w", "r"][..], &["y"][..], &[][..])];
    let file = network(&[&weights[..], &chain[..]].concat(), &[-1, -1, 3], 1, numbers, 17);
    let take = |pairs: &[(&str, usize)]| {
        let symbols = pairs.iter().map(|&(s, n)| (s.to_string(), n)).collect();
        onnx::import(&file, "net.onnx", None, &Sizes { symbols, ..Sizes::default() }).map_err(|e| e.to_string())
    };
    let e = take(&[("s1", 2)]).unwrap_err();
    let want = "node `y` (RNN): the length of its sequence can depend on the size `s0`, which the model leaves open; give it with --bind";
    assert!(e.contains(want), "{e}");
    let e = take(&[("s0", 2)]).unwrap_err();
    assert!(e.contains("(RNN): needs the size `s1`, which the model leaves open; give it with --bind s1=SIZE"), "{e}");
    let g = take(&[("s0", 7), ("s1", 2)]).unwrap();
    assert_eq!(g.ty(g.outputs()[0].1).shape().unwrap(), [7, 1, 2, 4]);
}

#[test]
fn a_length_that_may_be_open_is_refused_behind_whatever_makes_it() {
    let numbers: &[(&str, &[i64])] = &[("w_shape", &[1, 4, 3]), ("r_shape", &[1, 4, 4]), ("x_shape", &[-1, 1, 3])];
    let zero = |shape, name| ("ConstantOfShape", [shape], [name]);
    let (w, r) = (zero("w_shape", "w"), zero("r_shape", "r"));
    let weights = [(w.0, &w.1[..], &w.2[..], &[][..]), (r.0, &r.1[..], &r.2[..], &[][..])];
    let chain =
        [("Reshape", &["x", "x_shape"][..], &["a"][..], &[][..]), ("RNN", &["a", "w", "r"][..], &["y"][..], &[][..])];
    let file = network(&[&weights[..], &chain[..]].concat(), &[-1, 3], 1, numbers, 17);
    let take = |size: Option<usize>| {
        let symbols = size.map(|n| ("s0".to_string(), n)).into_iter().collect();
        onnx::import(&file, "net.onnx", None, &Sizes { symbols, ..Sizes::default() }).map_err(|e| e.to_string())
    };
    let e = take(None).unwrap_err();
    assert!(e.contains("can depend on the size `s0`, which the model leaves open; give it with --bind s0=SIZE"), "{e}");
    // A length of 1 that was requested is accepted.
    for n in [1, 5] {
        let g = take(Some(n)).unwrap();
        assert_eq!(g.ty(g.outputs()[0].1).shape().unwrap(), [n, 1, 1, 4]);
    }
}

#[test]
fn many_recurrences_of_few_bytes_are_bounded() {
    let numbers: &[(&str, &[i64])] = &[("shape", &[1, 1, 1])];
    let names: Vec<String> = (0..90).map(|i| format!("y{i}")).collect();
    let outputs: Vec<[&str; 1]> = names.iter().map(|n| [n.as_str()]).collect();
    let mut nodes = vec![("ConstantOfShape", &["shape"][..], &["w"][..], &[][..])];
    nodes.extend(outputs.iter().map(|o| ("RNN", &["x", "w", "w"][..], &o[..], &[][..])));
    nodes.push(("Identity", &["y0"], &["y"], &[]));
    // Steps that are not a loop.
    let e = import_one(&network(&nodes, &[256, 1, 1], 1, numbers, 17)).unwrap_err();
    assert!(e.contains("(RNN): becomes 5120 nodes, which is too much for a file of this size"), "{e}");
}
