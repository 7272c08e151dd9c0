//! Layers to one program: where tensors lie, and the walk over the layers.

use super::layer::{Kind, Layer};
use super::mapped::{MapError, Mapped};
use super::plan::Plan;
use super::product::{Tile, product};
use super::scratch::Ring;
use super::taps::{Taps, diagonal, mac};
use super::vector::{Pairwise, Requant, Windows, pairwise, requant, windows};
use super::view::View;
use super::{conv, copy, lookup, matmul, pair, pool, shared, walk};
use crate::graph::{Graph, ValueId};
use std::collections::HashMap;
use tilewright_driver::{AccelProgram, Builder, DriverError, Nest, RegionId, Role};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;
use tilewright_hw::layout::Activation;
use tilewright_runtime::artifact::{LayerEnd, TensorPlace};
use tilewright_runtime::placement::{self, Buffer};

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
    /// Where tensors lie in the program's memory, and when.
    pub tensors: Vec<TensorPlace>,
    /// The program's layers, in the order of their instructions.
    pub layers: Vec<LayerEnd>,
}

/// The value whose bytes a value is, and how it is seen, where not as that one.
pub type Ways<'a> = (&'a dyn Fn(ValueId) -> ValueId, &'a dyn Fn(ValueId) -> Option<View>);

/// Alignment of tensors in their region.
const ALIGN: u64 = 64;

/// What a program's constants are.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constants {
    /// The layers' own.
    Given,
    /// Zeros for weights, for those who only ask what the program takes.
    Zeros,
}

/// Builds the program of layers in topological order.
///
/// `root` names the value whose bytes a value is, where it is another's under another shape, and `seen` how it is seen, where not
/// as that one. `outputs` are the values that the host reads.
///
/// # Errors
/// The layer whose instructions or constants the driver refuses.
pub fn build(
    graph: &Graph,
    config: &HwConfig,
    layers: &[(Layer, Plan)],
    outputs: &[ValueId],
    (root, seen): Ways,
    constants: Constants,
) -> Result<Built, BuildError> {
    let first = layers.first().map_or_else(String::new, |(l, _)| l.name.clone());
    let wrap = |layer: &str| {
        let layer = layer.to_string();
        move |source| BuildError { layer, source }
    };
    let mut emit = Emit::new(config, constants).map_err(wrap(&first))?;
    let (inputs, outputs) = emit.place_tensors(graph, layers, outputs, (root, seen)).map_err(wrap(&first))?;
    let mut ends = Vec::new();
    for (layer, plan) in layers {
        emit.forget();
        emit.make_room(layer.on_chip.room);
        let done = match (&layer.kind, plan) {
            (Kind::Conv(c), Plan::Conv(tile)) => conv::emit(&mut emit, layer, c, *tile, root),
            (Kind::Conv(c), Plan::Depthwise(tile)) => shared::emit(&mut emit, layer, c, *tile, root),
            (Kind::Pool(p), Plan::Pool(tile)) => pool::emit(&mut emit, layer, p, *tile, root),
            (Kind::MatMul(m), Plan::MatMul(tile)) => matmul::emit(&mut emit, layer, m, *tile, root),
            (Kind::Copy(c), Plan::Copy { rows }) => copy::emit(&mut emit, layer, c, *rows, root),
            (Kind::Walk(w), Plan::Walk { blocks }) => walk::emit(&mut emit, layer, w, *blocks, root),
            (Kind::Transposed(t), Plan::Transposed(tiles)) => conv::emit_transposed(&mut emit, layer, t, tiles, root),
            (Kind::Lookup(t), Plan::Lookup { entries }) => lookup::emit(&mut emit, layer, t, *entries, root),
            (Kind::Pair(p), Plan::Pair { entries }) => pair::emit(&mut emit, layer, p, *entries, root),
            _ => Err(DriverError::Rule { index: emit.b.len(), what: "a plan of another kind of layer".into() }),
        };
        done.map_err(wrap(&layer.name))?;
        ends.push(LayerEnd { name: layer.name.clone(), end: emit.b.len() });
    }
    let tensors = std::mem::take(&mut emit.tensors);
    let program = emit.b.finish().map_err(|source| {
        let at = match source {
            DriverError::Encode { index, .. }
            | DriverError::Illegal { index, .. }
            | DriverError::Scratchpad { index, .. }
            | DriverError::Region { index, .. }
            | DriverError::Rule { index, .. } => index,
            _ => 0,
        };
        let layer = ends.iter().find(|layer| at < layer.end).map_or("", |layer| &layer.name);
        BuildError { layer: layer.to_string(), source }
    })?;
    Ok(Built { program, inputs, outputs, tensors, layers: ends })
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
    constants: Constants,
    pub b: Builder,
    pub inp: Ring<Key>,
    pub wgt: Ring<Key>,
    pub acc: Ring<Key>,
    pub out: Ring<Key>,
    pub param: Ring<Key>,
    /// An entry of acc that has been requantized.
    pub summed: Option<u32>,
    /// Halves of out, and out bank by bank.
    pub lower: Ring<Key>,
    pub upper: Ring<Key>,
    pub banks: Ring<Key>,
    /// What inp's turn goes around in, if not the whole.
    room: Option<(u32, u32)>,
    places: HashMap<(ValueId, View), Place>,
    tensors: Vec<TensorPlace>,
    nests: HashMap<Work, Nest>,
    /// Where bytes of one value lie among the constants, and how many, for loads that cannot pad.
    pub pads: HashMap<i8, (u64, u32)>,
}

type Borders = (Vec<(ValueId, View)>, Vec<(ValueId, View)>);

impl<'c> Emit<'c> {
    fn new(config: &'c HwConfig, constants: Constants) -> Result<Emit<'c>, DriverError> {
        Ok(Emit {
            config,
            constants,
            b: Builder::new(config)?,
            inp: Ring::new(config, Mem::Inp),
            wgt: Ring::new(config, Mem::Wgt),
            acc: Ring::banked(config, Mem::Acc),
            out: Ring::new(config, Mem::Out),
            param: Ring::new(config, Mem::Param),
            summed: None,
            room: None,
            lower: Ring::half(config, Mem::Out, false),
            upper: Ring::half(config, Mem::Out, true),
            banks: Ring::banked(config, Mem::Out),
            places: HashMap::new(),
            tensors: Vec::new(),
            nests: HashMap::new(),
            pads: HashMap::new(),
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

    /// So many bytes of constants.
    pub fn values(&self, bytes: usize, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        match self.constants {
            Constants::Given => make(),
            Constants::Zeros => vec![0; bytes],
        }
    }

    /// The first row of param in which so many bytes of the constants lie; loads them into `rows` where they are not there.
    pub fn load_params(&mut self, key: Key, (offset, bytes): (u64, u64), rows: u32) -> Result<u32, DriverError> {
        if let Some(row) = self.param.find(&key) {
            return Ok(row);
        }
        let row = self.param.hold(key, rows);
        self.b.load_linear(Mem::Param, self.b.constants(), offset, row, bytes)?;
        Ok(row)
    }

    /// As [`Emit::load_params`], of whole entries.
    pub fn load_param_entries(&mut self, key: Key, offset: u64, entries: u32) -> Result<u32, DriverError> {
        let bytes = u64::from(entries * self.config.param_entry_bytes());
        Ok(self.load_params(key, (offset, bytes), PARAM_ROWS * entries)? / PARAM_ROWS)
    }

    pub fn forget(&mut self) {
        for ring in [&mut self.inp, &mut self.wgt, &mut self.acc, &mut self.out, &mut self.param] {
            ring.forget();
        }
    }

    /// Leaves a part of inp to loads.
    fn make_room(&mut self, room: Option<(u32, u32)>) {
        if room != self.room {
            self.room = room;
            self.inp = match room {
                Some((first, entries)) => Ring::part(first, entries),
                None => Ring::new(self.config, Mem::Inp),
            };
        }
    }

    /// Where a layer's first input lies in device memory, unless it lies in inp.
    pub fn input(&self, layer: &Layer, root: &dyn Fn(ValueId) -> ValueId) -> Result<Option<Place>, DriverError> {
        layer.on_chip.input.is_none().then(|| self.place(layer.inputs[0], root)).transpose()
    }

    /// Where a layer's output lies in device memory, unless it lies in inp alone.
    pub fn output(&self, layer: &Layer, root: &dyn Fn(ValueId) -> ValueId) -> Result<Option<Place>, DriverError> {
        (!layer.on_chip.hides_output()).then(|| self.place(layer.output, root)).transpose()
    }

    /// Where a layer's tensor lies. Every one was placed before the first layer.
    pub fn place(&self, tensor: (ValueId, View), root: &dyn Fn(ValueId) -> ValueId) -> Result<Place, DriverError> {
        let missing = || DriverError::Rule { index: self.b.len(), what: "a tensor has no place".into() };
        let (value, view) = tensor;
        let found = self.places.get(&(root(value), view)).or_else(|| self.places.get(&(value, view)));
        found.copied().ok_or_else(missing)
    }

    /// Gives every tensor its place in one region: inputs from the start to their last reader, outputs from their layer
    /// to the end, others from their layer to their last reader.
    fn place_tensors(
        &mut self,
        graph: &Graph,
        layers: &[(Layer, Plan)],
        outputs: &[ValueId],
        (root, seen): Ways,
    ) -> Result<Borders, DriverError> {
        let (config, mut inputs, mut out_list) = (self.config, Vec::new(), Vec::new());
        let region = self.b.region("tensors", Role::Scratch, 0)?;
        let produced: HashMap<ValueId, (View, usize)> =
            layers.iter().enumerate().map(|(i, (l, _))| (l.output.0, (l.output.1, i))).collect();
        // The view under which a value was made here that lies as this one says.
        let inside = |v: ValueId, view: View| {
            let made = produced.get(&root(v)).map(|(made, _)| *made)?;
            (seen(v).unwrap_or(made) == view).then_some(made)
        };
        // Each tensor with its view and lifetime, counted in layers.
        let mut tensors: Vec<((ValueId, View), Buffer)> = Vec::new();
        let mut number: HashMap<(ValueId, View), usize> = HashMap::new();
        let mut add = |tensors: &mut Vec<((ValueId, View), Buffer)>, key: (ValueId, View), first: usize| {
            *number.entry(key).or_insert_with(|| {
                let bytes = key.1.layout(config).bytes() as u64;
                tensors.push((key, Buffer { bytes, first, last: first }));
                tensors.len() - 1
            })
        };
        for (i, (layer, _)) in layers.iter().enumerate() {
            let kept = usize::from(layer.on_chip.input.is_some());
            for &(value, view) in &layer.inputs[kept..] {
                let made = inside(value, view);
                let key = made.map_or((value, view), |made| (root(value), made));
                if made.is_none() && !inputs.contains(&key) {
                    inputs.push(key);
                }
                let at = add(&mut tensors, key, 0);
                tensors[at].1.last = i;
            }
            if !layer.on_chip.hides_output() {
                let at = add(&mut tensors, layer.output, i);
                tensors[at].1.last = tensors[at].1.last.max(i);
            }
        }
        for &value in outputs {
            let Some(&(view, made)) = produced.get(&root(value)) else { continue };
            let at = add(&mut tensors, (root(value), view), made);
            tensors[at].1.last = layers.len();
            out_list.push((value, seen(value).unwrap_or(view)));
        }
        let buffers: Vec<Buffer> = tensors.iter().map(|(_, b)| *b).collect();
        let placed = placement::place(&buffers, ALIGN);
        self.b.grow(region, placed.bytes);
        for (&((value, view), buffer), &offset) in tensors.iter().zip(&placed.offsets) {
            self.places.insert((value, view), Place { region, offset, layout: view.layout(config) });
            self.tensors.push(TensorPlace { name: graph.value_name(value).to_string(), offset, buffer });
        }
        for &(value, view) in layers.iter().flat_map(|(layer, _)| &layer.inputs) {
            // The same bytes, seen in another way.
            let made = inside(value, view).filter(|made| *made != view);
            if let Some(place) = made.and_then(|made| self.places.get(&(root(value), made)).copied()) {
                self.places.insert((value, view), Place { layout: view.layout(config), ..place });
            }
        }
        for &(value, view) in &inputs {
            let place = self.places[&(value, view)];
            self.b.input(graph.value_name(value), region, place.offset, place.layout.bytes() as u64);
        }
        for &(value, _) in &out_list {
            let place = self.places[&(root(value), produced[&root(value)].0)];
            self.b.output(graph.value_name(value), region, place.offset, place.layout.bytes() as u64);
        }
        Ok((inputs, out_list))
    }
}
