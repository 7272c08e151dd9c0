//! What the LEDs show. The core's status is read in every cycle in which the host accesses no register.

use rust_hdl::prelude::*;
use tilewright_hw::regs;

use crate::bytes::{CoreRegisters, RegisterPort};

/// Connects the register port to the core and drives the LEDs.
#[derive(LogicBlock)]
pub struct Status {
    pub clock: Signal<In, Clock>,
    pub reset: Signal<In, Bit>,
    pub refused: Signal<In, Bit>,
    pub from_bridge: CoreRegisters,
    pub to_core: RegisterPort,
    pub leds: Signal<Out, Bits<4>>,
    running: DFF<Bit>,
    trapped: DFF<Bit>,
    count: DFF<Bits<24>>,
    watch: Constant<Bit>,
    status: Constant<Bits<12>>,
}

impl Status {
    /// Without LEDs the register port is passed through unchanged.
    pub fn new(leds: u32) -> Self {
        Status {
            clock: Default::default(),
            reset: Default::default(),
            refused: Default::default(),
            from_bridge: Default::default(),
            to_core: Default::default(),
            leds: Default::default(),
            running: Default::default(),
            trapped: Default::default(),
            count: Default::default(),
            watch: Constant::new(leds > 0),
            status: Constant::new(u64::from(regs::STATUS).into()),
        }
    }
}

impl Logic for Status {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, running, trapped, count);
        self.to_core.valid.next = self.from_bridge.valid.val();
        self.to_core.write.next = self.from_bridge.write.val();
        self.to_core.addr.next = self.from_bridge.addr.val();
        self.to_core.wdata.next = self.from_bridge.wdata.val();
        self.from_bridge.rdata.next = self.to_core.rdata.val();
        if self.watch.val() && !self.from_bridge.valid.val() {
            self.to_core.valid.next = true;
            self.to_core.write.next = false;
            self.to_core.addr.next = self.status.val();
            self.running.d.next = self.to_core.rdata.val().get_bit(0);
            self.trapped.d.next = self.to_core.rdata.val().get_bit(1);
        }
        self.count.d.next = self.count.q.val() + 1;
        self.leds.next = (bit_cast::<4, 24>(self.count.q.val() >> 23) << 3)
            | (bit_cast::<4, 1>(self.refused.val().into()) << 2)
            | (bit_cast::<4, 1>(self.trapped.q.val().into()) << 1)
            | bit_cast::<4, 1>(self.running.q.val().into());
        if self.reset.val() {
            self.running.d.next = false;
            self.trapped.d.next = false;
        }
    }
}
