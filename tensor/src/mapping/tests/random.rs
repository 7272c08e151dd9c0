//! Random schedules: each is refused with a reason, or right on the cycle model with `--strict`.

use super::Mapping;
use crate::schedule::text::parse_steps;
use crate::te;
use crate::testing::data;
use crate::tir::evaluate;
use rand::rngs::StdRng;
use rand::{Rng, SeedableRng};
use tilewright_hw::HwConfig;
use tilewright_sim::{Csim, CsimOptions};

const MEMORY: u64 = 1 << 20;

/// Configurations: with and without padding in loads, unequal blocks, batch rows, small and large scratchpads.
const CONFIGS: [&str; 6] = ["1x4x2", "1x4x4", "1x8x8", "1x8x16", "1x16x16", "4x16x16"];

/// Random numbers.
struct Numbers(StdRng);

impl Numbers {
    fn new(seed: u64) -> Numbers {
        Numbers(StdRng::seed_from_u64(seed))
    }

    /// Returns a number from `lo` to `hi`, both included.
    fn int(&mut self, lo: i64, hi: i64) -> i64 {
        self.0.random_range(lo..=hi)
    }
}

/// Draws from a list.
fn pick<'l, T>(n: &mut Numbers, list: &'l [T]) -> &'l T {
    &list[n.int(0, list.len() as i64 - 1) as usize]
}

/// Draws whether something is so, in `share` of 100 cases.
fn chance(n: &mut Numbers, share: i64) -> bool {
    n.int(1, 100) <= share
}

/// An order of a list.
fn shuffled<'l>(n: &mut Numbers, list: &[&'l str]) -> Vec<&'l str> {
    let mut left = list.to_vec();
    let mut order = Vec::new();
    while !left.is_empty() {
        order.push(left.remove(n.int(0, left.len() as i64 - 1) as usize));
    }
    order
}

/// Steps that every requantized reduction begins with, without those of its operands.
const REQUANT: &str =
    "set_scope sum acc; cache_read c bias param; cache_read c multiplier param; cache_read c shift param
                       cache_write c out\n";

/// Where the result is tiled, and what is computed there.
fn tiles(n: &mut Numbers, loops: &[(&str, i64)], inner: &[&str], inputs: &[&str]) -> String {
    let mut steps = String::new();
    let (mut outer, mut rest) = (Vec::new(), Vec::new());
    for (name, extent) in loops {
        if chance(n, 70) {
            steps += &format!("split c.write.{name} {}\n", n.int(1, *extent));
            outer.push(format!("c.write.{name}.0"));
            rest.push(format!("c.write.{name}.1"));
        } else {
            rest.push(format!("c.write.{name}"));
        }
    }
    let names: Vec<&str> = outer.iter().map(String::as_str).collect();
    let outer = shuffled(n, &names);
    if !outer.is_empty() {
        steps += &format!("reorder {} {}\n", outer.join(" "), rest.join(" "));
        let at = *pick(n, &outer);
        for block in inner {
            steps += &format!("compute_at {block} {at}\n");
            if chance(n, 90) {
                steps += &format!("compact {}\n", if *block == "c" { "c.out" } else { block });
            }
        }
        for buffer in inputs {
            if chance(n, 80) {
                steps += &format!("compute_at {buffer} {}\n", pick(n, &outer));
                if chance(n, 90) {
                    steps += &format!("compact {buffer}\n");
                }
            }
        }
        for l in outer {
            if chance(n, 50) {
                steps += &format!("annotate {l} pipeline\n");
            }
        }
    }
    steps
}

/// Two int8 tensors combined element by element, in one step or two.
fn elementwise(n: &mut Numbers, config: &HwConfig) -> (String, String) {
    let (rows, batch, bo) = (n.int(1, 40), config.batch, config.block_out);
    let (op, value) = *pick(
        n,
        &[
            ("add", "i32(a[i, n, j]) + i32(b[i, n, j])"),
            ("sub", "i32(a[i, n, j]) - i32(b[i, n, j])"),
            ("max", "max(i32(a[i, n, j]), i32(b[i, n, j]))"),
            ("min", "min(i32(b[i, n, j]), i32(a[i, n, j]))"),
            ("add", "i32(a[i, n, j]) + 100i32"),
            ("clip", "min(max(i32(a[i, n, j]), -20i32), 30i32)"),
            ("shr", "i32(a[i, n, j]) >> 2i32"),
            ("move", "i32(a[i, n, j])"),
        ],
    );
    let two = value.contains("b[");
    let second = if two { format!("input b: i8[{rows}, {batch}, {bo}]\n") } else { String::new() };
    let expression = format!(
        "te element {{ input a: i8[{rows}, {batch}, {bo}]\n {second}
         output c: i8[i in {rows}, n in {batch}, j in {bo}] = i8(min(max({value}, -128i32), 127i32)) }}"
    );
    let first = *pick(n, &["inp", "out"]);
    let mut steps = format!("cache_read c a {first}\n");
    let mut inputs = vec![if first == "inp" { "a.inp" } else { "a.out" }];
    if two {
        steps += "cache_read c b out\n";
        inputs.push("b.out");
    }
    steps += "cache_write c out\n";
    steps += &tiles(n, &[("i0", rows)], &["c"], &inputs);
    steps += &format!("tensorize c.n {op}\n");
    (expression, steps)
}

/// A product of matrices with requantization.
fn product(n: &mut Numbers, config: &HwConfig) -> (String, String) {
    let (batch, bi, bo) = (config.batch, config.block_in, config.block_out);
    let (rows, depth, columns) = (n.int(1, 12), n.int(1, 5), n.int(1, 5));
    let start = if chance(n, 20) { " from 0i32" } else { "" };
    let expression = format!(
        "te product {{ input a: i8[{rows}, {depth}, {batch}, {bi}]\n input w: i8[{columns}, {depth}, {bo}, {bi}]
         input bias: i32[{columns}, {bo}]\n input multiplier: i32[{columns}, {bo}]\n input shift: i32[{columns}, {bo}]
         sum: i32[j in {columns}, i in {rows}, n in {batch}, o in {bo}] = sum(k in {depth}, l in {bi}{start})
           i32(a[i, k, n, l]) * i32(w[j, k, o, l])
         output c: i8[j in {columns}, i in {rows}, n in {batch}, o in {bo}] = i8(offset_clamp(scale_double(
           sum[j, i, n, o] + bias[j, o], multiplier[j, o], shift[j, o]), {}i32, {}i32, 127i32)) }}",
        n.int(-9, 9),
        n.int(-128, 0)
    );
    let mut steps = format!("cache_read sum a inp; cache_read sum w wgt\n{REQUANT}");
    let moved = tiles(n, &[("i0", columns), ("i1", rows)], &["c", "sum"], &["a.inp", "w.wgt", "bias.param"]);
    for line in moved.lines() {
        // Multipliers and shifts share the entries of the biases. Without them the schedule is refused.
        let others: &[&str] = if chance(n, 90) { &["multiplier.param", "shift.param"] } else { &[] };
        steps += &format!("{line}\n");
        for other in others.iter().filter(|_| line.contains("bias.param")) {
            steps += &format!("{}\n", line.replace("bias.param", other));
        }
    }
    let order = shuffled(n, &["sum.j", "sum.i", "sum.k"]);
    steps += &format!("reorder {} sum.n sum.o sum.l\n", order.join(" "));
    steps += &format!("decompose_reduction sum {}\n", if chance(n, 80) { order[0] } else { "sum.k" });
    steps += "tensorize sum.n gemm; tensorize c.n requant\n";
    (expression, steps)
}

/// A convolution with padding, steps and requantization.
fn convolution(n: &mut Numbers, config: &HwConfig) -> (String, String) {
    let (batch, bi, bo) = (config.batch, config.block_in, config.block_out);
    let (height, width, kernel, step) = (n.int(3, 9), n.int(3, 9), n.int(1, 3), n.int(1, 2));
    let (pad, blocks, columns) = (n.int(0, 2), n.int(1, 2), n.int(1, 3));
    let side = |size: i64| (size + 2 * pad - kernel) / step + 1;
    let (rows, across) = (side(height), side(width));
    let (whole, wide) = (height + 2 * pad, width + 2 * pad);
    let value = n.int(-128, 127);
    let expression = format!(
        "te conv {{ input x: i8[{blocks}, {height}, {width}, {batch}, {bi}]
         input w: i8[{columns}, {blocks}, {kernel}, {kernel}, {bo}, {bi}]
         input bias: i32[{columns}, {bo}]\n input multiplier: i32[{columns}, {bo}]\n input shift: i32[{columns}, {bo}]
         padded: i8[b in {blocks}, y in {whole}, x in {wide}, n in {batch}, c in {bi}] =
           select({pad} <= y && y < {height} + {pad} && {pad} <= x && x < {width} + {pad},
             x[b, y - {pad}, x - {pad}, n, c], {value}i8)
         sum: i32[j in {columns}, y in {rows}, x in {across}, n in {batch}, o in {bo}] =
           sum(b in {blocks}, r in {kernel}, s in {kernel}, i in {bi})
             i32(padded[b, y * {step} + r, x * {step} + s, n, i]) * i32(w[j, b, r, s, o, i])
         output c: i8[j in {columns}, y in {rows}, x in {across}, n in {batch}, o in {bo}] = i8(offset_clamp(
           scale_double(sum[j, y, x, n, o] + bias[j, o], multiplier[j, o], shift[j, o]), 1i32, -128i32, 127i32)) }}"
    );
    let mut steps = format!("set_scope padded inp; cache_read sum w wgt\n{REQUANT}");
    let loops = [("i0", columns), ("i1", rows), ("i2", across)];
    steps += &tiles(n, &loops, &["c", "sum", "padded"], &["w.wgt"]);
    let order = shuffled(n, &["sum.j", "sum.y", "sum.x", "sum.b", "sum.r", "sum.s"]);
    steps += &format!("reorder {} sum.n sum.o sum.i\n", order.join(" "));
    steps += &format!("decompose_reduction sum {}\n", order[0]);
    steps += "tensorize sum.n gemm; tensorize c.n requant\n";
    (expression, steps)
}

/// What became of a schedule.
enum Drawn {
    Right,
    Refused(String),
}

/// Draws a schedule. Panics with everything needed to repeat it if it gives a wrong result.
fn draw(seed: u64) -> Drawn {
    let mut n = Numbers::new(seed);
    let config = HwConfig::load(pick::<&str>(&mut n, &CONFIGS)).unwrap();
    let make = *pick(&mut n, &[elementwise, product, convolution]);
    let (expression, steps) = make(&mut n, &config);
    let told = || format!("seed {seed} on {}\n{expression}\n{steps}", config.name);
    let program = te::text::parse(&expression).unwrap_or_else(|e| panic!("{e}\n{}", told()));
    let mut m = Mapping::new(&config, &program).unwrap();
    for (_, step) in parse_steps(&steps).unwrap_or_else(|e| panic!("{e:?}\n{}", told())) {
        if let Err(e) = m.apply(step) {
            return Drawn::Refused(e.to_string());
        }
    }
    let inputs = data(&program);
    let want = evaluate(&program, &inputs).unwrap();
    let lowered = match m.lower() {
        Ok(lowered) => lowered,
        Err(e) => return Drawn::Refused(e.to_string()),
    };
    let text = || lowered.program.disassemble(&config).unwrap_or_default();
    let mut device = Csim::new(config.clone(), MEMORY, CsimOptions { strict: true, ..CsimOptions::default() });
    let got = lowered.run(&mut device, &inputs, &want).map_err(|e| e.to_string());
    match got {
        Ok((got, _)) => assert!(got == want, "wrong result\n{}\n{}\n{}", told(), m.function(), text()),
        Err(e) => panic!("{e}\n{}\n{}\n{}", told(), m.function(), text()),
    }
    Drawn::Right
}

/// Draws schedules and returns how many are right.
fn draws(seeds: std::ops::Range<u64>) -> usize {
    let (mut right, mut reasons) = (0, std::collections::BTreeMap::<String, usize>::new());
    for seed in seeds {
        match draw(seed) {
            Drawn::Right => right += 1,
            Drawn::Refused(reason) => {
                let kind: String = reason.chars().filter(|c| !c.is_ascii_digit()).take(70).collect();
                *reasons.entry(kind).or_default() += 1;
            }
        }
    }
    println!("{right} right");
    for (reason, count) in reasons {
        println!("{count} refused: {reason}");
    }
    right
}

#[test]
fn random_schedules_are_right_or_refused() {
    assert!(draws(0..120) > 60);
}

#[test]
#[ignore = "long; make test-full runs it"]
fn many_random_schedules_are_right_or_refused() {
    assert!(draws(1000..3000) > 1000);
}
