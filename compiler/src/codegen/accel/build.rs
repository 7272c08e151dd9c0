//! Builds one program from planned layers.

use super::emit::{Aliases, Constants, Emit};
use super::layer::Layer;
use super::ops::Planned;
use super::scheduled::LayerSchedule;
use super::view::View;
use crate::graph::{Graph, NodeId, ValueId};
use tilewright_driver::{AccelProgram, DriverError, Order, Recording};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::artifact::{InsnLayers, LayerEnd, TensorPlace};

/// Why a program cannot be built from planned layers.
#[derive(Debug, thiserror::Error)]
#[error("layer {layer}: {source}")]
pub struct BuildError {
    /// Name of the layer: that of its last node.
    pub layer: String,
    /// The driver's error.
    pub source: DriverError,
}

/// A program and the tensors at its border.
#[derive(Debug, Clone, PartialEq)]
pub struct Built {
    /// The program, whose instructions can still be put into another order.
    pub recording: Recording,
    /// Values that the host writes, in the program's order.
    pub inputs: Vec<(ValueId, View)>,
    /// Values that the host reads, in the program's order.
    pub outputs: Vec<(ValueId, View)>,
    /// Places and lifetimes of tensors in the program's memory.
    pub tensors: Vec<TensorPlace>,
    /// The program's layers, in the order of their instructions in the recording.
    pub layers: Vec<LayerEnd>,
    /// The layers by their nodes and schedules.
    pub schedules: Vec<BuiltLayer>,
}

/// A layer of a program.
#[derive(Debug, Clone, PartialEq)]
pub struct BuiltLayer {
    /// The layer's nodes, in the order of the graph.
    pub nodes: Vec<NodeId>,
    /// Its schedule, if the program has the constants of the model.
    pub schedule: Option<LayerSchedule>,
}

/// Builds the program of layers in topological order. `outputs` are the values that the host reads.
///
/// # Errors
/// The layer whose instructions or constants the driver refuses.
pub fn build(
    graph: &Graph,
    config: &HwConfig,
    layers: &[(Layer, Planned)],
    outputs: &[ValueId],
    aliases: Aliases,
    constants: Constants,
) -> Result<Built, BuildError> {
    let first = layers.first().map_or_else(String::new, |(l, _)| l.name.clone());
    let wrap = |layer: &str| {
        let layer = layer.to_string();
        move |source| BuildError { layer, source }
    };
    let mut emit = Emit::new(config, constants, aliases).map_err(wrap(&first))?;
    let all: Vec<&Layer> = layers.iter().map(|(layer, _)| layer).collect();
    let borders = emit.place_tensors(graph, &all, outputs).map_err(wrap(&first))?;
    let mut ends = Vec::new();
    for (layer, planned) in layers {
        emit.begin(layer);
        planned.emit(layer, &mut emit).map_err(wrap(&layer.name))?;
        ends.push(LayerEnd { name: layer.name.clone(), end: emit.b.len() });
    }
    let tensors = std::mem::take(&mut emit.tensors);
    let schedules = emit.take_schedules().into_iter().zip(layers);
    let schedules =
        schedules.map(|(schedule, (layer, _))| BuiltLayer { nodes: layer.nodes.clone(), schedule }).collect();
    let recording = emit.b.record();
    Ok(Built { recording, inputs: borders.inputs, outputs: borders.outputs, tensors, layers: ends, schedules })
}

/// Returns the program of a recording in an order, and the layers of its instructions.
///
/// # Errors
/// The layer whose instructions the driver cannot encode.
pub fn ordered(
    recording: &Recording,
    layers: &[LayerEnd],
    order: &Order,
) -> Result<(AccelProgram, InsnLayers), BuildError> {
    let program = recording.program(order).map_err(|source| {
        let at = match source {
            DriverError::Encode { index, .. } => index,
            _ => 0,
        };
        let layer = layers.iter().find(|layer| at < layer.end).map_or("", |layer| &layer.name);
        BuildError { layer: layer.to_string(), source }
    })?;
    Ok((program, InsnLayers::ordered(layers, &order.places)))
}
