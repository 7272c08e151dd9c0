//! One step of a recurrent cell.

use super::activation::Activation;
use super::{DENSE, Recurrence, RecurrentKind};
use crate::frontend::reason::Reason;
use crate::frontend::semantic::SemanticBuilder;
use crate::frontend::semantic::movement::part;
use crate::graph::ValueId;
use crate::graph::op::{BinaryKind, Clip, Concat};

/// The state that goes from step to step, `[batch, hidden]` each.
#[derive(Debug, Clone, Copy)]
pub struct State {
    /// The output.
    pub h: ValueId,
    /// The cell state of an LSTM.
    pub c: Option<ValueId>,
}

/// Weights and activation functions of one direction.
pub struct Cell<'a> {
    kind: RecurrentKind,
    hidden: usize,
    /// `[gates * hidden, hidden]`; for a GRU with reset first, only those of update and reset.
    r: ValueId,
    /// `[hidden, hidden]` of the hidden gate, for a GRU with reset first.
    r_hidden: Option<ValueId>,
    /// Biases of the input's products, `[gates * hidden]`.
    pub input_bias: Option<ValueId>,
    /// Biases of the state's products, if they cannot be added to the input's.
    state_bias: Option<ValueId>,
    /// Factors of the cell state for input, output and forget gates, `[hidden]` each.
    peepholes: Option<[ValueId; 3]>,
    activations: &'a [Activation],
    clip: Option<f32>,
    input_forget: bool,
    one: ValueId,
}

impl<'a> Cell<'a> {
    pub fn of(net: &'a Recurrence, n: &mut SemanticBuilder, label: &str, d: usize) -> Result<Cell<'a>, Reason> {
        let (kind, hidden) = (net.kind, net.sizes.hidden);
        let mut r = net.own(n, &format!("{label}/r"), net.r, d)?;
        let mut r_hidden = None;
        if kind == RecurrentKind::Gru && !net.linear_before_reset {
            r_hidden = Some(part(n, &format!("{label}/r_hidden"), r, 0, 2 * hidden, hidden)?);
            r = part(n, &format!("{label}/r_gates"), r, 0, 0, 2 * hidden)?;
        }
        let bias = net.b.map(|b| net.own(n, &format!("{label}/b"), b, d)).transpose()?;
        let [input_bias, state_bias] = match bias {
            Some(b) => biases(n, label, b, kind.gates() * hidden, net.linear_before_reset.then_some(hidden))?,
            None => [None; 2],
        };
        let mut peepholes = None;
        if let Some(p) = net.peepholes {
            let p = net.own(n, &format!("{label}/p"), p, d)?;
            let mut gate = |k: usize| part(n, &format!("{label}/p{k}"), p, 0, k * hidden, hidden);
            peepholes = Some([gate(0)?, gate(1)?, gate(2)?]);
        }
        let count = kind.activations().len();
        let activations = &net.activations[d * count..(d + 1) * count];
        let one = n.scalar(&format!("{label}/one"), 1.0);
        let (clip, input_forget) = (net.clip, net.input_forget);
        Ok(Cell { kind, hidden, r, r_hidden, input_bias, state_bias, peepholes, activations, clip, input_forget, one })
    }

    /// The state after a step, from the step's input products `[batch, gates * hidden]` and the state before it.
    pub fn step(&self, n: &mut SemanticBuilder, at: &str, x: ValueId, last: State) -> Result<State, Reason> {
        match (self.kind, last.c) {
            (RecurrentKind::Lstm, Some(c)) => self.lstm(n, at, x, last.h, c),
            (RecurrentKind::Gru, _) => self.gru(n, at, x, last.h),
            _ => {
                let r = self.product(n, &format!("{at}/r"), last.h, self.r)?;
                let sum = n.add(&format!("{at}/sum"), x, r)?;
                Ok(State { h: self.activate(n, 0, &format!("{at}/h"), sum)?, c: None })
            }
        }
    }

    /// `i, f = f(x + r h + p * c)`, `c' = f * c + i * g(x + r h)`, `o = f(x + r h + p * c')`, `h' = o * h(c')`.
    fn lstm(&self, n: &mut SemanticBuilder, at: &str, x: ValueId, h: ValueId, c: ValueId) -> Result<State, Reason> {
        let r = self.product(n, &format!("{at}/r"), h, self.r)?;
        let sum = n.add(&format!("{at}/gates"), x, r)?;
        let mut gates = [sum; 4];
        for (k, gate) in gates.iter_mut().enumerate() {
            *gate = self.gate(n, &format!("{at}/gate{k}"), sum, k)?;
        }
        let [i, o, f, g] = gates;
        let i = self.peeped(n, &format!("{at}/i"), i, 0, c)?;
        let i = self.activate(n, 0, &format!("{at}/i"), i)?;
        let f = if self.input_forget {
            n.binary(&format!("{at}/f"), BinaryKind::Sub, self.one, i)?
        } else {
            let f = self.peeped(n, &format!("{at}/f"), f, 2, c)?;
            self.activate(n, 0, &format!("{at}/f"), f)?
        };
        let g = self.activate(n, 1, &format!("{at}/g"), g)?;
        let kept = n.binary(&format!("{at}/kept"), BinaryKind::Mul, f, c)?;
        let new = n.binary(&format!("{at}/new"), BinaryKind::Mul, i, g)?;
        let c = n.add(&format!("{at}/c"), kept, new)?;
        let o = self.peeped(n, &format!("{at}/o"), o, 1, c)?;
        let o = self.activate(n, 0, &format!("{at}/o"), o)?;
        // `clip` limits the sums of the gates; the cell state enters its function unchanged.
        let out = self.activations[2].apply(n, &format!("{at}/out"), c)?;
        Ok(State { h: n.binary(&format!("{at}/h"), BinaryKind::Mul, o, out)?, c: Some(c) })
    }

    /// `z, r = f(x + r h)`, `g = g(x + r (r * h))` or, linear before the reset, `g(x + r * (r h))`; `h' = (1 - z) * g +
    /// z * h`.
    fn gru(&self, n: &mut SemanticBuilder, at: &str, x: ValueId, h: ValueId) -> Result<State, Reason> {
        let x_gates = part(n, &format!("{at}/x_gates"), x, 1, 0, 2 * self.hidden)?;
        let x_hidden = self.gate(n, &format!("{at}/x_hidden"), x, 2)?;
        let all = self.product(n, &format!("{at}/r"), h, self.r)?;
        let gates = match self.r_hidden {
            Some(_) => all,
            None => part(n, &format!("{at}/r_gates"), all, 1, 0, 2 * self.hidden)?,
        };
        let sum = n.add(&format!("{at}/gates"), x_gates, gates)?;
        let gates = self.activate(n, 0, &format!("{at}/zr"), sum)?;
        let (z, r) = (self.gate(n, &format!("{at}/z"), gates, 0)?, self.gate(n, &format!("{at}/reset"), gates, 1)?);
        let hidden = match self.r_hidden {
            Some(weight) => {
                let reset = n.binary(&format!("{at}/reset_h"), BinaryKind::Mul, r, h)?;
                n.node(&format!("{at}/r_hidden"), DENSE, &[reset, weight])?
            }
            None => {
                let linear = self.gate(n, &format!("{at}/linear"), all, 2)?;
                n.binary(&format!("{at}/reset_linear"), BinaryKind::Mul, r, linear)?
            }
        };
        let sum = n.add(&format!("{at}/hidden"), x_hidden, hidden)?;
        let g = self.activate(n, 1, &format!("{at}/g"), sum)?;
        let rest = n.binary(&format!("{at}/rest"), BinaryKind::Sub, self.one, z)?;
        let new = n.binary(&format!("{at}/new"), BinaryKind::Mul, rest, g)?;
        let kept = n.binary(&format!("{at}/kept"), BinaryKind::Mul, z, h)?;
        Ok(State { h: n.add(&format!("{at}/h"), new, kept)?, c: None })
    }

    /// The state's products with their biases.
    fn product(&self, n: &mut SemanticBuilder, suffix: &str, h: ValueId, r: ValueId) -> Result<ValueId, Reason> {
        let mut operands = vec![h, r];
        operands.extend(self.state_bias);
        n.node(suffix, DENSE, &operands)
    }

    /// The columns of a gate.
    fn gate(&self, n: &mut SemanticBuilder, suffix: &str, v: ValueId, k: usize) -> Result<ValueId, Reason> {
        part(n, suffix, v, 1, k * self.hidden, self.hidden)
    }

    /// The `k`-th function of the direction, applied to clipped values.
    fn activate(&self, n: &mut SemanticBuilder, k: usize, suffix: &str, v: ValueId) -> Result<ValueId, Reason> {
        let v = match self.clip {
            Some(clip) => n.node(&format!("{suffix}/clip"), Clip { lo: -clip, hi: clip }, &[v])?,
            None => v,
        };
        self.activations[k].apply(n, suffix, v)
    }

    /// A gate with its peephole term, if it has one.
    fn peeped(
        &self,
        n: &mut SemanticBuilder,
        suffix: &str,
        v: ValueId,
        k: usize,
        c: ValueId,
    ) -> Result<ValueId, Reason> {
        let Some(peepholes) = self.peepholes else { return Ok(v) };
        let term = n.binary(&format!("{suffix}/peephole"), BinaryKind::Mul, peepholes[k], c)?;
        n.add(&format!("{suffix}/peeped"), v, term)
    }
}

/// Biases of the input's products and of the state's. They are added up, except for a GRU that is linear before its
/// reset: its hidden gate, of size `apart`, keeps them apart.
fn biases(
    n: &mut SemanticBuilder,
    label: &str,
    b: ValueId,
    gates: usize,
    apart: Option<usize>,
) -> Result<[Option<ValueId>; 2], Reason> {
    let input = part(n, &format!("{label}/b_input"), b, 0, 0, gates)?;
    let state = part(n, &format!("{label}/b_state"), b, 0, gates, gates)?;
    let Some(hidden) = apart else { return Ok([Some(n.add(&format!("{label}/bias"), input, state)?), None]) };
    let shared = gates - hidden;
    let mut of = |name: &str, v, start, size| part(n, &format!("{label}/{name}"), v, 0, start, size);
    let (i, s) = (of("b_input_gates", input, 0, shared)?, of("b_state_gates", state, 0, shared)?);
    let (i_hidden, s_hidden) =
        (of("b_input_hidden", input, shared, hidden)?, of("b_state_hidden", state, shared, hidden)?);
    let sum = n.add(&format!("{label}/b_gates"), i, s)?;
    let zero = n.table(&format!("{label}/b_zero"), &[shared], |_| 0f32)?;
    let first = n.node(&format!("{label}/b_first"), Concat { axis: 0 }, &[sum, i_hidden])?;
    let second = n.node(&format!("{label}/b_second"), Concat { axis: 0 }, &[zero, s_hidden])?;
    Ok([Some(first), Some(second)])
}
