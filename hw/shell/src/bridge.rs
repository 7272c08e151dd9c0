//! The bridge between a link's bytes and the core: frames in both directions, registers, reset. The memory is a
//! separate block.

use rust_hdl::prelude::*;
use tilewright_hw::config::HwConfig;
use tilewright_hw::link::MemorySide;

use crate::bytes::{LinkBytes, ReceivedBody, RegisterPort, SentBody, SentBytes};
use crate::receiver::Receiver;
use crate::reset::{CLOCK_UP, Reset};
use crate::sender::Sender;

/// Receiver, sender and reset.
#[derive(LogicBlock)]
pub struct Bridge {
    pub clock: Signal<In, Clock>,
    /// Reset of everything except the link.
    pub reset: Signal<Out, Bit>,
    pub from_link: LinkBytes,
    pub to_link: SentBytes,
    pub regs: RegisterPort,
    pub irq: Signal<In, Bit>,
    /// The memory is usable; the link does not greet before that.
    pub memory_up: Signal<In, Bit>,
    pub to_memory: ReceivedBody,
    pub from_memory: SentBody,
    /// A frame was refused.
    pub refused: Signal<Out, Bit>,
    power_on: Reset,
    receiver: Receiver,
    sender: Sender,
}

impl Bridge {
    pub fn new(config: &HwConfig, memory: MemorySide) -> Self {
        Bridge {
            clock: Default::default(),
            reset: Default::default(),
            from_link: Default::default(),
            to_link: Default::default(),
            regs: Default::default(),
            irq: Default::default(),
            memory_up: Default::default(),
            to_memory: Default::default(),
            from_memory: Default::default(),
            refused: Default::default(),
            power_on: Reset::new(CLOCK_UP),
            receiver: Receiver::new(config, memory),
            sender: Sender::default(),
        }
    }
}

impl Logic for Bridge {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, power_on, receiver, sender);
        self.power_on.again.next = self.receiver.resync.val();
        self.power_on.memory_up.next = self.memory_up.val();
        self.reset.next = self.power_on.reset.val();
        self.receiver.reset.next = self.power_on.reset.val();
        self.sender.reset.next = self.power_on.reset.val();

        LinkBytes::link(&mut self.from_link, &mut self.receiver.bytes);
        SentBytes::link(&mut self.to_link, &mut self.sender.bytes);
        RegisterPort::link(&mut self.regs, &mut self.receiver.regs);
        ReceivedBody::link(&mut self.to_memory, &mut self.receiver.body);
        SentBody::link(&mut self.from_memory, &mut self.sender.body);

        self.sender.value.next = self.receiver.value.val();
        self.sender.word.next = self.receiver.word.val();
        self.receiver.word_next.next = self.sender.word_next.val();
        self.sender.done.next = self.receiver.done.val();
        self.sender.refused.next = self.receiver.refused.val();
        self.sender.unknown_kind.next = self.receiver.unknown_kind.val();
        self.sender.irq.next = self.irq.val();
        self.refused.next = self.receiver.refused.val();
    }
}

#[cfg(test)]
#[path = "bridge/tests.rs"]
mod tests;
