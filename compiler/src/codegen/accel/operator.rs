//! What an operator of the accelerator is to everything around it.

use super::emit::Emit;
use super::layer::Layer;
use super::reader::{Read, Reader};
use super::view::View;
use crate::graph::{Node, NodeId, Op, ValueId};
use std::fmt::Debug;
use tilewright_driver::DriverError;
use tilewright_hw::config::HwConfig;

/// An operator of the accelerator: which graph nodes it takes, how it is cut into tiles, what that costs, and the
/// instructions for it. `ops/mod.rs` lists all operators.
///
/// Reasons for refusals are shown to people by `--explain` and start with a small letter, like error messages.
pub trait AccelOperator: Clone + Debug + PartialEq {
    /// How a layer of this operator is cut into tiles.
    type Plan: Clone + Debug + PartialEq;

    /// Whether layers of this operator begin at nodes of this kind, and which layouts of their data they accept. Each graph
    /// operator belongs to one operator of the accelerator at most.
    fn takes(op: &Op) -> Option<LayoutFreedom>;

    /// Reads the layer that begins at a node that [`AccelOperator::takes`] accepts.
    ///
    /// # Errors
    /// The reason why the accelerator cannot compute it.
    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<Self>>;

    /// Views in which a node that [`AccelOperator::takes`] accepts would read one of its operands, the preferred ones first.
    /// A producer that is free to choose a layout looks here.
    fn preferred_views(_reader: &Reader<'_>, _node: &Node, _operand: ValueId) -> Vec<View> {
        Vec::new()
    }

    /// An equivalent layer that reads its input in another form, which only the host can write; none if there is no such form
    /// or it is no better.
    fn host_form(&self, _layer: &Layer, _config: &HwConfig) -> Option<(Layer, Self)> {
        None
    }

    /// The plan of the fewest estimated cycles if `search`, else the first one that fits.
    ///
    /// # Errors
    /// The reason why none fits, with sizes.
    fn plan(&self, layer: &Layer, config: &HwConfig, search: bool) -> Result<Self::Plan, String>;

    /// At most `most` plans that are worth an exact comparison by the cycle model; empty if there is only one way.
    fn plans(&self, _layer: &Layer, _config: &HwConfig, _most: usize) -> Vec<Self::Plan> {
        Vec::new()
    }

    /// Estimated cycles of a planned layer by itself, from device memory to device memory; tensors that stay in inp are
    /// neither loaded nor stored.
    fn cycles(&self, plan: &Self::Plan, layer: &Layer, config: &HwConfig) -> u64;

    /// For `--explain`: how the layer runs.
    fn describe(&self, plan: &Self::Plan, layer: &Layer) -> String;

    /// What the layer does with the scratchpad inp.
    fn inp_use(&self, layer: &Layer) -> InpUse;

    /// Text that is the same for two operators if a program takes the same cycles for both: shapes, but no values.
    fn timing_key(&self) -> String {
        format!("{self:?}")
    }

    /// Adds the layer's instructions to the program.
    ///
    /// # Errors
    /// The driver refuses an instruction or a constant.
    fn emit(&self, plan: &Self::Plan, layer: &Layer, e: &mut Emit) -> Result<(), DriverError>;
}

/// What a node is to an operator.
pub enum Extracted<O> {
    /// The first node of a layer.
    Layer(Layer, O),
    /// An alias of its operand's bytes, with another view.
    Recast(View),
}

/// LayoutFreedom in which an operator accepts its data.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum LayoutFreedom {
    /// Those that the graph's operator asks for.
    Fixed,
    /// Any, such as that in which the data already are.
    Any,
}

/// What a layer does with the scratchpad inp.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum InpUse {
    /// It can read its first input from inp and leave its output there, and keeps its loads to the part that it is given.
    Kept(WindowBorder),
    /// Nothing.
    None,
    /// It uses all of inp in its own way, so no tensor can stay there meanwhile.
    All,
}

/// Padding that a layer's windows reach around the image of its first input.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct WindowBorder {
    /// Rows above, columns to the left, rows below, columns to the right.
    pub sizes: [u32; 4],
    /// Value of padding.
    pub value: i8,
}

impl WindowBorder {
    /// The border for windows of a kernel; `pads` are those of the graph's operator.
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
