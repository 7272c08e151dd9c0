//! The device of a session, for all that uses it meanwhile: the client's requests, and models that run on the server.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Command, Device, DeviceError, RunReport, Ticket};

use super::scrub::{Touched, scrub};

/// A device that can be taken back, whoever still refers to it.
#[derive(Clone)]
pub(super) struct Lent(Arc<Mutex<Option<Held>>>);

struct Held {
    device: Box<dyn Device>,
    /// What is to be cleared after the session.
    touched: Touched,
    /// Commands without a report yet.
    open: Vec<Ticket>,
    /// Cycles of a command, whatever it asks.
    most_cycles: Option<u64>,
}

impl Lent {
    pub fn new(device: Box<dyn Device>, most_cycles: Option<u64>) -> Lent {
        let held = Held { device, touched: Touched::default(), open: Vec::new(), most_cycles };
        Lent(Arc::new(Mutex::new(Some(held))))
    }

    fn lock(&self) -> MutexGuard<'_, Option<Held>> {
        self.0.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// The device for those who use it; it ends with [`Lent::take_back`].
    pub fn device(&self) -> Box<dyn Device> {
        let held = self.lock();
        // It is there until it is taken back, which its owner does last.
        let of = |held: &Held| (held.device.config().clone(), held.device.name().into(), held.device.memory_bytes());
        let (config, name, memory_bytes) = held.as_ref().map(of).unwrap_or_default();
        Box::new(Borrowed { lent: self.clone(), config, name, memory_bytes })
    }

    /// Ends the use of the device. Waits for the commands that nobody waited for, and clears what is left on it if it
    /// `stays`.
    ///
    /// # Errors
    /// The device's, or a text if it traps while it is cleared.
    pub fn take_back(&self, stays: bool) -> Result<(), DeviceError> {
        let Some(mut held) = self.lock().take() else { return Ok(()) };
        if !stays {
            return Ok(());
        }
        for ticket in held.open {
            let _ = held.device.wait(ticket);
        }
        scrub(held.device.as_mut(), &held.touched)
    }
}

struct Borrowed {
    lent: Lent,
    config: HwConfig,
    name: String,
    memory_bytes: u64,
}

impl Borrowed {
    fn with<R>(&self, use_it: impl FnOnce(&mut Held) -> Result<R, DeviceError>) -> Result<R, DeviceError> {
        match self.lent.lock().as_mut() {
            Some(held) => use_it(held),
            None => Err(DeviceError::Tool {
                tool: self.name.clone(),
                reason: "the session that had it has ended".into(),
                remedy: "open another one".into(),
            }),
        }
    }
}

impl Device for Borrowed {
    fn config(&self) -> &HwConfig {
        &self.config
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn memory_bytes(&self) -> u64 {
        self.memory_bytes
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        self.with(|held| {
            held.touched.add(addr, bytes.len() as u64);
            held.device.write(addr, bytes)
        })
    }

    fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        self.with(|held| held.device.read(addr, bytes))
    }

    fn clean_cache(&mut self, addr: u64, len: u64) -> Result<(), DeviceError> {
        self.with(|held| held.device.clean_cache(addr, len))
    }

    fn invalidate_cache(&mut self, addr: u64, len: u64) -> Result<(), DeviceError> {
        self.with(|held| held.device.invalidate_cache(addr, len))
    }

    fn submit(&mut self, command: &Command) -> Result<Ticket, DeviceError> {
        self.with(|held| {
            let cycle_limit = match (command.cycle_limit, held.most_cycles) {
                (Some(asked), Some(most)) => Some(asked.min(most)),
                (asked, most) => asked.or(most),
            };
            held.touched.add_command(command);
            let ticket = held.device.submit(&Command { cycle_limit, ..command.clone() })?;
            held.open.push(ticket);
            Ok(ticket)
        })
    }

    fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError> {
        self.with(|held| {
            held.open.retain(|open| *open != ticket);
            held.device.wait(ticket)
        })
    }

    fn poll(&mut self, ticket: Ticket, at_most: Duration) -> Result<Option<RunReport>, DeviceError> {
        self.with(|held| {
            let polled = held.device.poll(ticket, at_most);
            if !matches!(polled, Ok(None)) {
                held.open.retain(|open| *open != ticket);
            }
            polled
        })
    }

    fn scratchpad(&mut self, mem: Mem, entry: u32, count: u32) -> Result<Vec<u8>, DeviceError> {
        self.with(|held| held.device.scratchpad(mem, entry, count))
    }
}

#[cfg(test)]
mod tests {
    use tilewright_sim::Fsim;
    use tilewright_testing::device::Hooked;

    use super::*;

    #[test]
    fn a_poll_of_a_lent_device_is_one_of_the_device_itself() {
        let config = HwConfig::load("1x4x4").expect("is a preset");
        let memory = config.memory_bytes();
        let mut polls = 0;
        let slow = Hooked::new("slow", Fsim::new(config, memory)).ended(move || {
            polls += 1;
            polls == 3
        });
        let lent = Lent::new(Box::new(slow), None);
        let mut device = lent.device();
        let ticket = device.submit(&Command::default()).expect("it is taken");
        for ended in [false, false, true] {
            // What is dropped meanwhile must still be waited for.
            assert_eq!(lent.lock().as_ref().map(|held| held.open.len()), Some(1));
            let polled = device.poll(ticket, Duration::ZERO).expect("it is polled");
            assert_eq!(polled.is_some(), ended);
        }
        assert_eq!(lent.lock().as_ref().map(|held| held.open.len()), Some(0));
    }
}
