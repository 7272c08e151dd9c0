//! How a board's link comes to the computer: over a USB bridge of the board's own, or over an adapter at its pins.

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
