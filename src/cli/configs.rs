//! `configs`: lists presets, prints parameters and checks configuration files.

use std::fmt::Write;

use anyhow::Result;
use clap::Subcommand;
use serde_json::json;
use tilewright::device::load_hw;
use tilewright_hw::config::{
    ConfigError, EnergySection, HostSection, HwConfig, Legal, MOST_ENERGY, PARAMS, PRESETS, Param,
};

use super::{Verdict, write_or_print};

/// Arguments of `configs`.
#[derive(clap::Args)]
pub struct Configs {
    #[command(subcommand)]
    command: Option<Action>,
    /// Print one JSON object on standard output
    #[arg(long, global = true)]
    json: bool,
}

#[derive(Subcommand)]
enum Action {
    /// Check a configuration and print every violation; needs no model
    Check {
        /// A TOML file, or the name of a preset
        file: String,
    },
    /// Print a configuration with every parameter, its unit and its legal values
    Show {
        /// A TOML file, or the name of a preset or a board
        file: String,
    },
}

impl Configs {
    pub fn run(self) -> Result<Verdict> {
        match self.command {
            None => list(self.json),
            Some(Action::Check { file }) => check(&file, self.json),
            Some(Action::Show { file }) => show(&file, self.json),
        }
    }
}

fn list(json: bool) -> Result<Verdict> {
    let mut text = String::new();
    let mut rows = Vec::new();
    for (name, _) in PRESETS {
        let config = HwConfig::load(name)?;
        let memories: u32 = [&config].iter().map(|c| scratchpad_bytes(c)).sum();
        let _ = writeln!(
            text,
            "{name:<10} {:>5} MACs a cycle, {:>4} KiB of scratchpads, {}-bit bus, hash {:016x}",
            config.macs_per_cycle(),
            memories / 1024,
            config.bus_bits,
            config.hash()
        );
        rows.push(json!({
            "name": name,
            "hash": format!("{:016x}", config.hash()),
            "macs_per_cycle": config.macs_per_cycle(),
            "scratchpad_bytes": memories,
        }));
    }
    if json {
        text = format!("{}\n", json!({ "configs": rows }));
    }
    write_or_print(None, text.as_bytes())?;
    Ok(Verdict::Fine)
}

fn scratchpad_bytes(config: &HwConfig) -> u32 {
    tilewright_hw::config::Mem::ALL.iter().map(|mem| config.entries(*mem) * config.entry_bytes(*mem)).sum()
}

fn check(file: &str, json: bool) -> Result<Verdict> {
    let (violations, hash) = match HwConfig::load(file) {
        Ok(config) => (Vec::new(), Some(format!("{:016x}", config.hash()))),
        Err(ConfigError::Illegal { violations, .. }) => (violations, None),
        Err(other) => return Err(other.into()),
    };
    let fine = violations.is_empty();
    let text = if json {
        let rows: Vec<_> =
            violations.iter().map(|v| json!({ "parameter": v.key, "what": v.what, "remedy": v.remedy })).collect();
        format!("{}\n", json!({ "file": file, "fine": fine, "hash": hash, "violations": rows }))
    } else if let Some(hash) = hash {
        format!("{file}: fine, hash {hash}\n")
    } else {
        format!("{}\n", ConfigError::Illegal { file: file.to_string(), violations })
    };
    write_or_print(None, text.as_bytes())?;
    Ok(if fine { Verdict::Fine } else { Verdict::No })
}

fn show(file: &str, json: bool) -> Result<Verdict> {
    let config = load_hw(file)?;
    if json {
        let of = |param: &Param| match param.legal {
            Legal::Flag => json!(param.value(&config) != 0),
            Legal::Words(words) => json!(words.get(param.value(&config) as usize)),
            _ => json!(param.value(&config)),
        };
        let values: serde_json::Map<_, _> = PARAMS.iter().map(|param| (param.key.to_string(), of(param))).collect();
        let hash = format!("{:016x}", config.hash());
        let mut host: serde_json::Map<_, _> =
            HostSection::PARAMS.iter().map(|p| (p.key.to_string(), json!((p.get)(&config.host)))).collect();
        host.insert("target".into(), json!(config.host.target));
        let energy = config.energy.as_ref().map(|energy| -> serde_json::Map<_, _> {
            let figures = EnergySection::PARAMS.iter().map(|p| (p.key.to_string(), json!((p.get)(energy))));
            figures.chain([("source".to_string(), json!(energy.source))]).collect()
        });
        let text = format!(
            "{}\n",
            json!({ "name": config.name, "hash": hash, "parameters": values, "host": host, "energy": energy })
        );
        write_or_print(None, text.as_bytes())?;
        return Ok(Verdict::Fine);
    }
    let mut text = format!("# {}, hash {:016x}\n", config.name, config.hash());
    for param in PARAMS {
        let value = param.value(&config);
        let value = match param.legal {
            Legal::Flag => (value != 0).to_string(),
            Legal::Words(words) => {
                format!("{:?}", words.get(value as usize).copied().unwrap_or("?"))
            }
            _ => value.to_string(),
        };
        let unit = if param.unit.is_empty() { String::new() } else { format!(" {};", param.unit) };
        let _ = writeln!(text, "{:<40} #{unit} {}", format!("{} = {value}", param.key), param.legal);
    }
    let _ = writeln!(text, "[host]\ntarget = {:?}", config.host.target);
    for p in HostSection::PARAMS {
        let line = format!("{} = {}", p.key, (p.get)(&config.host));
        let _ = writeln!(text, "{line:<40} # {}; {}", p.unit, p.legal_text());
    }
    if let Some(energy) = &config.energy {
        let _ = writeln!(text, "[energy]\nsource = {:?}", energy.source);
        for p in EnergySection::PARAMS {
            let line = format!("{} = {}", p.key, (p.get)(energy));
            let _ = writeln!(text, "{line:<40} # {}; 0 to {MOST_ENERGY}", p.unit);
        }
    }
    write_or_print(None, text.as_bytes())?;
    Ok(Verdict::Fine)
}
