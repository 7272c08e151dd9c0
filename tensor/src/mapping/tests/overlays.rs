//! Buffers that take the entries of others.

use super::{check, preset, refused};

/// Sums whose narrow results are reduced to maxima of two rows.
const MAXIMA: &str = "te maxima {
  input a: i8[64, 64, 16]
  wide: i32[y in 64, x in 64, c in 16] = i32(a[y, x, c]) + 5i32
  narrow: i8[y in 64, x in 64, c in 16] = i8(min(max(wide[y, x, c] >> 1i32, -128i32), 127i32))
  windows: i32[y in 32, x in 64, c in 16] = max(r in 2) i32(narrow[y * 2 + r, x, c])
  output z: i8[y in 32, x in 64, c in 16] = i8(min(max(windows[y, x, c], -20i32), 127i32))
}";

const STEPS: &str = "cache_read wide a inp; set_scope wide acc; set_scope narrow out; set_scope windows acc
  cache_write z out; split z.write.i0 8; compute_at z z.write.i0.0; compute_at windows z.write.i0.0
  compute_at narrow z.write.i0.0; compute_at wide z.write.i0.0; compute_at a.inp z.write.i0.0
  compact z.out; compact windows; compact narrow; compact wide; compact a.inp
  annotate z.write.i0.0 pipeline; slots narrow 1
  tensorize wide.c add; tensorize narrow.c shr; reorder windows.y windows.x windows.r windows.c
  decompose_reduction windows windows.y; tensorize windows.c max; tensorize z.c clip";

#[test]
fn maxima_take_the_entries_of_sums() {
    let config = preset("1x16x16");
    let (_, text) = check(&config, MAXIMA, &format!("{STEPS}; overlay windows wide"));
    assert_eq!(text.matches("op=max").count(), 4, "{text}");
    // Two tiles of sums fill acc.
    let apart = refused(&config, MAXIMA, STEPS);
    assert!(apart.contains("windows 1024 (2 slots of 512)"), "{apart}");
    // A buffer with more elements than the one whose entries it takes.
    let wider = MAXIMA.replace("x in 64", "x in 8").replace("64, 64, 16", "64, 8, 16");
    let wider = wider.replace("[y in 32,", "[y in 32, k in 4,").replace("windows[y,", "windows[y, k,");
    let steps = STEPS.replace("reorder windows.y", "reorder windows.y windows.k");
    check(&config, &wider, &format!("{steps}; overlay windows wide"));
}

#[test]
fn elements_that_are_still_needed_keep_their_entries() {
    let config = preset("1x16x16");
    let refused = |steps: &str| refused(&config, MAXIMA, &format!("{STEPS}; {steps}"));
    assert_eq!(
        refused("overlay wide windows"),
        "buffer wide: it takes the entries of windows, whose elements are still used when it is written"
    );
    assert_eq!(
        refused("overlay narrow wide"),
        "cannot apply `overlay narrow wide`: both buffers must be in inp, wgt, acc or out; narrow is in out and wide in acc"
    );
    assert_eq!(
        refused("overlay a wide"),
        "cannot apply `overlay a wide`: a is not a local buffer; there are: wide, narrow, windows, a.inp, z.out"
    );
    assert_eq!(refused("overlay wide wide"), "cannot apply `overlay wide wide`: name two buffers");
    assert_eq!(
        refused("overlay windows wide; slots wide 1"),
        "buffer windows: it takes the entries of wide, so both need the same pipeline loop and number of slots"
    );
    let whole = STEPS.replace("compact windows; ", "");
    assert_eq!(
        super::refused(&config, MAXIMA, &format!("{whole}; overlay windows wide")),
        "buffer windows: it takes the entries of wide, so compact windows first"
    );
}
