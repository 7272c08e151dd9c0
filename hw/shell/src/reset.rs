//! The reset at power-on and when the link resyncs.

use rust_hdl::prelude::*;

/// Cycles after power-on in which the clock's PLL may not be locked yet: at least 50 microseconds at the clocks of
/// parts whose PLLs do not hold back the clock themselves.
pub const CLOCK_UP: u64 = 4095;

/// Holds `reset` for 31 cycles after power-on and after `again`, which is less than a byte takes on any link. At
/// power-on the 31 cycles begin when the clock is steady and the memory is up.
#[derive(LogicBlock)]
pub struct Reset {
    pub clock: Signal<In, Clock>,
    pub again: Signal<In, Bit>,
    pub memory_up: Signal<In, Bit>,
    pub reset: Signal<Out, Bit>,
    count: DFF<Bits<5>>,
    clock_up: DFF<Bits<12>>,
    clock_up_cycles: Constant<Bits<12>>,
}

impl Reset {
    /// Creates a reset that considers the clock steady after `clock_up_cycles` cycles.
    pub fn new(clock_up_cycles: u64) -> Reset {
        Reset {
            clock: Default::default(),
            again: Default::default(),
            memory_up: Default::default(),
            reset: Default::default(),
            count: Default::default(),
            clock_up: Default::default(),
            clock_up_cycles: Constant::new(clock_up_cycles.to_bits()),
        }
    }
}

impl Logic for Reset {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count, clock_up);
        if self.clock_up.q.val() != self.clock_up_cycles.val() {
            self.clock_up.d.next = self.clock_up.q.val() + 1;
        }
        self.reset.next = !self.count.q.val().all();
        if !self.count.q.val().all() && self.memory_up.val() && (self.clock_up.q.val() == self.clock_up_cycles.val()) {
            self.count.d.next = self.count.q.val() + 1;
        }
        if self.again.val() {
            self.count.d.next = 0.into();
        }
    }
}
