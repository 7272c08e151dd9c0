//! Graphs written as expressions in Rust: a function for each operator, with names for the attributes that differ from
//! their defaults.
//!
//! ```
//! use tilewright_compiler::graph::network::{Network, conv2d, relu, softmax};
//! use tilewright_compiler::graph::op::Layout;
//! use tilewright_compiler::graph::{DType, Tensor};
//!
//! let net = Network::new("small");
//! let x = net.input("x", DType::F32, &[1, 3, 8, 8]);
//! let weights = net.constant("weights", Tensor::from_fn(&[3, 3, 3, 3], |i| i as f32));
//! let y = conv2d([x, weights]).layout(Layout::Nchw).pads([1; 4]).named("first").build()?;
//! let y = relu([(y + x).build()?]).build()?;
//! assert_eq!(y.shape(), Some(vec![1, 3, 8, 8]));
//! net.output("y", softmax([y]).axis(1).build()?);
//! let graph = net.finish()?;
//! assert_eq!(graph.nodes().count(), 5);
//! # Ok::<(), tilewright_compiler::graph::GraphError>(())
//! ```
//!
//! A computation of your own is `compute([x]).expression("te halves { … }".parse()?)`.
//!
//! `build` adds the node. It checks types and shapes at once, and its error names the node and what does not fit.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::marker::PhantomData;
use std::ops;
use std::sync::Arc;

use super::op::{Add, Attr, Binary, BinaryKind, Op};
use super::{DType, Graph, GraphBuilder, GraphError, Tensor, TensorType, ValueId};

pub use super::op::functions::*;

/// A graph that is being written.
#[derive(Debug)]
pub struct Network {
    builder: RefCell<GraphBuilder>,
}

/// A value of a network.
#[derive(Debug, Clone, Copy)]
pub struct Value<'n> {
    network: &'n Network,
    id: ValueId,
}

/// An operator with its operands, which is added to their network by [`Apply::build`]. Each operator has a method for
/// each of its attributes.
#[derive(Debug, Clone)]
#[must_use = "the node is added by `build`"]
pub struct Apply<'n, O> {
    operands: Vec<Value<'n>>,
    attributes: BTreeMap<String, Attr>,
    /// The operator's name in the text form.
    operator: &'static str,
    name: Option<String>,
    of: PhantomData<O>,
}

impl Network {
    /// A network without nodes.
    pub fn new(name: &str) -> Network {
        Network { builder: RefCell::new(GraphBuilder::new(name)) }
    }

    /// Adds an input of known shape.
    pub fn input(&self, name: &str, dtype: DType, shape: &[usize]) -> Value<'_> {
        self.input_of(name, TensorType::new(dtype, shape))
    }

    /// Adds an input, whose type can have open sizes.
    pub fn input_of(&self, name: &str, ty: TensorType) -> Value<'_> {
        Value { network: self, id: self.builder.borrow_mut().input(name, ty) }
    }

    /// Adds a constant.
    pub fn constant(&self, name: &str, value: impl Into<Arc<Tensor>>) -> Value<'_> {
        Value { network: self, id: self.builder.borrow_mut().constant(name, value) }
    }

    /// Makes a value an output, under this name.
    ///
    /// # Panics
    /// If the value is of another network.
    pub fn output(&self, name: &str, value: Value<'_>) {
        assert!(std::ptr::eq(value.network, self), "output {name} is a value of another network");
        self.builder.borrow_mut().output(name, value.id);
    }

    /// The graph, verified.
    ///
    /// # Errors
    /// As [`GraphBuilder::finish`].
    pub fn finish(self) -> Result<Graph, GraphError> {
        self.builder.into_inner().finish()
    }
}

impl Value<'_> {
    /// Its element type and shape.
    pub fn ty(&self) -> TensorType {
        self.network.builder.borrow().ty(self.id).clone()
    }

    /// Its sizes, if all are known.
    pub fn shape(&self) -> Option<Vec<usize>> {
        self.ty().shape()
    }
}

impl<'n, O> Apply<'n, O> {
    /// The operator with this name in the text form, on these operands.
    pub(super) fn new(operator: &'static str, operands: impl IntoIterator<Item = Value<'n>>) -> Apply<'n, O> {
        let (attributes, name) = (BTreeMap::new(), None);
        Apply { operands: operands.into_iter().collect(), attributes, operator, name, of: PhantomData }
    }

    /// With an attribute.
    pub(super) fn set(mut self, attribute: &str, value: Attr) -> Apply<'n, O> {
        self.attributes.insert(attribute.to_string(), value);
        self
    }

    /// Gives the node a name; without one, it is called as its operator. If the name is taken, it gets a number.
    pub fn named(mut self, name: &str) -> Apply<'n, O> {
        self.name = Some(name.to_string());
        self
    }

    /// Adds the node to the network.
    ///
    /// # Errors
    /// [`GraphError`]: an attribute is missing or wrong, the operands do not fit, or are of several networks.
    pub fn build(self) -> Result<Value<'n>, GraphError> {
        let name = self.name.as_deref().unwrap_or(self.operator);
        let wrong = |what: &str| GraphError::Invalid(format!("node `{name}` ({}) {what}", self.operator));
        let op = Op::of(self.operator, self.attributes).map_err(|all| wrong(&all.join("; ")))?;
        let network = self.operands.first().ok_or_else(|| wrong("has no operands"))?.network;
        if !self.operands.iter().all(|value| std::ptr::eq(value.network, network)) {
            return Err(wrong("has operands of several networks"));
        }
        let ids: Vec<ValueId> = self.operands.iter().map(|value| value.id).collect();
        Ok(Value { network, id: network.builder.borrow_mut().node(name, op, &ids)? })
    }
}

impl<'n> ops::Add for Value<'n> {
    type Output = Apply<'n, Add>;

    fn add(self, other: Value<'n>) -> Apply<'n, Add> {
        add([self, other])
    }
}

macro_rules! arithmetic {
    ($($interface:ident $method:ident $kind:ident;)*) => {
        $(impl<'n> ops::$interface for Value<'n> {
            type Output = Apply<'n, Binary>;

            fn $method(self, other: Value<'n>) -> Apply<'n, Binary> {
                binary([self, other]).kind(BinaryKind::$kind)
            }
        })*
    };
}

arithmetic! {
    Sub sub Sub;
    Mul mul Mul;
    Div div Div;
    Rem rem Mod;
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::op::{Conv2d, Layout, Pad, UnaryKind};

    /// What the functions write is what the builder's nodes are, with all attributes.
    #[test]
    fn a_network_is_the_graph_of_its_nodes() {
        let weights = Tensor::from_fn(&[2, 3, 3, 1], |i| i as f32);
        let net = Network::new("net");
        let x = net.input("x", DType::F32, &[1, 4, 4, 1]);
        let w = net.constant("w", weights.clone());
        let sum = conv2d([x, w]).strides([2, 2]).pads([1; 4]).named("conv").build().unwrap();
        let scaled = (sum * sum).build().unwrap();
        net.output("y", unary([scaled]).kind(UnaryKind::Tanh).build().unwrap());
        let found = net.finish().unwrap();

        let mut b = GraphBuilder::new("net");
        let x = b.input("x", TensorType::new(DType::F32, &[1, 4, 4, 1]));
        let w = b.constant("w", weights);
        let conv = Conv2d {
            strides: [2, 2],
            pads: [1; 4],
            dilations: [1, 1],
            groups: 1,
            layout: Layout::Nhwc,
            data_zero_point: 0,
            weight_zero_point: 0,
        };
        let sum = b.node("conv", conv, &[x, w]).unwrap();
        let scaled = b.node("binary", Binary { kind: BinaryKind::Mul }, &[sum, sum]).unwrap();
        let tanh = Op::of("unary", [("kind".to_string(), Attr::Word("tanh".into()))].into()).unwrap();
        let y = b.node("unary", tanh, &[scaled]).unwrap();
        b.output("y", y);
        assert_eq!(found, b.finish().unwrap());
    }

    #[test]
    fn what_does_not_fit_is_an_error_with_the_nodes_name() {
        let (net, other) = (Network::new("net"), Network::new("other"));
        let x = net.input("x", DType::F32, &[1, 4, 4, 1]);
        let text = |outcome: Result<Value, GraphError>| outcome.unwrap_err().to_string();
        let e =
            text(conv2d([x, net.constant("w", Tensor::from_fn(&[2, 3, 3, 5], |i| i as f32))]).named("first").build());
        assert!(e.contains("first") && e.contains("weight"), "{e}");
        assert!(text(relu([x, x]).build()).contains("needs 1 operand"), "{}", text(relu([x, x]).build()));
        let e = text(Apply::<Pad>::new(Pad::NAME, [x]).build());
        assert!(e.starts_with("node `pad` (pad) attribute `"), "{e}");
        let none: [Value; 0] = [];
        assert_eq!(text(relu(none).build()), "node `relu` (relu) has no operands");
        let y = other.input("y", DType::F32, &[1, 4, 4, 1]);
        assert_eq!(text((x + y).build()), "node `add` (add) has operands of several networks");
    }
}
