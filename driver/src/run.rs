//! Loads programs into a device and runs them.

use crate::error::DriverError;
use crate::memory::{ALIGN, Block, DeviceMemory};
use crate::program::{AccelProgram, Binding, MemoryRegion, Role};
use std::ops::Deref;
use tilewright_hw::device::{Base, Command, Device, RunReport, Ticket};
use tilewright_hw::isa;

/// A program whose constants and stream are in a device's memory. `P` is a reference to it, or an owning pointer.
#[derive(Debug)]
pub struct Loaded<P> {
    program: P,
    /// Location of each region.
    blocks: Vec<Block>,
    /// Memory that it allocated for itself.
    taken: Vec<Block>,
    /// The block that it shares with other programs.
    shared: Option<Block>,
    command: Command,
}

/// Takes a block for each region and one for the stream. Regions of tensors that fit `tensors` are there instead.
///
/// # Errors
/// [`DriverError::DoesNotFit`].
pub fn place(
    memory: &mut DeviceMemory,
    regions: &[MemoryRegion],
    stream_bytes: u64,
    tensors: Option<Block>,
) -> Result<(Vec<Block>, Block), DriverError> {
    let shared = |r: &MemoryRegion| tensors.filter(|t| r.role == Role::Scratch && r.bytes <= t.bytes);
    let own = regions.iter().filter(|r| shared(r).is_none());
    let mut sizes: Vec<(String, u64)> = own.map(|r| (r.name.clone(), r.bytes)).collect();
    sizes.push(("stream".into(), stream_bytes));
    let taken = memory.plan(&sizes, ALIGN)?;
    let (mut own, stream) = (taken.iter().copied(), taken[taken.len() - 1]);
    Ok((regions.iter().filter_map(|r| shared(r).or_else(|| own.next())).collect(), stream))
}

/// The command that runs a program whose regions and stream are in these blocks.
pub(crate) fn command(regions: &[MemoryRegion], blocks: &[Block], stream: Block, insns: u32) -> Command {
    let bases = regions.iter().zip(blocks).map(|(r, b)| Base { addr: b.addr, limit: r.bytes }).collect();
    Command { stream_addr: stream.addr, insns, bases, cycle_limit: None }
}

impl<P: Deref<Target = AccelProgram>> Loaded<P> {
    /// Allocates memory for every region and the stream, and writes the constants and the stream.
    ///
    /// # Errors
    /// [`DriverError::OtherHardware`], [`DriverError::Damaged`], [`DriverError::DoesNotFit`], or the device's.
    pub fn new(device: &mut dyn Device, memory: &mut DeviceMemory, program: P) -> Result<Loaded<P>, DriverError> {
        Loaded::sharing(device, memory, program, None)
    }

    /// Like [`Loaded::new`], but places the program's tensors in a block that programs use in turn, if it is large
    /// enough.
    ///
    /// # Errors
    /// As [`Loaded::new`].
    pub fn sharing(
        device: &mut dyn Device,
        memory: &mut DeviceMemory,
        program: P,
        tensors: Option<Block>,
    ) -> Result<Loaded<P>, DriverError> {
        let hash = device.config().hash();
        if program.config_hash != hash || program.isa_version != isa::ISA_VERSION {
            return Err(DriverError::OtherHardware {
                built: program.config_hash,
                built_isa: program.isa_version,
                device: hash,
                isa: isa::ISA_VERSION,
            });
        }
        program.check().map_err(|what| DriverError::Damaged { what })?;
        let (blocks, stream) = place(memory, &program.regions, program.stream.len() as u64, tensors)?;
        let own = blocks.iter().copied().filter(|block| Some(*block) != tensors);
        let taken = own.chain([stream]).collect();
        for (block, bytes) in [(blocks[0], &program.constants), (stream, &program.stream)] {
            device.write(block.addr, bytes)?;
            device.clean_cache(block.addr, bytes.len() as u64)?;
        }
        let command = command(&program.regions, &blocks, stream, program.insn_count() as u32);
        Ok(Loaded { program, blocks, taken, shared: tensors, command })
    }

    /// The command that runs the program, for callers that control the device themselves.
    pub fn command(&self) -> &Command {
        &self.command
    }

    /// Writes the inputs, runs, and reads the outputs.
    ///
    /// # Errors
    /// [`DriverError::Input`], [`DriverError::Trapped`], or the device's.
    pub fn run(
        &self,
        device: &mut dyn Device,
        inputs: &[impl AsRef<[u8]>],
    ) -> Result<(Vec<Vec<u8>>, RunReport), DriverError> {
        let mut outputs = vec![Vec::new(); self.program.outputs.len()];
        let report = self.run_into(device, inputs, &mut outputs)?;
        Ok((outputs, report))
    }

    /// Like [`Loaded::run`], but reads each output into one of the caller's buffers, which it resizes. Further buffers
    /// are not touched, so that programs can share them.
    ///
    /// # Errors
    /// As [`Loaded::run`].
    pub fn run_into(
        &self,
        device: &mut dyn Device,
        inputs: &[impl AsRef<[u8]>],
        outputs: &mut [Vec<u8>],
    ) -> Result<RunReport, DriverError> {
        let ticket = self.submit(device, inputs, self.shared)?;
        let report = device.wait(ticket)?;
        self.collect(device, report, outputs, self.shared)
    }

    /// Whether all memory that a run changes is in the block that programs share, so that a run in another block of the
    /// same size can be submitted before this one has ended.
    pub fn is_relocatable(&self) -> bool {
        let regions = self.program.regions.iter().zip(&self.blocks);
        regions.filter(|(region, _)| region.is_written()).all(|(_, block)| Some(*block) == self.shared)
    }

    /// Writes the inputs and submits the command. The tensors are in `tensors`, which is as large as the block that
    /// programs share and takes its place.
    ///
    /// # Errors
    /// [`DriverError::Input`], or the device's.
    pub fn submit(
        &self,
        device: &mut dyn Device,
        inputs: &[impl AsRef<[u8]>],
        tensors: Option<Block>,
    ) -> Result<Ticket, DriverError> {
        if inputs.len() != self.program.inputs.len() {
            let first_missing = self.program.inputs.get(inputs.len());
            return Err(DriverError::Input {
                name: first_missing.map_or_else(|| "past the last".into(), |b| b.name.clone()),
                given: inputs.get(self.program.inputs.len()).map_or(0, |i| i.as_ref().len()),
                expected: first_missing.map_or(0, |b| b.bytes as usize),
            });
        }
        for (binding, bytes) in self.program.inputs.iter().zip(inputs) {
            let bytes = bytes.as_ref();
            if bytes.len() as u64 != binding.bytes {
                return Err(DriverError::Input {
                    name: binding.name.clone(),
                    given: bytes.len(),
                    expected: binding.bytes as usize,
                });
            }
            let addr = self.address(binding, tensors);
            device.write(addr, bytes)?;
            device.clean_cache(addr, binding.bytes)?;
        }
        if tensors == self.shared {
            return Ok(device.submit(&self.command)?);
        }
        let mut command = self.command.clone();
        for (base, block) in command.bases.iter_mut().zip(&self.blocks) {
            base.addr = self.moved(*block, tensors).addr;
        }
        Ok(device.submit(&command)?)
    }

    /// Reads the outputs of a run that was submitted with the same `tensors` and has ended.
    ///
    /// # Errors
    /// [`DriverError::Trapped`], or the device's.
    pub fn collect(
        &self,
        device: &mut dyn Device,
        report: RunReport,
        outputs: &mut [Vec<u8>],
        tensors: Option<Block>,
    ) -> Result<RunReport, DriverError> {
        if let Some(trap) = report.trap {
            return Err(DriverError::Trapped(trap));
        }
        for (binding, bytes) in self.program.outputs.iter().zip(outputs) {
            let addr = self.address(binding, tensors);
            bytes.resize(binding.bytes as usize, 0);
            device.invalidate_cache(addr, binding.bytes)?;
            device.read(addr, bytes)?;
        }
        Ok(report)
    }

    fn address(&self, binding: &Binding, tensors: Option<Block>) -> u64 {
        self.moved(self.blocks[binding.region.0 as usize], tensors).addr + binding.offset
    }

    /// The block that takes the place of one of the program's blocks in a run.
    fn moved(&self, block: Block, tensors: Option<Block>) -> Block {
        match (self.shared, tensors) {
            (Some(shared), Some(tensors)) if block == shared => tensors,
            _ => block,
        }
    }

    /// Frees the program's memory; it must not run again.
    pub fn unload(&mut self, memory: &mut DeviceMemory) {
        memory.release(&std::mem::take(&mut self.taken));
    }
}

/// Loads a program into an otherwise unused device, runs it once, and returns its outputs and report.
///
/// # Errors
/// As [`Loaded::new`] and [`Loaded::run`].
pub fn run_program(
    device: &mut dyn Device,
    program: &AccelProgram,
    inputs: &[impl AsRef<[u8]>],
) -> Result<(Vec<Vec<u8>>, RunReport), DriverError> {
    let mut memory = DeviceMemory::new(device.memory_bytes(), device.config());
    Loaded::new(device, &mut memory, program)?.run(device, inputs)
}
