//! Scheduled loop programs of layers, ready to be lowered.
//!
//! Plans of a layer are compared by building the layer and its neighbors again and again. A schedule that was applied
//! before is found here.

use std::cell::RefCell;
use std::collections::HashMap;
use std::rc::Rc;

use tilewright_hw::config::HwConfig;

use super::LowerError;
use super::held::held;
use super::layer_schedule::LayerSchedule;
use crate::codegen::accel::kept::OnChip;
use crate::te::NameMap;
use crate::tir::Function;
use tilewright_tensor::mapping::intrinsics::Instruction;
use tilewright_tensor::mapping::memory::{self, Place};
use tilewright_tensor::mapping::needs::Needs;

/// Most loop programs that a thread keeps.
const MOST: usize = 512;

/// A loop program with what lowering needs to know about it.
pub struct Prepared {
    /// The loop program after all steps.
    pub function: Function,
    /// The instruction of each intrinsic.
    pub instructions: NameMap<Instruction>,
    /// What it needs besides its tensors.
    pub needs: Needs,
    /// The places of its buffers if no layer is before it.
    pub places: NameMap<Place>,
}

thread_local! {
    static KNOWN: RefCell<HashMap<String, Rc<Prepared>>> = RefCell::default();
}

/// Applies the steps of a schedule, which an operator or a person wrote, and places its buffers. `on_chip` says which
/// tensors of the layer stay in inp.
///
/// # Errors
/// The first step that cannot be applied, or a buffer that does not fit.
pub fn prepare(
    config: &HwConfig,
    schedule: &LayerSchedule,
    on_chip: &OnChip,
    by_operator: bool,
) -> Result<Rc<Prepared>, LowerError> {
    let key = format!("{:x} {on_chip:?} {}", config.hash(), schedule.file());
    if let Some(found) = KNOWN.with_borrow(|known| known.get(&key).cloned()) {
        return Ok(found);
    }
    let mapping = if by_operator { schedule.mapping_of_operator(config) } else { schedule.mapping(config) }?;
    let function = mapping.function();
    let needs = Needs::of(config, &function, mapping.instructions(), &mapping.marks())?;
    let held = held(config, &function, schedule, on_chip)?;
    let places = memory::places(config, &function, &needs, needs.descriptor_entries(config), &held)?;
    let made = Rc::new(Prepared { function, instructions: mapping.into_instructions(), needs, places });
    KNOWN.with_borrow_mut(|known| {
        if known.len() >= MOST {
            known.clear();
        }
        known.insert(key, Rc::clone(&made));
    });
    Ok(made)
}
