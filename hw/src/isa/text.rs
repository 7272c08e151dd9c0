//! Programs as text: one instruction a line, `name field=value … pop=unit,unit push=unit`.
//!
//! Fields at their default are not written. `#` begins a comment.

use super::{Illegal, Insn, Opcode, Unit, UnitSet, unfit_reasons};
use crate::config::HwConfig;

/// One error in a program's text.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("line {line}, column {column}: {message}")]
pub struct AsmError {
    /// Line, from 1.
    pub line: usize,
    /// Column in characters, from 1.
    pub column: usize,
    /// What is wrong, and what is expected.
    pub message: String,
}

/// An instruction's text.
pub fn print_insn(insn: &Insn) -> String {
    let opcode = insn.op.opcode();
    let mut text = opcode.name().to_string();
    for ((field, raw), value) in opcode.fields().iter().zip(insn.op.raw()).zip(insn.op.texts()) {
        if raw != field.default {
            text.push_str(&format!(" {}={value}", field.name));
        }
    }
    for (name, set) in [("pop", insn.pop), ("push", insn.push)] {
        if set != UnitSet::NONE {
            let units: Vec<&str> = set.iter().map(Unit::name).collect();
            text.push_str(&format!(" {name}={}", units.join(",")));
        }
    }
    text
}

/// A program's text; parses back to the same instructions.
pub fn print_program(program: &[Insn]) -> String {
    program.iter().map(|i| print_insn(i) + "\n").collect()
}

/// Parses a program.
///
/// # Errors
/// Every error in the text, each with line and column.
pub fn parse_program(text: &str) -> Result<Vec<Insn>, Vec<AsmError>> {
    parse_lines(text, |_| Vec::new())
}

/// Parses a program and checks that a configuration takes each of its instructions.
///
/// # Errors
/// As [`parse_program`], and every value that does not fit its field or is not legal: at the value, or at the
/// instruction's name where the text leaves the field at its default.
pub fn parse_for(text: &str, config: &HwConfig) -> Result<Vec<Insn>, Vec<AsmError>> {
    parse_lines(text, |insn| unfit_reasons(insn, config))
}

fn parse_lines(text: &str, check: impl Fn(&Insn) -> Vec<Illegal>) -> Result<Vec<Insn>, Vec<AsmError>> {
    let mut program = Vec::new();
    let mut errors = Vec::new();
    for (line, n) in text.lines().zip(1..) {
        let code = line.split('#').next().unwrap_or("");
        let words = words(code);
        if words.is_empty() {
            continue;
        }
        let outcome = parse_insn(&words).and_then(|insn| {
            let found: Vec<(usize, String)> = check(&insn)
                .into_iter()
                .map(|illegal| (value_column(&words, illegal.field), illegal.to_string()))
                .collect();
            if found.is_empty() { Ok(insn) } else { Err(found) }
        });
        match outcome {
            Ok(insn) => program.push(insn),
            Err(mut found) => {
                found.sort_by_key(|(column, _)| *column);
                errors.extend(found.into_iter().map(|(column, message)| AsmError { line: n, column, message }));
            }
        }
    }
    if errors.is_empty() { Ok(program) } else { Err(errors) }
}

/// Where a line gives a field its value, or its instruction's name where it does not.
fn value_column(words: &[(usize, &str)], field: &str) -> usize {
    let given = words.iter().skip(1).find_map(|(column, word)| {
        let (key, _) = word.split_once('=')?;
        (key == field).then_some(column + key.chars().count() + 1)
    });
    given.unwrap_or(words[0].0)
}

/// Words with their columns.
fn words(code: &str) -> Vec<(usize, &str)> {
    let mut found = Vec::new();
    let mut column = 1;
    for part in code.split(char::is_whitespace) {
        if !part.is_empty() {
            found.push((column, part));
        }
        column += part.chars().count() + 1;
    }
    found
}

fn parse_insn(words: &[(usize, &str)]) -> Result<Insn, Vec<(usize, String)>> {
    let (column, name) = words[0];
    let Some(opcode) = Opcode::ALL.into_iter().find(|op| op.name() == name) else {
        let names: Vec<&str> = Opcode::ALL.iter().map(|op| op.name()).collect();
        return Err(vec![(column, format!("{name} is not an instruction; use one of {}", names.join(", ")))]);
    };
    let mut raw: Vec<u64> = opcode.fields().iter().map(|f| f.default).collect();
    let mut seen = vec![];
    let (mut pop, mut push) = (UnitSet::NONE, UnitSet::NONE);
    let mut errors = vec![];
    for &(column, word) in &words[1..] {
        let Some((key, value)) = word.split_once('=') else {
            errors.push((column, format!("{word} is not of the form field=value")));
            continue;
        };
        if seen.contains(&key) {
            errors.push((column, format!("{key} is given twice")));
        }
        seen.push(key);
        let value_column = column + key.chars().count() + 1;
        match key {
            "pop" | "push" => match parse_units(value) {
                Ok(set) if key == "pop" => pop = set,
                Ok(set) => push = set,
                Err(message) => errors.push((value_column, message)),
            },
            _ => match opcode.fields().iter().position(|f| f.name == key) {
                Some(i) => match opcode.parse_field(i, value) {
                    Ok(v) => raw[i] = v,
                    Err(expected) => errors.push((value_column, format!("{key} is {value}; expected {expected}"))),
                },
                None => {
                    let names: Vec<&str> = opcode.fields().iter().map(|f| f.name).collect();
                    errors.push((column, format!("{name} has no field {key}; it has pop, push, {}", names.join(", "))));
                }
            },
        }
    }
    if !errors.is_empty() {
        return Err(errors);
    }
    let op = opcode.build(&raw).map_err(|i| {
        let field = opcode.fields().get(i).map_or("field", |f| f.name);
        vec![(column, format!("{field} has an illegal value"))]
    })?;
    Ok(Insn { pop, push, op })
}

fn parse_units(text: &str) -> Result<UnitSet, String> {
    text.split(',')
        .map(|name| {
            Unit::ALL
                .into_iter()
                .find(|u| u.name() == name)
                .ok_or_else(|| format!("{name} is not a unit; use load, gemm, vector or store"))
        })
        .collect()
}
