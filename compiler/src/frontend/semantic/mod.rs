//! The semantic builder: what nodes of model files mean, whatever their format.
//!
//! A front end reads names and fields, and calls the functions here with values, sizes and numbers. They know the rules
//! of shapes, axes and padding, and decompose operators that the graph lacks into those that it has. What can be computed
//! at import is: a node whose operands are known becomes a constant. Everything that a small file can make large counts
//! against one limit, [`Room`].

pub(super) mod attention;
pub(super) mod conv;
pub(super) mod einsum;
pub(super) mod elementwise;
pub(super) mod flow;
pub(super) mod linear_attention;
pub(super) mod loss;
pub(super) mod movement;
pub(super) mod norm;
pub(super) mod pad;
pub(super) mod product;
pub(super) mod recurrent;
pub(super) mod reduce;
pub(super) mod resize;
pub(super) mod sample;
pub(super) mod scatter;
pub(super) mod spectral;
pub(super) mod volume;
pub(super) mod window;

use super::counted::CountedValues;
use super::error::ImportError;
use super::reason::Reason;
use super::room::Room;
use crate::graph::op::{
    Add, Binary, BinaryKind, Cast, Dequantize, Expand, Reduce, ReduceKind, Reshape, Transpose, Unary, UnaryKind,
    rank_in_bounds,
};
use crate::graph::{DType, Dim, Element, Graph, GraphBuilder, Node, Op, Places, Tensor, TensorType, ValueId};
use std::cell::Cell;
use std::collections::{BTreeSet, HashSet};
use std::sync::Arc;
use tilewright_hw::list::SHOWN;
use tilewright_runtime::artifact::Counted;

/// Maximum number of elements of a tensor that is computed at import, unless its operands are as large.
const MOST_FOLDED: usize = 1 << 16;

/// Bytes counted for a node of the graph against the memory limit of the import.
const NODE_BYTES: usize = 256;

/// False for more than 2^31 elements. Sizes of 0 count as 1, so that the sizes of any part of the shape can be
/// multiplied.
pub(super) fn reasonable(ty: &TensorType) -> bool {
    let mut sizes = ty.dims.iter().filter_map(Dim::known).map(|d| d.max(1));
    sizes.try_fold(1usize, |n, d| n.checked_mul(d)).is_some_and(|n| n <= 1 << 31)
}

/// The graph that an import builds, and the node of the file that it is at.
pub(super) struct SemanticBuilder {
    /// The graph, without this builder's rules.
    pub graph: GraphBuilder,
    /// What the import can still take.
    pub room: Room,
    /// The name of the file's node, also the prefix of the names of the graph's nodes.
    name: String,
    /// True if nodes count against the limit: a node in a function of the file can be imported many times.
    is_repeated: bool,
    /// The operand of the node that would have to be known, if there is one.
    unknown: Cell<Option<ValueId>>,
    /// Values of the outermost graph whose number of rows depends on the data.
    counted: CountedValues,
}

impl SemanticBuilder {
    /// Builds a graph of this name.
    pub fn new(name: &str, room: Room) -> SemanticBuilder {
        let (graph, unknown) = (GraphBuilder::new(name), Cell::new(None));
        SemanticBuilder {
            graph,
            room,
            name: String::new(),
            is_repeated: false,
            unknown,
            counted: CountedValues::default(),
        }
    }

    /// The graph with its outputs, what became of the builder's values, and the outputs whose rows are counted.
    ///
    /// # Errors
    /// When the graph is not sound, or a node cannot deal with a number of rows that depends on the data.
    pub fn finish(mut self, file: &str) -> Result<(Graph, Places, Vec<Counted>), ImportError> {
        let counted = self.counted.count_outputs(&mut self.graph, file)?;
        let broken = |source| ImportError::Graph { file: file.into(), source: Box::new(source) };
        let (graph, places) = self.graph.finish_numbered().map_err(broken)?;
        Ok((graph, places, counted))
    }

    /// Notes that a value has rows along a dimension, and that another value is their number.
    pub fn counted(&mut self, value: ValueId, axis: usize, count: ValueId) {
        self.counted.add(value, axis, count);
    }

    /// Notes that the node reads the sizes of a value.
    pub fn measured(&mut self, value: ValueId) {
        self.counted.measure(&self.name, value);
    }

    /// Begins with a node of the file; its name is the prefix of the names of the graph's nodes.
    pub fn begin(&mut self, name: &str, is_repeated: bool) {
        (self.name, self.is_repeated) = (name.to_owned(), is_repeated);
        self.unknown.set(None);
    }

    /// Notes that the node cannot be imported without the value of this operand, which the outermost graph has.
    pub fn must_know(&self, v: ValueId) {
        self.unknown.set(Some(v));
    }

    /// An error of the node, with the inputs of the outermost graph whose values would mend it.
    pub fn error(&self, error: ImportError, outermost: &GraphBuilder) -> ImportError {
        let mut inputs = BTreeSet::new();
        let (mut seen, mut left) = (HashSet::new(), Vec::from_iter(self.unknown.take()));
        while let Some(v) = left.pop().filter(|_| inputs.len() < SHOWN) {
            if seen.insert(v) {
                inputs.extend(outermost.input_name(v).map(str::to_owned));
                left.extend(outermost.def(v).into_iter().flat_map(|node| &node.inputs));
            }
        }
        // Data of more dimensions are not values to compile for.
        let is_list = |name: &String| outermost.input_rank(name).is_some_and(|rank| rank < 2);
        if inputs.is_empty() || !inputs.iter().all(is_list) {
            return error;
        }
        ImportError::NeedsValue { node: Box::new(error), inputs: inputs.into_iter().collect() }
    }

    /// The name of the file's node.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The node that defines a value, or `None` for an input.
    pub fn def(&self, v: ValueId) -> Option<&Node> {
        self.graph.def(v)
    }

    /// The constant that defines a value, or `None`.
    pub fn constant_of(&self, v: ValueId) -> Option<&Arc<Tensor>> {
        self.graph.constant_of(v)
    }

    /// Sizes of a value; fails if one is open.
    pub fn shape(&self, v: ValueId) -> Result<Vec<usize>, Reason> {
        let ty = self.ty(v);
        ty.shape().ok_or_else(|| {
            let open = ty.dims.iter().find(|d| d.known().is_none()).map(ToString::to_string).unwrap_or_default();
            Reason(format!("needs the size `{open}`, which the model leaves open; give it with --bind {open}=SIZE"))
        })
    }

    /// Converts axes, which can be negative, to ascending dimensions.
    pub fn axes(&self, list: &[i64], rank: usize) -> Result<Vec<usize>, Reason> {
        rank_in_bounds(rank)?;
        let mut axes = list.iter().map(|&a| self.axis(a, rank)).collect::<Result<Vec<_>, _>>()?;
        axes.sort_unstable();
        if axes.windows(2).any(|w| w[0] == w[1]) {
            return Err(format!("its axes {list:?} name a dimension twice").into());
        }
        Ok(axes)
    }

    /// Converts an axis, which can be negative, to a dimension.
    pub fn axis(&self, axis: i64, rank: usize) -> Result<usize, Reason> {
        let n = i64::try_from(rank).unwrap_or(i64::MAX);
        let place = if axis < 0 { axis.saturating_add(n) } else { axis };
        let place = usize::try_from(place).ok().filter(|&a| a < rank);
        place.ok_or_else(|| Reason(format!("its axis {axis} is out of range for {rank} dimensions")))
    }

    pub fn ty(&self, v: ValueId) -> &TensorType {
        self.graph.ty(v)
    }

    /// Adds a node; the one that computes the output has an empty suffix.
    pub fn node(&mut self, suffix: &str, op: impl Into<Op>, inputs: &[ValueId]) -> Result<ValueId, Reason> {
        let (label, op) = (self.label(suffix), op.into());
        let doubled = self.doubled(&op, inputs)?;
        let inputs = doubled.as_deref().unwrap_or(inputs);
        if let Some(t) = self.folded(&op, inputs) {
            return Ok(self.graph.constant(&label, t));
        }
        if self.is_repeated {
            self.room.take(Some(NODE_BYTES), || "its function becomes too many nodes".into())?;
        }
        self.room.take_for(label.len(), "names of nodes")?;
        let v = self.graph.node(&label, op, inputs)?;
        if !reasonable(self.ty(v)) {
            return Err(format!("its result is {}, which is more than 2^31 elements", self.ty(v)).into());
        }
        Ok(v)
    }

    /// The operands, with constants of f32 next to doubles converted: the import makes its own constants as f32. `None` if
    /// they stay as they are.
    fn doubled(&mut self, op: &Op, inputs: &[ValueId]) -> Result<Option<Vec<ValueId>>, Reason> {
        let same = matches!(
            op,
            Op::Add(_)
                | Op::Binary(_)
                | Op::Select(_)
                | Op::Concat(_)
                | Op::MatMul(_)
                | Op::Dense(_)
                | Op::Conv2d(_)
                | Op::ConvTranspose2d(_)
                | Op::Resample(_)
                | Op::LayerNorm(_)
        );
        if !same || inputs.iter().all(|&v| self.ty(v).dtype != DType::F64) {
            return Ok(None);
        }
        let single = |n: &Self, v: ValueId| n.ty(v).dtype == DType::F32 && n.graph.constant_of(v).is_some();
        let double = |v: &ValueId| if single(self, *v) { self.cast("double", *v, DType::F64) } else { Ok(*v) };
        inputs.iter().map(double).collect::<Result<_, _>>().map(Some)
    }

    /// A constant made by the import; `f` computes elements from their row-major index.
    pub fn table<T: Element>(
        &mut self,
        suffix: &str,
        shape: &[usize],
        f: impl FnMut(usize) -> T,
    ) -> Result<ValueId, Reason> {
        self.reserve(&TensorType::new(T::DTYPE, shape))?;
        Ok(self.made(suffix, Tensor::from_fn(shape, f)))
    }

    /// Reserves memory for a constant that the import is about to make. The limit for all of them follows from the
    /// file's size.
    pub fn reserve(&mut self, ty: &TensorType) -> Result<(), Reason> {
        rank_in_bounds(ty.rank())?;
        if !self.take_room(ty) {
            return Err(format!("needs a table of {ty}, which is too much for a file of this size").into());
        }
        // A tensor without elements needs no memory, but its sizes are multiplied.
        if !reasonable(ty) {
            return Err(format!("its result is {ty}, which is more than 2^31 elements").into());
        }
        Ok(())
    }

    /// Reserves memory for the nodes that one node of the file becomes, as for constants.
    pub fn reserve_nodes(&mut self, count: usize) -> Result<(), Reason> {
        Ok(self.room.take(count.checked_mul(NODE_BYTES), || format!("becomes {count} nodes"))?)
    }

    /// Subtracts the bytes of a tensor from those that the import can still allocate.
    fn take_room(&mut self, ty: &TensorType) -> bool {
        let bytes = ty.element_count().and_then(|n| n.checked_mul(ty.dtype.size_bytes()));
        self.room.take(bytes, String::new).is_ok()
    }

    /// The result of an operator with known operands. Dequantized weights are not computed, because they mark the
    /// quantized groups, and neither are large tensors of one number.
    fn folded(&mut self, op: &Op, inputs: &[ValueId]) -> Option<Tensor> {
        if matches!(op, Op::Dequantize(_)) {
            return None;
        }
        let operands = inputs.iter().map(|&v| self.graph.constant_of(v)).collect::<Option<Vec<_>>>()?;
        let operands: Vec<_> = operands.into_iter().cloned().collect();
        let types: Vec<TensorType> = operands.iter().map(|t| t.ty()).collect();
        let made = op.infer(&types.iter().collect::<Vec<_>>()).ok()?.pop()?;
        let given = operands.iter().map(|t| t.len()).max()?;
        if made.element_count()? > given.saturating_mul(16).max(MOST_FOLDED) || !self.take_room(&made) {
            return None;
        }
        op.eval(&operands.iter().map(|t| t.as_ref()).collect::<Vec<_>>()).ok()?.pop()
    }

    /// A number as a tensor without dimensions.
    pub fn scalar(&mut self, suffix: &str, x: f32) -> ValueId {
        self.made(suffix, Tensor::scalar(x))
    }

    /// Applies a function to each element.
    pub fn unary(&mut self, suffix: &str, kind: UnaryKind, v: ValueId) -> Result<ValueId, Reason> {
        self.node(suffix, Unary::new(kind), &[v])
    }

    /// Applies a function to two elements.
    pub fn binary(&mut self, suffix: &str, kind: BinaryKind, a: ValueId, b: ValueId) -> Result<ValueId, Reason> {
        self.node(suffix, Binary { kind }, &[a, b])
    }

    pub fn add(&mut self, suffix: &str, a: ValueId, b: ValueId) -> Result<ValueId, Reason> {
        self.node(suffix, Add {}, &[a, b])
    }

    pub fn cast(&mut self, suffix: &str, v: ValueId, dtype: DType) -> Result<ValueId, Reason> {
        if self.ty(v).dtype == dtype { Ok(v) } else { self.node(suffix, Cast { dtype }, &[v]) }
    }

    /// The value as floats: those of the graph, or integers in single precision.
    pub fn float(&mut self, suffix: &str, v: ValueId) -> Result<ValueId, Reason> {
        if self.ty(v).dtype.is_float() { Ok(v) } else { self.cast(suffix, v, DType::F32) }
    }

    pub fn reduce(
        &mut self,
        suffix: &str,
        kind: ReduceKind,
        axes: &[usize],
        keep_dims: bool,
        v: ValueId,
    ) -> Result<ValueId, Reason> {
        self.node(suffix, Reduce { kind, axes: axes.to_vec(), keep_dims }, &[v])
    }

    /// The same elements with another shape of known sizes.
    pub fn reshape(&mut self, suffix: &str, v: ValueId, shape: &[usize]) -> Result<ValueId, Reason> {
        if self.ty(v).shape().as_deref() == Some(shape) {
            return Ok(v);
        }
        if shape.contains(&0) {
            return self.empty(suffix, v, shape);
        }
        let sizes = shape.iter().map(|&d| i64::try_from(d)).collect::<Result<_, _>>();
        self.node(suffix, Reshape { shape: sizes.map_err(|_| "its shape is too large")? }, &[v])
    }

    /// A tensor without elements.
    fn empty(&mut self, suffix: &str, v: ValueId, shape: &[usize]) -> Result<ValueId, Reason> {
        let dtype = self.ty(v).dtype;
        if self.ty(v).element_count() != Some(0) {
            return Err(format!("its shape {shape:?} does not fit {}", self.ty(v)).into());
        }
        let t = Tensor::from_bytes(dtype, shape, &[]).ok_or("its shape is too large")?;
        self.constant(suffix, t)
    }

    /// Adds a constant and reserves memory for it.
    pub fn constant(&mut self, suffix: &str, value: Tensor) -> Result<ValueId, Reason> {
        self.reserve(&value.ty())?;
        Ok(self.made(suffix, value))
    }

    /// Adds a constant for which memory is reserved already.
    pub fn made(&mut self, suffix: &str, value: Tensor) -> ValueId {
        let label = self.label(suffix);
        self.graph.constant(&label, value)
    }

    fn label(&self, suffix: &str) -> String {
        if suffix.is_empty() { self.name.clone() } else { format!("{}/{suffix}", self.name) }
    }

    /// Weights `[O, I, W]` as `[O, I, 1, W]`; other weights unchanged.
    pub fn weight_image(&mut self, v: ValueId) -> Result<ValueId, Reason> {
        if self.ty(v).rank() != 3 {
            return Ok(v);
        }
        let mut shape = self.shape(v)?;
        shape.insert(2, 1);
        if let Some((d, t)) = self.dequantized(v) {
            let t = t.reshaped(&shape).ok_or("its weights are too large")?;
            let axis = if d.axis >= 2 { d.axis + 1 } else { d.axis };
            let c = self.constant("weight", t)?;
            return self.node("weight/dequantize", Dequantize { axis, ..d }, &[c]);
        }
        self.reshape("weight/image", v, &shape)
    }

    /// Weights of a transposed convolution, `[I, O/groups, KH, KW]`, as `[O, KH, KW, I/groups]`.
    pub fn regrouped(&mut self, v: ValueId, [i, o, kh, kw]: [usize; 4], groups: usize) -> Result<ValueId, Reason> {
        let (apart, perm) = ([groups, i / groups, o, kh, kw], [0, 2, 3, 4, 1]);
        let joined = [o * groups, kh, kw, i / groups];
        if let Some((d, t)) = self.dequantized(v).filter(|(d, _)| d.scale.len() == 1 || (d.axis == 1 && groups == 1)) {
            let t = t.reshaped(&apart).and_then(|t| t.transposed(&perm)).and_then(|t| t.reshaped(&joined));
            let c = self.constant("weight", t.ok_or("its weights are too large")?)?;
            return self.node("weight/dequantize", Dequantize { axis: 0, ..d }, &[c]);
        }
        let v = self.reshape("weight/groups", v, &apart)?;
        let v = self.node("weight/transpose", Transpose { perm: perm.to_vec() }, &[v])?;
        self.reshape("weight", v, &joined)
    }

    /// The values of a float constant, or of a dequantized constant.
    pub fn known_floats(&self, v: ValueId) -> Option<Vec<f32>> {
        let real = match self.dequantized(v) {
            Some((d, t)) => Op::from(d).eval(&[&t]).ok()?.pop()?,
            None => self.graph.constant_of(v)?.as_ref().clone(),
        };
        real.dtype().is_float().then(|| real.doubles().iter().map(|&x| x as f32).collect())
    }

    /// A dequantization of a constant, and the constant.
    fn dequantized(&self, v: ValueId) -> Option<(Dequantize, Tensor)> {
        let node = self.graph.def(v)?;
        let Op::Dequantize(d) = &node.op else { return None };
        Some((d.clone(), self.graph.constant_of(node.inputs[0])?.as_ref().clone()))
    }

    /// `v` with permuted dimensions; constants, also dequantized ones, are transposed at import.
    pub fn transposed(&mut self, suffix: &str, v: ValueId, perm: &[usize]) -> Result<ValueId, Reason> {
        let wrong = || Reason(format!("its {suffix} must have {} dimensions", perm.len()));
        if self.ty(v).rank() != perm.len() {
            return Err(wrong());
        }
        if let Some(t) = self.graph.constant_of(v) {
            let t = t.transposed(perm).ok_or_else(wrong)?;
            return self.constant(suffix, t);
        }
        let repeated = self.graph.def(v).map(|n| (n.op.clone(), n.inputs.clone()));
        if let Some((Op::Expand(e), inputs)) = repeated
            && self.ty(inputs[0]).element_count() == Some(1)
        {
            let one = self.reshape(&format!("{suffix}/one"), inputs[0], &[])?;
            return self.node(suffix, Expand { shape: perm.iter().map(|&p| e.shape[p]).collect() }, &[one]);
        }
        if let Some((d, t)) = self.dequantized(v) {
            let t = t.transposed(perm).ok_or_else(wrong)?;
            let axis = perm.iter().position(|&p| p == d.axis).unwrap_or(0);
            let c = self.constant(suffix, t)?;
            return self.node(&format!("{suffix}/dequantize"), Dequantize { axis, ..d }, &[c]);
        }
        self.node(&format!("{suffix}/transpose"), Transpose { perm: perm.to_vec() }, &[v])
    }
}
