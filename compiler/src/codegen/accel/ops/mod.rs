//! The operators of the accelerator. To add one, write a file here that implements [`AccelOperator`] and add a line to
//! the list below; `docs/add-an-accelerated-operator.md` shows an example.

pub mod chain;
pub mod conv;
pub mod conv_transpose;
pub mod copy;
pub mod lookup;
pub mod matmul;
pub mod pairwise;
pub mod pool;
pub mod reorder;

use crate::codegen::accel::emit::Emit;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::check_strides;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::space::{Decisions, Space};
use crate::codegen::accel::view::View;
use crate::graph::{DType, Graph, NodeId, Op, ValueId};
use std::sync::Arc;
use tilewright_driver::DriverError;
use tilewright_hw::HwConfig;

macro_rules! accel_operators {
    ($($(#[$doc:meta])* $name:ident: $file:ident,)*) => {
        /// The operator of a layer.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Operator {
            $($(#[$doc])* $name(Arc<$file::$name>),)*
        }

        /// The operator of a layer with its plan.
        #[derive(Debug, Clone, PartialEq)]
        pub enum Planned {
            $($(#[$doc])* $name(Arc<$file::$name>, <$file::$name as AccelOperator>::Plan),)*
        }

        $(impl From<$file::$name> for Operator {
            fn from(operator: $file::$name) -> Operator {
                Operator::$name(Arc::new(operator))
            }
        })*

        /// Which layouts the accelerator accepts for the data of this kind of node; `None` if it has no operator for
        /// it.
        pub fn layouts(op: &Op) -> Option<LayoutFreedom> {
            None$(.or_else(|| $file::$name::takes(op)))*
        }

        /// Reads the layer that begins at a node.
        fn read(reader: &Reader<'_>, id: NodeId) -> Read<NodeRole> {
            let node = reader.graph.node(id);
            $(if $file::$name::takes(&node.op).is_some() {
                return Ok(match $file::$name::extract(reader, id, node)? {
                    Extracted::Layer(layer, operator) => NodeRole::Layer(Box::new(layer), operator.into()),
                    Extracted::Recast(view) => NodeRole::Recast(view),
                });
            })*
            Err(format!("the accelerator has no {}", node.op.name()))
        }

        /// The views in which a node would read one of its operands.
        fn preferred_views(reader: &Reader<'_>, id: NodeId, operand: ValueId) -> Vec<View> {
            let node = reader.graph.node(id);
            $(if $file::$name::takes(&node.op).is_some() {
                return $file::$name::preferred_views(reader, node, operand);
            })*
            Vec::new()
        }

        impl Operator {
            /// See `AccelOperator::host_form`.
            pub fn host_form(&self, layer: &Layer, config: &HwConfig) -> Option<(Layer, Operator)> {
                match self {
                    $(Operator::$name(o) => o.host_form(layer, config).map(|(layer, o)| (layer, o.into())),)*
                }
            }

            /// Returns the plan with the fewest estimated cycles if `search`, otherwise the first plan that fits.
            ///
            /// # Errors
            /// The reason why no plan fits, with sizes.
            pub fn plan(&self, layer: &Layer, config: &HwConfig, search: bool) -> Result<Planned, String> {
                check_strides(layer, config)?;
                match self {
                    $(Operator::$name(o) => Ok(Planned::$name(Arc::clone(o), o.plan(layer, config, search)?)),)*
                }
            }

            /// See `AccelOperator::inp_use`.
            pub fn inp_use(&self, layer: &Layer) -> InpUse {
                match self {
                    $(Operator::$name(o) => o.inp_use(layer),)*
                }
            }
        }

        impl Planned {
            /// The operator without its plan.
            pub fn operator(&self) -> Operator {
                match self {
                    $(Planned::$name(o, _) => Operator::$name(Arc::clone(o)),)*
                }
            }

            /// Returns about `most` plans that are worth an exact comparison by the cycle model; empty if there is no
            /// choice.
            pub fn alternatives(&self, layer: &Layer, config: &HwConfig, most: usize) -> Vec<Planned> {
                if check_strides(layer, config).is_err() {
                    return Vec::new();
                }
                match self {
                    $(Planned::$name(o, _) => {
                        let plans = o.plans(layer, config, most).into_iter();
                        plans.map(|plan| Planned::$name(Arc::clone(o), plan)).collect()
                    })*
                }
            }

            /// See `AccelOperator::space`.
            pub fn space(&self, layer: &Layer, config: &HwConfig) -> Space {
                match self {
                    $(Planned::$name(o, _) => o.space(layer, config),)*
                }
            }

            /// See `AccelOperator::decisions`.
            pub fn decisions(&self) -> Decisions {
                match self {
                    $(Planned::$name(o, plan) => o.decisions(plan),)*
                }
            }

            /// Returns the same operator with the plan of other decisions.
            ///
            /// # Errors
            /// The reason why the plan does not fit, or which decision is missing, wrong or unknown.
            pub fn with(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<Planned, String> {
                check_strides(layer, config)?;
                let planned = match self {
                    $(Planned::$name(o, _) => {
                        let plan = o.plan_of(decisions, layer, config)?;
                        Planned::$name(Arc::clone(o), plan)
                    })*
                };
                match planned.decisions() {
                    read if read == *decisions => Ok(planned),
                    read => Err(format!("the decisions are {decisions}, but the plan reads only {read}")),
                }
            }

            /// Returns the estimated cycles of the layer by itself, from device memory to device memory. Tensors that
            /// stay in inp are neither loaded nor stored.
            pub fn cycles(&self, layer: &Layer, config: &HwConfig) -> u64 {
                match self {
                    $(Planned::$name(o, plan) => o.cycles(plan, layer, config),)*
                }
            }

            /// Describes for `--explain` how the layer runs.
            pub fn describe(&self, layer: &Layer) -> String {
                match self {
                    $(Planned::$name(o, plan) => o.describe(plan, layer),)*
                }
            }

            /// Returns a text with all that determines the cycles of a layer, apart from its views and its plan. See
            /// `AccelOperator::timing_key`.
            pub fn workload(&self) -> String {
                match self {
                    $(Planned::$name(o, _) => format!("{} {};", stringify!($name), o.timing_key()),)*
                }
            }

            /// Adds the layer's instructions to the program.
            pub(super) fn emit(&self, layer: &Layer, e: &mut Emit) -> Result<(), DriverError> {
                match self {
                    $(Planned::$name(o, plan) => o.emit(plan, layer, e),)*
                }
            }
        }
    };
}

accel_operators! {
    /// A product with weights.
    Conv: conv,
    /// A chain of convolutions in strips.
    Chain: chain,
    /// A transposed convolution.
    ConvTranspose: conv_transpose,
    /// A pooling, or another operator that works channel by channel.
    Pool: pool,
    /// A product of two activations.
    MatMul: matmul,
    /// An element-wise operator of two tensors.
    Pairwise: pairwise,
    /// A function of each byte, by a table.
    Lookup: lookup,
    /// Parts of tensors put together.
    Copy: copy,
    /// Blocks in another order.
    Reorder: reorder,
}

/// What the accelerator can do with a node.
#[derive(Debug, Clone, PartialEq)]
pub enum NodeRole {
    /// A layer begins at the node.
    Layer(Box<Layer>, Operator),
    /// The node is an alias of its operand with another shape.
    Alias,
    /// The node is an alias of its operand's bytes with another view.
    Recast(View),
    /// The accelerator cannot compute the node, for this reason.
    Refused(String),
}

/// Reads the layer that begins at a node.
///
/// `known` gives the view in which a value is in device memory, or `None`. `block` is the number of channels per block
/// of the layout there.
pub fn extract(graph: &Graph, id: NodeId, known: &dyn Fn(ValueId) -> Option<View>, block: usize) -> NodeRole {
    let node = graph.node(id);
    match &node.op {
        Op::Reshape(_) if graph.ty(node.output()).dtype == DType::I8 => return NodeRole::Alias,
        Op::Requantize(_) => return NodeRole::Refused("the accelerator does not compute its 32-bit sums".into()),
        _ => {}
    }
    let reader = Reader { graph, users: graph.users(), known, block, preferred: &preferred_views };
    read(&reader, id).unwrap_or_else(NodeRole::Refused)
}
