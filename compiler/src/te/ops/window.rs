//! Windows over the height and width of images, in either layout.

use crate::graph::DType;
use crate::graph::op::Layout;
use crate::te::{Builder, Expr, TensorRef};

/// Returns batch, height, width and channel from an index in a layout.
pub fn parts(i: &[Expr], layout: Layout) -> [Expr; 4] {
    let [h, w] = layout.spatial_axes();
    [i[0].clone(), i[h].clone(), i[w].clone(), i[layout.channel_axis()].clone()]
}

/// Returns the index of batch, height, width and channel in a layout.
pub fn index(layout: Layout, n: Expr, h: Expr, w: Expr, c: Expr) -> [Expr; 4] {
    match layout {
        Layout::Nhwc => [n, h, w, c],
        Layout::Nchw => [n, c, h, w],
    }
}

/// Appends a border of `value` to an image. Returns the image itself if all pads (top, left, bottom, right) are 0.
pub fn padded(b: &mut Builder, x: &TensorRef, layout: Layout, pads: &[usize; 4], value: Expr) -> TensorRef {
    if pads.iter().all(|&p| p == 0) {
        return x.clone();
    }
    let mut before = vec![0; 4];
    let mut shape = x.shape.clone();
    for (i, axis) in layout.spatial_axes().into_iter().enumerate() {
        before[axis] = pads[i] as i64;
        shape[axis] += (pads[i] + pads[i + 2]) as i64;
    }
    border(b, x, &before, &shape, value)
}

/// Appends a tensor of `shape` with `x` at offset `before`, and `value` around it.
pub fn border(b: &mut Builder, x: &TensorRef, before: &[i64], shape: &[i64], value: Expr) -> TensorRef {
    b.compute("pad", shape, |i| {
        let mut inside: Option<Expr> = None;
        let mut source = Vec::new();
        for (d, e) in i.iter().enumerate() {
            let (p, n) = (before[d], x.shape[d]);
            let mut need = |c: Expr| {
                inside = Some(match inside.take() {
                    Some(i) => i.and(c),
                    None => c,
                });
            };
            if p > 0 {
                need(Expr::int(p).le(e.clone()));
            }
            if p + n < shape[d] {
                need(e.clone().lt(Expr::int(p + n)));
            }
            source.push(if p > 0 { e.clone() - p } else { e.clone() });
        }
        match inside {
            Some(c) => c.select(x.at(&source), value),
            None => x.at(&source),
        }
    })
}

/// Returns the position in the padded image of tap `k` of output `o`.
pub fn tap(o: &Expr, k: &Expr, stride: usize, dilation: usize) -> Expr {
    o.clone() * stride as i64 + k.clone() * dilation as i64
}

/// Returns a constant: a float, or an integer of type `dtype`.
pub fn constant(dtype: DType, v: i32) -> Expr {
    Expr::number(v.into(), dtype)
}
