//! Selects in indices and between copied elements.

use super::{check, preset};

#[test]
fn a_select_in_an_index_makes_instructions_of_parts() {
    let expression = "te means {
      input x: i8[6, 5, 16]
      input bias: i32[3, 16]
      input multiplier: i32[3, 16]
      input shift: i32[3, 16]
      wide: i32[y in 6, x in 5, o in 16] = sum(k in 1) i32(x[y, x, o])
      output c: i8[y in 6, x in 5, o in 16] = i8(offset_clamp(scale_double(
        wide[y, x, o] + bias[select(y < 1, 0, select(x < 4, 1, 2)), o],
        multiplier[select(y < 1, 0, select(x < 4, 1, 2)), o],
        shift[select(y < 1, 0, select(x < 4, 1, 2)), o]), 3i32, -128i32, 127i32))
    }";
    let steps = "cache_read wide x inp; set_scope wide acc; cache_read c bias param; cache_read c multiplier param
                 cache_read c shift param; cache_write c out; split c.write.i0 4; compute_at c c.write.i0.0
                 reorder wide.y wide.x wide.k wide.o; decompose_reduction wide wide.y
                 tensorize wide.o add; tensorize c.o requant";
    let (_, text) = check(&preset("1x16x16"), expression, steps);
    // Two parts of a row in which both conditions are decided, two of the others of its tile, two of the second tile.
    assert_eq!(text.matches("op=requant").count(), 6, "{text}");
}

#[test]
fn a_select_between_elements_makes_loads_of_parts() {
    let expression = "te join {
      input a: i8[4, 20]
      input b: i8[4, 12]
      parts: i8[y in 4, x in 32] = select(x < 20, a[y, x], b[y, x - 20])
      output c: i8[y in 4, x in 32] = parts[y, x]
    }";
    for tile in [4, 3] {
        let steps = format!("set_scope parts out; split c.y {tile}; compute_at parts c.y.0; compact parts");
        let (_, text) = check(&preset("1x16x16"), expression, &steps);
        let loads = 2 * 4usize.div_ceil(tile);
        assert_eq!(text.matches("load mem=out").count(), loads, "{text}");
    }
}
