//! `compute`: a tensor expression of the user's own.

use std::str::FromStr;
use std::sync::Arc;

use tilewright_tensor::te::{Array, Axis, Definition, Expr, Name, NameSet, Program, Tensor as Stage, text};
use tilewright_tensor::tir::affine::interval;
use tilewright_tensor::tir::{self, Bounds};

use super::attr::{Attr, AttrValue};
use crate::graph::{Dim, OpError, Tensor, TensorType};

operator! {
    /// A tensor expression of your own, as `.te` files have it: an input for each operand, and one output.
    ///
    /// An index that is not known to be within its tensor is moved to the nearest element. So an index into the padding
    /// of an image gives the image's edge, unless the expression selects another value there.
    Compute = "compute"({operands}) {
        /// The text of the expression, such as `te halves { input x: f32[8] output y: f32[i in 8] = x[i] * 0.5f32 }`.
        expression: Expression,
    }
}

/// A tensor expression with one output.
#[derive(Debug, Clone)]
pub struct Expression(Arc<Parts>);

#[derive(Debug)]
struct Parts {
    /// The expression as it was given, with the tensors that its output needs.
    given: Program,
    /// The same with all indices within their tensors, or what is wrong with it.
    checked: Result<Program, String>,
}

impl PartialEq for Expression {
    fn eq(&self, other: &Expression) -> bool {
        self.0.given == other.0.given
    }
}

impl Expression {
    /// An expression for each output of a program, each with all of its inputs.
    pub fn each(program: &Program) -> Vec<Expression> {
        let of = |output: &Name| {
            let mut needed: NameSet = [output.clone()].into_iter().collect();
            // A tensor reads only earlier ones.
            for stage in program.tensors.iter().rev().filter(|stage| stage.definition != Definition::Input) {
                if needed.contains(&stage.name) {
                    values(stage).into_iter().for_each(|value| {
                        value.visit(&mut |e| {
                            if let Expr::Load { buffer, .. } = e {
                                needed.insert(buffer.clone());
                            }
                        });
                    });
                }
            }
            let tensors = program.tensors.iter();
            let tensors = tensors.filter(|t| t.definition == Definition::Input || needed.contains(&t.name));
            Expression::new(Program {
                name: program.name.clone(),
                tensors: tensors.cloned().collect(),
                outputs: vec![output.clone()],
            })
        };
        program.outputs.iter().map(of).collect()
    }

    fn new(given: Program) -> Expression {
        let checked = checked(&given);
        Expression(Arc::new(Parts { given, checked }))
    }

    /// The expression as it was given.
    pub fn program(&self) -> &Program {
        &self.0.given
    }

    /// How often its tensors' elements and terms of sums are computed.
    pub(crate) fn terms(&self) -> u64 {
        let extents = |axes: &[Axis]| axes.iter().fold(1u64, |n, axis| n.saturating_mul(axis.extent.max(0) as u64));
        let of = |stage: &Stage| match &stage.definition {
            Definition::Input => 0,
            Definition::Compute(_) => extents(&stage.axes),
            Definition::Reduce { axes, .. } => extents(&stage.axes).saturating_mul(extents(axes)),
        };
        self.0.given.tensors.iter().map(of).fold(0, u64::saturating_add)
    }

    /// The expression with all indices within their tensors.
    pub(crate) fn within(&self) -> Option<&Program> {
        self.0.checked.as_ref().ok()
    }
}

impl AttrValue for Expression {
    const EXPECTED: &'static str = "a tensor expression with one output, as text";

    fn to_attr(&self) -> Attr {
        Attr::Text(self.0.given.to_string())
    }

    fn from_attr(a: &Attr) -> Option<Expression> {
        let (Attr::Text(given) | Attr::Word(given)) = a else { return None };
        given.parse().ok()
    }
}

impl FromStr for Expression {
    type Err = OpError;

    fn from_str(given: &str) -> Result<Expression, OpError> {
        let program = text::parse(given).map_err(|e| OpError::attribute("expression", format!("is not one: {e}")))?;
        match program.outputs.len() {
            1 => Ok(Expression::new(program)),
            count => Err(OpError::attribute("expression", format!("has {count} outputs; a node computes one of them"))),
        }
    }
}

/// The expressions that define a tensor.
fn values(stage: &Stage) -> Vec<&Expr> {
    match &stage.definition {
        Definition::Input => Vec::new(),
        Definition::Compute(value) => vec![value],
        Definition::Reduce { init, value, .. } => vec![init, value],
    }
}

fn checked(given: &Program) -> Result<Program, String> {
    let output = given.outputs.first().and_then(|name| given.tensor(name));
    if output.is_none_or(|output| output.definition == Definition::Input) {
        return Err("has an output that is an input".into());
    }
    let within = within(given);
    tir::lower(&within).map_err(|e| format!("is not one: {e}"))?;
    Ok(within)
}

/// The same program, with all indices within their tensors.
fn within(program: &Program) -> Program {
    let extents = |buffer: &Name| program.tensor(buffer).map(Stage::shape).unwrap_or_default();
    let stage = |stage: &Stage| {
        let mut bounds = Bounds::default();
        let mut known = |axes: &[Axis]| bounds.extend(axes.iter().map(|a| (a.var.clone(), (0, a.extent - 1))));
        known(&stage.axes);
        if let Definition::Reduce { axes, .. } = &stage.definition {
            known(axes);
        }
        let index = |(index, extent): (Expr, i64)| match interval(&index, &bounds) {
            Some((least, most)) if least >= 0 && most < extent => index,
            _ => index.max(Expr::int(0)).min(Expr::int(extent - 1)),
        };
        let value = |e: &Expr| {
            e.rewrite(&mut |e| match e {
                Expr::Load { buffer, dtype, indices } => {
                    let extents = extents(&buffer);
                    // The verifier reports a wrong number of indices.
                    let indices = match extents.len() == indices.len() {
                        true => indices.into_iter().zip(extents).map(index).collect(),
                        false => indices,
                    };
                    Expr::Load { buffer, dtype, indices }
                }
                e => e,
            })
        };
        let definition = match &stage.definition {
            Definition::Input => Definition::Input,
            Definition::Compute(e) => Definition::Compute(value(e)),
            Definition::Reduce { axes, combiner, init, value: v } => {
                Definition::Reduce { axes: axes.clone(), combiner: *combiner, init: value(init), value: value(v) }
            }
        };
        Stage { definition, ..stage.clone() }
    };
    Program { tensors: program.tensors.iter().map(stage).collect(), ..program.clone() }
}

fn type_of(stage: &Stage) -> TensorType {
    let dims = stage.axes.iter().map(|axis| Dim::Fixed(axis.extent.max(0) as usize)).collect();
    TensorType { dtype: stage.dtype, dims }
}

impl Compute {
    pub(crate) fn infer(&self, inputs: &[&TensorType]) -> Result<TensorType, OpError> {
        let program = self.expression.program();
        if let Err(problem) = &self.expression.0.checked {
            return Err(OpError::attribute("expression", problem));
        }
        let wanted = program.inputs().count();
        super::check::arity(inputs, wanted, wanted)?;
        for (stage, found) in program.inputs().zip(inputs) {
            let wanted = type_of(stage);
            if wanted != **found {
                return Err(OpError::operand(stage.name.as_str(), wanted.to_string(), found.to_string()));
            }
        }
        let output = program.outputs.first().and_then(|name| program.tensor(name));
        output.map(type_of).ok_or_else(|| OpError::attribute("expression", "has no output"))
    }

    pub(crate) fn eval(&self, inputs: &[&Tensor]) -> Result<Tensor, OpError> {
        let failed = |what: String| OpError::attribute("expression", what);
        let program = self.expression.0.checked.as_ref().map_err(|problem| failed(problem.clone()))?;
        let array = |t: &&Tensor| {
            let shape = t.shape().iter().map(|&n| n as i64).collect();
            Array { dtype: t.dtype(), shape, bytes: t.to_bytes() }
        };
        let arrays: Vec<Array> = inputs.iter().map(array).collect();
        let found = tir::evaluate(program, &arrays).map_err(|e| failed(format!("cannot be computed: {e}")))?;
        let result = found.into_iter().next().and_then(|array| {
            let shape: Vec<usize> = array.shape.iter().map(|&n| n as usize).collect();
            Tensor::from_bytes(array.dtype, &shape, &array.bytes)
        });
        result.ok_or_else(|| failed("has no output".into()))
    }
}
