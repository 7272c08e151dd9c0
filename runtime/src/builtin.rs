//! Functions that compiled models call and every registry has: operators whose results have a number of rows that
//! depends on the data. Each returns tensors of the most rows that there can be, filled up with zeros, and the number.

use std::cmp::Ordering;
use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::function::{AnyError, Args, Function};
use crate::tensor::{DType, Number, Tensor};
use crate::value::Value;

/// Keeps boxes that do not overlap better ones.
pub const NON_MAX_SUPPRESSION: &str = "tilewright.non_max_suppression";
/// Finds the elements that are not 0.
pub const NON_ZERO: &str = "tilewright.non_zero";
/// Keeps the parts for which a condition holds.
pub const COMPRESS: &str = "tilewright.compress";
/// Finds the different parts.
pub const UNIQUE: &str = "tilewright.unique";

type Body = fn(&Args) -> Result<Value, AnyError>;

/// The functions by name.
static FUNCTIONS: LazyLock<BTreeMap<&str, Function>> = LazyLock::new(|| {
    let all: [(&str, Body); 4] =
        [(NON_MAX_SUPPRESSION, non_max_suppression), (NON_ZERO, non_zero), (COMPRESS, compress), (UNIQUE, unique)];
    all.into_iter().map(|(name, f)| (name, Function::new(name, move |args| f(&args)))).collect()
});

/// The function of this name.
pub fn get(name: &str) -> Option<Function> {
    FUNCTIONS.get(name).cloned()
}

/// The attributes, which are the last argument.
struct Attributes<'a>(&'a BTreeMap<String, Value>);

impl<'a> Attributes<'a> {
    fn of(args: &Args<'a>) -> Result<Attributes<'a>, AnyError> {
        Ok(Attributes(args.get::<BTreeMap<String, Value>>(args.values().len().saturating_sub(1))?))
    }

    fn integer(&self, name: &str) -> Option<i64> {
        match self.0.get(name) {
            Some(Value::Integer(value)) => Some(*value),
            _ => None,
        }
    }

    /// The dimension of the parts, if they are not elements.
    fn axis(&self) -> Result<Option<usize>, AnyError> {
        let axis = |axis| usize::try_from(axis).map_err(|_| "the attribute `axis` is below 0".into());
        self.integer("axis").map(axis).transpose()
    }

    /// The most rows that there can be.
    fn most(&self) -> Result<usize, AnyError> {
        let most = self.integer("most").and_then(|most| usize::try_from(most).ok());
        most.ok_or_else(|| "the attribute `most` is missing".into())
    }
}

/// A tensor of 64-bit integers, filled up with zeros.
fn integers(shape: &[usize], values: &[i64]) -> Result<Value, AnyError> {
    let mut bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
    bytes.resize(shape.iter().product::<usize>() * 8, 0);
    let tensor = Tensor::new(DType::I64, shape.to_vec(), bytes);
    Ok(Value::Tensor(tensor.ok_or("there are more rows than the model has room for")?))
}

fn count(rows: usize) -> Result<Value, AnyError> {
    integers(&[], &[rows as i64])
}

/// Boxes `[B, N, 4]`, scores `[B, C, N]`, the most boxes of a class, the threshold of the overlap, and of the score: the
/// rows batch, class, box of the boxes that are kept (ONNX, NonMaxSuppression). Without the last threshold every score
/// counts.
fn non_max_suppression(args: &Args) -> Result<Value, AnyError> {
    let attributes = Attributes::of(args)?;
    let (boxes, scores) = (args.get::<Tensor>(0)?, args.get::<Tensor>(1)?);
    let single = |i: usize| -> Result<f64, AnyError> {
        let t = args.get::<Tensor>(i)?;
        if t.len() == 1 { Ok(t.get_f64(0)) } else { Err(format!("operand {i} must be one number").into()) }
    };
    let (most_of_class, overlap) = (single(2)?, single(3)?);
    let threshold = if args.values().len() > 5 { Some(single(4)?) } else { None };
    let (&[batches, count_of_boxes, 4], &[_, classes, _]) = (&boxes.shape[..], &scores.shape[..]) else {
        return Err("the boxes must be [B, N, 4], and the scores [B, C, N]".into());
    };
    if scores.shape != [batches, classes, count_of_boxes] {
        return Err(format!("the scores {:?} do not belong to the boxes {:?}", scores.shape, boxes.shape).into());
    }
    let centers = attributes.integer("center_point_box") == Some(1);
    let (boxes, scores) = (boxes.to_f64(), scores.to_f64());
    let mut rows = Vec::new();
    for (batch, class) in (0..batches).flat_map(|b| (0..classes).map(move |c| (b, c))) {
        let scores = &scores[(batch * classes + class) * count_of_boxes..][..count_of_boxes];
        let corners = |i: usize| Corners::new(&boxes[(batch * count_of_boxes + i) * 4..][..4], centers);
        let above = |i: &usize| threshold.is_none_or(|threshold| scores[*i] > threshold);
        let mut order: Vec<usize> = (0..count_of_boxes).filter(above).collect();
        order.sort_by(|a, b| scores[*b].total_cmp(&scores[*a]));
        let mut kept: Vec<(usize, Corners)> = Vec::new();
        for i in order {
            if kept.len() as f64 >= most_of_class {
                break;
            }
            let own = corners(i);
            if kept.iter().all(|(_, other)| own.overlap(other) <= overlap) {
                kept.push((i, own));
            }
        }
        rows.extend(kept.iter().flat_map(|(i, _)| [batch as i64, class as i64, *i as i64]));
    }
    Ok([integers(&[attributes.most()?, 3], &rows)?, count(rows.len() / 3)?].into_iter().collect())
}

/// The least and greatest coordinates of a box.
struct Corners {
    low: [f64; 2],
    high: [f64; 2],
}

impl Corners {
    /// From two opposite corners, or from the center and the sizes.
    fn new(numbers: &[f64], is_center: bool) -> Corners {
        let (a, b) = ([numbers[0], numbers[1]], [numbers[2], numbers[3]]);
        if is_center {
            let ends = |sign: f64| [0, 1].map(|i| a[i] + sign * b[i] / 2.0);
            return Corners { low: ends(-1.0), high: ends(1.0) };
        }
        Corners { low: [0, 1].map(|i| a[i].min(b[i])), high: [0, 1].map(|i| a[i].max(b[i])) }
    }

    fn area(&self) -> f64 {
        (self.high[0] - self.low[0]) * (self.high[1] - self.low[1])
    }

    /// The part of both that both share.
    fn overlap(&self, other: &Corners) -> f64 {
        let side = |i: usize| (self.high[i].min(other.high[i]) - self.low[i].max(other.low[i])).max(0.0);
        let shared = side(0) * side(1);
        let all = self.area() + other.area() - shared;
        if shared > 0.0 && all > 0.0 { shared / all } else { 0.0 }
    }
}

/// The places of the elements that are not 0: a row for each dimension (ONNX, NonZero).
fn non_zero(args: &Args) -> Result<Value, AnyError> {
    let (x, most) = (args.get::<Tensor>(0)?, Attributes::of(args)?.most()?);
    let found: Vec<usize> = (0..x.len()).filter(|i| x.get_f64(*i) != 0.0).collect();
    let mut rows = vec![0; x.shape.len() * most];
    for (k, &i) in found.iter().enumerate() {
        let mut rest = i;
        for (axis, size) in x.shape.iter().enumerate().rev() {
            let place = rows.get_mut(axis * most + k).ok_or("there are more rows than the model has room for")?;
            (*place, rest) = ((rest % size) as i64, rest / size);
        }
    }
    Ok([integers(&[x.shape.len(), most], &rows)?, count(found.len())?].into_iter().collect())
}

/// The parts of a shape along a dimension, or its elements: for each the places of its elements.
fn parts(shape: &[usize], axis: Option<usize>) -> Result<Vec<Vec<usize>>, AnyError> {
    let Some(axis) = axis else { return Ok((0..shape.iter().product()).map(|i| vec![i]).collect()) };
    let count = *shape.get(axis).ok_or("there is no such dimension")?;
    let [outer, inner] = [&shape[..axis], &shape[axis + 1..]].map(|sizes| sizes.iter().product::<usize>());
    let part = |k: usize| {
        let place = move |(o, i): (usize, usize)| (o * count + k) * inner + i;
        (0..outer).flat_map(move |o| (0..inner).map(move |i| (o, i))).map(place).collect()
    };
    Ok((0..count).map(part).collect())
}

/// The chosen parts of a tensor, filled up with zeros to `most` parts.
fn of_parts(x: &Tensor, axis: Option<usize>, most: usize, chosen: &[&Vec<usize>]) -> Result<Value, AnyError> {
    if chosen.len() > most {
        return Err("there are more rows than the model has room for".into());
    }
    let (size, mut shape) = (x.dtype.size(), x.shape.clone());
    match axis {
        Some(axis) => shape[axis] = most,
        None => shape = vec![most],
    }
    let mut bytes = vec![0; shape.iter().product::<usize>() * size];
    for (part, places) in chosen.iter().zip(&parts(&shape, axis)?) {
        for (from, to) in part.iter().zip(places) {
            bytes[to * size..][..size].copy_from_slice(&x.bytes[from * size..][..size]);
        }
    }
    Ok(Value::Tensor(Tensor::new(x.dtype, shape, bytes).ok_or("the result has a wrong size")?))
}

/// The parts of a tensor for which a condition holds (ONNX, Compress).
fn compress(args: &Args) -> Result<Value, AnyError> {
    let (x, condition, attributes) = (args.get::<Tensor>(0)?, args.get::<Tensor>(1)?, Attributes::of(args)?);
    let (axis, most) = (attributes.axis()?, attributes.most()?);
    let parts = parts(&x.shape, axis)?;
    let holds = |i: usize| i < condition.len() && condition.get_f64(i) != 0.0;
    let chosen: Vec<&Vec<usize>> = parts.iter().enumerate().filter(|(i, _)| holds(*i)).map(|(_, part)| part).collect();
    Ok([of_parts(x, axis, most, &chosen)?, count(chosen.len())?].into_iter().collect())
}

/// The order of two elements: NaN comes last, and equals NaN.
fn order(a: Number, b: Number) -> Ordering {
    match (a, b) {
        (Number::Whole(a), Number::Whole(b)) => a.cmp(&b),
        (a, b) => {
            let (a, b) = (a.to_f64(), b.to_f64());
            a.partial_cmp(&b).unwrap_or_else(|| a.is_nan().cmp(&b.is_nan()))
        }
    }
}

/// The different parts of a tensor, the first place of each, the place of each part among them, and how often each is
/// there; in their order, or in that of their first places (ONNX, Unique).
fn unique(args: &Args) -> Result<Value, AnyError> {
    let (x, attributes) = (args.get::<Tensor>(0)?, Attributes::of(args)?);
    let (axis, most) = (attributes.axis()?, attributes.most()?);
    let parts = parts(&x.shape, axis)?;
    let compare = |a: usize, b: usize| {
        let pairs = parts[a].iter().zip(&parts[b]);
        pairs.map(|(a, b)| order(x.number(*a), x.number(*b))).find(|o| o.is_ne()).unwrap_or(Ordering::Equal)
    };
    let mut sorted: Vec<usize> = (0..parts.len()).collect();
    sorted.sort_by(|a, b| compare(*a, *b));
    // The places of each different part, the first one first, because the sort is stable.
    let mut groups: Vec<Vec<usize>> = Vec::new();
    for i in sorted {
        match groups.last_mut() {
            Some(group) if compare(group[0], i).is_eq() => group.push(i),
            _ => groups.push(vec![i]),
        }
    }
    if attributes.integer("sorted") == Some(0) {
        groups.sort_by_key(|group| group[0]);
    }
    let mut inverse = vec![0; parts.len()];
    for (k, group) in groups.iter().enumerate() {
        group.iter().for_each(|i| inverse[*i] = k as i64);
    }
    let chosen: Vec<&Vec<usize>> = groups.iter().map(|group| &parts[group[0]]).collect();
    let first: Vec<i64> = groups.iter().map(|group| group[0] as i64).collect();
    let times: Vec<i64> = groups.iter().map(|group| group.len() as i64).collect();
    let values = [
        of_parts(x, axis, most, &chosen)?,
        integers(&[most], &first)?,
        integers(&[parts.len()], &inverse)?,
        integers(&[most], &times)?,
        count(groups.len())?,
    ];
    Ok(values.into_iter().collect())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn call(name: &str, given: Vec<Tensor>, attributes: &[(&str, i64)]) -> Vec<Tensor> {
        let attributes: Value = attributes.iter().map(|(name, value)| (*name, Value::Integer(*value))).collect();
        let given: Vec<Value> = given.into_iter().map(Value::Tensor).chain([attributes]).collect();
        let Value::List(list) = get(name).unwrap().call(&given).unwrap() else { panic!("no list") };
        let tensor = |value| match value {
            Value::Tensor(tensor) => tensor,
            other => panic!("{other}"),
        };
        list.into_iter().map(tensor).collect()
    }

    fn floats(shape: &[usize], values: &[f32]) -> Tensor {
        Tensor::from_f32(shape.to_vec(), values).unwrap()
    }

    #[test]
    fn overlapping_boxes_are_dropped() {
        let boxes = [[0.0, 0.0, 1.0, 1.0], [0.0, 0.1, 1.0, 1.1], [0.0, -0.1, 1.0, 0.9], [0.0, 10.0, 1.0, 11.0]];
        let boxes = floats(&[1, 4, 4], boxes.as_flattened());
        let scores = floats(&[1, 1, 4], &[0.9, 0.75, 0.6, 0.95]);
        let one = |x: f32| floats(&[], &[x]);
        let kept = |most: f32, threshold: f32| {
            let given = vec![boxes.clone(), scores.clone(), one(most), one(0.5), one(threshold)];
            let found = call(NON_MAX_SUPPRESSION, given, &[("most", 4)]);
            let rows = found[1].get_f64(0) as usize;
            assert_eq!(found[0].shape, [4, 3]);
            (0..rows).map(|row| found[0].get_f64(row * 3 + 2)).collect::<Vec<_>>()
        };
        assert_eq!(kept(3.0, 0.0), [3.0, 0.0]);
        assert_eq!(kept(1.0, 0.0), [3.0]);
        assert_eq!(kept(3.0, 0.92), [3.0]);
        assert_eq!(kept(0.0, 0.0), [0.0; 0]);
    }

    #[test]
    fn parts_are_chosen_and_counted() {
        let x = floats(&[2, 3], &[1.0, 0.0, 1.0, 2.0, 5.0, 2.0]);
        let found = call(NON_ZERO, vec![x.clone()], &[("most", 6)]);
        assert_eq!((found[1].get_f64(0), &found[0].shape[..]), (5.0, &[2, 6][..]));
        assert_eq!(found[0].to_f64(), [0.0, 0.0, 1.0, 1.0, 1.0, 0.0, 0.0, 2.0, 0.0, 1.0, 2.0, 0.0]);
        let found = call(UNIQUE, vec![x.clone()], &[("most", 3), ("axis", 1)]);
        assert_eq!(found[0].to_f64(), [0.0, 1.0, 0.0, 5.0, 2.0, 0.0], "columns, in order, then zeros");
        assert_eq!(
            [&found[1], &found[2], &found[3]].map(|t| t.to_f64()),
            [[1.0, 0.0, 0.0], [1.0, 0.0, 1.0], [1.0, 2.0, 0.0]]
        );
        let nan = floats(&[4], &[f32::NAN, 3.0, f32::NAN, 1.0]);
        let found = call(UNIQUE, vec![nan], &[("most", 4), ("sorted", 0)]);
        assert_eq!((found[4].get_f64(0), found[1].to_f64()), (3.0, vec![0.0, 1.0, 3.0, 0.0]));
        let condition = Tensor::new(DType::Bool, vec![2], vec![0, 1]).unwrap();
        let found = call(COMPRESS, vec![x.clone(), condition.clone()], &[("most", 2), ("axis", 1)]);
        assert_eq!((found[0].to_f64(), found[1].get_f64(0)), (vec![0.0, 0.0, 5.0, 0.0], 1.0));
        let found = call(COMPRESS, vec![x, condition], &[("most", 2)]);
        assert_eq!((found[0].to_f64(), found[1].get_f64(0)), (vec![0.0, 0.0], 1.0));
    }
}
