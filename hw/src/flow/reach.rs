//! How a board's link comes to the computer: over a USB bridge of the board's own, or over an adapter at its pins.

use super::board::Host;
use serde::Deserialize;

/// The way from a link's pins to the computer, as a person sees it.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Reach {
    /// A USB bridge on the board: the cable alone.
    Usb {
        /// The chip, or what it is called.
        bridge: String,
        /// Which of its ports is the part's, from 1 on.
        port: u32,
        /// How many it has.
        ports: u32,
        /// What else must be known: jumpers, and what is not sure.
        #[serde(default)]
        note: String,
    },
    /// Pins, at which an adapter or a host's own port is wired.
    Pins {
        /// The connector.
        connector: String,
        /// What the connector's pins are called, in the order of the link's keys; none where that is not known.
        #[serde(default)]
        names: Vec<String>,
        /// What else must be known.
        #[serde(default)]
        note: String,
    },
}

impl Reach {
    /// Says what is wrong with the way of a link that has so many pins; the text begins with the key.
    pub(super) fn check(&self, pins: usize) -> Result<(), String> {
        match self {
            Reach::Usb { bridge, .. } if bridge.is_empty() => Err("bridge is empty; name the chip".into()),
            Reach::Usb { port, ports, .. } if !(1..=*ports).contains(port) => {
                Err(format!("port is {port}, and of {ports} there are 1 to {ports}; ports counts them all"))
            }
            Reach::Pins { connector, .. } if connector.is_empty() => Err("connector is empty; name it".into()),
            Reach::Pins { names, .. } if ![0, pins].contains(&names.len()) => Err(format!(
                "names has {} names, and the link has {pins} pins; give one for each, or none",
                names.len()
            )),
            _ => Ok(()),
        }
    }
}

impl Host {
    /// The way to the computer; a processor has none.
    pub fn reach(&self) -> Option<&Reach> {
        match self {
            Host::Uart { reach, .. } | Host::Spi { reach, .. } => Some(reach),
            Host::Processor { .. } => None,
        }
    }

    /// The link's pins, each by what it does and where the other end is joined to it.
    fn joints(&self) -> Vec<(&str, &str)> {
        match self {
            Host::Uart { rx, tx, .. } => vec![("TX", rx), ("RX", tx)],
            Host::Spi { cs, sck, mosi, miso, .. } => {
                vec![("chip select", cs), ("clock", sck), ("MOSI", mosi), ("MISO", miso)]
            }
            Host::Processor { .. } => Vec::new(),
        }
    }

    /// How many pins the link has.
    pub(super) fn pins(&self) -> usize {
        self.joints().len()
    }

    /// How a person joins the board to the computer, where its pins have so many volts; none where a processor is the host.
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
                let joints = self.joints().into_iter().enumerate().map(|(at, (what, pin))| match names.get(at) {
                    Some(name) => format!("{what} to {name} (the FPGA's {pin})"),
                    None => format!("{what} to the FPGA's {pin}"),
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
