//! The text of some kernels, whole.

use expect_test::{Expect, expect};
use tilewright_compiler::tir::parse;

use crate::{emit, schedule};

fn check(program: &str, half: bool, want: Expect) {
    let unit = emit("k", &schedule(parse(program).unwrap()), half).unwrap_or_else(|e| panic!("{e}"));
    let launches: Vec<String> = unit
        .launches
        .iter()
        .map(|l| format!("{} grid {:?} block {:?} args {:?}\n", l.kernel, l.grid, l.block, l.args))
        .collect();
    want.assert_eq(&format!("{}{}workspace {}\n", unit.source, launches.concat(), unit.workspace_bytes));
}

#[test]
fn element_wise() {
    let relu = "function f { input x: f32[3, 200] output y: f32[3, 200]
      for i in 3 { for j in 200 { block y { y[i, j] = max(x[i, j], 0.0f32) } } } }";
    check(relu, false, expect![[""]]);
    check(relu, true, expect![[""]]);
}

#[test]
fn convolution_and_requantization() {
    let conv = "function f { input x: i8[8, 4] input w: i8[5, 3, 4] input m: i32[5] output y: i8[6, 5] local s: i32[6, 5]
      for i in 6 { for c in 5 { for k in 3 { for d in 4 {
        block s reduce(k, d) { init 0i32 s[i, c] = s[i, c] + (i32(x[i + k, d]) - 3i32) * i32(w[c, k, d]) } } } } }
      for a in 6 { for b in 5 { block y { y[a, b] = i8(offset_clamp(scale_double(s[a, b], m[b], -5i32), 4i32, -128i32, 127i32)) } } } }";
    check(conv, false, expect![[""]]);
}
