//! A pass changes no result: exactly for rewrites of integers and of moves, within one step where float groups become
//! integer.

use super::*;
use crate::graph::op::*;
use crate::graph::{DType, Graph, GraphBuilder, Tensor, TensorType, ValueId, eval, eval_all};

mod behind;
mod canonical;
mod channels_last;
mod networks;
mod qdq;

/// The greatest difference of int8 tensors.
fn steps(a: &Tensor, b: &Tensor) -> i32 {
    assert_eq!(a.ty(), b.ty());
    let (a, b) = (a.as_slice::<i8>().unwrap(), b.as_slice::<i8>().unwrap());
    a.iter().zip(b).map(|(&x, &y)| (i32::from(x) - i32::from(y)).abs()).max().unwrap_or(0)
}

fn boxed(p: impl Pass + 'static) -> Vec<Box<dyn Pass>> {
    vec![Box::new(p)]
}

/// Integers that look random, from a seed.
fn noise(seed: u64) -> impl FnMut(usize) -> i8 {
    let mut s = seed.wrapping_mul(0x9e37_79b9_7f4a_7c15) | 1;
    move |_| {
        s ^= s << 13;
        s ^= s >> 7;
        s ^= s << 17;
        (s >> 32) as i8
    }
}
