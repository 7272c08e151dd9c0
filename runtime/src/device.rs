//! A device with the allocator of its memory, shared by the sessions that run on it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tilewright_driver::{Block, DeviceMemory, DriverError};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError, RunReport, Ticket};
use tilewright_hw::interrupt;

/// Time that a thread waits for its program before others can use the device.
const SLICE: Duration = Duration::from_micros(200);

/// Time after which a thread that waits for another's program looks whether its work was stopped.
const LOOK: Duration = Duration::from_millis(50);

/// A device and what is free of its memory.
pub(crate) struct Held {
    pub device: Box<dyn Device>,
    pub memory: DeviceMemory,
    /// Programs that were submitted and have not ended, in their order.
    running: VecDeque<Program>,
    /// Threads that wait until no program runs. Until they had the device, no further program is submitted.
    alone: usize,
}

/// A program that was submitted.
struct Program {
    ticket: Ticket,
    /// The memory that it changes.
    tensors: Block,
    /// Nobody waits for its end any more, because the work was stopped or a thread panicked.
    abandoned: bool,
}

struct Access {
    held: Mutex<Held>,
    /// Threads that want the device.
    wanting: AtomicUsize,
    /// A program has ended.
    ended: Condvar,
}

impl Access {
    /// A panic in another thread leaves device and allocator usable: a command starts with a reset after a trap, and a
    /// block that was not given back is lost at worst.
    fn lock(&self) -> MutexGuard<'_, Held> {
        self.wanting.fetch_add(1, Ordering::Relaxed);
        let held = self.held.lock().unwrap_or_else(PoisonError::into_inner);
        self.wanting.fetch_sub(1, Ordering::Relaxed);
        held
    }

    /// Gives the device to threads that want it, then takes it again.
    fn pass<'a>(&'a self, held: MutexGuard<'a, Held>) -> MutexGuard<'a, Held> {
        if self.wanting.load(Ordering::Relaxed) == 0 {
            return held;
        }
        drop(held);
        while self.wanting.load(Ordering::Relaxed) > 0 {
            thread::yield_now();
        }
        self.lock()
    }

    /// Waits a while for the end of a program. The first one is looked at here if nobody else waits for it.
    fn wait_for_an_end<'a>(&'a self, mut held: MutexGuard<'a, Held>) -> MutexGuard<'a, Held> {
        match held.running.front() {
            Some(Program { ticket, abandoned: true, .. }) => {
                let ticket = *ticket;
                // Its outcome matters to nobody.
                if !matches!(held.device.poll(ticket, SLICE), Ok(None)) {
                    held.running.pop_front();
                    self.ended.notify_all();
                }
                self.pass(held)
            }
            _ => self.ended.wait_timeout(held, LOOK).unwrap_or_else(PoisonError::into_inner).0,
        }
    }
}

/// The place of a submitted program among those that run. Until the program has ended, it is left abandoned when this is
/// dropped.
struct Submitted<'a> {
    access: &'a Access,
    ticket: Option<Ticket>,
    ended: bool,
}

impl Drop for Submitted<'_> {
    fn drop(&mut self) {
        let Some(own) = self.ticket else { return };
        let mut held = self.access.lock();
        match self.ended {
            true => held.running.retain(|program| program.ticket != own),
            false => held.running.iter_mut().filter(|program| program.ticket == own).for_each(|p| p.abandoned = true),
        }
        drop(held);
        self.access.ended.notify_all();
    }
}

/// A device that several sessions can use. Each has a part of its memory; programs run one at a time, but the next ones
/// can be submitted before. Copies refer to the same device.
#[derive(Clone)]
pub struct SharedDevice {
    name: Arc<str>,
    config: Arc<HwConfig>,
    access: Arc<Access>,
}

impl SharedDevice {
    /// Shares a device whose memory is free.
    pub fn new(device: Box<dyn Device>) -> SharedDevice {
        let memory = DeviceMemory::new(device.memory_bytes(), device.config());
        SharedDevice {
            name: device.name().into(),
            config: Arc::new(device.config().clone()),
            access: Arc::new(Access {
                held: Mutex::new(Held { device, memory, running: VecDeque::new(), alone: 0 }),
                wanting: AtomicUsize::new(0),
                ended: Condvar::new(),
            }),
        }
    }

    /// Its name, as `--device` accepts it.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// The hardware's configuration.
    pub fn config(&self) -> &HwConfig {
        &self.config
    }

    /// Bytes of its memory that no session has taken.
    pub fn free_bytes(&self) -> u64 {
        self.lock().memory.free_bytes()
    }

    /// Waits until no program runs, then calls `use_it` with the device.
    pub fn with<R>(&self, use_it: impl FnOnce(&mut dyn Device) -> R) -> R {
        let mut held = self.lock();
        held.alone += 1;
        while !held.running.is_empty() {
            held = self.access.wait_for_an_end(held);
        }
        held.alone -= 1;
        if held.alone == 0 {
            self.access.ended.notify_all();
        }
        use_it(held.device.as_mut())
    }

    /// Submits a program that changes only `tensors`, waits for its end and collects its results. Meanwhile, other
    /// threads can submit theirs, which follow at once.
    pub(crate) fn run<R>(
        &self,
        tensors: Block,
        submit: impl FnOnce(&mut dyn Device) -> Result<Ticket, DriverError>,
        collect: impl FnOnce(&mut dyn Device, RunReport) -> Result<R, DriverError>,
    ) -> Result<R, DriverError> {
        // It is dropped after the lock, which it needs.
        let mut submitted = Submitted { access: &self.access, ticket: None, ended: false };
        let mut held = self.lock();
        while held.alone > 0 || held.running.iter().any(|program| program.tensors == tensors) {
            interrupt::check().map_err(DeviceError::from)?;
            held = self.access.wait_for_an_end(held);
        }
        let ticket = submit(held.device.as_mut())?;
        held.running.push_back(Program { ticket, tensors, abandoned: false });
        submitted.ticket = Some(ticket);
        let report = loop {
            if held.running.front().is_some_and(|first| first.ticket == ticket) {
                let polled = held.device.poll(ticket, SLICE);
                match polled.transpose() {
                    Some(report) => break report,
                    None => held = self.access.pass(held),
                }
            } else {
                held = self.access.wait_for_an_end(held);
            }
            interrupt::check().map_err(DeviceError::from)?;
        };
        submitted.ended = true;
        collect(held.device.as_mut(), report?)
    }

    pub(crate) fn lock(&self) -> MutexGuard<'_, Held> {
        self.access.lock()
    }
}

impl std::fmt::Debug for SharedDevice {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "SharedDevice({} of {})", self.name, self.config.name)
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Barrier;

    use tilewright_hw::device::Command;
    use tilewright_hw::device::queue::Queue;
    use tilewright_hw::interrupt::{Interrupt, Interrupted};

    use super::*;

    /// A device whose commands end when `goal` of them were submitted.
    struct Together {
        config: HwConfig,
        queue: Queue,
        goal: usize,
        submitted: usize,
        /// Inputs that were written and whose outputs were not read.
        in_use: Vec<u64>,
    }

    impl Device for Together {
        fn config(&self) -> &HwConfig {
            &self.config
        }

        fn name(&self) -> &str {
            "together"
        }

        fn memory_bytes(&self) -> u64 {
            1 << 20
        }

        fn write(&mut self, addr: u64, _: &[u8]) -> Result<(), DeviceError> {
            assert!(self.in_use.iter().all(|used| *used != addr), "the memory is in use");
            self.in_use.push(addr);
            Ok(())
        }

        fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
            bytes.fill(addr as u8);
            self.in_use.retain(|used| *used != addr);
            Ok(())
        }

        fn submit(&mut self, command: &Command) -> Result<Ticket, DeviceError> {
            self.submitted += 1;
            self.queue.submit(command, &self.config)
        }

        fn wait(&mut self, ticket: Ticket) -> Result<RunReport, DeviceError> {
            while let Some((first, command)) = self.queue.next(ticket) {
                self.queue.done(first, Ok(RunReport { macs: command.insns.into(), ..RunReport::default() }));
            }
            self.queue.take(ticket)
        }

        fn poll(&mut self, ticket: Ticket, _: Duration) -> Result<Option<RunReport>, DeviceError> {
            if self.submitted < self.goal { Ok(None) } else { self.wait(ticket).map(Some) }
        }
    }

    fn shared(goal: usize) -> SharedDevice {
        let (config, queue) = (HwConfig::default(), Queue::default());
        SharedDevice::new(Box::new(Together { config, queue, goal, submitted: 0, in_use: Vec::new() }))
    }

    fn block(number: u64) -> Block {
        Block { addr: number << 12, bytes: 4096 }
    }

    fn run(device: &SharedDevice, number: u32, tensors: Block) -> u64 {
        let command = Command { insns: number, ..Command::default() };
        let submit = |device: &mut dyn Device| Ok(device.submit(&command)?);
        device.run(tensors, submit, |_, report| Ok(report.macs)).unwrap()
    }

    #[test]
    fn programs_with_memory_of_their_own_are_submitted_before_others_end() {
        let device = shared(3);
        thread::scope(|scope| {
            let threads = [1, 2, 3].map(|number| {
                let device = &device;
                scope.spawn(move || run(device, number, block(number.into())))
            });
            assert_eq!(threads.map(|thread| thread.join().unwrap()), [1, 2, 3]);
        });
        assert!(device.lock().running.is_empty());
    }

    #[test]
    fn programs_in_the_same_memory_run_in_turn_and_others_wait_for_all_of_them() {
        let (device, begin) = (shared(1), Barrier::new(9));
        thread::scope(|scope| {
            for number in 0..8 {
                let (device, begin) = (&device, &begin);
                scope.spawn(move || {
                    begin.wait();
                    let alone = |device: &mut dyn Device| {
                        device.write(0, &[])?;
                        Ok(device.submit(&Command { insns: number, ..Command::default() })?)
                    };
                    let macs = device.run(block(0), alone, |device, report| {
                        device.read(0, &mut [])?;
                        Ok(report.macs)
                    });
                    assert_eq!(macs.unwrap(), u64::from(number));
                });
            }
            begin.wait();
            device.with(|device| device.write(0, &[]).and_then(|()| device.read(0, &mut [])).unwrap());
        });
    }

    #[test]
    fn a_program_whose_caller_panics_leaves_the_device_to_others() {
        let device = shared(1);
        let panics = std::panic::catch_unwind(std::panic::AssertUnwindSafe(|| {
            let submit = |device: &mut dyn Device| Ok(device.submit(&Command::default())?);
            device.run(block(0), submit, |_, _| -> Result<(), DriverError> { panic!("bad luck") })
        }));
        assert!(panics.is_err());
        assert_eq!(run(&device, 5, block(0)), 5);
        device.with(|_| ());
    }

    /// The program goes on in the device, so its memory is not used before it has ended.
    #[test]
    fn a_program_that_nobody_waits_for_ends_before_its_memory_is_used() {
        let device = shared(2);
        let stop = Interrupt::alone();
        stop.stop();
        let submit = |device: &mut dyn Device| {
            device.write(0, &[])?;
            Ok(device.submit(&Command::default())?)
        };
        let stopped = stop.during(|| device.run(block(0), submit, |_, _| Ok(())));
        assert!(matches!(stopped, Err(DriverError::Device(DeviceError::Interrupted(Interrupted)))), "{stopped:?}");
        assert!(device.lock().running[0].abandoned);
        thread::scope(|scope| {
            // It waits for the first program, which ends when another one is submitted.
            let same = scope.spawn(|| run(&device, 7, block(0)));
            thread::sleep(Duration::from_millis(20));
            assert!(!same.is_finished());
            assert_eq!(run(&device, 6, block(1)), 6);
            assert_eq!(same.join().unwrap(), 7);
        });
        assert!(device.lock().running.is_empty());
    }
}
