//! A device with the allocator of its memory, shared by the sessions that run on it.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use tilewright_driver::DeviceMemory;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;

/// A device and what is free of its memory.
pub(crate) struct Held {
    pub device: Box<dyn Device>,
    pub memory: DeviceMemory,
}

/// A device that several sessions can use. Each has a part of its memory; programs run one at a time. Copies refer to
/// the same device.
#[derive(Clone)]
pub struct SharedDevice {
    name: Arc<str>,
    config: Arc<HwConfig>,
    held: Arc<Mutex<Held>>,
}

impl SharedDevice {
    /// Shares a device whose memory is free.
    pub fn new(device: Box<dyn Device>) -> SharedDevice {
        let memory = DeviceMemory::new(device.memory_bytes(), device.config());
        SharedDevice {
            name: device.name().into(),
            config: Arc::new(device.config().clone()),
            held: Arc::new(Mutex::new(Held { device, memory })),
        }
    }

    /// Its name, as `--device` accepts it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hardware's configuration.
    pub fn config(&self) -> &HwConfig {
        &self.config
    }

    /// Bytes of its memory that no session has taken.
    pub fn free_bytes(&self) -> u64 {
        self.lock().memory.free_bytes()
    }

    /// Waits until no program runs, then calls `use_it` with the device.
    pub fn with<R>(&self, use_it: impl FnOnce(&mut dyn Device) -> R) -> R {
        use_it(self.lock().device.as_mut())
    }

    /// A panic in another thread leaves device and allocator usable: a command starts with a reset after a trap, and a
    /// block that was not given back is lost at worst.
    pub(crate) fn lock(&self) -> MutexGuard<'_, Held> {
        self.held.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl std::fmt::Debug for SharedDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedDevice({} of {})", self.name, self.config.name)
    }
}
