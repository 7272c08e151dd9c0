//! Known real values: constants, dequantized constants, and operators on them.

use crate::graph::op::Dequantize;
use crate::graph::{Op, Tensor, ValueId};
use crate::passes::View;

/// Maximum number of operators that compute a constant.
const MOST_NODES: usize = 32;

/// A tensor of real values.
#[derive(Debug, Clone)]
pub(super) struct Known {
    pub shape: Vec<usize>,
    pub values: Vec<f64>,
}

/// Real values of a float constant, of dequantized integers, or of operators on those, such as the ones that compute
/// the factor and the term of a normalization.
pub(super) fn known(view: &View, v: ValueId) -> Option<Known> {
    let node = view.def(v)?;
    match &node.op {
        // In double precision: single precision would lose digits of biases.
        Op::Dequantize(d) => dequantized(d, view.graph.constant(node.inputs[0])?),
        Op::Reshape(_) => {
            let values = known(view, node.inputs[0])?.values;
            Some(Known { shape: view.graph.ty(v).shape()?, values })
        }
        _ => {
            let t = computed(view, v, &mut { MOST_NODES })?;
            let values = t.as_slice::<f32>().ok()?.iter().map(|&x| f64::from(x)).collect();
            Some(Known { shape: t.shape().to_vec(), values })
        }
    }
}

/// Like [`known`], if there is one finite value per channel.
pub(super) fn vector(view: &View, v: ValueId, channels: usize) -> Option<Vec<f64>> {
    let finite = |values: &Vec<f64>| values.len() == channels && values.iter().all(|x| x.is_finite());
    known(view, v).map(|k| k.values).filter(finite)
}

fn dequantized(d: &Dequantize, t: &Tensor) -> Option<Known> {
    let integers: Vec<f64> = match (t.as_slice::<i32>(), t.as_slice::<i8>(), t.as_slice::<u8>()) {
        (Ok(t), ..) => t.iter().map(|&x| f64::from(x)).collect(),
        (_, Ok(t), _) => t.iter().map(|&x| f64::from(x)).collect(),
        (.., Ok(t)) => t.iter().map(|&x| f64::from(x)).collect(),
        _ => return None,
    };
    let shape = t.shape().to_vec();
    let inner: usize = shape.get(d.axis + 1..).unwrap_or_default().iter().product();
    let at = |list: usize, i: usize| if list > 1 { i / inner.max(1) % list } else { 0 };
    let real = |(i, x): (usize, f64)| {
        let zero = f64::from(d.zero_point[at(d.zero_point.len(), i)]);
        (x - zero) * f64::from(d.scale[at(d.scale.len(), i)])
    };
    Some(Known { shape, values: integers.into_iter().enumerate().map(real).collect() })
}

/// The tensor of a value that at most `left` cheap operators compute from constants.
fn computed(view: &View, v: ValueId, left: &mut usize) -> Option<Tensor> {
    let node = view.def(v)?;
    if let Op::Constant(c) = &node.op {
        return Some(c.value.as_ref().clone());
    }
    let cheap = matches!(
        node.op,
        Op::Add(_) | Op::Binary(_) | Op::Unary(_) | Op::Clip(_) | Op::Reshape(_) | Op::Transpose(_) | Op::Dequantize(_)
    );
    *left = left.checked_sub(1).filter(|_| cheap)?;
    let operands = node.inputs.iter().map(|&v| computed(view, v, left)).collect::<Option<Vec<_>>>()?;
    let operands: Vec<&Tensor> = operands.iter().collect();
    node.op.eval(&operands).ok()?.pop()
}
