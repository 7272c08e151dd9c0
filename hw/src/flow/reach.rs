//! The connection between a board's link and the computer: a USB bridge on the board, or an adapter at its pins.

use serde::Deserialize;

/// The connection from a link's pins to the computer.
#[derive(Debug, Clone, PartialEq, Eq, Deserialize)]
#[serde(tag = "kind", rename_all = "lowercase", deny_unknown_fields)]
pub enum Reach {
    /// A USB bridge on the board, which needs only a cable.
    Usb {
        /// The chip, or its name on the board.
        bridge: String,
        /// The port that the FPGA is connected to, from 1.
        port: u32,
        /// Number of its ports.
        ports: u32,
        /// Anything else to know, such as jumpers, or what is not certain.
        #[serde(default)]
        note: String,
    },
    /// Pins for an adapter, or for the host's own port.
    Pins {
        /// The connector.
        connector: String,
        /// Names of the connector's pins, in the order of the link's keys; empty if they are not known.
        #[serde(default)]
        names: Vec<String>,
        /// Anything else to know.
        #[serde(default)]
        note: String,
    },
}

impl Reach {
    /// Checks the connection of a link with this number of pins. The text of an error begins with the key.
    pub(super) fn check(&self, pins: usize) -> Result<(), String> {
        match self {
            Reach::Usb { bridge, .. } if bridge.is_empty() => Err("bridge is empty; name the chip".into()),
            Reach::Usb { port, ports, .. } if !(1..=*ports).contains(port) => {
                Err(format!("port is {port}, but ports is {ports}; use 1 to {ports}, or correct ports"))
            }
            Reach::Pins { connector, .. } if connector.is_empty() => Err("connector is empty; name it".into()),
            Reach::Pins { names, .. } if ![0, pins].contains(&names.len()) => Err(format!(
                "names has {} names, but the link has {pins} pins; give one for each, or none",
                names.len()
            )),
            _ => Ok(()),
        }
    }
}
