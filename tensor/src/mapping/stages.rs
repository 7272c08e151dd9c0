//! Software pipelines: loops whose blocks run in stages.
//!
//! In a loop with stages, the blocks of stage 1 run one iteration later than those of stage 0, and so on. In each step,
//! later stages come first, so a block of a later stage has read its data before a block of an earlier stage writes those
//! of a later iteration. When the loop ends, the later stages of its last iterations are left. If the loop is run again,
//! they run together with the first iterations of that run.

use std::collections::HashSet;

use tilewright_hw::config::Mem;
use tilewright_hw::isa::Unit;

use super::error::LowerError;
use super::intrinsics::{Instruction, called};
use super::reuse::writes;
use super::scopes::mem;
use crate::schedule::accesses_in;
use crate::te::{Name, NameMap, NameSet};
use crate::tir::{Action, For, Function, LoopKind, Stmt};

/// The stages of a loop.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Stages {
    /// The loop.
    pub pipeline: Name,
    /// The stage of each statement of its body.
    pub of_statements: Vec<u32>,
    /// Whether its last iterations can end while it is already run again.
    pub overlaps: bool,
    /// What the array and the vector unit do in each stage.
    pub calls: Vec<StagedCall>,
}

/// A use of a buffer by an instruction in a stage: of inp what is read, of other memories also what is written.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct StagedCall {
    /// The buffer.
    pub buffer: Name,
    /// Its memory.
    pub mem: Mem,
    /// The unit.
    pub unit: Unit,
    /// The stage.
    pub stage: u32,
}

impl Stages {
    /// The last stage.
    pub fn last(&self) -> u32 {
        self.of_statements.iter().copied().max().unwrap_or(0)
    }

    /// Returns the stages of a function's blocks; `None` if no block has one.
    ///
    /// # Errors
    /// The blocks with stages are not in one pipeline loop, a statement has two stages, or a block would use a buffer
    /// that another stage writes at the wrong time.
    pub fn of(
        f: &Function,
        instructions: &NameMap<Instruction>,
        marks: &NameMap<u32>,
        pipelines: &NameMap<Name>,
        slots: &NameMap<u32>,
        whole: &NameSet,
        reuses: &NameMap<Name>,
    ) -> Result<Option<Stages>, LowerError> {
        let Some(some) = marks.keys().min() else { return Ok(None) };
        let refuse = |block: &Name, reason: String| LowerError::Block { block: block.clone(), reason };
        // The innermost pipeline loop around all marked blocks.
        let mut around: Option<Vec<Name>> = None;
        f.body.visit_blocks(&mut |loops, block| {
            if !marks.contains_key(&block.name) {
                return;
            }
            let own: Vec<Name> = loops.iter().filter(|l| l.kind == LoopKind::Pipeline).map(|l| l.var.clone()).collect();
            let common = match &around {
                None => own,
                Some(known) => known.iter().zip(&own).take_while(|(a, b)| a == b).map(|(a, _)| a.clone()).collect(),
            };
            around = Some(common);
        });
        let found = around.and_then(|loops| loops.last().cloned()).and_then(|var| f.body.find_loop(&var));
        let Some(pipeline) = found else {
            return Err(refuse(some, "the blocks with stages have no pipeline loop around all of them".into()));
        };
        let statements = match &*pipeline.body {
            Stmt::Seq(list) => list.iter().collect(),
            other => vec![other],
        };
        let mut of_statements = Vec::new();
        let mut used: NameMap<[u32; 2]> = NameMap::default();
        let mut written: NameMap<u32> = NameMap::default();
        for statement in statements {
            let mut stages: Vec<(Name, u32)> = Vec::new();
            statement.visit_blocks(&mut |_, block| {
                stages.push((block.name.clone(), marks.get(&block.name).copied().unwrap_or(0)));
            });
            let stage = stages.first().map_or(0, |s| s.1);
            if let Some((block, other)) = stages.iter().find(|s| s.1 != stage) {
                return Err(refuse(
                    block,
                    format!("it is in stage {other}, but in one nest with {} in stage {stage}", stages[0].0),
                ));
            }
            of_statements.push(stage);
            for access in accesses_in(f, statement) {
                let buffer = reuses.get(&access.buffer).unwrap_or(&access.buffer).clone();
                if let Some(&writer) = written.get(&buffer)
                    && writer > stage
                {
                    let reason = format!("stage {stage} uses {buffer} before stage {writer} has written it");
                    return Err(refuse(&access.block, reason));
                }
                let range = used.entry(buffer.clone()).or_insert([stage; 2]);
                *range = [range[0].min(stage), range[1].max(stage)];
                if access.writes {
                    written.insert(buffer, stage);
                }
            }
        }
        for (buffer, [first, last]) in &used {
            if first == last || !written.contains_key(buffer) {
                continue;
            }
            let there = match pipelines.get(buffer) {
                Some(l) if *l == pipeline.var => slots.get(buffer).copied().unwrap_or(1),
                _ if whole.contains(buffer) => u32::MAX,
                _ => 0,
            };
            if there < last - first {
                let reason = format!(
                    "it is used from stage {first} to stage {last} of {}, so it needs {} slots, each for one iteration; it has {}",
                    pipeline.var,
                    last - first,
                    there.max(1)
                );
                return Err(LowerError::Buffer { buffer: buffer.clone(), reason });
            }
        }
        let overlaps = overlaps(f, pipeline, &used);
        let mut calls = Vec::new();
        pipeline.body.visit_blocks(&mut |_, block| {
            let Action::Call { args, .. } = &block.action else { return };
            let unit = match called(block, instructions) {
                Some(Instruction::Gemm { .. }) => Unit::Gemm,
                Some(Instruction::Vector(_)) => Unit::Vector,
                None => return,
            };
            let stage = marks.get(&block.name).copied().unwrap_or(0);
            for view in args {
                let Some(mem) = f.buffer(&view.buffer).and_then(|b| mem(b.scope)) else { continue };
                if mem != Mem::Inp || !writes(block, &view.buffer) {
                    let buffer = reuses.get(&view.buffer).unwrap_or(&view.buffer).clone();
                    calls.push(StagedCall { buffer, mem, unit, stage });
                }
            }
        });
        Ok(Some(Stages { pipeline: pipeline.var.clone(), of_statements, overlaps, calls }))
    }
}

/// Whether nothing that runs between two runs of the loop writes what its stages use, or reads what they write.
fn overlaps(f: &Function, pipeline: &For, used: &NameMap<[u32; 2]>) -> bool {
    let late: HashSet<&Name> = used.iter().filter(|(_, stages)| stages[1] > 0).map(|(name, _)| name).collect();
    let mut around: Vec<Name> = Vec::new();
    f.body.visit_blocks(&mut |loops, _| {
        if let Some(at) = loops.iter().position(|l| l.var == pipeline.var) {
            around = loops[..at].iter().map(|l| l.var.clone()).collect();
        }
    });
    let Some(outermost) = around.first().and_then(|var| f.body.find_loop(var)) else { return true };
    let all = accesses_in(f, &Stmt::For(outermost.clone()));
    let inside = accesses_in(f, &Stmt::For(pipeline.clone()));
    let outside = all.iter().filter(|a| !inside.iter().any(|b| a.block == b.block));
    let mut outside = outside.filter(|a| late.contains(&a.buffer));
    outside.next().is_none()
}
