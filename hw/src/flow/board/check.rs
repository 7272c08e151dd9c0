//! What must be right about a board.

use super::{Board, Host, LEDS, Memory, VOLTS, ports};
use crate::flow::family::SPRAM_KIB;
use crate::flow::port_pin::PortPin;

/// A clock in MHz that can be asked for.
///
/// # Errors
/// What to give instead.
pub fn legal_mhz(mhz: f64) -> Result<f64, String> {
    if (1.0..=1000.0).contains(&mhz) { Ok(mhz) } else { Err(format!("{mhz}; give MHz from 1 to 1000")) }
}

fn check_volts(key: &str, volts: f64) -> Result<(), String> {
    let legal = VOLTS.contains(&volts);
    legal.then_some(()).ok_or_else(|| format!("{key} is {volts}; pins have 3.3, 2.5, 1.8, 1.5 or 1.2"))
}

impl Board {
    /// Says what is wrong with it.
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
            return Err(format!("leds.pins has {given} pins, and a shell has {LEDS} lamps; leave the others out"));
        }
        if let Memory::Sdram(chip) = &self.memory {
            chip.check()?;
            if self.family.definition().sdram_cells.is_none() {
                let family = self.family.name();
                return Err(format!("memory.kind is sdram, whose pins are known for ecp5 alone, not for {family}"));
            }
        }
        if let Memory::Block { kib } | Memory::Spram { kib } = self.memory {
            let in_spram = matches!(self.memory, Memory::Spram { .. });
            self.check_memory(kib, in_spram)?;
        }
        let clock = self.family.clock(self.clock.mhz, self.core_mhz).map_err(|what| format!("core_mhz: {what}"))?;
        let mut kinds = Vec::new();
        for (key, host) in self.all_hosts() {
            self.check_host(&key, host, clock.mhz)?;
            if kinds.contains(&host.kind()) {
                return Err(format!("{key}.kind is {}, and so is another host's; give each kind once", host.kind()));
            }
            kinds.push(host.kind());
        }
        Ok(())
    }

    /// Says what is wrong with a board's part.
    fn check_part(&self) -> Result<(), String> {
        let Some(part) = self.family.part(&self.device) else {
            let names: Vec<&str> = self.family.parts().iter().map(|part| part.name).collect();
            return Err(format!("device is {}; of {} there are {}", self.device, self.family.name(), names.join(", ")));
        };
        if !part.packages.is_empty() && !part.packages.contains(&self.package.as_str()) {
            return Err(format!(
                "package is {}; the router knows {} in {}",
                self.package,
                part.name,
                part.packages.join(", ")
            ));
        }
        Ok(())
    }

    /// Says what is wrong with memory of so many KiB in its part: in its single-port RAMs or in its block RAMs.
    fn check_memory(&self, kib: u32, in_spram: bool) -> Result<(), String> {
        let Some(part) = self.family.part(&self.device) else { return Ok(()) };
        let (room, what) = match in_spram {
            true => (part.sprams * SPRAM_KIB, "single-port RAM"),
            false => (part.brams * self.family.definition().bram_bytes / 1024, "block RAM"),
        };
        if in_spram && room == 0 {
            return Err(format!("memory.kind is spram, which {} has not; choose host or block", part.name));
        }
        if !(1..=room).contains(&u64::from(kib)) {
            return Err(format!(
                "memory.kib is {kib}, and {} has {room} KiB of {what}; give as much or less",
                part.name
            ));
        }
        Ok(())
    }

    /// Says what is wrong with its part's speed grade.
    fn check_speed(&self) -> Result<(), String> {
        let (speed, family) = (&self.speed, self.family.name());
        let speeds: Vec<&str> = self.family.definition().speeds.iter().map(|speed| speed.name).collect();
        if speeds.is_empty() && !speed.is_empty() {
            return Err(format!(
                "speed is {speed:?}, and {family} has no grades beside its parts' names; leave it out"
            ));
        }
        if !speeds.is_empty() && !speeds.contains(&speed.as_str()) {
            return Err(format!("speed is {speed:?}; of {family} there are {}", speeds.join(", ")));
        }
        Ok(())
    }

    /// Says what is wrong with one of its hosts, where the core's clock has so many MHz.
    fn check_host(&self, key: &str, host: &Host, mhz: f64) -> Result<(), String> {
        host.clocks_per_bit(mhz).map_err(|what| format!("{key}.{what}"))?;
        if let Some(reach) = host.reach() {
            reach.check(host.pins()).map_err(|what| format!("{key}.reach.{what}"))?;
        }
        if let Host::Processor { port, .. } = host
            && let Some(wanted) = self.family.definition().processor.map(|processor| processor.port)
            && wanted != port
        {
            return Err(format!("{key}.port is {port}; the scripts for {} join {wanted} alone", self.family.name()));
        }
        if self.family.has_processor() != matches!(host, Host::Processor { .. }) {
            return Err(format!(
                "{key}.kind is processor exactly where the part has one, and {} has {}",
                self.device,
                if self.family.has_processor() { "one" } else { "none" }
            ));
        }
        let mut ports = ports(&Board { host: host.clone(), ..self.clone() });
        let legal = |pin: &str| !pin.is_empty() && pin.chars().all(|c| c.is_ascii_alphanumeric() || c == '_');
        let illegal = ports.iter().find(|at| !self.family.has_processor() && !legal(&at.pin));
        if let Some(PortPin { port, pin }) = illegal {
            return Err(format!(
                "pin {pin:?} of {port} is no name of a pin; give one of letters and digits, as the part's package has it"
            ));
        }
        ports.sort_by(|a, b| a.pin.cmp(&b.pin));
        match ports.windows(2).find(|pair| pair[0].pin == pair[1].pin) {
            Some([a, b]) => Err(format!("pin {} is named for both {} and {}", a.pin, a.port, b.port)),
            _ => Ok(()),
        }
    }
}

/// Refuses text that would end the line or the comment of a source that it is written into.
pub(super) fn check_text(key: &str, value: &toml::Value) -> Result<(), String> {
    let inner = |name: &str| if key.is_empty() { name.to_string() } else { format!("{key}.{name}") };
    match value {
        toml::Value::String(text) if text.chars().any(char::is_control) || text.contains("*/") => {
            Err(format!("{key} is {text:?}; a text has neither control characters nor the end of a comment"))
        }
        toml::Value::Array(values) => values.iter().try_for_each(|value| check_text(key, value)),
        toml::Value::Table(table) => table.iter().try_for_each(|(name, value)| check_text(&inner(name), value)),
        _ => Ok(()),
    }
}
