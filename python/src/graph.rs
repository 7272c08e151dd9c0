//! Graphs: read, printed, walked, built and rewritten.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyList, PyTuple};
use pyo3::{IntoPyObjectExt, exceptions::PyTypeError};
use tilewright_compiler::graph::op::{Attr, Packed};
use tilewright_compiler::graph::text::{Blobs, parse, print};
use tilewright_compiler::graph::{
    DType, Dim, Graph, GraphBuilder, GraphError, NodeId, Op, Tensor, TensorType, ValueId, eval,
};

use tilewright_hw::Form;

use crate::compile::Model;
use crate::error::Class;
use crate::forms;
use crate::interrupt::detached;
use crate::json;
use crate::tensor;

/// A network: inputs, nodes in topological order and outputs. It is not changed; `rewrite` makes another.
#[pyclass(frozen, name = "Graph", module = "tilewright", eq)]
#[derive(PartialEq)]
pub struct PyGraph(pub Arc<Graph>);

fn invalid(py: Python<'_>, error: &GraphError) -> PyErr {
    Class::Graph.err(py, error)
}

impl PyGraph {
    fn node_at(&self, id: NodeId) -> PyNode {
        PyNode { graph: self.0.clone(), id }
    }

    fn value_at(&self, id: ValueId) -> PyValue {
        PyValue { graph: self.0.clone(), id }
    }
}

#[pymethods]
impl PyGraph {
    /// The graph of a model's file or of `zoo:NAME`; the options are those of `compile`.
    ///
    /// Raises ModelError if the file cannot be imported.
    #[staticmethod]
    #[pyo3(name = "load", signature = (model, *, bind=None, shape=None, value=None, packed=Vec::new()))]
    fn import(
        py: Python<'_>,
        model: &Bound<'_, PyAny>,
        bind: Option<&Bound<'_, PyDict>>,
        shape: Option<&Bound<'_, PyDict>>,
        value: Option<&Bound<'_, PyDict>>,
        packed: Vec<String>,
    ) -> PyResult<PyGraph> {
        let model = Model::of(model, bind, shape, value, packed)?;
        let (graph, _) = detached(py, || model.import())?.map_err(|error| Class::Model.of_error(py, error))?;
        Ok(PyGraph(Arc::new(graph)))
    }

    /// The graph of its text form. `constants` has the bytes of constants that the text names by their hash.
    ///
    /// Raises GraphError with everything that is wrong.
    #[staticmethod]
    #[pyo3(name = "parse", signature = (text, constants=None))]
    fn of_text(py: Python<'_>, text: &str, constants: Option<BTreeMap<String, Vec<u8>>>) -> PyResult<PyGraph> {
        let blobs: Blobs = constants.unwrap_or_default();
        parse(text, &blobs).map(|graph| PyGraph(Arc::new(graph))).map_err(|error| invalid(py, &error))
    }

    /// The graph as text, with its large constants as comments below it.
    fn to_text(&self) -> String {
        self.0.to_text()
    }

    /// Reads a graph from its text.
    ///
    /// Raises GraphError with everything that is wrong.
    #[staticmethod]
    fn from_text(py: Python<'_>, text: &str) -> PyResult<PyGraph> {
        forms::of_text(py, Class::Graph, text).map(|graph| PyGraph(Arc::new(graph)))
    }

    /// The graph as a dict of its `text` and its large `constants` in hexadecimal.
    fn to_json<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyAny>> {
        json::to_python(py, &self.0.to_json())
    }

    /// Reads a graph from `to_json`'s dict, or from its text.
    #[staticmethod]
    fn from_json(json: &Bound<'_, PyAny>) -> PyResult<PyGraph> {
        forms::of_json(Class::Graph, json).map(|graph| PyGraph(Arc::new(graph)))
    }

    /// Its name.
    #[getter]
    fn name(&self) -> &str {
        self.0.name()
    }

    /// Its inputs, in order, by name.
    #[getter]
    fn inputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        self.0.inputs().try_for_each(|(name, id)| all.set_item(name, self.value_at(id)))?;
        Ok(all)
    }

    /// Its outputs, in order, by name.
    #[getter]
    fn outputs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        self.0.outputs().iter().try_for_each(|(name, id)| all.set_item(name, self.value_at(*id)))?;
        Ok(all)
    }

    /// Its nodes in topological order, constants too.
    #[getter]
    fn nodes(&self) -> Vec<PyNode> {
        self.0.nodes().map(|(id, _)| self.node_at(id)).collect()
    }

    /// The node of that name.
    ///
    /// Raises NotFoundError if there is none.
    fn node(&self, py: Python<'_>, name: &str) -> PyResult<PyNode> {
        let found = self.0.nodes().find(|(_, node)| node.name == name);
        let missing = || Class::NotFound.err(py, format!("the graph {} has no node {name}", self.0.name()));
        found.map(|(id, _)| self.node_at(id)).ok_or_else(missing)
    }

    /// Computes the outputs by the operators' definitions, slowly: the reference for everything that is compiled.
    ///
    /// Raises InputError if an input does not fit.
    #[pyo3(signature = (*inputs))]
    fn evaluate<'py>(&self, inputs: &Bound<'py, PyTuple>) -> PyResult<Bound<'py, PyList>> {
        let py = inputs.py();
        let given = inputs.iter().map(|array| to_constant(&array)).collect::<PyResult<Vec<_>>>()?;
        let found = detached(py, || eval(&self.0, &given))?.map_err(|error| Class::Input.err(py, error))?;
        PyList::new(py, found.iter().map(|t| tensor::to_numpy(py, t.into())).collect::<PyResult<Vec<_>>>()?)
    }

    /// Another graph, node by node.
    ///
    /// `change` is called with a GraphBuilder, each node that is no constant, and its operands in the new graph. It
    /// returns None to keep the node, or the value (a list of them for several results) that takes its place. The graph
    /// is verified. Names of inputs and outputs stay.
    ///
    /// Raises GraphError with what the verifier finds.
    fn rewrite(&self, py: Python<'_>, change: &Bound<'_, PyAny>) -> PyResult<PyGraph> {
        let builder = Py::new(py, PyBuilder::new(self.0.name()))?;
        let ours = builder.get();
        let mut place: Vec<Option<ValueId>> = vec![None; self.0.value_count()];
        for (name, id) in self.0.inputs() {
            place[id.0] = Some(ours.with(py, |b| Ok(b.input(name, self.0.ty(id).clone())))?);
        }
        for (id, node) in self.0.nodes() {
            let inputs: Vec<ValueId> = node.inputs.iter().filter_map(|v| place[v.0]).collect();
            let answer = match node.op {
                Op::Constant(_) => None,
                _ => {
                    let given = inputs.iter().map(|v| ours.built(py, &builder, *v)).collect::<PyResult<Vec<_>>>()?;
                    let answer = change.call1((&builder, self.node_at(id), PyList::new(py, given)?))?;
                    (!answer.is_none()).then_some(answer)
                }
            };
            let results = match answer {
                Some(answer) => ours.ids(&builder, &answer)?,
                None => ours.with(py, |b| b.node_outputs(&node.name, node.op.clone(), &inputs))?,
            };
            if results.len() != node.outputs.len() {
                let (found, wanted) = (results.len(), node.outputs.len());
                let text = format!("{found} values were returned for node {}, which has {wanted} results", node.name);
                return Err(Class::Graph.err(py, text));
            }
            for (old, new) in node.outputs.iter().zip(results) {
                place[old.0] = Some(new);
            }
        }
        for (name, id) in self.0.outputs() {
            if let Some(new) = place[id.0] {
                ours.with(py, |b| {
                    b.output(name, new);
                    Ok(())
                })?;
            }
        }
        ours.finish(py)
    }

    fn __str__(&self) -> String {
        print(&self.0)
    }

    fn __repr__(&self) -> String {
        format!("<tilewright.Graph {}: {} nodes>", self.0.name(), self.0.nodes().len())
    }

    fn _repr_html_(&self) -> String {
        let types = |ids: &[ValueId]| ids.iter().map(|v| self.0.ty(*v).to_string()).collect::<Vec<_>>().join(", ");
        let names = |ids: &[ValueId]| ids.iter().map(|v| self.0.value_name(*v)).collect::<Vec<_>>().join(", ");
        let nodes = self.0.nodes().filter(|(_, node)| !matches!(node.op, Op::Constant(_)));
        let rows = nodes.map(|(_, node)| {
            vec![node.name.clone(), node.op.name().to_string(), names(&node.inputs), types(&node.outputs)]
        });
        crate::html::table(Some(self.0.name()), &["node", "operator", "operands", "results"], rows)
    }
}

/// One application of an operator.
#[pyclass(frozen, name = "Node", module = "tilewright")]
pub struct PyNode {
    graph: Arc<Graph>,
    id: NodeId,
}

impl PyNode {
    fn values(&self, ids: &[ValueId]) -> Vec<PyValue> {
        ids.iter().map(|id| PyValue { graph: self.graph.clone(), id: *id }).collect()
    }
}

#[pymethods]
impl PyNode {
    /// Its name, unique in the graph.
    #[getter]
    fn name(&self) -> &str {
        &self.graph.node(self.id).name
    }

    /// The operator's name.
    #[getter]
    fn op(&self) -> &'static str {
        self.graph.node(self.id).op.name()
    }

    /// The operator's attributes by name.
    #[getter]
    fn attrs<'py>(&self, py: Python<'py>) -> PyResult<Bound<'py, PyDict>> {
        let all = PyDict::new(py);
        for (name, attr) in self.graph.node(self.id).op.attrs() {
            all.set_item(name, attr_to_python(py, &attr)?)?;
        }
        Ok(all)
    }

    /// Its operands, in the operator's order.
    #[getter]
    fn inputs(&self) -> Vec<PyValue> {
        self.values(&self.graph.node(self.id).inputs)
    }

    /// The values that it defines.
    #[getter]
    fn outputs(&self) -> Vec<PyValue> {
        self.values(&self.graph.node(self.id).outputs)
    }

    fn __repr__(&self) -> String {
        format!("<tilewright.Node {} {}>", self.op(), self.name())
    }
}

/// A value of a graph.
#[pyclass(frozen, name = "Value", module = "tilewright")]
pub struct PyValue {
    graph: Arc<Graph>,
    id: ValueId,
}

fn shape(py: Python<'_>, ty: &TensorType) -> PyResult<Py<PyAny>> {
    let dim = |dim: &Dim| match dim {
        Dim::Fixed(size) => size.into_py_any(py),
        Dim::Symbol(symbol) => symbol.into_py_any(py),
    };
    PyTuple::new(py, ty.dims.iter().map(dim).collect::<PyResult<Vec<_>>>()?)?.into_py_any(py)
}

#[pymethods]
impl PyValue {
    /// Its name in messages: of the input or the node that defines it.
    #[getter]
    fn name(&self) -> &str {
        self.graph.value_name(self.id)
    }

    /// Element type, for example `f32`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.graph.ty(self.id).dtype.name()
    }

    /// Sizes of the dimensions, outermost first; an open one is its symbol.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        shape(py, self.graph.ty(self.id))
    }

    /// The elements as a NumPy array that cannot be written, if it is a constant, else None.
    #[getter]
    fn constant<'py>(&self, py: Python<'py>) -> PyResult<Option<Bound<'py, PyAny>>> {
        self.graph.constant(self.id).map(|t| tensor::to_numpy(py, t.as_ref().into())).transpose()
    }

    /// The node that defines it; None for an input.
    #[getter]
    fn node(&self) -> Option<PyNode> {
        self.graph.def_node(self.id).map(|(id, _)| PyNode { graph: self.graph.clone(), id })
    }

    /// The nodes that read it, one for each operand.
    #[getter]
    fn users(&self) -> Vec<PyNode> {
        self.graph.users()[self.id.0].iter().map(|id| PyNode { graph: self.graph.clone(), id: *id }).collect()
    }

    fn __repr__(&self) -> String {
        format!("<tilewright.Value {}: {}>", self.name(), self.graph.ty(self.id))
    }
}

/// Builds a graph node by node. Operands are checked when a node is added.
#[pyclass(frozen, name = "GraphBuilder", module = "tilewright")]
pub struct PyBuilder(Mutex<Option<GraphBuilder>>);

/// A value of a graph that is being built.
#[pyclass(frozen, name = "BuilderValue", module = "tilewright")]
pub struct PyBuilt {
    builder: Py<PyBuilder>,
    id: ValueId,
    ty: TensorType,
}

impl PyBuilder {
    fn lock(&self) -> MutexGuard<'_, Option<GraphBuilder>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    fn with<T>(&self, py: Python<'_>, act: impl FnOnce(&mut GraphBuilder) -> Result<T, GraphError>) -> PyResult<T> {
        match self.lock().as_mut() {
            Some(builder) => act(builder).map_err(|error| invalid(py, &error)),
            None => Err(Class::Graph.err(py, "the graph is finished; make another builder")),
        }
    }

    fn built(&self, py: Python<'_>, own: &Py<PyBuilder>, id: ValueId) -> PyResult<Py<PyBuilt>> {
        let ty = self.with(py, |b| Ok(b.ty(id).clone()))?;
        Py::new(py, PyBuilt { builder: own.clone_ref(py), id, ty })
    }

    /// The ids of one value or a list of them, of this builder.
    fn ids(&self, own: &Py<PyBuilder>, values: &Bound<'_, PyAny>) -> PyResult<Vec<ValueId>> {
        let py = values.py();
        let id = |value: &Bound<'_, PyAny>| {
            let Ok(value) = value.cast::<PyBuilt>() else {
                let found = value.get_type().name()?;
                return Err(PyTypeError::new_err(format!("a value of the builder is expected, not {found}")));
            };
            if !value.get().builder.is(own) {
                return Err(Class::Graph.err(py, "the value is of another builder"));
            }
            Ok(value.get().id)
        };
        if values.is_instance_of::<PyBuilt>() {
            return Ok(vec![id(values)?]);
        }
        values.try_iter()?.map(|value| id(&value?)).collect()
    }
}

fn dtype(py: Python<'_>, name: &str) -> PyResult<DType> {
    let known = || Class::Input.err(py, format!("no element type is named {name}; use i8, u8, i32, i64, f32 or bool"));
    DType::from_name(name).ok_or_else(known)
}

#[pymethods]
impl PyBuilder {
    #[new]
    fn new(name: &str) -> PyBuilder {
        PyBuilder(Mutex::new(Some(GraphBuilder::new(name))))
    }

    /// Adds an input. A size of `shape` can be a symbol.
    fn input(slf: &Bound<'_, Self>, name: &str, dtype: &str, shape: &Bound<'_, PyAny>) -> PyResult<Py<PyBuilt>> {
        let py = slf.py();
        let dim = |size: Bound<'_, PyAny>| match size.extract::<usize>() {
            Ok(size) => Ok(Dim::Fixed(size)),
            Err(_) => size.extract::<String>().map(Dim::Symbol),
        };
        let dims = shape.try_iter()?.map(|size| dim(size?)).collect::<PyResult<_>>()?;
        let ty = TensorType { dtype: self::dtype(py, dtype)?, dims };
        let id = slf.get().with(py, |b| Ok(b.input(name, ty)))?;
        slf.get().built(py, slf.as_unbound(), id)
    }

    /// Adds a constant with an array's elements.
    fn constant(slf: &Bound<'_, Self>, name: &str, array: &Bound<'_, PyAny>) -> PyResult<Py<PyBuilt>> {
        let (py, value) = (slf.py(), to_constant(array)?);
        let id = slf.get().with(py, |b| Ok(b.constant(name, value)))?;
        slf.get().built(py, slf.as_unbound(), id)
    }

    /// Adds a node: an operator by name with its operands and attributes. Attributes that are left out have their
    /// defaults. Without `name` it is named after the operator.
    ///
    /// Raises GraphError if operands or attributes do not fit the operator.
    #[pyo3(signature = (op, *inputs, name="", **attrs))]
    fn node(
        slf: &Bound<'_, Self>,
        op: &str,
        inputs: &Bound<'_, PyTuple>,
        name: &str,
        attrs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Py<PyBuilt>> {
        let py = slf.py();
        let mut given = BTreeMap::new();
        for (key, value) in attrs.into_iter().flat_map(|attrs| attrs.iter()) {
            given.insert(key.extract::<String>()?, attr_of_python(&value)?);
        }
        let named = if name.is_empty() { op } else { name };
        let op =
            Op::of(op, given).map_err(|all| Class::Graph.err(py, format!("node `{named}`: {}", all.join("; "))))?;
        let ids = slf.get().ids(slf.as_unbound(), inputs)?;
        let id = slf.get().with(py, |b| b.node(name, op, &ids))?;
        slf.get().built(py, slf.as_unbound(), id)
    }

    /// Adds a call of a function that the program registers (`register`), which returns tensors of these types, pairs of
    /// element type and shape. The function gets the operands, and then the attributes as a dict if there are any.
    #[pyo3(signature = (function, *inputs, types, name="", **attrs))]
    fn packed(
        slf: &Bound<'_, Self>,
        function: &str,
        inputs: &Bound<'_, PyTuple>,
        types: Vec<(String, Vec<usize>)>,
        name: &str,
        attrs: Option<&Bound<'_, PyDict>>,
    ) -> PyResult<Vec<Py<PyBuilt>>> {
        let py = slf.py();
        let mut attributes = BTreeMap::new();
        for (key, value) in attrs.into_iter().flat_map(|attrs| attrs.iter()) {
            let value = match attr_of_python(&value)? {
                Attr::Word(text) => Attr::Text(text),
                attr => attr,
            };
            attributes.insert(key.extract::<String>()?, value);
        }
        let ty = |(name, shape): &(String, Vec<usize>)| Ok(TensorType::new(dtype(py, name)?, shape));
        let types = types.iter().map(ty).collect::<PyResult<_>>()?;
        let op = Packed { function: function.to_string(), attributes, types };
        let ids = slf.get().ids(slf.as_unbound(), inputs)?;
        let found = slf.get().with(py, |b| b.node_outputs(name, op.into(), &ids))?;
        found.into_iter().map(|id| slf.get().built(py, slf.as_unbound(), id)).collect()
    }

    /// Makes a value an output of the graph, under this name.
    fn output(slf: &Bound<'_, Self>, name: &str, value: &Bound<'_, PyAny>) -> PyResult<()> {
        for id in slf.get().ids(slf.as_unbound(), value)? {
            slf.get().with(slf.py(), |b| {
                b.output(name, id);
                Ok(())
            })?;
        }
        Ok(())
    }

    /// The graph, verified. The builder cannot be used any more.
    ///
    /// Raises GraphError with what the verifier finds.
    fn finish(&self, py: Python<'_>) -> PyResult<PyGraph> {
        let Some(builder) = self.lock().take() else {
            return Err(Class::Graph.err(py, "the graph is finished; make another builder"));
        };
        builder.finish().map(|graph| PyGraph(Arc::new(graph))).map_err(|error| invalid(py, &error))
    }
}

#[pymethods]
impl PyBuilt {
    /// The builder of its graph.
    #[getter]
    fn builder(&self, py: Python<'_>) -> Py<PyBuilder> {
        self.builder.clone_ref(py)
    }

    /// Element type, for example `f32`.
    #[getter]
    fn dtype(&self) -> &'static str {
        self.ty.dtype.name()
    }

    /// Sizes of the dimensions, outermost first; an open one is its symbol.
    #[getter]
    fn shape(&self, py: Python<'_>) -> PyResult<Py<PyAny>> {
        shape(py, &self.ty)
    }

    fn __repr__(&self) -> String {
        format!("<tilewright.BuilderValue {}>", self.ty)
    }
}

/// The elements of an array as a constant or an input.
pub fn to_constant(array: &Bound<'_, PyAny>) -> PyResult<Tensor> {
    let found = tensor::from_array(array)?;
    Tensor::try_from(&found).map_err(|error| Class::Input.err(array.py(), error))
}

fn attr_to_python<'py>(py: Python<'py>, attr: &Attr) -> PyResult<Bound<'py, PyAny>> {
    match attr {
        Attr::Int(value) => value.into_bound_py_any(py),
        Attr::Float(value) => value.into_bound_py_any(py),
        Attr::Word(word) if word == "true" || word == "false" => (word == "true").into_bound_py_any(py),
        Attr::Word(word) => match word.as_str() {
            "inf" | "-inf" | "NaN" => word.parse::<f32>().unwrap_or_default().into_bound_py_any(py),
            word => word.into_bound_py_any(py),
        },
        Attr::Text(text) => text.into_bound_py_any(py),
        Attr::List(list) => {
            let items = list.iter().map(|attr| attr_to_python(py, attr)).collect::<PyResult<Vec<_>>>()?;
            PyList::new(py, items)?.into_bound_py_any(py)
        }
    }
}

fn attr_of_python(value: &Bound<'_, PyAny>) -> PyResult<Attr> {
    if let Ok(truth) = value.cast::<pyo3::types::PyBool>() {
        return Ok(Attr::Word(truth.is_true().to_string()));
    }
    if value.is_instance_of::<pyo3::types::PyFloat>() {
        return Ok(Attr::Float(value.extract()?));
    }
    if let Ok(number) = value.extract::<i64>() {
        return Ok(Attr::Int(number));
    }
    if let Ok(text) = value.extract::<String>() {
        return Ok(Attr::Word(text));
    }
    if let Ok(items) = value.try_iter() {
        return Ok(Attr::List(items.map(|item| attr_of_python(&item?)).collect::<PyResult<_>>()?));
    }
    let found = value.get_type().name()?;
    Err(PyTypeError::new_err(format!("an attribute is a number, a bool, a str or a list, not {found}")))
}
