//! A device with the allocator of its memory, shared by the sessions that run on it.

use std::collections::VecDeque;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError};
use std::thread;
use std::time::Duration;

use tilewright_driver::{Block, DeviceMemory, DriverError};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, RunReport, Ticket};

/// Time that a thread waits for its program before others can use the device.
const SLICE: Duration = Duration::from_micros(200);

/// A device and what is free of its memory.
pub(crate) struct Held {
    pub device: Box<dyn Device>,
    pub memory: DeviceMemory,
    /// Programs that were submitted and have not ended, in their order, with the memory that they change.
    running: VecDeque<(Ticket, Block)>,
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

    fn wait_for_an_end<'a>(&'a self, held: MutexGuard<'a, Held>) -> MutexGuard<'a, Held> {
        self.ended.wait(held).unwrap_or_else(PoisonError::into_inner)
    }
}

/// The entry of a submitted program in the order of waiting. It goes when this is dropped, also after a panic.
struct Submitted<'a> {
    access: &'a Access,
    ticket: Option<Ticket>,
}

impl Drop for Submitted<'_> {
    fn drop(&mut self) {
        if let Some(own) = self.ticket {
            self.access.lock().running.retain(|(ticket, _)| *ticket != own);
            self.access.ended.notify_all();
        }
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
                held: Mutex::new(Held { device, memory, running: VecDeque::new() }),
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
        while !held.running.is_empty() {
            held = self.access.wait_for_an_end(held);
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
        let mut submitted = Submitted { access: &self.access, ticket: None };
        let mut held = self.lock();
        while held.running.iter().any(|(_, used)| *used == tensors) {
            held = self.access.wait_for_an_end(held);
        }
        let ticket = submit(held.device.as_mut())?;
        held.running.push_back((ticket, tensors));
        submitted.ticket = Some(ticket);
        let report = loop {
            if held.running.front().is_some_and(|(first, _)| *first == ticket) {
                let polled = held.device.poll(ticket, SLICE);
                match polled.transpose() {
                    Some(report) => break report,
                    None => held = self.access.pass(held),
                }
            } else {
                held = self.access.wait_for_an_end(held);
            }
        };
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

    use tilewright_hw::device::queue::Queue;
    use tilewright_hw::device::{Command, DeviceError};

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
}
