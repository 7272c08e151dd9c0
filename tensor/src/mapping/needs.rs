//! What a scheduled program needs besides its tensors.

use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::VecSrc;
use tilewright_hw::layout::pack_descriptor;

use super::error::LowerError;
use super::intrinsics::{Instruction, VectorCall, called};
use super::overlays::overlays;
use super::params::{Packed, Taps, params, tables, taps};
use super::pipelines::pipelines;
use super::reuse::{reads_only_device_memory, reuses, writes};
use super::stages::Stages;
use crate::te::{Name, NameMap, NameSet};
use crate::tir::{Action, Function, Scope};

/// What the steps of a schedule say about buffers that the loop program does not.
#[derive(Debug, Default)]
pub struct Marks {
    /// Buffers that hold only what one iteration needs.
    pub compacted: NameSet,
    /// Number of slots of buffers, if it is not `SLOTS`.
    pub slots: NameMap<u32>,
    /// Buffers that take the entries of another one, in the order of the steps.
    pub overlays: Vec<(Name, Name)>,
    /// Stages of blocks in the software pipeline of their loop, if it is not 0.
    pub stages: NameMap<u32>,
}

/// Slots of a buffer whose loop is a pipeline: one is filled while the other is in use.
const SLOTS: u32 = 2;

/// What a scheduled program needs besides its tensors.
pub struct Needs {
    /// Buffers of param that share entries.
    pub packed: Vec<Packed>,
    /// The buffer whose entries a buffer of param shares.
    pub shares: NameMap<Name>,
    /// Tables in param, each with the input from which it is copied.
    pub tables: Vec<(Name, usize)>,
    /// Weights of depthwise convolutions in param.
    pub taps: Vec<Taps>,
    /// Scalars of vector instructions, each once.
    pub descriptors: Vec<Vec<u8>>,
    /// Pairs of buffers that should be in different banks.
    pub apart: Vec<[Name; 2]>,
    /// The innermost pipeline loop that encloses all uses of a buffer, if no iteration needs what another left.
    pub pipelines: NameMap<Name>,
    /// The buffer whose entries a result takes.
    pub reuses: NameMap<Name>,
    /// Buffers that hold all elements of their tensor, and are written only by loads: each element is loaded once.
    pub whole: NameSet,
    /// Number of slots of the buffers in `pipelines`.
    pub slots: NameMap<u32>,
    /// The software pipeline, if blocks have stages.
    pub stages: Option<Stages>,
}

impl Needs {
    /// Returns what a program needs.
    ///
    /// # Errors
    /// Biases, multipliers and shifts that cannot share entries of param.
    pub fn of(
        config: &HwConfig,
        f: &Function,
        instructions: &NameMap<Instruction>,
        marks: &Marks,
    ) -> Result<Needs, LowerError> {
        let packed = params(f, instructions)?;
        let shares = packed.iter().flat_map(|p| p.buffers[1..].iter().map(|b| (b.clone(), p.buffers[0].clone())));
        let shares: NameMap<Name> = shares.collect();
        let mut descriptors: Vec<Vec<u8>> = Vec::new();
        f.body.visit_blocks(&mut |_, block| {
            if let Some(Instruction::Vector(VectorCall { descriptor: Some(d), .. })) = called(block, instructions) {
                let bytes = pack_descriptor(config, d);
                if !descriptors.contains(&bytes) {
                    descriptors.push(bytes);
                }
            }
        });
        let whole = whole(f, &marks.compacted);
        let pipelines = pipelines(f, &whole);
        let slots = |buffer: &Name| marks.slots.get(buffer).copied().unwrap_or(SLOTS);
        let slots: NameMap<u32> = pipelines.keys().map(|buffer| (buffer.clone(), slots(buffer))).collect();
        if let Some(buffer) = marks.slots.keys().find(|buffer| !slots.contains_key(*buffer)) {
            let reason = "it has a number of slots, but no pipeline loop is around all its uses, or it holds all \
                          elements of its tensor";
            return Err(LowerError::Buffer { buffer: buffer.clone(), reason: reason.into() });
        }
        let mut reuses = reuses(f, instructions, &pipelines, &slots);
        overlays(f, &marks.overlays, &marks.compacted, &pipelines, &slots, &mut reuses)?;
        let mut apart = apart(f, instructions);
        for name in apart.iter_mut().flatten() {
            if let Some(root) = reuses.get(name) {
                *name = root.clone();
            }
        }
        let taps = taps(f, instructions)?;
        let tables = tables(f, &taps)?;
        let stages = Stages::of(f, instructions, &marks.stages, &pipelines, &slots, &whole, &reuses)?;
        Ok(Needs { packed, shares, tables, taps, descriptors, apart, pipelines, reuses, whole, slots, stages })
    }

    /// Whether the input of that number is copied to param.
    pub fn is_in_param(&self, input: usize) -> bool {
        self.packed.iter().any(|p| p.inputs.contains(&input))
            || self.tables.iter().any(|t| t.1 == input)
            || self.taps.iter().any(|t| t.input == input)
    }

    /// The scalars as they are loaded to param.
    pub fn scalars(&self) -> Vec<u8> {
        self.descriptors.concat()
    }

    /// Entries of param for the scalars.
    pub fn descriptor_entries(&self, config: &HwConfig) -> u32 {
        self.descriptors.len() as u32 * config.descriptor_entries()
    }
}

/// Returns the buffers of scratchpads that are not compacted and that only copies from device memory write.
fn whole(f: &Function, compacted: &NameSet) -> NameSet {
    let candidates = f.locals.iter().filter(|b| b.scope != Scope::Global && !compacted.contains(&b.name));
    let mut found: NameSet = candidates.map(|b| b.name.clone()).collect();
    f.body.visit_blocks(&mut |_, block| {
        if !reads_only_device_memory(f, block) {
            found.retain(|buffer| !writes(block, buffer));
        }
    });
    found
}

/// Returns the pairs of buffers that should be in different banks: those that a vector instruction reads at once, and
/// those of inp that gemm and the vector unit read.
fn apart(f: &Function, instructions: &NameMap<Instruction>) -> Vec<[Name; 2]> {
    let (mut pairs, mut products, mut others) = (Vec::new(), Vec::new(), Vec::new());
    f.body.visit_blocks(&mut |_, block| {
        let Action::Call { args, .. } = &block.action else { return };
        match called(block, instructions) {
            Some(Instruction::Gemm { .. }) => products.push(args[0].buffer.clone()),
            Some(Instruction::Vector(v)) => {
                let operands = [(v.a, v.params[1]), (v.b, v.params[2])];
                let named = |(source, param): (VecSrc, Option<usize>)| Some((source, args.get(param?)?.buffer.clone()));
                let operands: Vec<(VecSrc, Name)> = operands.into_iter().filter_map(named).collect();
                if let [(a, first), (b, second)] = &operands[..]
                    && a == b
                {
                    pairs.push([first.clone(), second.clone()]);
                }
                others.extend(operands.into_iter().filter(|(source, _)| *source == VecSrc::Inp).map(|(_, name)| name));
            }
            None => {}
        }
    });
    pairs.extend(products.iter().flat_map(|a| others.iter().map(|b| [a.clone(), b.clone()])));
    let mut known: Vec<[Name; 2]> = Vec::new();
    for pair in pairs {
        if pair[0] != pair[1] && !known.contains(&pair) {
            known.push(pair);
        }
    }
    known
}
