//! The interface of the accelerator's operators.

use super::emit::{Constants, Emit};
use super::layer::Layer;
use super::reader::{Read, Reader};
use super::scheduled::{self, LayerSchedule};
use super::space::{Decisions, Space};
use super::view::View;
use crate::graph::{Node, NodeId, Op, ValueId};
use std::fmt::Debug;
use tilewright_driver::DriverError;
use tilewright_hw::config::HwConfig;

/// An operator of the accelerator: the graph nodes it accepts, its tiles, its estimated cost, and its instructions.
///
/// `ops/mod.rs` lists all operators. `--explain` shows the reasons why an operator refuses a node. They start with a
/// small letter, like error messages.
pub trait AccelOperator: Clone + Debug + PartialEq {
    /// How a layer of this operator is cut into tiles.
    type Plan: Clone + Debug + PartialEq;

    /// Returns which layouts of its data a layer accepts that begins at this kind of node; `None` if this operator does
    /// not handle such nodes. At most one operator of the accelerator handles a graph operator.
    fn takes(op: &Op) -> Option<LayoutFreedom>;

    /// Reads the layer that begins at a node that [`AccelOperator::takes`] accepts.
    ///
    /// # Errors
    /// The reason why the accelerator cannot compute the layer.
    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<Self>>;

    /// Views in which a node that [`AccelOperator::takes`] accepts would read one of its operands, the preferred ones
    /// first.
    ///
    /// A producer that can choose the layout of its result asks this.
    fn preferred_views(_reader: &Reader<'_>, _node: &Node, _operand: ValueId) -> Vec<View> {
        Vec::new()
    }

    /// Returns an equivalent layer that reads its input in a form that only the host can write; `None` if there is no
    /// such form or it is no better.
    fn host_form(&self, _layer: &Layer, _config: &HwConfig) -> Option<(Layer, Self)> {
        None
    }

    /// Returns the plan with the fewest estimated cycles if `search`, otherwise the first plan that fits.
    ///
    /// # Errors
    /// The reason why no plan fits, with sizes.
    fn plan(&self, layer: &Layer, config: &HwConfig, search: bool) -> Result<Self::Plan, String>;

    /// Returns about `most` plans that are worth an exact comparison by the cycle model; empty if there is no choice.
    fn plans(&self, _layer: &Layer, _config: &HwConfig, _most: usize) -> Vec<Self::Plan> {
        Vec::new()
    }

    /// Returns the decisions that plans of this layer consist of, with their possible values.
    ///
    /// By default, there is nothing to decide.
    fn space(&self, _layer: &Layer, _config: &HwConfig) -> Space {
        Space::default()
    }

    /// Returns the decisions of a plan.
    fn decisions(&self, _plan: &Self::Plan) -> Decisions {
        Decisions::default()
    }

    /// Returns the plan of some decisions.
    ///
    /// # Errors
    /// The reason why the plan does not fit, or which decision is missing or wrong.
    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<Self::Plan, String> {
        if *decisions != Decisions::default() {
            return Err(format!("there is nothing to decide, but the decisions are {decisions}"));
        }
        self.plan(layer, config, true)
    }

    /// Returns the estimated cycles of a planned layer by itself, from device memory to device memory. Tensors that
    /// stay in inp are neither loaded nor stored.
    fn cycles(&self, plan: &Self::Plan, layer: &Layer, config: &HwConfig) -> u64;

    /// Describes for `--explain` how the layer runs.
    fn describe(&self, plan: &Self::Plan, layer: &Layer) -> String;

    /// Returns how the layer uses scratchpad inp.
    fn inp_use(&self, layer: &Layer) -> InpUse;

    /// Returns a text with all that determines an operator's cycles (shapes, but no values): two operators with the
    /// same text take the same cycles.
    fn timing_key(&self) -> String {
        format!("{self:?}")
    }

    /// Returns the layer as a scheduled tensor expression; `None` if the plan is none of this layer.
    fn schedule(
        &self,
        plan: &Self::Plan,
        layer: &Layer,
        config: &HwConfig,
        constants: Constants,
    ) -> Option<LayerSchedule>;

    /// Adds the layer's instructions to the program.
    ///
    /// # Errors
    /// The schedule does not become instructions, or the driver rejects an instruction or a constant.
    fn emit(&self, plan: &Self::Plan, layer: &Layer, e: &mut Emit) -> Result<(), DriverError> {
        let missing = || DriverError::Rule { index: e.b.len(), what: "the operator has no schedule".into() };
        let schedule = self.schedule(plan, layer, e.config, e.constants()).ok_or_else(missing)?;
        scheduled::emit(e, layer, schedule)
    }
}

/// The result of reading a node.
pub enum Extracted<O> {
    /// The layer that begins at the node.
    Layer(Layer, O),
    /// The node is an alias of its operand's bytes, with this view.
    Recast(View),
}

/// Which layouts of its data an operator accepts.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutFreedom {
    /// Only the layouts that the graph operator prescribes.
    Fixed,
    /// Any layout, such as the one that the data already have.
    Any,
}

/// How a layer uses scratchpad inp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InpUse {
    /// It can read its first input from inp and write its output there, and its loads stay in the part that it is
    /// given.
    Kept(WindowBorder),
    /// Not at all.
    None,
    /// It uses all of inp, so no tensor can stay there during the layer.
    All,
}

/// Padding around the image of a layer's first input that its windows read.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowBorder {
    /// Rows above, columns to the left, rows below, columns to the right.
    pub sizes: [u32; 4],
    /// Value of padding.
    pub value: i8,
}

impl WindowBorder {
    /// The border for a window; `pads` are those of the graph operator.
    pub fn of_windows(window: WindowShape, pads: [usize; 4], value: i8, [input, output]: [View; 2]) -> WindowBorder {
        let WindowShape { kernel, strides, dilations } = window;
        let behind = |k: usize, out: usize, size: usize| {
            ((out - 1) * strides[k] + (kernel[k] - 1) * dilations[k] + 1).saturating_sub(pads[k] + size)
        };
        let sizes = [pads[0], pads[1], behind(0, output.h, input.h), behind(1, output.w, input.w)];
        WindowBorder { sizes: sizes.map(|n| n as u32), value }
    }
}

/// Taps of a window, in rows and columns.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowShape {
    pub kernel: [usize; 2],
    pub strides: [usize; 2],
    pub dilations: [usize; 2],
}
