//! Checks boards. Errors name the key of the board's file and say what to change.

use super::{Board, CoreMemory, HostLink, LEDS, VOLTS, ports};
use crate::flow::family::{Family, SPRAM_KIB};
use crate::flow::port_pin::PortPin;

/// Returns a clock in MHz if it is in the allowed range.
///
/// # Errors
/// The value and the allowed range.
pub fn legal_mhz(mhz: f64) -> Result<f64, String> {
    if (1.0..=1000.0).contains(&mhz) { Ok(mhz) } else { Err(format!("{mhz}; give MHz from 1 to 1000")) }
}

fn check_volts(key: &str, volts: f64) -> Result<(), String> {
    let legal = VOLTS.contains(&volts);
    legal.then_some(()).ok_or_else(|| format!("{key} is {volts}; pins have 3.3, 2.5, 1.8, 1.5 or 1.2"))
}

impl Board {
    /// Checks the board, and reports the first mistake.
    pub(super) fn check(&self) -> Result<(), String> {
        for (key, mhz) in [("core_mhz", self.core_mhz), ("clock.mhz", self.clock.mhz)] {
            legal_mhz(mhz).map_err(|what| format!("{key} is {what}"))?;
        }
        check_volts("io_volts", self.io_volts)?;
        self.leds.volts.map_or(Ok(()), |volts| check_volts("leds.volts", volts))?;
        self.check_part()?;
        self.check_speed()?;
        if self.leds.pins.len() > LEDS as usize {
            let given = self.leds.pins.len();
            return Err(format!(
                "leds.pins has {given} pins, but a shell drives at most {LEDS} LEDs; remove the others"
            ));
        }
        if let CoreMemory::Sdram(chip) = &self.memory {
            chip.check()?;
            if self.family.definition().sdram_cells.is_none() {
                let supported = Family::ALL.into_iter().filter(|family| family.definition().sdram_cells.is_some());
                let supported: Vec<&str> = supported.map(Family::name).collect();
                return Err(format!(
                    "memory.kind is sdram, which is supported on {} only, not on {}; use another memory",
                    supported.join(", "),
                    self.family.name()
                ));
            }
        }
        if let CoreMemory::Block { kib } | CoreMemory::Spram { kib } = self.memory {
            let in_spram = matches!(self.memory, CoreMemory::Spram { .. });
            self.check_memory(kib, in_spram)?;
        }
        let clock = self.family.clock(self.clock.mhz, self.core_mhz).map_err(|what| format!("core_mhz: {what}"))?;
        let mut kinds = Vec::new();
        for (key, host) in self.all_hosts() {
            self.check_host(&key, host, clock.mhz)?;
            if kinds.contains(&host.kind()) {
                return Err(format!("{key}.kind is {}, which another host has too; use each kind once", host.kind()));
            }
            kinds.push(host.kind());
        }
        Ok(())
    }

    /// Checks part and package.
    fn check_part(&self) -> Result<(), String> {
        let Some(part) = self.family.part(&self.device) else {
            let names: Vec<&str> = self.family.parts().iter().map(|part| part.name).collect();
            return Err(format!(
                "device is {}, which is no known part of {}; use one of {}",
                self.device,
                self.family.name(),
                names.join(", ")
            ));
        };
        if !part.packages.is_empty() && !part.packages.contains(&self.package.as_str()) {
            return Err(format!(
                "package is {}, which the router does not know for {}; use one of {}",
                self.package,
                part.name,
                part.packages.join(", ")
            ));
        }
        Ok(())
    }

    /// Checks the size of memory in the part's single-port RAMs or block RAMs.
    fn check_memory(&self, kib: u32, in_spram: bool) -> Result<(), String> {
        let Some(part) = self.family.part(&self.device) else { return Ok(()) };
        let (room, what) = match in_spram {
            true => (part.sprams * SPRAM_KIB, "single-port RAM"),
            false => (part.brams * self.family.definition().bram_bytes / 1024, "block RAM"),
        };
        if in_spram && room == 0 {
            return Err(format!("memory.kind is spram, but {} has no single-port RAM; use host or block", part.name));
        }
        if !(1..=room).contains(&u64::from(kib)) {
            return Err(format!("memory.kib is {kib}, but {} has {room} KiB of {what}; use 1 to {room}", part.name));
        }
        Ok(())
    }

    /// Checks the speed grade.
    fn check_speed(&self) -> Result<(), String> {
        let (speed, family) = (&self.speed, self.family.name());
        let speeds: Vec<&str> = self.family.definition().speeds.iter().map(|speed| speed.name).collect();
        if speeds.is_empty() && !speed.is_empty() {
            return Err(format!(
                "speed is {speed:?}, but {family} has its speed grades in the parts' names; remove the key"
            ));
        }
        if !speeds.is_empty() && !speeds.contains(&speed.as_str()) {
            return Err(format!(
                "speed is {speed:?}, which is no speed grade of {family}; use one of {}",
                speeds.join(", ")
            ));
        }
        Ok(())
    }

    /// Checks a link at the core's clock in MHz.
    fn check_host(&self, key: &str, host: &HostLink, mhz: f64) -> Result<(), String> {
        host.clocks_per_bit(mhz).map_err(|what| format!("{key}.{what}"))?;
        if let Some(reach) = host.reach() {
            reach.check(host.pins()).map_err(|what| format!("{key}.reach.{what}"))?;
        }
        if let HostLink::Processor { port, .. } = host
            && let Some(wanted) = self.family.definition().processor.map(|processor| processor.port)
            && wanted != port
        {
            return Err(format!(
                "{key}.port is {port}, but the scripts for {} connect only {wanted}; use that",
                self.family.name()
            ));
        }
        if self.family.has_processor() != matches!(host, HostLink::Processor { .. }) {
            let (kind, device) = (host.kind(), &self.device);
            return Err(match self.family.has_processor() {
                true => {
                    format!("{key}.kind is {kind}, but {device} has a processor, which must be the host; use processor")
                }
                false => format!("{key}.kind is processor, but {device} has no processor; use uart or spi"),
            });
        }
        let mut ports = ports(&Board { host: host.clone(), ..self.clone() });
        let legal = |pin: &str| !pin.is_empty() && pin.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let illegal = ports.iter().find(|at| !self.family.has_processor() && !legal(&at.pin));
        if let Some(PortPin { port, pin }) = illegal {
            return Err(format!(
                "pin {pin:?} of {port} is not a valid pin name; use the letters and digits by which the part's package names it"
            ));
        }
        ports.sort_by(|a, b| a.pin.cmp(&b.pin));
        match ports.windows(2).find(|pair| pair[0].pin == pair[1].pin) {
            Some([a, b]) => Err(format!("pin {} is used for both {} and {}; use each pin once", a.pin, a.port, b.port)),
            _ => Ok(()),
        }
    }
}

/// Refuses text that could end a line or a comment in the sources that the flow writes it into.
pub(super) fn check_text(key: &str, value: &toml::Value) -> Result<(), String> {
    let inner = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
    match value {
        toml::Value::String(text) if text.chars().any(char::is_control) || text.contains("*/") => {
            Err(format!("{key} is {text:?}; remove control characters and `*/`"))
        }
        toml::Value::Array(values) => values.iter().try_for_each(|value| check_text(key, value)),
        toml::Value::Table(table) => table.iter().try_for_each(|(name, value)| check_text(&inner(name), value)),
        _ => Ok(()),
    }
}
