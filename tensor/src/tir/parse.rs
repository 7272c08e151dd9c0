//! Parses the text form of loop programs.

use super::{Action, Block, Buffer, For, Function, Intrinsic, LoopKind, Scope, Stmt, TirError, View};
use crate::te::read::{Parsed, Reader};

/// Parses a function.
///
/// # Errors
/// [`TirError::Parse`] with the position of the first mistake. The result is not verified.
pub fn parse(text: &str) -> Result<Function, TirError> {
    let mut p = Reader::new(text);
    let f = p.function()?;
    p.end()?;
    Ok(f)
}

impl Reader<'_> {
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

    fn buffer(&mut self) -> Parsed<Buffer> {
        let name = self.word("the buffer's name")?;
        self.expect(":")?;
        let dtype = self.dtype()?;
        self.expect("[")?;
        let shape = self.separated("]", Self::integer)?;
        let mut scope = Scope::Global;
        if self.eat_word("in") {
            match Scope::NAMES.iter().find(|s| self.eat_word(s.1)) {
                Some(&(s, _)) => scope = s,
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
        let Some(&(kind, _)) = LoopKind::NAMES.iter().find(|k| self.eat_word(k.1)) else {
            return self.fail("a loop or a block");
        };
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
}
