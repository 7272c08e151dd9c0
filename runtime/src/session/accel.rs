//! Accelerator steps: driver programs on a device, with tensors converted to the device's layout and back.

use std::time::Instant;

use tilewright_driver::{ALIGN, AccelProgram, Block, DeviceMemory, DriverError, Loaded, Role};
use tilewright_hw::device::Device;

use super::report::StepReport;
use crate::artifact::{AccelStep, Artifact, Packing, Place};

/// A device with the allocator of its memory.
pub(super) struct Accelerator {
    pub device: Box<dyn Device>,
    memory: DeviceMemory,
    /// The block for the programs' tensors, which they use in turn.
    tensors: Option<Block>,
}

impl Accelerator {
    pub fn new(device: Box<dyn Device>) -> Accelerator {
        let memory = DeviceMemory::new(device.memory_bytes(), device.config());
        Accelerator { device, memory, tensors: None }
    }

    /// Allocates memory for the tensors of programs that run one after the other.
    pub fn reserve<'p>(&mut self, programs: impl Iterator<Item = &'p AccelProgram>) -> Result<(), DriverError> {
        let regions = programs.flat_map(|p| &p.regions).filter(|r| r.role == Role::Scratch);
        if let Some(bytes) = regions.map(|r| r.bytes).max() {
            self.tensors = self.memory.plan(&[("tensors".into(), bytes)], ALIGN)?.pop();
        }
        Ok(())
    }
}

/// A program in a device's memory, with the layouts of its tensors.
pub(super) struct LoadedProgram {
    loaded: Loaded<Box<AccelProgram>>,
    inputs: Vec<Packing>,
    outputs: Vec<Packing>,
}

impl LoadedProgram {
    pub fn load(step: &AccelStep, artifact: &Artifact, on: &mut Accelerator) -> Result<LoadedProgram, DriverError> {
        let mut program = Box::new(step.program.clone());
        program.stream = artifact.blob(step.stream).to_vec();
        program.constants = artifact.blob(step.constants).to_vec();
        let loaded = Loaded::sharing(on.device.as_mut(), &mut on.memory, program, on.tensors)?;
        Ok(LoadedProgram { loaded, inputs: step.inputs.clone(), outputs: step.outputs.clone() })
    }

    pub fn run(
        &self,
        on: &mut Accelerator,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<StepReport, DriverError> {
        let started = Instant::now();
        let packed: Vec<Vec<u8>> =
            self.inputs.iter().zip(inputs).map(|(packing, bytes)| pack(*packing, bytes)).collect();
        let packing = started.elapsed();
        let (results, report) = self.loaded.run(on.device.as_mut(), &packed)?;
        let started = Instant::now();
        for ((packing, bytes), result) in self.outputs.iter().zip(outputs).zip(&results) {
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

/// Converts a dense tensor to its bytes in device memory.
fn pack(packing: Packing, dense: &[u8]) -> Vec<u8> {
    let (image, strides) = match packing {
        Packing::Dense => return dense.to_vec(),
        Packing::Nhwc(i) => (i, [i.h * i.w * i.c, 1, i.w * i.c, i.c]),
        Packing::Nchw(i) => (i, [i.c * i.h * i.w, i.h * i.w, i.w, 1]),
    };
    let at = |n, c, y, x| dense[n * strides[0] + c * strides[1] + y * strides[2] + x * strides[3]] as i8;
    image.pack(at).into_iter().map(|value| value as u8).collect()
}

/// The inverse of [`pack`].
fn unpack(packing: Packing, packed: &[u8], dense: &mut [u8]) {
    let (image, strides) = match packing {
        Packing::Dense => return dense.copy_from_slice(packed),
        Packing::Nhwc(i) => (i, [i.h * i.w * i.c, 1, i.w * i.c, i.c]),
        Packing::Nchw(i) => (i, [i.c * i.h * i.w, i.h * i.w, i.w, 1]),
    };
    let packed: Vec<i8> = packed.iter().map(|value| *value as i8).collect();
    image.unpack(&packed, |n, c, y, x, value| {
        dense[n * strides[0] + c * strides[1] + y * strides[2] + x * strides[3]] = value as u8;
    });
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::artifact::Image;

    #[test]
    fn channels_lie_in_blocks_and_come_back() {
        let image = Image { n: 2, c: 3, h: 2, w: 2, block: 4, fill: 9, pads: [0; 2] };
        let nhwc: Vec<u8> = (0..24).collect();
        let packed = pack(Packing::Nhwc(image), &nhwc);
        assert_eq!(&packed[..8], [0, 1, 2, 9, 3, 4, 5, 9]);
        let mut back = vec![0; 24];
        unpack(Packing::Nhwc(image), &packed, &mut back);
        assert_eq!(back, nhwc);
        // The same image with its channels first.
        let mut nchw = vec![0; 24];
        for (at, value) in nhwc.iter().enumerate() {
            let (n, pixel, c) = (at / 12, at / 3 % 4, at % 3);
            nchw[n * 12 + c * 4 + pixel] = *value;
        }
        assert_eq!(pack(Packing::Nchw(image), &nchw), packed);
        unpack(Packing::Nchw(image), &packed, &mut back);
        assert_eq!(back, nchw);
    }

    #[test]
    fn padded_columns_stand_around_a_row_and_are_left_out_on_the_way_back() {
        let image = Image { n: 1, c: 2, h: 2, w: 2, block: 2, fill: 9, pads: [1, 2] };
        let dense: Vec<u8> = (0..8).collect();
        let packed = pack(Packing::Nhwc(image), &dense);
        assert_eq!(packed, [9, 9, 0, 1, 2, 3, 9, 9, 9, 9, 9, 9, 4, 5, 6, 7, 9, 9, 9, 9]);
        let mut back = vec![0; 8];
        unpack(Packing::Nhwc(image), &packed, &mut back);
        assert_eq!(back, dense);
    }
}
