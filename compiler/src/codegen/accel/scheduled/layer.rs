//! Adds the instructions of layers that are scheduled tensor expressions.

use tilewright_driver::{DriverError, Role};
use tilewright_hw::config::Mem;
use tilewright_hw::isa::PARAM_ROWS;

use super::LowerError;
use super::held::kept_input;
use super::layer_schedule::{LayerInput, LayerSchedule};
use super::prepared::{Prepared, prepare};
use crate::codegen::accel::emit::Emit;
use crate::codegen::accel::kept_border::BorderClip;
use crate::codegen::accel::layer::Layer;
use crate::te::{Array, DType, NameMap, NameSet};
use crate::tir::{Function, Scope};
use tilewright_tensor::mapping::HostInput;
use tilewright_tensor::mapping::lower::{Address, Done, Lower, OnceSummed};
use tilewright_tensor::mapping::memory::Place;
use tilewright_tensor::mapping::needs::Needs;

/// Adds a layer's instructions to the program. If a person gave the layer a schedule, its steps replace the operator's.
///
/// # Errors
/// Why the schedule cannot become instructions, or the driver refuses one.
pub fn emit(e: &mut Emit, layer: &Layer, schedule: LayerSchedule) -> Result<(), DriverError> {
    let index = e.b.len();
    let made = schedule.with(layer.given.as_deref()).and_then(|schedule| {
        lowered(e, layer, &schedule)?;
        Ok(schedule)
    });
    match made {
        Ok(schedule) => e.keep_schedule(schedule),
        Err(LowerError::Driver(error) | LowerError::Instruction { source: error, .. }) => return Err(error),
        Err(other) => return Err(DriverError::Rule { index, what: other.to_string() }),
    }
    Ok(())
}

fn lowered(e: &mut Emit, layer: &Layer, schedule: &LayerSchedule) -> Result<(), LowerError> {
    let config = e.config;
    let prepared = prepare(config, schedule, &layer.on_chip, layer.given.is_none())?;
    let Prepared { function, instructions, needs, places } = &*prepared;
    let mut border = BorderClip::of(e, layer)?;
    // The vector unit is idle while the array computes the first sums.
    if let (Some(clip), Some(acc)) = (border, e.summed) {
        clip.write(&mut e.b, acc)?;
        border = None;
    }
    let mut places = places.clone();
    let first = after_the_layer_before(e, layer, needs, &mut places, needs.descriptor_entries(config));
    let on_chip = on_chip(layer, schedule, function);
    let (tensors, scalars) = addresses(e, layer, schedule, function, needs, &on_chip)?;
    let mut lower = Lower::new(config, function, instructions, &mut e.b, needs, places.clone(), tensors);
    lower.on_chip = on_chip;
    lower.once_summed = border.map(|border| -> OnceSummed { Box::new(move |b, acc| border.write(b, acc)) });
    let done = lower.run(first, scalars)?;
    e.summed = done.summed.max(e.summed);
    before_the_next_layer(e, &places, &done);
    Ok(())
}

/// Lets the weights of the next layer begin behind those of the last iteration.
fn before_the_next_layer(e: &mut Emit, places: &NameMap<Place>, done: &Done) {
    let weights = places.iter().filter(|(_, place)| place.mem == Mem::Wgt);
    let ends = weights.filter_map(|(name, place)| Some(done.last.get(name)? + place.entries));
    // The order of names changes from run to run.
    if let Some(end) = ends.max() {
        e.wgt.resume(end);
    }
}

/// Returns the tensors of a layer's expression that are not in device memory.
fn on_chip(layer: &Layer, schedule: &LayerSchedule, f: &Function) -> NameSet {
    let input = kept_input(schedule, &layer.on_chip).and_then(|i| f.inputs().get(i));
    let outputs = f.output_buffers().iter().filter(|_| layer.on_chip.hides_output());
    input.into_iter().chain(outputs).map(|b| b.name.clone()).collect()
}

/// Moves the buffers behind those of the layer before, so that the end of that layer and the beginning of this one can
/// overlap. Returns the first entry of param for `scalars` entries of scalars.
fn after_the_layer_before(
    e: &mut Emit,
    layer: &Layer,
    needs: &Needs,
    places: &mut NameMap<Place>,
    scalars: u32,
) -> u32 {
    let mut first_scalar = 0;
    let room = layer.on_chip.room.map_or(0, |(first, _)| first);
    let is_own = |p: &Place| p.strides.is_none();
    for mem in [Mem::Inp, Mem::Wgt, Mem::Acc, Mem::Out, Mem::Param] {
        let own = places.values().filter(|p| p.mem == mem && is_own(p));
        let used = own.map(|p| p.span().end as u32).max().unwrap_or(0);
        // Operands that an instruction reads at once are in different banks.
        let in_banks = needs.apart.iter().flatten().any(|name| places.get(name).is_some_and(|p| p.mem == mem));
        let in_turn = needs.stages.is_some() && matches!(mem, Mem::Inp | Mem::Acc);
        let by = match mem {
            Mem::Inp if in_banks => 0,
            _ if in_turn => 0,
            Mem::Inp => e.inp.take(used.saturating_sub(room)) - room,
            Mem::Wgt if takes_turns(e, places) => continue,
            Mem::Wgt => e.wgt.take(used),
            Mem::Acc => e.acc.take(used),
            Mem::Out => e.out.take(used),
            Mem::Param => e.param.take((used + scalars) * PARAM_ROWS) / PARAM_ROWS,
            Mem::GemmUop | Mem::VectorUop => continue,
        };
        // The scalars are before the buffers.
        let by = if mem == Mem::Param {
            first_scalar = by;
            by + scalars
        } else {
            by
        };
        places.values_mut().filter(|p| p.mem == mem && is_own(p)).for_each(|p| p.first += by);
    }
    first_scalar
}

/// Places the slots of the only buffer of wgt behind the weights of the layer before, around the end of the memory. So the
/// first loads overwrite the weights that are no longer needed. Returns `false` if there is no such buffer.
fn takes_turns(e: &mut Emit, places: &mut NameMap<Place>) -> bool {
    let own: Vec<&mut Place> = places.values_mut().filter(|p| p.mem == Mem::Wgt).collect();
    let Ok([place]) = <[&mut Place; 1]>::try_from(own) else { return false };
    if place.slots > 1 {
        place.firsts = e.wgt.take_slots(place.slots, place.entries);
    }
    place.slots > 1
}

/// Returns where the inputs and the output of a layer's expression are, and its scalars. Constants are added to the
/// program.
fn addresses(
    e: &mut Emit,
    layer: &Layer,
    schedule: &LayerSchedule,
    f: &Function,
    needs: &Needs,
    on_chip: &NameSet,
) -> Result<(NameMap<Address>, Address), LowerError> {
    if let Some(b) = f.locals.iter().find(|b| b.scope == Scope::Global) {
        let reason = "a layer of a model has no device memory for it; put it into a scratchpad".into();
        return Err(LowerError::Buffer { buffer: b.name.clone(), reason });
    }
    let mut tensors = NameMap::default();
    let of = |e: &Emit, tensor| e.place(tensor).map(|t| Address { region: t.region, offset: t.offset });
    for (i, (buffer, input)) in f.inputs().iter().zip(&schedule.inputs).enumerate() {
        let address = match input {
            _ if on_chip.contains(&buffer.name) => continue,
            LayerInput::Tensor(i) => of(e, layer.inputs[*i])?,
            LayerInput::Constant(_) if needs.is_in_param(i) => continue,
            LayerInput::Constant(array) => constant(e, layer, buffer.name.as_str(), Role::Weights, &array.bytes),
        };
        tensors.insert(buffer.name.clone(), address);
    }
    let in_param = (schedule.inputs.iter().enumerate()).map(|(i, input)| match input {
        LayerInput::Constant(array) if needs.is_in_param(i) => array.clone(),
        _ => Array::zeros(DType::I32, &[0]),
    });
    let constants: Vec<Array> = in_param.collect();
    // The scalars are right before the first parameters, so that one load brings both.
    let mut bytes = needs.scalars();
    let before = bytes.len() as u64;
    if let Some(p) = needs.packed.first() {
        bytes.extend(HostInput::Params(p.inputs).bytes(e.config, &constants));
    }
    let scalars = match bytes.is_empty() {
        true => Address { region: e.b.constants(), offset: 0 },
        false => constant(e, layer, "parameters", Role::Params, &bytes),
    };
    if let Some(p) = needs.packed.first() {
        tensors.insert(p.buffers[0].clone(), scalars.plus(before));
    }
    for p in needs.packed.iter().skip(1) {
        let bytes = HostInput::Params(p.inputs).bytes(e.config, &constants);
        tensors.insert(p.buffers[0].clone(), constant(e, layer, "parameters", Role::Params, &bytes));
    }
    for (table, i) in &needs.tables {
        let bytes = HostInput::Table(*i).bytes(e.config, &constants);
        tensors.insert(table.clone(), constant(e, layer, "table", Role::Params, &bytes));
    }
    for t in &needs.taps {
        let bytes = HostInput::Taps(t.input).bytes(e.config, &constants);
        tensors.insert(t.buffer.clone(), constant(e, layer, "taps", Role::Params, &bytes));
    }
    for buffer in f.output_buffers().iter().filter(|buffer| !on_chip.contains(&buffer.name)) {
        tensors.insert(buffer.name.clone(), of(e, layer.output)?);
    }
    Ok((tensors, scalars))
}

/// Adds a constant of a layer to the program.
fn constant(e: &mut Emit, layer: &Layer, what: &str, role: Role, bytes: &[u8]) -> Address {
    let offset = e.b.constant(&format!("{} {what}", layer.name), role, bytes);
    Address { region: e.b.constants(), offset }
}
