//! Devices by the names that `--device` accepts.

use tilewright_driver::port::{BoardPort, PortError};
use tilewright_rpc::endpoint::{Lender, LenderError};

use super::table::{DEVICES, ModelRunner, Spec, Way, names};

/// A device of the table, with its port if it is a board, and its lender if it is of another machine.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceKind {
    spec: &'static Spec,
    /// Leaked when parsed, so that a kind can be copied.
    port: Option<&'static BoardPort>,
    lender: Option<&'static Lender>,
}

/// A name that is not a device, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceNameError {
    /// A port without a path, or whose speed is not a number.
    #[error(transparent)]
    Port(#[from] PortError),
    /// A server or tracker without an address, or a tracker without a kind.
    #[error(transparent)]
    Lender(#[from] LenderError),
    /// No device at all.
    #[error("no device is named {name}; use {}", names(|_| true))]
    Unknown {
        /// The name.
        name: String,
    },
}

impl std::str::FromStr for DeviceKind {
    type Err = DeviceNameError;

    fn from_str(name: &str) -> Result<DeviceKind, DeviceNameError> {
        let kind = name.split(':').next().unwrap_or_default();
        let found = DEVICES.iter().find(|spec| match spec.way {
            Way::Board | Way::Remote => spec.name == kind,
            _ => spec.name == name,
        });
        match found {
            Some(spec) if spec.way == Way::Board => {
                let port: BoardPort = name.parse()?;
                Ok(DeviceKind { port: Some(Box::leak(Box::new(port))), ..DeviceKind::of(spec) })
            }
            Some(spec) if spec.way == Way::Remote => {
                let lender: Lender = name.parse()?;
                Ok(DeviceKind { lender: Some(Box::leak(Box::new(lender))), ..DeviceKind::of(spec) })
            }
            Some(spec) => Ok(DeviceKind::of(spec)),
            None => Err(DeviceNameError::Unknown { name: name.to_string() }),
        }
    }
}

impl DeviceKind {
    /// The functional simulator: values without time.
    pub const FSIM: DeviceKind = DeviceKind::of(&DEVICES[0]);
    /// The cycle model: values and exact cycles, many times faster than the design.
    pub const CSIM: DeviceKind = DeviceKind::of(&DEVICES[1]);
    /// The Verilated design: exact cycles, signal by signal.
    pub const RTL: DeviceKind = DeviceKind::of(&DEVICES[2]);
    /// No accelerator: everything runs on this machine's processor.
    pub const CPU: DeviceKind = DeviceKind::of(&DEVICES[3]);
    /// No accelerator: everything runs on this machine's GPU.
    pub const CUDA: DeviceKind = DeviceKind::of(&DEVICES[4]);

    /// Reads a name as [`FromStr`](std::str::FromStr) does; if it is no device, tells those that `wanted` accepts.
    ///
    /// # Errors
    /// What to do instead.
    pub fn among(name: &str, wanted: impl Fn(&Spec) -> bool) -> Result<DeviceKind, String> {
        name.parse().map_err(|error| match error {
            DeviceNameError::Unknown { name } => format!("no device is named {name}; use {}", names(wanted)),
            other => other.to_string(),
        })
    }

    const fn of(spec: &'static Spec) -> DeviceKind {
        DeviceKind { spec, port: None, lender: None }
    }

    /// Its row of the table.
    pub fn spec(self) -> &'static Spec {
        self.spec
    }

    /// Whether it runs the accelerator's programs; else the host computes everything.
    pub fn is_accelerator(self) -> bool {
        self.spec.is_accelerator()
    }

    /// What computes everything, if it is not an accelerator.
    pub fn model_runner(self) -> Option<ModelRunner> {
        match self.spec.way {
            Way::None(runner) => Some(runner),
            _ => None,
        }
    }

    /// Whether it may record when each instruction ran. What a server lends is known when it is opened.
    pub fn may_trace(self) -> bool {
        self.spec.exact || self.spec.way == Way::Remote
    }

    /// Who lends it, if it is a device of another machine.
    pub fn lender(self) -> Option<&'static Lender> {
        self.lender
    }

    /// The port, if it is a board.
    pub fn port(self) -> Option<&'static BoardPort> {
        self.port
    }
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match (self.port, self.lender) {
            (Some(port), _) => write!(f, "{port}"),
            (None, Some(lender)) => write!(f, "{lender}"),
            (None, None) => f.write_str(self.spec.name),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn constants_are_their_rows() {
        for (kind, name) in [
            (DeviceKind::FSIM, "fsim"),
            (DeviceKind::CSIM, "csim"),
            (DeviceKind::RTL, "rtl"),
            (DeviceKind::CPU, "cpu"),
            (DeviceKind::CUDA, "cuda"),
        ] {
            assert_eq!(kind.to_string(), name);
            assert_eq!(name.parse(), Ok(kind));
        }
    }
}
