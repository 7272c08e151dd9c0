//! Reorders as scheduled tensor expressions: pieces are loaded to out and stored from there.

use super::op::{BlockLoop, Reorder};
use crate::codegen::accel::layer::Layer;
use crate::codegen::accel::limits::slots;
use crate::codegen::accel::scheduled::{LayerInput, LayerSchedule, template};
use crate::te::{Builder, DType, Expr};
use tilewright_hw::config::{HwConfig, Mem};

/// Returns a reorder in pieces of at most `room` blocks.
pub fn schedule(reorder: &Reorder, room: usize, layer: &Layer, config: &HwConfig) -> Option<LayerSchedule> {
    let block = config.block() as usize;
    let loops = reorder.whole_loops();
    let shape: Vec<i64> = loops.iter().map(|l| l.count).chain([block]).map(|n| n as i64).collect();
    let mut b = Builder::new("reorder");
    let all = layer.input_view().layout(config).bytes() / block;
    let x = b.input("x", DType::I8, &[all as i64, block as i64]);
    let blocks = b.compute("blocks", &shape, |i| {
        let step = |(at, l): (&Expr, &BlockLoop)| at.clone() * l.step as i64;
        let from = i.iter().zip(&loops).filter(|(_, l)| l.count > 1).map(step).reduce(|a, b| a + b);
        x.at(&[from.unwrap_or_else(|| Expr::int(0)), i[i.len() - 1].clone()])
    });
    let output = b.compute("output", &shape, |i| blocks.at(i));
    let (cut, most) = reorder.cut(room, block);
    let inside: usize = loops[cut + 1..].iter().map(|l| l.count).product();
    let pieces = loops[..cut].iter().map(|l| l.count).product::<usize>() * loops[cut].count.div_ceil(most);
    let entries = most * inside * block / config.block_out as usize;
    let slots = slots(config.entries(Mem::Out) as usize, entries, pieces);
    let mut steps = format!(
        "set_scope blocks out; split output.i{cut} {most}; compute_at blocks output.i{cut}.0; compact blocks; \
         slots blocks {slots}; annotate output.i{cut}.0 pipeline; "
    );
    for k in 0..cut {
        steps += &format!("annotate output.i{k} pipeline; ");
    }
    Some(LayerSchedule { program: b.finish(&[output]), inputs: vec![LayerInput::Tensor(0)], steps: template(&steps)? })
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::codegen::accel::kept::OnChip;
    use crate::codegen::accel::scheduled::tests::check_layer;
    use crate::codegen::accel::view::View;
    use crate::graph::ValueId;
    use crate::graph::op::Layout;

    /// Pieces of all sizes, and the last one is smaller.
    #[test]
    fn schedules_move_the_blocks() {
        for name in ["1x16x16", "1x8x16", "1x4x2"] {
            let config = HwConfig::load(name).unwrap();
            let view = View::new(Layout::Nhwc, 1, config.block() as usize, 1, 60);
            for (counts, steps) in
                [([3, 4, 5], [1, 15, 3]), ([5, 3, 4], [1, 20, 5]), ([2, 30, 1], [30, 1, 1]), ([60, 1, 1], [1, 1, 1])]
            {
                let loops = counts.iter().zip(steps).map(|(&count, step)| BlockLoop { count, step });
                let reorder = Reorder { loops: loops.filter(|l| l.count > 1).collect() };
                let layer = Layer {
                    nodes: Vec::new(),
                    name: "reorder".into(),
                    inputs: vec![(ValueId(0), view)],
                    output: (ValueId(1), view),
                    on_chip: OnChip::default(),
                    given: None,
                };
                for room in [1, 2, 7, 16, 100] {
                    check_layer(&config, &schedule(&reorder, room, &layer, &config).unwrap());
                }
            }
        }
    }
}
