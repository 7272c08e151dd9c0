//! `layer_norm`: data less their mean, divided by their standard deviation.

use super::{call, lanes};
use crate::graph::op::LayerNorm;
use crate::te::{Builder, Combiner, Expr, Func, TensorRef};

/// Appends a layer normalization in stages: the mean, the variance, the factor of each row, results.
pub fn layer_norm(b: &mut Builder, op: &LayerNorm, args: &[TensorRef], out: &[i64]) -> Option<TensorRef> {
    let x = args.first()?;
    let (rows, normalized) = out.split_at(op.axis);
    let count = normalized.iter().product::<i64>() as f64;
    let total = |b: &mut Builder, name: &str, of: &dyn Fn(&[Expr], &[Expr]) -> Expr| {
        if let [n] = normalized {
            return lanes::reduce(b, name, x.dtype, rows, *n, Combiner::Sum, |i, k| of(i, std::slice::from_ref(k)));
        }
        let names: Vec<String> = (0..normalized.len()).map(|i| format!("k{i}")).collect();
        let over: Vec<(&str, i64)> = names.iter().map(String::as_str).zip(normalized.iter().copied()).collect();
        b.reduce(name, x.dtype, rows, &over, Combiner::Sum, of)
    };
    let sum = total(b, "total", &|i, k| x.at(&[i, k].concat()));
    let mean = b.compute("mean", rows, |i| sum.at(i) / Expr::number(count, x.dtype));
    let squares = total(b, "squares", &|i, k| {
        let less = x.at(&[i, k].concat()) - mean.at(i);
        less.clone() * less
    });
    let factor = b.compute("factor", rows, |i| {
        let variance = squares.at(i) / Expr::number(count, x.dtype);
        Expr::number(1.0, x.dtype) / call(Func::Sqrt, [variance + Expr::number(op.epsilon.into(), x.dtype)])
    });
    Some(b.compute(LayerNorm::NAME, out, |i| {
        let (row, place) = i.split_at(op.axis);
        let standard = (x.at(i) - mean.at(row)) * factor.at(row);
        let scaled = args.get(1).map_or(standard.clone(), |scale| standard * scale.at(place));
        args.get(2).map_or(scaled.clone(), |bias| scaled + bias.at(place))
    }))
}
