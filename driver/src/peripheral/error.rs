//! What goes wrong with a peripheral, with what to do.

use std::time::Duration;
use tilewright_hw::device::DeviceError;
use tilewright_hw::host::WrongHardware;

/// What went wrong with a peripheral.
#[derive(Debug, thiserror::Error)]
#[error("{device}: {fault}; {}", fault.remedy())]
pub struct PeripheralError {
    /// The peripheral, as `--device` names it.
    pub device: String,
    /// What was seen.
    pub fault: Fault,
}

/// What was seen.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum Fault {
    /// The system has no devices of a kind.
    #[error("there are no {kind}s, as there is no {path}")]
    NoClass {
        /// What is missing.
        kind: Kind,
        /// Where the system would list them.
        path: String,
    },
    /// No device has the name.
    #[error("no {kind} is named {name}")]
    NoDevice {
        /// What is missing.
        kind: Kind,
        /// What was asked for.
        name: String,
        /// Those that there are.
        there_are: Vec<String>,
    },
    /// Several devices have the name.
    #[error("{} are all named {name}", devices.join(", "))]
    Ambiguous {
        /// What was asked for.
        name: String,
        /// The devices.
        devices: Vec<String>,
    },
    /// What the system says of a device cannot be read, or is not what it says of such devices.
    #[error("{path} {reason}")]
    Attribute {
        /// The file.
        path: String,
        /// What is wrong.
        reason: String,
    },
    /// The registers' window is too small.
    #[error("its registers take {found} bytes, and those of an accelerator {needed}")]
    Window {
        /// Bytes of the device's first map.
        found: u64,
        /// Bytes of the registers.
        needed: u64,
    },
    /// A file may not be opened.
    #[error("{path} may not be opened: permission denied")]
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
    /// Another program has the device.
    #[error("another program uses {path}")]
    InUse {
        /// The file.
        path: String,
    },
    /// The hardware is not what the program is for.
    #[error(transparent)]
    Wrong(#[from] WrongHardware),
    /// The core's addresses do not reach the buffer.
    #[error("the buffer lies at {from:#x} to {to:#x}, and the addresses of {name} end at {last:#x}")]
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
    /// The interrupt cannot be waited for.
    #[error("its interrupt cannot be waited for: {reason}")]
    NoInterrupt {
        /// The system's reason.
        reason: String,
    },
    /// A command took too long, and was stopped.
    #[error("a command did not end within {limit:?} and was stopped in cycle {cycle}, with status {status:#x}")]
    TimedOut {
        /// The limit.
        limit: Duration,
        /// The cycle counter.
        cycle: u64,
        /// The status register.
        status: u32,
    },
    /// The core does not come back from a reset.
    #[error("the core does not come back from a reset: a burst on its bus is not answered")]
    Stuck,
}

/// What of a peripheral the system names.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Kind {
    /// Registers and an interrupt.
    Uio,
    /// Memory.
    Buffer,
}

impl std::fmt::Display for Kind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Kind::Uio => "UIO device",
            Kind::Buffer => "u-dma-buf buffer",
        })
    }
}

impl Kind {
    /// What brings such devices into the system.
    fn load(self) -> &'static str {
        match self {
            Kind::Uio => {
                "add the board's device-tree fragment (tilewright.dtsi) and load the module: modprobe uio_pdrv_genirq of_id=generic-uio"
            }
            Kind::Buffer => {
                "add the board's device-tree fragment (tilewright.dtsi), install the u-dma-buf module, and load it: modprobe u-dma-buf"
            }
        }
    }
}

impl Fault {
    /// What to do.
    pub fn remedy(&self) -> String {
        let text = match self {
            Fault::NoClass { kind, .. } => kind.load(),
            Fault::NoDevice { kind, there_are, .. } if there_are.is_empty() => kind.load(),
            Fault::NoDevice { there_are, .. } => {
                return format!("name the device as the device tree does; there are {}", there_are.join(", "));
            }
            Fault::Ambiguous { devices, .. } => return format!("give one of them: uio:{}", devices[0]),
            Fault::Attribute { .. } => "see that the module is the one for this kernel, and load it again",
            Fault::Window { .. } => "give the node of the device tree the window that the address map has (reg)",
            Fault::Denied { .. } => {
                "run as root, or let your user open it: a udev rule for the subsystems uio and u-dma-buf"
            }
            Fault::Open { .. } => "see that the modules are loaded and the device tree is the board's",
            Fault::InUse { .. } => "wait until it has ended, or end it",
            Fault::Wrong(wrong) => wrong.remedy(),
            Fault::OutOfReach { to, .. } => {
                let bits = u64::BITS - to.leading_zeros();
                return format!("make the bitstream of a configuration with offset_bits = {bits} or more");
            }
            Fault::Access { .. } => "run again; where it comes back, load the modules again",
            Fault::NoInterrupt { .. } => "give the node of the device tree the core's interrupt (interrupts)",
            Fault::TimedOut { .. } => {
                "run again with a limit (run --max-cycles); where it comes back, report it with the program"
            }
            Fault::Stuck => {
                "see that the block design connects and clocks the memory port and that the bitstream is the board's, then load it again"
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
