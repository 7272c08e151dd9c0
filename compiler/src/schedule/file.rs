//! `.te` files: a tensor expression, and the schedule with which it runs.
//!
//! ```text
//! // What is computed.
//! te clamp {
//!   input x: i8[64, 16]
//!   output y: i8[i in 64, j in 16] = max(x[i, j], 0i8)
//! }
//! // How it runs.
//! schedule {
//!   cache_read y x inp; cache_write y out
//!   tensorize y.j max
//! }
//! ```
//!
//! The schedule can be left out. Its steps are those of [`super::text`].

use std::fmt::{self, Display, Formatter};

use thiserror::Error;

use super::Step;
use super::text::parse_steps;
use crate::te::text::parse_prefix;
use crate::te::{ParseError, Program};

/// A tensor expression and the steps of its schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// What is computed.
    pub program: Program,
    /// How it runs: each step with its line in the file, from 1.
    pub steps: Vec<(usize, Step)>,
}

impl Display for File {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.program)?;
        if self.steps.is_empty() {
            return Ok(());
        }
        writeln!(f, "schedule {{")?;
        self.steps.iter().try_for_each(|(_, step)| writeln!(f, "  {step}"))?;
        writeln!(f, "}}")
    }
}

/// Why a text is no such file.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum FileError {
    /// The tensor expression does not parse.
    #[error(transparent)]
    Expression(#[from] ParseError),
    /// A step does not parse.
    #[error("line {line}: {what}")]
    Step {
        /// Line, from 1.
        line: usize,
        /// What is wrong there.
        what: String,
    },
    /// Something else follows the tensor expression, or the schedule has no end.
    #[error("line {line}: expected {expected}")]
    Block {
        /// Line, from 1.
        line: usize,
        /// What was expected there.
        expected: &'static str,
    },
}

/// Reads a file.
///
/// # Errors
/// The line of the first mistake, and what was expected there.
pub fn parse(text: &str) -> Result<File, FileError> {
    let (program, rest) = parse_prefix(text)?;
    let line_of = |rest: &str| text[..text.len() - rest.len()].matches('\n').count() + 1;
    let rest = skip(rest);
    if rest.is_empty() {
        return Ok(File { program, steps: Vec::new() });
    }
    let inside = rest.strip_prefix("schedule").map(skip).and_then(|rest| rest.strip_prefix('{'));
    let Some(inside) = inside else {
        return Err(FileError::Block { line: line_of(rest), expected: "`schedule {` or the end of the file" });
    };
    let Some((steps, after)) = closed(inside) else {
        return Err(FileError::Block { line: line_of(inside), expected: "`}` at the end of the schedule" });
    };
    let after = skip(after);
    if !after.is_empty() {
        return Err(FileError::Block { line: line_of(after), expected: "the end of the file" });
    }
    let before = line_of(inside) - 1;
    match parse_steps(steps) {
        Ok(steps) => Ok(File { program, steps: steps.into_iter().map(|(line, step)| (before + line, step)).collect() }),
        Err((line, what)) => Err(FileError::Step { line: before + line, what }),
    }
}

/// Splits a text at the first `}` that is not in a comment.
fn closed(text: &str) -> Option<(&str, &str)> {
    let mut at = 0;
    for line in text.split_inclusive('\n') {
        let code = line.split_once("//").map_or(line, |(code, _)| code);
        if let Some(end) = code.find('}') {
            return Some((&text[..at + end], &text[at + end + 1..]));
        }
        at += line.len();
    }
    None
}

/// Leaves out white space and comments.
fn skip(mut text: &str) -> &str {
    loop {
        text = text.trim_start();
        match text.strip_prefix("//") {
            Some(comment) => text = comment.find('\n').map_or("", |end| &comment[end..]),
            None => return text,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "// What.\nte t {\n  input x: i8[4]\n  output y: i8[i in 4] = x[i]\n}\n";

    #[test]
    fn steps_have_the_lines_of_the_file() {
        assert_eq!(parse(TEXT).unwrap().steps, []);
        let file = parse(&format!("{TEXT}\n// How.\nschedule {{ // steps\n  split y.i 2\n}}\n// end")).unwrap();
        assert_eq!(file.steps, [(9, Step::Split { target: "y.i".into(), factors: vec![2] })]);
        let file = parse(&format!("{TEXT}schedule {{ // {{x}}\n split y.i 2 }}")).unwrap();
        assert_eq!(file.steps.len(), 1);
        // Written as text, it reads back to the same.
        let again = parse(&file.to_string()).unwrap();
        let steps = |file: &File| file.steps.iter().map(|(_, step)| step.clone()).collect::<Vec<_>>();
        assert_eq!((&again.program, steps(&again)), (&file.program, steps(&file)));
        let plain = parse(TEXT).unwrap();
        assert_eq!(parse(&plain.to_string()).unwrap(), plain);
    }

    #[test]
    fn mistakes_have_a_line() {
        let wrong = |rest: &str| parse(&format!("{TEXT}{rest}")).unwrap_err().to_string();
        assert_eq!(wrong("steps {"), "line 6: expected `schedule {` or the end of the file");
        assert_eq!(wrong("schedule {\n split y.i 2"), "line 6: expected `}` at the end of the schedule");
        assert_eq!(wrong("schedule {}\nschedule {}"), "line 7: expected the end of the file");
        assert_eq!(wrong("schedule {\n\nspilt y.i 2 }"), "line 8: there is no primitive `spilt`");
        assert_eq!(parse("te t {").unwrap_err().to_string(), "line 1, column 7: expected a tensor's name, found ``");
    }
}
