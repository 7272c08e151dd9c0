//! Sizes as expressions of symbols: the text that sympy's `srepr` writes, such as
//! `Mul(Integer(2), Symbol('s77', positive=True, integer=True))`, or a symbol alone.

use std::collections::BTreeMap;
use std::fmt;

/// How deep calls are within each other at most.
const DEPTH: usize = 64;

#[derive(Debug, Clone, PartialEq)]
pub(super) enum Expression {
    Number(i64),
    Symbol(String),
    Call(String, Vec<Expression>),
}

impl Expression {
    /// The number, if the symbols in it are known and it is whole.
    pub fn value(&self, symbols: &BTreeMap<String, i64>) -> Option<i64> {
        let (name, operands) = match self {
            Expression::Number(n) => return Some(*n),
            Expression::Symbol(name) => return symbols.get(name).copied(),
            Expression::Call(name, operands) => (name.as_str(), operands),
        };
        let values = operands.iter().map(|e| e.value(symbols)).collect::<Option<Vec<i64>>>()?;
        match (name, values.as_slice()) {
            ("Integer", [n]) => Some(*n),
            ("Add", all) => all.iter().try_fold(0i64, |sum, n| sum.checked_add(*n)),
            ("Mul", all) => all.iter().try_fold(1i64, |product, n| product.checked_mul(*n)),
            ("Pow" | "PowByNatural", [base, power]) => base.checked_pow(u32::try_from(*power).ok()?),
            ("FloorDiv", [a, b]) if *b != 0 => Some(a.checked_div_euclid(*b).filter(|_| *b > 0)?),
            ("CleanDiv" | "IntTrueDiv", [a, b]) if a.checked_rem(*b) == Some(0) => a.checked_div(*b),
            ("Mod" | "PythonMod", [a, b]) if *b > 0 => Some(a.rem_euclid(*b)),
            ("Max", all) => all.iter().max().copied(),
            ("Min", all) => all.iter().min().copied(),
            _ => None,
        }
    }

    /// The symbol in the expression, if there is one and no other.
    pub fn only_symbol(&self) -> Option<String> {
        let mut found = Vec::new();
        self.symbols(&mut found);
        found.sort_unstable();
        found.dedup();
        if let [one] = found.as_slice() { Some((*one).to_owned()) } else { None }
    }

    fn symbols<'e>(&'e self, all: &mut Vec<&'e str>) {
        match self {
            Expression::Number(_) => {}
            Expression::Symbol(name) => all.push(name),
            Expression::Call(_, operands) => operands.iter().for_each(|e| e.symbols(all)),
        }
    }
}

/// As people write it: `2*s0 + 1`.
impl fmt::Display for Expression {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let joined = |operands: &[Expression], with: &str| {
            operands.iter().map(ToString::to_string).collect::<Vec<_>>().join(with)
        };
        match self {
            Expression::Number(n) => write!(f, "{n}"),
            Expression::Symbol(name) => write!(f, "{name}"),
            Expression::Call(name, operands) => match (name.as_str(), operands.as_slice()) {
                ("Integer", [one]) => write!(f, "{one}"),
                ("Add", all) => write!(f, "({})", joined(all, "+")),
                ("Mul", all) => write!(f, "{}", joined(all, "*")),
                (_, all) => write!(f, "{name}({})", joined(all, ",")),
            },
        }
    }
}

/// Reads an expression.
pub(super) fn parse(text: &str) -> Result<Expression, String> {
    let mut reader = Reader { text, at: 0 };
    let found = reader.expression(0)?;
    reader.space();
    if reader.at == text.len() { Ok(found) } else { Err(reader.wrong()) }
}

struct Reader<'t> {
    text: &'t str,
    at: usize,
}

impl<'t> Reader<'t> {
    fn wrong(&self) -> String {
        format!("the size `{}` cannot be read", self.text)
    }

    fn rest(&self) -> &'t str {
        &self.text[self.at..]
    }

    fn space(&mut self) {
        self.at += self.rest().len() - self.rest().trim_start().len();
    }

    fn takes(&mut self, c: char) -> bool {
        self.space();
        let found = self.rest().starts_with(c);
        if found {
            self.at += c.len_utf8();
        }
        found
    }

    /// Letters, digits, points and underscores.
    fn word(&mut self) -> Option<&'t str> {
        self.space();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_alphanumeric() || matches!(c, '_' | '.'))).unwrap_or(rest.len());
        self.at += end;
        Some(&rest[..end]).filter(|word| !word.is_empty())
    }

    fn expression(&mut self, depth: usize) -> Result<Expression, String> {
        if depth > DEPTH {
            return Err(self.wrong());
        }
        let is_negative = self.takes('-');
        let word = self.word().ok_or_else(|| self.wrong())?;
        if word.starts_with(|c: char| c.is_ascii_digit()) {
            let number: i64 = word.parse().map_err(|_| self.wrong())?;
            return Ok(Expression::Number(if is_negative { -number } else { number }));
        }
        if is_negative {
            return Err(self.wrong());
        }
        // Functions have their module in front of their name.
        let name = word.rsplit('.').next().unwrap_or(word);
        if !self.takes('(') {
            return Ok(Expression::Symbol(name.into()));
        }
        if name == "Symbol" {
            let quote = if self.takes('\'') { '\'' } else { '"' };
            if quote == '"' && !self.takes('"') {
                return Err(self.wrong());
            }
            let symbol = self.word().ok_or_else(|| self.wrong())?.to_owned();
            // Assumptions follow.
            let end = self.rest().find(')').ok_or_else(|| self.wrong())?;
            self.at += end + 1;
            return Ok(Expression::Symbol(symbol));
        }
        let mut operands = Vec::new();
        while !self.takes(')') {
            operands.push(self.expression(depth + 1)?);
            if self.takes('=') {
                // An assumption such as `evaluate=False`.
                operands.pop();
                self.expression(depth + 1)?;
            }
            if !self.takes(',') && !self.rest().trim_start().starts_with(')') {
                return Err(self.wrong());
            }
        }
        Ok(Expression::Call(name.into(), operands))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn expressions_are_read_and_computed() {
        let value = |text: &str| {
            let symbols = BTreeMap::from([("s0".to_owned(), 3), ("s77".to_owned(), 10)]);
            parse(text).map(|e| e.value(&symbols))
        };
        assert_eq!(value("Symbol('s77', positive=True, integer=True)"), Ok(Some(10)));
        assert_eq!(value("s0"), Ok(Some(3)));
        assert_eq!(value("Mul(Integer(2), Symbol('s0', integer=True))"), Ok(Some(6)));
        assert_eq!(value("Add(Integer(-1), Symbol('s0'))"), Ok(Some(2)));
        let floor = "torch.utils._sympy.functions.FloorDiv(Symbol('s77', positive=True), Integer(4))";
        assert_eq!(value(floor), Ok(Some(2)));
        assert_eq!(value("Mod(Symbol('s77'), Integer(4), evaluate=False)"), Ok(Some(2)));
        assert_eq!(value("Symbol('u0', integer=True)"), Ok(None));
        assert_eq!(value("FloorDiv(Integer(1), Integer(0))"), Ok(None));
        for wrong in ["", "Add(", "Add(1", "Symbol(", "Symbol('s0'", "1)", "Add(1 2)", "(((", &"Add(".repeat(1000)] {
            assert!(parse(wrong).is_err(), "{wrong}");
        }
    }
}
