//! Products of matrices.

use crate::frontend::pytorch::context::Value;
use crate::frontend::pytorch::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::{einsum as semantic_einsum, product};
use crate::graph::op::{BinaryKind, Dense, ReduceKind};
use crate::graph::{DType, ValueId};

const DENSE: Dense = Dense { data_zero_point: 0, weight_zero_point: 0 };

/// `input * weight^T + bias`, with any dimensions in front.
pub(super) fn linear(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, weight, bias) = (n.tensor("input")?, n.tensor("weight")?, n.optional("bias")?);
    let (shape, to) = (n.shape(v)?, n.shape(weight)?);
    let Some((&width, outer)) = shape.split_last() else { return Err("its data must have a dimension".into()) };
    if to.len() == 1 {
        let product = product::matrices(n, v, weight)?;
        return Ok(match bias {
            Some(bias) => n.add("", product, bias)?,
            None => product,
        }
        .into());
    }
    let is_matrix = outer.len() == 1;
    let rows = n.reshape("rows", v, &[outer.iter().product(), width])?;
    let mut operands = vec![rows, weight];
    operands.extend(bias);
    let v = n.node(if is_matrix { "" } else { "dense" }, DENSE, &operands)?;
    let out = [outer, &to[..1]].concat();
    Ok(n.reshape("", v, &out)?.into())
}

/// The product of two operands; whole numbers are multiplied in double precision, which holds their products.
fn multiplied(n: &mut NodeContext, a: ValueId, b: ValueId) -> Result<ValueId, Reason> {
    let dtype = n.ty(a).dtype;
    if dtype.is_float() {
        return product::matrices(n, a, b);
    }
    let (a, b) = (n.cast("a", a, DType::F64)?, n.cast("b", b, DType::F64)?);
    let v = product::matrices(n, a, b)?;
    n.cast("whole", v, dtype)
}

pub(super) fn matmul(n: &mut NodeContext) -> Result<Value, Reason> {
    let (a, b) = (n.tensor("self")?, n.tensor("other")?);
    Ok(multiplied(n, a, b)?.into())
}

pub(super) fn inner(n: &mut NodeContext) -> Result<Value, Reason> {
    let (a, b) = (n.tensor("self")?, n.tensor("other")?);
    let rank = n.ty(b).rank();
    let b = if rank > 1 { n.transposed("turned", b, &[1, 0])? } else { b };
    Ok(multiplied(n, a, b)?.into())
}

pub(super) fn matmul_vector(n: &mut NodeContext) -> Result<Value, Reason> {
    let (a, b) = (n.tensor("self")?, n.tensor("vec")?);
    Ok(multiplied(n, a, b)?.into())
}

pub(super) fn matrices(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["out_dtype"]);
    let (a, b) = (n.tensor("self")?, n.tensor("mat2")?);
    Ok(multiplied(n, a, b)?.into())
}

pub(super) fn dot(n: &mut NodeContext) -> Result<Value, Reason> {
    let (a, b) = (n.tensor("self")?, n.tensor("tensor")?);
    let v = n.binary("products", BinaryKind::Mul, a, b)?;
    Ok(n.reduce("", ReduceKind::Sum, &[0], false, v)?.into())
}

pub(super) fn outer(n: &mut NodeContext) -> Result<Value, Reason> {
    let (a, b) = (n.tensor("self")?, n.tensor("vec2")?);
    let rows = n.shape(a)?.iter().product();
    let a = n.reshape("column", a, &[rows, 1])?;
    Ok(n.binary("", BinaryKind::Mul, a, b)?.into())
}

/// `beta * self + alpha * a * b`.
fn added(n: &mut NodeContext, a: &str, b: &str) -> Result<Value, Reason> {
    let (v, a, b) = (n.tensor("self")?, n.tensor(a)?, n.tensor(b)?);
    let product = multiplied(n, a, b)?;
    let product = n.times("alpha", product)?;
    if n.number("beta")? == Some(0.0) {
        // What is multiplied by 0 does not count, even if it is infinite.
        return Ok(product.into());
    }
    let v = n.times("beta", v)?;
    Ok(n.add("sum", product, v)?.into())
}

pub(super) fn add_matrices(n: &mut NodeContext) -> Result<Value, Reason> {
    let names = if matches!(n.value("mat1")?, Value::None) { ["mat", "vec"] } else { ["mat1", "mat2"] };
    added(n, names[0], names[1])
}

pub(super) fn add_batches(n: &mut NodeContext) -> Result<Value, Reason> {
    added(n, "batch1", "batch2")
}

/// `beta * self + alpha * (sum of products over the batch)`.
pub(super) fn add_summed_batches(n: &mut NodeContext) -> Result<Value, Reason> {
    let (v, a, b) = (n.tensor("self")?, n.tensor("batch1")?, n.tensor("batch2")?);
    let products = multiplied(n, a, b)?;
    let sum = n.reduce("summed", ReduceKind::Sum, &[0], false, products)?;
    let sum = n.times("alpha", sum)?;
    let v = n.times("beta", v)?;
    Ok(n.add("sum", sum, v)?.into())
}

/// The product over pairs of dimensions.
pub(super) fn tensordot(n: &mut NodeContext) -> Result<Value, Reason> {
    let both = [n.tensor("self")?, n.tensor("other")?];
    let lists = [n.ints("dims_self")?.unwrap_or_default(), n.ints("dims_other")?.unwrap_or_default()];
    let (mut rows, mut outer) = ([both[0]; 2], Vec::new());
    for i in 0..2 {
        let shape = n.shape(both[i])?;
        let joined = lists[i].iter().map(|&d| n.axis(d, shape.len())).collect::<Result<Vec<_>, _>>()?;
        let kept: Vec<usize> = (0..shape.len()).filter(|d| !joined.contains(d)).collect();
        let perm =
            if i == 0 { [kept.clone(), joined.clone()].concat() } else { [joined.clone(), kept.clone()].concat() };
        let size = |dims: &[usize]| dims.iter().map(|&d| shape[d]).product::<usize>();
        let to = if i == 0 { [size(&kept), size(&joined)] } else { [size(&joined), size(&kept)] };
        let v = n.transposed("order", both[i], &perm)?;
        rows[i] = n.reshape("rows", v, &to)?;
        outer.extend(kept.iter().map(|&d| shape[d]));
    }
    let v = multiplied(n, rows[0], rows[1])?;
    Ok(n.reshape("shape", v, &outer)?.into())
}

pub(super) fn einsum(n: &mut NodeContext) -> Result<Value, Reason> {
    n.ignore(&["path"]);
    let equation = n.text("equation")?.ok_or("it has no equation")?;
    let list = n.tensors("tensors")?;
    Ok(semantic_einsum::einsum(n, &equation, &list)?.into())
}

/// `input1 * weight[o] * input2` for each `o`, plus a bias.
pub(super) fn bilinear(n: &mut NodeContext) -> Result<Value, Reason> {
    let operands = [n.tensor("input1")?, n.tensor("weight")?, n.tensor("input2")?];
    let bias = n.optional("bias")?;
    let v = semantic_einsum::einsum(n, "...i,oij,...j->...o", &operands)?;
    Ok(match bias {
        Some(bias) => n.add("biased", v, bias)?,
        None => v,
    }
    .into())
}
