//! Random quantized groups, compared with the float operators between `dequantize` and `quantize`.

use super::*;
use proptest::prelude::*;

pub(super) struct Build {
    pub b: GraphBuilder,
    seed: u64,
    inputs: Vec<Tensor>,
    /// The largest scale of an input.
    scale: f32,
    /// The largest step of a product's sums.
    step: f32,
}

impl Build {
    pub fn new(seed: u64) -> Build {
        Build { b: GraphBuilder::new("g"), seed, inputs: Vec::new(), scale: 0.0, step: 0.0 }
    }

    fn tensor(&mut self, shape: &[usize]) -> Tensor {
        self.seed += 1;
        Tensor::from_fn(shape, noise(self.seed))
    }

    fn dequantize(&mut self, v: ValueId, scale: Vec<f32>, zero_point: Vec<i32>) -> ValueId {
        self.b.node("dq", Dequantize { scale, zero_point, axis: 0 }, &[v]).unwrap()
    }

    pub fn input(&mut self, shape: &[usize], scale: f32, zero_point: i32) -> ValueId {
        let t = self.tensor(shape);
        let v = self.b.input(&format!("x{}", self.inputs.len()), t.ty());
        self.inputs.push(t);
        self.scale = self.scale.max(scale);
        self.dequantize(v, vec![scale], vec![zero_point])
    }

    pub fn weight(&mut self, shape: &[usize], per_channel: bool) -> ValueId {
        let t = self.tensor(shape);
        let v = self.b.constant("w", t);
        let n = if per_channel { shape[0] } else { 1 };
        let mut f = noise(self.seed + 77);
        let scale: Vec<f32> = (0..n).map(|i| 0.002 + f32::from(f(i)).abs() * 3e-5).collect();
        self.step = scale.iter().fold(self.step, |most, w| most.max(w * self.scale));
        self.dequantize(v, scale, vec![0; n])
    }

    /// Adds a vector to `v`, depending on `kind`: nothing, floats, dequantized bytes as the first operand, or
    /// dequantized i32.
    fn biased(&mut self, v: ValueId, kind: i32, shape: &[usize], scale: f32) -> ValueId {
        let t = self.tensor(shape);
        let t = t.as_slice::<i8>().unwrap();
        match kind {
            0 => v,
            1 => {
                let b = self.b.constant("b", Tensor::from_fn(shape, |i| f32::from(t[i]) * scale / 3.0));
                self.b.node("sum", Add {}, &[v, b]).unwrap()
            }
            2 => {
                let b = self.b.constant("b", Tensor::from_fn(shape, |i| t[i]));
                let b = self.dequantize(b, vec![scale / 2.0], vec![3]);
                self.b.node("sum", Add {}, &[b, v]).unwrap()
            }
            _ => {
                let b = self.b.constant("b", Tensor::from_fn(shape, |i| i32::from(t[i]) * 50));
                let steps = (0..shape[0]).map(|i| scale * 0.003 * (1.0 + i as f32)).collect();
                let b = self.dequantize(b, steps, vec![0; shape[0]]);
                self.b.node("sum", Add {}, &[v, b]).unwrap()
            }
        }
    }

    /// Quantizes a float value so that its range is used, evaluates both forms and compares them.
    fn check(self, v: ValueId, clip: Option<(f32, f32)>, zero_point: i32, same: Option<f32>, integer: &[&str]) {
        let (h, _) = self.legal(v, clip, zero_point, same);
        let ops: Vec<_> = h.nodes().map(|(_, n)| n.op.name()).filter(|&n| n != "constant").collect();
        assert_eq!(ops, integer, "{h}");
    }

    /// Does the same and returns the integer form and the report.
    pub fn legal(
        mut self,
        v: ValueId,
        clip: Option<(f32, f32)>,
        zero_point: i32,
        same: Option<f32>,
    ) -> (Graph, Report) {
        let whole = v;
        let v = match clip {
            Some((lo, hi)) => self.b.node("clip", Clip { lo, hi }, &[v]).unwrap(),
            None => v,
        };
        let mut probe = GraphBuilder::new("probe");
        std::mem::swap(&mut probe, &mut self.b);
        // The scale is computed from the float result itself.
        probe.output("real", v);
        probe.output("whole", whole);
        let g = probe.finish().unwrap();
        let real = eval(&g, &self.inputs).unwrap();
        let most = |t: &Tensor| t.as_slice::<f32>().unwrap().iter().fold(1e-3f32, |m, x| m.max(x.abs()));
        // A clip can cut off everything, and the scale must not be a simple multiple of the scales of the operands. A
        // product stays float if its bias cannot be rounded to a step of its sums within a quarter of an output step.
        let scale = same.unwrap_or((most(&real[0]).max(most(&real[1]) / 100.0) / 120.37).max(2.5 * self.step));
        let mut b = GraphBuilder::new("g");
        let mut map: Vec<ValueId> = g.inputs().map(|(n, v)| b.input(n, g.ty(v).clone())).collect();
        for (_, n) in g.nodes() {
            let inputs: Vec<_> = n.inputs.iter().map(|v| map[v.0]).collect();
            map.extend(b.node_outputs(&n.name, n.op.clone(), &inputs).unwrap());
        }
        let q = Quantize {
            scale: vec![scale],
            zero_point: vec![zero_point],
            axis: 0,
            rounding: QuantRounding::HalfEven,
            dtype: DType::I8,
        };
        let y = b.node("q", q, &[map[g.outputs()[0].1.0]]).unwrap();
        b.output("y", y);
        let g = b.finish().unwrap();
        let passes: Vec<Box<dyn Pass>> = vec![Box::new(SinkDequantize), Box::new(LegalizeQdq), Box::new(DeadCode)];
        let (h, report) = run(g.clone(), &passes, Options::default()).unwrap();
        let (a, b) = (eval(&g, &self.inputs).unwrap(), eval(&h, &self.inputs).unwrap());
        let worst = steps(&a[0], &b[0]);
        assert!(worst <= 1, "{worst} steps\n{g}\n{h}");
        (h, report)
    }
}

fn clips() -> impl Strategy<Value = Option<(f32, f32)>> {
    prop_oneof![Just(None), Just(Some((0.0, f32::INFINITY))), Just(Some((0.0, 6.0))), Just(Some((-1.0, 1.0)))]
}

fn layouts() -> impl Strategy<Value = Layout> {
    prop_oneof![Just(Layout::Nchw), Just(Layout::Nhwc)]
}

fn image(layout: Layout, c: usize, h: usize, w: usize) -> [usize; 4] {
    match layout {
        Layout::Nchw => [1, c, h, w],
        Layout::Nhwc => [1, h, w, c],
    }
}

/// Ratio of an average's scale to the scale of its elements for which no average of up to nine bytes is close to a tie.
/// `367 * sum / (521 * n)` is a tie only if 521 divides the sum or n, and otherwise it is farther from one than the
/// error of single precision. A random scale could make a tie of one of the few sums of a small window, and one is
/// already more than one in a thousand.
const NO_TIES: f32 = 521.0 / 367.0;

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn convolutions(
        seed in 0u64..1000, layout in layouts(), groups in 1usize..4, depth in 1usize..4, o in 1usize..4,
        kernel in prop::array::uniform2(1usize..4), strides in prop::array::uniform2(1usize..3),
        pads in prop::array::uniform4(0usize..2), per_channel: bool, bias in 0..3, clip in clips(),
        zx in -128i32..128, zy in -128i32..128, scale in 0.001f32..0.1,
    ) {
        let mut t = Build::new(seed);
        let x = t.input(&image(layout, groups * depth, 6, 5), scale, zx);
        let w = t.weight(&[groups * o, kernel[0], kernel[1], depth], per_channel);
        let mut operands = vec![x, w];
        let floats = Tensor::from_fn(&[groups * o], noise(seed + 5));
        let floats = floats.as_slice::<i8>().unwrap();
        if bias == 1 {
            let b = Tensor::from_fn(&[groups * o], |i| f32::from(floats[i]) * scale / 3.0);
            operands.push(t.b.constant("bias", b));
        } else if bias == 2 {
            let b = t.b.constant("bias", Tensor::from_fn(&[groups * o], |i| i32::from(floats[i]) * 50));
            operands.push(t.dequantize(b, vec![scale * 0.003], vec![0]));
        }
        let op = Conv2d { strides, pads, dilations: [1, 1], groups, layout, data_zero_point: 0, weight_zero_point: 0 };
        let v = t.b.node("conv", op, &operands).unwrap();
        t.check(v, clip, zy, None, &["conv2d", "requantize"]);
    }

    #[test]
    fn fully_connected_layers(
        seed in 0u64..1000, m in 1usize..3, k in 1usize..40, n in 1usize..9, per_channel: bool, clip in clips(),
        zx in -128i32..128, zy in -128i32..128, scale in 0.001f32..0.1,
    ) {
        let mut t = Build::new(seed);
        let x = t.input(&[m, k], scale, zx);
        let w = t.weight(&[n, k], per_channel);
        let v = t.b.node("dense", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[x, w]).unwrap();
        t.check(v, clip, zy, None, &["dense", "requantize"]);
    }

    #[test]
    fn layers_of_rows_behind_reshapes(
        seed in 0u64..1000, lead in prop::sample::select(vec![vec![6], vec![2, 3], vec![1, 3, 2]]), k in 1usize..40,
        n in 1usize..9, per_channel: bool, bias in 0..4, clip in clips(), zx in -128i32..128, zy in -128i32..128,
        scale in 0.001f32..0.1,
    ) {
        let mut t = Build::new(seed);
        let with = |last: usize| lead.iter().copied().chain([last]).collect::<Vec<usize>>();
        let x = t.input(&with(k), scale, zx);
        let w = t.weight(&[n, k], per_channel);
        let rows = t.b.node("rows", Reshape { shape: vec![-1, k as i64] }, &[x]).unwrap();
        let v = t.b.node("dense", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[rows, w]).unwrap();
        let shape = with(n).iter().map(|&n| n as i64).collect();
        let v = t.b.node("shape", Reshape { shape }, &[v]).unwrap();
        let v = t.biased(v, bias, &[n], scale);
        t.check(v, clip, zy, None, &["reshape", "dense", "requantize", "reshape"]);
    }

    #[test]
    fn convolutions_of_lines_behind_reshapes(
        seed in 0u64..1000, bias in 0..4, o in 1usize..6, clip in clips(), zx in -128i32..128, zy in -128i32..128,
        scale in 0.001f32..0.1,
    ) {
        let mut t = Build::new(seed);
        let x = t.input(&[2, 3, 9], scale, zx);
        let w = t.weight(&[o, 1, 3, 3], true);
        let image = t.b.node("image", Reshape { shape: vec![2, 3, 1, 9] }, &[x]).unwrap();
        let op = Conv2d {
            strides: [1, 2], pads: [0, 1, 0, 1], dilations: [1, 1], groups: 1, layout: Layout::Nchw,
            data_zero_point: 0, weight_zero_point: 0,
        };
        let v = t.b.node("conv", op, &[image, w]).unwrap();
        let v = t.b.node("line", Reshape { shape: vec![2, o as i64, 5] }, &[v]).unwrap();
        let v = t.biased(v, bias, &[o, 1], scale);
        t.check(v, clip, zy, None, &["reshape", "conv2d", "requantize", "reshape"]);
    }

    #[test]
    fn sums_and_functions_before_reshapes(seed in 0u64..1000, za in -128i32..128, zy in -128i32..128, clip in clips(), sum: bool) {
        let mut t = Build::new(seed);
        let a = t.input(&[4, 6], 0.02, za);
        let v = if sum {
            let b = t.input(&[4, 1], 0.03, 7);
            t.b.node("add", Add {}, &[a, b]).unwrap()
        } else {
            t.b.node("f", Unary { kind: UnaryKind::Sigmoid, alpha: 0.0, beta: 0.0 }, &[a]).unwrap()
        };
        let v = t.b.node("shape", Reshape { shape: vec![2, 2, 6] }, &[v]).unwrap();
        let v = t.b.node("flat", Reshape { shape: vec![2, 12] }, &[v]).unwrap();
        t.check(v, clip, zy, None, &[if sum { "qadd" } else { "lookup" }, "reshape", "reshape"]);
    }

    #[test]
    fn additions(
        seed in 0u64..1000, za in -128i32..128, zb in -128i32..128, zy in -128i32..128, clip in clips(),
        sa in 0.001f32..0.1, sb in 0.001f32..0.1,
    ) {
        let mut t = Build::new(seed);
        let (a, b) = (t.input(&[2, 3, 8], sa, za), t.input(&[2, 3, 8], sb, zb));
        let v = t.b.node("add", Add {}, &[a, b]).unwrap();
        t.check(v, clip, zy, None, &["qadd"]);
    }

    #[test]
    fn averages(
        seed in 0u64..1000, layout in layouts(), kernel in prop::array::uniform2(1usize..4),
        strides in prop::array::uniform2(1usize..3), same: bool, global: bool,
        zx in -128i32..128, zy in -128i32..128, scale in 0.001f32..0.1, clip in clips(),
    ) {
        let mut t = Build::new(seed);
        // With equal scales, only odd numbers of elements have no ties.
        let height = if same { 5 } else { 6 };
        let x = t.input(&image(layout, 3, height, 7), scale, zx);
        let kernel = if same { kernel.map(|k| k | 1) } else { kernel };
        let op: crate::graph::Op = if global {
            GlobalAvgPool { layout, lo: -128, hi: 127 }.into()
        } else {
            let pads = [0; 4];
            AvgPool2d { kernel, strides, pads, count_include_pad: false, layout, lo: -128, hi: 127, unsigned: false }.into()
        };
        let v = t.b.node("pool", op, &[x]).unwrap();
        let one = if global { "global_avg_pool" } else { "avg_pool2d" };
        if same {
            t.check(v, clip, zx, Some(scale), &[one]);
        } else {
            t.check(v, clip, zy, Some(scale * NO_TIES), &["sum_pool2d", "requantize"]);
        }
    }

    #[test]
    fn averages_with_many_ties_stay_float(
        seed in 0u64..1000, kernel in 0usize..5, ratio in 0usize..3, zx in -128i32..128, scale in 0.001f32..0.1,
    ) {
        let mut t = Build::new(seed);
        let x = t.input(&[1, 3, 12, 12], scale, zx);
        // Numbers of elements and ratios of scales for which one in every few sums is a tie.
        let (kernel, ratio) = match (kernel, [1.0, 0.5, 2.0][ratio]) {
            (0, ratio) => ([2, 2], ratio),
            (1, 2.0) => ([4, 1], 2.0),
            (1, _) => ([3, 3], 0.5),
            (2, ratio) => ([1, 12], ratio),
            (3, ratio) => ([8, 8], ratio),
            (_, ratio) => ([12, 12], ratio),
        };
        let op = AvgPool2d {
            kernel, strides: [1, 1], pads: [0; 4], count_include_pad: false, layout: Layout::Nchw, lo: -128, hi: 127,
            unsigned: false,
        };
        let v = t.b.node("pool", op, &[x]).unwrap();
        t.check(v, None, zx, Some(scale / ratio), &["dequantize", "avg_pool2d", "quantize"]);
    }

    #[test]
    fn padding_that_does_not_count(
        seed in 0u64..1000, zx in -128i32..128, zy in -128i32..128, scale in 0.001f32..0.1, clip in clips(),
        pads in prop::array::uniform4(0usize..3), strides in prop::array::uniform2(1usize..3), layout in layouts(),
    ) {
        prop_assume!(pads != [0; 4]);
        let mut t = Build::new(seed);
        let x = t.input(&image(layout, 3, 6, 7), scale, zx);
        let op = AvgPool2d {
            kernel: [3, 3], strides, pads, count_include_pad: false, layout, lo: -128, hi: 127, unsigned: false,
        };
        let v = t.b.node("pool", op, &[x]).unwrap();
        t.check(v, clip, zy, Some(scale * NO_TIES), &["qavg_pool2d"]);
    }

    #[test]
    fn counted_padding(
        seed in 0u64..1000, zx in -128i32..128, zy in -128i32..128, scale in 0.001f32..0.1, pads in prop::array::uniform4(0usize..3),
    ) {
        let mut t = Build::new(seed);
        let x = t.input(&[1, 3, 6, 7], scale, zx);
        let op = AvgPool2d {
            kernel: [3, 3], strides: [2, 2], pads, count_include_pad: true, layout: Layout::Nchw, lo: -128, hi: 127,
            unsigned: false,
        };
        let v = t.b.node("pool", op, &[x]).unwrap();
        t.check(v, None, zy, Some(scale * NO_TIES), &["sum_pool2d", "requantize"]);
    }

    #[test]
    fn slopes_behind_products(
        seed in 0u64..1000, kind in 0i32..3, dense: bool, alpha in 0.01f32..1.9, zx in -128i32..128, zy in -128i32..128,
        scale in 0.001f32..0.1, per_channel: bool, bias in 0i32..4, clip: bool,
    ) {
        // A bound at 0 would leave nothing of the slopes.
        let clip = clip.then_some((-1.0, 1.0));
        let mut t = Build::new(seed);
        let channels = 4;
        let v = if dense {
            let (x, w) = (t.input(&[3, 10], scale, zx), t.weight(&[channels, 10], per_channel));
            t.b.node("dense", Dense { data_zero_point: 0, weight_zero_point: 0 }, &[x, w]).unwrap()
        } else {
            let x = t.input(&[1, 3, 6, 5], scale, zx);
            let w = t.weight(&[channels, 3, 3, 3], per_channel);
            let op = Conv2d {
                strides: [1, 2], pads: [1, 0, 1, 1], dilations: [1, 1], groups: 1, layout: Layout::Nchw,
                data_zero_point: 0, weight_zero_point: 0,
            };
            t.b.node("conv", op, &[x, w]).unwrap()
        };
        let v = if dense { t.biased(v, bias, &[channels], scale) } else { v };
        let slope = |i: usize| (alpha / 2.0 + i as f32 / 7.0).min(1.0);
        let v = match kind {
            // One slope for all channels, also above 1.
            0 => t.b.node("leaky", Unary { kind: UnaryKind::LeakyRelu, alpha, beta: 0.0 }, &[v]).unwrap(),
            // One slope per channel, as floats or as dequantized bytes.
            kind => {
                let shape: &[usize] = if dense { &[channels] } else { &[channels, 1, 1] };
                let slopes = if kind == 1 {
                    t.b.constant("slopes", Tensor::from_fn(shape, slope))
                } else {
                    let bytes = t.b.constant("slopes", Tensor::from_fn(shape, |i| (slope(i) * 100.0) as i8));
                    t.dequantize(bytes, vec![0.01], vec![0])
                };
                let below = t.b.node("below", Binary { kind: BinaryKind::Mul }, &[v, slopes]).unwrap();
                t.b.node("leaky", Binary { kind: BinaryKind::Max }, &[below, v]).unwrap()
            }
        };
        let (h, _) = t.legal(v, clip, zy, None);
        let ops: Vec<_> = h.nodes().map(|(_, n)| n.op.name()).filter(|&n| n != "constant").collect();
        let expected = [if dense { "dense" } else { "conv2d" }, "requantize", "requantize", "binary"];
        // A channel with a slope of 0 can have a bound of its own.
        let flat = kind == 2 && clip.is_some() && (slope(0) * 100.0) as i8 == 0;
        let more: &[&str] = if flat && ops.len() > expected.len() { &["binary"] } else { &[] };
        prop_assert_eq!(ops, [&expected, more].concat(), "{}", h);
    }

    #[test]
    fn scales_far_apart_saturate(
        seed in 0u64..1000, far in 8i32..100, zx in -128i32..128, zy in -128i32..128, exponent in -10i32..-3, kind in 0usize..5,
    ) {
        let mut t = Build::new(seed);
        // A power of two, so that the float sums are exact. A sum that cancels must be 0 in both forms, because only
        // such sums do not saturate.
        let scale = 2f32.powi(exponent);
        let (v, of, integer): (_, _, &[&str]) = match kind {
            0 => (t.input(&[300], scale, zx), scale, &["rescale"]),
            1 => {
                let (a, b) = (t.input(&[200], scale, zx), t.input(&[200], 1.0, zy));
                (t.b.node("mul", Binary { kind: BinaryKind::Mul }, &[a, b]).unwrap(), scale, &["qmul"])
            }
            2 => {
                let (a, b) = (t.input(&[3, 6], scale, zx), t.input(&[6, 4], 1.0, zy));
                (t.b.node("matmul", MatMul {}, &[a, b]).unwrap(), scale, &["qmatmul", "requantize"])
            }
            3 => {
                let x = t.input(&[1, 2, 6, 6], scale, zx);
                let pads = [0; 4];
                let op = AvgPool2d {
                    kernel: [3, 3], strides: [3, 3], pads, count_include_pad: true, layout: Layout::Nchw, lo: -128,
                    hi: 127, unsigned: false,
                };
                (t.b.node("pool", op, &[x]).unwrap(), scale / 9.0, &["sum_pool2d", "requantize"])
            }
            _ => {
                let (x, w) = (t.input(&[3, 10], scale, zx), t.tensor(&[4, 10]));
                let w = t.b.constant("w", w);
                let w = t.dequantize(w, vec![0.5], vec![0]);
                let op = Dense { data_zero_point: 0, weight_zero_point: 0 };
                (t.b.node("dense", op, &[x, w]).unwrap(), scale * 0.5, &["dense", "requantize"])
            }
        };
        t.check(v, None, zy, Some(of / 2f32.powi(far)), integer);
    }

    #[test]
    fn clamps_and_rescales(
        seed in 0u64..1000, zx in -128i32..128, zy in -128i32..128, scale in 0.001f32..0.1, clip in clips(), relu: bool,
    ) {
        let mut t = Build::new(seed);
        let mut v = t.input(&[300], scale, zx);
        if relu {
            v = t.b.node("relu", Relu {}, &[v]).unwrap();
        }
        t.check(v, clip, zy, None, &["rescale"]);
    }

    #[test]
    fn moves(seed in 0u64..1000, zx in -128i32..128, scale in 0.001f32..0.1) {
        let mut t = Build::new(seed);
        let v = t.input(&[1, 3, 6, 7], scale, zx);
        let pool = MaxPool2d {
            kernel: [3, 2], strides: [1, 2], pads: [1, 0, 1, 1], dilations: [1, 1], layout: Layout::Nchw,
        };
        let v = t.b.node("pool", pool, &[v]).unwrap();
        let v = t.b.node("pad", Pad { before: vec![0, 0, 1, 0], after: vec![0, 0, 0, 2], value: 0.0 }, &[v]).unwrap();
        let v = t.b.node("transpose", Transpose { perm: vec![0, 2, 3, 1] }, &[v]).unwrap();
        let v = t.b.node("flatten", Reshape { shape: vec![0, -1] }, &[v]).unwrap();
        t.check(v, None, zx, Some(scale), &["max_pool2d", "pad", "transpose", "reshape"]);
    }

    #[test]
    fn differences(
        seed in 0u64..1000, za in -128i32..128, zb in -128i32..128, zy in -128i32..128, clip in clips(),
        sa in 0.001f32..0.1, sb in 0.001f32..0.1,
    ) {
        let mut t = Build::new(seed);
        let (a, b) = (t.input(&[2, 3, 8], sa, za), t.input(&[2, 3, 8], sb, zb));
        let v = t.b.node("sub", Binary { kind: BinaryKind::Sub }, &[a, b]).unwrap();
        t.check(v, clip, zy, None, &["qadd"]);
    }

    #[test]
    fn products(
        seed in 0u64..1000, za in -128i32..128, zb in -128i32..128, zy in -128i32..128, clip in clips(),
        sa in 0.001f32..0.1, sb in 0.001f32..0.1, elements: bool,
    ) {
        let mut t = Build::new(seed);
        if elements {
            let (a, b) = (t.input(&[2, 3, 8], sa, za), t.input(&[3, 1], sb, zb));
            let v = t.b.node("mul", Binary { kind: BinaryKind::Mul }, &[a, b]).unwrap();
            t.check(v, clip, zy, None, &["qmul"]);
        } else {
            let (a, b) = (t.input(&[2, 3, 8], sa, za), t.input(&[8, 5], sb, zb));
            let v = t.b.node("matmul", MatMul {}, &[a, b]).unwrap();
            t.check(v, clip, zy, None, &["qmatmul", "requantize"]);
        }
    }

    #[test]
    fn factors(seed in 0u64..1000, za in -128i32..128, zy in -128i32..128, sa in 0.001f32..0.1, by in 0.01f32..9.0, div: bool) {
        let mut t = Build::new(seed);
        let a = t.input(&[300], sa, za);
        let by = t.b.constant("by", Tensor::scalar(by));
        let kind = if div { BinaryKind::Div } else { BinaryKind::Mul };
        let v = t.b.node("by", Binary { kind }, &[a, by]).unwrap();
        t.check(v, None, zy, None, &["rescale"]);
    }

    #[test]
    fn functions(seed in 0u64..1000, za in -128i32..128, zy in -128i32..128, sa in 0.001f32..0.05, kind in 0usize..26) {
        let kind = UnaryKind::ALL[kind];
        prop_assume!(!matches!(kind, UnaryKind::Not | UnaryKind::Log | UnaryKind::Sqrt | UnaryKind::Reciprocal));
        let mut t = Build::new(seed);
        let x = t.input(&[400], sa, za);
        let v = t.b.node("f", Unary { kind, alpha: 0.2, beta: 0.5 }, &[x]).unwrap();
        // x * f(x) + 1 is still a function of one byte.
        let v = t.b.node("mul", Binary { kind: BinaryKind::Mul }, &[x, v]).unwrap();
        let one = t.b.constant("one", Tensor::vector(vec![1f32]));
        let v = t.b.node("add", Add {}, &[v, one]).unwrap();
        t.check(v, None, zy, None, &["lookup"]);
    }

    #[test]
    fn concatenations(seed in 0u64..1000, za in -128i32..128, zb in -128i32..128, sa in 0.001f32..0.1, sb in 0.001f32..0.1) {
        let mut t = Build::new(seed);
        let (a, b) = (t.input(&[2, 3, 8], sa, za), t.input(&[2, 4, 8], sb, zb));
        let v = t.b.node("concat", Concat { axis: 1 }, &[a, b]).unwrap();
        t.check(v, None, za, Some(sa), &["rescale", "concat"]);
    }

    #[test]
    fn chosen_parts(seed in 0u64..1000, zx in -128i32..128, scale in 0.001f32..0.1) {
        let mut t = Build::new(seed);
        let x = t.input(&[4, 6], scale, zx);
        let part = Slice { starts: vec![1, 5], sizes: vec![3, 3], steps: vec![1, -2] };
        let v = t.b.node("slice", part, &[x]).unwrap();
        let index = t.b.constant("index", Tensor::vector(vec![2i64, 0, 1, 1]));
        let v = t.b.node("gather", Gather { axis: 0 }, &[v, index]).unwrap();
        let v = t.b.node("concat", Concat { axis: 0 }, &[v, v]).unwrap();
        t.check(v, None, zx, Some(scale), &["slice", "gather", "concat"]);
    }

    #[test]
    fn transposed_convolutions(
        seed in 0u64..1000, per_channel: bool, zx in -128i32..128, zy in -128i32..128, scale in 0.001f32..0.1,
    ) {
        let mut t = Build::new(seed);
        let x = t.input(&[1, 4, 3, 5], scale, zx);
        let w = t.weight(&[3, 3, 2, 4], per_channel);
        let op = ConvTranspose2d {
            strides: [2, 3], pads: [1, 0], size: [6, 14], dilations: [1, 1], groups: 1, layout: Layout::Nchw,
            data_zero_point: 0, weight_zero_point: 0,
        };
        let v = t.b.node("conv", op, &[x, w]).unwrap();
        t.check(v, None, zy, None, &["conv_transpose2d", "requantize"]);
    }

    #[test]
    fn softmaxes(seed in 0u64..1000, axis in 0usize..3, zx in -128i32..128, scale in 0.001f32..0.2) {
        let mut t = Build::new(seed);
        let x = t.input(&[2, 9, 5], scale, zx);
        let v = t.b.node("softmax", Softmax::float(axis, 1.0), &[x]).unwrap();
        t.check(v, None, -128, Some(1.0 / 256.0), &["softmax"]);
    }
}
