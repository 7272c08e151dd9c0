//! Sequences and optional values. The graph has neither: which tensors a sequence holds, and whether an optional value is
//! there, is known during the import.

use super::control::within;
use super::movement::{concatenated, parts};
use crate::frontend::onnx::context::Named;
use crate::frontend::onnx::node::NodeContext;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::movement::check_indices;
use crate::graph::op::Gather;
use crate::graph::{Tensor, ValueId};

impl NodeContext<'_, '_> {
    /// The tensors of an operand that is a sequence.
    fn sequence(&mut self, i: usize) -> Result<Vec<ValueId>, Reason> {
        match self.meaning(i)? {
            Named::Sequence(tensors) => Ok(tensors),
            _ => Err(format!("operand {i}, `{}`, must be a sequence", self.proto.input[i]).into()),
        }
    }

    /// A place in a sequence of `count` by an operand, counted from the end if negative: one of the first `places`.
    fn place(&self, i: usize, count: usize, places: usize) -> Result<usize, Reason> {
        let at = self.whole(i)?;
        let place = if at < 0 { at.saturating_add_unsigned(count as u64) } else { at };
        let place = usize::try_from(place).ok().filter(|place| *place < places);
        place.ok_or_else(|| Reason(format!("its position {at} is not in a sequence of {count}")))
    }

    /// Checks that a tensor has the element type of those of a sequence.
    fn check_element(&self, tensors: &[ValueId], v: ValueId) -> Result<(), Reason> {
        let element = |v: ValueId| (self.ty(v).dtype, self.unsigned(v));
        match tensors.first() {
            Some(&first) if element(first) != element(v) => {
                let (own, found) = (self.ty(first), self.ty(v));
                Err(format!("its sequence holds tensors such as {own}, which {found} cannot be added to").into())
            }
            _ => Ok(()),
        }
    }
}

pub(super) fn construct(n: &mut NodeContext) -> Result<(), Reason> {
    let mut tensors = Vec::new();
    for i in 0..n.proto.input.len() {
        let v = n.input(i)?;
        n.check_element(&tensors, v)?;
        tensors.push(v);
    }
    n.output_meaning(Named::Sequence(tensors))
}

pub(super) fn empty(n: &mut NodeContext) -> Result<(), Reason> {
    n.output_meaning(Named::Sequence(Vec::new()))
}

/// One tensor. Those of a sequence with one shape can be chosen when the model runs.
pub(super) fn at(n: &mut NodeContext) -> Result<(), Reason> {
    let tensors = n.sequence(0)?;
    let first = tensors.first().copied().filter(|&v| tensors.iter().all(|&other| n.ty(other) == n.ty(v)));
    match first {
        Some(first) if n.known(1).is_none() => {
            let stacked = stack(n, &tensors, 0)?;
            let position = n.plain(1)?;
            let position = n.reshape("position", position, &[])?;
            check_indices(n, position, stacked, 0)?;
            let v = n.node("", Gather { axis: 0 }, &[stacked, position])?;
            n.output_like(v, first)
        }
        _ => {
            let place = n.place(1, tensors.len(), tensors.len())?;
            n.output_meaning(Named::Value(tensors[place]))
        }
    }
}

pub(super) fn length(n: &mut NodeContext) -> Result<(), Reason> {
    let count = n.sequence(0)?.len();
    n.output_known(Tensor::scalar(count as i64))
}

pub(super) fn insert(n: &mut NodeContext) -> Result<(), Reason> {
    let (mut tensors, v) = (n.sequence(0)?, n.input(1)?);
    n.check_element(&tensors, v)?;
    let count = tensors.len();
    // The new tensor comes before the one at its place, or behind the last one.
    let place = if n.has_input(2) { n.place(2, count, count + 1)? } else { count };
    tensors.insert(place, v);
    n.output_meaning(Named::Sequence(tensors))
}

pub(super) fn erase(n: &mut NodeContext) -> Result<(), Reason> {
    let mut tensors = n.sequence(0)?;
    let last = tensors.len().checked_sub(1).ok_or("its sequence has no tensors")?;
    let place = if n.has_input(1) { n.place(1, tensors.len(), tensors.len())? } else { last };
    tensors.remove(place);
    n.output_meaning(Named::Sequence(tensors))
}

/// Tensors joined along a new axis.
fn stack(n: &mut NodeContext, tensors: &[ValueId], axis: i64) -> Result<ValueId, Reason> {
    let mut apart = Vec::new();
    for (i, &v) in tensors.iter().enumerate() {
        let mut shape = n.shape(v)?;
        let axis = n.axis(axis, shape.len() + 1)?;
        shape.insert(axis, 1);
        apart.push(n.reshape(&format!("{i}"), v, &shape)?);
    }
    let axis = apart.first().map_or(Ok(0), |&v| n.axis(axis, n.ty(v).rank()))?;
    concatenated(n, apart, axis)
}

pub(super) fn concat(n: &mut NodeContext) -> Result<(), Reason> {
    let tensors = n.sequence(0)?;
    let first = *tensors.first().ok_or("its sequence has no tensors")?;
    let axis = n.int("axis").ok_or("it has no `axis`")?;
    let v = match n.int("new_axis").unwrap_or(0) {
        0 => {
            let axis = n.axis(axis, n.ty(first).rank())?;
            concatenated(n, tensors, axis)?
        }
        _ => stack(n, &tensors, axis)?,
    };
    n.output_like(v, first)
}

pub(super) fn split(n: &mut NodeContext) -> Result<(), Reason> {
    let data = n.input(0)?;
    let axis = n.axis_attribute(0, n.ty(data).rank())?;
    let size = n.shape(data)?[axis];
    let keeps = n.has_input(1) || n.int("keepdims").unwrap_or(1) != 0;
    let given = if n.has_input(1) { Some(n.integers(1)?) } else { None };
    let is_one = n.has_input(1) && n.constant_input(1)?.shape().is_empty();
    let sizes: Vec<i128> = match given {
        Some(list) if !is_one => list.into_iter().map(i128::from).collect(),
        given => {
            let each = given.map_or(1, |list| list[0]);
            let each = usize::try_from(each).ok().filter(|&each| each > 0).ok_or("its `split` must be positive")?;
            n.reserve_nodes(size.div_ceil(each))?;
            (0..size).step_by(each).map(|start| (size - start).min(each) as i128).collect()
        }
    };
    n.reserve_nodes(sizes.len())?;
    let mut tensors = parts(n, data, axis, &sizes, sizes.len())?;
    if !keeps {
        let mut shape = n.shape(data)?;
        shape.remove(axis);
        for (i, v) in tensors.iter_mut().enumerate() {
            let squeezed = n.reshape(&format!("{i}/squeezed"), *v, &shape)?;
            n.mark_like(squeezed, data);
            *v = squeezed;
        }
    }
    n.output_meaning(Named::Sequence(tensors))
}

/// Its graph for each tensor of the first sequence.
pub(super) fn map(n: &mut NodeContext) -> Result<(), Reason> {
    let body = n.graph("body").ok_or("its attribute `body` is missing")?;
    let operands = (0..n.proto.input.len()).map(|i| n.meaning(i)).collect::<Result<Vec<_>, _>>()?;
    let count = n.sequence(0)?.len();
    if body.input.len() != operands.len() {
        return Err(
            format!("its body takes {} values, but it has {} operands", body.input.len(), operands.len()).into()
        );
    }
    let mut results = vec![Vec::new(); body.output.len()];
    for step in 0..count {
        let mut inputs = Vec::new();
        for (i, operand) in operands.iter().enumerate() {
            inputs.push(match operand {
                Named::Sequence(tensors) => {
                    let other =
                        || format!("operand {i} is a sequence of {}, but the first is one of {count}", tensors.len());
                    Named::Value(*tensors.get(step).filter(|_| tensors.len() == count).ok_or_else(other)?)
                }
                other => other.clone(),
            });
        }
        let made = within(n, body, step, inputs, |n| {
            Ok(body.output.iter().map(|info| n.cx.value(&info.name)).collect::<Result<Vec<_>, _>>()?)
        })?;
        for (list, v) in results.iter_mut().zip(made) {
            list.push(v);
        }
    }
    n.output_meanings(results.into_iter().map(Named::Sequence).collect())
}

/// An optional value is what it holds.
pub(super) fn optional(n: &mut NodeContext) -> Result<(), Reason> {
    let held = if n.has_input(0) { n.meaning(0)? } else { Named::Nothing };
    n.output_meaning(held)
}

pub(super) fn get_element(n: &mut NodeContext) -> Result<(), Reason> {
    match n.meaning(0)? {
        Named::Nothing => {
            Err(format!("operand 0, `{}`, is an optional value that is not there", n.proto.input[0]).into())
        }
        held => n.output_meaning(held),
    }
}

pub(super) fn has_element(n: &mut NodeContext) -> Result<(), Reason> {
    let is_there = n.has_input(0) && !matches!(n.meaning(0)?, Named::Nothing);
    n.output_known(Tensor::scalar(is_there))
}
