//! Passes must not change results: rewrites of integers and moves are exact, float groups that become integer are
//! within one step.

use super::*;
use crate::graph::op::*;
use crate::graph::{DType, Graph, GraphBuilder, Tensor, TensorType, ValueId, eval, eval_all};

mod behind;
mod canonical;
mod channels_last;
mod networks;
mod qdq;

/// The greatest difference between elements of two int8 tensors.
fn steps(a: &Tensor, b: &Tensor) -> i32 {
    assert_eq!(a.ty(), b.ty());
    let (a, b) = (a.as_slice::<i8>().unwrap(), b.as_slice::<i8>().unwrap());
    a.iter().zip(b).map(|(&x, &y)| (i32::from(x) - i32::from(y)).abs()).max().unwrap_or(0)
}

fn boxed(p: impl Pass + 'static) -> Vec<Box<dyn Pass>> {
    vec![Box::new(p)]
}

/// Pseudo-random integers from a seed.
fn noise(seed: u64) -> impl FnMut(usize) -> i8 {
    let mut s = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |_| {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 32) as i8
    }
}
