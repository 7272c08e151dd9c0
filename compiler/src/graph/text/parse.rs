//! Reader of the text form. It reads every line, so that it reports all errors.

use super::Blobs;
use crate::graph::op::Constant;
use crate::graph::op::attr::{Attr, AttrReader};
use crate::graph::{DType, Dim, Graph, GraphBuilder, GraphError, Op, Tensor, TensorType, ValueId, verify};
use std::collections::HashMap;
use std::sync::Arc;

/// How deep regions nest at most.
const DEPTH: usize = 32;

/// Parses a graph and verifies it.
///
/// # Errors
/// Everything that is wrong with the text, with line and column; if the text is fine, everything that [`verify()`]
/// finds.
pub fn parse(text: &str, blobs: &Blobs) -> Result<Graph, GraphError> {
    let (builder, values) = (GraphBuilder::new(""), HashMap::new());
    let mut p = Parser { blobs, builder, values, regions: Vec::new(), around: Vec::new(), errors: Vec::new() };
    let (mut state, mut last) = (State::Before, 0);
    for (i, line) in text.lines().enumerate() {
        last = i + 1;
        let mut c = Cursor { chars: line.chars().collect(), at: 0 };
        c.blank();
        if c.done() {
            continue;
        }
        if let Err((column, message)) = p.line(&mut c, &mut state) {
            p.errors.push(GraphError::Text { line: i + 1, column: column + 1, message });
        }
    }
    if state != State::After && p.errors.is_empty() {
        let message = if state == State::Before { "expected `graph`" } else { "expected `}` at the end" };
        p.errors.push(GraphError::Text { line: last.max(1), column: 1, message: message.into() });
    }
    if let Some(e) = GraphError::join(p.errors) {
        return Err(e);
    }
    let g = p.builder.finish_unverified();
    GraphError::join(verify(&g)).map_or(Ok(g), Err)
}

#[derive(PartialEq)]
enum State {
    Before,
    Inside,
    After,
}

/// Column, from 0, and what is wrong there.
type ParseFault = (usize, String);

/// A graph around the region that is read: its builder, its values, and the regions of its last node.
type Around = (GraphBuilder, HashMap<String, ValueId>, Vec<Arc<Graph>>);

struct Parser<'a> {
    blobs: &'a Blobs,
    builder: GraphBuilder,
    values: HashMap<String, ValueId>,
    /// Regions of the last node.
    regions: Vec<Arc<Graph>>,
    /// What is around the region that is read, innermost last.
    around: Vec<Around>,
    errors: Vec<GraphError>,
}

impl Parser<'_> {
    fn line(&mut self, c: &mut Cursor, state: &mut State) -> Result<(), ParseFault> {
        match state {
            State::Before => {
                c.keyword("graph")?;
                self.builder = GraphBuilder::new(&c.string()?);
                c.expect('{')?;
                *state = State::Inside;
            }
            State::Inside if c.peek() == Some('}') => {
                self.end_node(c.at)?;
                c.at += 1;
                match self.around.pop() {
                    None => *state = State::After,
                    Some((builder, values, regions)) => {
                        let inner = std::mem::replace(&mut self.builder, builder);
                        (self.values, self.regions) = (values, regions);
                        self.regions.push(Arc::new(inner.finish_unverified()));
                    }
                }
            }
            State::Inside if c.peek() == Some('%') => {
                self.end_node(c.at)?;
                self.statement(c)?;
            }
            State::Inside if c.begins("region") => {
                c.keyword("region")?;
                let builder = GraphBuilder::new(&c.string()?);
                c.expect('{')?;
                if self.around.len() >= DEPTH {
                    return c.wrong("regions nest too deep");
                }
                let outer = std::mem::replace(&mut self.builder, builder);
                self.around.push((outer, std::mem::take(&mut self.values), std::mem::take(&mut self.regions)));
            }
            State::Inside => {
                self.end_node(c.at)?;
                c.keyword("output")?;
                let name = c.string()?;
                c.expect('=')?;
                let v = self.value(c)?;
                self.builder.output(&name, v);
            }
            State::After => return c.wrong("expected the end"),
        }
        c.blank();
        if c.done() { Ok(()) } else { c.wrong("expected the end of the line") }
    }

    /// Gives the last node its regions.
    fn end_node(&mut self, at: usize) -> Result<(), ParseFault> {
        let (regions, found) = (std::mem::take(&mut self.regions), self.builder.last_op());
        let Some(op) = found else {
            return if regions.is_empty() { Ok(()) } else { Err((at, "a region stands before any node".into())) };
        };
        let (count, needed) = (regions.len(), op.regions().len());
        // A node whose regions were read before has none here.
        if regions.is_empty() && (needed == 0 || op.regions().iter().all(|region| !region.outputs().is_empty())) {
            return Ok(());
        }
        let name = op.name();
        let with = op.with_regions(regions).filter(|_| needed > 0);
        *op = with.ok_or_else(|| (at, format!("the node before has {count} regions, but `{name}` has {needed}")))?;
        Ok(())
    }

    fn statement(&mut self, c: &mut Cursor) -> Result<(), ParseFault> {
        let mut defined = vec![(c.at, c.value_name()?)];
        while c.eat(',') {
            c.blank();
            defined.push((c.at, c.value_name()?));
        }
        c.expect('=')?;
        c.blank();
        let at = c.at;
        let op = c.word();
        let name = c.string()?;
        let outputs = match op.as_str() {
            "input" => {
                c.expect(':')?;
                let ty = c.ty()?;
                vec![self.builder.input(&name, ty)]
            }
            "constant" => {
                c.expect(':')?;
                let ty = c.ty()?;
                let value = self.constant(c, &ty)?;
                let op = Op::Constant(Constant { value: value.into() });
                self.builder.push(&name, op, &[], vec![ty])
            }
            _ => self.application(c, &op, at, &name)?,
        };
        if outputs.len() != defined.len() {
            return Err((at, format!("{} types for {} values", outputs.len(), defined.len())));
        }
        for ((at, name), v) in defined.into_iter().zip(outputs) {
            if self.values.insert(name.clone(), v).is_some() {
                return Err((at, format!("value %{name} is defined twice")));
            }
        }
        Ok(())
    }

    fn application(&mut self, c: &mut Cursor, op: &str, at: usize, name: &str) -> Result<Vec<ValueId>, ParseFault> {
        if !Op::NAMES.contains(&op) {
            return Err((at, format!("unknown operator `{op}`; the operators are {}", Op::NAMES.join(", "))));
        }
        c.expect('(')?;
        let mut inputs = Vec::new();
        while !c.eat(')') {
            if !inputs.is_empty() {
                c.expect(',')?;
            }
            inputs.push(self.value(c)?);
        }
        let mut reader = AttrReader::default();
        if c.eat('{') {
            while !c.eat('}') {
                if !reader.attrs.is_empty() {
                    c.expect(',')?;
                }
                c.blank();
                let (at, key) = (c.at, c.word());
                c.expect('=')?;
                let value = c.attr(0)?;
                if reader.attrs.insert(key.clone(), value).is_some() {
                    return Err((at, format!("attribute `{key}` is given twice")));
                }
            }
        }
        let parsed = Op::from_attrs(op, &mut reader);
        reader.errors.extend(reader.attrs.keys().map(|k| format!("operator `{op}` has no attribute `{k}`")));
        let Some(mut parsed) = parsed.filter(|_| reader.errors.is_empty()) else {
            return Err((at, tilewright_hw::list::first(&reader.errors, "; ")));
        };
        c.expect(':')?;
        let mut types = vec![c.ty()?];
        while c.eat(',') {
            types.push(c.ty()?);
        }
        if let Op::Packed(packed) = &mut parsed {
            packed.types.clone_from(&types);
        }
        Ok(self.builder.push(name, parsed, &inputs, types))
    }

    fn value(&self, c: &mut Cursor) -> Result<ValueId, ParseFault> {
        c.blank();
        let (at, name) = (c.at, c.value_name()?);
        self.values.get(&name).copied().ok_or((at, format!("value %{name} is not defined")))
    }

    fn constant(&self, c: &mut Cursor, ty: &TensorType) -> Result<Tensor, ParseFault> {
        c.blank();
        let at = c.at;
        let shape = ty.shape().ok_or((at, "the sizes of a constant must be known".to_owned()))?;
        if c.peek() != Some('[') {
            c.keyword("blob")?;
            let hash = c.string()?;
            let bytes = self.blobs.get(&hash).ok_or((at, format!("blob `{hash}` is not in the table of constants")))?;
            let misfit = || (at, format!("blob `{hash}` of {} bytes does not fit {ty}", bytes.len()));
            return Tensor::from_bytes(ty.dtype, &shape, bytes).ok_or_else(misfit);
        }
        let Attr::List(list) = c.attr(0)? else { return Err((at, "expected a list".into())) };
        fn build<T: crate::graph::Element>(
            shape: &[usize],
            list: &[Attr],
            f: impl Fn(&Attr) -> Option<T>,
        ) -> Option<Tensor> {
            Tensor::new(shape, list.iter().map(f).collect::<Option<Vec<T>>>()?)
        }
        use crate::graph::op::attr::AttrValue;
        let tensor = match ty.dtype {
            // The text form never lists these.
            DType::F64 | DType::U64 => return Err((at, format!("a constant of type {} must be a blob", ty.dtype))),
            DType::F32 => build(&shape, &list, f32::from_attr),
            DType::I8 => build(&shape, &list, i8::from_attr),
            DType::U8 => build(&shape, &list, u8::from_attr),
            DType::I16 => build(&shape, &list, i16::from_attr),
            DType::U16 => build(&shape, &list, u16::from_attr),
            DType::I32 => build(&shape, &list, i32::from_attr),
            DType::U32 => build(&shape, &list, u32::from_attr),
            DType::I64 => build(&shape, &list, i64::from_attr),
            DType::Bool => build(&shape, &list, bool::from_attr),
        };
        tensor.ok_or((at, format!("the list does not fit {ty}")))
    }
}

struct Cursor {
    chars: Vec<char>,
    at: usize,
}

impl Cursor {
    fn peek(&self) -> Option<char> {
        self.chars.get(self.at).copied()
    }

    fn done(&self) -> bool {
        self.at >= self.chars.len()
    }

    /// Skips blanks and a comment.
    fn blank(&mut self) {
        while self.peek().is_some_and(char::is_whitespace) {
            self.at += 1;
        }
        if self.peek() == Some('#') {
            self.at = self.chars.len();
        }
    }

    fn wrong<T>(&self, message: &str) -> Result<T, ParseFault> {
        let found = self.peek().map_or("the end of the line".into(), |c| format!("`{c}`"));
        Err((self.at, format!("{message}, found {found}")))
    }

    fn eat(&mut self, c: char) -> bool {
        self.blank();
        let hit = self.peek() == Some(c);
        self.at += usize::from(hit);
        hit
    }

    fn expect(&mut self, c: char) -> Result<(), ParseFault> {
        if self.eat(c) { Ok(()) } else { self.wrong(&format!("expected `{c}`")) }
    }

    fn word(&mut self) -> String {
        self.blank();
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || c == '_') {
            self.at += 1;
        }
        self.chars[start..self.at].iter().collect()
    }

    /// Whether the next word is this one.
    fn begins(&mut self, word: &str) -> bool {
        let start = self.at;
        let found = self.word() == word;
        self.at = start;
        found
    }

    fn keyword(&mut self, word: &str) -> Result<(), ParseFault> {
        self.blank();
        let start = self.at;
        if self.word() == word {
            return Ok(());
        }
        self.at = start;
        self.wrong(&format!("expected `{word}`"))
    }

    fn value_name(&mut self) -> Result<String, ParseFault> {
        self.expect('%')?;
        let name = self.word();
        if name.is_empty() { self.wrong("expected a value's name") } else { Ok(name) }
    }

    fn string(&mut self) -> Result<String, ParseFault> {
        self.expect('"')?;
        let mut out = String::new();
        loop {
            let Some(c) = self.peek() else { return self.wrong("expected `\"`") };
            self.at += 1;
            match c {
                '"' => return Ok(out),
                '\\' => match self.peek() {
                    Some(c @ ('"' | '\\')) => {
                        self.at += 1;
                        out.push(c);
                    }
                    Some('u') => {
                        self.at += 1;
                        self.expect('{')?;
                        let digits = self.word();
                        let c = u32::from_str_radix(&digits, 16).ok().and_then(char::from_u32);
                        let Some(c) = c else { return self.wrong("expected a character's number") };
                        out.push(c);
                        self.expect('}')?;
                    }
                    _ => return self.wrong("expected `\\\"`, `\\\\` or `\\u{…}`"),
                },
                c => out.push(c),
            }
        }
    }

    fn ty(&mut self) -> Result<TensorType, ParseFault> {
        self.blank();
        let at = self.at;
        let name = self.word();
        let names = || DType::ALL.map(DType::name).join(", ");
        let dtype =
            DType::from_name(&name).ok_or_else(|| (at, format!("unknown type `{name}`; the types are {}", names())))?;
        self.expect('[')?;
        let mut dims = Vec::new();
        while !self.eat(']') {
            if !dims.is_empty() {
                self.expect(',')?;
            }
            let (at, word) = (self.at, self.word());
            let dim = match word.chars().next() {
                Some(c) if c.is_ascii_digit() => word.parse().map(Dim::Fixed).ok(),
                Some(_) => Some(Dim::Symbol(word)),
                None => None,
            };
            dims.push(dim.ok_or((at, "expected a size".to_owned()))?);
        }
        Ok(TensorType { dtype, dims })
    }

    fn attr(&mut self, depth: usize) -> Result<Attr, ParseFault> {
        self.blank();
        if depth > 4 {
            return self.wrong("lists nest too deep");
        }
        if self.peek() == Some('"') {
            return self.string().map(Attr::Text);
        }
        if self.eat('[') {
            let mut list = Vec::new();
            while !self.eat(']') {
                if !list.is_empty() {
                    self.expect(',')?;
                }
                list.push(self.attr(depth + 1)?);
            }
            return Ok(Attr::List(list));
        }
        let start = self.at;
        while self.peek().is_some_and(|c| c.is_alphanumeric() || "_-+.".contains(c)) {
            self.at += 1;
        }
        let word: String = self.chars[start..self.at].iter().collect();
        let digit = word.trim_start_matches(['-', '+']).starts_with(|c: char| c.is_ascii_digit());
        if word.is_empty() {
            return self.wrong("expected a value");
        }
        if !digit {
            return Ok(Attr::Word(word));
        }
        if let Ok(i) = word.parse() {
            return Ok(Attr::Int(i));
        }
        word.parse().map(Attr::Float).map_err(|_| (start, format!("`{word}` is not a number")))
    }
}
