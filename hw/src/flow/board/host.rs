//! The link between a board and its host.

use crate::flow::reach::Reach;
use crate::link::{SPI_CLOCKS, UART_CLOCKS};
use serde::Deserialize;

/// The largest baud-rate error of a shell's serial line. After the ten bits of a byte it is a fifth of a bit, which
/// leaves the same tolerance to the other end.
const MOST_OFF: f64 = 0.02;

/// The link to the host. Pin directions are those of the part.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum HostLink {
    /// A serial port.
    Uart {
        /// Input.
        rx: String,
        /// Output.
        tx: String,
        /// Bits per second.
        baud: u32,
        /// The connection to the computer.
        reach: Reach,
    },
    /// SPI with the host as its master.
    Spi {
        /// Chip select, active low.
        cs: String,
        /// Clock.
        sck: String,
        /// Data from the host.
        mosi: String,
        /// Data to the host.
        miso: String,
        /// The connection to the computer.
        reach: Reach,
    },
    /// The processor on the same chip. The core is its peripheral.
    Processor {
        /// Address of the core's registers.
        registers: u64,
        /// The core's interrupt, as numbered in device trees.
        interrupt: u32,
        /// The port through which the core reaches memory, as Vivado names it.
        port: String,
        /// The processor's block, as Vivado names it.
        block: String,
        /// The board, as Vivado's board files name it.
        board_file: String,
    },
}

/// A pin of a link.
struct Joint<'a> {
    /// The signal of the other end that it is connected to.
    other: &'static str,
    /// The part's pin.
    pin: &'a str,
}

impl HostLink {
    /// Returns its kind in board files.
    pub fn kind(&self) -> &'static str {
        match self {
            HostLink::Uart { .. } => "uart",
            HostLink::Spi { .. } => "spi",
            HostLink::Processor { .. } => "processor",
        }
    }

    /// Returns the clock cycles of a bit at the shell's clock in MHz.
    ///
    /// For SPI it is the minimum, as the host chooses the rate; for a processor it is 0.
    ///
    /// # Errors
    /// If a serial line's baud rate is not possible at this clock. The text begins with the key `baud`.
    pub fn clocks_per_bit(&self, mhz: f64) -> Result<u32, String> {
        let baud = match self {
            HostLink::Uart { baud, .. } => *baud,
            HostLink::Spi { .. } => return Ok(SPI_CLOCKS),
            HostLink::Processor { .. } => return Ok(0),
        };
        let exact = mhz * 1e6 / f64::from(baud);
        let clocks = exact.round();
        if !(f64::from(UART_CLOCKS)..f64::from(u32::MAX)).contains(&clocks) {
            return Err(if exact > 1.0 && baud > 0 && clocks < f64::from(u32::MAX) {
                format!("baud is {baud}, fewer than {UART_CLOCKS} clock cycles per bit at {mhz:.2} MHz; lower it")
            } else {
                format!("baud is {baud}, which is not possible with a clock of {mhz:.2} MHz; use another baud rate")
            });
        }
        let off = (exact / clocks - 1.0).abs();
        if off > MOST_OFF {
            let least = exact.floor().max(f64::from(UART_CLOCKS));
            let multiple = |clocks: f64| clocks * f64::from(baud) / 1e6;
            return Err(format!(
                "baud is {baud}, {exact:.2} clock cycles per bit at {mhz:.2} MHz: with {clocks} cycles the baud-rate error is {:.1} %, \
                 which exceeds the {:.0} % limit; use another baud rate, or a clock near {:.2} or {:.2} MHz",
                100.0 * off,
                100.0 * MOST_OFF,
                multiple(least),
                multiple(least + 1.0),
            ));
        }
        Ok(clocks as u32)
    }

    /// Returns the device name for `--device`, with PORT in place of the host's port. `mhz` is the shell's clock.
    pub fn device(&self, mhz: f64) -> String {
        match self {
            HostLink::Uart { baud, .. } => format!("serial:PORT@{baud}"),
            HostLink::Spi { .. } => format!("spi:PORT@{}", (mhz * 1e6 / f64::from(SPI_CLOCKS)) as u64),
            HostLink::Processor { .. } => "uio".into(),
        }
    }

    /// Returns the connection to the computer; `None` for a processor.
    pub fn reach(&self) -> Option<&Reach> {
        match self {
            HostLink::Uart { reach, .. } | HostLink::Spi { reach, .. } => Some(reach),
            HostLink::Processor { .. } => None,
        }
    }

    /// Returns the link's pins, in the order of its keys.
    fn joints(&self) -> Vec<Joint<'_>> {
        let joint = |other, pin| Joint { other, pin };
        match self {
            HostLink::Uart { rx, tx, .. } => vec![joint("TX", rx), joint("RX", tx)],
            HostLink::Spi { cs, sck, mosi, miso, .. } => {
                vec![joint("chip select", cs), joint("clock", sck), joint("MOSI", mosi), joint("MISO", miso)]
            }
            HostLink::Processor { .. } => Vec::new(),
        }
    }

    /// Returns the number of the link's pins.
    pub(in crate::flow) fn pins(&self) -> usize {
        self.joints().len()
    }

    /// Describes how to connect the board, whose pins have this level in volts, to the computer; `None` for a
    /// processor.
    pub fn wiring(&self, volts: f64) -> Option<String> {
        let (text, note) = match self.reach()? {
            Reach::Usb { bridge, ports: 1, note, .. } => (format!("the board's USB cable, to its {bridge}"), note),
            Reach::Usb { bridge, port, ports, note } => (
                format!("the board's USB cable; the FPGA is on port {port} of the {ports} ports of its {bridge}"),
                note,
            ),
            Reach::Pins { connector, names, note } => {
                let joints = self.joints().into_iter().enumerate();
                let joints = joints.map(|(at, Joint { other, pin })| match names.get(at) {
                    Some(name) => format!("{other} to {name} (FPGA pin {pin})"),
                    None => format!("{other} to FPGA pin {pin}"),
                });
                let joints: Vec<String> = joints.collect();
                let what = if matches!(self, HostLink::Uart { .. }) { "serial adapter" } else { "SPI port" };
                (format!("a {volts} V {what} at {connector}: {}, and ground", joints.join(", ")), note)
            }
        };
        Some(if note.is_empty() { text } else { format!("{text}; {note}") })
    }
}

#[cfg(test)]
mod tests {
    use crate::flow::board::Board;

    #[test]
    fn every_board_tells_how_its_links_are_joined() {
        for name in Board::names() {
            let board = Board::load(&name).unwrap();
            assert_eq!(board.host.wiring(board.io_volts).is_none(), board.family.has_processor(), "{name}");
        }
        let wiring = |board: &str, host: &str| {
            let board = Board::load(board).unwrap().with_host(host).unwrap();
            board.host.wiring(board.io_volts).unwrap()
        };
        assert_eq!(
            wiring("hx8k-evn", "uart"),
            "the board's USB cable; the FPGA is on port 2 of the 2 ports of its FT2232H"
        );
        assert_eq!(wiring("ulx3s-25f", "uart"), "the board's USB cable, to its FT231X");
        assert_eq!(
            wiring("orangecrab", "uart"),
            "a 3.3 V serial adapter at the Feather header: TX to 0 (FPGA pin N17), RX to 1 (FPGA pin M18), and ground"
        );
        let spi = wiring("ulx3s-85f", "spi");
        assert!(
            spi.starts_with("a 3.3 V SPI port at header J1: chip select to GP0 (FPGA pin B11), clock to GP1"),
            "{spi}"
        );
        let unnamed = wiring("upduino", "spi");
        assert!(unnamed.contains("chip select to FPGA pin 16, clock"), "{unnamed}");
    }
}
