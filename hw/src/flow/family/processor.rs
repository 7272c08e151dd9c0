//! The processor of a family's parts, as Vivado's block designs and device trees name it.

/// The names of a processor's ports, and the settings that turn them on.
pub struct Processor {
    /// The port through which the processor reaches the core's registers.
    pub master: &'static str,
    /// The clock input of that port.
    pub master_clock: &'static str,
    /// The clock output for the fabric.
    pub clock: &'static str,
    /// The reset output for the fabric.
    pub reset: &'static str,
    /// The port through which the core reaches the processor's memory.
    pub port: &'static str,
    /// The clock input of that port.
    pub port_clock: &'static str,
    /// The input for the fabric's interrupts.
    pub interrupts: &'static str,
    /// The block's properties that turn on the clock, up to its frequency in MHz, which follows them.
    pub clock_settings: &'static str,
    /// The block's properties that turn on the ports and the interrupts.
    pub port_settings: &'static str,
    /// The automation rule that applies a board's settings to the block.
    pub rule: &'static str,
    /// The arguments of that rule.
    pub rule_settings: &'static str,
    /// The label of the interrupt controller in device trees.
    pub controller: &'static str,
    /// Whether an address or a size takes two cells of 32 bits in device trees.
    pub wide: bool,
}
