//! Scheduled programs on the cycle model with `--strict`, against the evaluator.

mod choices;
mod overlays;
mod random;
mod sized;

use super::Mapping;
use crate::schedule::text::parse_steps;
use crate::te::{self, Array};
use crate::testing::{self, data};
use tilewright_hw::HwConfig;
use tilewright_sim::{Csim, CsimOptions};

const MEMORY: u64 = 1 << 20;

/// Applies the schedule, runs the instructions and compares them with the evaluator. Returns exact cycles and assembly.
fn check(config: &HwConfig, expression: &str, schedule: &str) -> (u64, String) {
    let program = te::text::parse(expression).unwrap_or_else(|e| panic!("{e}"));
    let mut m = Mapping::new(config, &program).unwrap();
    for (line, step) in parse_steps(schedule).unwrap() {
        m.apply(step).unwrap_or_else(|e| panic!("line {line}: {e}\n{}", m.function()));
    }
    compare(config, &m, &program, &data(&program))
}

fn compare(config: &HwConfig, m: &Mapping, program: &te::Program, inputs: &[Array]) -> (u64, String) {
    let mut device = Csim::new(config.clone(), MEMORY, CsimOptions { strict: true, ..CsimOptions::default() });
    testing::compare(&mut device, m, program, inputs)
}

fn preset(name: &str) -> HwConfig {
    HwConfig::load(name).unwrap()
}

const ADD: &str = "te add {
  input a: i8[64, 16]
  input b: i8[64, 16]
  output c: i8[i in 64, j in 16] = i8(min(max(i32(a[i, j]) + i32(b[i, j]), -128i32), 127i32))
}";

#[test]
fn vectors_are_added_in_scratchpads() {
    let plain = "cache_read c a inp; cache_read c b out; cache_write c out; tensorize c.j add";
    let (whole, text) = check(&preset("1x16x16"), ADD, plain);
    assert_eq!(text.matches("op=add").count(), 1, "{text}");
    let tiled = "cache_read c a inp; cache_read c b out; cache_write c out
                 split c.i 16; compute_at a.inp c.i.0; compute_at b.out c.i.0; compact a.inp; compact b.out
                 annotate c.i.0 pipeline; tensorize c.j add";
    let (overlapped, text) = check(&preset("1x16x16"), ADD, tiled);
    assert_eq!((whole, overlapped), (707, 688));
    assert_eq!(text.matches("op=add").count(), 4, "{text}");
}

#[test]
fn a_copy_keeps_what_it_stores() {
    let steps = "cache_read c a inp; cache_read c b out; cache_write c out
                 split c.write.i0 16; compute_at c c.write.i0.0; compact c.out; keep c.write c.write.i0.0 inp
                 slots c.inp 1; annotate c.write.i0.0 pipeline; tensorize c.j add; tensorize c.keep.i1 move";
    let (_, text) = check(&preset("1x16x16"), ADD, steps);
    assert_eq!((text.matches("vector dst=inp a=out").count(), text.matches("\nstore ").count()), (4, 4), "{text}");
}

const PRODUCT: &str = "te product {
  input a: i8[32, 64]
  input w: i8[4, 4, 16, 16]
  input bias: i32[4, 16]
  input multiplier: i32[4, 16]
  input shift: i32[4, 16]
  sum: i32[j in 4, i in 32, o in 16] = sum(k in 64) i32(a[i, k]) * i32(w[j, k / 16, o, k % 16])
  output c: i8[i in 32, j in 4, o in 16] = i8(offset_clamp(
    scale_double(sum[j, i, o] + bias[j, o], multiplier[j, o], shift[j, o]), 3i32, -128i32, 127i32))
}";

#[test]
fn products_are_requantized() {
    let (cycles, text) = check(&preset("1x16x16"), PRODUCT, PRODUCT_STEPS);
    assert_eq!(cycles, 2083);
    assert_eq!(text.matches("\ngemm ").count(), 2, "{text}");
}

/// A 3x3 convolution with padding, requantized, in tiles of rows. The last tile has fewer rows.
const CONV: &str = "te conv {
  input x: i8[2, 14, 14, 16]
  input w: i8[3, 2, 3, 3, 16, 16]
  input bias: i32[3, 16]
  input multiplier: i32[3, 16]
  input shift: i32[3, 16]
  padded: i8[b in 2, y in 16, x in 16, c in 16] =
    select(0 <= y - 1 && y - 1 < 14 && 0 <= x - 1 && x - 1 < 14, x[b, y - 1, x - 1, c], 5i8)
  sum: i32[j in 3, y in 14, x in 14, o in 16] = sum(b in 2, r in 3, s in 3, i in 16)
    i32(padded[b, y + r, x + s, i]) * i32(w[j, b, r, s, o, i])
  output c: i8[j in 3, y in 14, x in 14, o in 16] = i8(offset_clamp(
    scale_double(sum[j, y, x, o] + bias[j, o], multiplier[j, o], shift[j, o]), 3i32, -128i32, 127i32))
}";

#[test]
fn convolutions_run_in_tiles() {
    let steps = "set_scope padded inp; cache_read sum w wgt; set_scope sum acc
                 cache_read c bias param; cache_read c multiplier param; cache_read c shift param; cache_write c out
                 split c.write.i1 4; reorder c.write.i1.0 c.write.i0 c.write.i1.1
                 compute_at c c.write.i1.0; compute_at sum c.write.i1.0; compute_at padded c.write.i1.0
                 compact c.out; compact sum; compact padded; annotate c.write.i1.0 pipeline
                 reorder sum.j sum.y sum.x sum.b sum.r sum.s sum.o sum.i; decompose_reduction sum sum.j
                 tensorize sum.o gemm; tensorize c.o requant";
    let (cycles, text) = check(&preset("1x16x16"), CONV, steps);
    // 10,584 products of 16x16 at least.
    assert_eq!(cycles, 13377);
    assert!(text.contains("pad_value=5 x_before=1 x_after=1 y_before=1\n"), "{text}");
}

#[test]
fn elements_that_stay_are_loaded_once() {
    let steps = |more: &str| {
        format!(
            "set_scope padded inp; cache_read sum w wgt; set_scope sum acc
             cache_read c bias param; cache_read c multiplier param; cache_read c shift param; cache_write c out
             split c.write.i1 4; reorder c.write.i1.0 c.write.i0 c.write.i1.1
             compute_at c c.write.i0; compute_at sum c.write.i0; compute_at padded c.write.i1.0
             compute_at w.wgt c.write.i0; compact c.out; compact sum; compact padded
             annotate c.write.i1.0 pipeline; annotate c.write.i0 pipeline; {more}
             reorder sum.j sum.y sum.x sum.b sum.r sum.s sum.o sum.i; decompose_reduction sum sum.j
             tensorize sum.o gemm; tensorize c.o requant"
        )
    };
    let weights = |text: &str| text.matches("load mem=wgt").count();
    // Three blocks of channels for each of four tiles of rows.
    let (all, text) = check(&preset("1x16x16"), CONV, &steps("compact w.wgt"));
    assert_eq!(weights(&text), 12, "{text}");
    let (once, text) = check(&preset("1x16x16"), CONV, &steps(""));
    assert_eq!(weights(&text), 3, "{text}");
    assert!(once < all, "{once} {all}");
}

#[test]
fn slots_let_loads_run_ahead() {
    let steps = "cache_read c a inp; cache_read c b out; cache_write c out; split c.i 8; compute_at a.inp c.i.0
                 compute_at b.out c.i.0; compact a.inp; compact b.out; annotate c.i.0 pipeline; tensorize c.j add; ";
    let entries = |more: &str| {
        let (cycles, text) = check(&preset("1x16x16"), ADD, &format!("{steps}{more}"));
        let loads = text.lines().filter(|l| l.starts_with("load base=1") || l.starts_with("load mem=inp"));
        let used: std::collections::BTreeSet<&str> =
            loads.map(|l| l.split("entry=").nth(1).map_or("0", |at| at.split(' ').next().unwrap())).collect();
        (cycles, used.len())
    };
    let (two, four) = (entries(""), entries("slots a.inp 4; slots b.out 4"));
    assert_eq!((two.1, four.1), (2, 4));
    assert!(four.0 <= two.0, "{two:?} {four:?}");
    let wrong = |steps: &str| refused(&preset("1x16x16"), ADD, steps);
    assert_eq!(
        wrong("cache_read c a inp; slots a.inp 0"),
        "cannot apply `slots a.inp 0`: a buffer has 1 to 64 slots, not 0"
    );
    assert_eq!(
        wrong("slots a 3"),
        "cannot apply `slots a 3`: a is not a local buffer; there are none, cache_read makes one"
    );
    assert_eq!(
        wrong("cache_read c a inp; cache_read c b out; cache_write c out; slots a.inp 3; tensorize c.j add"),
        "buffer a.inp: it has a number of slots, but no pipeline loop is around all its uses, or it holds all elements \
         of its tensor"
    );
}

/// Returns why a schedule cannot become instructions.
fn refused(config: &HwConfig, expression: &str, schedule: &str) -> String {
    let mut m = Mapping::new(config, &te::text::parse(expression).unwrap()).unwrap();
    for (_, step) in parse_steps(schedule).unwrap() {
        if let Err(e) = m.apply(step) {
            return e.to_string();
        }
    }
    m.lower().expect_err("it cannot be lowered").to_string()
}

#[test]
fn refusals_say_what_to_change() {
    let (large, small) = (preset("1x16x16"), preset("1x4x4"));
    let steps = "cache_read c a inp; cache_read c b out; cache_write c out; ";
    assert_eq!(
        refused(&large, ADD, steps),
        "block c: it computes i8(min(max(i32(a.inp[c.i, c.j]) + i32(b.out[c.i, c.j]), -128i32), 127i32)), which is \
         neither a copy nor an instruction; tensorize one of its loops"
    );
    assert_eq!(
        refused(&large, ADD, &format!("{steps} tensorize c.j plus")),
        "cannot apply `tensorize c.j plus`: there is no instruction plus; there are gemm, move, min, max, add, sub, \
         shr, shl, clip, requant, mul, qadd, mac, lut"
    );
    assert_eq!(
        refused(&large, ADD, "cache_write c out; tensorize c.j add"),
        "cannot apply `tensorize c.j add`: the vector unit cannot read a, which is in global; it reads acc, out, and \
         inp if block_in equals block_out"
    );
    assert_eq!(
        refused(&small, ADD, &format!("{steps} split c.j 4; tensorize c.j.1 add; set_scope a.inp wgt")),
        "cannot apply `set_scope a.inp wgt`: the result is invalid: function add is not well formed: block c: argument \
         x0 of add must be in inp, but a.inp is in wgt"
    );
    let wide = ADD.replace("64, 16", "4096, 16").replace("i in 64", "i in 4096");
    assert_eq!(
        refused(&large, &wide, &format!("{steps} tensorize c.j add")),
        "inp has 2048 entries, and the schedule needs 4096: a.inp 4096; split a loop, or compute a buffer further \
         inside and compact it"
    );
}

/// Steps of [`PRODUCT`].
const PRODUCT_STEPS: &str = "cache_read sum a inp; cache_read sum w wgt; set_scope sum acc
    cache_read c bias param; cache_read c multiplier param; cache_read c shift param; cache_write c out
    split sum.k 16; reorder sum.j sum.i sum.k.0 sum.o sum.k.1; decompose_reduction sum sum.j
    tensorize sum.o gemm; tensorize c.o requant";

#[test]
fn parameters_of_one_entry_are_read_and_copied_alike() {
    let config = preset("1x16x16");
    let crossed = PRODUCT.replace("multiplier[j, o], shift", "multiplier[3 - j, o], shift");
    assert_eq!(
        refused(&config, &crossed, PRODUCT_STEPS),
        "block c: multiplier.param is read at another entry than bias.param; biases, multipliers and shifts are parts \
         of one entry"
    );
    // A multiplier for all blocks, copied for each.
    let spread = PRODUCT
        .replace("multiplier: i32[4, 16]", "m: i32[16]")
        .replace("  sum:", "  multiplier: i32[j in 4, o in 16] = m[o]\n  sum:");
    let steps = PRODUCT_STEPS.replace("cache_read c multiplier param", "set_scope multiplier param");
    let alike = "share entries of param, so they must be inputs of the same shape, copied by the same loops with the \
                 same indices";
    assert!(refused(&config, &spread, &steps).ends_with(alike));
    let reversed = PRODUCT
        .replace("  sum:", "  b: i32[j in 4, o in 16] = bias[3 - j, o]\n  sum:")
        .replace("+ bias[j, o]", "+ b[j, o]");
    let steps = PRODUCT_STEPS.replace("cache_read c bias param", "set_scope b param");
    assert!(refused(&config, &reversed, &steps).ends_with(alike));
}

#[test]
fn constants_fill_scratchpads() {
    let sum = "te t { input a: i8[64, 16]\n z: i8[i in 64, j in 16] = 5i8
      output c: i8[i in 64, j in 16] = i8(min(max(i32(a[i, j]) + i32(z[i, j]), -128i32), 127i32)) }";
    check(&preset("1x16x16"), sum, "cache_read c a out; set_scope z inp; cache_write c out; tensorize c.j add");
    let wide = "te t { z: i32[i in 8, j in 16] = 5i32
      output c: i8[i in 8, j in 16] = i8(min(max(z[i, j], -128i32), 127i32)) }";
    assert_eq!(
        refused(&preset("1x16x16"), wide, "set_scope z acc; cache_write c out; tensorize c.j move"),
        "block z: it fills acc with 5; only 0 and -1 are possible"
    );
}

#[test]
fn values_that_the_hardware_computes_otherwise_are_refused() {
    let config = preset("1x16x16");
    let steps = "cache_read c a inp; cache_read c b out; cache_write c out; tensorize c.j add";
    assert_eq!(
        refused(&config, &ADD.replace("input b: i8", "input b: u8"), steps),
        "cannot apply `tensorize c.j add`: add computes with elements of i8, bool and i32, but b.out holds u8"
    );
    assert_eq!(
        refused(&config, ADD, "cache_read c a acc; cache_read c b out; cache_write c out; tensorize c.j add"),
        "buffer a.acc: its elements are i8, and acc holds i32; move it to inp, wgt or out"
    );
    let floats = "te t { input a: f32[64, 16]\n output c: f32[i in 64, j in 16] = max(a[i, j], 0.0f32) }";
    let steps = "cache_read c a inp; cache_write c out; tensorize c.j max";
    assert!(
        refused(&config, floats, steps)
            .ends_with("max computes with elements of i8, bool and i32, but c.out holds f32")
    );
    let twice = ADD.replace("b[i, j]", "a[i, j]");
    let text = refused(&config, &twice, "cache_read c a inp; cache_write c out; tensorize c.j add");
    assert!(
        text.ends_with("add needs two buffers, but both operands are a.inp; copy one of them to a buffer of its own")
    );
    let wraps = PRODUCT.replace("127i32", "200i32");
    assert!(refused(&config, &wraps, PRODUCT_STEPS).ends_with("and bounds from -128 to 127"));
    let crossed = "te t { input a: i8[64, 16]
      output c: i8[i in 64, j in 16] = i8(min(max(i32(a[i, j]), 30i32), -20i32)) }";
    let text = refused(&config, crossed, "cache_read c a inp; cache_write c out; tensorize c.j clip");
    assert!(text.starts_with("cannot apply `tensorize c.j clip`"), "{text}");
}

#[test]
fn conditions_that_never_hold_leave_out_iterations() {
    // All loops of the product run one by one, because k / 3 is not affine; the sixth has a false condition.
    let text = "te t { input a: i8[4, 2, 16]\n input w: i8[5, 16, 16]
      sum: i32[i in 4, o in 16] = sum(k in 5, l in 16) i32(a[i, k / 3, l]) * i32(w[k, o, l])
      output c: i8[i in 4, o in 16] = i8(min(max(sum[i, o] >> 9i32, -128i32), 127i32)) }";
    let steps = "cache_read sum a inp; cache_read sum w wgt; set_scope sum acc; cache_write c out
      split sum.k 2; reorder sum.i sum.k.0 sum.k.1 sum.o sum.l; decompose_reduction sum sum.i
      tensorize sum.o gemm; tensorize c.o shr";
    check(&preset("1x16x16"), text, steps);
}

#[test]
fn an_input_can_be_a_parameter_and_data() {
    let both = "te t { input a: i8[8, 16]\n input w: i8[1, 16, 16]\n input bias: i32[1, 16]
      input multiplier: i32[1, 16]\n input shift: i32[1, 16]
      sum: i32[i in 8, o in 16] = sum(l in 16) i32(a[i, l]) * i32(w[0, o, l])
      twice: i32[i in 8, o in 16] = sum[i, o] + bias[0, o]
      output c: i8[i in 8, o in 16] = i8(offset_clamp(
        scale_double(twice[i, o] + bias[0, o], multiplier[0, o], shift[0, o]), 0i32, -128i32, 127i32)) }";
    let steps = "cache_read sum a inp; cache_read sum w wgt; set_scope sum acc; cache_read twice bias acc
      set_scope twice acc; cache_read c bias param; cache_read c multiplier param; cache_read c shift param
      cache_write c out; decompose_reduction sum sum.i
      tensorize sum.o gemm; tensorize twice.o add; tensorize c.o requant";
    check(&preset("1x16x16"), both, steps);
}

#[test]
fn each_instruction_computes_its_value() {
    let config = preset("1x16x16");
    let two = |value: &str| {
        format!("te t {{ input a: i8[40, 16]\n input b: i8[40, 16]\n output c: i8[i in 40, j in 16] = {value} }}")
    };
    let steps = |instruction: &str| {
        format!("cache_read c a inp; cache_read c b out; cache_write c out; tensorize c.j {instruction}")
    };
    let sum = "i8(min(max(i32(a[i, j]) + i32(b[i, j]), -128i32), 127i32))";
    for (instruction, value) in [
        ("add", sum.to_string()),
        ("add", "i8(max(min(i32(b[i, j]) + i32(a[i, j]), 127i32), -128i32))".into()),
        ("sub", sum.replace('+', "-")),
        ("min", "min(a[i, j], b[i, j])".into()),
        ("max", "max(b[i, j], a[i, j])".into()),
        (
            "mul",
            "i8(offset_clamp(scale_double((i32(a[i, j]) - 3i32) * (i32(b[i, j]) - -7i32), 1500000000i32, -7i32), 4i32, \
             -100i32, 90i32))"
                .into(),
        ),
        (
            "mul",
            "i8(offset_clamp(scale_single(i32(a[i, j]) * i32(b[i, j]), 1500000000i32, 38i32), 0i32, -128i32, 127i32))"
                .into(),
        ),
        (
            "qadd",
            "i8(offset_clamp(scale_double(scale_double((i32(a[i, j]) - 5i32) << 20i32, 1400000000i32, -1i32) + \
             scale_double((i32(b[i, j]) - -9i32) << 20i32, 1900000000i32, 0i32), 1300000000i32, -19i32), -2i32, \
             -128i32, 127i32))"
                .into(),
        ),
    ] {
        check(&config, &two(&value), &steps(instruction));
    }
    let one = |value: &str| format!("te t {{ input a: i8[40, 16]\n output c: i8[i in 40, j in 16] = {value} }}");
    for (instruction, value) in [
        ("move", "a[i, j]"),
        ("max", "max(a[i, j], 0i8)"),
        ("clip", "min(max(a[i, j], -10i8), 20i8)"),
        ("clip", "i8(max(min(i32(a[i, j]), 20i32), -10i32))"),
        ("shl", "i8(min(max(i32(a[i, j]) << 2i32, -128i32), 127i32))"),
        ("shr", "i8(min(max(i32(a[i, j]) >> 3i32, -128i32), 127i32))"),
    ] {
        let steps = format!("cache_read c a inp; cache_write c out; tensorize c.j {instruction}");
        check(&config, &one(value), &steps);
    }
    // Truth values are bytes.
    let truth = one("a[i, j]").replace("i8", "bool");
    check(&config, &truth, "cache_read c a inp; cache_write c out; tensorize c.j move");
    assert!(
        refused(&config, &truth, "cache_read c a acc; cache_write c out; tensorize c.j move")
            .contains("buffer a.acc: its elements are bool, and acc holds i32; move it to inp, wgt or out")
    );
}

#[test]
fn the_vector_unit_reduces() {
    let config = preset("1x16x16");
    for (combiner, instruction) in [("max", "max"), ("min", "min")] {
        let text = format!(
            "te t {{ input x: i8[6, 6, 16]
             output y: i8[i in 3, c in 16] = {combiner}(r in 2, s in 6) x[i * 2 + r, s, c] }}"
        );
        let steps = format!(
            "cache_read y x inp; cache_write y out; reorder y.i y.r y.s y.c; decompose_reduction y y.i
             tensorize y.c {instruction}"
        );
        check(&config, &text, &steps);
    }
    // The loop over blocks is outside of the instruction: the first block is moved, the others are added.
    let text = "te t { input x: i8[5, 8, 16]
      sum: i32[i in 8, c in 16] = sum(b in 5) i32(x[b, i, c])
      output y: i8[i in 8, c in 16] = i8(min(max(sum[i, c] >> 2i32, -128i32), 127i32)) }";
    let steps = "cache_read sum x inp; set_scope sum acc; cache_write y out
      reorder sum.b sum.i sum.c; decompose_reduction sum sum.b; tensorize sum.c add; tensorize y.c shr";
    check(&config, text, steps);
    let wrong = text.replace("b in 5", "b in 5 from 3i32");
    assert_eq!(
        refused(&config, &wrong, steps),
        "block sum: its reduction starts from 3; the accelerator can only start this one from 0"
    );
}

#[test]
fn single_rounding_requantizes() {
    let single = PRODUCT.replace("scale_double", "scale_single");
    check(&preset("1x16x16"), &single, PRODUCT_STEPS);
}

#[test]
fn tables_are_read_from_param() {
    let lookup = "te lookup {
      input x: i8[40, 16]
      input table: i8[256]
      output y: i8[i in 40, j in 16] = table[i64(x[i, j]) + 128]
    }";
    let steps = "cache_read y x inp; cache_read y table param; cache_write y out; split y.write.i0 16
                 compute_at y y.write.i0.0; compute_at x.inp y.write.i0.0; compact y.out; compact x.inp
                 annotate y.write.i0.0 pipeline; tensorize y.j lut";
    let (cycles, text) = check(&preset("1x16x16"), lookup, steps);
    assert_eq!((cycles, text.matches("op=lut").count()), (562, 3), "{text}");
    let outside = steps.replace("cache_read y table param; ", "");
    let program = te::text::parse(lookup).unwrap();
    let mut m = Mapping::new(&preset("1x16x16"), &program).unwrap();
    let refused = parse_steps(&outside).unwrap().into_iter().find_map(|(_, step)| m.apply(step).err());
    let reason = refused.map(|e| e.to_string()).unwrap_or_default();
    assert!(
        reason.contains("table has shape [256] in global, but parameter table of lut has shape [256] in param"),
        "{reason}"
    );
}

/// Three chained sums: the second is written over the first only if nobody needs the first any more.
#[test]
fn results_are_written_over_what_nobody_needs() {
    let config = preset("1x16x16");
    let chain = |s: &str, r: &str, y: &str| {
        format!(
            "te t {{ input a: i8[4, 16]
               s: i32[i in 4, j in 16] = {s}
               r: i32[i in 4, j in 16] = {r}
               output y: i8[m in 3, i in 4, j in 16] = i8(min(max({y}, -128i32), 127i32)) }}"
        )
    };
    let steps = "cache_read s a inp; set_scope s acc; set_scope r acc; cache_write y out; ";
    let sums = "tensorize s.j add; tensorize r.j add; ";
    let plain = chain("i32(a[i, j]) + 1i32", "s[i, j] + 2i32", "r[i, j]");
    let (_, text) = check(&config, &plain, &format!("{steps}{sums}tensorize y.j move"));
    assert!(text.matches("op=add").count() == 2 && !text.contains("dst_at"), "{text}");
    // Computed again for each m, from the same sums.
    let (_, text) = check(&config, &plain, &format!("{steps}compute_at r y.m; {sums}tensorize y.j move"));
    assert!(text.contains("dst_at"), "{text}");
    // Read again afterwards, and read at another place by the same instruction.
    let again = chain("i32(a[i, j]) + 1i32", "s[i, j] + 2i32", "r[i, j] + s[i, j]");
    check(&config, &again, &format!("{steps}{sums}tensorize y.j add"));
    let turned = "te t { input a: i8[1024, 16]
      s: i32[i in 1024, j in 16] = i32(a[i, j]) + 1i32
      r: i32[i in 1024, j in 16] = s[i, j] + s[1023 - i, j]
      output y: i8[i in 1024, j in 16] = i8(min(max(r[i, j], -128i32), 127i32)) }";
    check(&config, turned, &format!("{steps}{sums}tensorize y.j move"));
}

#[test]
fn a_table_is_a_copy() {
    let text = "te t { input a: i8[4, 16] input x: i8[256]
      t: i8[k in 256] = x[0]
      output y: i8[i in 4, j in 16] = t[i64(a[i, j]) + 128] }";
    let mut m = Mapping::new(&preset("1x16x16"), &te::text::parse(text).unwrap()).unwrap();
    for (_, step) in parse_steps("set_scope t param; cache_read y a inp; cache_write y out; tensorize y.j lut").unwrap()
    {
        m.apply(step).unwrap();
    }
    let error = m.lower().unwrap_err().to_string();
    assert!(error.contains("a table is copied to param as a whole"), "{error}");
}

/// A pointwise product, and a depthwise convolution of its padded results. The array sums 4 taps, the vector unit the
/// others.
const STRIPS: &str = "te strips {
  input x: i8[1, 16, 16, 16]
  input w: i8[4, 1, 16, 16]
  input bias: i32[4, 16] input multiplier: i32[4, 16] input shift: i32[4, 16]
  product: i32[b in 4, y in 16, x in 16, c in 16] = sum(k in 1, i in 16) i32(x[k, y, x, i]) * i32(w[b, k, c, i])
  wide: i8[b in 4, y in 18, x in 18, c in 16] = select(1 <= y && y < 17 && 1 <= x && x < 17, i8(offset_clamp(
    scale_double(product[b, y - 1, x - 1, c] + bias[b, c], multiplier[b, c], shift[b, c]), 3i32, -128i32, 127i32)), 3i8)
  input diagonal: i8[4, 6, 16, 16]
  input taps: i8[4, 9, 16]
  array: i32[b in 4, y in 16, x in 16, c in 16] = sum(r in 2, s in 3, i in 16) select(r * 3 + s < 4,
    i32(wide[b, y + r, x + s, i]) * i32(diagonal[b, r * 3 + s, c, i]), 0i32)
  sums: i32[b in 4, y in 16, x in 16, c in 16] = sum(r in 3, s in 3 from array[b, y, x, c]) select(4 <= r * 3 + s,
    i32(wide[b, y + r, x + s, c]) * i32(taps[b, r * 3 + s, c]), 0i32)
  output z: i8[b in 4, y in 16, x in 16, c in 16] = i8(min(max(sums[b, y, x, c] >> 8i32, -128i32), 127i32))
}";

const STRIP_STEPS: &str = "set_scope product acc; set_scope wide inp; set_scope array acc; set_scope sums acc
  cache_read product x inp; cache_read product w wgt; cache_read array diagonal wgt; cache_read sums taps param
  cache_read wide bias param; cache_read wide multiplier param; cache_read wide shift param; cache_write z out
  split z.write.i1 4; reorder z.write.i1.0 z.write.i0 z.write.i1.1
  compute_at z z.write.i0; compute_at sums z.write.i0; compute_at array z.write.i0; compute_at wide z.write.i0
  compute_at product z.write.i0; compute_at x.inp z.write.i0; compute_at w.wgt z.write.i0
  compute_at diagonal.wgt z.write.i0
  compact z.out; compact sums; compact array; compact wide; compact product; compact x.inp
  annotate z.write.i1.0 pipeline; annotate z.write.i0 pipeline
  reorder product.b product.y product.x product.k product.c product.i; decompose_reduction product product.b
  tensorize product.c gemm; decompose_padding wide wide.b; tensorize wide.c requant
  reorder array.b array.y array.x array.r array.s array.c array.i; decompose_reduction array array.b
  tensorize array.c gemm
  reorder sums.b sums.y sums.x sums.r sums.s sums.c; decompose_reduction sums sums.b; tensorize sums.c mac
  tensorize z.c shr;";

const STRIP_STAGES: &str = "stage product 1; stage product.init 1; stage wide 2; stage wide.pad0 2; stage wide.pad1 2
  stage wide.pad2 2; stage wide.pad3 2; stage array 3; stage array.init 3; stage sums 4; stage sums.init 4; stage z 4
  stage z.write 4";

#[test]
fn strips_pass_the_stages_of_a_pipeline() {
    let (plain, _) = check(&preset("1x16x16"), STRIPS, STRIP_STEPS);
    let (staged, text) = check(&preset("1x16x16"), STRIPS, &format!("{STRIP_STEPS} {STRIP_STAGES}"));
    assert_eq!((plain, staged), (15103, 11711));
    assert_eq!(text.matches("op=mac").count(), 16, "{text}");
    // Four strips of data, each loaded for both slots, and not for each of the four blocks of channels.
    assert_eq!(text.matches("load base=1").count(), 2 * 4, "{text}");
}

#[test]
fn stages_are_refused_that_would_use_data_at_the_wrong_time() {
    let config = preset("1x16x16");
    let refused = |stages: &str| refused(&config, STRIPS, &format!("{STRIP_STEPS} {stages}"));
    assert_eq!(
        refused("stage product 1; stage product.init 1"),
        "block wide: stage 0 uses product before stage 1 has written it"
    );
    assert_eq!(
        refused("slots wide 1; stage z 2; stage z.write 2; stage sums 2; stage sums.init 2"),
        "buffer wide: it is used from stage 0 to stage 2 of z.write.i0, so it needs 2 slots, each for one iteration; it has 1"
    );
    assert_eq!(
        refused("stage taps.param 1"),
        "cannot apply `stage taps.param 1`: no loop around taps.param is a pipeline; annotate one first"
    );
}

#[test]
fn the_first_term_of_a_sum_always_counts() {
    let late = STRIPS.replace("select(r * 3 + s < 4,", "select(0 < r * 3 + s,");
    let reason = refused(&preset("1x16x16"), &late, STRIP_STEPS);
    assert_eq!(
        reason,
        "cannot apply `tensorize array.c gemm`: the sum array starts from a constant, and its first term counts only if 0 < \
         array.r * 3 + array.s; let the sum start with a term that always counts"
    );
}
