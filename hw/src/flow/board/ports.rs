//! The ports of a board's top module.

use super::{Board, Host, Memory};

/// The top module's ports and their pins.
pub(in crate::flow) fn ports(board: &Board) -> Vec<(String, String)> {
    let mut ports = vec![("clk".to_string(), board.clock.pin.clone())];
    match &board.host {
        Host::Uart { rx, tx, .. } => ports.extend([("uart_rx".into(), rx.clone()), ("uart_tx".into(), tx.clone())]),
        Host::Spi { cs, sck, mosi, miso, .. } => ports.extend([
            ("spi_cs_n".into(), cs.clone()),
            ("spi_sck".into(), sck.clone()),
            ("spi_mosi".into(), mosi.clone()),
            ("spi_miso".into(), miso.clone()),
        ]),
        Host::Processor { .. } => return Vec::new(),
    }
    ports.extend(board.leds.pins.iter().enumerate().map(|(at, pin)| (format!("led[{at}]"), pin.clone())));
    if let Memory::Sdram(chip) = &board.memory {
        ports.extend(chip.pins.ports());
    }
    ports
}
