//! A peripheral as a device.

use super::error::{Fault, PeripheralError};
use std::io;
use std::time::Duration;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::queue::{DEFAULT_CYCLE_LIMIT, Queue};
use tilewright_hw::device::{Base, Command, Device, DeviceError, RunReport, Ticket, check_command, memory_range};
use tilewright_hw::host::{BaseRegisters, Identity, retired_macs};
use tilewright_hw::interrupt;
use tilewright_hw::peripheral::Peripheral;
use tilewright_hw::regs;

/// Reads of the status register between two checks of the clock during a reset.
const RESET_LOOKS: usize = 64;

/// Time limits.
#[derive(Debug, Clone, Copy)]
pub struct PeripheralOptions {
    /// Limit of a whole command.
    pub command: Duration,
    /// Time without an interrupt after which the status is polled.
    pub poll: Duration,
    /// Limit of a reset, which waits for bursts in flight on the core's bus.
    pub reset: Duration,
}

impl Default for PeripheralOptions {
    fn default() -> PeripheralOptions {
        PeripheralOptions {
            command: Duration::from_secs(120),
            poll: Duration::from_millis(200),
            reset: Duration::from_secs(1),
        }
    }
}

/// How the ends of commands were noticed.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub struct Interrupts {
    /// By an interrupt.
    pub came: u64,
    /// By polling the status, because no interrupt had come.
    pub missed: u64,
}

/// A core that is a peripheral of this processor.
///
/// The first submitted command starts at once; the others start when somebody waits for the end of the one before. Device
/// memory is the buffer: address 0 of the device is its first byte. Accesses past its end are refused, because that
/// memory belongs to the system.
#[derive(Debug)]
pub struct PeripheralDevice<P> {
    config: HwConfig,
    name: String,
    identity: Identity,
    peripheral: P,
    options: PeripheralOptions,
    bases: BaseRegisters,
    queue: Queue,
    running: Option<Running>,
    interrupts: Interrupts,
    /// The core did not complete a reset.
    lost: bool,
}

#[derive(Debug)]
struct Running {
    ticket: Ticket,
    command: Command,
    begun: Duration,
    /// When the status was read last.
    looked: Duration,
}

fn access(error: io::Error) -> Fault {
    Fault::Access { reason: error.to_string() }
}

fn no_interrupt(error: io::Error) -> Fault {
    Fault::NoInterrupt { reason: error.to_string() }
}

impl<P: Peripheral> PeripheralDevice<P> {
    /// Checks that the core has this configuration and reaches its buffer, and aborts what it is doing.
    ///
    /// # Errors
    /// What is wrong, and what to do.
    pub fn open(
        mut peripheral: P,
        config: HwConfig,
        options: PeripheralOptions,
    ) -> Result<PeripheralDevice<P>, PeripheralError> {
        let name = peripheral.name().to_string();
        let failed = |fault| PeripheralError { device: name.clone(), fault };
        let identity = identify(&mut peripheral, &config).map_err(failed)?;
        let bases = BaseRegisters::new(&config);
        let (queue, running, interrupts) = (Queue::default(), None, Interrupts::default());
        let mut device = PeripheralDevice {
            config,
            name: name.clone(),
            identity,
            peripheral,
            options,
            bases,
            queue,
            running,
            interrupts,
            lost: false,
        };
        device.reset().map_err(failed)?;
        Ok(device)
    }

    /// The core's identity.
    pub fn identity(&self) -> Identity {
        self.identity
    }

    /// How the ends of commands were noticed.
    pub fn interrupts(&self) -> Interrupts {
        self.interrupts
    }

    /// The peripheral.
    pub fn peripheral(&self) -> &P {
        &self.peripheral
    }

    /// The peripheral, for tests that disturb it.
    pub fn peripheral_mut(&mut self) -> &mut P {
        &mut self.peripheral
    }

    /// The peripheral. The core continues what it is doing.
    pub fn into_peripheral(self) -> P {
        self.peripheral
    }

    /// The same device, which aborts a command without its own limit after so many cycles.
    pub fn with_cycle_limit(mut self, limit: Option<u64>) -> Self {
        self.queue.cycle_limit = limit;
        self
    }

    fn error(&self, fault: Fault) -> DeviceError {
        PeripheralError { device: self.name.clone(), fault }.into()
    }

    /// Aborts whatever the core is doing, after which it is in its power-on state except for the contents of its
    /// memories.
    fn reset(&mut self) -> Result<(), Fault> {
        self.lost = true;
        let begun = self.peripheral.now();
        while !self.peripheral.soft_reset(RESET_LOOKS).map_err(access)? {
            if self.peripheral.now().saturating_sub(begun) > self.options.reset {
                return Err(Fault::Stuck);
            }
        }
        self.bases.clear(&mut self.peripheral).map_err(access)?;
        self.peripheral.enable_interrupt().map_err(no_interrupt)?;
        self.lost = false;
        Ok(())
    }

    /// Translates a command to addresses on the core's bus.
    fn on_bus(&self, command: &Command) -> Result<Command, DeviceError> {
        let (from, bytes) = (self.peripheral.buffer_addr(), self.peripheral.buffer_bytes());
        let stream = command.stream();
        memory_range(stream.start, stream.end - stream.start, bytes)?;
        let moved = |base: &Base| {
            memory_range(base.addr, base.limit, bytes)?;
            Ok(Base { addr: from + base.addr, limit: base.limit })
        };
        let bases = command.bases.iter().map(moved).collect::<Result<_, DeviceError>>()?;
        let command = Command { stream_addr: from + command.stream_addr, bases, ..command.clone() };
        check_command(&command, &self.config)?;
        Ok(command)
    }

    /// Starts the first waiting command, unless one is running.
    fn start_next(&mut self) {
        while self.running.is_none() {
            let Some((ticket, command)) = self.queue.next(Ticket(u64::MAX)) else { return };
            match self.start(&command) {
                Ok(begun) => self.running = Some(Running { ticket, command, begun, looked: begun }),
                Err(error) => self.queue.done(ticket, Err(error)),
            }
        }
    }

    fn start(&mut self, command: &Command) -> Result<Duration, DeviceError> {
        if self.lost {
            self.reset().map_err(|fault| self.error(fault))?;
        }
        let moved = self.on_bus(command)?;
        let begun = self.peripheral.now();
        let started = self.bases.set(&mut self.peripheral, &moved.bases).and_then(|()| self.peripheral.start(&moved));
        started.map_err(|error| self.error(access(error)))?;
        Ok(begun)
    }

    /// The command's report, or `None` if it has not ended after `at_most`.
    fn finish(&mut self, running: &mut Running, at_most: Duration) -> Option<Result<RunReport, DeviceError>> {
        let limit = running.command.cycle_limit.unwrap_or(DEFAULT_CYCLE_LIMIT);
        let ended = self.look(running, limit, at_most).transpose()?;
        Some(self.report_of(running, ended, limit))
    }

    fn report_of(
        &mut self,
        running: &Running,
        ended: Result<bool, Fault>,
        limit: u64,
    ) -> Result<RunReport, DeviceError> {
        let report =
            match ended.and_then(|ended| if ended { self.report(&running.command).map(Some) } else { Ok(None) }) {
                Ok(report) => report,
                Err(fault) => {
                    self.lost = true;
                    return Err(self.error(fault));
                }
            };
        if report.as_ref().is_none_or(|report| report.trap.is_some()) {
            self.reset().map_err(|fault| self.error(fault))?;
        }
        // The core does not enforce the limit itself.
        let last = |report: &RunReport| match report.trap {
            Some(trap) => trap.cycle.map(|cycle| cycle + 1),
            None => report.cycles,
        };
        match report {
            Some(report) if last(&report) <= Some(limit) => Ok(report),
            _ => Err(DeviceError::CycleLimit { limit }),
        }
    }

    /// Waits for an interrupt, but no longer than `at_most`; then returns whether the command has ended, `None` if it
    /// runs. Without an interrupt, it reads the status only if it has waited or not looked for [`PeripheralOptions::poll`].
    fn look(&mut self, running: &mut Running, limit: u64, at_most: Duration) -> Result<Option<bool>, Fault> {
        let came = self.peripheral.wait_for_interrupt(at_most.min(self.options.poll)).map_err(no_interrupt)?;
        if came {
            // Cleared before the status is read, so that a later end raises it again.
            self.peripheral.write_reg(regs::IRQ_CLEAR, 1).map_err(access)?;
            self.peripheral.enable_interrupt().map_err(no_interrupt)?;
        } else if at_most < self.options.poll
            && self.peripheral.now().saturating_sub(running.looked) < self.options.poll
        {
            return Ok(None);
        }
        let status = self.peripheral.read_reg(regs::STATUS).map_err(access)?;
        running.looked = self.peripheral.now();
        if status & regs::STATUS_BUSY == 0 {
            let seen = &mut self.interrupts;
            *(if came { &mut seen.came } else { &mut seen.missed }) += 1;
            return Ok(Some(true));
        }
        let cycle = self.peripheral.read_wide(regs::CYCLES_LO).map_err(access)?;
        if cycle > limit && status & regs::STATUS_TRAPPED == 0 {
            return Ok(Some(false));
        }
        if running.looked.saturating_sub(running.begun) > self.options.command {
            self.reset()?;
            return Err(Fault::TimedOut { limit: self.options.command, cycle, status });
        }
        Ok(None)
    }

    fn report(&mut self, command: &Command) -> Result<RunReport, Fault> {
        let mut report = self.peripheral.report(&self.config).map_err(access)?;
        let stream = command.stream();
        let mut bytes = vec![0; (stream.end - stream.start) as usize];
        self.peripheral.read_buffer(stream.start, &mut bytes).map_err(access)?;
        report.macs = retired_macs(&bytes, report.retired[1], &self.config);
        Ok(report)
    }
}

/// Checks that a core has a configuration and that the configuration's addresses reach its buffer.
fn identify<P: Peripheral>(peripheral: &mut P, config: &HwConfig) -> Result<Identity, Fault> {
    let identity = peripheral.identity().map_err(access)??;
    identity.check(config)?;
    let (from, last) = (peripheral.buffer_addr(), config.last_address());
    let to = from.saturating_add(peripheral.buffer_bytes()).saturating_sub(1);
    if to > last {
        return Err(Fault::OutOfReach { from, to, last, name: config.name.clone() });
    }
    Ok(identity)
}

impl<P: Peripheral> Device for PeripheralDevice<P> {
    fn config(&self) -> &HwConfig {
        &self.config
    }

    fn name(&self) -> &str {
        &self.name
    }

    fn memory_bytes(&self) -> u64 {
        self.peripheral.buffer_bytes()
    }

    fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
        memory_range(addr, bytes.len() as u64, self.memory_bytes())?;
        self.peripheral.write_buffer(addr, bytes).map_err(|error| self.error(access(error)))
    }

    fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
        memory_range(addr, bytes.len() as u64, self.memory_bytes())?;
        self.peripheral.read_buffer(addr, bytes).map_err(|error| self.error(access(error)))
    }

    fn submit(&mut self, command: &Command) -> Result<Ticket, DeviceError> {
        let ticket = self.queue.submit(command, &self.config)?;
        self.start_next();
        Ok(ticket)
    }

    fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError> {
        loop {
            if let Some(report) = self.poll(ticket, self.options.poll)? {
                return Ok(report);
            }
            if let Err(stopped) = interrupt::check()
                && self.running.take_if(|running| running.ticket == ticket).is_some()
            {
                self.reset().map_err(|fault| self.error(fault))?;
                self.start_next();
                return Err(stopped.into());
            }
        }
    }

    fn poll(&mut self, ticket: Ticket, at_most: Duration) -> Result<Option<RunReport>, DeviceError> {
        while let Some(mut running) = self.running.take_if(|running| running.ticket <= ticket) {
            let Some(outcome) = self.finish(&mut running, at_most) else {
                self.running = Some(running);
                return Ok(None);
            };
            self.queue.done(running.ticket, outcome);
            self.start_next();
        }
        self.queue.take(ticket).map(Some)
    }
}
