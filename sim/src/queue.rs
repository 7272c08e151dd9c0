//! What simulators have in common as devices: commands that wait, reports that nobody has taken yet, memory behind an address.

use std::collections::VecDeque;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Command, DeviceError, RunReport, Ticket, check_command};

/// Cycles after which a command without a limit of its own is given up.
pub const DEFAULT_CYCLE_LIMIT: u64 = 20_000_000_000;

type Outcome = Result<RunReport, DeviceError>;

/// The queue of a device that runs its commands when their reports are waited for, in the order of their submission.
#[derive(Debug, Default)]
pub(crate) struct Queue {
    waiting: VecDeque<(Ticket, Command)>,
    done: Vec<(Ticket, Outcome)>,
    next: u64,
    /// The limit of commands that have none of their own.
    pub(crate) cycle_limit: Option<u64>,
}

impl Queue {
    /// Takes a command in, once it is found to be one that the configuration takes.
    pub(crate) fn submit(&mut self, command: &Command, config: &HwConfig) -> Result<Ticket, DeviceError> {
        check_command(command, config)?;
        let ticket = Ticket(self.next);
        self.next += 1;
        let cycle_limit = command.cycle_limit.or(self.cycle_limit);
        self.waiting.push_back((ticket, Command { cycle_limit, ..command.clone() }));
        Ok(ticket)
    }

    /// The first command that waits, unless it came after `ticket`.
    pub(crate) fn next(&mut self, ticket: Ticket) -> Option<(Ticket, Command)> {
        if self.waiting.front()?.0 <= ticket { self.waiting.pop_front() } else { None }
    }

    /// Keeps a command's outcome until it is asked for.
    pub(crate) fn done(&mut self, ticket: Ticket, outcome: Outcome) {
        self.done.push((ticket, outcome));
    }

    /// Takes a command's outcome.
    pub(crate) fn take(&mut self, ticket: Ticket) -> Outcome {
        match self.done.iter().position(|(known, _)| *known == ticket) {
            Some(at) => self.done.swap_remove(at).1,
            None => Err(DeviceError::UnknownTicket(ticket)),
        }
    }
}

/// Makes a simulator a `Device`: one with a `config`, a `queue`, its memory as a slice, `host_wrote`, which hears what the host
/// writes, `run_command`, and `entries`, which
/// gives the bytes of entries of a scratchpad that has them.
macro_rules! device {
    ($simulator:ty, $name:literal) => {
        impl $simulator {
            /// The same device, which gives up each command that has no limit of its own after so many cycles, or instructions
            /// where it knows no time.
            pub fn with_cycle_limit(mut self, limit: Option<u64>) -> Self {
                self.queue.cycle_limit = limit;
                self
            }
        }

        impl tilewright_hw::device::Device for $simulator {
            fn config(&self) -> &HwConfig {
                &self.config
            }

            fn name(&self) -> &str {
                $name
            }

            fn memory_bytes(&self) -> u64 {
                self.memory().len() as u64
            }

            fn write(&mut self, addr: u64, bytes: &[u8]) -> Result<(), DeviceError> {
                let range = tilewright_hw::device::memory_range(addr, bytes.len() as u64, self.memory_bytes())?;
                self.memory_mut()[range.clone()].copy_from_slice(bytes);
                self.host_wrote(range);
                Ok(())
            }

            fn read(&mut self, addr: u64, bytes: &mut [u8]) -> Result<(), DeviceError> {
                let range = tilewright_hw::device::memory_range(addr, bytes.len() as u64, self.memory_bytes())?;
                bytes.copy_from_slice(&self.memory()[range]);
                Ok(())
            }

            fn submit(&mut self, command: &Command) -> Result<tilewright_hw::device::Ticket, DeviceError> {
                self.queue.submit(command, &self.config)
            }

            fn wait(&mut self, ticket: tilewright_hw::device::Ticket) -> Result<RunReport, DeviceError> {
                while let Some((first, command)) = self.queue.next(ticket) {
                    let outcome = self.run_command(&command);
                    self.queue.done(first, outcome);
                }
                self.queue.take(ticket)
            }

            fn scratchpad(&mut self, mem: Mem, entry: u32, count: u32) -> Result<Vec<u8>, DeviceError> {
                let size = self.config.entries(mem);
                if entry.checked_add(count).is_none_or(|end| end > size) {
                    let [addr, len, size] = [entry, count, size].map(u64::from);
                    return Err(DeviceError::OutOfMemory { addr, len, size });
                }
                Ok(self.entries(mem, entry, count))
            }
        }
    };
}
pub(crate) use device;

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn commands_come_out_in_order_and_their_outcomes_once() {
        let mut queue = Queue::default();
        let config = HwConfig::default();
        let tickets: Vec<Ticket> =
            (0..3).map(|insns| queue.submit(&Command { insns, ..Command::default() }, &config).unwrap()).collect();
        for insns in 0..2 {
            let (ticket, command) = queue.next(tickets[1]).unwrap();
            assert_eq!((ticket, command.insns), (tickets[insns as usize], insns));
            queue.done(ticket, Ok(RunReport { macs: u64::from(insns), ..RunReport::default() }));
        }
        assert!(queue.next(tickets[1]).is_none());
        assert_eq!(queue.take(tickets[1]).unwrap().macs, 1);
        assert!(matches!(queue.take(tickets[1]), Err(DeviceError::UnknownTicket(_))));
        assert!(matches!(queue.take(tickets[2]), Err(DeviceError::UnknownTicket(_))));
        let wrong = Command { stream_addr: 1, ..Command::default() };
        assert!(matches!(queue.submit(&wrong, &config), Err(DeviceError::Misaligned { .. })));
    }

    #[test]
    fn a_command_has_its_own_limit_or_the_devices() {
        let mut queue = Queue { cycle_limit: Some(7), ..Queue::default() };
        for (own, limit) in [(None, Some(7)), (Some(9), Some(9))] {
            let command = Command { cycle_limit: own, ..Command::default() };
            let ticket = queue.submit(&command, &HwConfig::default()).unwrap();
            assert_eq!(queue.next(ticket).unwrap().1.cycle_limit, limit);
        }
    }
}
