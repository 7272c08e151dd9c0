//! Scheduled loop programs as programs of the accelerator.
//!
//! A tensor expression is lowered to loops, and a schedule says how the accelerator runs them: which buffers are in
//! which scratchpad (`cache_read`, `cache_write`, `compute_at`, `compact`), which loops an instruction replaces
//! (`tensorize`), and which loops overlap (`annotate … pipeline`). [`Mapping`] applies the steps, and [`Mapping::lower`]
//! turns the result into instructions:
//!
//! | in the loop program | becomes |
//! |---|---|
//! | a nest that copies a tensor to a scratchpad | loads; elements outside the tensor become padding |
//! | a nest that copies out or inp to a tensor | stores |
//! | a copy whose result shares the entries of what it reads | nothing |
//! | a copy of a layer's tensor that stays in inp | nothing |
//! | a nest of calls of an instruction | gemm or vector instructions with loops and micro-ops |
//! | the initial value of a reduction | nothing: the first product overwrites |
//! | a `pipeline` loop | the buffers within it get two slots, or as many as `slots` says, which its iterations use in turn |
//! | a copy to a buffer that is not compacted | loads of each element once, by the iteration that first needs it |
//! | a nest of calls with a `select` in an index | instructions for each part in which its conditions do not change |
//! | an `unrolled` loop | its iterations, each with instructions of its own |
//! | any other loop | its iterations, one after the other |
//!
//! Dependency tokens are not part of it; the driver derives them.
//!
//! | files | what they have |
//! |---|---|
//! | `intrinsics` | the instructions that `tensorize` can make of a nest |
//! | `needs`, `params` | what the program needs besides its tensors: descriptors, parameters, tables |
//! | `memory`, `scopes`, `overlays`, `reuse`, `pipelines` | which entries of a scratchpad each buffer has, and its slots |
//! | `lower`, `stages`, `choices`, `conditions`, `terms` | the walk through the loops: positions, software pipelines, and the parts of nests between which conditions change |
//! | `copies`, `windows` | loads and stores |
//! | `calls`, `lists`, `periods` | gemm and vector instructions, with loops and micro-ops |
//! | `lowered` | a program with tensors of its own, and how the host feeds it |
//! | `sized` | programs for sizes that are given late |

mod calls;
mod choices;
mod conditions;
mod copies;
mod error;
pub mod intrinsics;
mod lists;
pub mod lower;
mod lowered;
pub mod memory;
pub mod needs;
mod overlays;
mod params;
mod periods;
mod pipelines;
mod reuse;
mod scopes;
mod sized;
mod stages;
mod terms;
#[cfg(test)]
mod tests;
mod windows;

use tilewright_hw::config::HwConfig;

pub use error::LowerError;
pub use lowered::{HostInput, Lowered};
pub use memory::MemoryUse;
pub use sized::{SizedError, SizedMapping};

use crate::schedule::{Schedule, ScheduleError, Step};
use crate::te::{Name, NameMap, Program};
use crate::tir::{Function, lower as lower_loops};
use intrinsics::Instruction;
use needs::Marks;

/// A tensor expression with a schedule for a configuration.
///
/// ```
/// use tilewright_tensor::mapping::Mapping;
/// use tilewright_tensor::{schedule::text::parse_steps, te};
/// use tilewright_hw::HwConfig;
/// # fn main() -> Result<(), Box<dyn std::error::Error>> {
/// let program = te::text::parse(
///     "te add { input a: i8[8, 16] input b: i8[8, 16]
///        output c: i8[i in 8, j in 16] = i8(min(max(i32(a[i, j]) + i32(b[i, j]), -128i32), 127i32)) }",
/// )?;
/// let steps = "cache_read c a inp; cache_read c b out; cache_write c out; tensorize c.j add";
/// let mut mapping = Mapping::new(&HwConfig::load("1x16x16")?, &program)?;
/// for (_, step) in parse_steps(steps).map_err(|(line, e)| format!("line {line}: {e}"))? {
///     mapping.apply(step)?;
/// }
/// let lowered = mapping.lower()?;
/// assert!(lowered.program.disassemble(mapping.config()).unwrap().contains("vector op=add"));
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
pub struct Mapping {
    config: HwConfig,
    schedule: Schedule,
    /// The instruction of each intrinsic.
    instructions: NameMap<Instruction>,
}

impl Mapping {
    /// Starts with plain loops.
    ///
    /// # Errors
    /// The expression is not well formed.
    pub fn new(config: &HwConfig, program: &Program) -> Result<Mapping, LowerError> {
        let schedule = Schedule::new(lower_loops(program)?);
        Ok(Mapping { config: config.clone(), schedule, instructions: NameMap::default() })
    }

    /// See [`Schedule::without_checks`].
    pub fn without_checks(self) -> Mapping {
        Mapping { schedule: self.schedule.without_checks(), ..self }
    }

    /// See [`Schedule::with_checks`].
    pub fn with_checks(self) -> Option<Mapping> {
        Some(Mapping { schedule: self.schedule.with_checks()?, ..self })
    }

    /// Returns the configuration.
    pub fn config(&self) -> &HwConfig {
        &self.config
    }

    /// Returns the instruction of each intrinsic that the steps named.
    pub fn instructions(&self) -> &NameMap<Instruction> {
        &self.instructions
    }

    /// Returns the same as [`Mapping::instructions`], for a mapping that is needed no more.
    pub fn into_instructions(self) -> NameMap<Instruction> {
        self.instructions
    }

    /// Returns the loop program after the steps so far, with only those intrinsics that it calls.
    pub fn function(&self) -> Function {
        self.schedule.clone().into_function()
    }

    /// Returns the steps so far.
    pub fn trace(&self) -> &[Step] {
        self.schedule.trace()
    }

    /// Applies a step. `tensorize` finds the instruction by its name, such as `gemm` or `add`. Returns the names of the
    /// loops, blocks or buffers that the step creates.
    ///
    /// # Errors
    /// The step with the reason why it cannot be applied. The program is then unchanged.
    pub fn apply(&mut self, step: Step) -> Result<Vec<Name>, ScheduleError> {
        let Step::Tensorize { target, intrinsic } = &step else { return self.schedule.apply(step) };
        // `gemm_2` is another form of `gemm`.
        let form = intrinsic.rsplit_once('_').filter(|(_, number)| number.parse::<u32>().is_ok());
        let base = form.map_or(intrinsic.as_str(), |(base, _)| base);
        let fail = |reason: String| ScheduleError { step: step.clone(), reason };
        let Some(body) = self.schedule.function().body.find_loop(&target.into()) else {
            return Err(fail(format!("there is no loop {target}")));
        };
        let mut blocks = Vec::new();
        body.body.visit_blocks(&mut |_, block| blocks.push(block.clone()));
        let [block] = blocks.as_slice() else {
            return Err(fail(format!("loop {target} contains {} blocks; an instruction computes one", blocks.len())));
        };
        let guarded = terms::guarded(self.schedule.function(), block).map_err(&fail)?;
        let block = guarded.as_ref().unwrap_or(block);
        let list = intrinsics::candidates(&self.config, self.schedule.function(), block, base).map_err(&fail)?;
        let mut first = None;
        for candidate in list {
            let mut tried = self.clone();
            if guarded.is_some() {
                tried.schedule.replace(block);
            }
            let name = tried.declare(base, &candidate);
            match tried.schedule.apply(Step::Tensorize { target: target.clone(), intrinsic: name.to_string() }) {
                Ok(made) => {
                    *self = tried;
                    return Ok(made);
                }
                Err(e) => first = first.or(Some(e.reason)),
            }
        }
        Err(fail(first.unwrap_or_else(|| format!("no form of {base} fits the block"))))
    }

    /// Makes an intrinsic known and returns its name, which has a number if the name is taken by another form.
    fn declare(&mut self, base: &str, candidate: &intrinsics::Candidate) -> Name {
        let names = std::iter::once(Name::from(base)).chain((2..).map(|i| Name::from(format!("{base}_{i}"))));
        for name in names {
            let wanted = crate::tir::Intrinsic { name: name.clone(), ..candidate.intrinsic.clone() };
            match self.schedule.function().intrinsic(&name) {
                Some(there) if *there != wanted || self.instructions.get(&name) != Some(&candidate.instruction) => {}
                Some(_) => return name,
                None => {
                    self.schedule.declare(wanted);
                    self.instructions.insert(name.clone(), candidate.instruction.clone());
                    return name;
                }
            }
        }
        base.into()
    }

    /// Turns the loop program into instructions.
    ///
    /// # Errors
    /// A buffer that does not fit its scratchpad, a block that no instruction computes, or a copy that no load or store
    /// does, with what to change.
    pub fn lower(&self) -> Result<Lowered, LowerError> {
        lowered::lower(&self.config, &self.function(), &self.instructions, &self.marks())
    }

    /// Returns what the steps say about buffers that the loop program does not.
    pub fn marks(&self) -> Marks {
        let mut marks = Marks::default();
        for step in self.trace() {
            match step {
                Step::Compact { buffer } => _ = marks.compacted.insert(buffer.into()),
                Step::Slots { buffer, count } => _ = marks.slots.insert(buffer.into(), *count as u32),
                Step::Overlay { buffer, other } => marks.overlays.push((buffer.into(), other.into())),
                Step::Stage { block, number } => _ = marks.stages.insert(block.into(), *number as u32),
                _ => {}
            }
        }
        marks
    }
}
