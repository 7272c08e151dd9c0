//! Compares the prelude's arithmetic with `hw/src/num.rs`, number by number.

use tilewright_compiler::te::{Builder, DType, Expr, Func};
use tilewright_compiler::tir::lower;

use super::host::functions;

/// Numbers where rounding and overflow behavior changes.
const EDGES: [i32; 19] = [
    i32::MIN,
    i32::MIN + 1,
    -(1 << 30) - 1,
    -(1 << 30),
    -65_537,
    -256,
    -3,
    -2,
    -1,
    0,
    1,
    2,
    3,
    255,
    65_536,
    (1 << 30) - 1,
    1 << 30,
    i32::MAX - 1,
    i32::MAX,
];
const SHIFTS: [i32; 13] = [i32::MIN, -65, -32, -31, -30, -2, -1, 0, 1, 7, 31, 32, i32::MAX];

#[test]
fn integers_round_as_the_contract_says() {
    let mut rows: Vec<[i32; 4]> = Vec::new();
    for x in EDGES {
        for y in EDGES {
            rows.extend(SHIFTS.map(|s| [x, y, s, x ^ y]));
        }
    }
    let n = rows.len() as i64;
    let funcs = [Func::ScaleDouble, Func::ScaleSingle, Func::OffsetClamp, Func::DoublingHighMul, Func::RoundingShift];
    let programs = funcs.map(|f| {
        let mut b = Builder::new(f.name());
        let columns = [0, 1, 2, 3].map(|i| b.input(&format!("c{i}"), DType::I32, &[n]));
        let y = b.compute("y", &[n], |i| {
            let args: Vec<Expr> = if f == Func::RoundingShift {
                vec![columns[0].at(i), columns[2].at(i)]
            } else {
                columns[..f.arity()].iter().map(|c| c.at(i)).collect()
            };
            Expr::call(f, args)
        });
        lower(&b.finish(&[y])).unwrap()
    });
    functions(&programs, &|c, at| rows[at][c]);
}
