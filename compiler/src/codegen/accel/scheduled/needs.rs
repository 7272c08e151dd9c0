//! What a scheduled program needs besides its tensors.

use std::collections::HashMap;

use tilewright_hw::config::HwConfig;
use tilewright_hw::layout::pack_descriptor;

use super::error::LowerError;
use super::intrinsics::{Instruction, VectorCall, called};
use super::params::{Packed, params, tables};
use super::pipelines::pipelines;
use super::reuse::reuses;
use crate::te::Name;
use crate::tir::{Action, Function};

/// What a scheduled program needs besides its tensors.
pub struct Needs {
    /// Buffers of param that share entries.
    pub packed: Vec<Packed>,
    /// The buffer whose entries a buffer of param shares.
    pub shares: HashMap<Name, Name>,
    /// Tables in param, each with the input from which it is copied.
    pub tables: Vec<(Name, usize)>,
    /// Scalars of vector instructions, each once.
    pub descriptors: Vec<Vec<u8>>,
    /// Pairs of buffers that should be in different banks.
    pub apart: Vec<[Name; 2]>,
    /// The innermost pipeline loop that encloses all uses of a buffer, if no iteration needs what another left.
    pub pipelines: HashMap<Name, Name>,
    /// The buffer whose entries a result takes.
    pub reuses: HashMap<Name, Name>,
}

impl Needs {
    /// Returns what a program needs.
    ///
    /// # Errors
    /// Biases, multipliers and shifts that cannot share entries of param.
    pub fn of(config: &HwConfig, f: &Function, instructions: &HashMap<Name, Instruction>) -> Result<Needs, LowerError> {
        let packed = params(f, instructions)?;
        let shares = packed.iter().flat_map(|p| p.buffers[1..].iter().map(|b| (b.clone(), p.buffers[0].clone())));
        let shares: HashMap<Name, Name> = shares.collect();
        let mut descriptors: Vec<Vec<u8>> = Vec::new();
        f.body.visit_blocks(&mut |_, block| {
            if let Some(Instruction::Vector(VectorCall { descriptor: Some(d), .. })) = called(block, instructions) {
                let bytes = pack_descriptor(config, d);
                if !descriptors.contains(&bytes) {
                    descriptors.push(bytes);
                }
            }
        });
        let pipelines = pipelines(f);
        let reuses = reuses(f, instructions, &pipelines);
        let mut apart = apart(f, instructions);
        for name in apart.iter_mut().flatten() {
            if let Some(root) = reuses.get(name) {
                *name = root.clone();
            }
        }
        Ok(Needs { packed, shares, tables: tables(f)?, descriptors, apart, pipelines, reuses })
    }

    /// Whether the input of that number is copied to param.
    pub fn is_in_param(&self, input: usize) -> bool {
        self.packed.iter().any(|p| p.inputs.contains(&input)) || self.tables.iter().any(|t| t.1 == input)
    }

    /// Entries of param for the scalars.
    pub fn descriptor_entries(&self, config: &HwConfig) -> u32 {
        self.descriptors.len() as u32 * config.descriptor_entries()
    }
}

/// Returns the pairs of buffers that a vector instruction reads at once, which must not be in one bank.
fn apart(f: &Function, instructions: &HashMap<Name, Instruction>) -> Vec<[Name; 2]> {
    let mut pairs = Vec::new();
    f.body.visit_blocks(&mut |_, block| {
        if let (Action::Call { args, .. }, Some(Instruction::Vector(v))) = (&block.action, called(block, instructions))
            && let [_, Some(a), Some(b)] = v.params
            && v.a == v.b
        {
            let pair = [&args[a], &args[b]].map(|view| view.buffer.clone());
            if pair[0] != pair[1] && !pairs.contains(&pair) {
                pairs.push(pair);
            }
        }
    });
    pairs
}
