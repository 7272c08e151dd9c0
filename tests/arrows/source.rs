//! Reads the modules, items, imports and paths of a Rust file from its text.

/// A word, `::`, a string with its quotes, or one other character.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Token {
    pub text: String,
    pub line: usize,
}

/// A path in a file.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Named {
    /// Its segments, `*` as the last of a glob import.
    pub path: Vec<String>,
    pub line: usize,
    /// The name that a `use` imports it as.
    pub alias: Option<String>,
    /// Whether it is imported with `pub` or `pub(...)`.
    pub is_exported: bool,
}

/// A module: a file, or one in braces inside a file.
#[derive(Debug, Default)]
pub struct Module {
    /// The names of the modules around it in the file, and its own; empty for the file's.
    pub inside: Vec<String>,
    /// Items defined in it.
    pub items: Vec<String>,
    /// Macros of it that are visible as `crate::name`.
    pub exported_macros: Vec<String>,
    /// Modules declared with a `#[path]`, with that path.
    pub elsewhere: Vec<(String, String)>,
    /// Modules declared under `#[cfg(test)]`.
    pub tests: Vec<String>,
    pub imports: Vec<Named>,
    /// Paths of two segments or more in its code.
    pub paths: Vec<Named>,
    /// All words of its code, for glob imports.
    pub words: Vec<Token>,
}

/// Splits a Rust source into tokens. Comments, characters, numbers and lifetimes are dropped.
pub fn tokens(text: &str) -> Vec<Token> {
    let chars: Vec<char> = text.chars().collect();
    let is_word = |c: char| c.is_alphanumeric() || c == '_';
    let (mut tokens, mut at, mut line) = (Vec::new(), 0, 1);
    let ahead = |at: usize| chars.get(at).copied().unwrap_or('\0');
    while at < chars.len() {
        let (begin, first) = (at, line);
        match chars[at] {
            '/' if ahead(at + 1) == '/' => {
                while at < chars.len() && chars[at] != '\n' {
                    at += 1;
                }
                continue;
            }
            '/' if ahead(at + 1) == '*' => {
                let mut depth = 0;
                while at < chars.len() {
                    match (chars[at], ahead(at + 1)) {
                        ('/', '*') => (depth, at) = (depth + 1, at + 1),
                        ('*', '/') => (depth, at) = (depth - 1, at + 1),
                        _ => {}
                    }
                    at += 1;
                    if depth == 0 {
                        break;
                    }
                }
            }
            '"' => {
                at = end_of_string(&chars, at);
                tokens.push(Token { text: chars[begin..at].iter().collect(), line: first });
            }
            '\'' if ahead(at + 1) == '\\' => {
                at += 3;
                while at < chars.len() && chars[at] != '\'' {
                    at += 1;
                }
                at += 1;
            }
            '\'' if ahead(at + 2) == '\'' => at += 3,
            '\'' => {
                at += 1;
                while is_word(ahead(at)) {
                    at += 1;
                }
            }
            ':' if ahead(at + 1) == ':' => {
                tokens.push(Token { text: "::".into(), line });
                at += 2;
            }
            c if is_word(c) => {
                while is_word(ahead(at)) {
                    at += 1;
                }
                let word: String = chars[begin..at].iter().collect();
                let is_prefix = matches!(word.as_str(), "r" | "b" | "br" | "c" | "cr");
                match ahead(at) {
                    '"' if word.contains('r') && is_prefix => at = end_of_raw(&chars, at),
                    '"' if is_prefix => at = end_of_string(&chars, at),
                    '#' if is_prefix && word.contains('r') && matches!(ahead(at + 1), '"' | '#') => {
                        at = end_of_raw(&chars, at);
                    }
                    // `r#type` is the word `type`.
                    '#' if word == "r" => at += 1,
                    _ if c.is_numeric() => {}
                    _ => tokens.push(Token { text: word, line }),
                }
            }
            c if c.is_whitespace() => at += 1,
            c => {
                tokens.push(Token { text: c.into(), line });
                at += 1;
            }
        }
        line += chars[begin..at.min(chars.len())].iter().filter(|c| **c == '\n').count();
    }
    tokens
}

/// Returns the index after a string that begins with the quote at `at`.
fn end_of_string(chars: &[char], mut at: usize) -> usize {
    at += 1;
    while at < chars.len() && chars[at] != '"' {
        at += if chars[at] == '\\' { 2 } else { 1 };
    }
    (at + 1).min(chars.len())
}

/// Returns the index after a raw string whose `#` or quote is at `at`.
fn end_of_raw(chars: &[char], mut at: usize) -> usize {
    let hashes = chars[at..].iter().take_while(|c| **c == '#').count();
    at += hashes + 1;
    while at < chars.len() {
        let closes = chars[at] == '"' && chars[at + 1..].iter().take(hashes).filter(|c| **c == '#').count() == hashes;
        at += 1;
        if closes {
            return at + hashes;
        }
    }
    at
}

/// Reads the modules of a file: its own first, then those in braces. `None` if all of the file is under
/// `#![cfg(test)]`.
pub fn modules(text: &str) -> Option<Vec<Module>> {
    let mut reader = Reader { tokens: tokens(text), at: 0, modules: vec![Module::default()] };
    if reader.is_test_file() {
        return None;
    }
    reader.module(0);
    Some(reader.modules)
}

struct Reader {
    tokens: Vec<Token>,
    at: usize,
    modules: Vec<Module>,
}

impl Reader {
    fn text(&self, ahead: usize) -> &str {
        self.tokens.get(self.at + ahead).map_or("", |token| token.text.as_str())
    }

    fn line(&self) -> usize {
        self.tokens.get(self.at).map_or(0, |token| token.line)
    }

    fn is_word(text: &str) -> bool {
        text.starts_with(|c: char| c.is_alphabetic() || c == '_')
    }

    fn is_test_file(&self) -> bool {
        (0..self.tokens.len())
            .any(|at| self.tokens[at].text == "#" && self.text_at(at + 1) == "!" && self.is_test_at(at + 2))
    }

    fn text_at(&self, at: usize) -> &str {
        self.tokens.get(at).map_or("", |token| token.text.as_str())
    }

    /// Returns whether the attribute whose `[` is at an index is `[cfg(test)]` or `[cfg(all(test, ...))]`.
    fn is_test_at(&self, at: usize) -> bool {
        let begins = |words: &[&str]| words.iter().enumerate().all(|(i, word)| self.text_at(at + i) == *word);
        if begins(&["[", "cfg", "(", "test", ")"]) {
            return true;
        }
        if !begins(&["[", "cfg", "(", "all", "("]) {
            return false;
        }
        let (mut depth, mut at) = (1, at + 5);
        while depth > 0 && at < self.tokens.len() {
            match self.text_at(at) {
                "(" => depth += 1,
                ")" => depth -= 1,
                "test" if depth == 1 && matches!(self.text_at(at + 1), "," | ")") => return true,
                _ => {}
            }
            at += 1;
        }
        false
    }

    /// Skips to after the bracket that closes the one at the current token.
    fn skip_group(&mut self) {
        let mut depth = 0;
        while self.at < self.tokens.len() {
            match self.text(0) {
                "(" | "[" | "{" => depth += 1,
                ")" | "]" | "}" => depth -= 1,
                _ => {}
            }
            self.at += 1;
            if depth == 0 {
                return;
            }
        }
    }

    fn skip_visibility(&mut self) {
        if self.text(0) == "pub" {
            self.at += 1;
            if self.text(0) == "(" && matches!(self.text(1), "crate" | "super" | "self" | "in") {
                self.skip_group();
            }
        }
    }

    /// Skips the item, field or statement under an attribute, and returns its name if it is a module.
    fn skip_item(&mut self) -> Option<String> {
        while self.text(0) == "#" {
            self.at += 1;
            self.skip_group();
        }
        self.skip_visibility();
        let (first, name) = (self.text(0).to_string(), self.text(1).to_string());
        // Some items end only with a semicolon, some with a semicolon or after braces, and fields also with a comma.
        let (braces_end, comma_ends) = match first.as_str() {
            "use" | "const" if self.text(1) != "fn" => (false, false),
            "static" | "type" | "let" => (false, false),
            "mod" | "fn" | "impl" | "struct" | "enum" | "union" | "trait" | "unsafe" | "async" | "extern" | "const"
            | "macro_rules" => (true, false),
            _ => (true, true),
        };
        while self.at < self.tokens.len() {
            match self.text(0) {
                ";" => {
                    self.at += 1;
                    break;
                }
                "," if comma_ends => {
                    self.at += 1;
                    break;
                }
                "}" => break,
                "{" => {
                    self.skip_group();
                    if braces_end {
                        break;
                    }
                }
                "(" | "[" => self.skip_group(),
                _ => self.at += 1,
            }
        }
        (first == "mod").then_some(name)
    }

    /// Reads a module up to its closing brace or the end of the file.
    fn module(&mut self, own: usize) {
        let mut depth = 0;
        let (mut path_attribute, mut is_macro_exported) = (None, false);
        while self.at < self.tokens.len() {
            let before = if self.at == 0 { "" } else { self.text_at(self.at - 1) };
            match self.text(0) {
                "}" if depth == 0 => return,
                "{" => depth += 1,
                "}" => depth -= 1,
                "#" if self.text(1) == "[" => {
                    if self.is_test_at(self.at + 1) {
                        self.at += 1;
                        self.skip_group();
                        let name = self.skip_item();
                        self.modules[own].tests.extend(name);
                        continue;
                    }
                    if self.text(2) == "path" && self.text(3) == "=" {
                        path_attribute = Some(self.text(4).trim_matches('"').to_string());
                    }
                    is_macro_exported |= self.text(2) == "macro_export";
                }
                "pub" => {
                    let begin = self.at;
                    self.skip_visibility();
                    if self.text(0) == "use" {
                        self.at += 1;
                        self.import(own, Vec::new(), true);
                    } else if self.at == begin {
                        self.at += 1;
                    }
                    continue;
                }
                "use" if before != "." => {
                    self.at += 1;
                    self.import(own, Vec::new(), false);
                    continue;
                }
                "mod" if Reader::is_word(self.text(1)) && matches!(self.text(2), ";" | "{") => {
                    let name = self.text(1).to_string();
                    let is_inline = self.text(2) == "{";
                    self.at += 3;
                    if let Some(path) = path_attribute.take() {
                        self.modules[own].elsewhere.push((name, path));
                    } else if is_inline {
                        let inside = self.modules[own].inside.iter().cloned().chain([name]).collect();
                        self.modules.push(Module { inside, ..Module::default() });
                        self.module(self.modules.len() - 1);
                        self.at += 1;
                    }
                    continue;
                }
                "macro_rules" if self.text(1) == "!" => {
                    let name = self.text(2).to_string();
                    if is_macro_exported {
                        self.modules[own].exported_macros.push(name.clone());
                    }
                    is_macro_exported = false;
                    self.modules[own].items.push(name);
                    self.at += 3;
                    continue;
                }
                "fn" | "struct" | "enum" | "union" | "trait" | "type" | "const" | "static"
                    if depth == 0 && Reader::is_word(self.text(1)) =>
                {
                    let name = if self.text(1) == "mut" { self.text(2) } else { self.text(1) }.to_string();
                    self.modules[own].items.push(name);
                }
                word if Reader::is_word(word) && before != "::" => {
                    let token = self.tokens[self.at].clone();
                    self.modules[own].words.push(token);
                    if self.text(1) == "::" {
                        self.path(own);
                        continue;
                    }
                }
                _ => {}
            }
            self.at += 1;
        }
    }

    /// Reads a path of two segments or more.
    fn path(&mut self, own: usize) {
        let line = self.line();
        let mut path = vec![self.text(0).to_string()];
        self.at += 1;
        while self.text(0) == "::" && Reader::is_word(self.text(1)) {
            path.push(self.text(1).to_string());
            self.at += 2;
        }
        if path.len() > 1 {
            self.modules[own].paths.push(Named { path, line, alias: None, is_exported: false });
        }
    }

    /// Reads the tree of a `use` after some segments, up to the comma, brace or semicolon that ends it.
    fn import(&mut self, own: usize, mut path: Vec<String>, is_exported: bool) {
        let line = self.line();
        // `use ::name` is another crate's.
        let is_foreign = path.is_empty() && self.text(0) == "::";
        loop {
            match self.text(0).to_string().as_str() {
                // `$crate` is `crate`. Arguments of a macro resolve to nothing.
                "::" | "$" => self.at += 1,
                "{" => {
                    self.at += 1;
                    while !matches!(self.text(0), "}" | "") {
                        let begin = self.at;
                        self.import(own, path.clone(), is_exported);
                        if self.text(0) == "," || self.at == begin {
                            self.at += 1;
                        }
                    }
                    self.at += 1;
                    break;
                }
                word if Reader::is_word(word) || word == "*" => {
                    path.push(word.to_string());
                    self.at += 1;
                    if self.text(0) == "::" {
                        continue;
                    }
                    // `use a::{self}` is `use a`.
                    if path.len() > 1 && path.last().is_some_and(|last| last == "self") {
                        path.pop();
                    }
                    let mut alias = path.last().filter(|last| *last != "*").cloned();
                    if self.text(0) == "as" {
                        alias = Some(self.text(1).to_string());
                        self.at += 2;
                    }
                    if !is_foreign {
                        self.modules[own].imports.push(Named { path, line, alias, is_exported });
                    }
                    break;
                }
                _ => break,
            }
        }
        if self.text(0) == ";" {
            self.at += 1;
        }
    }
}
