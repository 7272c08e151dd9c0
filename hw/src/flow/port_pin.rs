//! Ports of the top module at pins of the part.

/// A port of the top module, and the pin that it is connected to.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(super) struct PortPin {
    /// The port.
    pub(super) port: String,
    /// The pin, as the part's package names it.
    pub(super) pin: String,
}

impl PortPin {
    /// A port at a pin.
    pub(super) fn new(port: impl Into<String>, pin: &str) -> PortPin {
        PortPin { port: port.into(), pin: pin.into() }
    }

    /// The bits of a port, lowest first, at their pins.
    pub(super) fn bits<'a>(port: &'a str, pins: &'a [String]) -> impl Iterator<Item = PortPin> + 'a {
        pins.iter().enumerate().map(move |(at, pin)| PortPin::new(format!("{port}[{at}]"), pin))
    }
}
