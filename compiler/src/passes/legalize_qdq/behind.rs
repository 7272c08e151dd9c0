//! Operators between a product and its quantization.
//!
//! Operators that compute each element from one element of the product, by a piecewise linear function that is the same
//! within a channel, become one function per channel. Operators that move or compare elements stay after the product
//! and run on the integers. This is correct because a function of moved elements equals the moved function of the
//! elements, and because a rising function keeps the order of the elements that are compared.

use super::constants::{Known, known};
use super::pieces::Pieces;
use crate::graph::op::attr::AttrValue;
use crate::graph::op::{Add, Binary, BinaryKind, Layout, MaxPool2d, ReduceKind, Unary, UnaryKind};
use crate::graph::{Dim, Node, Op, Tensor, TensorType, ValueId};
use crate::passes::View;
use std::collections::HashMap;

/// A product and the operators applied to its results.
#[derive(Clone)]
pub(super) struct Behind<'v> {
    pub product: &'v Node,
    /// Operators that move or compare elements, in order.
    pub moves: Vec<&'v Node>,
    channels: Vec<Channel>,
    /// The last operator that compares elements, if there is one.
    extreme: Option<&'v Node>,
}

/// The functions of one channel of a product.
#[derive(Clone)]
struct Channel {
    whole: Pieces,
    /// The function since the last operator that compares elements.
    since: Pieces,
}

impl Channel {
    fn both(p: Pieces) -> Channel {
        Channel { whole: p.clone(), since: p }
    }
}

impl Behind<'_> {
    /// The function of each channel, from the product's results to the value.
    pub fn functions(&self) -> impl Iterator<Item = &Pieces> {
        self.channels.iter().map(|c| &c.whole)
    }

    /// Fails if a function after the last comparison does not keep the order of the compared elements.
    fn check_order(&self) -> SearchResult<()> {
        match self.extreme {
            Some(node) if !self.channels.iter().all(|c| c.since.rises()) => Err(Obstacle::at(node, TURNED)),
            _ => Ok(()),
        }
    }

    /// Returns functions that keep the order of compared elements: these functions, or their negatives. The flag says
    /// whether they are the negatives.
    fn ordered(mut self) -> SearchResult<(Self, bool)> {
        let kept = self.check_order();
        if kept.is_ok() {
            return Ok((self, false));
        }
        for c in &mut self.channels {
            *c = Channel { whole: c.whole.times(-1.0), since: c.since.times(-1.0) };
        }
        if self.check_order().is_ok() { Ok((self, true)) } else { kept.map(|()| (self, false)) }
    }
}

/// Reason: a function after a comparison does not keep the order of the compared elements.
const TURNED: &str = "compares elements, but a negative factor after it reverses their order in some channels; \
     quantize the results before it";

/// The reason why a product's results do not become integers.
#[derive(Debug, Clone)]
pub(super) struct Obstacle(pub String);

impl Obstacle {
    pub fn at(node: &Node, why: &str) -> Obstacle {
        let op = match &node.op {
            Op::Unary(u) => u.kind.to_attr().to_string(),
            Op::Binary(b) => b.kind.to_attr().to_string(),
            op => op.name().to_string(),
        };
        Obstacle(format!("`{}` ({op}) {why}", node.name))
    }
}

pub(super) type SearchResult<T> = Result<T, Obstacle>;

/// True if each result of an operator is an element of its first operand, or the maximum or minimum of several; with
/// `pads`, an operator that adds a border counts too.
pub(super) fn moves(op: &Op, pads: bool) -> bool {
    match op {
        Op::Pad(_) => pads,
        Op::Reshape(_) | Op::Transpose(_) | Op::Slice(_) | Op::Gather(_) | Op::GatherElements(_) | Op::Expand(_) => {
            true
        }
        op => compares(op),
    }
}

fn compares(op: &Op) -> bool {
    match op {
        Op::MaxPool2d(_) => true,
        Op::Reduce(r) => matches!(r.kind, ReduceKind::Max | ReduceKind::Min),
        _ => false,
    }
}

/// The channel dimension of a product; `None` for other operators.
pub(super) fn channel_axis(view: &View, node: &Node) -> Option<usize> {
    match &node.op {
        Op::Conv2d(c) => Some(c.layout.channel_axis()),
        Op::ConvTranspose2d(c) => Some(c.layout.channel_axis()),
        Op::Dense(_) => Some(1),
        Op::MatMul(_) => view.graph.ty(node.output()).rank().checked_sub(1),
        _ => None,
    }
}

/// Follows the operators from a value back to the product that it comes from.
pub(super) struct ProductSearch<'v> {
    view: &'v View<'v>,
    read: HashMap<ValueId, SearchResult<Behind<'v>>>,
    /// The values read so far, those closer to the product first.
    order: Vec<ValueId>,
    depth: usize,
}

/// An operand of a binary operator.
enum Operand<'v> {
    Known(Known),
    Computed(Behind<'v>),
}

/// Maximum number of operators between a product and its quantization.
const MOST_NODES: usize = 64;

/// Reason: a function, such as a sigmoid, is not piecewise linear.
const BENT: &str = "is not piecewise linear; quantize the results before it";

impl<'v> ProductSearch<'v> {
    pub fn new(view: &'v View<'v>) -> ProductSearch<'v> {
        ProductSearch { view, read: HashMap::new(), order: Vec::new(), depth: 0 }
    }

    /// Expresses a value as functions of a product's results.
    pub fn value(&mut self, v: ValueId) -> SearchResult<Behind<'v>> {
        if let Some(found) = self.read.get(&v) {
            return found.clone();
        }
        let node = self.view.def(v).ok_or_else(|| Obstacle("an operator after it reads a network input".into()))?;
        if self.depth == MOST_NODES {
            return Err(Obstacle(format!("more than {MOST_NODES} operators are between it and its quantization")));
        }
        self.depth += 1;
        let found = self.node(node);
        self.depth -= 1;
        self.read.insert(v, found.clone());
        self.order.push(v);
        found
    }

    /// Like [`ProductSearch::value`], for the value or its negative, whichever keeps the order of the elements that are
    /// compared on the way. The flag says whether it is the negative.
    pub fn ordered(&mut self, v: ValueId) -> SearchResult<(Behind<'v>, bool)> {
        self.value(v)?.ordered()
    }

    /// Applies `take` to the functions of a value that was read. On failure, the error names the first operator after
    /// the product for whose result `take` fails.
    pub fn taken<T>(&self, behind: &Behind<'v>, take: impl Fn(&Behind<'v>) -> Result<T, String>) -> SearchResult<T> {
        take(behind).map_err(|why| {
            let fails = |v: &&ValueId| matches!(self.read.get(v), Some(Ok(found)) if take(found).is_err());
            let node = self.order.iter().find(fails).and_then(|v| self.view.def(*v));
            node.map_or(Obstacle(why.clone()), |node| Obstacle::at(node, &why))
        })
    }

    fn node(&mut self, node: &'v Node) -> SearchResult<Behind<'v>> {
        let graph = self.view.graph;
        if let Some(axis) = channel_axis(self.view, node) {
            let channels = graph.ty(node.output()).dims.get(axis).and_then(Dim::known);
            let channels = channels.ok_or_else(|| Obstacle::at(node, "has an unknown number of channels"))?;
            let channels = vec![Channel::both(Pieces::identity()); channels];
            return Ok(Behind { product: node, moves: Vec::new(), channels, extreme: None });
        }
        if moves(&node.op, true) {
            let mut behind = self.value(node.inputs[0])?;
            if compares(&node.op) {
                behind.check_order()?;
                behind.channels.iter_mut().for_each(|c| c.since = Pieces::identity());
                behind.extreme = Some(node);
            }
            behind.moves.push(node);
            return Ok(behind);
        }
        let fail = |why| Err(Obstacle::at(node, why));
        match &node.op {
            Op::Relu(_) => self.each(node, |x| x.held(0.0, f64::INFINITY)),
            Op::Clip(c) if c.lo.is_nan() || c.hi.is_nan() => fail("has a bound that is NaN"),
            Op::Clip(c) => self.each(node, |x| x.held(c.lo.into(), c.hi.into())),
            Op::Unary(u) if !u.alpha.is_finite() || !u.beta.is_finite() => fail("has a factor that is not finite"),
            Op::Unary(Unary { kind, alpha, beta }) => {
                let (alpha, beta) = (f64::from(*alpha), f64::from(*beta));
                match kind {
                    UnaryKind::Neg => self.each(node, |x| x.times(-1.0)),
                    UnaryKind::Abs => self.each(node, |x| x.leaky(-1.0)),
                    UnaryKind::LeakyRelu => self.each(node, |x| x.leaky(alpha)),
                    UnaryKind::HardSigmoid => {
                        self.each(node, |x| x.times(alpha).plus(&Pieces::constant(beta)).held(0.0, 1.0))
                    }
                    _ => fail(BENT),
                }
            }
            Op::Add(_) => self.pair(node, |a, b| Some(a.plus(b))),
            Op::Binary(Binary { kind }) => match kind {
                BinaryKind::Sub => self.pair(node, |a, b| Some(a.plus(&b.times(-1.0)))),
                BinaryKind::Max => self.pair(node, |a, b| Some(a.max(b))),
                BinaryKind::Min => self.pair(node, |a, b| Some(a.min(b))),
                BinaryKind::Mul => self.pair(node, |a, b| match (a.as_constant(), b.as_constant()) {
                    (_, Some(b)) => Some(a.times(b)),
                    (Some(a), _) => Some(b.times(a)),
                    _ => None,
                }),
                BinaryKind::Div => self.pair(node, |a, b| Some(a.times(1.0 / b.as_constant()?))),
                _ => fail(BENT),
            },
            Op::Concat(_) => fail("joins results that operators after it change; quantize the results before it"),
            _ => fail("neither is piecewise linear nor moves elements; quantize the results before it"),
        }
    }

    /// Applies a function to the operand of a unary node.
    fn each(&mut self, node: &Node, f: impl Fn(&Pieces) -> Pieces) -> SearchResult<Behind<'v>> {
        let mut behind = self.alone(node.inputs[0])?;
        behind.channels.iter_mut().for_each(|c| *c = Channel { whole: f(&c.whole), since: f(&c.since) });
        Ok(behind)
    }

    /// Applies a function to the operands of a binary node; `f` returns `None` if the result is not piecewise linear.
    fn pair(&mut self, node: &Node, f: impl Fn(&Pieces, &Pieces) -> Option<Pieces>) -> SearchResult<Behind<'v>> {
        let [a, b] = [self.operand(node.inputs[0])?, self.operand(node.inputs[1])?];
        let (behind, [a, b]) = match (a, b) {
            (Operand::Computed(a), Operand::Computed(b)) => {
                let same = |(a, b): (&&Node, &&Node)| std::ptr::eq(*a, *b);
                let moved_alike = a.moves.len() == b.moves.len() && a.moves.iter().zip(&b.moves).all(same);
                if !same((&a.product, &b.product)) || !moved_alike {
                    return Err(Obstacle::at(
                        node,
                        "joins two results that are not quantized; quantize both before it",
                    ));
                }
                let lists = [a.channels.clone(), b.channels];
                (a, lists)
            }
            (Operand::Computed(x), Operand::Known(k)) => {
                let lists = [x.channels.clone(), self.by_channel(node, &x, (node.inputs[0], &k))?];
                (x, lists)
            }
            (Operand::Known(k), Operand::Computed(x)) => {
                let lists = [self.by_channel(node, &x, (node.inputs[1], &k))?, x.channels.clone()];
                (x, lists)
            }
            (Operand::Known(_), Operand::Known(_)) => return Err(Obstacle::at(node, "has only constant operands")),
        };
        let both =
            |(a, b): (Channel, Channel)| Some(Channel { whole: f(&a.whole, &b.whole)?, since: f(&a.since, &b.since)? });
        let channels: Option<Vec<Channel>> = a.into_iter().zip(b).map(both).collect();
        let channels = channels.ok_or_else(|| Obstacle::at(node, BENT))?;
        if channels.iter().any(|c| !c.whole.is_finite()) {
            return Err(Obstacle::at(node, "has a constant that is not finite or divides by 0"));
        }
        Ok(Behind { channels, ..behind })
    }

    fn operand(&mut self, v: ValueId) -> SearchResult<Operand<'v>> {
        match known(self.view, v) {
            Some(known) => Ok(Operand::Known(known)),
            None => self.alone(v).map(Operand::Computed),
        }
    }

    /// Like [`ProductSearch::value`], but fails if the value also has elements of a border.
    fn alone(&mut self, v: ValueId) -> SearchResult<Behind<'v>> {
        let behind = self.value(v)?;
        let adds = |node: &&&Node| match &node.op {
            Op::Pad(_) => true,
            Op::MaxPool2d(pool) => pads_alone(pool, self.view.graph.ty(node.inputs[0])),
            _ => false,
        };
        match behind.moves.iter().find(adds) {
            Some(node) => {
                Err(Obstacle::at(node, "adds a border that later operators change; quantize the results before it"))
            }
            None => Ok(behind),
        }
    }

    /// Converts a constant operand to one value per channel of the product that the other operand comes from.
    fn by_channel(
        &self,
        node: &Node,
        behind: &Behind,
        (other, constant): (ValueId, &Known),
    ) -> SearchResult<Vec<Channel>> {
        let graph = self.view.graph;
        if graph.ty(other).dims != graph.ty(node.output()).dims {
            return Err(Obstacle::at(node, "broadcasts the results to a larger shape; quantize them before it"));
        }
        if constant.values.iter().any(|x| !x.is_finite()) {
            return Err(Obstacle::at(node, "has a constant that is not finite"));
        }
        let count = behind.channels.len();
        let values = match constant.values[..] {
            [one] => Some(vec![one; count]),
            _ => self.aligned(behind, other, constant),
        };
        let values = values.ok_or_else(|| Obstacle::at(node, "has a constant that differs within a channel"))?;
        Ok(values.into_iter().map(|x| Channel::both(Pieces::constant(x))).collect())
    }

    /// The constant's value for each channel. It moves a tensor of channel numbers as the results are moved to find
    /// each channel's elements.
    fn aligned(&self, behind: &Behind, at: ValueId, constant: &Known) -> Option<Vec<f64>> {
        let (graph, count) = (self.view.graph, behind.channels.len());
        let axis = channel_axis(self.view, behind.product)?;
        let shape = graph.ty(behind.product.output()).shape()?;
        let place = constant.shape.iter().position(|&n| n != 1)?;
        let alone = constant.values.len() == constant.shape[place];
        if behind.moves.is_empty() && alone && shape.len() - axis == constant.shape.len() - place {
            return Some(constant.values.clone());
        }
        let inner: usize = shape[axis + 1..].iter().product();
        let channel = |up: bool| {
            Tensor::from_fn(&shape, |i| {
                let c = i / inner % count;
                if up { c as f32 } else { (count - 1 - c) as f32 }
            })
        };
        let channels = self.moved(behind, channel(true))?;
        // If channels are compared with each other, the chosen one depends on their order: a second numbering detects
        // that.
        let reversed = self.moved(behind, channel(false))?;
        let places = Tensor::from_fn(&constant.shape, |i| i as i32);
        let spread = Tensor::from_fn(&graph.ty(at).shape()?, |_| 0i32);
        let places = Op::from(Add {}).eval(&[&spread, &places]).ok()?.pop()?;
        let mut values = vec![None; count];
        let places = places.as_slice::<i32>().ok()?.iter();
        for ((c, r), place) in channels.as_slice::<f32>().ok()?.iter().zip(reversed.as_slice::<f32>().ok()?).zip(places)
        {
            // A window that covers only padding belongs to no channel.
            if *c == f32::NEG_INFINITY {
                continue;
            }
            let value = constant.values[*place as usize];
            if *c + *r != (count - 1) as f32 || *values[*c as usize].get_or_insert(value) != value {
                return None;
            }
        }
        // A channel that a slice removes can have any value.
        let any = values.iter().flatten().next().copied()?;
        Some(values.into_iter().map(|v| v.unwrap_or(any)).collect())
    }

    /// Moves a tensor with the product's shape as the product's results are moved.
    fn moved(&self, behind: &Behind, mut t: Tensor) -> Option<Tensor> {
        for node in &behind.moves {
            let others = node.inputs[1..].iter().map(|v| self.view.graph.constant(*v).map(|t| t.as_ref()));
            let operands = std::iter::once(Some(&t)).chain(others).collect::<Option<Vec<&Tensor>>>()?;
            t = node.op.eval(&operands).ok()?.pop()?;
        }
        Some(t)
    }
}

/// True if a pooling has windows that cover only padding, or can have some because sizes are unknown.
fn pads_alone(pool: &MaxPool2d, data: &TensorType) -> bool {
    if pool.pads == [0; 4] {
        return false;
    }
    let sizes = pool.layout.spatial_axes().map(|a| data.dims.get(a).and_then(Dim::known));
    let [Some(h), Some(w)] = sizes else { return true };
    let one = MaxPool2d { layout: Layout::Nchw, ..pool.clone() };
    let found = Op::from(one).eval(&[&Tensor::from_fn(&[1, 1, h, w], |_| 0f32)]).ok().and_then(|mut list| list.pop());
    found.is_none_or(|t| t.as_slice::<f32>().is_ok_and(|t| t.contains(&f32::NEG_INFINITY)))
}
