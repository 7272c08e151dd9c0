//! Operators of two tensors as scheduled tensor expressions.

use super::op::{Other, Pairwise};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::pieces::operand_scopes;
use crate::codegen::accel::runs::Runs;
use crate::codegen::accel::scheduled::{LayerInput, LayerSchedule, template};
use crate::te::{Array, Builder, ops};
use tilewright_hw::config::HwConfig;

/// Returns an operator of two tensors in pieces of at most `count` entries.
pub fn schedule(pair: &Pairwise, count: u32, layer: &Layer, config: &HwConfig) -> Option<LayerSchedule> {
    let view = layer.output_view();
    let layout = view.layout(config);
    let per_channel = matches!(pair.b, Other::Channels | Other::ConstantChannels(_));
    // With one value per channel, the second operand is the same for all pixels of a block.
    let runs = match per_channel {
        true => Runs::of_blocks(&layout, config),
        false => Runs::of_bytes(layout.bytes(), config),
    };
    let mut b = Builder::new("pairwise");
    let a = runs.input(&mut b, "a");
    let other = match per_channel {
        true => runs.channels(&mut b, "b", layout.blocks()),
        false => runs.input(&mut b, "b"),
    };
    let op = pair.op.graph_op();
    let result = ops::build(&mut b, &op, &[a.tensor.clone(), other.tensor.clone()], &runs.shape())?;
    let output = runs.output(&mut b, &result);
    let second = match &pair.b {
        Other::Tensor | Other::Channels => LayerInput::Tensor(1),
        Other::Constant(v) => {
            let image = view.c * view.h * view.w;
            let at = |n, c, y, x| v.get(n * image + view.index(c, y, x)).copied().unwrap_or(0);
            LayerInput::Constant(Array::of_bytes(&other.shape, &layout.pack(0, at)))
        }
        Other::ConstantChannels(v) => {
            let mut values = v.clone();
            values.resize(layout.blocks() * layout.block, 0);
            LayerInput::Constant(Array::of_bytes(&other.shape, &values))
        }
    };
    let scopes = operand_scopes(config)?;
    let operands = [(&a, scopes[0]), (&other, scopes[1])];
    let steps = runs.steps(&result, count, &operands, pair.op.operation().name());
    Some(LayerSchedule {
        program: b.finish(&[output]),
        inputs: vec![LayerInput::Tensor(0), second],
        steps: template(&steps)?,
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::accel::kept::OnChip;
    use crate::codegen::accel::ops::pairwise::PairOp;
    use crate::codegen::accel::pieces::piece_entries;
    use crate::codegen::accel::scheduled::tests::check_layer;
    use crate::codegen::accel::view::View;
    use crate::graph::ValueId;
    use crate::graph::op::{BinaryKind, Layout};
    use tilewright_hw::num::{Qadd, QaddOperand, Requant, Rounding};

    fn functions() -> [PairOp; 4] {
        let operand = |zero_point, shift| QaddOperand { zero_point, multiplier: 1_518_500_250, shift };
        let (a, b, out) = (operand(-3, 0), operand(5, -1), operand(7, -19));
        let requant = Requant {
            bias: 0,
            multiplier: 1_400_000_000,
            shift: -4,
            zero_point: -7,
            lo: -128,
            hi: 100,
            mode: Rounding::Double,
        };
        [
            PairOp::Add(Qadd { a, b, out, left_shift: 20, lo: -128, hi: 90 }),
            PairOp::Mul { zero_points: [3, 0], requant },
            PairOp::plain(BinaryKind::Max).unwrap(),
            PairOp::plain(BinaryKind::Min).unwrap(),
        ]
    }

    /// Sizes for which the last entry and the last tile are full or not.
    #[test]
    fn schedules_compute_the_operator() {
        for name in ["1x16x16", "1x4x4", "1x8x16", "4x16x16"] {
            let config = HwConfig::load(name).unwrap();
            for (k, (c, h, w)) in [(16, 8, 8), (20, 7, 9), (3, 40, 37), (70, 1, 1)].into_iter().enumerate() {
                let view = View::new(Layout::Nhwc, 1 + k % 2, c, h, w);
                for (i, op) in functions().into_iter().enumerate() {
                    let constant: Vec<i8> = (0..view.elements()).map(|v| (v * 37 % 251) as u8 as i8).collect();
                    let others = [
                        Other::Tensor,
                        Other::Channels,
                        Other::Constant(constant.clone()),
                        Other::ConstantChannels(constant[..c].to_vec()),
                    ];
                    let b = others[(i + k) % 4].clone();
                    let inputs = vec![(ValueId(0), view), (ValueId(1), view)];
                    let (nodes, output) = (Vec::new(), (ValueId(2), view));
                    let layer =
                        Layer { nodes, name: "pair".into(), inputs, output, on_chip: OnChip::default(), given: None };
                    if !op.operation().is_built(&config) {
                        continue;
                    }
                    let count = piece_entries(op.operation(), &config).unwrap();
                    let schedule = schedule(&Pairwise { op, b }, count, &layer, &config).unwrap();
                    println!("{name} {view:?} {op:?}: {}", check_layer(&config, &schedule));
                }
            }
        }
    }
}
