//! Compares the complete text of some kernels.

use expect_test::{Expect, expect};
use tilewright_compiler::tir::parse;

use crate::{emit, schedule};

fn check(program: &str, half: bool, want: Expect) {
    let kernels = emit("k", &schedule(parse(program).unwrap()), half).unwrap_or_else(|e| panic!("{e}"));
    let launches: Vec<String> = kernels
        .launches
        .iter()
        .map(|l| format!("{} grid {:?} block {:?} args {:?}\n", l.kernel, l.grid, l.block, l.args))
        .collect();
    want.assert_eq(&format!("{}{}workspace {}\n", kernels.source, launches.concat(), kernels.workspace_bytes));
}

#[test]
fn element_wise() {
    let relu = "function f { input x: f32[3, 200] output y: f32[3, 200]
      for i in 3 { for j in 200 { block y { y[i, j] = max(x[i, j], 0.0f32) } } } }";
    check(
        relu,
        false,
        expect![[r#"
            extern "C" __global__ void __launch_bounds__(256) k(const float *__restrict__ v_x, float *__restrict__ v_y) {
              {
                const int v_i_j_0 = blockIdx.x;
                {
                  const int v_i_j_1 = threadIdx.x;
                  if (((v_i_j_0 * 256 + v_i_j_1) < 600)) {
                    v_y[(v_i_j_0 * 256 + v_i_j_1)] = tw_max_f(v_x[(v_i_j_0 * 256 + v_i_j_1)], 0.0f);
                  }
                }
              }
            }

            k grid [3, 1, 1] block [256, 1, 1] args [Input(0), Output(0)]
            workspace 0
        "#]],
    );
    check(
        relu,
        true,
        expect![[r#"
            extern "C" __global__ void __launch_bounds__(256) k(const tw_half *__restrict__ v_x, tw_half *__restrict__ v_y) {
              {
                const int v_i_j_0 = blockIdx.x;
                {
                  const int v_i_j_1 = threadIdx.x;
                  if (((v_i_j_0 * 256 + v_i_j_1) < 600)) {
                    v_y[(v_i_j_0 * 256 + v_i_j_1)] = tw_narrow(tw_max_f(tw_widen(v_x[(v_i_j_0 * 256 + v_i_j_1)]), 0.0f));
                  }
                }
              }
            }

            k grid [3, 1, 1] block [256, 1, 1] args [Input(0), Output(0)]
            workspace 0
        "#]],
    );
}

#[test]
fn convolution_and_requantization() {
    let conv = "function f { input x: i8[8, 4] input w: i8[5, 3, 4] input m: i32[5] output y: i8[6, 5] local s: i32[6, 5]
      for i in 6 { for c in 5 { for k in 3 { for d in 4 {
        block s reduce(k, d) { init 0i32 s[i, c] = s[i, c] + (i32(x[i + k, d]) - 3i32) * i32(w[c, k, d]) } } } } }
      for a in 6 { for b in 5 { block y { y[a, b] = i8(offset_clamp(scale_double(s[a, b], m[b], -5i32), 4i32, -128i32, 127i32)) } } } }";
    check(
        conv,
        false,
        expect![[r#"
            extern "C" __global__ void __launch_bounds__(32) k(const signed char *__restrict__ v_x, const signed char *__restrict__ v_w, const int *__restrict__ v_m, signed char *__restrict__ v_y) {
              int v_s[1];
              {
                const int v_a_b_0 = blockIdx.x;
                {
                  const int v_a_b_1 = threadIdx.x;
                  for (int v_i = 0; v_i < 1; v_i++) {
                    for (int v_c = 0; v_c < 1; v_c++) {
                      if (((v_a_b_0 * 32 + v_a_b_1) < 30)) {
                        int sum = 0;
                        for (int v_k = 0; v_k < 3; v_k++) {
                          for (int v_d = 0; v_d < 4; v_d++) {
                            sum = tw_add(sum, tw_mul(tw_sub((int)(v_x[(((((v_a_b_0 * 32 + v_a_b_1) / 5) + v_i) + v_k) * 4 + v_d)]), 3), (int)(v_w[(((((v_a_b_0 * 32 + v_a_b_1) % 5) + v_c) * 3 + v_k) * 4 + v_d)])));
                          }
                        }
                        v_s[0] = sum;
                      }
                    }
                  }
                  if (((v_a_b_0 * 32 + v_a_b_1) < 30)) {
                    v_y[(v_a_b_0 * 32 + v_a_b_1)] = (signed char)(tw_offset_clamp(tw_scale_double(v_s[0], v_m[((v_a_b_0 * 32 + v_a_b_1) % 5)], -5), 4, -128, 127));
                  }
                }
              }
            }

            k grid [1, 1, 1] block [32, 1, 1] args [Input(0), Input(1), Input(2), Output(0)]
            workspace 0
        "#]],
    );
}

/// A convolution with padding, an image with two rows of tiles, and a following stage.
#[test]
fn a_convolution_comes_in_tiles() {
    let conv = "function f { input x: f32[1, 9, 16, 24] input w: f32[40, 3, 3, 24] input b: f32[40] output y: f32[1, 9, 16, 40]
      local p: f32[1, 11, 18, 24] local s: f32[1, 9, 16, 40]
      for pn in 1 { for ph in 11 { for pw in 18 { for pc in 24 { block p {
        p[pn, ph, pw, pc] = select(1 <= ph && ph < 10 && 1 <= pw && pw < 17, x[pn, ph - 1, pw - 1, pc], 0.0f32) } } } } }
      for n in 1 { for h in 9 { for v in 16 { for c in 40 { for kh in 3 { for kw in 3 { for k in 24 { block s reduce(kh, kw, k) {
        init b[c] s[n, h, v, c] = s[n, h, v, c] + p[n, h + kh, v + kw, k] * w[c, kh, kw, k] } } } } } } } }
      for yn in 1 { for yh in 9 { for yw in 16 { for yc in 40 { block y { y[yn, yh, yw, yc] = max(s[yn, yh, yw, yc], 0.0f32) } } } } } }";
    let tiled = crate::schedule::try_tiled(parse(conv).unwrap());
    let f = tiled.unwrap_or_else(|why| panic!("{why}")).into_function();
    let kernels = emit("k", &f, false).unwrap_or_else(|e| panic!("{e}\n{f}"));
    assert!(kernels.source.contains("__shared__") && kernels.source.contains("__syncthreads"), "{}", kernels.source);
}
