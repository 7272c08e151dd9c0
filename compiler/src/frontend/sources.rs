//! Maps values of the graph to the tensors of the model file.

use crate::graph::{self, DType, Def, Graph, NodeId, Op, ValueId};
use indexmap::IndexMap;
use indexmap::map::Entry as Slot;
use std::collections::{BTreeMap, HashMap};
use tilewright_runtime::artifact::{Counted, Manifest, Source};

/// A tensor of a file, and the value that it became.
pub(super) struct Tensor {
    pub name: String,
    pub value: ValueId,
    /// True if it is uint8 in the file.
    pub unsigned: bool,
    /// Scale and zero point as in the graph, if the file stores them with the tensor.
    pub quantization: Option<(f32, i32)>,
}

/// Names and quantization of a file's tensors. The key is the name of the node or input that a tensor became, and the
/// index among its values. Passes keep the names of nodes that they do not replace.
#[derive(Debug, Clone, Default)]
pub struct Sources {
    entries: IndexMap<(String, usize), Entry>,
    /// The elements of the inputs that the import took as constants.
    fixed: BTreeMap<String, Vec<u8>>,
    /// The outputs whose number of rows depends on the data.
    counted: Vec<Counted>,
}

#[derive(Debug, Clone)]
struct Entry {
    dtype: DType,
    source: Source,
    /// The tensor that a quantize node makes of this one: an integer operator keeps the name of the float operator.
    quantized: Option<ValueId>,
    value: ValueId,
}

impl Sources {
    /// If several tensors became one value, the first one names it and gives its quantization. The other names become
    /// aliases.
    pub(super) fn new(
        graph: &Graph,
        tensors: impl IntoIterator<Item = Tensor>,
        values: &BTreeMap<String, graph::Tensor>,
    ) -> Sources {
        let users = graph.users();
        // Scale and zero point of integers, from the quantize node that makes them or a dequantize node that reads
        // them.
        let beside = |v: ValueId| {
            let made = graph.def_node(v).and_then(|(_, n)| match &n.op {
                Op::Quantize(q) => Some((&q.scale, &q.zero_point)),
                _ => None,
            });
            let read = || {
                users[v.0].iter().find_map(|&u| match &graph.node(u).op {
                    Op::Dequantize(d) => Some((&d.scale, &d.zero_point)),
                    _ => None,
                })
            };
            match made.or_else(read) {
                Some((scale, zero_point)) if scale.len() == 1 => Some((scale[0], *zero_point.first()?)),
                _ => None,
            }
        };
        let quantized = |v: ValueId| {
            let quantizes = |u: &&NodeId| matches!(graph.node(**u).op, Op::Quantize(_));
            users[v.0].iter().find(quantizes).map(|&u| graph.node(u).output())
        };
        let mut entries = IndexMap::new();
        for tensor in tensors {
            let place = match graph.value(tensor.value).def {
                Def::Input(_) => 0,
                Def::Node(_, place) => place,
            };
            let value = tensor.value;
            match entries.entry((graph.value_name(value).to_string(), place)) {
                Slot::Occupied(mut known) => {
                    let known: &mut Entry = known.get_mut();
                    known.source.aliases.push(tensor.name);
                }
                Slot::Vacant(slot) => {
                    let quantization = tensor.quantization.or_else(|| beside(value));
                    let (aliases, unsigned) = (Vec::new(), tensor.unsigned);
                    let source = Source { tensor: tensor.name, aliases, quantization, unsigned };
                    slot.insert(Entry { dtype: graph.ty(value).dtype, source, quantized: quantized(value), value });
                }
            }
        }
        let fixed = values.iter().map(|(name, value)| (name.clone(), value.to_bytes()));
        Sources { entries, fixed: fixed.collect(), counted: Vec::new() }
    }

    /// With the outputs whose number of rows depends on the data.
    pub(super) fn with_counted(self, counted: Vec<Counted>) -> Sources {
        Sources { counted, ..self }
    }

    /// True if the file has a tensor with this name.
    pub fn knows(&self, tensor: &str) -> bool {
        self.entries.values().any(|entry| entry.source.names().any(|name| name == tensor))
    }

    /// Adds what the file says about its values to a compiled model.
    pub fn annotate(&self, manifest: &mut Manifest) {
        manifest.counted.clone_from(&self.counted);
        for id in &manifest.inputs {
            let value = &mut manifest.values[id.0 as usize];
            value.fixed = self.fixed.get(&value.name).cloned();
        }
        let mut named = Vec::new();
        for id in &manifest.inputs {
            named.push((*id, (manifest.values[id.0 as usize].name.clone(), 0)));
        }
        for node in &manifest.nodes {
            let values = node.values.iter().enumerate();
            named.extend(values.filter_map(|(place, id)| Some(((*id)?, (node.name.clone(), place)))));
        }
        let mut by_value: HashMap<ValueId, &Entry> = HashMap::new();
        for entry in self.entries.values() {
            by_value.entry(entry.value).or_insert(entry);
        }
        for (id, key) in named {
            let value = &mut manifest.values[id.0 as usize];
            let Some(entry) = self.entries.get(&key) else { continue };
            let same = |entry: &&Entry| entry.dtype.name() == value.dtype.name();
            let quantized = || entry.quantized.and_then(|v| by_value.get(&v).copied());
            value.source = Some(entry).filter(same).or_else(|| quantized().filter(same)).map(|e| e.source.clone());
        }
    }
}
