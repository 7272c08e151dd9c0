//! Products of two activations as scheduled tensor expressions.
//!
//! `sum (a - za)(b - zb)` is `sum a (b - zb) - sum za (b - zb)`. The second sum is the same for all rows: a product with
//! a single row whose elements are `za`. The array subtracts `zb` itself. If the configuration is built without that,
//! `sum a zb`, which is the same for all columns, is subtracted too, and `za zb` for each element of the depth is part
//! of the bias.

use super::op::MatMul;
use super::plan::{MatMulSizes, MatMulTile, ZeroPoints};
use crate::codegen::accel::finish::Finish;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::requant::{keeps_params, requantized};
use crate::codegen::accel::scheduled::{LayerInput, LayerSchedule, template};
use crate::te::{Builder, DType, Expr, TensorRef};
use tilewright_hw::config::HwConfig;

/// The loops of the schedule: over matrices, over tiles of their columns, and over tiles of their rows.
const MATRIX: &str = "output.i0";
const COLUMNS: &str = "output.i1.0";
const ROWS: &str = "output.i2.0";

/// The expression under construction, with the parts of its schedule.
struct MatMulExpression {
    b: Builder,
    /// Dimensions of an entry before its last: batch rows, if there are several.
    batch: Vec<i64>,
    block_in: i64,
    block_out: i64,
    /// Blocks of the depth.
    depth: i64,
    /// Steps that put buffers into scratchpads.
    scopes: String,
    /// Blocks in the order in which they run, each with its loop.
    stages: Vec<(String, &'static str)>,
    /// Steps that turn blocks into instructions.
    instructions: String,
}

/// The products of one nest.
struct Products<'a> {
    name: &'static str,
    /// Dimensions before those of an entry.
    outer: &'a [i64],
    /// The loop within which they are computed.
    at: &'static str,
    /// Sums to which they are added.
    from: Option<&'a TensorRef>,
    /// How often they are added.
    times: i64,
    /// What the array subtracts from every weight.
    zero_point: i32,
}

impl MatMulExpression {
    /// Adds a tensor that is filled from device memory, or with a constant.
    fn filled(
        &mut self,
        name: &'static str,
        shape: &[i64],
        scope: &str,
        at: Option<&'static str>,
        value: impl FnOnce(&[Expr]) -> Expr,
    ) -> TensorRef {
        self.scopes += &format!("set_scope {name} {scope}; ");
        self.stages.extend(at.map(|at| (name.into(), at)));
        self.b.compute(name, shape, value)
    }

    /// Adds products that are added up over the depth. `operands` gives the elements of inp and wgt for indices of the
    /// result, a block of the depth, and a channel.
    fn products(&mut self, p: Products, operands: impl Fn(&[Expr], &Expr, &Expr) -> [Expr; 2]) -> TensorRef {
        let name = p.name;
        let shape = [p.outer, self.batch.as_slice(), &[self.block_out]].concat();
        let reduce = [("t", p.times), ("d", self.depth), ("k", self.block_in)];
        let init = |i: &[Expr]| p.from.map_or(Expr::i32(0), |from| from.at(i));
        let sum = self.b.sum_from(name, &shape, &reduce, init, |i, r| {
            let [x, w] = operands(i, &r[1], &r[2]).map(|e| e.cast(DType::I32));
            x * if p.zero_point == 0 { w } else { w - Expr::i32(p.zero_point) }
        });
        let loops = |range: std::ops::Range<usize>| range.map(|k| format!("{name}.i{k} ")).collect::<String>();
        let (around, entry) = (loops(1..p.outer.len()), loops(p.outer.len()..shape.len()));
        let instruction = p.outer.len();
        self.scopes += &format!("set_scope {name} acc; ");
        self.stages.push((name.into(), p.at));
        self.instructions += &format!(
            "reorder {around}{name}.t {name}.d {entry}{name}.k; decompose_reduction {name} {name}.i1; \
             tensorize {name}.i{instruction} gemm; "
        );
        sum
    }

    /// Subtracts sums that `at` finds for indices of the result.
    fn less(&mut self, name: &str, from: &TensorRef, sums: &TensorRef, at: impl Fn(&[Expr]) -> Vec<Expr>) -> TensorRef {
        let first = from.shape.len() - 1 - self.batch.len();
        self.scopes += &format!("set_scope {name} acc; ");
        self.stages.push((name.into(), ROWS));
        self.instructions += &format!("tensorize {name}.i{first} sub; ");
        self.b.compute(name, &from.shape, |i| from.at(i) - sums.at(&at(i)))
    }
}

/// Returns a product in tiles.
pub fn schedule(m: &MatMul, tile: &MatMulTile, layer: &Layer, config: &HwConfig) -> Option<LayerSchedule> {
    let s = MatMulSizes::new(layer, config);
    let [batch, bi, bo] = [config.batch, config.block_in, config.block_out].map(i64::from);
    let [rows, entries, columns, blocks, ratio, depth] =
        [s.rows, s.row_entries, s.columns, s.column_blocks, s.ratio, s.depth].map(|n| n as i64);
    let [images, matrices] = s.matrices.map(|n| n as i64);
    let mut e = MatMulExpression {
        b: Builder::new("matmul"),
        batch: if batch == 1 { Vec::new() } else { vec![batch] },
        block_in: bi,
        block_out: bo,
        depth,
        scopes: String::new(),
        stages: Vec::new(),
        instructions: String::new(),
    };
    let a = e.b.input("a", DType::I8, &[images, depth, rows, bi]);
    let b = e.b.input("b", DType::I8, &[matrices, depth, columns, bi]);
    let tiles = blocks * ratio;
    // The operands in whole entries and tiles, with zeros in the rest.
    let zero = || Expr::Int(0, DType::I8);
    let all_tiles = e.filled("tiles", &[matrices, depth, tiles, bo, bi], "wgt", Some(COLUMNS), |i| {
        let column = i[2].clone() * bo + i[3].clone();
        let element = b.at(&[i[0].clone(), i[1].clone(), column.clone(), i[4].clone()]);
        if columns == tiles * bo { element } else { column.lt(Expr::int(columns)).select(element, zero()) }
    });
    let shape = [&[images, depth, entries], e.batch.as_slice(), &[bi]].concat();
    let all_rows = e.filled("rows", &shape, "inp", Some(if tile.keeps_rows { MATRIX } else { ROWS }), |i| {
        let row = if batch == 1 { i[2].clone() } else { i[2].clone() * batch + i[3].clone() };
        let element = a.at(&[i[0].clone(), i[1].clone(), row.clone(), i[i.len() - 1].clone()]);
        if rows % batch == 0 { element } else { row.lt(Expr::int(rows)).select(element, zero()) }
    });
    let wgt = |i: &[Expr], d: &Expr, k: &Expr| {
        let matrix = if matrices == 1 { Expr::int(0) } else { i[0].clone() };
        all_tiles.at(&[matrix, d.clone(), i[1].clone(), i[i.len() - 1].clone(), k.clone()])
    };
    // `row` is the index of the row's entry in `i`.
    let inp = |i: &[Expr], row: usize, d: &Expr, k: &Expr| {
        all_rows.at(&[&[i[0].clone(), d.clone()], &i[row..i.len() - 1], std::slice::from_ref(k)].concat())
    };
    let zero_point = if config.wgt_zp { m.b_zero_point } else { 0 };
    let [by_column, by_row] = m.sums(config);
    let subtracts = tile.zero_points == ZeroPoints::Subtracted;
    let [(za, a_times), (zb, b_times)] = [m.a_zero_point, m.b_zero_point].map(|zero| factor(zero, subtracts));
    let constant = |value: i32| move |_: &[Expr]| Expr::Int(value.into(), DType::I8);
    let row = by_column.then(|| e.filled("row", &[e.batch.clone(), vec![bi]].concat(), "inp", None, constant(za)));
    let column = by_row.then(|| e.filled("tile", &[bo, bi], "wgt", None, constant(zb)));
    let of_columns = |i: &[Expr], d: &Expr, k: &Expr| {
        let within = if batch == 1 { &[][..] } else { &i[i.len() - 2..i.len() - 1] };
        let x = row.as_ref().map(|row| row.at(&[within, std::slice::from_ref(k)].concat()));
        [x.unwrap_or_else(zero), wgt(i, d, k)]
    };
    let of_rows = |i: &[Expr], first: usize, d: &Expr, k: &Expr| {
        let w = column.as_ref().map(|tile| tile.at(&[i[i.len() - 1].clone(), k.clone()]));
        [inp(i, first, d, k), w.unwrap_or_else(zero)]
    };
    let all = &[images, tiles, entries];
    let plain = Products { name: "sums", outer: all, at: ROWS, from: None, times: 1, zero_point };
    if subtracts {
        let columns = by_column.then(|| {
            let outer = &[images, tiles];
            e.products(Products { name: "column_sums", outer, at: COLUMNS, ..plain }, of_columns)
        });
        let rows = by_row.then(|| {
            let p = Products { name: "row_sums", outer: &[images, entries], at: ROWS, zero_point: 0, ..plain };
            e.products(p, |i, d, k| of_rows(i, 1, d, k))
        });
        let mut sums = e.products(plain, |i, d, k| [inp(i, 2, d, k), wgt(i, d, k)]);
        if let Some(columns) = columns {
            sums = e.less("less_columns", &sums, &columns, |i| [&i[..2], &i[3..]].concat());
        }
        if let Some(rows) = rows {
            sums = e.less("less_rows", &sums, &rows, |i| [&i[..1], &i[2..]].concat());
        }
        return finish(e, m, tile, &s, &sums, config);
    }
    let mut sums = e.products(plain, |i, d, k| [inp(i, 2, d, k), wgt(i, d, k)]);
    if by_column {
        let with =
            Products { name: "with_columns", outer: all, at: ROWS, from: Some(&sums), times: a_times, zero_point };
        sums = e.products(with, of_columns);
    }
    if by_row {
        let with =
            Products { name: "with_rows", outer: all, at: ROWS, from: Some(&sums), times: b_times, zero_point: 0 };
        sums = e.products(with, |i, d, k| of_rows(i, 2, d, k));
    }
    finish(e, m, tile, &s, &sums, config)
}

/// Returns the value of the elements by which the other operand is multiplied, and how often, so that the products are
/// subtracted from the sums, or added to them.
fn factor(zero_point: i32, subtracted: bool) -> (i32, i64) {
    match zero_point {
        zero if subtracted => (zero, 1),
        -128 => (64, 2),
        zero => (-zero, 1),
    }
}

/// Adds the requantization of the sums, and returns the schedule.
fn finish(
    mut e: MatMulExpression,
    m: &MatMul,
    tile: &MatMulTile,
    s: &MatMulSizes,
    sums: &TensorRef,
    config: &HwConfig,
) -> Option<LayerSchedule> {
    let [images, rows, blocks, ratio] = [s.matrices[0], s.rows, s.column_blocks, s.ratio].map(|n| n as i64);
    let batch = i64::from(config.batch);
    let both = m.a_zero_point.wrapping_mul(m.b_zero_point);
    // For each element that pads the depth, the array adds `za * zb`, which the bias takes away. Without `wgt_zp`, the
    // array multiplies no zero points, and the bias adds `za * zb` for each element of the depth.
    let within = (s.depth * config.block_in as usize) as i32;
    let times = if config.wgt_zp { s.channels as i32 - within } else { s.channels as i32 };
    let bias = m.finish.bias.iter().map(|b| b.wrapping_add(times.wrapping_mul(both))).collect();
    let done =
        requantized(&mut e.b, &Finish { bias, ..m.finish.clone() }, sums, None, blocks * ratio, |i| i[1].clone());
    let shape = [images, blocks, rows, ratio, e.block_out];
    let output = e.b.compute("output", &shape, |i| {
        let t = i[1].clone() * ratio + i[3].clone();
        let row = match batch {
            1 => vec![i[2].clone()],
            _ => vec![i[2].clone() / Expr::int(batch), i[2].clone() % Expr::int(batch)],
        };
        done.result.at(&[vec![i[0].clone(), t], row, vec![i[4].clone()]].concat())
    });
    let (result, first) = (&done.result.name, sums.shape.len() - 1 - e.batch.len());
    e.stages.push((result.to_string(), ROWS));
    let mut steps = e.scopes + &format!("set_scope {result} out; {}", done.steps);
    steps += &format!(
        "split output.i1 {}; split output.i2 {}; reorder {MATRIX} {COLUMNS} {ROWS} output.i1.1 output.i2.1; ",
        tile.blocks,
        tile.rows * config.batch as usize
    );
    if !keeps_params(s.column_blocks * s.ratio, config) {
        e.stages.splice(0..0, done.copies.iter().map(|copy| (copy.clone(), COLUMNS)));
    }
    // The block that is moved last runs first.
    for (stage, at) in e.stages.iter().rev() {
        steps += &format!("compute_at {stage} {at}; ");
    }
    for (stage, _) in &e.stages {
        steps += &format!("compact {stage}; ");
    }
    for at in [MATRIX, COLUMNS, ROWS] {
        steps += &format!("annotate {at} pipeline; ");
    }
    steps += &e.instructions;
    steps += &format!("tensorize {result}.i{first} requant");
    let inputs = [LayerInput::Tensor(0), LayerInput::Tensor(1)].into_iter().chain(done.inputs).collect();
    Some(LayerSchedule { program: e.b.finish(&[output]), inputs, steps: template(&steps)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::accel::kept::OnChip;
    use crate::codegen::accel::ops::matmul::plan::{cycles, tiles};
    use crate::codegen::accel::scheduled::tests::check_layer;
    use crate::codegen::accel::view::View;
    use crate::graph::ValueId;
    use tilewright_hw::num::Rounding;

    /// All tiles of some products: shapes that fill entries, tiles and blocks or not, and zero points of both operands.
    #[test]
    fn schedules_compute_the_product() {
        let zero_points = [[0, 0], [3, 0], [0, -7], [-128, 5], [127, -128]];
        for (name, key) in
            [("1x16x16", ""), ("1x4x4", ""), ("4x16x16", ""), ("1x4x4", "wgt_zp"), ("1x4x4", "acc_banks")]
        {
            let mut config = HwConfig::load(name).unwrap();
            match key {
                "wgt_zp" => config.wgt_zp = false,
                "acc_banks" => config.acc_banks = 1,
                _ => {}
            }
            for (k, [images, rows, depth, columns]) in
                [[2, 19, 20, 21], [1, 16, 32, 16], [3, 5, 7, 1]].into_iter().enumerate()
            {
                for (z, [a_zero_point, b_zero_point]) in zero_points.into_iter().enumerate() {
                    let a = View::matrices(&[images, rows, depth]);
                    let b = View::transposed_matrices(&[if z % 2 == 0 { images } else { 1 }, depth, columns]);
                    let output = View::matrices(&[images, rows, columns]);
                    let finish = Finish {
                        bias: (0..columns as i32).map(|c| 100 * c - 300).collect(),
                        multiplier: vec![1_500_000_000; columns],
                        shift: (0..columns).map(|c| -4 - (c % 4) as i8).collect(),
                        zero_point: 3,
                        lo: -128,
                        hi: 120,
                        mode: Rounding::Double,
                    };
                    let m = MatMul { a_zero_point, b_zero_point, finish, on_device: false };
                    let layer = Layer {
                        nodes: Vec::new(),
                        name: "product".into(),
                        inputs: vec![(ValueId(0), a), (ValueId(1), b)],
                        output: (ValueId(2), output),
                        on_chip: OnChip::default(),
                        given: None,
                    };
                    let all = tiles(&m, &layer, &config).unwrap();
                    if (k, z) == (0, 3) {
                        // Every tile that the plan calls fitting does fit.
                        for tile in &all {
                            schedule(&m, tile, &layer, &config).unwrap().mapping(&config).unwrap().lower().unwrap();
                        }
                    }
                    for tile in all.iter().step_by(1 + all.len() / 4).chain(all.last()) {
                        let schedule = schedule(&m, tile, &layer, &config).unwrap();
                        let exact = check_layer(&config, &schedule);
                        let estimate = cycles(&m, tile, &layer, &config);
                        println!("{name} {key} {k} {z} {tile:?}: {exact}, estimated {estimate}");
                    }
                }
            }
        }
    }
}
