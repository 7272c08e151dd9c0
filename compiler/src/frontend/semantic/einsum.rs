//! Einsum: sums of products over labeled dimensions, built from transposes, products and sums.
//!
//! Operands are combined from left to right, two at a time. A label that neither the result nor a later operand has is
//! summed: by the matrix product if both operands have it, and before the product if only one has it.

use super::SemanticBuilder;
use super::product::multiplied;
use crate::frontend::reason::Reason;
use crate::graph::op::{BinaryKind, Dense, MatMul, ReduceKind, Slice, Transpose};
use crate::graph::{DType, ValueId};
use std::collections::BTreeMap;

/// The label of a dimension: a letter, or a position in the ellipsis, counted from the last.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Label {
    /// Ordered from the first position, so that an implied result begins with them.
    Ellipsis(std::cmp::Reverse<usize>),
    Letter(char),
}

/// A tensor with labels for its dimensions, each used once.
#[derive(Debug, Clone)]
struct Term {
    value: ValueId,
    labels: Vec<Label>,
}

/// One tensor's part of the equation: letters, and the position of the ellipsis.
#[derive(Debug, PartialEq)]
struct Pattern {
    letters: Vec<char>,
    ellipsis: Option<usize>,
}

impl Pattern {
    fn parse(text: &str) -> Result<Pattern, Reason> {
        let mut pattern = Pattern { letters: Vec::new(), ellipsis: None };
        let mut rest = text;
        while let Some(c) = rest.chars().next() {
            if let Some(behind) = rest.strip_prefix("...") {
                if pattern.ellipsis.replace(pattern.letters.len()).is_some() {
                    return Err(format!("its equation has two ellipses in `{text}`").into());
                }
                rest = behind;
            } else if c.is_ascii_alphabetic() {
                pattern.letters.push(c);
                rest = &rest[1..];
            } else {
                let known = "use letters, `...`, commas and one `->`";
                return Err(format!("its equation has `{c}` in `{text}`, which is not allowed; {known}").into());
            }
        }
        Ok(pattern)
    }

    /// Labels of a tensor's dimensions if the ellipsis covers `hidden` of them.
    fn labels(&self, hidden: usize) -> Vec<Label> {
        let mut labels: Vec<Label> = self.letters.iter().map(|&c| Label::Letter(c)).collect();
        if let Some(at) = self.ellipsis {
            labels.splice(at..at, (0..hidden).rev().map(|k| Label::Ellipsis(std::cmp::Reverse(k))));
        }
        labels
    }
}

/// The sum of products that an equation such as `ij,jk->ik` describes.
pub fn einsum(n: &mut SemanticBuilder, equation: &str, values: &[ValueId]) -> Result<ValueId, Reason> {
    let equation: String = equation.chars().filter(|c| !c.is_whitespace()).collect();
    let (left, right) = match equation.split_once("->") {
        Some((left, right)) => (left, Some(Pattern::parse(right)?)),
        None => (equation.as_str(), None),
    };
    let patterns = left.split(',').map(Pattern::parse).collect::<Result<Vec<_>, _>>()?;
    let (mut terms, sizes) = operands(n, &patterns, values)?;
    let wanted = result_labels(&patterns, right, &sizes)?;
    for (i, term) in terms.iter_mut().enumerate() {
        *term = without_ones(n, i, term, &sizes)?;
    }
    let Some((first, later)) = terms.split_first() else { return Err("it has no operands".into()) };
    let mut all = first.clone();
    for (i, next) in later.iter().enumerate() {
        let kept = |l: &Label| wanted.contains(l) || later[i + 1..].iter().any(|t| t.labels.contains(l));
        all = joined(n, &format!("{i}"), all, next.clone(), kept)?;
    }
    let all = summed(n, "sum", all, |l| wanted.contains(l))?;
    let v = arranged(n, "arranged", &all, &wanted)?;
    let shape: Vec<usize> = wanted.iter().map(|l| sizes[l]).collect();
    n.reshape("", v, &shape)
}

/// The operands with each label used once, and the sizes of all labels.
fn operands(
    n: &mut SemanticBuilder,
    patterns: &[Pattern],
    values: &[ValueId],
) -> Result<(Vec<Term>, BTreeMap<Label, usize>), Reason> {
    let count = values.len();
    if patterns.len() != count {
        return Err(format!("its equation has {} operands, but the node has {count}", patterns.len()).into());
    }
    let (mut terms, mut sizes) = (Vec::new(), BTreeMap::new());
    for (i, (pattern, &value)) in patterns.iter().zip(values).enumerate() {
        if !DType::NUMBERS.contains(&n.ty(value).dtype) {
            return Err(format!("its operand {i} must be of type f32, i32 or i64, found {}", n.ty(value)).into());
        }
        let (shape, named) = (n.shape(value)?, pattern.letters.len());
        if named > shape.len() || (named < shape.len() && pattern.ellipsis.is_none()) {
            return Err(format!("its equation has {named} dimensions for operand {i}, {}", n.ty(value)).into());
        }
        if shape.contains(&0) {
            return Err(format!("its operand {i}, {}, has no elements", n.ty(value)).into());
        }
        let labels = pattern.labels(shape.len() - named);
        for (label, &size) in labels.iter().zip(&shape) {
            let known = sizes.entry(*label).or_insert(size);
            if *known != size && *known != 1 && size != 1 {
                let name = match label {
                    Label::Letter(c) => format!("`{c}`"),
                    Label::Ellipsis(_) => "a dimension of the ellipsis".into(),
                };
                return Err(format!("its equation gives {name} the sizes {known} and {size}").into());
            }
            if *known == 1 {
                *known = size;
            }
        }
        terms.push(diagonal(n, i, Term { value, labels })?);
    }
    Ok((terms, sizes))
}

/// Labels of the result: the given ones, else the ellipsis and the letters that occur once, in alphabetical order.
fn result_labels(
    patterns: &[Pattern],
    given: Option<Pattern>,
    sizes: &BTreeMap<Label, usize>,
) -> Result<Vec<Label>, Reason> {
    let hidden = sizes.keys().filter(|l| matches!(l, Label::Ellipsis(_))).count();
    let Some(given) = given else {
        let once = |l: &&Label| match l {
            Label::Letter(c) => patterns.iter().flat_map(|p| &p.letters).filter(|&d| d == c).count() == 1,
            Label::Ellipsis(_) => true,
        };
        return Ok(sizes.keys().filter(once).copied().collect());
    };
    if given.ellipsis.is_none() && hidden > 0 {
        return Err("its equation's result leaves out the ellipsis of its operands; add `...` to it".into());
    }
    let labels = given.labels(hidden);
    for (i, l) in labels.iter().enumerate() {
        let Label::Letter(c) = l else { continue };
        if labels[..i].contains(l) {
            return Err(format!("its equation's result names `{c}` twice").into());
        }
        if !sizes.contains_key(l) {
            return Err(format!("its equation's result names `{c}`, which no operand has").into());
        }
    }
    Ok(labels)
}

/// The diagonal along dimensions with the same label.
fn diagonal(n: &mut SemanticBuilder, i: usize, mut term: Term) -> Result<Term, Reason> {
    while let Some(second) = (0..term.labels.len()).find(|&k| term.labels[..k].contains(&term.labels[k])) {
        let first = term.labels.iter().position(|l| *l == term.labels[second]).unwrap_or(second);
        let shape = n.shape(term.value)?;
        if shape[first] != shape[second] {
            return Err(format!("its equation gives sizes {} and {} the same name", shape[first], shape[second]).into());
        }
        let (size, rank) = (shape[first], shape.len());
        let mut perm: Vec<usize> = (0..rank).filter(|&a| a != first && a != second).collect();
        let mut sizes: Vec<usize> = perm.iter().map(|&a| shape[a]).collect();
        let labels = perm.iter().chain([&first]).map(|&a| term.labels[a]).collect();
        perm.extend([first, second]);
        let v = n.node(&format!("{i}/square"), Transpose { perm }, &[term.value])?;
        let area = size.checked_mul(size).ok_or("its operands are too large")?;
        sizes.push(area);
        let v = n.reshape(&format!("{i}/line"), v, &sizes)?;
        let (starts, mut steps) = (vec![0; sizes.len()], vec![1; sizes.len()]);
        (sizes[rank - 2], steps[rank - 2]) = (size, size as i64 + 1);
        term = Term { value: n.node(&format!("{i}/diagonal"), Slice { starts, sizes, steps }, &[v])?, labels };
    }
    Ok(term)
}

/// Removes dimensions of size 1 whose label has a greater size elsewhere: they broadcast.
fn without_ones(
    n: &mut SemanticBuilder,
    i: usize,
    term: &Term,
    sizes: &BTreeMap<Label, usize>,
) -> Result<Term, Reason> {
    let shape = n.shape(term.value)?;
    let stays = |k: &usize| shape[*k] == sizes[&term.labels[*k]];
    let kept: Vec<usize> = (0..shape.len()).filter(stays).collect();
    let to: Vec<usize> = kept.iter().map(|&k| shape[k]).collect();
    let labels = kept.iter().map(|&k| term.labels[k]).collect();
    Ok(Term { value: n.reshape(&format!("{i}/kept"), term.value, &to)?, labels })
}

/// Sums over all labels that are not kept.
fn summed(n: &mut SemanticBuilder, suffix: &str, term: Term, kept: impl Fn(&Label) -> bool) -> Result<Term, Reason> {
    let axes: Vec<usize> = (0..term.labels.len()).filter(|&k| !kept(&term.labels[k])).collect();
    if axes.is_empty() {
        return Ok(term);
    }
    let value = n.reduce(suffix, ReduceKind::Sum, &axes, false, term.value)?;
    Ok(Term { value, labels: term.labels.into_iter().filter(kept).collect() })
}

/// The term with its dimensions in this order, which contains all of its labels.
fn arranged(n: &mut SemanticBuilder, suffix: &str, term: &Term, order: &[Label]) -> Result<ValueId, Reason> {
    let place = |l: &Label| term.labels.iter().position(|m| m == l);
    let perm: Vec<usize> = order.iter().filter_map(place).collect();
    if perm.is_sorted() { Ok(term.value) } else { n.transposed(suffix, term.value, &perm) }
}

/// The product of two terms, summed over labels that both have and nothing else needs.
fn joined(
    n: &mut SemanticBuilder,
    step: &str,
    a: Term,
    b: Term,
    kept: impl Fn(&Label) -> bool,
) -> Result<Term, Reason> {
    let a = summed(n, &format!("{step}/left"), a, |l| kept(l) || b.labels.contains(l))?;
    let b = summed(n, &format!("{step}/right"), b, |l| kept(l) || a.labels.contains(l))?;
    let pick = |t: &Term, f: &dyn Fn(&Label) -> bool| t.labels.iter().copied().filter(f).collect::<Vec<Label>>();
    let batch = pick(&a, &|l| b.labels.contains(l) && kept(l));
    let inner = pick(&a, &|l| b.labels.contains(l) && !kept(l));
    let rows = pick(&a, &|l| !b.labels.contains(l));
    let columns = pick(&b, &|l| !a.labels.contains(l));
    let float = n.ty(a.value).dtype.is_float();
    let labels: Vec<Label> = [batch.as_slice(), &rows, &columns].concat();
    let shape = sizes_of(n, &[&a, &b], &labels)?;
    let value = if float && !inner.is_empty() {
        let left = matrix(n, &format!("{step}/a"), &a, &batch, &rows, &inner)?;
        let right = matrix(n, &format!("{step}/b"), &b, &batch, &inner, &columns)?;
        let dense = Dense { data_zero_point: 0, weight_zero_point: 0 };
        multiplied(n, left, right, dense, MatMul {})?
    } else {
        let (all, at) = ([batch.as_slice(), &rows, &inner].concat(), batch.len() + rows.len());
        let left = spread(n, &format!("{step}/a"), &a, &all, at, columns.len())?;
        let all = [batch.as_slice(), &columns, &inner].concat();
        let right = spread(n, &format!("{step}/b"), &b, &all, batch.len(), rows.len())?;
        let product = n.binary(&format!("{step}/product"), BinaryKind::Mul, left, right)?;
        let from = labels.len();
        let axes: Vec<usize> = (from..from + inner.len()).collect();
        if axes.is_empty() {
            product
        } else {
            n.reduce(&format!("{step}/sum"), ReduceKind::Sum, &axes, false, product)?
        }
    };
    Ok(Term { value: n.reshape(&format!("{step}/apart"), value, &shape)?, labels })
}

fn sizes_of(n: &SemanticBuilder, terms: &[&Term], labels: &[Label]) -> Result<Vec<usize>, Reason> {
    let mut sizes = Vec::with_capacity(labels.len());
    for l in labels {
        let found = terms.iter().find_map(|t| t.labels.iter().position(|m| m == l).map(|k| (t.value, k)));
        let (value, k) = found.ok_or("its equation has a label that no operand has")?;
        sizes.push(n.shape(value)?[k]);
    }
    Ok(sizes)
}

/// The term as matrices with these rows and columns, stacked over the batch.
fn matrix(
    n: &mut SemanticBuilder,
    suffix: &str,
    term: &Term,
    batch: &[Label],
    rows: &[Label],
    columns: &[Label],
) -> Result<ValueId, Reason> {
    let v = arranged(n, &format!("{suffix}/arranged"), term, &[batch, rows, columns].concat())?;
    let shape = n.shape(v)?;
    let (outer, inner) = shape.split_at(batch.len());
    let (rows, columns) = inner.split_at(rows.len());
    let sizes = [outer, &[rows.iter().product(), columns.iter().product()]].concat();
    n.reshape(&format!("{suffix}/matrix"), v, &sizes)
}

/// The term with its dimensions in this order, and `ones` dimensions of size 1 inserted at `at`.
fn spread(
    n: &mut SemanticBuilder,
    suffix: &str,
    term: &Term,
    order: &[Label],
    at: usize,
    ones: usize,
) -> Result<ValueId, Reason> {
    let v = arranged(n, &format!("{suffix}/arranged"), term, order)?;
    let mut shape = n.shape(v)?;
    shape.splice(at..at, std::iter::repeat_n(1, ones));
    n.reshape(&format!("{suffix}/spread"), v, &shape)
}
