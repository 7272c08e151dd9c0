//! A hardware configuration: reads it from TOML, validates it as a whole, and derives all sizes.

mod derive;
mod energy;
mod fit;
mod form;
mod host;
mod params;

pub use derive::{Mem, PAGE_BYTES, Widths};
pub use energy::{EnergyParam, EnergySection, MOST_ENERGY};
pub use host::{HostParam, HostSection};
pub use params::{Counters, HwConfig, Legal, PARAMS, Param};

use serde::{Deserialize, Serialize};
use std::borrow::Cow;

/// Defaults of the DRAM model; all figures are whole numbers.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct DramSection {
    /// Cycles from when the memory takes up a request to its first beat.
    pub latency: u32,
    /// Sixteenths of a cycle per beat: 16 is one beat per cycle.
    pub beat_sixteenths: u32,
    /// Whether reads and writes share one server.
    pub shared: bool,
    /// Sixteenths of a cycle for opening another 2 KiB row; 0 for none.
    pub row_open_sixteenths: u32,
    /// Sixteenths of a cycle that each burst occupies the server before its beats; 0 for none.
    pub burst_sixteenths: u32,
}

impl DramSection {
    /// Greatest value of each figure: a beat of the widest bus over the slowest serial line that a shell supports.
    pub const MOST: u32 = 1 << 30;
    /// Fractions of a cycle in which server times are counted.
    pub const SIXTEENTHS: u32 = 16;
    /// Bytes of a DRAM row.
    pub const ROW_BYTES: u32 = 2048;

    /// Bytes per cycle of a bus that is `bus_bytes` wide.
    pub fn bytes_per_cycle(&self, bus_bytes: u32) -> f64 {
        f64::from(bus_bytes * Self::SIXTEENTHS) / f64::from(self.beat_sixteenths.max(1))
    }
}

impl Default for DramSection {
    fn default() -> Self {
        DramSection { latency: 64, beat_sixteenths: 16, shared: true, row_open_sixteenths: 0, burst_sixteenths: 0 }
    }
}

/// Reads a table that does not describe hardware. The error lists every unknown key and every value of the wrong type,
/// as (key, problem, remedy).
fn section<T: serde::de::DeserializeOwned>(
    name: &str,
    value: &toml::Value,
) -> Result<T, Vec<(String, String, String)>> {
    let remedy = || format!("see [{name}] in docs/configuration.md");
    let whole = match value.clone().try_into::<T>() {
        Ok(section) => return Ok(section),
        Err(e) => vec![(name.to_string(), one_line(&e), remedy())],
    };
    let Some(table) = value.as_table() else { return Err(whole) };
    let alone = table.iter().filter_map(|(key, value)| {
        let one = toml::Table::from_iter([(key.clone(), value.clone())]);
        let e = toml::Value::Table(one).try_into::<T>().err()?;
        Some((format!("{name}.{key}"), one_line(&e), remedy()))
    });
    let alone: Vec<_> = alone.collect();
    Err(if alone.is_empty() { whole } else { alone })
}

/// One reason why a configuration cannot be built, with what to change.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{key}: {what}; {remedy}")]
pub struct Violation {
    /// The parameter, or the table.
    pub key: String,
    /// What is wrong.
    pub what: String,
    /// What to change.
    pub remedy: String,
}

/// Why a configuration was rejected: all reasons at once.
#[derive(Debug, Clone, thiserror::Error)]
pub enum ConfigError {
    /// The file is not TOML.
    #[error("{file}: not a TOML file: {reason}")]
    Syntax {
        /// File or preset.
        file: String,
        /// The parser's message, with line and column.
        reason: String,
    },
    /// The file could not be read.
    #[error("{file}: {reason}")]
    Io {
        /// File.
        file: String,
        /// The system's message.
        reason: String,
    },
    /// No preset has this name.
    #[error("no configuration is named {name}; the presets are {}, or give a path that ends in .toml", presets.join(", "))]
    Unknown {
        /// The requested name.
        name: String,
        /// The presets.
        presets: Vec<&'static str>,
    },
    /// The hardware cannot be built with these values.
    #[error("{file}: {} violation(s)\n  {}", violations.len(), crate::list::first(violations, "\n  "))]
    Illegal {
        /// File or preset.
        file: String,
        /// Every violation.
        violations: Vec<Violation>,
    },
}

macro_rules! presets {
    ($($name:literal),*) => {
        /// The presets' names and texts, in the order in which they are listed.
        pub const PRESETS: &[(&str, &str)] = &[$(($name, include_str!(concat!("../configs/", $name, ".toml")))),*];
    };
}
presets!("1x4x2", "1x4x4", "1x4x4-ecp5", "1x8x8", "1x8x8-ecp5", "1x16x16", "1x32x32", "1x8x16", "4x16x16");

impl HwConfig {
    /// Reads a preset by name, or a file by a path that ends in `.toml`.
    ///
    /// # Errors
    /// [`ConfigError`], with all violations at once.
    pub fn load(name_or_path: &str) -> Result<HwConfig, ConfigError> {
        HwConfig::parse(name_or_path, &text_of(name_or_path)?)
    }

    /// Reads a configuration from its text. `file` names it in errors. If the text has no `name` and `file` is a path
    /// that ends in `.toml`, the file's name becomes the configuration's.
    ///
    /// # Errors
    /// [`ConfigError::Syntax`], or [`ConfigError::Illegal`] with every violation.
    pub fn parse(file: &str, text: &str) -> Result<HwConfig, ConfigError> {
        let table: toml::Table = text
            .parse()
            .map_err(|e: toml::de::Error| ConfigError::Syntax { file: file.into(), reason: e.to_string() })?;
        let mut config = HwConfig::default();
        if let Some(name) = stem(file) {
            config.name = name.into();
        }
        let mut violations = Vec::new();
        let mut bad = |key: &str, what: String, remedy: String| {
            violations.push(Violation { key: key.into(), what, remedy });
        };
        for (key, value) in &table {
            match key.as_str() {
                "name" => match value.as_str() {
                    Some(name) => config.name = name.into(),
                    None => bad(key, "is not text".into(), "write name = \"…\"".into()),
                },
                "host" => match section(key, value) {
                    Ok(host) => config.host = host,
                    Err(found) => found.into_iter().for_each(|(key, what, remedy)| bad(&key, what, remedy)),
                },
                "dram" => match section(key, value) {
                    Ok(dram) => config.dram = dram,
                    Err(found) => found.into_iter().for_each(|(key, what, remedy)| bad(&key, what, remedy)),
                },
                "energy" => match section(key, value) {
                    Ok(energy) => config.energy = Some(energy),
                    Err(found) => found.into_iter().for_each(|(key, what, remedy)| bad(&key, what, remedy)),
                },
                _ => match PARAMS.iter().find(|p| p.key == key) {
                    Some(param) => {
                        if let Err(what) = (param.set)(&mut config, value) {
                            bad(key, what, format!("use {}", param.legal));
                        }
                    }
                    None => bad(key, "is not a parameter".into(), nearest(key)),
                },
            }
        }
        violations.extend(config.violations());
        if violations.is_empty() { Ok(config) } else { Err(ConfigError::Illegal { file: file.into(), violations }) }
    }

    /// Keys of `[host]` that a preset or file leaves at their defaults; `target` comes first.
    ///
    /// # Errors
    /// [`ConfigError::Unknown`], [`ConfigError::Io`] or [`ConfigError::Syntax`].
    pub fn unstated_of_host(name_or_path: &str) -> Result<Vec<&'static str>, ConfigError> {
        let text = text_of(name_or_path)?;
        let syntax = |e: toml::de::Error| ConfigError::Syntax { file: name_or_path.into(), reason: e.to_string() };
        let table: toml::Table = text.parse().map_err(syntax)?;
        let host = table.get("host").and_then(toml::Value::as_table);
        let keys = std::iter::once("target").chain(HostSection::PARAMS.iter().map(|p| p.key));
        Ok(keys.filter(|key| host.is_none_or(|host| !host.contains_key(*key))).collect())
    }

    /// The configuration as TOML text, which [`HwConfig::parse`] reads back.
    pub fn to_toml(&self) -> String {
        toml::to_string(self).unwrap_or_default()
    }

    /// Checks every parameter's range and every rule between parameters.
    pub fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut bad = |key: &str, what: String, remedy: String| {
            found.push(Violation { key: key.into(), what, remedy });
        };
        for p in PARAMS {
            let v = p.value(self);
            let fits = match p.legal {
                Legal::Range(lo, hi) => (lo..=hi).contains(&v),
                Legal::PowerOfTwo(lo, hi) => v.is_power_of_two() && (lo..=hi).contains(&v),
                Legal::Flag | Legal::Words(_) => true,
            };
            if !fits {
                bad(p.key, format!("is {v}"), format!("use {}", p.legal));
            }
        }
        let wrong: Vec<String> = found.iter().map(|v| v.key.clone()).collect();
        found.extend(self.surroundings());
        let rules = |config: &HwConfig| {
            let mut broken = config.rule_violations();
            broken.extend(crate::isa::Opcode::ALL.into_iter().filter_map(|op| fit::violation(config, op)));
            broken
        };
        if wrong.is_empty() {
            found.extend(rules(self));
            return found;
        }
        // Derived sizes need legal values, so the rules are checked with illegal values replaced. A rule that is broken
        // both with the least and with the greatest legal values does not depend on them.
        let broken = [false, true].map(|greatest| rules(&self.repaired(&wrong, greatest)));
        let [least, greatest] = &broken;
        found.extend(
            least.iter().filter(|v| greatest.iter().any(|w| w.key == v.key) && !wrong.contains(&v.key)).cloned(),
        );
        found
    }

    /// Returns a copy with legal values for some parameters: the greatest or the least.
    fn repaired(&self, keys: &[String], greatest: bool) -> HwConfig {
        let mut config = self.clone();
        for p in PARAMS.iter().filter(|p| keys.iter().any(|key| key == p.key)) {
            if let Legal::Range(lo, hi) | Legal::PowerOfTwo(lo, hi) = p.legal {
                // A number within the legal range is always accepted.
                let _ = (p.set)(&mut config, &toml::Value::Integer(if greatest { hi } else { lo } as i64));
            }
        }
        config
    }

    /// Checks the parts that do not describe hardware.
    fn surroundings(&self) -> Vec<Violation> {
        let dram = [
            ("dram.latency", self.dram.latency, 0),
            ("dram.beat_sixteenths", self.dram.beat_sixteenths, 1),
            ("dram.row_open_sixteenths", self.dram.row_open_sixteenths, 0),
            ("dram.burst_sixteenths", self.dram.burst_sixteenths, 0),
        ];
        let mut found = Vec::new();
        let mut bad = |key: &str, what: String, remedy: String| found.push(Violation { key: key.into(), what, remedy });
        for (key, value, least) in dram {
            if !(least..=DramSection::MOST).contains(&value) {
                bad(key, format!("is {value}"), format!("use {least} to {}", DramSection::MOST));
            }
        }
        if self.name.contains(char::is_control) {
            // The name goes into a comment of the generated package.
            bad("name", "contains a control character".into(), "use a name of one line".into());
        }
        found.extend(self.host.violations());
        found.extend(self.energy.iter().flat_map(EnergySection::violations));
        found
    }

    /// Checks the rules between parameters, except for the length of instructions.
    fn rule_violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        let mut bad = |key: &str, what: String, remedy: String| {
            found.push(Violation { key: key.into(), what, remedy });
        };
        let row = self.batch * self.block_out;
        for (key, lanes) in [("vector_lanes", self.vector_lanes), ("requant_lanes", self.requant_lanes)] {
            if lanes > row {
                bad(key, format!("is {lanes}, more than the {row} elements of a row"), format!("use at most {row}"));
            }
        }
        if self.dma_align > self.bus_bytes() {
            bad(
                "dma_align",
                format!("is {}, wider than the bus", self.dma_align),
                format!("use at most {}", self.bus_bytes()),
            );
        }
        if self.batch > 1 && !self.dma_pack {
            bad("dma_pack", "is false while batch is more than 1".into(), "set dma_pack = true or batch = 1".into());
        }
        for (key, banks, depth) in [
            ("inp_banks", self.inp_banks, self.inp_depth),
            ("acc_banks", self.acc_banks, self.acc_depth),
            ("out_banks", self.out_banks, self.out_depth),
        ] {
            if banks * 2 > depth {
                bad(key, format!("is {banks} for {depth} entries"), "use at least two entries per bank".into());
            }
        }
        for (key, beats) in
            [("load_buffer_beats", self.load_buffer_beats), ("store_buffer_beats", self.store_buffer_beats)]
        {
            if beats < self.max_burst_beats {
                bad(
                    key,
                    format!("is {beats}, less than one burst of {} beats", self.max_burst_beats),
                    "make the buffer larger or max_burst_beats smaller".into(),
                );
            }
        }
        if self.max_burst_beats * self.bus_bytes() > PAGE_BYTES {
            bad(
                "max_burst_beats",
                format!("is {} on a bus of {} bytes, more than 4 KiB", self.max_burst_beats, self.bus_bytes()),
                format!("use at most {}", PAGE_BYTES / self.bus_bytes()),
            );
        }
        if self.stride_bits > self.offset_bits {
            bad(
                "stride_bits",
                format!("is {}, more than offset_bits", self.stride_bits),
                format!("use at most {}", self.offset_bits),
            );
        }
        if self.vector_lut && self.table_entries() > self.param_depth {
            bad(
                "vector_lut",
                format!(
                    "needs a table of {} param entries, but only {} are available",
                    self.table_entries(),
                    self.param_depth
                ),
                "make param_depth larger or set vector_lut = false".into(),
            );
        }
        let need = u64::from(self.param_depth) * u64::from(self.param_entry_bytes());
        if need < 2 * crate::isa::DESCRIPTOR_BYTES as u64 {
            bad("param_depth", "leaves no room for two descriptors".into(), "make it deeper".into());
        }
        found
    }
}

/// The text of a preset by name, or of a file by a path that ends in `.toml`.
pub(crate) fn text_of(name_or_path: &str) -> Result<Cow<'static, str>, ConfigError> {
    if name_or_path.ends_with(".toml") {
        let text = std::fs::read_to_string(name_or_path)
            .map_err(|e| ConfigError::Io { file: name_or_path.into(), reason: e.to_string() })?;
        return Ok(text.into());
    }
    let preset = PRESETS.iter().find(|(name, _)| *name == name_or_path);
    preset.map(|(_, text)| Cow::Borrowed(*text)).ok_or_else(|| ConfigError::Unknown {
        name: name_or_path.into(),
        presets: PRESETS.iter().map(|(name, _)| *name).collect(),
    })
}

/// The name of a configuration's file without its folder and `.toml`.
fn stem(file: &str) -> Option<&str> {
    let stem = std::path::Path::new(file.strip_suffix(".toml")?).file_name()?.to_str()?;
    Some(stem).filter(|stem| !stem.contains(char::is_control))
}

fn one_line(e: &toml::de::Error) -> String {
    e.message().replace('\n', " ")
}

/// Suggests the parameter whose name is closest to `key`.
fn nearest(key: &str) -> String {
    let best = PARAMS.iter().map(|p| p.key).min_by_key(|candidate| distance(key, candidate));
    match best {
        // Up to a third of the letters may differ; with more, a short word is another word.
        Some(name) if distance(key, name) <= (key.chars().count() / 3).clamp(1, 3) => format!("did you mean {name}"),
        _ => "remove it, or see the table of parameters".into(),
    }
}

/// Edit distance of two words.
fn distance(a: &str, b: &str) -> usize {
    let b: Vec<char> = b.chars().collect();
    let mut row: Vec<usize> = (0..=b.len()).collect();
    for (i, ca) in a.chars().enumerate() {
        let mut diagonal = row[0];
        row[0] = i + 1;
        for (j, cb) in b.iter().enumerate() {
            let substitute = diagonal + usize::from(ca != *cb);
            diagonal = row[j + 1];
            row[j + 1] = substitute.min(row[j] + 1).min(diagonal + 1);
        }
    }
    row[b.len()]
}

#[cfg(test)]
mod tests;
