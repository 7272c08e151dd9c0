//! What a server lends, and what all its sessions share.

use std::sync::Arc;

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError};
use tilewright_runtime::{Module, Registry, SharedDevice};
use tokio::sync::watch;

use super::busy::Busy;
use super::machine::{Budget, CpuCode, MachineModule};
use super::options::Limits;
use super::queue::Queue;
use crate::client::Asked;
use crate::native::Native;

/// Opens a device for a session: the configuration, what the client asks, and what to tell it meanwhile. The session uses
/// it in work that is [stopped](tilewright_hw::interrupt) when the client is gone.
pub type OpenDevice =
    dyn Fn(&HwConfig, Asked, &dyn Fn(&str)) -> Result<Box<dyn Device>, DeviceError> + Send + Sync + 'static;

/// What a server lends. Simulators and boards come from the caller.
pub struct Lends {
    /// The device's name, as `--device` accepts it on the server.
    pub name: String,
    /// The hardware's configuration. A client's must be the same, but for the memory model of simulators.
    pub config: HwConfig,
    /// Devices that can be lent at the same time: 1 for a board.
    pub devices: usize,
    /// Whether each session gets a new device that is thrown away after it, as simulators are. Other devices are
    /// scrubbed.
    pub disposable: bool,
    /// Opens a device.
    pub open: Box<OpenDevice>,
    /// Functions that clients can call by name, and that uploaded artifacts can use. They run on the threads of the
    /// sessions, several at a time. `load` is the server's own.
    pub functions: Registry,
    /// How CPU code of clients runs; without it, uploaded artifacts cannot have any.
    pub native: Option<Native>,
}

impl Lends {
    /// The server's functions, for a session with this device. Processes for CPU code are killed once `stopped` is true;
    /// what they ask of the server is a part of what the session does.
    pub(super) fn module(
        &self,
        device: Option<SharedDevice>,
        limits: &Limits,
        stopped: &watch::Receiver<bool>,
        busy: &Arc<Busy>,
    ) -> Module {
        let run = |native: &Native| CpuCode::InProcess(native.clone(), stopped.clone(), busy.clone());
        Module::new(MachineModule {
            cpu_code: self.native.as_ref().map_or(CpuCode::Refused, run),
            name: format!("the server of {}", self.name),
            functions: self.functions.clone(),
            device,
            budget: Budget::new(limits.memory, limits.frames),
        })
    }
}

/// What all sessions share.
pub(super) struct Shared {
    pub lends: Arc<Lends>,
    pub limits: Limits,
    pub queue: Queue,
    /// True, or without its sender, once the server stops.
    pub stopping: watch::Receiver<bool>,
}
