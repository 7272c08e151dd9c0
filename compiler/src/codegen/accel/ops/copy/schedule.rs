//! Copies as scheduled tensor expressions.
//!
//! A tile of the result is some rows of one block of channels. Loads assemble it in out from its parts, and one store
//! writes it.

use super::op::{Copy, Segment};
use super::runs::{StridedRun, runs};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::slots;
use crate::codegen::accel::scheduled::{LayerInput, LayerSchedule, template};
use crate::codegen::accel::view::View;
use crate::te::{Builder, DType, Expr, TensorRef};
use tilewright_hw::config::{HwConfig, Mem};

/// Returns a copy in tiles of some rows.
pub fn schedule(copy: &Copy, rows: usize, layer: &Layer, config: &HwConfig) -> Option<LayerSchedule> {
    let (output, block) = (layer.output_view(), config.block() as usize);
    let blocks = output.c.div_ceil(block);
    let mut b = Builder::new("copy");
    let shape = |v: View| [v.n, v.c.div_ceil(block), v.h, v.w, block].map(|n| n as i64);
    let inputs: Vec<(TensorRef, View)> = (layer.inputs.iter().enumerate())
        .map(|(k, (_, view))| (b.input(&format!("x{k}"), DType::I8, &shape(*view)), *view))
        .collect();
    let parts = b.compute("parts", &shape(output), |i| {
        let value = |s: &Segment| element(s, &inputs[s.input], i, [blocks, block]);
        let mut segments = copy.segments.iter().rev();
        let last = segments.next().map_or_else(|| Expr::Int(0, DType::I8), value);
        segments.fold(last, |rest, s| match inside(s, output, i, block) {
            Some(inside) => inside.select(value(s), rest),
            None => value(s),
        })
    });
    let result = b.compute("output", &shape(output), |i| parts.at(i));
    // Entries hold consecutive bytes of the tile.
    let entries = (rows * output.w * block).div_ceil(config.entry_bytes(Mem::Out) as usize);
    let tiles = output.n * blocks * output.h.div_ceil(rows);
    let slots = slots(config.entries(Mem::Out) as usize, entries, tiles);
    let mut steps = format!(
        "set_scope parts out; split output.i2 {rows}; compute_at parts output.i2.0; compact parts; slots parts {slots}; \
         annotate output.i0 pipeline; annotate output.i1 pipeline; annotate output.i2.0 pipeline; "
    );
    // Rows and columns that are read in turn become loads of their own.
    let phases = |k: usize| copy.segments.iter().map(|s| phases(s, k)).max().unwrap_or(1);
    let (mut first, mut then) = (String::new(), String::new());
    for (l, count) in [("parts.i2", phases(0)), ("parts.i3", phases(1))] {
        if count == 1 {
            then += &format!("{l} ");
            continue;
        }
        steps += &format!("split {l} {count}; annotate {l}.1 unrolled; ");
        first += &format!("{l}.1 ");
        then += &format!("{l}.0 ");
    }
    if !first.is_empty() {
        steps += &format!("reorder {first}parts.i0 parts.i1 {then}parts.i4; ");
    }
    let inputs = (0..layer.inputs.len()).map(LayerInput::Tensor).collect();
    Some(LayerSchedule { program: b.finish(&[result]), inputs, steps: template(&steps)? })
}

/// Returns the condition for an element of the result to be in a segment; `None` if all are.
fn inside(s: &Segment, output: View, i: &[Expr], block: usize) -> Option<Expr> {
    let channel = i[1].clone() * block as i64 + i[4].clone();
    let ranges = [
        (channel, s.c_to, s.c, output.c),
        (i[2].clone(), s.rows.first, s.rows.sources.len(), output.h),
        (i[3].clone(), s.columns.first, s.columns.sources.len(), output.w),
    ];
    let mut conditions = Vec::new();
    for (at, first, count, size) in ranges {
        if first > 0 {
            conditions.push(Expr::int(first as i64).le(at.clone()));
        }
        if first + count < size {
            conditions.push(at.lt(Expr::int((first + count) as i64)));
        }
    }
    conditions.into_iter().reduce(|a, b| a.and(b))
}

/// Returns the element of a segment's input for an element of the result. Channels after the result's last can have any
/// value, so they are read with those before them.
fn element(s: &Segment, (input, view): &(TensorRef, View), i: &[Expr], [blocks, block]: [usize; 2]) -> Expr {
    let shift = s.c_from as i64 - s.c_to as i64;
    let (across, lanes) = (shift.div_euclid(block as i64), shift.rem_euclid(block as i64));
    let of_block = |block: i64| if block == 0 { i[1].clone() } else { i[1].clone() + Expr::int(block) };
    let (row, column) =
        (source(&s.rows.sources, s.rows.first, &i[2]), source(&s.columns.sources, s.columns.first, &i[3]));
    let at = |of: Expr, lane: Expr| input.at(&[i[0].clone(), of, row.clone(), column.clone(), lane]);
    if lanes == 0 {
        return at(of_block(across), i[4].clone());
    }
    let last = view.c.div_ceil(block) as i64 - 1;
    let behind = match blocks as i64 + across > last {
        true => of_block(across + 1).min(Expr::int(last)),
        false => of_block(across + 1),
    };
    let whole = Expr::int(block as i64 - lanes);
    let first = at(of_block(across), i[4].clone() + Expr::int(lanes));
    let second = at(behind, i[4].clone() - whole.clone());
    i[4].clone().lt(whole).select(first, second)
}

/// Returns the number of interleaved runs of a segment's rows (0) or columns (1).
fn phases(s: &Segment, k: usize) -> usize {
    let places = if k == 0 { &s.rows } else { &s.columns };
    runs(0, &places.sources).first().map_or(1, |r| r.step)
}

/// Returns the row or column of the input for one of the result.
fn source(map: &[usize], first: usize, at: &Expr) -> Expr {
    let from = |less: usize| if less == 0 { at.clone() } else { at.clone() - Expr::int(less as i64) };
    let runs = runs(0, map);
    let step = runs.first().map_or(1, |r| r.step);
    let plus = |number: Expr, r: &StridedRun| match (r.stride, r.source) {
        (0, source) => Expr::int(source as i64),
        (1, 0) => number,
        (1, source) => number + Expr::int(source as i64),
        (stride, 0) => number * stride as i64,
        (stride, source) => number * stride as i64 + Expr::int(source as i64),
    };
    if step > 1 {
        let number = from(first) / Expr::int(step as i64);
        let alike =
            |r: &StridedRun| (r.source, r.stride) == (runs[0].source, runs[0].stride) || r.stride == 0 && r.count == 1;
        if runs.iter().all(alike) && runs.iter().all(|r| r.source == runs[0].source) {
            return plus(number, &runs[0]);
        }
        let phase = from(first) % Expr::int(step as i64);
        return choice(&runs, &phase, &|k| k, &|k| plus(number.clone(), &runs[k]));
    }
    choice(&runs, at, &|k| first + runs[k].first, &|k| plus(from(first + runs[k].first), &runs[k]))
}

/// Returns the value of the last of some runs that begins at or before `at`.
fn choice(runs: &[StridedRun], at: &Expr, begins: &dyn Fn(usize) -> usize, value: &dyn Fn(usize) -> Expr) -> Expr {
    fn among(
        range: std::ops::Range<usize>,
        at: &Expr,
        begins: &dyn Fn(usize) -> usize,
        value: &dyn Fn(usize) -> Expr,
    ) -> Expr {
        if range.len() <= 1 {
            return value(range.start);
        }
        let half = range.start + range.len() / 2;
        let [before, after] = [range.start..half, half..range.end].map(|r| among(r, at, begins, value));
        at.clone().lt(Expr::int(begins(half) as i64)).select(before, after)
    }
    among(0..runs.len(), at, begins, value)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::accel::kept::OnChip;
    use crate::codegen::accel::ops::copy::op::Places;
    use crate::codegen::accel::ops::copy::plan;
    use crate::codegen::accel::scheduled::tests::check_layer;
    use crate::graph::ValueId;
    use crate::graph::op::Layout;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};

    /// Tensors joined along channels, rows or columns; a slice; or a resized image.
    fn copy(rng: &mut StdRng) -> (Copy, Vec<View>, View) {
        let view = |n, c, h, w| View::new(Layout::Nhwc, n, c, h, w);
        let [n, c, h, w] =
            [rng.random_range(1..3), rng.random_range(1..50), rng.random_range(1..9), rng.random_range(1..9)];
        let whole = |input, v: View| Segment {
            input,
            c_from: 0,
            c_to: 0,
            c: v.c,
            rows: Places::all(v.h),
            columns: Places::all(v.w),
        };
        let kind = rng.random_range(0..5);
        if kind < 3 {
            let (mut inputs, mut segments, mut at) = (Vec::new(), Vec::new(), 0);
            for input in 0..rng.random_range(2..4) {
                let size = rng.random_range(1..40);
                let v = match kind {
                    0 => view(n, size, h, w),
                    1 => view(n, c, size, w),
                    _ => view(n, c, h, size),
                };
                let mut s = whole(input, v);
                match kind {
                    0 => s.c_to = at,
                    1 => s.rows.first = at,
                    _ => s.columns.first = at,
                }
                at += size;
                inputs.push(v);
                segments.push(s);
            }
            let output = match kind {
                0 => view(n, at, h, w),
                1 => view(n, c, at, w),
                _ => view(n, c, h, at),
            };
            return (Copy { segments }, inputs, output);
        }
        let input = view(n, c, h, w);
        let mut s = whole(0, input);
        if kind == 3 {
            s.c_from = rng.random_range(0..c);
            s.c = rng.random_range(1..=c - s.c_from);
        }
        for places in [&mut s.rows, &mut s.columns] {
            let size = places.sources.len();
            let from = rng.random_range(0..size);
            places.sources = match rng.random_range(0..4) {
                0 => places.sources.clone(),
                1 => (from..size).step_by(rng.random_range(1..3)).collect(),
                2 => (0..size * rng.random_range(1..4)).map(|i| i * size / (size * 3)).collect(),
                _ => (0..rng.random_range(1..9)).map(|_| rng.random_range(0..size)).collect(),
            };
        }
        let output = view(n, s.c, s.rows.sources.len(), s.columns.sources.len());
        (Copy { segments: vec![s] }, vec![input], output)
    }

    #[test]
    fn schedules_move_the_elements() {
        let mut rng = StdRng::seed_from_u64(3);
        for name in ["1x16x16", "1x4x4", "1x8x16", "1x4x2", "4x16x16"] {
            let config = HwConfig::load(name).unwrap();
            let mut checked = 0;
            for _ in 0..50 {
                let (copy, inputs, output) = copy(&mut rng);
                let Ok(most) = plan::rows(&copy, &inputs, output, &config) else { continue };
                let layer = Layer {
                    nodes: Vec::new(),
                    name: "copy".into(),
                    inputs: inputs.into_iter().enumerate().map(|(i, v)| (ValueId(i), v)).collect(),
                    output: (ValueId(9), output),
                    on_chip: OnChip::default(),
                    given: None,
                };
                let rows = rng.random_range(1..=most);
                check_layer(&config, &schedule(&copy, rows, &layer, &config).unwrap());
                checked += 1;
            }
            assert!(checked > 10, "{name}: {checked}");
        }
    }
}
