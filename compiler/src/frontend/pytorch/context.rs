//! The state of an import: what the names of the program mean.

use super::archive::{Archive, Stored};
use super::node::NodeContext;
use super::schema::{Argument, Graph, InputSpec, Node, OutputSpec, Program, Scalar, Size, Symbolic, TensorMeta};
use super::views::View;
use super::{expression, ops, storage, structure};
use crate::frontend::ImportOptions;
use crate::frontend::error::ImportError;
use crate::frontend::reason::Reason;
use crate::frontend::semantic::flow::Importer;
use crate::frontend::semantic::{SemanticBuilder, reasonable};
use crate::graph::{Dim, Tensor, TensorType, ValueId};
use std::collections::{BTreeMap, HashMap};

/// What a name or an argument is.
#[derive(Debug, Clone)]
pub(super) enum Value {
    Tensor(ValueId),
    List(Vec<Value>),
    Int(i64),
    Float(f64),
    Bool(bool),
    Text(String),
    None,
}

impl From<ValueId> for Value {
    fn from(v: ValueId) -> Value {
        Value::Tensor(v)
    }
}

impl<const N: usize> From<[ValueId; N]> for Value {
    fn from(list: [ValueId; N]) -> Value {
        Value::List(list.map(Value::Tensor).to_vec())
    }
}

impl From<Vec<ValueId>> for Value {
    fn from(list: Vec<ValueId>) -> Value {
        Value::List(list.into_iter().map(Value::Tensor).collect())
    }
}

/// The meaning of a name.
#[derive(Debug, Clone)]
pub(super) enum Named {
    Value(Value),
    /// A stored tensor, which is read at its first use.
    Stored(Stored),
}

pub(super) struct Context<'a> {
    pub file: &'a str,
    pub net: SemanticBuilder,
    pub graph: &'a Graph,
    archive: Archive<'a>,
    pub names: HashMap<String, Named>,
    /// Tensors that are views of others, by name.
    pub views: HashMap<String, View<'a>>,
    /// How often each tensor that has views was changed, by name.
    pub changes: HashMap<String, usize>,
    /// Sizes of the program's symbols.
    pub symbols: BTreeMap<String, i64>,
    /// Names of the program with the values that they became, in the order of import.
    pub traced: Vec<(String, ValueId)>,
    /// Prefix of the names of nodes.
    prefix: String,
    /// How many graphs are around this one.
    depth: usize,
}

/// How deep graphs are within each other at most.
const DEPTH: usize = 32;

/// A node that cannot be imported.
struct Fault {
    node: String,
    operator: String,
    reason: Reason,
}

impl Importer for Context<'_> {
    fn net(&mut self) -> &mut SemanticBuilder {
        &mut self.net
    }
}

/// A node's name for messages: that of its first result.
pub(super) fn node_name(node: &Node) -> &str {
    let first = node.outputs.iter().find_map(|output| match output {
        Argument::AsTensor(of) => Some(of.name.as_str()),
        Argument::AsTensors(list) => list.first().map(|of| of.name.as_str()),
        Argument::AsSymInt(Symbolic::Name(name)) => Some(name.as_str()),
        _ => None,
    });
    first.unwrap_or(&node.target)
}

/// Names of the tensors that a caller gives, with their types.
pub(super) fn user_inputs(program: &Program) -> impl Iterator<Item = (&str, Option<&TensorMeta>)> {
    let module = &program.graph_module;
    module.signature.input_specs.iter().filter_map(|spec| match spec {
        InputSpec::UserInput { arg: Argument::AsTensor(of) } => {
            Some((of.name.as_str(), module.graph.tensor_values.get(&of.name)))
        }
        _ => None,
    })
}

/// What the program returns to its caller.
pub(super) fn user_outputs(program: &Program) -> Vec<&Argument> {
    let specs = program.graph_module.signature.output_specs.iter();
    specs.filter_map(|spec| if let OutputSpec::UserOutput { arg } = spec { Some(arg) } else { None }).collect()
}

/// The inputs, with the sizes that the file leaves open.
pub(super) fn declared_inputs(program: &Program) -> Result<Vec<(String, TensorType)>, String> {
    let declared = |(name, meta): (&str, Option<&TensorMeta>)| {
        let wrong = |e: String| format!("its input `{name}`: {e}");
        let meta = meta.ok_or_else(|| wrong("its type is missing".into()))?;
        let dtype = meta.dtype.dtype().map_err(wrong)?;
        crate::graph::op::rank_in_bounds(meta.sizes.len()).map_err(|e| wrong(e.to_string()))?;
        let dim = |size: &Size| match size {
            Size::AsInt(n) => usize::try_from(*n).map(Dim::Fixed).map_err(|_| wrong(format!("it has a size of {n}"))),
            Size::AsExpr(of) => {
                // An expression such as `2*s0` is a symbol of its own, from which that in it follows.
                Ok(Dim::Symbol(expression::parse(&of.expr_str).map_err(wrong)?.to_string()))
            }
        };
        Ok((name.to_owned(), TensorType { dtype, dims: meta.sizes.iter().map(dim).collect::<Result<_, _>>()? }))
    };
    user_inputs(program).map(declared).collect()
}

impl<'a> Context<'a> {
    pub fn new(file: &'a str, net: SemanticBuilder, graph: &'a Graph, archive: Archive<'a>) -> Context<'a> {
        Context {
            file,
            net,
            graph,
            archive,
            names: HashMap::new(),
            views: HashMap::new(),
            changes: HashMap::new(),
            symbols: BTreeMap::new(),
            traced: Vec::new(),
            prefix: String::new(),
            depth: 0,
        }
    }

    fn malformed(&self, reason: impl ToString) -> ImportError {
        ImportError::malformed(self.file, reason)
    }

    /// Defines the program's inputs: those of its caller, and what is stored. Inputs with a value in the options are constants;
    /// the graph has the inputs nevertheless. Returns these values in the inputs' types.
    pub fn inputs(
        &mut self,
        program: &Program,
        [weights, constants]: [HashMap<String, Stored>; 2],
        options: &ImportOptions,
    ) -> Result<BTreeMap<String, Tensor>, ImportError> {
        let declared = declared_inputs(program).map_err(|e| self.malformed(e))?;
        let types: Vec<(&str, &TensorType)> = declared.iter().map(|(name, ty)| (name.as_str(), ty)).collect();
        let (sizes, values) = options.sizes.with_values(&options.values, &types, self.file)?;
        let wrong = |reason| ImportError::Sizes { file: self.file.into(), reason };
        let bound = sizes.bound_by_data(&types).map_err(wrong)?;
        self.symbols = bound.iter().map(|(s, n)| (s.clone(), i64::try_from(*n).unwrap_or(i64::MAX))).collect();
        self.solve(program).map_err(wrong)?;
        let module = &program.graph_module;
        let specs = &module.signature.input_specs;
        if specs.len() != module.graph.inputs.len() {
            let (inputs, specs) = (module.graph.inputs.len(), specs.len());
            return Err(
                self.malformed(format!("its program is damaged: {inputs} inputs, but {specs} of them described"))
            );
        }
        let mut declared = declared.into_iter();
        for (input, spec) in module.graph.inputs.iter().zip(specs) {
            let meaning = match spec {
                InputSpec::UserInput { arg: Argument::AsTensor(_) } => {
                    let Some((name, ty)) = declared.next() else { continue };
                    let ty = ty.bind(&bound);
                    if !reasonable(&ty) {
                        let reason = format!("its input `{name}` is {ty}, which is more than 2^31 elements");
                        return Err(self.malformed(reason));
                    }
                    let mut v = self.net.graph.input(&name, ty);
                    self.traced.push((name.clone(), v));
                    if let Some(value) = values.get(&name) {
                        v = self.net.graph.constant(&name, value.clone());
                    }
                    Named::Value(v.into())
                }
                // A number or a flag that was given at export; its value is part of the program.
                InputSpec::UserInput { .. } | InputSpec::ConstantInput(_) => continue,
                InputSpec::Parameter { parameter_name: name }
                | InputSpec::Buffer { buffer_name: name, persistent: None | Some(true) } => {
                    self.stored(name, [&weights, &constants])?
                }
                InputSpec::Buffer { buffer_name: name, .. }
                | InputSpec::TensorConstant { tensor_constant_name: name } => {
                    self.stored(name, [&constants, &weights])?
                }
                InputSpec::Other(of) => {
                    let kind = of.keys().next().map_or("unknown", String::as_str);
                    return Err(
                        self.malformed(format!("its program has an input of kind `{kind}`, which is not supported"))
                    );
                }
            };
            let Argument::AsTensor(name) = input else {
                return Err(self.malformed("its program is damaged: an input that is described as a tensor is none"));
            };
            if self.names.insert(name.name.clone(), meaning).is_some() {
                return Err(self.malformed(format!("two inputs have the name `{}`", name.name)));
            }
        }
        Ok(values)
    }

    /// The stored tensor of a name, from the first list that has it.
    fn stored(&self, name: &str, lists: [&HashMap<String, Stored>; 2]) -> Result<Named, ImportError> {
        let found = lists.into_iter().find_map(|list| list.get(name)).cloned();
        found.map(Named::Stored).ok_or_else(|| {
            self.malformed(format!("its tensor `{name}` is missing, or is stored as something that is not a tensor"))
        })
    }

    /// Finds the symbols in the sizes of inputs that are expressions, such as `2*s0`, from what these sizes are.
    fn solve(&mut self, program: &Program) -> Result<(), String> {
        for (name, meta) in user_inputs(program) {
            let sizes = meta.into_iter().flat_map(|meta| &meta.sizes);
            for size in sizes {
                let Size::AsExpr(of) = size else { continue };
                let parsed = expression::parse(&of.expr_str)?;
                let (text, Some(symbol)) = (parsed.to_string(), parsed.only_symbol()) else { continue };
                let Some(wanted) = self.symbols.get(&text).copied().filter(|_| text != symbol) else { continue };
                let mut symbols = self.symbols.clone();
                let mut suits = |n: &i64| {
                    symbols.insert(symbol.clone(), *n);
                    parsed.value(&symbols) == Some(wanted)
                };
                let known = self.symbols.get(&symbol).copied();
                let found = match known {
                    Some(known) => Some(known).filter(|n| suits(n)),
                    None => (0..=wanted.clamp(0, 1 << 20)).find(|n| suits(n)),
                };
                let found =
                    found.ok_or_else(|| format!("has an input {name}, whose size {text} cannot be {wanted}"))?;
                self.symbols.insert(symbol, found);
            }
        }
        Ok(())
    }

    /// Imports the program's nodes.
    pub fn nodes(&mut self) -> Result<(), ImportError> {
        self.graph_nodes().map_err(|Fault { node, operator, reason }| {
            let error = ImportError::Node { file: self.file.into(), node, operator, reason: reason.0 };
            self.net.error(error, &self.net.graph)
        })
    }

    fn graph_nodes(&mut self) -> Result<(), Fault> {
        let (graph, used) = (self.graph, self.graph.used(ops::changes));
        for node in graph.nodes.iter().zip(used).filter_map(|(node, used)| used.then_some(node)) {
            let name = format!("{}{}", self.prefix, node_name(node));
            self.net.begin(&name, self.depth > 0);
            if let Err(reason) = self.node(node) {
                return Err(Fault { node: name, operator: ops::short_name(&node.target).to_owned(), reason });
            }
        }
        Ok(())
    }

    /// Imports a graph within a node for these values of its inputs, and returns its outputs.
    pub fn inline(&mut self, graph: &'a Graph, values: &[ValueId], label: &str) -> Result<Vec<ValueId>, Reason> {
        if self.depth >= DEPTH {
            return Err(format!("more than {DEPTH} graphs within each other are not supported").into());
        }
        if graph.inputs.len() != values.len() {
            return Err(format!("its graph takes {} values, but gets {}", graph.inputs.len(), values.len()).into());
        }
        let mut names = HashMap::new();
        for (input, &v) in graph.inputs.iter().zip(values) {
            if let Argument::AsTensor(of) = input {
                names.insert(of.name.clone(), Named::Value(v.into()));
            }
        }
        let outer = (
            std::mem::replace(&mut self.names, names),
            std::mem::take(&mut self.views),
            std::mem::take(&mut self.changes),
            std::mem::replace(&mut self.graph, graph),
            std::mem::replace(&mut self.prefix, format!("{label}/")),
            // Values of a region are none of the graph.
            std::mem::take(&mut self.traced),
        );
        self.depth += 1;
        let built = self.graph_nodes().map_err(|Fault { node, operator, reason }| {
            Reason(format!("in its graph, node `{node}` ({operator}): {}", reason.0))
        });
        let result = |argument: &Argument| match argument {
            Argument::AsTensor(of) => match self.value(&of.name)? {
                Value::Tensor(v) => Ok(v),
                _ => Err(Reason("its graph returns what is no tensor".into())),
            },
            _ => Err("its graph returns what is no tensor".into()),
        };
        let results = built.and_then(|()| graph.outputs.iter().map(result).collect());
        self.depth -= 1;
        (self.names, self.views, self.changes, self.graph, self.prefix, self.traced) = outer;
        self.net.begin(label, self.depth > 0);
        results
    }

    /// Imports a node, and defines what it returns.
    fn node(&mut self, node: &'a Node) -> Result<(), Reason> {
        let found = ops::find(&node.target).ok_or("it is not supported")?;
        let mut n = NodeContext::new(self, node);
        let value = if found.in_place { n.in_place(found.operator)? } else { (found.operator.import)(&mut n)? };
        n.check_arguments()?;
        self.define_results(node, value)?;
        if found.operator.is_view && !found.in_place {
            self.note_views(node);
        }
        Ok(())
    }

    fn define_results(&mut self, node: &Node, value: Value) -> Result<(), Reason> {
        match (node.outputs.as_slice(), value) {
            ([], _) => Ok(()),
            ([Argument::AsTensors(names)], Value::List(values)) => {
                if names.len() != values.len() {
                    return Err(format!("it has {} results, but the program has {}", values.len(), names.len()).into());
                }
                names.iter().zip(values).try_for_each(|(name, value)| self.define(&name.name, value))
            }
            ([one], Value::List(mut values)) if values.len() == 1 => self.define_result(one, values.remove(0)),
            ([one], value) => self.define_result(one, value),
            (many, Value::List(values)) if values.len() >= many.len() => {
                many.iter().zip(values).try_for_each(|(output, value)| self.define_result(output, value))
            }
            (many, _) => Err(format!("it has {} results, which is not supported", many.len()).into()),
        }
    }

    fn define_result(&mut self, output: &Argument, value: Value) -> Result<(), Reason> {
        match (output, value) {
            (Argument::AsNone(_), _) => Ok(()),
            (Argument::AsTensor(of), value) => self.define(&of.name, value),
            (
                Argument::AsSymInt(Symbolic::Name(name))
                | Argument::AsSymFloat(Symbolic::Name(name))
                | Argument::AsSymBool(Symbolic::Name(name)),
                value,
            ) => {
                self.names.insert(name.clone(), Named::Value(value));
                Ok(())
            }
            _ => Err("its result is of a kind that is not supported".into()),
        }
    }

    /// Defines a name, if the value is a tensor of the type that the program declares.
    fn define(&mut self, name: &str, value: Value) -> Result<(), Reason> {
        if self.names.contains_key(name) {
            return Err(format!("`{name}` is defined twice").into());
        }
        let Value::Tensor(v) = value else {
            // Results that no one uses can be left out.
            self.names.insert(name.into(), Named::Value(value));
            return Ok(());
        };
        if let Some(meta) = self.graph.tensor_values.get(name) {
            let found = self.net.ty(v);
            let dtype = meta.dtype.dtype()?;
            let sizes: Vec<Option<i64>> = meta.sizes.iter().map(|size| size.known(&self.symbols)).collect();
            let suits = |(dim, size): (&Dim, &Option<i64>)| match (dim, size) {
                (Dim::Fixed(found), Some(size)) => i64::try_from(*found) == Ok(*size),
                _ => true,
            };
            if found.dtype != dtype || found.rank() != sizes.len() || !found.dims.iter().zip(&sizes).all(suits) {
                let sizes: Vec<String> = sizes.iter().map(|size| size.map_or("?".into(), |n| n.to_string())).collect();
                let declared = format!("{dtype}[{}]", sizes.join(","));
                return Err(format!("its result `{name}` is {found}, but the program declares {declared}").into());
            }
        }
        self.traced.push((name.into(), v));
        self.names.insert(name.into(), Named::Value(Value::Tensor(v)));
        Ok(())
    }

    /// What a name means; a stored tensor is added to the graph, and a view of a tensor that was changed is made anew.
    pub fn value(&mut self, name: &str) -> Result<Value, Reason> {
        if let Some(made_anew) = self.refreshed(name)? {
            return Ok(made_anew);
        }
        match self.names.get(name) {
            Some(Named::Value(value)) => Ok(value.clone()),
            Some(Named::Stored(stored)) => {
                let stored = stored.clone();
                let wrong = |e: String| Reason(format!("the stored tensor `{name}`: {e}"));
                let bytes = self.archive.storage(&stored, &mut self.net.room).map_err(wrong)?;
                let tensor = storage::tensor(&stored.meta, &bytes).map_err(wrong)?;
                drop(bytes);
                self.net.room.take_for(tensor.size_bytes(), name)?;
                let v = self.net.graph.constant(name, tensor);
                self.traced.push((name.into(), v));
                self.names.insert(name.into(), Named::Value(v.into()));
                Ok(v.into())
            }
            None => Err(format!("`{name}` is not defined").into()),
        }
    }

    /// The element type that the program declares for a tensor.
    pub fn scalar_type(&self, name: &str) -> Option<Scalar> {
        self.graph.tensor_values.get(name).map(|meta| meta.dtype)
    }

    /// Defines the graph's outputs: what the program returns to its caller. Buffers that the program changes are not kept from
    /// one run to the next.
    pub fn outputs(&mut self, program: &Program) -> Result<(), String> {
        let outputs = user_outputs(program);
        let names = structure::output_names(program, &outputs);
        let mut count = 0;
        for (argument, name) in outputs.into_iter().zip(names) {
            let Argument::AsTensor(of) = argument else { continue };
            let value = self.value(&of.name).map_err(|e| format!("its output `{name}`: {}", e.0))?;
            let Value::Tensor(v) = value else { return Err(format!("its output `{name}` is no tensor")) };
            self.net.room.take_for(name.len(), "outputs")?;
            self.net.graph.output(&name, v);
            count += 1;
        }
        if count == 0 { Err("it returns no tensor".into()) } else { Ok(()) }
    }
}
