//! Moves computations that depend only on constants out of a function.
//!
//! Packed weights and their sums, for example, have separate nests that read only constants. Computed once, when a
//! model is compiled, they become constants themselves.

use std::collections::HashSet;

use super::access::{Access, accesses_in};
use super::tree::{seq, top};
use crate::te::{Axis, Definition, Name, NameSet, Program, Tensor};
use crate::tir::{Function, Stmt};

/// A function whose inputs are all constants.
#[derive(Debug, Clone, PartialEq)]
pub struct Part {
    /// The function. Its only output is the buffer that the rest reads.
    pub function: Function,
    /// Indices of its inputs among the inputs of the whole function.
    pub inputs: Vec<usize>,
}

/// The source of an input of the rest.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Source {
    /// An input of the whole function.
    Input(usize),
    /// A part's output.
    Part(usize),
}

/// A function split into the parts that depend only on constants, and the rest.
#[derive(Debug, Clone, PartialEq)]
pub struct Hoisted {
    /// Parts to compute at compile time.
    pub parts: Vec<Part>,
    /// The rest. It keeps the inputs that it reads, followed by the outputs of the parts.
    pub rest: Function,
    /// The sources of the rest's inputs.
    pub inputs: Vec<Source>,
}

impl Hoisted {
    /// Returns the tensor expression of the rest, given that of the whole function: what the parts compute is an input.
    /// It is lowered to the rest.
    pub fn program(&self, whole: &Program) -> Program {
        let input = |name: &Name| {
            let axis = |(i, a): (usize, &Axis)| Axis { var: format!("{name}.i{i}").into(), extent: a.extent };
            let tensor = whole.tensor(name)?;
            let axes = tensor.axes.iter().enumerate().map(axis).collect();
            Some(Tensor { axes, definition: Definition::Input, ..tensor.clone() })
        };
        let mut tensors: Vec<Tensor> = self.rest.inputs().iter().filter_map(|b| input(&b.name)).collect();
        let is_computed = |t: &&Tensor| {
            let (locals, outputs) = (&self.rest.locals, self.rest.output_buffers());
            t.definition != Definition::Input && locals.iter().chain(outputs).any(|b| b.name == t.name)
        };
        tensors.extend(whole.tensors.iter().filter(is_computed).cloned());
        Program { name: whole.name.clone(), tensors, outputs: whole.outputs.clone() }
    }
}

/// Returns the buffers that a statement reads, and those that it writes.
fn uses(f: &Function, s: &Stmt) -> (NameSet, NameSet) {
    let list = accesses_in(f, s);
    let of = |chosen: fn(&Access) -> bool| list.iter().filter(|a| chosen(a)).map(|a| a.buffer.clone()).collect();
    (of(|a| a.reads), of(|a| a.writes))
}

/// Moves out of a function the nests that depend only on inputs marked in `constant`.
pub fn hoist(f: Function, constant: &[bool]) -> Hoisted {
    let items = top(&f);
    let used: Vec<_> = items.iter().map(|s| uses(&f, s)).collect();
    let inputs: Vec<Name> = f.inputs().iter().map(|b| b.name.clone()).collect();
    let of_input = |n: &Name| inputs.iter().position(|i| i == n);
    let is_constant = |n: &Name| of_input(n).is_some_and(|i| constant.get(i) == Some(&true));
    // A nest is a part if it alone writes its local buffer, and reads only constants and results of earlier parts.
    let mut early: Vec<(usize, Name)> = Vec::new();
    for (at, (reads, writes)) in used.iter().enumerate() {
        let mut targets = writes.iter();
        let (Some(target), None) = (targets.next(), targets.next()) else { continue };
        let local = f.locals.iter().any(|b| &b.name == target);
        let alone = used.iter().filter(|(_, w)| w.contains(target)).count() == 1;
        let known = |n: &Name| n == target || is_constant(n) || early.iter().any(|(_, e)| e == n);
        if local && alone && reads.iter().all(known) && reads.iter().any(|n| n != target) {
            early.push((at, target.clone()));
        }
    }
    let rest_reads: HashSet<&Name> =
        used.iter().enumerate().filter(|(at, _)| early.iter().all(|e| e.0 != *at)).flat_map(|(_, u)| &u.0).collect();
    let parts: Vec<Part> = early
        .iter()
        .filter(|(_, name)| rest_reads.contains(name))
        .map(|e| part(&f, &items, &used, &early, e))
        .collect();
    let given: Vec<Name> = parts.iter().map(|p| p.function.params[p.inputs.len()].name.clone()).collect();
    let kept = (0..inputs.len()).filter(|&i| rest_reads.contains(&inputs[i]));
    let sources: Vec<Source> = kept.map(Source::Input).chain((0..parts.len()).map(Source::Part)).collect();
    let body = items.into_iter().enumerate().filter(|(at, _)| early.iter().all(|e| e.0 != *at)).map(|(_, s)| s);
    let mut params: Vec<_> = sources
        .iter()
        .map(|s| match s {
            Source::Input(i) => f.params[*i].clone(),
            Source::Part(p) => parts[*p].function.params[parts[*p].inputs.len()].clone(),
        })
        .collect();
    params.extend(f.output_buffers().iter().cloned());
    let gone = |n: &Name| early.iter().any(|(_, e)| e == n) && !given.contains(n);
    let locals = f.locals.iter().filter(|b| !given.contains(&b.name) && !gone(&b.name)).cloned().collect();
    let rest = Function { params, locals, body: seq(body.collect()), ..f };
    Hoisted { parts, rest, inputs: sources }
}

/// Returns the function that computes one buffer, including the earlier parts that it depends on.
fn part(
    f: &Function,
    items: &[Stmt],
    used: &[(NameSet, NameSet)],
    early: &[(usize, Name)],
    result: &(usize, Name),
) -> Part {
    let mut needed = vec![result.0];
    let mut open = vec![result.0];
    while let Some(at) = open.pop() {
        for (other, name) in early {
            if used[at].0.contains(name) && !needed.contains(other) {
                needed.push(*other);
                open.push(*other);
            }
        }
    }
    needed.sort_unstable();
    let reads = |n: &Name| needed.iter().any(|at| used[*at].0.contains(n));
    let inputs: Vec<usize> = (0..f.inputs().len()).filter(|&i| reads(&f.params[i].name)).collect();
    let inner = |n: &Name| early.iter().any(|(at, e)| e == n && needed.contains(at) && *n != result.1);
    let mut params: Vec<_> = inputs.iter().map(|&i| f.params[i].clone()).collect();
    params.extend(f.locals.iter().filter(|b| b.name == result.1).cloned());
    let function = Function {
        name: result.1.clone(),
        intrinsics: Vec::new(),
        params,
        outputs: 1,
        locals: f.locals.iter().filter(|b| inner(&b.name)).cloned().collect(),
        body: seq(needed.iter().map(|at| items[*at].clone()).collect()),
    };
    Part { function, inputs }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::te::text::parse;
    use crate::tir::lower;

    #[test]
    fn the_rest_is_what_its_expression_is_lowered_to() {
        let whole = parse(
            "te t { input x: i8[4] input w: i8[4, 2] wide: i32[a in 4, b in 2] = i32(w[a, b])
             packed: i32[j in 2, i in 4] = wide[i, j] + 1i32 sums: i32[j in 2] = sum(i in 4) i32(x[i]) * packed[j, i]
             output y: i32[j in 2] = max(sums[j], 0i32) }",
        )
        .unwrap();
        let hoisted = hoist(lower(&whole).unwrap(), &[false, true]);
        let program = hoisted.program(&whole);
        assert_eq!(program.inputs().map(|t| t.name.as_str()).collect::<Vec<_>>(), ["x", "packed"]);
        assert_eq!(lower(&program).unwrap(), hoisted.rest);
        // Without constants nothing changes.
        let hoisted = hoist(lower(&whole).unwrap(), &[false, false]);
        assert_eq!(hoisted.program(&whole), whole);
    }
}
