//! A [`Clock`] that times programs with the cycle model.

use tilewright_compiler::codegen::accel::{Layer, Planned};
use tilewright_compiler::cost::{Clock, CostOracle, CpuTime};
use tilewright_compiler::graph::{Graph, NodeId};
use tilewright_compiler::records::{OtherShapes, Records};
use tilewright_driver::{ALIGN, AccelProgram, DeviceMemory, Loaded, Order, Recording};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, RunReport, Span};
use tilewright_hw::isa::{Insn, Unit};
use tilewright_runtime::artifact::InsnLayers;
use tilewright_sim::{Csim, CsimOptions};

/// Costs with programs timed by the cycle model; all other costs come from `costs`.
pub struct Timed<'a> {
    /// The configuration.
    pub config: &'a HwConfig,
    /// Source of the other costs.
    pub costs: &'a dyn CostOracle,
    /// Plans that were found earlier.
    pub records: Option<&'a Records>,
    /// Plans of other shapes of the model.
    pub other_shapes: Option<&'a OtherShapes>,
}

/// A clock that threads can share.
#[derive(Debug, Clone, Copy)]
pub struct CycleModel<'a> {
    /// The configuration.
    pub config: &'a HwConfig,
}

impl CycleModel<'_> {
    /// Runs a program for its spans alone; `None` if it cannot run.
    fn run(&self, program: &AccelProgram) -> Option<RunReport> {
        let options = CsimOptions { timing_only: true, spans: true, ..CsimOptions::default() };
        // Gives the program as much memory as it needs, whatever the host's memory.
        let blocks = program.regions.iter().map(|r| r.bytes).chain([program.stream.len() as u64]);
        let bytes = blocks.map(|bytes| bytes.next_multiple_of(ALIGN) + ALIGN).sum();
        let mut device = Csim::new(self.config.clone(), bytes, options);
        let mut memory = DeviceMemory::new(bytes, self.config);
        let loaded = Loaded::new(&mut device, &mut memory, program).ok()?;
        device.run(loaded.command()).ok().filter(|report| report.trap.is_none())
    }
}

impl Clock for CycleModel<'_> {
    fn cycles(&self, program: &AccelProgram, layers: &InsnLayers) -> Option<Vec<u64>> {
        let report = self.run(program)?;
        layer_ends(&program.decode(self.config).ok()?, &report.spans, layers, report.cycles)
    }

    fn total(&self, recording: &Recording, order: &Order) -> Option<u64> {
        let insns = recording.stream(order).ok()?;
        let (command, bytes) = recording.command().ok()?;
        let options = CsimOptions { timing_only: true, ..CsimOptions::default() };
        let report = Csim::new(self.config.clone(), bytes, options).time(&command, &insns).ok()?;
        report.cycles.filter(|_| report.trap.is_none())
    }
}

impl Clock for Timed<'_> {
    fn cycles(&self, program: &AccelProgram, layers: &InsnLayers) -> Option<Vec<u64>> {
        CycleModel { config: self.config }.cycles(program, layers)
    }

    fn total(&self, recording: &Recording, order: &Order) -> Option<u64> {
        CycleModel { config: self.config }.total(recording, order)
    }
}

/// Cycles from a program's start until each layer and all earlier ones are done; the last one is done after the
/// program's `cycles`. None if an instruction did not retire.
pub(crate) fn layer_ends(insns: &[Insn], spans: &[Span], layers: &InsnLayers, cycles: Option<u64>) -> Option<Vec<u64>> {
    let mut retired = Unit::ALL.map(|unit| spans.iter().filter(move |s| s.unit == unit).map(|s| s.end));
    let mut ends = vec![0; layers.layers()];
    for (place, insn) in insns.iter().enumerate() {
        let end = retired[insn.unit() as usize].next()??;
        if let Some(layer) = layers.of(place) {
            ends[layer] = end.max(ends[layer]);
        }
    }
    let mut last = 0;
    for end in &mut ends {
        last = last.max(*end);
        *end = last;
    }
    if let (Some(last), Some(cycles)) = (ends.last_mut(), cycles) {
        *last = cycles;
    }
    Some(ends)
}

impl CostOracle for Timed<'_> {
    fn accel_cycles(&self, layer: &Layer, planned: &Planned) -> u64 {
        self.costs.accel_cycles(layer, planned)
    }

    fn accel_ns(&self, cycles: u64) -> u64 {
        self.costs.accel_ns(cycles)
    }

    fn cpu(&self, graph: &Graph, nodes: &[NodeId]) -> Option<CpuTime> {
        self.costs.cpu(graph, nodes)
    }

    fn border_ns(&self, dense_bytes: u64, device_bytes: u64) -> u64 {
        self.costs.border_ns(dense_bytes, device_bytes)
    }

    fn launch_ns(&self) -> u64 {
        self.costs.launch_ns()
    }

    fn clock(&self) -> Option<&dyn Clock> {
        Some(self)
    }

    fn records(&self) -> Option<&Records> {
        self.records
    }

    fn other_shapes(&self) -> Option<&OtherShapes> {
        self.other_shapes
    }
}
