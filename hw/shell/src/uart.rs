//! A UART: 8 data bits, no parity, one stop bit.
//!
//! Both halves store the line inverted, so that registers that start at zero start with an idle line.

use rust_hdl::prelude::*;

use crate::bytes::{FromLink, ToLink};

/// Bits per byte on the line: a start bit, eight data bits, a stop bit.
pub use tilewright_hw::link::UART_BYTE_BITS as BITS_OF_BYTE;
/// Fewest cycles per bit that the receiver can follow.
pub use tilewright_hw::link::UART_CLOCKS as FEWEST_CLOCKS;
/// Most cycles per bit.
pub use tilewright_hw::link::UART_MOST_CLOCKS as MOST_CLOCKS;

/// A mask of the bits that a count up to `most` needs; the others stay zero and disappear in synthesis.
fn mask(most: u32) -> Constant<Bits<16>> {
    Constant::new(u64::from((most + 1).next_power_of_two() - 1).into())
}

/// The receiver. A byte without a stop bit is dropped.
#[derive(LogicBlock)]
pub struct UartReceiver {
    pub clock: Signal<In, Clock>,
    pub line: Signal<In, Bit>,
    pub bytes: FromLink,
    first: DFF<Bit>,
    level: DFF<Bit>,
    /// Cycles until the next sample.
    count: DFF<Bits<16>>,
    /// Samples to go: the start bit, eight data bits, the stop bit.
    samples: DFF<Bits<4>>,
    shift: DFF<Bits<8>>,
    half: Constant<Bits<16>>,
    whole: Constant<Bits<16>>,
    mask: Constant<Bits<16>>,
}

impl UartReceiver {
    pub fn new(clocks_per_bit: u32) -> Self {
        UartReceiver {
            clock: Default::default(),
            line: Default::default(),
            bytes: Default::default(),
            first: Default::default(),
            level: Default::default(),
            count: Default::default(),
            samples: Default::default(),
            shift: Default::default(),
            // The first sample comes a cycle after the start bit is seen, up to a cycle after it began.
            half: Constant::new(u64::from((clocks_per_bit - 1) / 2 - 1).into()),
            whole: Constant::new(u64::from(clocks_per_bit - 1).into()),
            mask: mask(clocks_per_bit - 1),
        }
    }
}

impl Logic for UartReceiver {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, first, level, count, samples, shift);
        self.first.d.next = !self.line.val();
        self.level.d.next = self.first.q.val();
        self.bytes.data.next = self.shift.q.val();
        self.bytes.valid.next = false;
        if self.samples.q.val() == 0 {
            self.count.d.next = self.half.val();
            if self.level.q.val() {
                self.samples.d.next = 10.into();
            }
        } else if self.count.q.val() != 0 {
            self.count.d.next = (self.count.q.val() - 1) & self.mask.val();
        } else {
            self.count.d.next = self.whole.val();
            self.samples.d.next = self.samples.q.val() - 1;
            if self.samples.q.val() == 10 {
                // A start bit that is gone by its middle was a glitch.
                if !self.level.q.val() {
                    self.samples.d.next = 0.into();
                }
            } else if self.samples.q.val() == 1 {
                self.bytes.valid.next = !self.level.q.val();
            } else {
                self.shift.d.next = self.shift.q.val() >> 1;
                if !self.level.q.val() {
                    self.shift.d.next = (self.shift.q.val() >> 1) | 0x80;
                }
            }
        }
    }
}

/// The transmitter.
#[derive(LogicBlock)]
pub struct UartTransmitter {
    pub clock: Signal<In, Clock>,
    pub line: Signal<Out, Bit>,
    pub bytes: ToLink,
    count: DFF<Bits<16>>,
    /// Bits to go, including the current one.
    bits_left: DFF<Bits<4>>,
    shift: DFF<Bits<9>>,
    whole: Constant<Bits<16>>,
    mask: Constant<Bits<16>>,
}

impl UartTransmitter {
    pub fn new(clocks_per_bit: u32) -> Self {
        UartTransmitter {
            clock: Default::default(),
            line: Default::default(),
            bytes: Default::default(),
            count: Default::default(),
            bits_left: Default::default(),
            shift: Default::default(),
            whole: Constant::new(u64::from(clocks_per_bit - 1).into()),
            mask: mask(clocks_per_bit - 1),
        }
    }
}

impl Logic for UartTransmitter {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count, bits_left, shift);
        self.line.next = !self.shift.q.val().get_bit(0);
        self.bytes.ready.next = self.bits_left.q.val() == 0;
        if self.bits_left.q.val() == 0 {
            self.count.d.next = self.whole.val();
            if self.bytes.valid.val() {
                self.bits_left.d.next = 10.into();
                self.shift.d.next = (bit_cast::<9, 8>(self.bytes.data.val() ^ 0xff) << 1) | 1;
            }
        } else if self.count.q.val() != 0 {
            self.count.d.next = (self.count.q.val() - 1) & self.mask.val();
        } else {
            self.count.d.next = self.whole.val();
            self.bits_left.d.next = self.bits_left.q.val() - 1;
            self.shift.d.next = self.shift.q.val() >> 1;
        }
    }
}

/// Receiver and transmitter.
#[derive(LogicBlock)]
pub struct Uart {
    pub clock: Signal<In, Clock>,
    pub uart_rx: Signal<In, Bit>,
    pub uart_tx: Signal<Out, Bit>,
    pub from_link: FromLink,
    pub to_link: ToLink,
    receiver: UartReceiver,
    transmitter: UartTransmitter,
}

impl Uart {
    pub fn new(clocks_per_bit: u32) -> Self {
        Uart {
            clock: Default::default(),
            uart_rx: Default::default(),
            uart_tx: Default::default(),
            from_link: Default::default(),
            to_link: Default::default(),
            receiver: UartReceiver::new(clocks_per_bit),
            transmitter: UartTransmitter::new(clocks_per_bit),
        }
    }
}

impl Logic for Uart {
    #[hdl_gen]
    fn update(&mut self) {
        clock!(self, clock, receiver, transmitter);
        self.receiver.line.next = self.uart_rx.val();
        self.uart_tx.next = self.transmitter.line.val();
        FromLink::link(&mut self.from_link, &mut self.receiver.bytes);
        ToLink::link(&mut self.to_link, &mut self.transmitter.bytes);
    }
}

#[cfg(test)]
#[path = "uart/tests.rs"]
mod tests;
