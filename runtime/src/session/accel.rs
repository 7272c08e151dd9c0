//! Accelerator steps: programs of the driver's on a device.

use tilewright_hw::device::Device;

use super::report::StepReport;

/// A program made ready on a device.
pub trait Region: Send {
    /// Runs it once: the bytes of each input, and of each output, in the model's own layout.
    ///
    /// # Errors
    /// What the device or the driver refused, or the trap that ended the run.
    fn run(
        &mut self,
        device: &mut dyn Device,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
    ) -> Result<StepReport, String>;
}

/// Makes a serialised program ready on a device.
pub type RegionLoader = dyn Fn(&[u8], &mut dyn Device) -> Result<Box<dyn Region>, String> + Send;

/// A device with the loader of its programs.
pub struct Accelerator {
    /// What runs the programs.
    pub device: Box<dyn Device>,
    /// What makes them ready.
    pub load: Box<RegionLoader>,
}
