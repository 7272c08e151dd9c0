//! Servers and clients of one process over the loopback interface.

mod access;
pub(crate) mod bad;
pub(crate) mod calls;
mod differential;
pub(crate) mod fuzz;
mod log;
mod poll;
mod queue;
mod scrub;

use std::sync::Arc;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::Duration;

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError};
use tilewright_runtime::Registry;
use tilewright_sim::{Csim, CsimOptions, Fsim};

use super::{Lends, Limits, Options, Running, Server};
use crate::client::{Asked, RemoteDevice};
use crate::endpoint::{Access, Endpoint};

/// A simulator as `tilewright serve` lends it. `open` counts those that are open.
pub(crate) fn simulator(config: &HwConfig, exact: bool, open: Arc<AtomicUsize>) -> Lends {
    let make = move |config: &HwConfig, asked: Asked, _: &dyn Fn(&str)| {
        let memory = config.memory_bytes();
        let device: Box<dyn Device> = match exact {
            true => {
                let options = CsimOptions { strict: asked.strict, spans: asked.spans, ..CsimOptions::default() };
                Box::new(Csim::new(config.clone(), memory, options).with_cycle_limit(asked.max_cycles))
            }
            false => Box::new(Fsim::new(config.clone(), memory).with_cycle_limit(asked.max_cycles)),
        };
        open.fetch_add(1, Ordering::Relaxed);
        Ok(device)
    };
    let name = if exact { "csim" } else { "fsim" };
    Lends {
        name: name.into(),
        config: config.clone(),
        devices: 1,
        disposable: true,
        open: Box::new(make),
        functions: Registry::new(),
        native: None,
    }
}

/// Time in which something must be done: so many seconds, times the variable PATIENCE for emulated processors.
pub(crate) fn within(seconds: u64) -> Duration {
    let patience = std::env::var("PATIENCE").map_or(1, |text| text.parse().expect("PATIENCE is a number"));
    Duration::from_secs(seconds * patience)
}

pub(crate) fn endpoint(running: &Running) -> Endpoint {
    Endpoint { host: running.address().ip().to_string(), port: running.address().port() }
}

pub(crate) fn loopback() -> Options {
    Options::new(Endpoint { host: "127.0.0.1".into(), port: 0 })
}

pub(crate) fn with_limits(limits: Limits) -> Options {
    Options { limits, ..loopback() }
}

pub(crate) fn start(options: Options, lends: Lends) -> Running {
    log::keep();
    Server::bind(options, lends).expect("it listens").start().expect("it starts")
}

/// A server with the functional simulator.
pub(crate) fn functional() -> Running {
    start(loopback(), simulator(&small(), false, Arc::default()))
}

/// A configuration with a small memory.
pub(crate) fn small() -> HwConfig {
    let mut config = HwConfig::load("1x4x4").expect("is a preset");
    // Many of them fit into a processor with 32 bits.
    config.host.memory_mib = 64;
    config
}

pub(crate) fn open(running: &Running, config: &HwConfig, asked: Asked) -> Result<RemoteDevice, DeviceError> {
    RemoteDevice::open(&endpoint(running), &Access::default(), config, asked, &|_| ())
}

pub(crate) fn plain(running: &Running) -> RemoteDevice {
    open(running, &small(), Asked::default()).expect("a device")
}
