//! Depthwise convolutions as scheduled tensor expressions.
//!
//! | stage | array | vector unit |
//! |---|---|---|
//! | 0 (loads) | | |
//! | 1 | some taps, with diagonal weights | |
//! | 2 | | the other taps, and the requantization |

use super::plan::{ArrayTaps, DepthwiseTile, PARAM_SLOTS, Shape, WEIGHT_SLOTS};
use super::stages::{Share, Stages, tile_number};
use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::MOST_SLOTS;
use crate::codegen::accel::ops::conv::Conv;
use crate::codegen::accel::ops::conv::expression::data;
use crate::codegen::accel::ops::conv::frame::Frame;
use crate::codegen::accel::scheduled::{LayerSchedule, template};
use crate::te::{Builder, Expr};
use tilewright_hw::config::{HwConfig, Mem};

/// Returns a depthwise convolution in tiles.
pub fn schedule(
    conv: &Conv,
    tile: &DepthwiseTile,
    layer: &Layer,
    config: &HwConfig,
    constants: Constants,
) -> Option<LayerSchedule> {
    let (input, output, on_chip) = (layer.input_view(), layer.output_view(), layer.on_chip);
    let shape = Shape { conv, input, output, on_chip, config };
    let order = Order::new(&shape, tile);
    let mut made = Stages::new(Builder::new("depthwise"), config, constants);
    let data = data(&mut made.b, conv, &Frame::of_one_row([input, output], config), config);
    made.steps = format!("set_scope {} inp; ", data.name);
    made.blocks = vec![data.name.to_string()];
    let range = tile.array_taps.range();
    let share = Share { range, of: &|i| order.taps(i, &tile.array_taps) };
    let both = made.depthwise(conv, &data, output, &share, 1);
    let result = made.requantized(&both, conv, "", 2);
    let name = &result.name;
    let mut steps = std::mem::take(&mut made.steps);
    let to = if on_chip.hides_output() { Mem::Inp } else { Mem::Out }.name();
    steps += &format!("cache_write {name} {to}; ");
    let loops = order.steps(name.as_str(), tile, &mut steps);
    let inner = loops.last()?;
    steps += &format!("compute_at {name} {inner}; ");
    // A block that is moved to the start of a loop runs before those that were moved there earlier.
    for block in made.blocks.iter().rev().chain(&made.weights) {
        steps += &format!("compute_at {block} {inner}; ");
    }
    if on_chip.output.is_some() && on_chip.stored {
        steps += &format!("keep {name}.write {inner} inp; ");
        made.tensorized += &format!("tensorize {name}.keep.i4 move; ");
        made.stages += &format!("stage {name}.keep 2; ");
    }
    let mut slots: Vec<(String, usize)> = Vec::new();
    if on_chip.input.is_none() {
        slots.push((data.name.to_string(), shape.data_slots(tile)));
    }
    if !shape.keeps_weights(range[1]) {
        slots.extend(made.weights.iter().map(|copy| (copy.clone(), WEIGHT_SLOTS)));
    }
    if !shape.keeps_params(range[0]) {
        for (copy, _) in &made.parameters {
            steps += &format!("compute_at {copy} {inner}; ");
            slots.push((copy.clone(), PARAM_SLOTS));
        }
    }
    if !on_chip.hides_output() {
        let entries = tile.blocks * tile.rows * tile.columns;
        let most = if on_chip.output.is_some() { 2 } else { MOST_SLOTS };
        slots.push((format!("{name}.out"), (config.entries(Mem::Out) as usize / entries).clamp(1, most)));
    }
    for buffer in ["array", "both"].into_iter().chain(slots.iter().map(|(buffer, _)| buffer.as_str())) {
        steps += &format!("compact {buffer}; ");
    }
    if on_chip.output.is_some() {
        // All of the results stay there.
        slots.push((format!("{name}.inp"), 1));
    }
    for at in &loops {
        steps += &format!("annotate {at} pipeline; ");
    }
    for (buffer, count) in &slots {
        steps += &format!("slots {buffer} {count}; ");
    }
    steps += &made.tensorized;
    steps += &made.stages;
    steps += &format!("stage {name}.write 2; ");
    let program = made.b.finish(std::slice::from_ref(&result));
    Some(LayerSchedule { program, inputs: made.inputs, steps: template(&steps)? })
}

/// The order of tiles: blocks of channels, then images, rows and columns. If the data stay in both halves of inp, each
/// tile of the first blocks is followed by the same tile of the blocks that are `distance` behind.
struct Order {
    sizes: [usize; 3],
    /// Number of tiles of images, rows and columns.
    tiles: [usize; 3],
    distance: i64,
    in_pairs: bool,
    /// The number of the last tile, plus 1.
    count: i64,
}

impl Order {
    fn new(shape: &Shape, tile: &DepthwiseTile) -> Order {
        let output = shape.output;
        let tiles = [output.n, output.h.div_ceil(tile.rows), output.w.div_ceil(tile.columns)];
        let (blocks, distance) = (shape.blocks(), shape.distance());
        let of_blocks = distance.div_ceil(tile.blocks) * tiles.iter().product::<usize>();
        let count = match blocks - distance {
            0 => of_blocks,
            // A tile of the first blocks comes before the same tile of the others, if there is one.
            others => 2 * of_blocks - usize::from(others.div_ceil(tile.blocks) < distance.div_ceil(tile.blocks)),
        };
        Order {
            sizes: [tile.blocks, tile.rows, tile.columns],
            tiles,
            distance: distance as i64,
            in_pairs: distance < blocks,
            count: count as i64,
        }
    }

    /// Returns the number of the array's taps of an output.
    fn taps(&self, i: &[Expr], taps: &ArrayTaps) -> Expr {
        let [first, even, odd, last] = taps.all().map(|n| Expr::int(n as i64));
        if taps.range()[0] == taps.range()[1] {
            return first;
        }
        let number = self.number(i);
        // The first tile and the last one are among those with an even or an odd number, unless they differ from them.
        let mut share = even;
        if taps.first != taps.even {
            share = number.clone().lt(Expr::int(1)).select(first, share);
        }
        if taps.even != taps.odd {
            share = (number.clone() % Expr::int(2)).lt(Expr::int(1)).select(share, odd);
        }
        let at_end = self.count - 1;
        let of_number = if at_end % 2 == 0 { taps.even } else { taps.odd };
        if at_end > 0 && taps.last != of_number {
            share = number.lt(Expr::int(at_end)).select(share, last);
        }
        share
    }

    /// Returns the number of the tile that computes an output.
    fn number(&self, i: &[Expr]) -> Expr {
        let [images, rows, columns] = self.tiles;
        let [block, block_rows, block_columns] = self.sizes;
        let blocks = if self.in_pairs { i[1].clone() % Expr::int(self.distance) } else { i[1].clone() };
        let others = [(&i[0], 1, images), (&i[2], block_rows, rows), (&i[3], block_columns, columns)];
        let number = tile_number((&blocks, block), &others);
        if self.in_pairs { number * 2 + i[1].clone() / Expr::int(self.distance) } else { number }
    }

    /// Adds the steps that split and order the loops over the results. Returns the loops over tiles, the outermost first.
    fn steps(&self, name: &str, tile: &DepthwiseTile, steps: &mut String) -> Vec<String> {
        let loop_ = |axis: &str| format!("{name}.write.{axis}");
        let blocks = if self.in_pairs {
            *steps += &format!("split {} {}; ", loop_("i1"), self.distance);
            "i1.1"
        } else {
            "i1"
        };
        for (axis, size) in [(blocks, tile.blocks), ("i2", tile.rows), ("i3", tile.columns)] {
            *steps += &format!("split {} {size}; ", loop_(axis));
        }
        let mut loops = vec![format!("{blocks}.0"), "i0".into(), "i2.0".into(), "i3.0".into()];
        if self.in_pairs {
            loops.push("i1.0".into());
        }
        let loops: Vec<String> = loops.iter().map(|axis| loop_(axis)).collect();
        let within = [format!("{blocks}.1"), "i2.1".into(), "i3.1".into()].map(|axis| loop_(&axis));
        *steps += &format!("reorder {} {}; ", loops.join(" "), within.join(" "));
        loops
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::accel::kept::OnChip;
    use crate::codegen::accel::operator::AccelOperator;
    use crate::codegen::accel::ops::conv::ConvPlan;
    use crate::codegen::accel::ops::conv::depthwise::{ArrayTaps, tile, tiles};
    use crate::codegen::accel::ops::conv::schedule::tests::{Sized, conv, plain};
    use crate::codegen::accel::scheduled::tests::{check_layer, kept};
    use crate::codegen::accel::view::View;

    /// Checks the fastest tiles of a layer, and some of them with other numbers of taps. Returns how many.
    fn check_tiles(conv: &Conv, layer: &Layer, config: &HwConfig, most: usize) -> usize {
        let views = [layer.input_view(), layer.output_view()];
        let mut list = tiles(conv, views, layer.on_chip, 4 * most, config);
        let last = conv.taps() - 1;
        for (k, (first, even, odd, end)) in [(1, 1, last, 2), (last, 1, 2, last), (2, 2, 2, 2)].into_iter().enumerate()
        {
            let array_taps = ArrayTaps { first, even, odd, last: end };
            let other =
                list.get(k).map(|&t| tile(conv, views, layer.on_chip, DepthwiseTile { array_taps, ..t }, config));
            list.extend(other.and_then(Result::ok));
        }
        let step = (list.len() / most).max(1);
        let chosen: Vec<_> = list.iter().step_by(step).collect();
        for tile in &chosen {
            let schedule = conv.schedule(&ConvPlan::Depthwise(**tile), layer, config, Constants::Given);
            check_layer(config, &schedule.unwrap_or_else(|| panic!("{tile:?} has no schedule")));
        }
        chosen.len()
    }

    /// A depthwise layer.
    fn depthwise(channels: usize, sizes: Sized) -> (Conv, Layer) {
        conv(&Sized { channels: [channels; 2], groups: channels, ..sizes }, Vec::new())
    }

    #[test]
    fn schedules_compute_the_convolution() {
        let sizes = [
            (37, plain(3, 1, 1)),
            (16, Sized { images: 2, image: [8, 9], ..plain(3, 2, 1) }),
            (20, Sized { pads: [0, 1, 2, 1], image: [8, 8], ..plain(5, 2, 0) }),
            (33, Sized { kernel: [3, 2], dilations: [2, 3], ..plain(3, 1, 1) }),
            (64, Sized { kernel: [1, 3], image: [5, 12], pads: [0, 1, 0, 1], ..plain(3, 1, 1) }),
            // Parameters of all channels do not fit param twice.
            (1200, Sized { image: [3, 2], ..plain(3, 1, 1) }),
        ];
        let mut checked = 0;
        for (channels, sizes) in sizes {
            let (mut conv, layer) = depthwise(channels, sizes);
            for name in ["1x16x16", "1x4x4"] {
                checked += check_tiles(&conv, &layer, &HwConfig::load(name).unwrap(), 4);
            }
            // Both units subtract a zero point of weights.
            conv.weight_zero_point = Some(-7);
            conv.rest = conv.weights.iter().map(|w| (i16::from(*w) % 3 == 0).into()).collect();
            checked += check_tiles(&conv, &layer, &HwConfig::load("1x16x16").unwrap(), 2);
        }
        assert!(checked > 50, "{checked}");
    }

    /// Files of layers whose tensors stay in inp run by themselves: they load and store these tensors.
    #[test]
    fn kept_tensors_are_buffers_that_hold_all_elements() {
        let config = HwConfig::load("1x16x16").unwrap();
        let mut checked = 0;
        for sizes in [plain(3, 1, 1), Sized { image: [8, 9], ..plain(3, 2, 1) }] {
            for (input, output, stored) in [(true, false, false), (false, true, false), (true, true, true)] {
                let (conv, mut layer) = depthwise(100, sizes.clone());
                let kept = |view: View, border: u32, entry: u32| kept(view, border, entry, conv.pad_value);
                // Some blocks of the input are in each half of inp.
                let (from, to) = (kept(layer.input_view(), 1, 500), kept(layer.output_view(), 0, 1500));
                layer.on_chip = OnChip {
                    input: input.then_some(from),
                    output: output.then_some(to),
                    stored,
                    room: Some(if input { (0, 500) } else { (600, 900) }),
                };
                checked += check_tiles(&conv, &layer, &config, 4);
            }
        }
        assert!(checked > 15, "{checked}");
    }
}
