//! Compares scalar operations and loop kinds of generated code with the evaluator.

use tilewright_compiler::suite::Numbers;
use tilewright_compiler::te::{Array, DType, Scalar};
use tilewright_compiler::tir::{Function, parse, run, verify};

use crate::{Processor, Runner};

/// Runs a function as object code.
fn compiled(f: &Function, inputs: &[Array]) -> Vec<Array> {
    let mut runner = Runner::new(&Processor::detect().unwrap(), f).unwrap_or_else(|e| panic!("{e}"));
    runner.set_inputs(inputs).unwrap();
    // SAFETY: the tests' programs stay within their buffers; the evaluator runs them too.
    unsafe { runner.run() };
    runner.outputs()
}

/// Checks that the compiled function and the evaluator give the same bits. Any NaN equals any NaN.
fn check(text: &str, inputs: &[Array]) {
    let f = parse(text).unwrap();
    verify(&f).unwrap();
    let want = run(&f, inputs).unwrap();
    for (g, w) in compiled(&f, inputs).iter().zip(&want) {
        for i in 0..w.len() {
            let (a, b) = (g.get(i).unwrap(), w.get(i).unwrap());
            let nan = !matches!(a, Scalar::I(_)) && a.double().is_nan() && b.double().is_nan();
            assert!(nan || a == b, "element {i}: {a:?}, evaluated {b:?}\n{text}");
        }
    }
}

/// Tests `c[i] = e` for each `i`: element by element, and with vectors of eight and of three lanes.
fn check_each(buffers: &str, len: i64, e: &str, inputs: &[Array]) {
    check(&format!("function f {{ {buffers} for i in {len} {{ block x {{ c[i] = {e} }} }} }}"), inputs);
    for lanes in [8, 3] {
        let (whole, at) = (len / lanes, format!("[v * {lanes} + l]"));
        let (wide, rest) = (e.replace("[i]", &at), e.replace("[i]", &format!("[r + {}]", whole * lanes)));
        check(
            &format!(
                "function f {{ {buffers} for v in {whole} {{ vectorized l in {lanes} {{ block x {{ c{at} = {wide} }} }} }}
                   for r in {} {{ block y {{ c[r + {}] = {rest} }} }} }}",
                len - whole * lanes,
                whole * lanes
            ),
            inputs,
        );
    }
}

/// Returns numbers of a type, including extremes and small ones.
fn array(n: &mut Numbers, t: DType, len: i64) -> Array {
    let mut a = Array::zeros(t, &[len]);
    let (lo, hi) = tilewright_compiler::te::scalar::range(t);
    let floats = [
        0.0,
        -0.0,
        0.5,
        -0.5,
        1.5,
        2.5,
        -2.5,
        1e10,
        -1e10,
        300.0,
        -129.0,
        127.0,
        255.0,
        2_147_483_520.0,
        2_147_483_648.0,
        -2_147_483_648.0,
        -104.0,
        88.75,
        f32::NAN,
        f32::INFINITY,
        f32::NEG_INFINITY,
        0.49999997,
    ];
    let doubles =
        [9_223_372_036_854_775_808.0, 18_446_744_073_709_551_616.0, 4_294_967_295.5, 1e300, -1e300, 2_147_483_647.5];
    for i in 0..len as usize {
        let special = n.int(0, 3) == 0;
        let v = match t {
            DType::F32 if special => Scalar::F(floats[n.size(0, floats.len() - 1)]),
            DType::F32 => Scalar::F(n.float() * 100.0),
            DType::F64 if special && n.int(0, 2) == 0 => Scalar::D(doubles[n.size(0, doubles.len() - 1)]),
            DType::F64 if special => Scalar::D(floats[n.size(0, floats.len() - 1)].into()),
            DType::F64 => Scalar::D(f64::from(n.float()) * 100.0 + f64::from(n.float()) * 1e-8),
            _ if special => Scalar::I([lo, hi, 0, 1, lo + 1][n.size(0, 4)]),
            _ => Scalar::I(tilewright_compiler::te::scalar::wrap(n.int(-(1 << 40), 1 << 40) >> n.int(0, 38), t)),
        };
        a.set(i, v);
    }
    a
}

#[test]
fn integer_operations_equal_the_evaluator() {
    let mut n = Numbers::new(3);
    for &t in DType::INTEGERS {
        let ops = ["a[i] + b[i]", "a[i] - b[i]", "a[i] * b[i]", "a[i] / b[i]", "a[i] % b[i]", "min(a[i], b[i])"];
        let more = ["max(a[i], b[i])", "a[i] << b[i]", "a[i] >> b[i]", "select(a[i] < b[i], a[i], b[i])"];
        let bits = ["a[i] & b[i]", "a[i] | b[i]", "a[i] ^ b[i] & a[i]"];
        let last = ["select(a[i] <= b[i] && a[i] != b[i] || b[i] == a[i], b[i], a[i])"];
        let inputs = [array(&mut n, t, 500), array(&mut n, t, 500)];
        for e in ops.iter().chain(&more).chain(&bits).chain(&last) {
            check_each(&format!("input a: {t}[500] input b: {t}[500] output c: {t}[500]"), 500, e, &inputs);
        }
    }
}

#[test]
fn conversions_equal_the_evaluator() {
    let mut n = Numbers::new(4);
    for from in DType::ALL {
        let input = [array(&mut n, from, 300)];
        for to in DType::ALL {
            check_each(&format!("input a: {from}[300] output c: {to}[300]"), 300, &format!("{to}(a[i])"), &input);
        }
    }
}

#[test]
fn bits_as_another_type_equal_the_evaluator() {
    let mut n = Numbers::new(9);
    for &from in DType::NUMBERS {
        let input = [array(&mut n, from, 100)];
        for &to in DType::NUMBERS.iter().filter(|to| to.size_bytes() == from.size_bytes()) {
            check_each(
                &format!("input a: {from}[100] output c: {to}[100]"),
                100,
                &format!("bitcast_{to}(a[i])"),
                &input,
            );
        }
    }
}

#[test]
fn float_operations_equal_the_evaluator() {
    let mut n = Numbers::new(5);
    let ops = "a[i] + b[i];a[i] - b[i];a[i] * b[i];a[i] / b[i];min(a[i], b[i]);max(a[i], b[i]);exp(a[i]);log(a[i]);\
        sqrt(a[i]);tanh(a[i]);erf(a[i]);pow(a[i], b[i]);floor(a[i]);ceil(a[i]);round_even(a[i]);round_away(a[i]);\
        abs(a[i]);select(a[i] < b[i], inf, nan);select(a[i] <= b[i] || a[i] != b[i], -inf, 1.5f32)";
    for t in DType::FLOATS {
        let inputs = [array(&mut n, *t, 400), array(&mut n, *t, 400)];
        let named = if *t == DType::F64 { "f64" } else { "" };
        for e in ops.split(';') {
            let e = e.replace("inf", &format!("inf{named}")).replace("nan", &format!("nan{named}"));
            let e = e.replace("1.5f32", &format!("1.5{t}"));
            check_each(&format!("input a: {t}[400] input b: {t}[400] output c: {t}[400]"), 400, &e, &inputs);
        }
    }
}

#[test]
fn quantized_arithmetic_equals_num() {
    let mut n = Numbers::new(6);
    let len = 20_000;
    let mut inputs: Vec<Array> = (0..4).map(|_| array(&mut n, DType::I32, len)).collect();
    for i in 0..len as usize {
        inputs[2].set(i, Scalar::I(n.int(-40, 40)));
    }
    let ops =
        ["scale_double(a[i], b[i], s[i])", "scale_single(a[i], b[i], s[i])", "offset_clamp(a[i], b[i], s[i], d[i])"];
    for e in ops.iter().chain(&[
        "doubling_high_mul(a[i], b[i])",
        "rounding_shift(a[i], s[i])",
        "scale_double(a[i], b[i], -7i32)",
        "offset_clamp(a[i], -3i32, -128i32, 127i32)",
        "offset_clamp(a[i], 2147483647i32, -2147483648i32, 127i32)",
    ]) {
        let buffers =
            "input a: i32[20000] input b: i32[20000] input s: i32[20000] input d: i32[20000] output c: i32[20000]";
        check_each(buffers, len, e, &inputs);
    }
}

#[test]
fn every_kind_of_loop_and_block_runs() {
    let mut n = Numbers::new(7);
    let inputs = [array(&mut n, DType::I32, 60)];
    // Guards, initialization inside the loop, a sum over rows of other threads, stack and workspace buffers, a call.
    check(
        "function f { input a: i32[60] output c: i32[6, 4] output d: i32[6]
           local t: i32[6, 10] local s: i32[10] in local local big: i32[6, 2000]
           intrinsic double { param p: i32[4] param q: i32[4] for k in 4 { block two { q[k] = p[k] + p[k] } } }
           parallel i in 6 { vectorized j in 10 { block copy { t[i, j] = a[i * 10 + j] } } }
           for o in 2 { parallel p in 3 { for q in 2000 { block wide { big[o * 3 + p, q] = t[o * 3 + p, q % 10] + i32(q) } } } }
           parallel i2 in 6 { for j2 in 10 { block stage { s[j2] = t[i2, j2] * 3i32 } }
             for k2 in 10 { block sum reduce(k2) where(k2 < 7) { init 5i32 d[i2] = d[i2] + s[k2] + big[i2, k2 * 199] } } }
           for i3 in 6 { unrolled j3 in 4 { block clear where(j3 != 2 || i3 < 6) { c[i3, j3] = t[i3, j3 + 2] } } 
             block call where(i3 < 5) { call double(t[m => i3, m], c[m => i3 + 1, m]) } }
           pipeline z in 3 { block none where(z < 0) { d[z] = 0i32 } } }",
        &inputs,
    );
}

#[test]
fn vectorized_loops_run_whatever_their_blocks_do() {
    let mut n = Numbers::new(8);
    let inputs = [array(&mut n, DType::I32, 64), array(&mut n, DType::F32, 64)];
    // Access: consecutive, strided, at one place, by a general expression. Guards: of some lanes and of all. Selects:
    // by row and by lane, of memory and of numbers. Sums: over other loops and over the lanes. Loops inside.
    check(
        "function f { input a: i32[64] input x: f32[64] output c: i32[8, 9] output d: i32[9, 8] output e: i32[8] output g: f32[64]
           local t: i32[8, 8] in local
           for i1 in 8 { vectorized j1 in 9 { block masked where(i1 * 9 + j1 < 64) { c[i1, j1] = a[i1 * 9 + j1] + i32(j1) } } }
           for i2 in 2 { vectorized j2 in 9 { block rest where(63 < (i2 + 6) * 9 + j2) { c[i2 + 6, j2] = a[i2] - 1i32 } } }
           for i3 in 8 { vectorized j3 in 9 { block turned { d[j3, i3] = a[(i3 * 7 + j3 * 5) % 64] } } }
           for i4 in 8 { vectorized j4 in 8 { block pad { t[i4, j4] = select(1 <= i4 && i4 < 7, a[i4 * 8 + j4 - 8], 3i32) } } }
           for i5 in 8 { vectorized j5 in 8 { block lane { t[i5, j5] = t[i5, j5] + select(j5 < 3, i32(i5), 100i32) } } }
           for i6 in 8 { vectorized j6 in 8 { block odd { t[i6, j6] = t[i6, j6] * select(j6 < 3, a[j6], 2i32) } } }
           for i7 in 8 { vectorized j7 in 8 { block sum reduce(j7) { init 1i32 e[i7] = e[i7] + t[i7, j7] } } }
           vectorized j8 in 8 { for i8 in 8 { block columns reduce(i8) where(j8 < 7) { init 0i32 e[j8] = e[j8] + t[i8, j8] * a[i8] } } }
           for i9 in 8 { vectorized j9 in 8 { block functions { g[i9 * 8 + j9] = exp(x[i9 * 8 + j9]) + round_away(x[j9]) } } }
           for i10 in 4 { vectorized j10 in 8 { block none where(j10 < i10 - 4) { t[i10, j10] = 0i32 } } } }",
        &inputs,
    );
}
