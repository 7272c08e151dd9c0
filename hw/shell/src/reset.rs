//! The reset at power-on and when the link begins anew.

use rust_hdl::prelude::*;

/// Holds `reset` for 31 cycles after power-on and after `again`: less than a byte takes on any link. At power-on they begin when the
/// memory is up.
#[derive(LogicBlock, Default)]
pub struct Reset {
    pub clock: Signal<In, Clock>,
    pub again: Signal<In, Bit>,
    pub memory_up: Signal<In, Bit>,
    pub reset: Signal<Out, Bit>,
    count: DFF<Bits<5>>,
}

impl Logic for Reset {
    #[hdl_gen]
    fn update(&mut self) {
        dff_setup!(self, clock, count);
        self.reset.next = !self.count.q.val().all();
        if !self.count.q.val().all() && self.memory_up.val() {
            self.count.d.next = self.count.q.val() + 1;
        }
        if self.again.val() {
            self.count.d.next = 0.into();
        }
    }
}
