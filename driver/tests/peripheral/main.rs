//! The core as a peripheral, compared with the functional simulator. In the Verilated design of the whole peripheral,
//! the driver writes registers over AXI4-Lite and the core reaches its buffer over AXI4; the simulation checks the
//! protocol's rules.

mod faults;
mod programs;

use std::time::Duration;
use tilewright_driver::peripheral::{PeripheralDevice, PeripheralOptions};
use tilewright_hw::HwConfig;
use tilewright_hw::peripheral::Peripheral;
use tilewright_sim::axi::{Axi, AxiOptions};
use tilewright_sim::random::MEMORY_BYTES;

/// Timeouts, in simulated time.
const OPTIONS: PeripheralOptions = PeripheralOptions {
    command: Duration::from_millis(20),
    poll: Duration::from_micros(50),
    reset: Duration::from_micros(100),
};

/// A configuration with a narrow bus and short addresses, and one with a wide bus, the longest requests and all
/// counters.
fn configs() -> [HwConfig; 2] {
    [("small", include_str!("../board/small.toml")), ("wide", include_str!("wide.toml"))]
        .map(|(name, text)| HwConfig::parse(name, text).expect("is a configuration"))
}

fn config() -> HwConfig {
    configs()[0].clone()
}

/// A buffer somewhere in the configuration's address range. Random programs have a base that passes the end of their
/// memory; this buffer answers accesses past that end with an error.
fn options(config: &HwConfig) -> AxiOptions {
    AxiOptions {
        buffer_addr: (1 << (config.offset_bits - 1)) + 0x3000,
        buffer_bytes: 3 * MEMORY_BYTES / 2,
        answering_bytes: Some(MEMORY_BYTES),
        ..AxiOptions::default()
    }
}

/// A peripheral, or `None` without Verilator.
fn axi(config: &HwConfig, options: &AxiOptions) -> Option<Axi> {
    if !tilewright_testing::has_program("verilator") {
        return None;
    }
    Some(Axi::new(config, options, &|_| {}).expect("the design builds"))
}

fn device<P: Peripheral>(peripheral: P, config: &HwConfig) -> PeripheralDevice<P> {
    PeripheralDevice::open(peripheral, config.clone(), OPTIONS).expect("the core answers")
}
