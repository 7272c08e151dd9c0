//! Places of buffers that are a whole tensor of a layer which stays in inp.
//!
//! The expression of a layer reads and writes its tensors through buffers in scratchpads, whether the tensors are in device
//! memory or stay in inp. If one stays in inp, its buffer is the tensor itself, and the copy between both is no instruction.

use tilewright_hw::config::{HwConfig, Mem};

use super::LowerError;
use super::layer_schedule::{LayerInput, LayerSchedule};
use crate::codegen::accel::kept::{Kept, OnChip};
use crate::schedule::bounds;
use crate::te::{Expr, Name};
use crate::tir::{Action, Affine, Buffer, Function, Scope, simplify};
use tilewright_tensor::mapping::memory::{Held, Place};

/// Dimensions of a tensor of images: images, blocks, rows, columns and the channels of a block.
const DIMS: usize = 5;

/// Returns the number of the expression's input that stays in inp.
pub fn kept_input(schedule: &LayerSchedule, on_chip: &OnChip) -> Option<usize> {
    on_chip.input?;
    schedule.inputs.iter().position(|input| *input == LayerInput::Tensor(0))
}

/// Returns the buffers of a layer's program whose places are those of tensors that stay in inp.
///
/// # Errors
/// A buffer does not have all elements of such a tensor.
pub fn held(config: &HwConfig, f: &Function, schedule: &LayerSchedule, on_chip: &OnChip) -> Result<Held, LowerError> {
    let mut held = Held { room: on_chip.room, ..Held::default() };
    if let Some((tensor, kept)) = kept_input(schedule, on_chip).and_then(|i| f.inputs().get(i)).zip(on_chip.input) {
        let copies = copies(f, &tensor.name);
        let [copy] = copies.as_slice() else {
            return Err(fail(tensor, &tensor.name, "copy it once, to inp"));
        };
        let Some(local) = in_inp(f, &copy.buffer) else {
            return Err(fail(tensor, &copy.buffer, "put this buffer into inp"));
        };
        let bounds = bounds(f);
        let affine =
            |list: &[Expr]| -> Option<Vec<Affine>> { list.iter().map(|e| Affine::of(&simplify(e, &bounds))).collect() };
        let steps = (|| Steps::of(&affine(&copy.to)?, &affine(&copy.from)?))();
        let Some(steps) = steps else {
            return Err(fail(tensor, &copy.buffer, "this buffer must have all of its elements, so do not compact it"));
        };
        if !is_inside(&steps, [tensor, local], &kept, copy.pad) {
            return Err(fail(tensor, &copy.buffer, "this buffer reads other padding than the tensor has there"));
        }
        held.places.insert(copy.buffer.clone(), place(config, &steps, local, &kept));
    }
    if let Some((tensor, kept)) = f.output_buffers().first().zip(on_chip.output) {
        // Made by cache_write or keep.
        let name: Name = format!("{}.inp", tensor.name).into();
        let Some(local) = in_inp(f, &name).filter(|local| local.shape == tensor.shape) else {
            return Err(fail(tensor, &name, "write all of it to this buffer with cache_write or keep"));
        };
        held.places.insert(name, place(config, &Steps::identity(tensor.shape.len()), local, &kept));
    }
    Ok(held)
}

fn fail(tensor: &Buffer, buffer: &Name, reason: &str) -> LowerError {
    let reason = format!("{} stays in inp for other layers; {reason}", tensor.name);
    LowerError::Buffer { buffer: buffer.clone(), reason }
}

fn in_inp<'f>(f: &'f Function, name: &Name) -> Option<&'f Buffer> {
    f.locals.iter().find(|b| b.name == *name && b.scope == Scope::Inp)
}

/// A copy of a tensor to a buffer.
struct Copy {
    buffer: Name,
    /// Indices of an element in the buffer.
    to: Vec<Expr>,
    /// Its indices in the tensor.
    from: Vec<Expr>,
    /// The value of elements outside the tensor.
    pad: Option<i64>,
}

/// Returns the copies of a tensor.
fn copies(f: &Function, tensor: &Name) -> Vec<Copy> {
    let mut found = Vec::new();
    f.body.visit_blocks(&mut |_, block| {
        let Action::Store { buffer, indices, value } = &block.action else { return };
        let (load, pad) = match value {
            Expr::Select(_, load, other) => match other.as_ref() {
                Expr::Int(pad, _) => (load.as_ref(), Some(*pad)),
                _ => return,
            },
            load => (load, None),
        };
        match load {
            Expr::Load { buffer: from, indices: read, .. } if from == tensor => {
                found.push(Copy { buffer: buffer.clone(), to: indices.clone(), from: read.clone(), pad });
            }
            _ => {}
        }
    });
    found
}

/// Returns whether all elements of a tensor that a buffer has are in the tensor, or in a border that has the value of
/// padding.
fn is_inside(steps: &Steps, [tensor, local]: [&Buffer; 2], kept: &Kept, pad: Option<i64>) -> bool {
    let [top, left, bottom, right] = kept.border.map(i64::from);
    let inside = |(k, &size): (usize, &i64)| {
        let (least, most) = steps.range(k, &local.shape);
        let [before, after] = match k {
            _ if pad != Some(kept.pad_value.into()) => [0; 2],
            2 => [top, bottom],
            3 => [left, right],
            _ => [0; 2],
        };
        least >= -before && most < size + after
    };
    tensor.shape.len() == DIMS && tensor.shape.iter().enumerate().all(inside)
}

/// Returns the place of a buffer that is a part of a kept tensor.
fn place(config: &HwConfig, steps: &Steps, local: &Buffer, kept: &Kept) -> Place {
    let elements = i64::from(config.block());
    let [_, columns] = kept.size();
    // Elements of inp from index to index of each dimension of the tensor.
    let each: [i64; DIMS] = [0, i64::from(kept.plane()) * elements, i64::from(columns) * elements, elements, 1];
    let sum = |factors: &[i64]| factors.iter().zip(each).map(|(factor, step)| factor * step).sum::<i64>();
    let along = |d: usize| sum(&steps.factors.iter().map(|factors| factors[d]).collect::<Vec<_>>());
    let first = (i64::from(kept.at(0, 0, 0)) + sum(&steps.first) / elements) as u32;
    let entries = kept.entry + kept.entries() - first;
    Place {
        mem: Mem::Inp,
        first,
        entries,
        stride: entries,
        pipeline: None,
        slots: 1,
        firsts: Vec::new(),
        elements,
        strides: Some((0..local.shape.len()).map(along).collect()),
    }
}

/// Indices of a tensor as sums of those of a buffer.
struct Steps {
    /// For each dimension of the tensor, its index at the first element of the buffer.
    first: Vec<i64>,
    /// For each dimension of the tensor, the step of its index along each dimension of the buffer.
    factors: Vec<Vec<i64>>,
}

impl Steps {
    /// The buffer has the same elements as the tensor.
    fn identity(dims: usize) -> Steps {
        let factors = (0..dims).map(|k| (0..dims).map(|d| i64::from(d == k)).collect());
        Steps { first: vec![0; dims], factors: factors.collect() }
    }

    /// Compares the indices of one element; `None` if those of the tensor do not follow from those of the buffer.
    fn of(own: &[Affine], theirs: &[Affine]) -> Option<Steps> {
        // A variable of each dimension of the buffer that is in no other dimension.
        let variable = |d: usize| {
            let alone = |v: &&Name| own.iter().enumerate().all(|(other, a)| other == d || a.coefficient(v) == 0);
            own[d].terms.iter().find(|(v, c)| *c == 1 && alone(v)).map(|(v, _)| v)
        };
        let mut steps = Steps { first: Vec::new(), factors: Vec::new() };
        for index in theirs {
            let factors: Vec<i64> = (0..own.len()).map(|d| variable(d).map_or(0, |v| index.coefficient(v))).collect();
            let rest = own.iter().zip(&factors).fold(index.clone(), |rest, (own, factor)| rest.plus(own, -factor));
            steps.first.push(rest.as_constant()?);
            steps.factors.push(factors);
        }
        Some(steps)
    }

    /// Returns the least and the greatest index of a dimension of the tensor over all elements of the buffer.
    fn range(&self, k: usize, shape: &[i64]) -> (i64, i64) {
        let ends = self.factors[k].iter().zip(shape).map(|(factor, n)| factor * (n - 1));
        let (least, most) = ends.fold((0, 0), |(least, most), end| (least + end.min(0), most + end.max(0)));
        (self.first[k] + least, self.first[k] + most)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn indices_follow_from_those_of_a_buffer() {
        let sum = |constant, terms: &[(&str, i64)]| Affine {
            constant,
            terms: terms.iter().map(|&(v, c)| (v.into(), c)).collect(),
        };
        let own = [sum(0, &[]), sum(0, &[("tile", 4), ("y", 1)]), sum(0, &[("x", 1)])];
        let steps = Steps::of(&own, &[sum(-1, &[("tile", 8), ("y", 2)]), sum(3, &[("x", 1)])]).unwrap();
        assert_eq!((&steps.first, &steps.factors), (&vec![-1, 3], &vec![vec![0, 2, 0], vec![0, 0, 1]]));
        assert_eq!((steps.range(0, &[1, 8, 5]), steps.range(1, &[1, 8, 5])), ((-1, 13), (3, 7)));
        // A buffer with the rows of one tile only.
        assert!(Steps::of(&[sum(0, &[("y", 1)])], &[sum(0, &[("tile", 4), ("y", 1)])]).is_none());
    }
}
