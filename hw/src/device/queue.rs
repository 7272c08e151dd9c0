//! A queue of commands and of reports that nobody has taken yet, for devices that run one command at a time.

use crate::config::HwConfig;
use crate::device::{Command, DeviceError, RunReport, Ticket, check_command};
use std::collections::VecDeque;

/// Cycles after which a command without its own limit is aborted.
pub const DEFAULT_CYCLE_LIMIT: u64 = 20_000_000_000;

type CommandResult = Result<RunReport, DeviceError>;

/// Queue of a device that runs its commands in the order of submission, when their reports are requested.
#[derive(Debug, Default)]
pub struct Queue {
    waiting: VecDeque<(Ticket, Command)>,
    done: Vec<(Ticket, CommandResult)>,
    next: u64,
    /// Limit of commands that have none of their own.
    pub cycle_limit: Option<u64>,
}

impl Queue {
    /// Queues a command after checking it against the configuration.
    ///
    /// # Errors
    /// As [`check_command`].
    pub fn submit(&mut self, command: &Command, config: &HwConfig) -> Result<Ticket, DeviceError> {
        check_command(command, config)?;
        let ticket = Ticket(self.next);
        self.next += 1;
        let cycle_limit = command.cycle_limit.or(self.cycle_limit);
        self.waiting.push_back((ticket, Command { cycle_limit, ..command.clone() }));
        Ok(ticket)
    }

    /// Takes the first waiting command, unless it was submitted after `ticket`.
    pub fn next(&mut self, ticket: Ticket) -> Option<(Ticket, Command)> {
        if self.waiting.front()?.0 <= ticket { self.waiting.pop_front() } else { None }
    }

    /// Keeps a command's outcome until it is taken.
    pub fn done(&mut self, ticket: Ticket, outcome: CommandResult) {
        self.done.push((ticket, outcome));
    }

    /// Takes a command's outcome.
    ///
    /// # Errors
    /// [`DeviceError::UnknownTicket`], or the outcome's.
    pub fn take(&mut self, ticket: Ticket) -> CommandResult {
        match self.done.iter().position(|(known, _)| *known == ticket) {
            Some(at) => self.done.swap_remove(at).1,
            None => Err(DeviceError::UnknownTicket(ticket)),
        }
    }
}

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
