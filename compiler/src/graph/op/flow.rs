//! `if` and `loop`: operators with regions.
//!
//! A region is a graph of its own. It names no value from outside: what it uses from there, the node passes as operands,
//! which are the region's inputs.

use super::attr::{Attr, AttrReader, AttrValue};
use crate::graph::{DType, Dim, Graph, OpError, Tensor, TensorData, TensorType, eval};
use std::collections::BTreeMap;
use std::sync::Arc;

pub use tilewright_runtime::artifact::MOST_STEPS;

/// Computes one of two regions.
///
/// Operands: the condition, one truth value; then what both regions get. Both return values of the same types, which are
/// the results.
#[derive(Debug, Clone, PartialEq)]
pub struct If {
    /// Computed if the condition is true.
    pub then: Arc<Graph>,
    /// Computed if it is false.
    pub otherwise: Arc<Graph>,
}

/// Computes a region until its limit is reached or its condition is false, at most [`MOST_STEPS`] times.
///
/// Operands: the limit, one i64; the condition, one truth value; the carried values; then what else the region gets. The
/// region's inputs are the step, one i64 that counts from 0; the carried values; and what else it gets. Its outputs are
/// the condition, the carried values for the next step, and the collected values.
///
/// Results: the last carried values; then the collected values of all steps along a new first dimension. Collected values
/// need as many steps as `collects` says.
#[derive(Debug, Clone, PartialEq)]
pub struct Loop {
    /// What each step computes.
    pub body: Arc<Graph>,
    /// Number of carried values.
    pub carried: usize,
    /// Number of steps that collected values are from; the loop must take as many.
    pub collects: usize,
}

/// A type with one element.
fn one(dtype: DType) -> TensorType {
    TensorType::new(dtype, &[])
}

fn check(operand: String, found: &TensorType, expected: &TensorType) -> Result<(), OpError> {
    if found == expected {
        return Ok(());
    }
    Err(OpError::Operand { operand, expected: expected.to_string(), found: found.to_string() })
}

/// Checks that a region takes these types.
fn check_inputs<'t>(
    region: &Graph,
    name: &'static str,
    types: impl ExactSizeIterator<Item = &'t TensorType>,
) -> Result<(), OpError> {
    if region.inputs().len() != types.len() {
        let reason = format!("takes {} values, but the node gives it {}", region.inputs().len(), types.len());
        return Err(OpError::Attribute { name, reason });
    }
    for ((input, value), ty) in region.inputs().zip(types) {
        check(format!("{input} of region {name}"), ty, region.ty(value))?;
    }
    Ok(())
}

fn output_types(region: &Graph) -> Vec<TensorType> {
    region.outputs().iter().map(|(_, value)| region.ty(*value).clone()).collect()
}

/// Computes a region; its own errors name its nodes.
fn compute(region: &Graph, inputs: &[Tensor]) -> Result<Vec<Tensor>, OpError> {
    eval(region, inputs).map_err(|e| OpError::Region { region: region.name().to_string(), source: Box::new(e) })
}

fn bound(region: &Arc<Graph>, sizes: &BTreeMap<String, usize>) -> Arc<Graph> {
    // Where the sizes do not suit a region, its types differ from those of the operands, which is reported.
    region.bind(sizes).map_or_else(|_| region.clone(), Arc::new)
}

/// The truth value of a condition.
fn holds(condition: &Tensor) -> bool {
    matches!(condition.data(), TensorData::Bool(v) if v.first() == Some(&true))
}

impl If {
    /// The operator's name in the text form.
    pub const NAME: &'static str = "if";

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<Vec<TensorType>, OpError> {
        let [condition, captured @ ..] = inputs else {
            return Err(OpError::Arity { expected: "at least 1".into(), found: 0 });
        };
        check("condition".into(), condition, &one(DType::Bool))?;
        check_inputs(&self.then, "then", captured.iter().copied())?;
        check_inputs(&self.otherwise, "otherwise", captured.iter().copied())?;
        let [then, otherwise] = [&self.then, &self.otherwise].map(|region| output_types(region));
        if then != otherwise {
            let list = |types: &[TensorType]| types.iter().map(ToString::to_string).collect::<Vec<_>>().join(", ");
            let reason = format!("returns {}, but region `then` returns {}", list(&otherwise), list(&then));
            return Err(OpError::Attribute { name: "otherwise", reason });
        }
        Ok(then)
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>, OpError> {
        let region = if holds(inputs[0]) { &self.then } else { &self.otherwise };
        compute(region, &inputs[1..].iter().map(|t| (*t).clone()).collect::<Vec<_>>())
    }

    pub(crate) fn bind(&self, sizes: &BTreeMap<String, usize>) -> If {
        If { then: bound(&self.then, sizes), otherwise: bound(&self.otherwise, sizes) }
    }

    /// The operator with regions in the order of the text form.
    pub(crate) fn with_regions(&self, regions: Vec<Arc<Graph>>) -> Option<If> {
        let [then, otherwise] = <[_; 2]>::try_from(regions).ok()?;
        Some(If { then, otherwise })
    }
}

impl Loop {
    /// The operator's name in the text form.
    pub const NAME: &'static str = "loop";

    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<Vec<TensorType>, OpError> {
        let least = self.carried.saturating_add(2);
        if inputs.len() < least {
            return Err(OpError::Arity { expected: format!("at least {least}"), found: inputs.len() });
        }
        let (ends, values) = inputs.split_at(2);
        check("limit".into(), ends[0], &one(DType::I64))?;
        check("condition".into(), ends[1], &one(DType::Bool))?;
        let step = one(DType::I64);
        let given: Vec<&TensorType> = std::iter::once(&step).chain(values.iter().copied()).collect();
        check_inputs(&self.body, "body", given.into_iter())?;
        let made = output_types(&self.body);
        let Some((condition, made)) = made.split_first().filter(|(_, made)| made.len() >= self.carried) else {
            let reason = format!("must return a condition and {} carried values", self.carried);
            return Err(OpError::Attribute { name: "body", reason });
        };
        check("condition of region body".into(), condition, &one(DType::Bool))?;
        let (carried, collected) = made.split_at(self.carried);
        for (i, (found, expected)) in carried.iter().zip(values).enumerate() {
            check(format!("carried value {i} of region body"), found, expected)?;
        }
        if !collected.is_empty() && self.collects as u64 > MOST_STEPS {
            let reason = format!("must be at most {MOST_STEPS}, found {}", self.collects);
            return Err(OpError::Attribute { name: "collects", reason });
        }
        let along = |ty: &TensorType| {
            let dims = std::iter::once(Dim::Fixed(self.collects)).chain(ty.dims.iter().cloned());
            TensorType { dtype: ty.dtype, dims: dims.collect() }
        };
        Ok(carried.iter().cloned().chain(collected.iter().map(along)).collect())
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Vec<Tensor>, OpError> {
        let limit = match inputs[0].data() {
            TensorData::I64(v) => u64::try_from(v.first().copied().unwrap_or(0)).unwrap_or(0),
            _ => 0,
        };
        let mut goes_on = holds(inputs[1]);
        let (carried, captured) = inputs[2..].split_at(self.carried);
        let mut carried: Vec<Tensor> = carried.iter().map(|t| (*t).clone()).collect();
        let kept = self.body.outputs().len() - 1 - self.carried;
        let mut collected: Vec<Vec<u8>> = vec![Vec::new(); kept];
        let mut step = 0;
        while goes_on && step < limit {
            if step >= MOST_STEPS {
                let reason = format!("did not end after {MOST_STEPS} steps");
                return Err(OpError::Attribute { name: "body", reason });
            }
            let mut given = vec![Tensor::scalar(step as i64)];
            given.append(&mut carried);
            given.extend(captured.iter().map(|t| (*t).clone()));
            let mut made = compute(&self.body, &given)?;
            let rows = made.split_off(1 + self.carried);
            carried = made.split_off(1);
            goes_on = holds(&made[0]);
            collected.iter_mut().zip(&rows).for_each(|(all, row)| all.extend(row.to_bytes()));
            step += 1;
        }
        if kept > 0 && step != self.collects as u64 {
            let reason = format!("is for {} steps, but the loop took {step}", self.collects);
            return Err(OpError::Attribute { name: "collects", reason });
        }
        let types = output_types(&self.body);
        for (ty, bytes) in types[1 + self.carried..].iter().zip(collected) {
            let shape = ty.shape().map(|shape| [&[self.collects], shape.as_slice()].concat());
            carried.extend(shape.and_then(|shape| Tensor::from_bytes(ty.dtype, &shape, &bytes)));
        }
        Ok(carried)
    }

    pub(crate) fn bind(&self, sizes: &BTreeMap<String, usize>) -> Loop {
        Loop { body: bound(&self.body, sizes), ..self.clone() }
    }

    pub(crate) fn attrs(&self) -> Vec<(&'static str, Attr)> {
        vec![("carried", self.carried.to_attr()), ("collects", self.collects.to_attr())]
    }

    /// The operator with these attributes. It has no region yet; the reader of the text adds it.
    pub(crate) fn from_attrs(r: &mut AttrReader) -> Option<Loop> {
        let (carried, collects) = (r.take("carried"), r.take("collects"));
        Some(Loop { body: no_region(), carried: carried?, collects: collects? })
    }

    /// The operator with regions in the order of the text form.
    pub(crate) fn with_regions(&self, regions: Vec<Arc<Graph>>) -> Option<Loop> {
        let [body] = <[_; 1]>::try_from(regions).ok()?;
        Some(Loop { body, ..self.clone() })
    }
}

/// A region before it is read.
pub(crate) fn no_region() -> Arc<Graph> {
    Arc::new(Graph::of_parts(String::new(), Vec::new(), Vec::new(), Vec::new(), Vec::new()))
}
