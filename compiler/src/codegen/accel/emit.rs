//! The program under construction: scratchpad allocation, constants, and the places of tensors in device memory.

use super::layer::Layer;
use super::ring::Ring;
use super::scheduled::LayerSchedule;
use super::view::View;
use crate::graph::ValueId;
use std::collections::HashMap;
use tilewright_driver::{Builder, DriverError, RegionId};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::layout::Activation;
use tilewright_runtime::artifact::TensorPlace;

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

/// The program under construction.
pub struct Emit<'c> {
    pub config: &'c HwConfig,
    pub b: Builder,
    pub inp: Ring,
    pub wgt: Ring,
    pub acc: Ring,
    pub out: Ring,
    pub param: Ring,
    /// An entry of acc with sums.
    pub summed: Option<u32>,
    pub(super) aliases: Aliases<'c>,
    pub(super) places: HashMap<(ValueId, View), DeviceTensor>,
    pub(super) tensors: Vec<TensorPlace>,
    constants: Constants,
    /// The part of inp that `inp` uses, if not all of it.
    room: Option<(u32, u32)>,
    /// For each layer so far, its schedule if the program is the final one.
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
            out: Ring::banked(config, Mem::Out),
            param: Ring::new(config, Mem::Param),
            summed: None,
            aliases,
            places: HashMap::new(),
            tensors: Vec::new(),
            constants,
            room: None,
            layer_schedules: Vec::new(),
        })
    }

    /// Notes the schedule of the layer that is being emitted, if the program is the final one.
    pub fn keep_schedule(&mut self, schedule: LayerSchedule) {
        if let (Constants::Given, Some(last)) = (self.constants, self.layer_schedules.last_mut()) {
            *last = Some(schedule);
        }
    }

    /// Takes the schedule of each layer.
    pub fn take_schedules(&mut self) -> Vec<Option<LayerSchedule>> {
        std::mem::take(&mut self.layer_schedules)
    }

    /// Which constants the program gets.
    pub fn constants(&self) -> Constants {
        self.constants
    }

    /// Begins a layer: the scratchpads' contents are not reused, and loads to inp stay in the layer's part of it.
    pub fn begin(&mut self, layer: &Layer) {
        self.layer_schedules.push(None);
        let room = layer.on_chip.room;
        if room != self.room {
            self.room = room;
            self.inp = match room {
                Some((first, entries)) => Ring::part(first, entries),
                None => Ring::new(self.config, Mem::Inp),
            };
        }
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
