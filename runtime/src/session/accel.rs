//! Accelerator steps: driver programs on a device, with tensors converted to the device's layout and back.

use std::sync::Arc;

use tilewright_driver::{ALIGN, AccelProgram, Block, DriverError, Loaded, Role};

use super::report::StepReport;
use crate::artifact::{AccelStep, Artifact, Packing, Place};
use crate::clock::Moment;
use crate::convert::{pack, unpack};
use crate::device::SharedDevice;

/// A session's part of a device, and memory of the host for one frame.
pub(super) struct Accelerator {
    part: Arc<Part>,
    /// Bytes of a program's inputs and outputs in device memory, which the programs use in turn.
    packed: [Vec<Vec<u8>>; 2],
}

/// A device, and the block for the tensors of a frame's programs, which they use in turn.
struct Part {
    device: SharedDevice,
    tensors: Option<Block>,
}

impl Accelerator {
    /// Allocates memory for the tensors of programs that run one after the other.
    pub fn new<'p>(
        device: SharedDevice,
        programs: impl Iterator<Item = &'p AccelProgram>,
    ) -> Result<Accelerator, DriverError> {
        let regions = programs.flat_map(|p| &p.regions).filter(|r| r.role == Role::Scratch);
        let part = Part::new(device, regions.map(|r| r.bytes).max())?;
        Ok(Accelerator { part: Arc::new(part), packed: Default::default() })
    }

    /// Memory for another frame. If the device has none, it is the same part, which frames then use in turn: programs
    /// leave nothing there that a later one reads.
    pub fn for_another_frame(&self) -> Accelerator {
        let own = Part::new(self.part.device.clone(), self.part.tensors.map(|tensors| tensors.bytes));
        let part = own.map_or_else(|_| self.part.clone(), Arc::new);
        Accelerator { part, packed: Default::default() }
    }

    pub fn device(&self) -> &SharedDevice {
        &self.part.device
    }
}

impl Part {
    fn new(device: SharedDevice, tensor_bytes: Option<u64>) -> Result<Part, DriverError> {
        let tensors = match tensor_bytes {
            Some(bytes) => device.lock().memory.plan(&[("tensors".into(), bytes)], ALIGN)?.pop(),
            None => None,
        };
        Ok(Part { device, tensors })
    }
}

impl Drop for Part {
    fn drop(&mut self) {
        self.device.lock().memory.release(self.tensors.as_slice());
    }
}

/// A program in a device's memory, with the layouts of its tensors. Its memory is free again when it is dropped.
pub(super) struct LoadedProgram {
    loaded: Loaded<Box<AccelProgram>>,
    device: SharedDevice,
    inputs: Vec<Packing>,
    outputs: Vec<Packing>,
}

impl LoadedProgram {
    pub fn load(step: &AccelStep, artifact: &Artifact, on: &Accelerator) -> Result<LoadedProgram, DriverError> {
        let mut program = Box::new(step.program.clone());
        program.stream = artifact.blob(step.stream).to_vec();
        program.constants = artifact.blob(step.constants).to_vec();
        let mut held = on.part.device.lock();
        let held = &mut *held;
        let loaded = Loaded::sharing(held.device.as_mut(), &mut held.memory, program, on.part.tensors)?;
        Ok(LoadedProgram {
            loaded,
            device: on.part.device.clone(),
            inputs: step.inputs.clone(),
            outputs: step.outputs.clone(),
        })
    }

    pub fn run(
        &self,
        on: &mut Accelerator,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<StepReport, DriverError> {
        let started = Moment::now();
        let [packed, results] = &mut on.packed;
        packed.resize_with(packed.len().max(inputs.len()), Vec::new);
        results.resize_with(results.len().max(outputs.len()), Vec::new);
        let mut given = Vec::with_capacity(inputs.len());
        for ((packing, bytes), buffer) in self.inputs.iter().zip(inputs).zip(packed) {
            given.push(match packing {
                Packing::Dense => *bytes,
                _ => {
                    buffer.resize(packing.device_bytes(bytes.len()).unwrap_or_default(), 0);
                    pack(*packing, bytes, buffer);
                    buffer
                }
            });
        }
        let packing = started.elapsed();
        let report = match on.part.tensors {
            Some(tensors) if self.loaded.is_relocatable() => self.device.run(
                tensors,
                |device| self.loaded.submit(device, &given, Some(tensors)),
                |device, report| self.loaded.collect(device, report, results, Some(tensors)),
            )?,
            _ => self.device.with(|device| self.loaded.run_into(device, &given, results))?,
        };
        let started = Moment::now();
        for ((packing, bytes), result) in self.outputs.iter().zip(outputs).zip(results) {
            unpack(*packing, result, bytes);
        }
        let unpacking = started.elapsed();
        Ok(StepReport {
            convert_s: (packing + unpacking).as_secs_f64(),
            convert_back_s: unpacking.as_secs_f64(),
            cycles: report.cycles,
            macs: report.macs,
            bytes: report.bytes,
            counters: report.counters,
            spans: report.spans,
            ..StepReport::on(Place::Accel)
        })
    }
}

impl Drop for LoadedProgram {
    fn drop(&mut self) {
        self.loaded.unload(&mut self.device.lock().memory);
    }
}
