//! The program under construction: scratchpad allocation, constants, and the places of tensors in device memory.

use super::layer::Layer;
use super::ring::Ring;
use super::scheduled::LayerSchedule;
use super::view::View;
use crate::graph::ValueId;
use std::any::{Any, TypeId};
use std::collections::{BTreeSet, HashMap};
use std::hash::Hash;
use tilewright_driver::{Builder, DriverError, Nest, RegionId};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::isa::PARAM_ROWS;
use tilewright_hw::layout::Activation;
use tilewright_runtime::artifact::TensorPlace;
use tilewright_tensor::mapping::mapped::{MapError, Mapped};

/// Which constants a program gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Constants {
    /// The constants of the layers.
    Given,
    /// Zeros for weights, if only the program's cycles matter.
    Zeros,
}

/// Values that share the storage of others.
#[derive(Clone, Copy)]
pub struct Aliases<'a> {
    /// The value whose storage a value aliases; itself if it has its own.
    pub root: &'a dyn Fn(ValueId) -> ValueId,
    /// The view of a value, if it differs from the view of its root.
    pub view: &'a dyn Fn(ValueId) -> Option<View>,
}

/// A tensor in device memory.
#[derive(Debug, Clone, Copy)]
pub struct DeviceTensor {
    pub region: RegionId,
    pub offset: u64,
    pub layout: Activation,
}

/// A tensor that a layer reads or writes.
#[derive(Debug, Clone, Copy)]
pub struct LayerTensor {
    /// The tensor in device memory; `None` if it is in inp.
    pub place: Option<DeviceTensor>,
    /// The view in which the layer's tiles see it.
    pub view: View,
}

/// Identifies a tile in a scratchpad while its layer is emitted.
pub type Key = [usize; 5];

/// What a tile computes under the loops of gemm or vector: a tensor expression, tensorized to an instruction's
/// micro-op.
pub trait TileWork: Copy + Eq + Hash + 'static {
    /// Returns the expression with its schedule.
    ///
    /// # Errors
    /// None for a legal configuration.
    fn mapped(&self, config: &HwConfig) -> Result<Mapped, MapError>;
}

/// The program under construction.
pub struct Emit<'c> {
    pub config: &'c HwConfig,
    pub b: Builder,
    pub inp: Ring<Key>,
    pub wgt: Ring<Key>,
    pub acc: Ring<Key>,
    pub out: Ring<Key>,
    pub param: Ring<Key>,
    /// Lower half of out.
    pub lower: Ring<Key>,
    /// Upper half of out.
    pub upper: Ring<Key>,
    /// Out, each tile starting at a new bank.
    pub banks: Ring<Key>,
    /// An entry of acc that has been requantized.
    pub summed: Option<u32>,
    /// Constants that are used as padding if loads cannot pad: for each value, offset and length of bytes of that
    /// value.
    pub pads: HashMap<i8, (u64, u32)>,
    pub(super) aliases: Aliases<'c>,
    pub(super) places: HashMap<(ValueId, View), DeviceTensor>,
    pub(super) tensors: Vec<TensorPlace>,
    constants: Constants,
    /// The part of inp that `inp` uses, if not all of it.
    room: Option<(u32, u32)>,
    /// For each type `W` of work a `HashMap<W, (Nest, usize)>`, with the index in `works`.
    nests: HashMap<TypeId, Box<dyn Any>>,
    /// All works of the program.
    works: Vec<Mapped>,
    /// For each layer so far, its works.
    layer_works: Vec<BTreeSet<usize>>,
    /// For each layer so far, its schedule if it runs by one.
    layer_schedules: Vec<Option<LayerSchedule>>,
}

impl<'c> Emit<'c> {
    /// An empty program.
    ///
    /// # Errors
    /// The driver refuses the configuration.
    pub fn new(config: &'c HwConfig, constants: Constants, aliases: Aliases<'c>) -> Result<Emit<'c>, DriverError> {
        let b = Builder::new(config)?;
        Ok(Emit {
            config,
            b: if constants == Constants::Zeros { b.without_constants() } else { b },
            inp: Ring::new(config, Mem::Inp),
            wgt: Ring::new(config, Mem::Wgt),
            acc: Ring::banked(config, Mem::Acc),
            out: Ring::new(config, Mem::Out),
            param: Ring::new(config, Mem::Param),
            lower: Ring::half(config, Mem::Out, false),
            upper: Ring::half(config, Mem::Out, true),
            banks: Ring::banked(config, Mem::Out),
            summed: None,
            pads: HashMap::new(),
            aliases,
            places: HashMap::new(),
            tensors: Vec::new(),
            constants,
            room: None,
            nests: HashMap::new(),
            works: Vec::new(),
            layer_works: Vec::new(),
            layer_schedules: Vec::new(),
        })
    }

    /// Returns the loops of a tile's work. Equal work is scheduled only once.
    ///
    /// # Errors
    /// The work does not map to its micro-op.
    pub fn nest<W: TileWork>(&mut self, work: &W) -> Result<Nest, DriverError> {
        let known = self.nests.entry(TypeId::of::<W>()).or_insert_with(|| Box::new(HashMap::<W, (Nest, usize)>::new()));
        let known = known.downcast_mut::<HashMap<W, (Nest, usize)>>();
        let (nest, number) = match known.as_ref().and_then(|known| known.get(work)) {
            Some((nest, number)) => (nest.clone(), *number),
            None => {
                let wrong = |e: MapError| DriverError::Rule { index: self.b.len(), what: e.to_string() };
                let mapped = work.mapped(self.config).map_err(wrong)?;
                let nest = mapped.nest().map_err(wrong)?;
                let number = self.works.len();
                self.works.push(mapped);
                if let Some(known) = known {
                    known.insert(*work, (nest.clone(), number));
                }
                (nest, number)
            }
        };
        if let Some(layer) = self.layer_works.last_mut() {
            layer.insert(number);
        }
        Ok(nest)
    }

    /// Notes the schedule of the layer that is being emitted, if the program is the final one.
    pub fn keep_schedule(&mut self, schedule: LayerSchedule) {
        if let (Constants::Given, Some(last)) = (self.constants, self.layer_schedules.last_mut()) {
            *last = Some(schedule);
        }
    }

    /// Takes the schedule of each layer that runs by one.
    pub fn take_schedules(&mut self) -> Vec<Option<LayerSchedule>> {
        std::mem::take(&mut self.layer_schedules)
    }

    /// Takes the different works of each layer's tiles, in the order in which the program first needs them.
    pub fn take_works(&mut self) -> Vec<Vec<Mapped>> {
        let layers = std::mem::take(&mut self.layer_works);
        layers.iter().map(|layer| layer.iter().map(|&number| self.works[number].clone()).collect()).collect()
    }

    /// Which constants the program gets.
    pub fn constants(&self) -> Constants {
        self.constants
    }

    /// Returns the constants that `make` computes, or `bytes` zeros if the program only needs [`Constants::Zeros`].
    pub fn values(&self, bytes: usize, make: impl FnOnce() -> Vec<u8>) -> Vec<u8> {
        match self.constants {
            Constants::Given => make(),
            Constants::Zeros => vec![0; bytes],
        }
    }

    /// Loads bytes of the constants into `rows` rows of param, unless param already holds them under this key.
    ///
    /// Returns the first row.
    ///
    /// # Errors
    /// The driver refuses the load.
    pub fn load_params(&mut self, key: Key, (offset, bytes): (u64, u64), rows: u32) -> Result<u32, DriverError> {
        if let Some(row) = self.param.find(&key) {
            return Ok(row);
        }
        let row = self.param.hold(key, rows);
        self.b.load_linear(Mem::Param, self.b.constants(), offset, row, bytes)?;
        Ok(row)
    }

    /// Like [`Emit::load_params`], but counts and returns whole entries.
    ///
    /// # Errors
    /// The driver refuses the load.
    pub fn load_param_entries(&mut self, key: Key, offset: u64, entries: u32) -> Result<u32, DriverError> {
        let bytes = u64::from(entries * self.config.param_entry_bytes());
        Ok(self.load_params(key, (offset, bytes), PARAM_ROWS * entries)? / PARAM_ROWS)
    }

    /// Begins a layer: the scratchpads' contents are not reused, and loads to inp stay in the layer's part of it.
    pub fn begin(&mut self, layer: &Layer) {
        self.layer_works.push(BTreeSet::new());
        self.layer_schedules.push(None);
        self.forget();
        let room = layer.on_chip.room;
        if room != self.room {
            self.room = room;
            self.inp = match room {
                Some((first, entries)) => Ring::part(first, entries),
                None => Ring::new(self.config, Mem::Inp),
            };
        }
    }

    /// Forgets the contents of the scratchpads, so that data are loaded again.
    pub fn forget(&mut self) {
        for ring in [&mut self.inp, &mut self.wgt, &mut self.acc, &mut self.out, &mut self.param] {
            ring.forget();
        }
    }

    /// The layer's first input in device memory; `None` if it is in inp.
    ///
    /// # Errors
    /// The same as [`Emit::place`].
    pub fn input(&self, layer: &Layer) -> Result<Option<DeviceTensor>, DriverError> {
        layer.on_chip.input.is_none().then(|| self.place(layer.inputs[0])).transpose()
    }

    /// The layer's output in device memory; `None` if it is only in inp.
    ///
    /// # Errors
    /// The same as [`Emit::place`].
    pub fn output(&self, layer: &Layer) -> Result<Option<DeviceTensor>, DriverError> {
        (!layer.on_chip.hides_output()).then(|| self.place(layer.output)).transpose()
    }

    /// A layer's tensor in device memory. All tensors are placed before the first layer is emitted.
    ///
    /// # Errors
    /// The value is not a tensor of the program.
    pub fn place(&self, tensor: (ValueId, View)) -> Result<DeviceTensor, DriverError> {
        let missing = || DriverError::Rule { index: self.b.len(), what: "a tensor has no place".into() };
        let (value, view) = tensor;
        let found = self.places.get(&((self.aliases.root)(value), view)).or_else(|| self.places.get(&(value, view)));
        found.copied().ok_or_else(missing)
    }
}
