//! The devices of a comparison by name.

use crate::device::{DeviceKind, DeviceNameError, ModelRunner, names};

/// A requested device: one that this program can open, or a known one that it cannot.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Asked {
    /// Its name, as it was given.
    pub name: String,
    /// The device, or the reason why it is not available.
    pub kind: Result<DeviceKind, String>,
}

impl Asked {
    /// Parses a name.
    ///
    /// # Errors
    /// If the name is unknown; the error lists the known ones.
    pub fn parse(name: &str) -> Result<Asked, String> {
        let kind = match name.parse::<DeviceKind>() {
            Ok(kind) => Ok(kind),
            Err(DeviceNameError::Unknown { name }) => {
                return Err(format!("no device is named {name}; use {}", names(|_| true)));
            }
            Err(error) => return Err(error.to_string()),
        };
        Ok(Asked { name: name.to_string(), kind })
    }

    /// Whether the device is this machine's GPU.
    pub fn is_gpu(&self) -> bool {
        self.kind.as_ref().is_ok_and(|kind| kind.model_runner() == Some(ModelRunner::Gpu))
    }

    /// Whether the device is an accelerator, so that it gets a column per configuration.
    pub fn is_accelerator(&self) -> bool {
        self.kind.as_ref().is_ok_and(|kind| kind.is_accelerator())
    }
}
