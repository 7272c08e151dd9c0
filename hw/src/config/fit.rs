//! Reports instructions that a configuration makes too long: which parameters widen them, and which single change would
//! make them fit.

use super::{HwConfig, Legal, PARAMS, Param, Violation};
use crate::isa::{INSN_BITS, Opcode, insn_bits};

/// Reports an instruction with this opcode that is longer than [`INSN_BITS`].
///
/// The violation names the parameter that can help and that the file most likely set. A parameter that alone makes the
/// instruction fit comes before one that only shortens it; one that differs from its default comes before one that does
/// not.
pub(super) fn violation(config: &HwConfig, op: Opcode) -> Option<Violation> {
    let bits = insn_bits(op, config);
    if bits <= INSN_BITS {
        return None;
    }
    let default = HwConfig::default();
    let set = |p: &&Param| p.value(config) != p.value(&default);
    let widening: Vec<&Param> = PARAMS
        .iter()
        .filter(|p| smaller(p, config).any(|(_, less)| is_sound(&less, config) && insn_bits(op, &less) < bits))
        .collect();
    let (first, rest): (Vec<&Param>, Vec<&Param>) = widening.into_iter().partition(set);
    let widening: Vec<&Param> = first.into_iter().chain(rest).collect();
    let alone: Vec<(&Param, String)> = widening
        .iter()
        .filter_map(|p| {
            let fits = |less: &HwConfig| is_sound(less, config) && insn_bits(op, less) <= INSN_BITS;
            let (value, less) = smaller(p, config).find(|(_, less)| fits(less))?;
            let or_less = if smaller(p, &less).next().is_some() { " or less" } else { "" };
            let text = if p.legal == Legal::Flag { "false".into() } else { format!("{value}{or_less}") };
            Some((*p, format!("{} = {text}", p.key)))
        })
        .collect();
    let (key, remedy) = match alone.first() {
        Some((p, _)) => {
            let choices: Vec<&str> = alone.iter().map(|(_, text)| text.as_str()).collect();
            (p.key, format!("use {}", choices.join(", or ")))
        }
        None => {
            let keys: Vec<&str> = widening.iter().map(|p| p.key).collect();
            (keys.first().copied().unwrap_or("offset_bits"), format!("reduce more than one of {}", keys.join(", ")))
        }
    };
    let value = PARAMS.iter().find(|p| p.key == key).map_or(String::new(), |p| shown(p, config));
    let what = format!("is {value}, so the {} instruction takes {bits} bits, more than {INSN_BITS}", op.name());
    Some(Violation { key: key.into(), what, remedy })
}

fn shown(p: &Param, config: &HwConfig) -> String {
    let value = p.value(config);
    if p.legal == Legal::Flag { (value == 1).to_string() } else { value.to_string() }
}

/// The configuration with each smaller legal value of a parameter, greatest first.
fn smaller<'a>(p: &'a Param, config: &'a HwConfig) -> impl Iterator<Item = (u64, HwConfig)> + 'a {
    let now = p.value(config);
    let next = move |value: &u64| match p.legal {
        Legal::Range(lo, _) => (*value > lo).then(|| value - 1),
        Legal::PowerOfTwo(lo, _) => (*value > lo).then(|| value / 2),
        Legal::Flag => (*value == 1).then_some(0),
        Legal::Words(_) => None,
    };
    std::iter::successors(next(&now), next).filter_map(move |value| {
        let toml = if p.legal == Legal::Flag {
            toml::Value::Boolean(value == 1)
        } else {
            toml::Value::Integer(i64::try_from(value).ok()?)
        };
        let mut less = config.clone();
        (p.set)(&mut less, &toml).ok()?;
        Some((value, less))
    })
}

/// Whether a smaller configuration breaks no rule between parameters that this one keeps.
fn is_sound(less: &HwConfig, config: &HwConfig) -> bool {
    less.rule_violations().len() <= config.rule_violations().len()
}
