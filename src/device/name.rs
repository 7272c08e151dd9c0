//! Devices by the names that `--device` accepts.

use tilewright_driver::port::{BoardPort, PortError};

use super::table::{DEVICES, ModelRunner, Spec, Way, names};

/// A device of the table, with its port if it is a board.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct DeviceKind {
    spec: &'static Spec,
    /// Leaked when parsed, so that a kind can be copied.
    port: Option<&'static BoardPort>,
}

/// A name that is not a device, with what to do.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum DeviceNameError {
    /// A device that this version does not have.
    #[error("device {name} is not available in this version; use fsim for answers, or csim for exact cycles too")]
    NotYet {
        /// The name.
        name: String,
    },
    /// A port without a path, or whose speed is not a number.
    #[error(transparent)]
    Port(#[from] PortError),
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
            Way::Board => spec.name == kind,
            _ => spec.name == name,
        });
        match found {
            Some(spec) if spec.way == Way::Board => {
                let port: BoardPort = name.parse()?;
                Ok(DeviceKind { spec, port: Some(Box::leak(Box::new(port))) })
            }
            Some(spec) => Ok(DeviceKind { spec, port: None }),
            None if kind == "remote" => Err(DeviceNameError::NotYet { name: name.to_string() }),
            None => Err(DeviceNameError::Unknown { name: name.to_string() }),
        }
    }
}

impl DeviceKind {
    /// The functional simulator: values without time.
    pub const FSIM: DeviceKind = DeviceKind { spec: &DEVICES[0], port: None };
    /// The cycle model: values and exact cycles, many times faster than the design.
    pub const CSIM: DeviceKind = DeviceKind { spec: &DEVICES[1], port: None };
    /// The Verilated design: exact cycles, signal by signal.
    pub const RTL: DeviceKind = DeviceKind { spec: &DEVICES[2], port: None };
    /// No accelerator: everything runs on this machine's processor.
    pub const CPU: DeviceKind = DeviceKind { spec: &DEVICES[3], port: None };
    /// No accelerator: everything runs on this machine's GPU.
    pub const CUDA: DeviceKind = DeviceKind { spec: &DEVICES[4], port: None };

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

    /// The port, if it is a board.
    pub fn port(self) -> Option<&'static BoardPort> {
        self.port
    }
}

impl std::fmt::Display for DeviceKind {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.port {
            Some(port) => write!(f, "{port}"),
            None => f.write_str(self.spec.name),
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
