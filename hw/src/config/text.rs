//! Reads and writes the TOML text of a configuration. Its values are few and of simple types, so they are read without
//! serde, whose code for three tables is larger than the parser.

use toml::de::{DeTable, DeValue};
use toml::{Table, Value};
use toml_writer::{TomlWrite, WriteTomlValue};

use super::{Counters, EnergySection, HostSection, HwConfig, Legal, PARAMS};

/// Parses TOML. The error has the parser's message, with line and column.
pub(super) fn table(text: &str) -> Result<Table, String> {
    let parsed = DeTable::parse(text).map_err(|error| error.to_string())?;
    entries(parsed.into_inner())
}

fn entries(table: DeTable) -> Result<Table, String> {
    let mut read = Table::new();
    for (key, item) in table {
        let key = key.into_inner().into_owned();
        let item = value(item.into_inner()).map_err(|reason| format!("{key}: {reason}"))?;
        read.insert(key, item);
    }
    Ok(read)
}

fn value(parsed: DeValue) -> Result<Value, String> {
    Ok(match parsed {
        DeValue::String(text) => Value::String(text.into_owned()),
        DeValue::Integer(number) => Value::Integer(
            i64::from_str_radix(number.as_str(), number.radix())
                .map_err(|_| format!("{number} is outside the range of 64 bits"))?,
        ),
        DeValue::Float(number) => {
            let parsed: f64 = number.as_str().parse().map_err(|_| format!("{number} is not a number"))?;
            if parsed.is_infinite() && !number.as_str().contains("inf") {
                return Err(format!("{number} is outside the range of 64 bits"));
            }
            Value::Float(parsed)
        }
        DeValue::Boolean(flag) => Value::Boolean(flag),
        DeValue::Datetime(time) => Value::Datetime(time),
        DeValue::Array(items) => {
            let items: Result<_, String> = items.into_iter().map(|item| value(item.into_inner())).collect();
            Value::Array(items?)
        }
        DeValue::Table(table) => Value::Table(entries(table)?),
    })
}

/// A value that a configuration file can have. The error says what is wrong with it.
pub(super) trait FromToml: Sized {
    fn from_toml(value: &Value) -> Result<Self, String>;
}

impl FromToml for u32 {
    // Called for each of the parameters.
    #[inline(never)]
    fn from_toml(value: &Value) -> Result<Self, String> {
        let n = value.as_integer().ok_or_else(|| format!("is {}, not a whole number", value.type_str()))?;
        u32::try_from(n).map_err(|_| format!("is {n}, outside the range of a parameter"))
    }
}

impl FromToml for f64 {
    #[inline(never)]
    fn from_toml(value: &Value) -> Result<Self, String> {
        let whole = || value.as_integer().map(|n| n as f64);
        value.as_float().or_else(whole).ok_or_else(|| format!("is {}, not a number", value.type_str()))
    }
}

impl FromToml for bool {
    #[inline(never)]
    fn from_toml(value: &Value) -> Result<Self, String> {
        value.as_bool().ok_or_else(|| format!("is {}, not true or false", value.type_str()))
    }
}

impl FromToml for String {
    fn from_toml(value: &Value) -> Result<Self, String> {
        value.as_str().map(str::to_string).ok_or_else(|| format!("is {}, not text", value.type_str()))
    }
}

impl FromToml for Counters {
    fn from_toml(value: &Value) -> Result<Self, String> {
        let word = value.as_str().ok_or_else(|| format!("is {}, not text", value.type_str()))?;
        Counters::ALL.into_iter().find(|known| known.name() == word).ok_or_else(|| format!("is {word:?}"))
    }
}

/// A table of figures that do not describe hardware.
pub(super) trait Section: Sized {
    /// Its name in the file.
    const NAME: &'static str;
    /// Keys that have no default.
    const REQUIRED: &'static [&'static str] = &[];
    /// The section of a file that sets nothing.
    fn unset() -> Self;
    /// Sets a figure; `None` if there is none of this name.
    fn set(&mut self, key: &str, value: &Value) -> Option<Result<(), String>>;
}

/// Reads a table that does not describe hardware. The error lists every unknown key, every missing key and every value
/// of the wrong type, as (key, problem, remedy).
pub(super) fn section<T: Section>(value: &Value) -> Result<T, Vec<(String, String, String)>> {
    let name = T::NAME;
    let remedy = || format!("see [{name}] in docs/configuration.md");
    let Some(table) = value.as_table() else {
        return Err(vec![(name.into(), format!("is {}, not a table", value.type_str()), remedy())]);
    };
    let (mut section, mut wrong) = (T::unset(), Vec::new());
    for (key, value) in table {
        let what = match section.set(key, value) {
            Some(Ok(())) => continue,
            Some(Err(what)) => what,
            None => format!("is not a key of [{name}]"),
        };
        wrong.push((format!("{name}.{key}"), what, remedy()));
    }
    let missing = T::REQUIRED.iter().filter(|key| !table.contains_key(**key));
    wrong.extend(missing.map(|key| (name.into(), format!("has no {key}"), remedy())));
    if wrong.is_empty() { Ok(section) } else { Err(wrong) }
}

/// The configuration as TOML text.
pub(super) fn written(config: &HwConfig) -> Result<String, std::fmt::Error> {
    let mut text = String::new();
    line(&mut text, "name", &config.name)?;
    for param in PARAMS {
        let value = param.value(config);
        match param.legal {
            Legal::Flag => line(&mut text, param.key, value != 0)?,
            Legal::Words(words) => line(&mut text, param.key, words.get(value as usize).copied().unwrap_or_default())?,
            Legal::Range(..) | Legal::PowerOfTwo(..) => line(&mut text, param.key, value)?,
        }
    }
    header(&mut text, "host")?;
    line(&mut text, "target", &config.host.target)?;
    for param in HostSection::PARAMS {
        let value = (param.get)(&config.host);
        if param.whole { line(&mut text, param.key, value as u64)? } else { line(&mut text, param.key, value)? }
    }
    if let Some(energy) = &config.energy {
        header(&mut text, "energy")?;
        line(&mut text, "source", &energy.source)?;
        for param in EnergySection::PARAMS {
            line(&mut text, param.key, (param.get)(energy))?;
        }
    }
    header(&mut text, "dram")?;
    for (key, value) in config.dram.numbers() {
        line(&mut text, key, value)?;
    }
    line(&mut text, "shared", config.dram.shared)?;
    Ok(text)
}

fn header(text: &mut String, name: &str) -> std::fmt::Result {
    text.newline()?;
    text.open_table_header()?;
    text.key(name)?;
    text.close_table_header()?;
    text.newline()
}

fn line(text: &mut String, key: &str, value: impl WriteTomlValue) -> std::fmt::Result {
    text.key(key)?;
    text.space()?;
    text.keyval_sep()?;
    text.space()?;
    text.value(value)?;
    text.newline()
}

#[cfg(test)]
mod tests {
    use super::super::PRESETS;
    use super::*;

    /// Files written by serde are read, and what is written here means the same to serde.
    #[test]
    fn the_text_means_what_serde_writes() {
        let energy =
            EnergySection { source: "a \"board\"".into(), mac_pj: 0.25, dram_pj_per_byte: 1e9, static_mw: 3.0 };
        for (preset, _) in PRESETS {
            for energy in [None, Some(energy.clone())] {
                let config = HwConfig { energy, ..HwConfig::load(preset).unwrap() };
                let serde = toml::to_string(&config).unwrap();
                assert_eq!(HwConfig::parse(preset, &serde).unwrap(), config);
                let (own, serde): (Table, Table) = (config.to_toml().parse().unwrap(), serde.parse().unwrap());
                assert_eq!(own, serde);
                assert_eq!(table(&config.to_toml()).unwrap(), own);
            }
        }
    }

    #[test]
    fn a_number_that_is_too_large_is_named() {
        let text = "batch = 1\n[host]\ncores = 99999999999999999999";
        let reason = HwConfig::parse("f.toml", text).unwrap_err().to_string();
        assert_eq!(
            reason,
            "f.toml: not a TOML file: host: cores: 99999999999999999999 is outside the range of 64 bits"
        );
    }
}
