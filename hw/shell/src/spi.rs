//! An SPI slave: mode 0, most significant bit first, whole bytes while selected, `sck` at up to an eighth of the clock.
//!
//! A byte to the host is chosen when the previous byte ends or the slave is selected, and counts as sent when its first
//! bit is clocked. Zeros go out while there is no byte. The slave always drives `miso`.

use rust_hdl::prelude::*;

use crate::bytes::{FromLink, ToLink};

/// Fewest clock cycles per bit.
pub use tilewright_hw::link::SPI_CLOCKS as FEWEST_CLOCKS;
/// Cycles from the first edge of a byte's first bit, when the byte counts as sent, to the choice of the next byte, at
/// the fastest `sck`: seven and a half bits of eight cycles, minus the cycles that detecting the edges takes.
pub const CYCLES_TO_NEXT_BYTE: u32 = 56;

/// The slave.
#[derive(LogicBlock, Default)]
pub struct Spi {
    pub clock: Signal<In, Clock>,
    /// Discards the chosen byte.
    pub reset: Signal<In, Bit>,
    pub spi_cs_n: Signal<In, Bit>,
    pub spi_sck: Signal<In, Bit>,
    pub spi_mosi: Signal<In, Bit>,
    pub spi_miso: Signal<Out, Bit>,
    pub from_link: FromLink,
    pub to_link: ToLink,
    // Stored inverted, so that a register that starts at zero starts unselected.
    select_first: DFF<Bit>,
    selected: DFF<Bit>,
    selected_before: DFF<Bit>,
    sck_first: DFF<Bit>,
    sck: DFF<Bit>,
    sck_before: DFF<Bit>,
    mosi_first: DFF<Bit>,
    mosi: DFF<Bit>,
    /// Sampled bits of the current byte.
    count: DFF<Bits<3>>,
    received: DFF<Bits<8>>,
    whole: DFF<Bit>,
    sending: DFF<Bits<8>>,
    /// `sending` holds a byte of the sender that is not yet taken.
    chosen: DFF<Bit>,
    rises: Signal<Local, Bit>,
    falls: Signal<Local, Bit>,
    choose: Signal<Local, Bit>,
}

impl Logic for Spi {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(
            self,
            clock,
            select_first,
            selected,
            selected_before,
            sck_first,
            sck,
            sck_before,
            mosi_first,
            mosi,
            count,
            received,
            whole,
            sending,
            chosen
        );
        self.select_first.d.next = !self.spi_cs_n.val();
        self.selected.d.next = self.select_first.q.val();
        self.selected_before.d.next = self.selected.q.val();
        self.sck_first.d.next = self.spi_sck.val();
        self.sck.d.next = self.sck_first.q.val();
        self.sck_before.d.next = self.sck.q.val();
        self.mosi_first.d.next = self.spi_mosi.val();
        self.mosi.d.next = self.mosi_first.q.val();

        self.rises.next = self.selected.q.val() && self.sck.q.val() && !self.sck_before.q.val();
        self.falls.next = self.selected.q.val() && !self.sck.q.val() && self.sck_before.q.val();
        self.choose.next =
            (self.selected.q.val() && !self.selected_before.q.val()) || (self.falls.val() && (self.count.q.val() == 0));
        self.spi_miso.next = self.sending.q.val().get_bit(7);
        self.from_link.valid.next = self.whole.q.val();
        self.from_link.data.next = self.received.q.val();
        self.to_link.ready.next = self.rises.val() && self.chosen.q.val();

        self.whole.d.next = false;
        if self.rises.val() {
            self.received.d.next = (self.received.q.val() << 1) | bit_cast::<8, 1>(self.mosi.q.val().into());
            self.count.d.next = self.count.q.val() + 1;
            self.whole.d.next = self.count.q.val().all();
            self.chosen.d.next = false;
        }
        if self.choose.val() {
            self.sending.d.next = 0.into();
            self.chosen.d.next = self.to_link.valid.val();
            if self.to_link.valid.val() {
                self.sending.d.next = self.to_link.data.val();
            }
        } else if self.falls.val() {
            self.sending.d.next = self.sending.q.val() << 1;
        }
        if !self.selected.q.val() {
            self.count.d.next = 0.into();
        }
        if self.reset.val() {
            self.chosen.d.next = false;
        }
    }
}

#[cfg(test)]
#[path = "spi/tests.rs"]
mod tests;
