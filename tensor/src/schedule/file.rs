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
//!
//! One file can stand for all sizes of a computation: `size n = 64` declares a size, extents and the numbers of steps can
//! be expressions of sizes, and [`parse_with`] takes other values than the declared ones.

use std::fmt::{self, Display, Formatter};

use thiserror::Error;

use super::Step;
use super::text;
use crate::te::text::{Names, Prefix, parse_prefix};
use crate::te::{Name, ParseError, Program};

/// A tensor expression and the steps of its schedule.
#[derive(Debug, Clone, PartialEq)]
pub struct File {
    /// The sizes that the text declares, with their values.
    pub sizes: Vec<(Name, i64)>,
    /// What is computed, for these sizes.
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
    /// A given size is not declared.
    #[error("there is no size {name}; {}", declared(.sizes))]
    Size {
        /// The given size.
        name: Name,
        /// The sizes that are declared.
        sizes: Vec<Name>,
    },
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

fn declared(sizes: &[Name]) -> String {
    match sizes.iter().map(Name::as_str).collect::<Vec<_>>().join(", ") {
        none if none.is_empty() => {
            "the file declares none; write `size NAME = VALUE` at the start of the expression".into()
        }
        list => format!("the file declares {list}"),
    }
}

/// Reads a file without calls of operators.
///
/// # Errors
/// The line of the first mistake, and what was expected there.
pub fn parse(text: &str) -> Result<File, FileError> {
    parse_with(text, &Names::default())
}

/// Reads a file that refers to sizes and operators.
///
/// # Errors
/// The line of the first mistake, and what was expected there; or a given size that the file does not declare.
pub fn parse_with(text: &str, names: &Names) -> Result<File, FileError> {
    let Prefix { program, sizes, rest } = parse_prefix(text, names)?;
    if let Some((name, _)) = names.sizes.iter().find(|g| !sizes.iter().any(|size| size.0 == g.0)) {
        return Err(FileError::Size { name: name.clone(), sizes: sizes.into_iter().map(|size| size.0).collect() });
    }
    let line_of = |rest: &str| text[..text.len() - rest.len()].matches('\n').count() + 1;
    let rest = skip(rest);
    if rest.is_empty() {
        return Ok(File { sizes, program, steps: Vec::new() });
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
    match text::parse_sized(steps, &sizes) {
        Ok(steps) => {
            let steps = steps.into_iter().map(|(line, step)| (before + line, step)).collect();
            Ok(File { sizes, program, steps })
        }
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
    fn a_file_stands_for_all_sizes() {
        let text = "te t {\n  size n = 8, half = n / 2\n  input x: i8[n + 1]\n  output y: i8[i in half] = select(i < n - 5, x[i], 0i8)\n}\n\
                    schedule {\n  split y.i min(half,4)\n}";
        let sized = |text: &str, name: &str, n: i64| {
            parse_with(text, &Names { sizes: &[(name.into(), n)], ..Names::default() })
        };
        let at = |n: i64| sized(text, "n", n).unwrap();
        for (n, factor) in [(6, 3), (8, 4), (20, 4)] {
            let file = at(n);
            assert_eq!(file.sizes, [("n".into(), n), ("half".into(), n / 2)]);
            // The same as with numbers in place of the sizes.
            let plain = format!(
                "te t {{ input x: i8[{}] output y: i8[i in {}] = select(i < {n} - 5, x[i], 0i8) }} schedule {{ split y.i {factor} }}",
                n + 1,
                n / 2
            );
            assert_eq!(file.to_string(), parse(&plain).unwrap().to_string());
        }
        assert_eq!(parse(text).unwrap().to_string(), at(8).to_string());
        let wrong = |name: &str, n: i64| sized(text, name, n).unwrap_err().to_string();
        assert_eq!(wrong("m", 1), "there is no size m; the file declares n, half");
        assert_eq!(
            wrong("n", -3),
            "line 2, column 12: expected a size between 0 and 268435456 (it is -3), found `8, half = n `"
        );
        assert_eq!(
            wrong("n", 1),
            "line 4, column 21: expected an extent of at least 1 (it is 0), found `half] = sele`"
        );
        let undeclared = sized(TEXT, "n", 1).unwrap_err().to_string();
        assert!(undeclared.starts_with("there is no size n; the file declares none"), "{undeclared}");
        let wrong = |text: &str| parse(&format!("te t {{ {text} }}")).unwrap_err().to_string();
        assert!(wrong("input x: i8[n]").contains("there is no size n, the sizes are: none"));
        assert!(wrong("size n = 4, n = 5").contains("another name than n"));
        assert!(wrong("size n = 4 input n: i8[4]").contains("another name than n"));
        assert!(wrong("size n = 4 output y: i8[n in 4] = 0i8").contains("another name than the size n"));
        assert!(wrong("size n = 4 / 0").contains("without a division by 0"));
        assert!(wrong("size n = 9223372036854775807 * 2").contains("expected"));
        // A tensor can have that name.
        assert!(parse("te t { input size: i8[4] output y: i8[i in 4] = size[i] }").is_ok());
    }

    #[test]
    fn mistakes_have_a_line() {
        let wrong = |rest: &str| parse(&format!("{TEXT}{rest}")).unwrap_err().to_string();
        assert_eq!(wrong("steps {"), "line 6: expected `schedule {` or the end of the file");
        assert_eq!(wrong("schedule {\n split y.i 2"), "line 6: expected `}` at the end of the schedule");
        assert_eq!(wrong("schedule {}\nschedule {}"), "line 7: expected the end of the file");
        assert!(wrong("schedule {\n\nspilt y.i 2 }").starts_with("line 8: there is no primitive `spilt`; there are: "));
        assert_eq!(parse("te t {").unwrap_err().to_string(), "line 1, column 7: expected a tensor's name, found ``");
    }
}
