//! Which pipeline loop's iterations use the slots of a buffer in turn.

use crate::schedule::{bounds, private};
use crate::te::{Expr, Name, NameMap, NameSet};
use crate::tir::{Action, Function, LoopKind};

/// Returns the innermost pipeline loop that encloses all uses of each buffer, if no iteration needs what another left.
/// Buffers in `whole` keep their elements for all iterations.
pub fn pipelines(f: &Function, whole: &NameSet) -> NameMap<Name> {
    let mut loops: NameMap<Vec<Name>> = NameMap::default();
    f.body.visit_blocks(&mut |around, block| {
        let around: Vec<Name> = around.iter().filter(|l| l.kind == LoopKind::Pipeline).map(|l| l.var.clone()).collect();
        let mut used = |buffer: &Name| {
            let known = loops.entry(buffer.clone()).or_insert_with(|| around.clone());
            let common = known.iter().zip(&around).take_while(|(a, b)| a == b).count();
            known.truncate(common);
        };
        match &block.action {
            Action::Store { buffer, .. } => used(buffer),
            Action::Call { args, .. } => args.iter().for_each(|view| used(&view.buffer)),
        }
        block.each_expr(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load { buffer, .. } = e {
                    used(buffer);
                }
            });
        });
    });
    // A buffer that carries data from one iteration to the next needs the same entries in both.
    let bounds = bounds(f);
    let alone = |buffer: &Name, l: &Name| f.body.find_loop(l).is_some_and(|l| private(f, &l.body, buffer, &bounds));
    let innermost = |(buffer, loops): (Name, Vec<Name>)| {
        let found = loops.into_iter().next_back().filter(|l| alone(&buffer, l))?;
        Some((buffer, found))
    };
    loops.into_iter().filter(|(buffer, _)| !whole.contains(buffer)).filter_map(innermost).collect()
}
