//! Steps of rust-hdl's simulator for the unit tests.

use rust_hdl::prelude::*;

/// Lets the logic settle after its inputs changed.
pub fn settle<B: Block>(uut: &mut B) {
    assert!(simulate(uut, 200), "the logic does not settle");
}

/// Runs one cycle; at its end the registers hold their new values and the logic has settled.
pub fn tick<B: Block>(uut: &mut B, clock: impl Fn(&mut B, Clock)) {
    settle(uut);
    clock(uut, Clock { clk: true });
    settle(uut);
    clock(uut, Clock { clk: false });
    settle(uut);
}
