//! The ports of a board's top module.

use super::{Board, CoreMemory, HostLink};
use crate::flow::port_pin::PortPin;

/// Returns the top module's ports with their pins; none if a processor is the host.
pub(in crate::flow) fn ports(board: &Board) -> Vec<PortPin> {
    let mut ports = vec![PortPin::new("clk", &board.clock.pin)];
    match &board.host {
        HostLink::Uart { rx, tx, .. } => ports.extend([PortPin::new("uart_rx", rx), PortPin::new("uart_tx", tx)]),
        HostLink::Spi { cs, sck, mosi, miso, .. } => ports.extend([
            PortPin::new("spi_cs_n", cs),
            PortPin::new("spi_sck", sck),
            PortPin::new("spi_mosi", mosi),
            PortPin::new("spi_miso", miso),
        ]),
        HostLink::Processor { .. } => return Vec::new(),
    }
    ports.extend(PortPin::bits("led", &board.leds.pins));
    if let CoreMemory::Sdram(chip) = &board.memory {
        ports.extend(chip.pins.ports());
    }
    ports
}
