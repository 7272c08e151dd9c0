//! The state of an import: what has been built so far, and what the names of the file mean.

use super::function::{Call, Functions};
use super::proto::{GraphProto, TensorProto, ValueInfoProto};
use super::region::Around;
use super::tensor::{self, Element};
use crate::frontend::ImportOptions;
use crate::frontend::error::ImportError;
use crate::frontend::semantic::{SemanticBuilder, reasonable};
use crate::graph::op::ShiftSign;
use crate::graph::{DType, Dim, Tensor, TensorData, TensorType, ValueId};
use std::borrow::Cow;
use std::cell::Cell;
use std::collections::{BTreeMap, BTreeSet, HashMap, HashSet};
use std::path::Path;
use std::rc::Rc;

/// The meaning of a name of the file.
#[derive(Clone)]
pub(super) enum Named {
    Value(ValueId),
    /// A constant as in the file; it is added to the graph at its first use.
    Constant(Tensor),
    /// A sequence of these tensors. The graph has none: what is done with them is done during the import.
    Sequence(Vec<ValueId>),
    /// An optional value that is not there.
    Nothing,
    /// An unsupported output, with the node that computes it.
    LeftOut(String),
}

/// The names of a graph, a branch or a function's body.
#[derive(Default)]
pub(super) struct Scope {
    pub names: HashMap<String, Named>,
    /// The operator set of the default domain.
    pub opset: Option<i64>,
    /// Prefix of the names of the graph's nodes.
    pub prefix: String,
    /// True if names of the enclosing scope are visible, as in the branches of a graph.
    pub open: bool,
    /// The call that the nodes belong to.
    pub call: Option<Rc<Call>>,
    /// Inputs, constants and results of casts whose type in the file is narrower than in the graph.
    pub narrow: HashMap<String, Element>,
    /// Types that the file declares for values, or why one is not usable.
    pub types: HashMap<String, Result<TensorType, String>>,
}

/// The types of declarations. Only calls of functions of the program (`packed`) ask for them; without any, there are
/// none.
pub(super) fn declared_types<'i>(
    packed: &BTreeSet<String>,
    infos: impl Iterator<Item = &'i ValueInfoProto>,
) -> HashMap<String, Result<TensorType, String>> {
    if packed.is_empty() {
        return HashMap::new();
    }
    let what = Declared { what: "value", open: "dimension", remedy: "declare one", rank: None };
    infos.map(|info| (info.name.clone(), what.ty(info))).collect()
}

pub(super) struct Context<'a> {
    pub file: &'a str,
    pub net: SemanticBuilder,
    /// The innermost scope is last.
    pub scopes: Vec<Scope>,
    /// The graphs around the region that is built, outermost first.
    pub around: Vec<Around>,
    /// An error within a graph of the node that is imported.
    pub inner: Cell<Option<ImportError>>,
    pub functions: Functions<'a>,
    /// Names of the file with the values that they became, in the order of import.
    pub traced: Vec<(String, ValueId)>,
    /// Values that are uint8 in the file.
    pub unsigned: HashSet<ValueId>,
    /// Inputs whose outermost size is open and was not given, with its symbol; it is assumed to be 1.
    pub assumed: HashMap<ValueId, String>,
    /// Folders that can hold data files.
    pub folders: &'a [&'a Path],
    /// Domains whose operators are functions of the program.
    pub packed: &'a BTreeSet<String>,
    /// Sizes of the inputs' symbols.
    pub bound: BTreeMap<String, usize>,
}

impl Context<'_> {
    pub fn malformed(&self, reason: impl ToString) -> ImportError {
        ImportError::malformed(self.file, reason)
    }

    pub fn scope(&self) -> &Scope {
        &self.scopes[self.scopes.len() - 1]
    }

    /// The scopes whose names are visible, innermost first.
    fn visible(&self) -> impl Iterator<Item = usize> {
        let outermost = self.scopes.iter().rposition(|scope| !scope.open).unwrap_or(0);
        (outermost..self.scopes.len()).rev()
    }

    /// The meaning of a name, and the depth of the graph that it belongs to.
    pub fn find(&self, name: &str) -> Option<(&Named, usize)> {
        self.visible().find_map(|i| Some((self.scopes[i].names.get(name)?, self.depth_of(i))))
    }

    /// Defines a name in the innermost scope.
    pub fn define(&mut self, name: &str, meaning: Named) -> Result<(), String> {
        let traced = if let Named::Value(v) = meaning { Some(v) } else { None };
        let innermost = self.scopes.len() - 1;
        let scope = &mut self.scopes[innermost];
        if scope.names.insert(name.into(), meaning).is_some() {
            return Err(format!("`{name}` is defined twice"));
        }
        self.traced.extend(traced.map(|v| (format!("{}{name}", scope.prefix), v)));
        Ok(())
    }

    /// The value of a name; a constant is added to the graph at its first use. What a region reads from around it becomes
    /// an input of the region.
    pub fn value(&mut self, name: &str) -> Result<ValueId, String> {
        let at = self.visible().find(|&i| self.scopes[i].names.contains_key(name));
        let undefined = || format!("`{name}` is not defined: no input, constant or node has this name");
        let at = at.ok_or_else(undefined)?;
        let depth = self.depth_of(at);
        let scope = &mut self.scopes[at];
        let t = match scope.names.get_mut(name) {
            Some(Named::Value(v)) => {
                let v = *v;
                return Ok(self.captured(v, depth));
            }
            Some(Named::LeftOut(maker)) => {
                return Err(format!("`{name}` is not supported: it is an additional output of {maker}"));
            }
            Some(Named::Sequence(_)) => return Err(format!("`{name}` is a sequence; it must be a tensor")),
            Some(Named::Nothing) => return Err(format!("`{name}` is an optional value that is not there")),
            Some(Named::Constant(t)) => std::mem::replace(t, Tensor::vector(Vec::<f32>::new())),
            None => return Err(undefined()),
        };
        let is_unsigned = t.dtype() == DType::U8;
        let label = format!("{}{name}", scope.prefix);
        let (graph, unsigned, traced) = match self.around.get_mut(depth) {
            Some(around) => (&mut around.graph, &mut around.unsigned, &mut around.traced),
            None => (&mut self.net.graph, &mut self.unsigned, &mut self.traced),
        };
        let v = graph.constant(&label, tensor::shifted(t));
        if is_unsigned {
            unsigned.insert(v);
        }
        scope.names.insert(name.into(), Named::Value(v));
        traced.push((label, v));
        Ok(self.captured(v, depth))
    }

    /// Notes that the node cannot be imported without the value of this name.
    pub fn must_know(&self, name: &str) {
        if let Some((Named::Value(v), depth)) = self.find(name) {
            let outer = self.origin(*v, depth);
            outer.into_iter().for_each(|v| self.net.must_know(v));
        }
    }

    /// The meaning of a name; a constant is added to the graph.
    pub fn meaning(&mut self, name: &str) -> Result<Named, String> {
        match self.find(name) {
            Some((Named::Sequence(list), depth)) => {
                let list = list.clone();
                Ok(Named::Sequence(list.into_iter().map(|v| self.captured(v, depth)).collect()))
            }
            Some((Named::Constant(_) | Named::Value(_), _)) | None => self.value(name).map(Named::Value),
            Some((other, _)) => Ok(other.clone()),
        }
    }

    /// The value of a name, as in the file, if it is known.
    pub fn known(&self, name: &str) -> Option<Tensor> {
        let (v, depth) = match self.find(name)? {
            (Named::Constant(t), _) => return Some(t.clone()),
            (Named::Value(v), depth) => (*v, depth),
            _ => return None,
        };
        let (graph, unsigned) = self.graph_at(depth);
        let t = graph.constant_of(v)?;
        match t.data() {
            TensorData::I8(x) if unsigned.contains(&v) => Some(Tensor::from_fn(t.shape(), |i| x[i] as u8 ^ 0x80)),
            _ => Some(t.as_ref().clone()),
        }
    }

    /// Defines the constants stored in a graph. Those of a branch can be imported many times, so they count against the
    /// memory limit.
    pub fn constants(&mut self, graph: &GraphProto, inner: bool) -> Result<(), String> {
        for t in &graph.initializer {
            let value = tensor::tensor(t, self.folders)?;
            if inner {
                self.net.room.take_for(value.size_bytes(), &t.name)?;
            } else if t.data_location == 1 {
                // External data count as part of the file.
                self.net.room.extend(value.size_bytes());
            }
            self.constant(t, value)?;
        }
        for sparse in &graph.sparse_initializer {
            let value = tensor::dense(sparse, self.folders, &mut self.net.room)?;
            self.constant(sparse.values.as_ref().unwrap_or(&TensorProto::default()), value)?;
        }
        Ok(())
    }

    /// Notes the element type that a value has in the file.
    pub fn note(&mut self, name: &str, element: Element) {
        if element.is_narrow() {
            let innermost = self.scopes.len() - 1;
            self.scopes[innermost].narrow.insert(name.into(), element);
        }
    }

    /// The element type of a name in the file: a narrow one that was noted, else that of its value.
    pub fn element(&self, name: &str) -> Option<Element> {
        let scope = self.visible().find(|&i| self.scopes[i].names.contains_key(name))?;
        if let Some(noted) = self.scopes[scope].narrow.get(name) {
            return Some(*noted);
        }
        let dtype = match &self.scopes[scope].names[name] {
            Named::Constant(t) => t.dtype(),
            Named::Value(v) => match self.graph_at(self.depth_of(scope)) {
                (_, unsigned) if unsigned.contains(v) => DType::U8,
                (graph, _) => graph.ty(*v).dtype,
            },
            _ => return None,
        };
        Some(Element::plain(dtype))
    }

    fn constant(&mut self, t: &TensorProto, value: Tensor) -> Result<(), String> {
        tensor::element(t.data_type).into_iter().for_each(|element| self.note(&t.name, element));
        let twice = |_| format!("two constants have the name `{}`", t.name);
        self.define(&t.name, Named::Constant(value)).map_err(twice)
    }

    /// The inputs of the file's graph, except those that have a value in it, with the types that the file gives them.
    pub fn declared_inputs<'g>(
        &self,
        graph: &'g GraphProto,
        options: &ImportOptions,
    ) -> Result<Vec<(Cow<'g, ValueInfoProto>, TensorType)>, ImportError> {
        let mut given = Vec::new();
        for (i, info) in graph.input.iter().enumerate().filter(|(_, info)| self.find(&info.name).is_none()) {
            match info.of_sequence() {
                Some(of) => {
                    let tensors = tensors_of(&of, options).map_err(|e| self.malformed(e))?;
                    let tensors = tensors.into_iter().map(Cow::Owned).enumerate();
                    given.extend(tensors.map(|(tensor, info)| (format!("input_{i}_{tensor}"), info)));
                }
                None => given.push((format!("input_{i}"), Cow::Borrowed(info))),
            }
        }
        let names: Vec<&str> = given.iter().map(|(_, info)| info.name.as_str()).collect();
        let ranks = options.sizes.ranks(&names);
        let declared = given.into_iter().zip(ranks).map(|((open, info), rank)| {
            let remedy = format!("give it with --shape {}=SIZExSIZE…", info.name);
            let declared = Declared { what: "input", open: &open, remedy: &remedy, rank };
            let ty = declared.ty(&info).map_err(|e| self.malformed(e))?;
            Ok((info, ty))
        });
        declared.collect()
    }

    /// Defines the inputs of the file's graph, except those that have a value in it. Those of the options' values are
    /// constants; the graph has the inputs nevertheless. Returns these values in the inputs' types.
    pub fn inputs(
        &mut self,
        graph: &GraphProto,
        options: &ImportOptions,
    ) -> Result<BTreeMap<String, Tensor>, ImportError> {
        let inputs = self.declared_inputs(graph, options)?;
        let types: Vec<(&str, &TensorType)> = inputs.iter().map(|(i, ty)| (i.name.as_str(), ty)).collect();
        let (sizes, values) = options.sizes.with_values(&options.values, &types, self.file)?;
        let wrong = |reason| ImportError::Sizes { file: self.file.into(), reason };
        let (given, bound) = (sizes.given(&types).map_err(wrong)?, sizes.bound(&types).map_err(wrong)?);
        self.bound.clone_from(&bound);
        for (info, ty) in inputs {
            let open = match ty.dims.first() {
                Some(Dim::Symbol(s)) if !given.contains_key(s) => Some(s.clone()),
                _ => None,
            };
            let ty = ty.bind(&bound);
            if !reasonable(&ty) {
                let reason = format!("its input `{}` is {ty}, which is more than 2^31 elements", info.name);
                return Err(self.malformed(reason));
            }
            let element = info.tensor_type().and_then(|t| tensor::element(t.elem_type).ok());
            element.into_iter().for_each(|element| self.note(&info.name, element));
            let mut v = self.net.graph.input(&info.name, ty.clone());
            let twice = |_| ImportError::malformed(self.file, format!("two inputs have the name `{}`", info.name));
            if let Some(value) = values.get(&info.name) {
                self.define(&info.name, Named::Constant(value.clone())).map_err(twice)?;
                continue;
            }
            if ty.dtype == DType::U8 {
                v = self.sign_shifted(&info.name, v).map_err(|e| self.malformed(e))?;
                self.unsigned.insert(v);
            }
            if let Some(symbol) = open {
                self.assumed.insert(v, symbol);
            }
            self.define(&info.name, Named::Value(v)).map_err(twice)?;
        }
        for info in graph.input.iter().filter(|info| info.of_sequence().is_some()) {
            let names = (0..).map(|i| element(&info.name, i)).take_while(|name| options.gives(name));
            let names: Vec<String> = names.collect();
            let list = names.iter().map(|name| self.value(name)).collect::<Result<Vec<_>, _>>();
            let list = list.map_err(|e| self.malformed(e))?;
            self.define(&info.name, Named::Sequence(list)).map_err(|e| self.malformed(e))?;
        }
        Ok(values)
    }

    /// Defines the outputs of the file's graph.
    pub fn outputs(&mut self, graph: &GraphProto) -> Result<(), String> {
        let mut given: HashMap<&str, ValueId> = HashMap::new();
        for info in &graph.output {
            if let Named::Sequence(list) = self.meaning(&info.name)? {
                if list.is_empty() {
                    return Err(format!("its output `{}` is a sequence of no tensors", info.name));
                }
                for (i, v) in list.into_iter().enumerate() {
                    let name = element(&info.name, i);
                    let v = if self.unsigned.contains(&v) { self.sign_shifted(&name, v)? } else { v };
                    self.net.graph.output(&name, v);
                }
                continue;
            }
            let v = match given.get(info.name.as_str()) {
                // An output that is listed again is the same value.
                Some(&known) => known,
                None => {
                    let v = self.value(&info.name)?;
                    if self.unsigned.contains(&v) { self.sign_shifted(&info.name, v)? } else { v }
                }
            };
            given.insert(&info.name, v);
            self.net.graph.output(&info.name, v);
        }
        Ok(())
    }

    /// Converts between uint8 and int8 at the network's inputs and outputs.
    fn sign_shifted(&mut self, name: &str, v: ValueId) -> Result<ValueId, String> {
        self.net.graph.node(&format!("{name}/shift_sign"), ShiftSign {}, &[v]).map_err(|e| e.to_string())
    }
}

/// The name of a tensor of a sequence at the network's edge.
fn element(sequence: &str, i: usize) -> String {
    format!("{sequence}_{i}")
}

/// The tensors of an input that is a sequence: as many as are given something.
fn tensors_of(of: &ValueInfoProto, options: &ImportOptions) -> Result<Vec<ValueInfoProto>, String> {
    let names = (0..).map(|i| element(&of.name, i)).take_while(|name| options.gives(name));
    let own = |(i, name)| {
        let mut info = ValueInfoProto { name, ..of.clone() };
        // Sizes of one name can differ from tensor to tensor.
        let ty = info.r#type.as_mut().and_then(|ty| ty.tensor_type.as_mut());
        let dims = ty.and_then(|ty| ty.shape.as_mut()).into_iter().flat_map(|shape| &mut shape.dim);
        dims.filter_map(|dim| dim.dim_param.as_mut()).for_each(|symbol| *symbol = element(symbol, i));
        info
    };
    let tensors: Vec<ValueInfoProto> = names.enumerate().map(own).collect();
    if tensors.is_empty() {
        let name = &of.name;
        return Err(format!(
            "its input `{name}` is a sequence; say how many tensors it has by giving each one's shape or data, as {name}_0, \
             {name}_1 and so on"
        ));
    }
    Ok(tensors)
}

/// How types of values are read.
struct Declared<'d> {
    /// What the values are, in messages.
    what: &'d str,
    /// The beginning of the names of open sizes that have none in the file.
    open: &'d str,
    /// What to do about a value without a shape.
    remedy: &'d str,
    /// How many open sizes a value without a shape has, if that is known.
    rank: Option<usize>,
}

impl Declared<'_> {
    /// The type of a value.
    fn ty(&self, info: &ValueInfoProto) -> Result<TensorType, String> {
        let (what, name) = (self.what, &info.name);
        let ty = info.tensor_type().ok_or_else(|| format!("{what} `{name}` is not a tensor"))?;
        let dtype = tensor::dtype(ty.elem_type).map_err(|e| format!("{what} `{name}`: {e}"))?;
        let symbol = |i: usize| Dim::Symbol(format!("{}_{i}", self.open));
        let missing = || format!("{what} `{name}` has no shape; {}", self.remedy);
        let Some(shape) = &ty.shape else {
            return Ok(TensorType { dtype, dims: (0..self.rank.ok_or_else(missing)?).map(symbol).collect() });
        };
        crate::graph::op::rank_in_bounds(shape.dim.len()).map_err(|e| format!("{what} `{name}`: {e}"))?;
        let dim = |(i, d): (usize, &super::proto::DimensionProto)| match (d.dim_value, d.dim_param.as_deref()) {
            (Some(n), _) if n >= 0 => {
                usize::try_from(n).map(Dim::Fixed).map_err(|_| format!("{what} `{name}` is too large"))
            }
            // Some writers use -1 for an open size.
            (Some(n), _) if n < -1 => Err(format!("{what} `{name}` has a size of {n}")),
            (_, Some(s))
                if s.starts_with(char::is_alphabetic) && s.chars().all(|c| c.is_alphanumeric() || c == '_') =>
            {
                Ok(Dim::Symbol(s.into()))
            }
            _ => Ok(symbol(i)),
        };
        Ok(TensorType { dtype, dims: shape.dim.iter().enumerate().map(dim).collect::<Result<_, _>>()? })
    }
}
