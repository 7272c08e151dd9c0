//! Connects an SDRAM chip to the pins of a netlist.

use super::circuit::{Driver, Net};
use super::{Circuit, NetlistError, Simulation};
use crate::board::sdram::{Levels, SdramChip, Socket};

/// A chip and the nets of its pins.
pub(super) struct SdramPads {
    socket: Socket,
    clk: Net,
    cke: Option<Net>,
    cs_n: Option<Net>,
    /// RAS#, CAS# and WE#, from the highest bit.
    command: [Net; 3],
    a: Vec<Net>,
    ba: Vec<Net>,
    dqm: Vec<Net>,
    /// The data pins and their drivers.
    dq: Vec<(Net, Driver)>,
}

impl SdramPads {
    /// Connects a chip to a board's pins.
    ///
    /// # Errors
    /// [`NetlistError::Missing`] if the netlist lacks one of them.
    pub(super) fn new(circuit: &Circuit, chip: SdramChip) -> Result<SdramPads, NetlistError> {
        let missing = |name: &str| NetlistError::Missing(format!("port {name} that matches its SDRAM"));
        let many = |name: &str, bits: usize| -> Result<Vec<Net>, NetlistError> {
            match circuit.port(name) {
                Some(nets) if nets.len() == bits => Ok(nets.to_vec()),
                None if bits == 0 => Ok(Vec::new()),
                _ => Err(missing(name)),
            }
        };
        let one = |name: &str| many(name, 1).map(|nets| nets[0]);
        let pins = &chip.chip().pins;
        let driven = |pin: &Net| circuit.driver(*pin).map(|driver| (*pin, driver)).ok_or_else(|| missing("sdram_dq"));
        Ok(SdramPads {
            clk: one("sdram_clk")?,
            cke: pins.cke.is_some().then(|| one("sdram_cke")).transpose()?,
            cs_n: pins.cs.is_some().then(|| one("sdram_cs_n")).transpose()?,
            command: [one("sdram_ras_n")?, one("sdram_cas_n")?, one("sdram_we_n")?],
            a: many("sdram_a", pins.a.len())?,
            ba: many("sdram_ba", pins.ba.len())?,
            dqm: many("sdram_dqm", pins.dqm.len())?,
            dq: many("sdram_dq", pins.dq.len())?.iter().map(driven).collect::<Result<_, NetlistError>>()?,
            socket: Socket::new(chip),
        })
    }

    pub(super) fn chip_mut(&mut self) -> &mut SdramChip {
        self.socket.chip_mut()
    }

    /// Passes the netlist's pins to the chip, and the resulting data pins to the netlist.
    ///
    /// # Errors
    /// Describes what the netlist does wrong.
    pub(super) fn follow(&mut self, simulation: &mut Simulation) -> Result<(), String> {
        let number = |nets: &[Net]| simulation.number(nets) as u32;
        let bits = |of: fn(&Driver) -> Net| {
            let bits = self.dq.iter().rev();
            bits.fold(0, |all, (_, driver)| all << 1 | u32::from(simulation.get(of(driver))))
        };
        let levels = Levels {
            clk: simulation.get(self.clk),
            cke: self.cke.is_none_or(|net| simulation.get(net)),
            cs_n: self.cs_n.is_some_and(|net| simulation.get(net)),
            command: self.command.iter().fold(0, |all, net| all << 1 | u8::from(simulation.get(*net))),
            a: number(&self.a),
            ba: number(&self.ba),
            dqm: number(&self.dqm),
            dq: bits(|driver| driver.value),
            driven: bits(|driver| driver.enable),
        };
        let (dq, outcome) = self.socket.follow(levels);
        for (at, (pin, _)) in self.dq.iter().enumerate() {
            simulation.set(*pin, dq >> at & 1 == 1);
        }
        simulation.settle();
        outcome
    }
}
