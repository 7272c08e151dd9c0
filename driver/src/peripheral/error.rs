//! Errors of a peripheral, with remedies.

use std::time::Duration;
use tilewright_hw::device::DeviceError;
use tilewright_hw::host::WrongHardware;

/// An error of a peripheral.
#[derive(Debug, thiserror::Error)]
#[error("{device}: {fault}; {}", fault.remedy())]
pub struct PeripheralError {
    /// The peripheral, as `--device` names it.
    pub device: String,
    /// What happened.
    pub fault: Fault,
}

/// What happened.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The system has no devices of a kind.
    #[error("there are no {kind}s: {path} does not exist")]
    NoClass {
        /// What is missing.
        kind: SystemDeviceKind,
        /// Where the system would list them.
        path: String,
    },
    /// No device has the name.
    #[error("no {kind} is named {name}")]
    NoDevice {
        /// What is missing.
        kind: SystemDeviceKind,
        /// The requested name.
        name: String,
        /// The existing names.
        there_are: Vec<String>,
    },
    /// Several devices have the name.
    #[error("{} are all named {name}", devices.join(", "))]
    Ambiguous {
        /// The requested name.
        name: String,
        /// The devices.
        devices: Vec<String>,
    },
    /// A system file about a device cannot be read, or has unexpected contents.
    #[error("{path} {reason}")]
    Attribute {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The register window is too small.
    #[error("its registers take {found} bytes, but an accelerator's take {needed}")]
    Window {
        /// Bytes of the device's first map.
        found: u64,
        /// Bytes of the registers.
        needed: u64,
    },
    /// Opening a file is not permitted.
    #[error("{path} cannot be opened: permission denied")]
    Denied {
        /// The file.
        path: String,
    },
    /// A file cannot be opened or mapped.
    #[error("{path} cannot be opened: {reason}")]
    Open {
        /// The file.
        path: String,
        /// The system's reason.
        reason: String,
    },
    /// Another program uses the device.
    #[error("another program uses {path}")]
    InUse {
        /// The file.
        path: String,
    },
    /// The hardware does not match the program.
    #[error(transparent)]
    Wrong(#[from] WrongHardware),
    /// The configuration's addresses do not reach the buffer.
    #[error("the buffer is at {from:#x} to {to:#x}, but the addresses of {name} end at {last:#x}")]
    OutOfReach {
        /// The buffer's first byte.
        from: u64,
        /// Its last.
        to: u64,
        /// The configuration's greatest address.
        last: u64,
        /// The configuration.
        name: String,
    },
    /// An access failed.
    #[error("an access failed: {reason}")]
    Access {
        /// The system's reason.
        reason: String,
    },
    /// Waiting for the interrupt failed.
    #[error("cannot wait for its interrupt: {reason}")]
    NoInterrupt {
        /// The system's reason.
        reason: String,
    },
    /// A command took too long and was aborted.
    #[error("a command did not end within {limit:?} and was stopped in cycle {cycle}, with status {status:#x}")]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The cycle counter.
        cycle: u64,
        /// The status register.
        status: u32,
    },
    /// The core does not complete a reset.
    #[error("the core does not come back from a reset: a burst on its bus is not answered")]
    Stuck,
}

/// Kind of a device in the system.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum SystemDeviceKind {
    /// Registers and an interrupt.
    Uio,
    /// Memory.
    Buffer,
}

impl std::fmt::Display for SystemDeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            SystemDeviceKind::Uio => "UIO device",
            SystemDeviceKind::Buffer => "u-dma-buf buffer",
        })
    }
}

impl SystemDeviceKind {
    /// How to make such devices available in the system.
    fn load(self) -> &'static str {
        match self {
            SystemDeviceKind::Uio => {
                "add the board's device-tree fragment (tilewright.dtsi) and load the module: modprobe uio_pdrv_genirq of_id=generic-uio"
            }
            SystemDeviceKind::Buffer => {
                "add the board's device-tree fragment (tilewright.dtsi), install the u-dma-buf module, and load it: modprobe u-dma-buf"
            }
        }
    }
}

impl Fault {
    /// What the user can do.
    pub fn remedy(&self) -> String {
        let text = match self {
            Fault::NoClass { kind, .. } => kind.load(),
            Fault::NoDevice { kind, there_are, .. } if there_are.is_empty() => kind.load(),
            Fault::NoDevice { there_are, .. } => {
                return format!("name the device as the device tree does; there are {}", there_are.join(", "));
            }
            Fault::Ambiguous { devices, .. } => return format!("use one of them: uio:{}", devices[0]),
            Fault::Attribute { .. } => "check that the module matches this kernel, and load it again",
            Fault::Window { .. } => "give the node of the device tree the window that the address map has (reg)",
            Fault::Denied { .. } => {
                "run as root, or let your user open it: a udev rule for the subsystems uio and u-dma-buf"
            }
            Fault::Open { .. } => "check that the modules are loaded and that the device tree is the board's",
            Fault::InUse { .. } => "wait until it has ended, or end it",
            Fault::Wrong(wrong) => wrong.remedy(),
            Fault::OutOfReach { to, .. } => {
                let bits = u64::BITS - to.leading_zeros();
                return format!("build the bitstream of a configuration with offset_bits = {bits} or more");
            }
            Fault::Access { .. } => "run again; if it fails again, load the modules again",
            Fault::NoInterrupt { .. } => "give the node of the device tree the core's interrupt (interrupts)",
            Fault::TimedOut { .. } => {
                "run again with a limit (run --max-cycles); if it fails again, report it with the program"
            }
            Fault::Stuck => {
                "check that the block design connects and clocks the memory port and that the bitstream is the board's, then load it again"
            }
        };
        text.into()
    }
}

impl From<PeripheralError> for DeviceError {
    fn from(error: PeripheralError) -> DeviceError {
        let PeripheralError { device, fault } = error;
        DeviceError::Tool { tool: device, reason: fault.to_string(), remedy: fault.remedy() }
    }
}
