//! The link between a board and its host.

use crate::flow::reach::Reach;
use crate::link::{SPI_CLOCKS, UART_CLOCKS};
use serde::Deserialize;

/// By how much of its baud rate a shell's serial line may be off: at the end of a byte's ten bits that is a fifth of a
/// bit, which leaves the other end as much for its own clock.
const MOST_OFF: f64 = 0.02;

/// The link to the host, with pins as seen from the part.
#[derive(Debug, Clone, PartialEq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Host {
    /// A serial port.
    Uart {
        /// Bytes come in.
        rx: String,
        /// Bytes go out.
        tx: String,
        /// Bits a second.
        baud: u32,
        /// The way to the computer.
        reach: Reach,
    },
    /// SPI, of which the host is the master.
    Spi {
        /// Chip select, low while the host speaks.
        cs: String,
        /// Clock.
        sck: String,
        /// From the host.
        mosi: String,
        /// To the host.
        miso: String,
        /// The way to the computer.
        reach: Reach,
    },
    /// The processor on the same chip, whose peripheral the core is.
    Processor {
        /// Where the registers are in its address space.
        registers: u64,
        /// The interrupt of the core, as device trees number it.
        interrupt: u32,
        /// The port through which the core reaches memory, as the vendor's tool names it.
        port: String,
        /// The processor's block, as the vendor's tool names it.
        block: String,
        /// The board, as the names of the vendor's board files have it.
        board_file: String,
    },
}

/// A pin of a link.
struct Joint<'a> {
    /// The signal of the other end that is connected to it.
    other: &'static str,
    /// The part's pin.
    pin: &'a str,
}

impl Host {
    /// Its kind in board files.
    pub fn kind(&self) -> &'static str {
        match self {
            Host::Uart { .. } => "uart",
            Host::Spi { .. } => "spi",
            Host::Processor { .. } => "processor",
        }
    }

    /// Clock cycles of a bit with a shell whose clock has so many MHz: the least that there may be where the host
    /// chooses them; 0 where there are no bits.
    ///
    /// # Errors
    /// What is wrong with a serial line's speed at that clock; the text begins with its key.
    pub fn clocks_per_bit(&self, mhz: f64) -> Result<u32, String> {
        let baud = match self {
            Host::Uart { baud, .. } => *baud,
            Host::Spi { .. } => return Ok(SPI_CLOCKS),
            Host::Processor { .. } => return Ok(0),
        };
        let exact = mhz * 1e6 / f64::from(baud);
        let clocks = exact.round();
        if !(f64::from(UART_CLOCKS)..f64::from(u32::MAX)).contains(&clocks) {
            return Err(if exact > 1.0 && baud > 0 && clocks < f64::from(u32::MAX) {
                format!(
                    "baud is {baud}, and a bit of it has fewer than {UART_CLOCKS} cycles of the clock, {mhz:.2} MHz; lower it"
                )
            } else {
                format!(
                    "baud is {baud}, and no line of that speed can be made with a clock of {mhz:.2} MHz; give another"
                )
            });
        }
        let off = (exact / clocks - 1.0).abs();
        if off > MOST_OFF {
            let least = exact.floor().max(f64::from(UART_CLOCKS));
            let multiple = |clocks: f64| clocks * f64::from(baud) / 1e6;
            return Err(format!(
                "baud is {baud}, and a bit of it has {exact:.2} cycles of the clock, {mhz:.2} MHz: with {clocks} the line is {:.1} % off, \
                 of which {:.0} % are borne; take another baud, or a clock near {:.2} or {:.2} MHz",
                100.0 * off,
                100.0 * MOST_OFF,
                multiple(least),
                multiple(least + 1.0),
            ));
        }
        Ok(clocks as u32)
    }

    /// How a host names a board with the shell at so many MHz, with the port that only it knows as PORT.
    pub fn device(&self, mhz: f64) -> String {
        match self {
            Host::Uart { baud, .. } => format!("serial:PORT@{baud}"),
            Host::Spi { .. } => format!("spi:PORT@{}", (mhz * 1e6 / f64::from(SPI_CLOCKS)) as u64),
            Host::Processor { .. } => "uio".into(),
        }
    }

    /// The way to the computer; a processor has none.
    pub fn reach(&self) -> Option<&Reach> {
        match self {
            Host::Uart { reach, .. } | Host::Spi { reach, .. } => Some(reach),
            Host::Processor { .. } => None,
        }
    }

    /// The link's pins.
    fn joints(&self) -> Vec<Joint<'_>> {
        let joint = |other, pin| Joint { other, pin };
        match self {
            Host::Uart { rx, tx, .. } => vec![joint("TX", rx), joint("RX", tx)],
            Host::Spi { cs, sck, mosi, miso, .. } => {
                vec![joint("chip select", cs), joint("clock", sck), joint("MOSI", mosi), joint("MISO", miso)]
            }
            Host::Processor { .. } => Vec::new(),
        }
    }

    /// How many pins the link has.
    pub(in crate::flow) fn pins(&self) -> usize {
        self.joints().len()
    }

    /// How a person joins the board to the computer, where its pins have so many volts; none where a processor is the
    /// host.
    pub fn wiring(&self, volts: f64) -> Option<String> {
        let (text, note) = match self.reach()? {
            Reach::Usb { bridge, ports: 1, note, .. } => {
                (format!("the board's USB cable alone, to the port of its {bridge}"), note)
            }
            Reach::Usb { bridge, port, ports, note } => (
                format!(
                    "the board's USB cable alone; of the {ports} ports of its {bridge} the FPGA's is number {port}"
                ),
                note,
            ),
            Reach::Pins { connector, names, note } => {
                let joints = self.joints().into_iter().enumerate();
                let joints = joints.map(|(at, Joint { other, pin })| match names.get(at) {
                    Some(name) => format!("{other} to {name} (the FPGA's {pin})"),
                    None => format!("{other} to the FPGA's {pin}"),
                });
                let joints: Vec<String> = joints.collect();
                let what = if matches!(self, Host::Uart { .. }) { "a serial adapter" } else { "an SPI port" };
                (format!("{what} of {volts} V at {connector}: its {}, and ground", joints.join(", its ")), note)
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
            "the board's USB cable alone; of the 2 ports of its FT2232H the FPGA's is number 2"
        );
        assert_eq!(wiring("ulx3s-25f", "uart"), "the board's USB cable alone, to the port of its FT231X");
        assert_eq!(
            wiring("orangecrab", "uart"),
            "a serial adapter of 3.3 V at the Feather header: its TX to 0 (the FPGA's N17), its RX to 1 (the FPGA's M18), and ground"
        );
        let spi = wiring("ulx3s-85f", "spi");
        assert!(
            spi.starts_with(
                "an SPI port of 3.3 V at header J1: its chip select to GP0 (the FPGA's B11), its clock to GP1"
            ),
            "{spi}"
        );
        let unnamed = wiring("upduino", "spi");
        assert!(unnamed.contains("its chip select to the FPGA's 16, its clock"), "{unnamed}");
    }
}
