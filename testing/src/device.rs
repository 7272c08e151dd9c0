//! A device that runs on another one, most often a simulator, and calls a test's functions in between.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Command, Device, DeviceError, RunReport, Ticket};

/// What the host does to a device.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum HostAccess {
    /// Writes memory.
    Write,
    /// Reads memory.
    Read,
    /// Submits a command.
    Submit,
    /// Waits for a command, or polls it.
    Wait,
}

/// A device that passes everything to another one, under its own name, and calls the hooks that it was given.
pub struct Hooked<D> {
    inner: Arc<Mutex<D>>,
    name: String,
    config: HwConfig,
    before: Box<dyn FnMut(HostAccess) -> Result<(), DeviceError> + Send>,
    ended: Box<dyn FnMut() -> bool + Send>,
    report: Box<dyn FnMut(&mut RunReport) + Send>,
}

impl<D: Device> Hooked<D> {
    /// A device that runs on `inner`.
    pub fn new(name: &str, inner: D) -> Hooked<D> {
        Hooked::sharing(name, &Arc::new(Mutex::new(inner)))
    }

    /// A device that runs on one which stays when this is dropped, as a board does.
    pub fn sharing(name: &str, inner: &Arc<Mutex<D>>) -> Hooked<D> {
        let config = inner.lock().unwrap_or_else(PoisonError::into_inner).config().clone();
        Hooked {
            inner: inner.clone(),
            name: name.into(),
            config,
            before: Box::new(|_| Ok(())),
            ended: Box::new(|| true),
            report: Box::new(|_| ()),
        }
    }

    /// Calls `hook` before each access. If it fails, the other device is not accessed.
    pub fn before(self, hook: impl FnMut(HostAccess) -> Result<(), DeviceError> + Send + 'static) -> Hooked<D> {
        Hooked { before: Box::new(hook), ..self }
    }

    /// Calls `hook` when a command is polled. If it returns false, the command has not ended yet.
    pub fn ended(self, hook: impl FnMut() -> bool + Send + 'static) -> Hooked<D> {
        Hooked { ended: Box::new(hook), ..self }
    }

    /// Calls `hook` with each report.
    pub fn report(self, hook: impl FnMut(&mut RunReport) + Send + 'static) -> Hooked<D> {
        Hooked { report: Box::new(hook), ..self }
    }

    fn lock(&self) -> MutexGuard<'_, D> {
        self.inner.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl<D: Device> Device for Hooked<D> {
    fn config(&self) -> &HwConfig {
        &self.config
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn memory_bytes(&self) -> u64 {
        self.lock().memory_bytes()
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        (self.before)(HostAccess::Write)?;
        self.lock().write(addr, bytes)
    }

    fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        (self.before)(HostAccess::Read)?;
        self.lock().read(addr, bytes)
    }

    fn clean_cache(&mut self, addr: u64, len: u64) -> Result<(), DeviceError> {
        self.lock().clean_cache(addr, len)
    }

    fn invalidate_cache(&mut self, addr: u64, len: u64) -> Result<(), DeviceError> {
        self.lock().invalidate_cache(addr, len)
    }

    fn submit(&mut self, command: &Command) -> Result<Ticket, DeviceError> {
        (self.before)(HostAccess::Submit)?;
        self.lock().submit(command)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError> {
        (self.before)(HostAccess::Wait)?;
        let mut report = self.lock().wait(ticket)?;
        (self.report)(&mut report);
        Ok(report)
    }

    fn poll(&mut self, ticket: Ticket, at_most: Duration) -> Result<Option<RunReport>, DeviceError> {
        if !(self.ended)() {
            return Ok(None);
        }
        (self.before)(HostAccess::Wait)?;
        let mut report = self.lock().poll(ticket, at_most)?;
        report.iter_mut().for_each(|report| (self.report)(report));
        Ok(report)
    }

    fn scratchpad(&mut self, mem: Mem, entry: u32, count: u32) -> Result<Vec<u8>, DeviceError> {
        self.lock().scratchpad(mem, entry, count)
    }
}
