//! Programs with tensors of their own, and how the host feeds them.

use tilewright_driver::{AccelProgram, Builder, DriverError, Role, run_program};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Device, RunReport};
use tilewright_hw::isa::PARAM_ROWS;
use tilewright_hw::layout::{pack_params, pack_table};

use super::error::LowerError;
use super::intrinsics::Instruction;
use super::lower::{Address, Lower};
use super::memory::{self, Held, MemoryUse};
use super::needs::{Marks, Needs};
use crate::te::{Array, Expr, Name, NameMap, NameSet, scalar};
use crate::tir::{Function, Scope};

/// Alignment of tensors in device memory, in bytes.
const ALIGN: u64 = 64;

/// What the host writes into device memory before a run.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostInput {
    /// The input with that number.
    Tensor(usize),
    /// Three inputs as entries of param: biases, multipliers and shifts.
    Params([usize; 3]),
    /// An input of 256 bytes as the table of a lookup.
    Table(usize),
    /// An input of weights of depthwise convolutions, `[..., TAPS, block_out]`, as entries of param.
    Taps(usize),
}

impl HostInput {
    /// Returns the bytes to write, given all inputs of the tensor expression.
    pub fn bytes(&self, config: &HwConfig, inputs: &[Array]) -> Vec<u8> {
        let words = |i: usize| -> Vec<i32> {
            let words = |a: &Array| (0..a.len()).filter_map(|k| a.get(k)).map(|v| v.int() as i32).collect();
            inputs.get(i).map(words).unwrap_or_default()
        };
        match *self {
            HostInput::Tensor(i) => inputs.get(i).map(|a| a.bytes.clone()).unwrap_or_default(),
            HostInput::Params([bias, multiplier, shift]) => {
                let shifts: Vec<i8> = words(shift).iter().map(|&s| scalar::shift(s)).collect();
                pack_params(config, &words(bias), &words(multiplier), &shifts)
            }
            HostInput::Taps(i) => {
                let Some([.., taps, lanes]) = inputs.get(i).map(|a| &a.shape[..]) else { return Vec::new() };
                let row = *lanes as usize;
                let bytes = (*taps as usize).div_ceil(PARAM_ROWS as usize) * PARAM_ROWS as usize * row;
                let blocks = inputs[i].bytes.chunks(*taps as usize * row);
                blocks.flat_map(|b| b.iter().copied().chain(vec![0; bytes - b.len()])).collect()
            }
            HostInput::Table(i) => {
                // The hardware indexes the table with the byte as an unsigned number.
                let byte = |k: usize| inputs.get(i).and_then(|a| a.bytes.get(k ^ 0x80)).copied().unwrap_or(0);
                pack_table(config, &std::array::from_fn(|k| byte(k) as i8))
            }
        }
    }
}

/// A program of the accelerator, and how the host feeds it.
#[derive(Debug, Clone, PartialEq)]
pub struct Lowered {
    /// The program. Its outputs are those of the tensor expression, in order.
    pub program: AccelProgram,
    /// What the host writes to each of the program's inputs.
    pub inputs: Vec<HostInput>,
    /// How much of each scratchpad the program uses.
    pub footprint: Vec<MemoryUse>,
}

impl Lowered {
    /// Runs the program on a device. `outputs` have the types and shapes of the results; their elements do not matter.
    ///
    /// # Errors
    /// The device or the driver fails.
    pub fn run(
        &self,
        device: &mut dyn Device,
        inputs: &[Array],
        outputs: &[Array],
    ) -> Result<(Vec<Array>, RunReport), DriverError> {
        let data: Vec<Vec<u8>> = self.inputs.iter().map(|i| i.bytes(device.config(), inputs)).collect();
        let data: Vec<&[u8]> = data.iter().map(Vec::as_slice).collect();
        let (results, report) = run_program(device, &self.program, &data)?;
        let arrays = results.into_iter().zip(outputs).map(|(bytes, like)| Array { bytes, ..like.clone() });
        Ok((arrays.collect(), report))
    }
}

/// Lowers a program with tensors of its own.
///
/// # Errors
/// [`LowerError`].
pub fn lower(
    config: &HwConfig,
    f: &Function,
    instructions: &NameMap<Instruction>,
    marks: &Marks,
) -> Result<Lowered, LowerError> {
    let needs = Needs::of(config, f, instructions, marks)?;
    let reserved = needs.descriptor_entries(config);
    let places = memory::places(config, f, &needs, reserved, &Held::default())?;
    let footprint = memory::footprint(config, f, &places, reserved);
    let mut b = Builder::new(config)?;
    let first = (config.entries(Mem::Param) / PARAM_ROWS).saturating_sub(reserved);
    let (tensors, inputs) = memory_of(config, f, &needs, &mut b)?;
    let scalars = match needs.scalars() {
        none if none.is_empty() => Address { region: b.constants(), offset: 0 },
        bytes => Address { region: b.constants(), offset: b.constant("descriptor", Role::Params, &bytes) },
    };
    Lower::new(config, f, instructions, &mut b, &needs, places, tensors).run(first, scalars)?;
    Ok(Lowered { program: b.finish()?, inputs, footprint })
}

/// Gives every tensor its bytes in the region, and declares inputs and outputs.
fn memory_of(
    config: &HwConfig,
    f: &Function,
    needs: &Needs,
    b: &mut Builder,
) -> Result<(NameMap<Address>, Vec<HostInput>), LowerError> {
    let Needs { packed, tables, taps, .. } = needs;
    let region = b.region("tensors", Role::Scratch, 0)?;
    let (mut tensors, mut inputs, mut next) = (NameMap::default(), Vec::new(), 0u64);
    let mut take = |bytes: u64| {
        let at = next;
        next = (at + bytes).next_multiple_of(ALIGN);
        at
    };
    // Inputs that something else than the copies to param reads.
    let mut read: NameSet = NameSet::default();
    f.body.visit_blocks(&mut |_, block| {
        let to_param = |target: &Name| {
            packed.iter().any(|p| p.buffers.contains(target))
                || tables.iter().any(|t| t.0 == *target)
                || taps.iter().any(|t| t.buffer == *target)
        };
        if block.target().is_some_and(to_param) {
            return;
        }
        block.each_expr(&mut |e| {
            e.visit(&mut |e| {
                if let Expr::Load { buffer, .. } = e {
                    read.insert(buffer.clone());
                }
            });
        });
    });
    for (i, p) in f.inputs().iter().enumerate() {
        if needs.is_in_param(i) && !read.contains(&p.name) {
            continue;
        }
        let bytes = p.size_bytes() as u64;
        let at = take(bytes);
        b.grow(region, at + bytes);
        b.input(p.name.as_str(), region, at, bytes);
        tensors.insert(p.name.clone(), Address { region, offset: at });
        inputs.push(HostInput::Tensor(i));
    }
    for p in packed {
        let biases = &f.inputs()[p.inputs[0]];
        let entries = (biases.len().unsigned_abs()).div_ceil(u64::from(config.block_out));
        let bytes = entries * u64::from(config.param_entry_bytes());
        let at = take(bytes);
        b.grow(region, at + bytes);
        b.input(&format!("{} packed", biases.name), region, at, bytes);
        tensors.insert(p.buffers[0].clone(), Address { region, offset: at });
        inputs.push(HostInput::Params(p.inputs));
    }
    for (table, i) in tables {
        let bytes = u64::from(config.table_entries() * config.param_entry_bytes());
        let at = take(bytes);
        b.grow(region, at + bytes);
        b.input(&format!("{table} packed"), region, at, bytes);
        tensors.insert(table.clone(), Address { region, offset: at });
        inputs.push(HostInput::Table(*i));
    }
    for t in taps {
        let blocks = f.inputs()[t.input].len() / (t.count * i64::from(config.block_out)).max(1);
        let bytes = (blocks * t.entries()).unsigned_abs() * u64::from(config.param_entry_bytes());
        let at = take(bytes);
        b.grow(region, at + bytes);
        b.input(&format!("{} packed", t.buffer), region, at, bytes);
        tensors.insert(t.buffer.clone(), Address { region, offset: at });
        inputs.push(HostInput::Taps(t.input));
    }
    let middle = f.locals.iter().filter(|local| local.scope == Scope::Global);
    for (p, is_output) in f.output_buffers().iter().map(|p| (p, true)).chain(middle.map(|p| (p, false))) {
        let bytes = p.size_bytes() as u64;
        let at = take(bytes);
        b.grow(region, at + bytes);
        if is_output {
            b.output(p.name.as_str(), region, at, bytes);
        }
        tensors.insert(p.name.clone(), Address { region, offset: at });
    }
    Ok((tensors, inputs))
}
