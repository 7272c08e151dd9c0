//! Functions of each byte, by a table.

use crate::codegen::accel::emit::Constants;
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::operator::{AccelOperator, Extracted, InpUse, LayoutFreedom};
use crate::codegen::accel::pieces::{operand_scopes, piece_entries};
use crate::codegen::accel::reader::{Read, Reader};
use crate::codegen::accel::runs::Runs;
use crate::codegen::accel::scheduled::{LayerInput, LayerSchedule, template};
use crate::codegen::accel::space::{Decisions, Knob, Space};
use crate::codegen::accel::view::View;
use crate::codegen::accel::work::{UnitWork, beats, entries, overhead, simple_row};
use crate::graph::op::{self, Op};
use crate::graph::{Node, NodeId};
use crate::te::{Array, Builder, DType, ops};
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{TABLE_BYTES, VecOp};

/// A function of each byte.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Lookup {
    /// The function's values for -128 to 127.
    pub table: Vec<i8>,
}

/// The plan of a lookup.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct LookupPlan {
    /// Entries of a piece.
    pub entries: u32,
}

impl AccelOperator for Lookup {
    type Plan = LookupPlan;

    fn takes(op: &Op) -> Option<LayoutFreedom> {
        matches!(op, Op::Lookup(_)).then_some(LayoutFreedom::Any)
    }

    fn extract(reader: &Reader<'_>, id: NodeId, node: &Node) -> Read<Extracted<Lookup>> {
        let data = node.inputs[0];
        reader.int8(data)?;
        if reader.graph.constant(data).is_some() {
            return Err("its operand is a constant".into());
        }
        let table = reader.bytes(node.inputs[1]).map_err(|_| "its table is not constant")?.to_vec();
        let view = (reader.known)(data).unwrap_or_else(|| View::any(&reader.shape(data).unwrap_or_default()));
        Ok(Extracted::Layer(reader.layer(vec![id], vec![(data, view)], view)?, Lookup { table }))
    }

    fn plan(&self, _: &Layer, config: &HwConfig, _search: bool) -> Result<LookupPlan, String> {
        if 2 * config.table_entries() > config.param_depth {
            return Err(format!("its table does not fit half of param ({} entries)", config.param_depth));
        }
        piece_entries(VecOp::Lut, config).map(|entries| LookupPlan { entries })
    }

    fn space(&self, layer: &Layer, config: &HwConfig) -> Space {
        let most = piece_entries(VecOp::Lut, config).unwrap_or(0);
        Space::of(vec![Knob::size("entries", (most as usize).min(entries(layer.output_view(), config) as usize))])
    }

    fn decisions(&self, plan: &LookupPlan) -> Decisions {
        Decisions::new([("entries", (plan.entries as usize).into())])
    }

    fn plan_of(&self, decisions: &Decisions, layer: &Layer, config: &HwConfig) -> Result<LookupPlan, String> {
        let LookupPlan { entries } = self.plan(layer, config, false)?;
        Ok(LookupPlan { entries: decisions.size("entries", entries as usize)? as u32 })
    }

    fn cycles(&self, plan: &LookupPlan, layer: &Layer, config: &HwConfig) -> u64 {
        let output = layer.output_view();
        let (out, bytes) = (entries(output, config), output.layout(config).bytes() as u64);
        let tiles = out.div_ceil(u64::from(plan.entries).max(1));
        let work = UnitWork {
            tiles,
            insns: 3 * tiles,
            load: beats(bytes, config),
            vector: out * simple_row(config) + overhead::LOOKUP_PIECE * tiles,
            store: beats(bytes, config),
            ..UnitWork::default()
        };
        work.cycles(config)
    }

    fn describe(&self, plan: &LookupPlan, _: &Layer) -> String {
        format!("on the vector unit, {} entries at a time", plan.entries)
    }

    fn inp_use(&self, _: &Layer) -> InpUse {
        InpUse::All
    }

    fn timing_key(&self) -> String {
        String::new()
    }

    fn schedule(&self, plan: &LookupPlan, layer: &Layer, config: &HwConfig, _: Constants) -> Option<LayerSchedule> {
        let runs = Runs::of_bytes(layer.output_view().layout(config).bytes(), config);
        let mut b = Builder::new("lookup");
        let x = runs.input(&mut b, "x");
        let table = b.input("table", DType::I8, &[TABLE_BYTES as i64]);
        let result = ops::build(&mut b, &Op::Lookup(op::Lookup {}), &[x.tensor.clone(), table], &runs.shape())?;
        let output = runs.output(&mut b, &result);
        let scope = operand_scopes(config)?[0];
        let steps = format!(
            "cache_read {0} table param; {1}",
            result.name,
            runs.steps(&result, plan.entries, &[(&x, scope)], VecOp::Lut.name())
        );
        let table = LayerInput::Constant(Array::of_bytes(&[TABLE_BYTES as i64], &self.table));
        Some(LayerSchedule {
            program: b.finish(&[output]),
            inputs: vec![LayerInput::Tensor(0), table],
            steps: template(&steps)?,
        })
    }
}
