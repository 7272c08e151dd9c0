//! Ends a run from another thread.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use tilewright_hw::device::DeviceError;

/// Once set, ends the run of a simulator and refuses all that follow. Copies are set together.
#[derive(Debug, Clone, Default)]
pub struct Interrupt(Arc<AtomicBool>);

impl Interrupt {
    /// Sets it.
    pub fn set(&self) {
        self.0.store(true, Ordering::Relaxed);
    }

    /// Whether it is set.
    pub fn is_set(&self) -> bool {
        self.0.load(Ordering::Relaxed)
    }

    /// The error of a run that was ended.
    pub(crate) fn error(simulator: &str) -> DeviceError {
        DeviceError::Tool {
            tool: simulator.into(),
            reason: "the run was interrupted".into(),
            remedy: "open the device again".into(),
        }
    }
}

#[cfg(test)]
mod tests {
    use tilewright_hw::config::HwConfig;
    use tilewright_hw::device::Device;

    use super::*;
    use crate::random::generate;
    use crate::{Csim, CsimOptions, Fsim};

    #[test]
    fn a_simulator_runs_nothing_once_it_is_interrupted() {
        let config = HwConfig::load("1x4x4").expect("is a preset");
        let program = generate(&config, 5, 40);
        let (fsim, csim) = (Interrupt::default(), Interrupt::default());
        let options = CsimOptions::default();
        let devices: [(&Interrupt, Box<dyn Device>); 2] = [
            (&fsim, Box::new(Fsim::new(config.clone(), config.memory_bytes()).interrupted_by(fsim.clone()))),
            (&csim, Box::new(Csim::new(config.clone(), config.memory_bytes(), options).interrupted_by(csim.clone()))),
        ];
        for (interrupt, mut device) in devices {
            program.install(device.as_mut()).expect("it is written");
            device.run(&program.command()).expect("it runs");
            interrupt.set();
            let error = device.run(&program.command()).unwrap_err().to_string();
            assert_eq!(error, format!("{}: the run was interrupted; open the device again", device.name()));
        }
    }
}
