//! Reads the text of tensor expressions and loop programs: words, numbers, buffers and scalar expressions.

use super::calls::{NoOperators, Operators};
use super::print::infix;
use super::scalar::int_binary;
use super::{BinOp, DType, Expr, Func, Name};
use thiserror::Error;

/// A place where a text is not what it should be.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
#[error("line {line}, column {column}: {message}")]
pub struct ParseError {
    /// Line, from 1.
    pub line: usize,
    /// Column, from 1.
    pub column: usize,
    /// What was expected and what was found.
    pub message: String,
}

const DTYPES: [DType; 11] = DType::ALL;
const OPS: [BinOp; 14] = [
    BinOp::Or,
    BinOp::And,
    BinOp::Xor,
    BinOp::Le,
    BinOp::Lt,
    BinOp::Eq,
    BinOp::Ne,
    BinOp::Shl,
    BinOp::Shr,
    BinOp::Add,
    BinOp::Sub,
    BinOp::Mul,
    BinOp::Div,
    BinOp::Mod,
];
/// Floats that are words.
const SPECIAL: [(&str, f64); 2] = [("inf", f64::INFINITY), ("nan", f64::NAN)];
/// Deepest accepted nesting of expressions and statements.
const MAX_DEPTH: usize = 200;
/// Most operations in a row. Each one makes the expression tree one level deeper.
const MAX_CHAIN: usize = 1000;

/// A text that is being read.
pub(crate) struct Reader<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Buffers in scope with their types, innermost last.
    pub(crate) buffers: Vec<(Name, DType)>,
    /// Names of numbers, with their values.
    pub(crate) sizes: Vec<(Name, i64)>,
    /// Operators that can be called.
    pub(crate) operators: &'a dyn Operators,
}

pub(crate) type Parsed<T> = Result<T, ParseError>;

impl<'a> Reader<'a> {
    /// Starts at the beginning of a text.
    pub(crate) fn new(text: &'a str) -> Reader<'a> {
        Reader { text, at: 0, depth: 0, buffers: Vec::new(), sizes: Vec::new(), operators: &NoOperators }
    }

    /// Checks that nothing follows but white space and comments.
    pub(crate) fn end(&mut self) -> Parsed<()> {
        self.skip();
        if self.at < self.text.len() { self.fail("end of text") } else { Ok(()) }
    }

    /// Returns the text that is not read yet.
    pub(crate) fn rest(&self) -> &'a str {
        &self.text[self.at..]
    }

    fn skip(&mut self) {
        loop {
            let trimmed = self.rest().trim_start();
            self.at = self.text.len() - trimmed.len();
            if !trimmed.starts_with("//") {
                return;
            }
            self.at += trimmed.find('\n').unwrap_or(trimmed.len());
        }
    }

    /// Returns the place reached so far, for [`Reader::back`] and [`Reader::fail_at`].
    pub(crate) fn mark(&mut self) -> usize {
        self.skip();
        self.at
    }

    /// Goes back to a place.
    pub(crate) fn back(&mut self, mark: usize) {
        self.at = mark;
    }

    pub(crate) fn fail<T>(&self, expected: &str) -> Parsed<T> {
        self.fail_at(self.at, expected)
    }

    /// Fails at a place.
    pub(crate) fn fail_at<T>(&self, at: usize, expected: &str) -> Parsed<T> {
        let found: String = self.text[at..].chars().take(12).take_while(|c| *c != '\n').collect();
        self.refuse_at(at, format!("expected {expected}, found `{found}`"))
    }

    /// Fails at a place for a reason.
    pub(crate) fn refuse_at<T>(&self, at: usize, message: String) -> Parsed<T> {
        let before = &self.text[..at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        Err(ParseError { line, column, message })
    }

    /// Consumes a sign if it comes next.
    pub(crate) fn eat(&mut self, sign: &str) -> bool {
        self.skip();
        let yes = self.rest().starts_with(sign);
        if yes {
            self.at += sign.len();
        }
        yes
    }

    pub(crate) fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { self.fail(&format!("`{sign}`")) }
    }

    pub(crate) fn peek_word(&mut self) -> &'a str {
        self.skip();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
        if rest.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &rest[..end] }
    }

    pub(crate) fn word(&mut self, what: &str) -> Parsed<Name> {
        let w = self.peek_word();
        if w.is_empty() {
            return self.fail(what);
        }
        let n = Name::from(w);
        self.at += n.as_str().len();
        Ok(n)
    }

    pub(crate) fn eat_word(&mut self, word: &str) -> bool {
        let yes = self.peek_word() == word;
        if yes {
            self.at += word.len();
        }
        yes
    }

    pub(crate) fn integer(&mut self) -> Parsed<i64> {
        self.skip();
        let rest = self.rest();
        let end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        match rest[..end].parse() {
            Ok(v) => {
                self.at += end;
                Ok(v)
            }
            Err(_) => self.fail("a number"),
        }
    }

    /// Returns the value of a size.
    pub(crate) fn size(&self, name: &Name) -> Option<i64> {
        self.sizes.iter().find(|size| size.0 == *name).map(|size| size.1)
    }

    /// Reads an expression of numbers and sizes, and returns its value.
    pub(crate) fn whole(&mut self) -> Parsed<i64> {
        let at = self.mark();
        let e = self.expr()?;
        let mut unknown = None;
        e.visit(&mut |e| {
            if let Expr::Var(name) = e {
                unknown = unknown.take().or(Some(name.clone()));
            }
        });
        if let Some(name) = unknown {
            let known: Vec<&str> = self.sizes.iter().map(|size| size.0.as_str()).collect();
            let known = if known.is_empty() { "none".into() } else { known.join(", ") };
            return self.fail_at(at, &format!("numbers and sizes; there is no size {name}, the sizes are: {known}"));
        }
        match constant(&e) {
            Some(value) => Ok(value),
            None => self.fail_at(at, "an i64 expression of numbers and sizes, without a division by 0"),
        }
    }

    pub(crate) fn separated<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
        let mut items = Vec::new();
        if self.eat(close) {
            return Ok(items);
        }
        loop {
            items.push(item(self)?);
            if self.eat(close) {
                return Ok(items);
            }
            self.expect(",")?;
        }
    }

    pub(crate) fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return self.fail(&format!("nesting of at most {MAX_DEPTH}"));
        }
        self.depth += 1;
        let r = f(self);
        self.depth -= 1;
        r
    }

    pub(crate) fn dtype(&mut self) -> Parsed<DType> {
        let w = self.peek_word();
        match DTYPES.iter().find(|t| t.to_string() == w) {
            Some(&t) => {
                self.at += t.to_string().len();
                Ok(t)
            }
            None => self.fail("an element type"),
        }
    }

    pub(crate) fn expr(&mut self) -> Parsed<Expr> {
        self.deeper(|p| p.climb(0))
    }

    /// Parses an expression of operations that bind more strongly than `least`.
    fn climb(&mut self, least: u8) -> Parsed<Expr> {
        let mut left = self.primary()?;
        let mut operations = 0;
        'more: loop {
            self.skip();
            if self.rest().starts_with("=>") {
                return Ok(left);
            }
            for op in OPS {
                if let Some((sign, strength)) = infix(op)
                    && strength > least
                    // `&` and `|` are those of bits.
                    && let Some(sign) = [sign, &sign[..1]].into_iter().find(|sign| {
                        let short = matches!(op, BinOp::And | BinOp::Or);
                        (short || sign.len() == infix(op).map_or(0, |i| i.0.len())) && self.rest().starts_with(sign)
                    })
                    // `<` is also the start of `<<`.
                    && !(op == BinOp::Lt && self.rest().starts_with("<<"))
                {
                    operations += 1;
                    if operations > MAX_CHAIN {
                        return self.fail(&format!("at most {MAX_CHAIN} operations of one strength in a row"));
                    }
                    let logical = matches!(op, BinOp::And | BinOp::Or) && sign.len() == 2;
                    if logical && left.dtype() != DType::Bool {
                        let message = format!("{sign} is for booleans; the bits of integers have {}", &sign[..1]);
                        return self.refuse_at(self.at, message);
                    }
                    self.at += sign.len();
                    let right = self.deeper(|p| p.climb(strength))?;
                    left = Expr::binary(op, left, right);
                    continue 'more;
                }
            }
            return Ok(left);
        }
    }

    fn primary(&mut self) -> Parsed<Expr> {
        self.skip();
        if self.eat("(") {
            let e = self.expr()?;
            self.expect(")")?;
            return Ok(e);
        }
        if self.rest().starts_with(|c: char| c.is_ascii_digit() || c == '-') {
            let start = self.at;
            // Of a number, the sign is a part: the smallest integer has no positive counterpart.
            if self.eat("-")
                && !self.rest().starts_with(|c: char| c.is_ascii_digit())
                && !self.peek_word().starts_with("inf")
            {
                return self.deeper(Self::primary).map(Expr::negated);
            }
            self.at = start;
            return self.number();
        }
        if self.eat("[") {
            return self.pick();
        }
        for (word, v) in [("true", 1), ("false", 0)] {
            if self.eat_word(word) {
                return Ok(Expr::Int(v, DType::Bool));
            }
        }
        for (word, v) in SPECIAL {
            for (name, t) in [(word.to_string(), DType::F32), (format!("{word}f64"), DType::F64)] {
                if self.eat_word(&name) {
                    return Ok(Expr::Float(v, t));
                }
            }
        }
        let start = self.at;
        let name = self.word("an expression")?;
        if self.eat("[") {
            let indices = self.separated("]", Self::expr)?;
            let Some((_, dtype)) = self.buffers.iter().rev().find(|b| b.0 == name) else {
                self.at = start;
                return self.fail("a declared buffer");
            };
            return Ok(Expr::Load { dtype: *dtype, buffer: name, indices });
        }
        if !self.eat("(") {
            return Ok(self.size(&name).map_or(Expr::Var(name), Expr::int));
        }
        if self.starts_axis() {
            let message = format!("{name} over an axis must be all of a tensor's value; define a tensor for it");
            return self.refuse_at(start, message);
        }
        let args = self.separated(")", Self::expr)?;
        self.applied(start, name.as_str(), args)
    }

    fn applied(&mut self, start: usize, name: &str, args: Vec<Expr>) -> Parsed<Expr> {
        let end = std::mem::replace(&mut self.at, start);
        let n = args.len();
        let mut it = args.into_iter();
        let e = match (name, it.next(), it.next(), it.next()) {
            ("min", Some(a), Some(b), None) => a.min(b),
            ("max", Some(a), Some(b), None) => a.max(b),
            ("select", Some(c), Some(a), Some(b)) if n == 3 => c.select(a, b),
            (_, a, b, c) => {
                if let (Some(t), Some(a), 1) = (DTYPES.iter().find(|t| t.to_string() == name), &a, n) {
                    Expr::Cast(*t, Box::new(a.clone()))
                } else if let (Some(t), Some(a), 1) = (bitcast_type(name), &a, n) {
                    Expr::Bitcast(t, Box::new(a.clone()))
                } else if let Some(f) = Func::from_name(name).filter(|f| f.arity() == n) {
                    Expr::Call(f, [a, b, c].into_iter().flatten().chain(it).collect())
                } else {
                    return self.fail("a function with that number of arguments");
                }
            }
        };
        self.at = end;
        Ok(e)
    }

    fn number(&mut self) -> Parsed<Expr> {
        let negative = self.eat("-");
        for (word, t) in [("inf", DType::F32), ("inff64", DType::F64)] {
            if negative && self.eat_word(word) {
                return Ok(Expr::Float(f64::NEG_INFINITY, t));
            }
        }
        let rest = self.rest();
        let mut end = rest.find(|c: char| !c.is_ascii_digit()).unwrap_or(rest.len());
        let mut float = false;
        if rest[end..].starts_with('.') {
            float = true;
            let tail = &rest[end + 1..];
            end += 1 + tail.find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len());
        }
        if rest[end..].starts_with('e') {
            float = true;
            let tail = &rest[end + 1..];
            let sign = tail.starts_with('-') as usize;
            end += 1 + sign + tail[sign..].find(|c: char| !c.is_ascii_digit()).unwrap_or(tail.len() - sign);
        }
        let digits = format!("{}{}", if negative { "-" } else { "" }, &rest[..end]);
        let suffix = DTYPES.iter().find(|t| rest[end..].starts_with(&t.to_string())).copied();
        let parsed = match (float, suffix) {
            (true, Some(t)) if t.is_float() => digits.parse().ok().map(|v| Expr::Float(v, t)),
            (false, Some(DType::U64)) => digits.parse().ok().map(|v: u64| Expr::Int(v as i64, DType::U64)),
            (false, Some(t)) if !t.is_float() && t != DType::Bool => digits.parse().ok().map(|v| Expr::Int(v, t)),
            (false, None) => digits.parse().ok().map(Expr::int),
            _ => None,
        };
        match parsed {
            Some(e) => {
                self.at += end + suffix.map_or(0, |t| t.to_string().len());
                Ok(e)
            }
            None if let Some(t) = suffix.filter(|t| !float && t.is_float()) => {
                self.fail(&format!("a float with a point, such as {digits}.0{t}"))
            }
            None if float && suffix.is_none() => self.fail(&format!("a float with its type, such as {digits}f32")),
            None => self.fail("a number in range, with its type unless it is i64"),
        }
    }
}

/// Returns the type of `bitcast_f32` and its like.
fn bitcast_type(name: &str) -> Option<DType> {
    DType::from_name(name.strip_prefix("bitcast_")?)
}

/// Returns the value of an i64 expression of numbers. `None` if it has anything else, overflows, or divides by 0.
fn constant(e: &Expr) -> Option<i64> {
    match e {
        Expr::Int(v, DType::I64) => Some(*v),
        Expr::Binary(op, a, b) => {
            let (a, b) = (constant(a)?, constant(b)?);
            match op {
                BinOp::Add => a.checked_add(b),
                BinOp::Sub => a.checked_sub(b),
                BinOp::Mul => a.checked_mul(b),
                BinOp::Div | BinOp::Mod if b == 0 => None,
                BinOp::Div | BinOp::Mod | BinOp::Min | BinOp::Max => Some(int_binary(*op, a, b, DType::I64)),
                _ => None,
            }
        }
        _ => None,
    }
}
