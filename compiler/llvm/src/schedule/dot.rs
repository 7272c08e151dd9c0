//! Sums of four byte products as a tensor intrinsic, for which [`crate::emit`] has instructions.

use tilewright_compiler::te::{DType, Expr, Name};
use tilewright_compiler::tir::{Action, Block, Buffer, For, Intrinsic, LoopKind, Scope, Stmt};

/// Returns the intrinsic's name for `lanes` lanes of signed or unsigned data.
pub fn name(lanes: i64, signed: bool) -> String {
    format!("{}dot4x{lanes}", if signed { "s" } else { "" })
}

/// Returns the intrinsic `sums[l] += data[q] * weights[l, q]` over four `q`, for each lane: i32 sums, u8 or i8 data, i8
/// weights.
pub fn intrinsic(lanes: i64, signed: bool) -> Intrinsic {
    let buffer =
        |name: &str, dtype, shape: &[i64], scope| Buffer { name: name.into(), dtype, shape: shape.into(), scope };
    let data = if signed { DType::I8 } else { DType::U8 };
    let params = vec![
        buffer("sums", DType::I32, &[lanes], Scope::Local),
        buffer("data", data, &[4], Scope::Global),
        buffer("weights", DType::I8, &[lanes, 4], Scope::Global),
    ];
    let (lane, four) = (Expr::var("lane"), Expr::var("four"));
    let read = |b: &Buffer, indices: &[&Expr]| Expr::Load {
        buffer: b.name.clone(),
        dtype: b.dtype,
        indices: indices.iter().map(|e| (*e).clone()).collect(),
    };
    let wide = |e: Expr| e.cast(DType::I32);
    let product = wide(read(&params[1], &[&four])) * wide(read(&params[2], &[&lane, &four]));
    let block = Block {
        name: "dot".into(),
        reduce: vec!["four".into()],
        guards: Vec::new(),
        init: None,
        action: Action::Store {
            buffer: params[0].name.clone(),
            indices: vec![lane.clone()],
            value: read(&params[0], &[&lane]) + product,
        },
    };
    let around = |var: &str, extent, body| {
        Stmt::For(For { var: Name::from(var), extent, kind: LoopKind::Serial, body: Box::new(body) })
    };
    let body = around("lane", lanes, around("four", 4, Stmt::Block(block)));
    Intrinsic { name: name(lanes, signed).into(), params, body }
}
