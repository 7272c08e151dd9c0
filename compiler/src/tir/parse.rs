//! Parses the text form of loop programs.

use super::print::infix;
use super::{Action, Block, Buffer, For, Function, Intrinsic, LoopKind, Scope, Stmt, TirError, View};
use crate::te::{BinOp, DType, Expr, Func, Name};

const DTYPES: [DType; 6] = DType::ALL;
const OPS: [BinOp; 13] = [
    BinOp::Or,
    BinOp::And,
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
/// Deepest accepted nesting of expressions and statements.
const MAX_DEPTH: usize = 200;

/// Parses a function.
///
/// # Errors
/// [`TirError::Parse`] with the position of the first mistake. The result is not verified.
pub fn parse(text: &str) -> Result<Function, TirError> {
    let mut p = Parser { text, at: 0, depth: 0, buffers: Vec::new() };
    let f = p.function()?;
    p.skip();
    if p.at < text.len() {
        return p.fail("end of text");
    }
    Ok(f)
}

struct Parser<'a> {
    text: &'a str,
    at: usize,
    depth: usize,
    /// Buffers in scope with their types, innermost last.
    buffers: Vec<(Name, DType)>,
}

type Parsed<T> = Result<T, TirError>;

impl<'a> Parser<'a> {
    fn rest(&self) -> &'a str {
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

    fn fail<T>(&self, expected: &str) -> Parsed<T> {
        let before = &self.text[..self.at];
        let line = before.matches('\n').count() + 1;
        let column = before.rsplit('\n').next().map_or(0, |l| l.chars().count()) + 1;
        let found: String = self.rest().chars().take(12).take_while(|c| *c != '\n').collect();
        Err(TirError::Parse { line, column, message: format!("expected {expected}, found `{found}`") })
    }

    /// Consumes a sign if it comes next.
    fn eat(&mut self, sign: &str) -> bool {
        self.skip();
        let yes = self.rest().starts_with(sign);
        if yes {
            self.at += sign.len();
        }
        yes
    }

    fn expect(&mut self, sign: &str) -> Parsed<()> {
        if self.eat(sign) { Ok(()) } else { self.fail(&format!("`{sign}`")) }
    }

    fn peek_word(&mut self) -> &'a str {
        self.skip();
        let rest = self.rest();
        let end = rest.find(|c: char| !(c.is_ascii_alphanumeric() || c == '_' || c == '.')).unwrap_or(rest.len());
        if rest.starts_with(|c: char| c.is_ascii_digit()) { "" } else { &rest[..end] }
    }

    fn word(&mut self, what: &str) -> Parsed<Name> {
        let w = self.peek_word();
        if w.is_empty() {
            return self.fail(what);
        }
        let n = Name::from(w);
        self.at += n.as_str().len();
        Ok(n)
    }

    fn eat_word(&mut self, word: &str) -> bool {
        let yes = self.peek_word() == word;
        if yes {
            self.at += word.len();
        }
        yes
    }

    fn integer(&mut self) -> Parsed<i64> {
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

    fn separated<T>(&mut self, close: &str, mut item: impl FnMut(&mut Self) -> Parsed<T>) -> Parsed<Vec<T>> {
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

    fn deeper<T>(&mut self, f: impl FnOnce(&mut Self) -> Parsed<T>) -> Parsed<T> {
        if self.depth == MAX_DEPTH {
            return self.fail(&format!("nesting of at most {MAX_DEPTH}"));
        }
        self.depth += 1;
        let r = f(self);
        self.depth -= 1;
        r
    }

    fn function(&mut self) -> Parsed<Function> {
        if !self.eat_word("function") {
            return self.fail("`function`");
        }
        let name = self.word("the function's name")?;
        self.expect("{")?;
        let (mut params, mut outputs, mut locals, mut intrinsics) = (Vec::new(), 0, Vec::new(), Vec::new());
        loop {
            if outputs == 0 && self.eat_word("input") {
                params.push(self.buffer()?);
            } else if self.eat_word("output") {
                params.push(self.buffer()?);
                outputs += 1;
            } else if self.eat_word("local") {
                locals.push(self.buffer()?);
            } else if self.eat_word("intrinsic") {
                intrinsics.push(self.intrinsic()?);
            } else {
                break;
            }
        }
        let body = self.statements()?;
        Ok(Function { name, intrinsics, params, outputs, locals, body })
    }

    fn intrinsic(&mut self) -> Parsed<Intrinsic> {
        let name = self.word("the intrinsic's name")?;
        self.expect("{")?;
        let outer = std::mem::take(&mut self.buffers);
        let mut params = Vec::new();
        while self.eat_word("param") {
            params.push(self.buffer()?);
        }
        let body = self.statements()?;
        self.buffers = outer;
        Ok(Intrinsic { name, params, body })
    }

    fn dtype(&mut self) -> Parsed<DType> {
        let w = self.peek_word();
        match DTYPES.iter().find(|t| t.to_string() == w) {
            Some(&t) => {
                self.at += t.to_string().len();
                Ok(t)
            }
            None => self.fail("an element type"),
        }
    }

    fn buffer(&mut self) -> Parsed<Buffer> {
        let name = self.word("the buffer's name")?;
        self.expect(":")?;
        let dtype = self.dtype()?;
        self.expect("[")?;
        let shape = self.separated("]", Self::integer)?;
        let mut scope = Scope::Global;
        if self.eat_word("in") {
            let w = self.peek_word();
            match Scope::NAMES.iter().find(|s| s.1 == w) {
                Some(&(s, n)) => {
                    self.at += n.len();
                    scope = s;
                }
                None => return self.fail("a memory scope"),
            }
        }
        self.buffers.push((name.clone(), dtype));
        Ok(Buffer { name, dtype, shape, scope })
    }

    /// Parses statements up to and including the closing brace.
    fn statements(&mut self) -> Parsed<Stmt> {
        self.deeper(|p| {
            let mut items = Vec::new();
            while !p.eat("}") {
                items.push(p.statement()?);
            }
            Ok(match items.len() {
                1 => items.remove(0),
                _ => Stmt::Seq(items),
            })
        })
    }

    fn statement(&mut self) -> Parsed<Stmt> {
        if self.eat_word("block") {
            return Ok(Stmt::Block(self.block()?));
        }
        let w = self.peek_word();
        let Some(&(kind, name)) = LoopKind::NAMES.iter().find(|k| k.1 == w) else {
            return self.fail("a loop or a block");
        };
        self.at += name.len();
        let var = self.word("the loop's variable")?;
        if !self.eat_word("in") {
            return self.fail("`in`");
        }
        let extent = self.integer()?;
        self.expect("{")?;
        let body = Box::new(self.statements()?);
        Ok(Stmt::For(For { var, extent, kind, body }))
    }

    fn block(&mut self) -> Parsed<Block> {
        let name = self.word("the block's name")?;
        let (mut reduce, mut guards) = (Vec::new(), Vec::new());
        if self.eat_word("reduce") {
            self.expect("(")?;
            reduce = self.separated(")", |p| p.word("a loop variable"))?;
        }
        if self.eat_word("where") {
            self.expect("(")?;
            guards = self.separated(")", Self::expr)?;
        }
        self.expect("{")?;
        let init = if self.eat_word("init") { Some(self.expr()?) } else { None };
        let action = if self.eat_word("call") {
            let intrinsic = self.word("the intrinsic's name")?;
            self.expect("(")?;
            Action::Call { intrinsic, args: self.separated(")", Self::view)? }
        } else {
            let buffer = self.word("the buffer written")?;
            self.expect("[")?;
            let indices = self.separated("]", Self::expr)?;
            self.expect("=")?;
            Action::Store { buffer, indices, value: self.expr()? }
        };
        self.expect("}")?;
        Ok(Block { name, reduce, guards, init, action })
    }

    fn view(&mut self) -> Parsed<View> {
        let buffer = self.word("a buffer")?;
        self.expect("[")?;
        let dims = self.separated("=>", |p| p.word("a dimension's variable"))?;
        let indices = self.separated("]", Self::expr)?;
        Ok(View { buffer, dims, indices })
    }

    fn expr(&mut self) -> Parsed<Expr> {
        self.deeper(|p| p.climb(0))
    }

    /// Parses an expression of operations that bind more strongly than `least`.
    fn climb(&mut self, least: u8) -> Parsed<Expr> {
        let mut left = self.primary()?;
        'more: loop {
            self.skip();
            if self.rest().starts_with("=>") {
                return Ok(left);
            }
            for op in OPS {
                if let Some((sign, strength)) = infix(op)
                    && strength > least
                    && self.rest().starts_with(sign)
                    // `<` is also the start of `<<`.
                    && !(op == BinOp::Lt && self.rest().starts_with("<<"))
                {
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
            return self.number();
        }
        for (word, v) in [("true", 1), ("false", 0)] {
            if self.eat_word(word) {
                return Ok(Expr::Int(v, DType::Bool));
            }
        }
        for (word, v) in [("inf", f64::INFINITY), ("nan", f64::NAN)] {
            if self.eat_word(word) {
                return Ok(Expr::Float(v, DType::F32));
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
            return Ok(Expr::Var(name));
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
        if negative && self.eat_word("inf") {
            return Ok(Expr::Float(f64::NEG_INFINITY, DType::F32));
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
            (true, Some(DType::F32)) => digits.parse().ok().map(|v| Expr::Float(v, DType::F32)),
            (false, Some(t)) if t != DType::F32 && t != DType::Bool => digits.parse().ok().map(|v| Expr::Int(v, t)),
            (false, None) => digits.parse().ok().map(Expr::int),
            _ => None,
        };
        match parsed {
            Some(e) => {
                self.at += end + suffix.map_or(0, |t| t.to_string().len());
                Ok(e)
            }
            None => self.fail("a number in range, with its type unless it is i64"),
        }
    }
}
