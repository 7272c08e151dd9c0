//! Assembly text of programs: one instruction per line, `name field=value … pop=unit,unit push=unit`.
//!
//! Fields at their default are omitted. `#` begins a comment.

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

/// Parses a program and checks each instruction against a configuration.
///
/// # Errors
/// As [`parse_program`], and every value that does not fit its field or is not legal. Such an error points at the
/// value, or at the instruction's name if the text leaves the field at its default.
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
        let (insn, mut found) = match Line::parse(&words) {
            Ok(line) => (line.insn().ok(), line.errors(&words, &check)),
            Err(error) => (None, vec![error]),
        };
        match insn {
            Some(insn) if found.is_empty() => program.push(insn),
            _ => {
                found.sort_by_key(|(column, _)| *column);
                errors.extend(found.into_iter().map(|(column, message)| AsmError { line: n, column, message }));
            }
        }
    }
    if errors.is_empty() { Ok(program) } else { Err(errors) }
}

/// Column of the value that a line gives a field, or of the instruction's name if it gives none.
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

/// A line's instruction as far as it could be read.
struct Line<'a> {
    opcode: Opcode,
    raw: Vec<u64>,
    pop: UnitSet,
    push: UnitSet,
    /// Syntax errors, by column.
    errors: Vec<(usize, String)>,
    /// Fields whose value could not be read.
    unknown: Vec<&'a str>,
}

impl<'a> Line<'a> {
    fn parse(words: &[(usize, &'a str)]) -> Result<Line<'a>, (usize, String)> {
        let (column, name) = words[0];
        let Some(opcode) = Opcode::ALL.into_iter().find(|op| op.name() == name) else {
            let names: Vec<&str> = Opcode::ALL.iter().map(|op| op.name()).collect();
            return Err((column, format!("{name} is not an instruction; use one of {}", names.join(", "))));
        };
        let raw = opcode.fields().iter().map(|f| f.default).collect();
        let (pop, push) = (UnitSet::NONE, UnitSet::NONE);
        let mut line = Line { opcode, raw, pop, push, errors: vec![], unknown: vec![] };
        let mut seen = vec![];
        for &(column, word) in &words[1..] {
            let Some((key, value)) = word.split_once('=') else {
                line.errors.push((column, format!("{word} is not of the form field=value")));
                continue;
            };
            if seen.contains(&key) {
                line.errors.push((column, format!("{key} is given twice")));
                line.unknown.push(key);
            }
            seen.push(key);
            line.field(column, key, value);
        }
        Ok(line)
    }

    fn field(&mut self, column: usize, key: &'a str, value: &str) {
        let at = column + key.chars().count() + 1;
        let fields = self.opcode.fields();
        let problem = match (key, fields.iter().position(|f| f.name == key)) {
            ("pop" | "push", _) => match parse_units(value) {
                Ok(set) => {
                    *(if key == "pop" { &mut self.pop } else { &mut self.push }) = set;
                    return;
                }
                Err(message) => (at, message),
            },
            (_, Some(i)) => match self.opcode.parse_field(i, value) {
                Ok(v) => {
                    self.raw[i] = v;
                    return;
                }
                Err(expected) => (at, format!("{key} is {value}; expected {expected}")),
            },
            (_, None) => {
                let names: Vec<&str> = fields.iter().map(|f| f.name).collect();
                let known = names.join(", ");
                (column, format!("{} has no field {key}; it has pop, push, {known}", self.opcode.name()))
            }
        };
        self.errors.push(problem);
        self.unknown.push(key);
    }

    /// Builds the instruction from raw values. The error is the index of a field that does not accept its value.
    fn build(&self, raw: &[u64]) -> Result<Insn, usize> {
        Ok(Insn { pop: self.pop, push: self.push, op: self.opcode.build(raw)? })
    }

    /// Builds the instruction from the known values; unknown fields have their defaults.
    fn insn(&self) -> Result<Insn, usize> {
        self.build(&self.raw)
    }

    /// Syntax errors, and errors that `check` reports whatever values the unknown fields should have had.
    fn errors(&self, words: &[(usize, &str)], check: &impl Fn(&Insn) -> Vec<Illegal>) -> Vec<(usize, String)> {
        let mut found = match self.insn() {
            Ok(insn) => check(&insn),
            Err(i) => {
                let field = self.opcode.fields().get(i).map_or("field", |f| f.name);
                vec![Illegal { field, reason: "has an illegal value".into() }]
            }
        };
        for (i, field) in self.opcode.fields().iter().enumerate() {
            if !self.unknown.contains(&field.name) {
                continue;
            }
            // The codes of every enumerated value are below 32; for a number, these are as good as any.
            for code in 0..32 {
                let mut raw = self.raw.clone();
                raw[i] = code;
                if let Ok(insn) = self.build(&raw) {
                    let there = check(&insn);
                    found.retain(|illegal| there.contains(illegal));
                }
            }
        }
        let values = found.iter().filter(|illegal| !self.unknown.contains(&illegal.field));
        let values = values.map(|illegal| (value_column(words, illegal.field), illegal.to_string()));
        self.errors.iter().cloned().chain(values).collect()
    }
}

fn parse_units(text: &str) -> Result<UnitSet, String> {
    let mut units: Vec<Unit> = Vec::new();
    for name in text.split(',') {
        let unit = Unit::ALL.into_iter().find(|u| u.name() == name);
        let unit = unit.ok_or_else(|| format!("{name} is not a unit; use load, gemm, vector or store"))?;
        if units.contains(&unit) {
            return Err(format!("{name} is named twice"));
        }
        units.push(unit);
    }
    Ok(units.into_iter().collect())
}
