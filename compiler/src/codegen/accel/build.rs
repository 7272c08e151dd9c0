//! Layers to one program: where tensors lie, and the walk over the layers.

use super::layer::{Kind, Layer};
use super::mapped::{MapError, Mapped};
use super::plan::Plan;
use super::product::{Tile, product};
use super::scratch::Ring;
use super::taps::{Taps, diagonal, mac};
use super::vector::{Pairwise, Requant, Windows, pairwise, requant, windows};
use super::view::View;
use super::{conv, copy, lookup, matmul, pair, pool, shared};
use crate::graph::{Graph, ValueId};
use std::collections::HashMap;
use tilewright_driver::{AccelProgram, Builder, DriverError, Nest, RegionId, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::layout::Activation;

/// Why layers that were planned did not become a program.
#[derive(Debug, thiserror::Error)]
#[error("layer {layer}: {source}")]
pub struct BuildError {
    /// The layer's last node.
    pub layer: String,
    /// What the driver said.
    pub source: DriverError,
}

/// A program and the tensors at its border.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// The program.
    pub program: AccelProgram,
    /// Values that the host writes, in the program's order.
    pub inputs: Vec<(ValueId, View)>,
    /// Values that the host reads, in the program's order.
    pub outputs: Vec<(ValueId, View)>,
}

/// Alignment of tensors in their region.
const ALIGN: u64 = 64;

/// Builds the program of layers in topological order.
///
/// `root` names the value whose bytes a value is, where it is another's under another shape. `outputs` are the values
/// that the host reads.
///
/// # Errors
/// [`BuildError`], with the layer.
pub fn build(
    graph: &Graph,
    config: &HwConfig,
    layers: &[(Layer, Plan)],
    outputs: &[ValueId],
    root: &dyn Fn(ValueId) -> ValueId,
) -> Result<Built, BuildError> {
    let first = layers.first().map_or_else(String::new, |(l, _)| l.name.clone());
    let wrap = |layer: &str| {
        let layer = layer.to_string();
        move |source| BuildError { layer, source }
    };
    let mut emit = Emit::new(config).map_err(wrap(&first))?;
    let (inputs, outputs) = emit.place_tensors(graph, layers, outputs, root).map_err(wrap(&first))?;
    // Where each layer's instructions end, to find the layer of one that cannot be encoded.
    let mut ends = Vec::new();
    for (layer, plan) in layers {
        emit.forget();
        let done = match (&layer.kind, plan) {
            (Kind::Conv(c), Plan::Conv(tile)) => conv::emit(&mut emit, layer, c, *tile, root),
            (Kind::Conv(c), Plan::Depthwise(tile)) => shared::emit(&mut emit, layer, c, *tile, root),
            (Kind::Pool(p), Plan::Pool(tile)) => pool::emit(&mut emit, layer, p, *tile, root),
            (Kind::MatMul(m), Plan::MatMul(tile)) => matmul::emit(&mut emit, layer, m, *tile, root),
            (Kind::Copy(c), Plan::Copy { rows }) => copy::emit(&mut emit, layer, c, *rows, root),
            (Kind::Transposed(t), Plan::Transposed(tiles)) => conv::emit_transposed(&mut emit, layer, t, tiles, root),
            (Kind::Lookup(t), Plan::Lookup { entries }) => lookup::emit(&mut emit, layer, t, *entries, root),
            (Kind::Pair(p), Plan::Pair { entries }) => pair::emit(&mut emit, layer, p, *entries, root),
            _ => Err(DriverError::Rule { index: emit.b.len(), what: "a plan of another kind of layer".into() }),
        };
        done.map_err(wrap(&layer.name))?;
        ends.push(emit.b.len());
    }
    let program = emit.b.finish().map_err(|source| {
        let at = if let DriverError::Encode { index, .. } = source { index } else { 0 };
        let layer = layers.iter().zip(&ends).find(|(_, end)| at < **end).map_or("", |((l, _), _)| &l.name);
        BuildError { layer: layer.to_string(), source }
    })?;
    Ok(Built { program, inputs, outputs })
}

/// A tensor in device memory.
#[derive(Debug, Clone, Copy)]
pub(super) struct Place {
    pub region: RegionId,
    pub offset: u64,
    pub layout: Activation,
}

/// Names a tile for as long as its layer runs.
pub(super) type Key = [usize; 5];

/// What a tile does under the loops of gemm or vector.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub(super) enum Work {
    Product(Tile),
    Diagonal(Taps),
    /// With the zero point of the weights.
    Mac(Taps, i8),
    Windows(Windows),
    Requant(Requant),
    Pair(Pairwise),
}

impl Work {
    fn mapped(&self, config: &HwConfig) -> Result<Mapped, MapError> {
        Ok(match self {
            Work::Product(t) => product(config, t)?,
            Work::Diagonal(t) => diagonal(config, t)?,
            Work::Mac(t, zero_point) => mac(config, t, *zero_point)?,
            Work::Windows(t) => windows(config, t)?,
            Work::Requant(t) => requant(config, t)?,
            Work::Pair(t) => pairwise(config, t)?,
        })
    }
}

/// The program under construction.
pub(super) struct Emit<'c> {
    pub config: &'c HwConfig,
    pub b: Builder,
    pub inp: Ring<Key>,
    pub wgt: Ring<Key>,
    pub acc: Ring<Key>,
    pub out: Ring<Key>,
    pub param: Ring<Key>,
    places: HashMap<(ValueId, View), Place>,
    nests: HashMap<Work, Nest>,
}

type Borders = (Vec<(ValueId, View)>, Vec<(ValueId, View)>);

impl<'c> Emit<'c> {
    fn new(config: &'c HwConfig) -> Result<Emit<'c>, DriverError> {
        Ok(Emit {
            config,
            b: Builder::new(config)?,
            inp: Ring::new(config, Mem::Inp),
            wgt: Ring::new(config, Mem::Wgt),
            acc: Ring::banked(config, Mem::Acc),
            out: Ring::new(config, Mem::Out),
            param: Ring::new(config, Mem::Param),
            places: HashMap::new(),
            nests: HashMap::new(),
        })
    }

    /// The loops of a tile's work; equal tiles are scheduled once.
    pub fn nest(&mut self, work: &Work) -> Result<Nest, DriverError> {
        if let Some(nest) = self.nests.get(work) {
            return Ok(nest.clone());
        }
        let nest = work.mapped(self.config).and_then(|m| m.nest());
        let nest = nest.map_err(|e| DriverError::Rule { index: self.b.len(), what: e.to_string() })?;
        self.nests.insert(*work, nest.clone());
        Ok(nest)
    }

    pub fn forget(&mut self) {
        for ring in [&mut self.inp, &mut self.wgt, &mut self.acc, &mut self.out, &mut self.param] {
            ring.forget();
        }
    }

    /// Where a layer's tensor lies. Every one was placed before the first layer.
    pub fn place(&self, tensor: (ValueId, View), root: &dyn Fn(ValueId) -> ValueId) -> Result<Place, DriverError> {
        let missing = || DriverError::Rule { index: self.b.len(), what: "a tensor has no place".into() };
        let (value, view) = tensor;
        let found = self.places.get(&(root(value), view)).or_else(|| self.places.get(&(value, view)));
        found.copied().ok_or_else(missing)
    }

    fn place_tensors(
        &mut self,
        graph: &Graph,
        layers: &[(Layer, Plan)],
        outputs: &[ValueId],
        root: &dyn Fn(ValueId) -> ValueId,
    ) -> Result<Borders, DriverError> {
        let (config, mut inputs, mut out_list) = (self.config, Vec::new(), Vec::new());
        let produced: HashMap<ValueId, (View, usize)> =
            layers.iter().enumerate().map(|(i, (l, _))| (l.output.0, (l.output.1, i))).collect();
        let inside = |v: ValueId, view: View| produced.get(&root(v)).is_some_and(|(made, _)| *made == view);
        let regions = [("inputs", Role::Input), ("outputs", Role::Output), ("tensors", Role::Scratch)];
        let mut ids = Vec::new();
        for (name, role) in regions {
            ids.push(self.b.region(name, role, 0)?);
        }
        let mut at = 0;
        for (value, view) in layers.iter().flat_map(|(l, _)| l.inputs.iter().copied()) {
            if inside(value, view) || inputs.contains(&(value, view)) {
                continue;
            }
            let layout = view.layout(config);
            self.b.input(graph.value_name(value), ids[0], at, layout.bytes() as u64);
            self.places.insert((value, view), Place { region: ids[0], offset: at, layout });
            inputs.push((value, view));
            at = (at + layout.bytes() as u64).next_multiple_of(ALIGN);
        }
        self.b.grow(ids[0], at);
        let mut at = 0;
        for &value in outputs {
            let Some(&(view, _)) = produced.get(&root(value)) else { continue };
            let layout = view.layout(config);
            let place = *self.places.entry((root(value), view)).or_insert_with(|| {
                let place = Place { region: ids[1], offset: at, layout };
                at = (at + layout.bytes() as u64).next_multiple_of(ALIGN);
                place
            });
            self.b.output(graph.value_name(value), ids[1], place.offset, layout.bytes() as u64);
            out_list.push((value, view));
        }
        self.b.grow(ids[1], at);
        let size = self.place_scratch(layers, ids[2], root);
        self.b.grow(ids[2], size);
        Ok((inputs, out_list))
    }

    /// Places what only layers read, each in the first room that no tensor needed at the same time takes.
    fn place_scratch(&mut self, layers: &[(Layer, Plan)], region: RegionId, root: &dyn Fn(ValueId) -> ValueId) -> u64 {
        let mut last_use: HashMap<ValueId, usize> = HashMap::new();
        for (i, (layer, _)) in layers.iter().enumerate() {
            for (value, _) in &layer.inputs {
                last_use.insert(root(*value), i);
            }
        }
        // First byte, bytes and last reader of tensors that are still read.
        let mut live: Vec<(u64, u64, usize)> = Vec::new();
        let mut size = 0;
        for (i, (layer, _)) in layers.iter().enumerate() {
            let (value, view) = layer.output;
            if self.places.contains_key(&(value, view)) {
                continue;
            }
            live.retain(|&(_, _, last)| last >= i);
            live.sort_unstable();
            let layout = view.layout(self.config);
            let bytes = (layout.bytes() as u64).next_multiple_of(ALIGN);
            let mut offset = 0;
            for &(at, len, _) in &live {
                if at >= offset + bytes {
                    break;
                }
                offset = offset.max(at + len);
            }
            live.push((offset, bytes, last_use.get(&value).copied().unwrap_or(i)));
            self.places.insert((value, view), Place { region, offset, layout });
            size = size.max(offset + bytes);
        }
        size
    }
}
