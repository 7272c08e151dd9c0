//! Selects in indices and between copied elements.

use super::{check, preset};
use tilewright_hw::HwConfig;

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

#[test]
fn padding_can_surround_elements_with_other_padding() {
    // Rows of 10 bytes in entries of 16, with a row of padding before and after them.
    let expression = "te frame {
      input a: i8[6, 10]
      rows: i8[y in 8, x in 16] = select(1 <= y && y < 7, select(x < 10, a[y - 1, x], 0i8), 5i8)
      output c: i8[y in 8, x in 16] = rows[y, x]
    }";
    let plain = HwConfig { dma_pad: false, dma_pack: false, ..preset("1x16x16") };
    for (config, tile) in [(preset("1x16x16"), 8), (preset("1x16x16"), 3), (plain.clone(), 8), (plain, 3)] {
        let steps = format!("set_scope rows out; split c.y {tile}; compute_at rows c.y.0; compact rows");
        let (_, text) = check(&config, expression, &steps);
        let loads = if tile == 8 { 3 } else { 5 };
        assert_eq!(text.matches("load mem=out").count(), loads, "{text}");
    }
}

#[test]
fn a_clip_with_equal_bounds_writes_padding() {
    let expression = "te padded {
      input a: i8[8, 6, 16]
      wide: i32[y in 8, x in 6, c in 16] = i32(a[y, x, c]) + 5i32
      image: i8[y in 10, x in 8, c in 16] = select(1 <= y && y < 9 && 1 <= x && x < 7,
        i8(min(max(wide[y - 1, x - 1, c] >> 1i32, -128i32), 127i32)), -7i8)
      output z: i8[y in 10, x in 8, c in 16] = image[y, x, c]
    }";
    let steps = "cache_read wide a inp; set_scope wide acc; set_scope image out; split z.y 5; compute_at image z.y.0
                 compute_at wide z.y.0; compute_at a.inp z.y.0; compact image; compact wide; compact a.inp
                 annotate z.y.0 pipeline; decompose_padding image image.y; tensorize wide.c add; tensorize image.c shr;";
    let config = preset("1x16x16");
    let (_, loads) = check(&config, expression, steps);
    let clips = (0..4).map(|k| format!("tensorize image.c.pad{k} clip;")).collect::<String>();
    let (_, text) = check(&config, expression, &format!("{steps} {clips}"));
    // A row and two columns of each tile.
    assert_eq!((text.matches("op=clip").count(), text.matches("load mem=out").count()), (6, 0), "{text}");
    assert!(loads.contains("load mem=out"), "{loads}");
    // A constant that no instruction can write before there are sums.
    let early = "te early { input a: i8[4, 16] c: i8[y in 4, x in 16] = 3i8
      output z: i8[y in 4, x in 16] = i8(min(max(i32(a[y, x]) + i32(c[y, x]), -128i32), 127i32)) }";
    let reason = super::refused(
        &config,
        early,
        "set_scope c out; cache_read z a inp; cache_write z out
                                                 tensorize c.x clip; tensorize z.x add",
    );
    assert_eq!(reason, "block c: clip reads any entry of acc, and nothing before it writes one");
}
