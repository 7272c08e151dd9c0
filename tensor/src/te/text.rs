//! The text form of tensor expressions.
//!
//! ```text
//! te row_sums {
//!   input x: i8[4, 8]
//!   wide: i32[i in 4, j in 8] = i32(x[i, j])
//!   output y: i32[i in 4] = sum(k in 8) wide[i, k]
//! }
//! ```
//!
//! A tensor has a name, an element type and an axis for each dimension, and is defined by an expression over its axes.
//! `sum`, `max` and `min` with axes in parentheses are reductions; with `from EXPRESSION` behind the axes they start
//! from that value instead of their identity. An axis `i` of a tensor `y` is called `y.i` outside of it, and names the
//! loop in schedules. Calls of operators (`calls.rs`) write further definitions.
//!
//! Extents can be expressions of sizes, which are declared first with a value: `size n = 8, k = n / 2`. Another value
//! can be given when the text is parsed, so that one text stands for a computation at any size.

use std::fmt::{self, Display, Formatter, Write};

use super::calls::{NoOperators, Operators};
use super::print::list;
use super::read::{ParseError, Parsed, Reader};
use super::{Axis, Combiner, DType, Definition, Expr, Name, NameSet, Program, Tensor};

/// Each reduction with its name in text.
const COMBINERS: [(Combiner, &str); 3] = [(Combiner::Sum, "sum"), (Combiner::Max, "max"), (Combiner::Min, "min")];

/// Largest number of elements of a tensor.
const MAX_ELEMENTS: i64 = 1 << 28;

/// Largest number of terms of all sums of a tensor.
const MAX_TERMS: i64 = 1 << 48;

/// Parses a tensor expression without calls of operators.
///
/// # Errors
/// The position of the first mistake, and what was expected there. Types are checked when the program is lowered.
pub fn parse(text: &str) -> Result<Program, ParseError> {
    parse_with(text, &Names::default())
}

/// Parses a tensor expression.
///
/// # Errors
/// The same as [`parse`]. A given size that the text does not declare is not an error here.
pub fn parse_with(text: &str, names: &Names) -> Result<Program, ParseError> {
    let mut r = Reader::new(text);
    r.operators = names.operators;
    let program = r.program(names.sizes)?;
    r.end()?;
    Ok(program)
}

/// A tensor expression at the start of a text.
#[derive(Debug)]
pub struct Prefix<'t> {
    /// The expression for these sizes.
    pub program: Program,
    /// The sizes that the text declares, with their values.
    pub sizes: Vec<(Name, i64)>,
    /// The rest of the text.
    pub rest: &'t str,
}

/// What a text can refer to.
#[derive(Debug, Clone, Copy)]
pub struct Names<'a> {
    /// Values of sizes, in place of those that the text declares.
    pub sizes: &'a [(Name, i64)],
    /// Operators that the text can call.
    pub operators: &'a dyn Operators,
}

impl Default for Names<'_> {
    fn default() -> Self {
        Names { sizes: &[], operators: &NoOperators }
    }
}

/// Parses a tensor expression at the start of a text.
///
/// # Errors
/// The same as [`parse`]. A given size that the text does not declare is not an error here.
pub fn parse_prefix<'t>(text: &'t str, names: &Names<'t>) -> Result<Prefix<'t>, ParseError> {
    let mut r = Reader::new(text);
    r.operators = names.operators;
    let program = r.program(names.sizes)?;
    Ok(Prefix { program, rest: r.rest(), sizes: r.sizes })
}

impl Reader<'_> {
    fn program(&mut self, given: &[(Name, i64)]) -> Parsed<Program> {
        if !self.eat_word("te") {
            return self.fail("`te`");
        }
        let name = self.word("the program's name")?;
        self.expect("{")?;
        let mut program = Program { name, tensors: Vec::new(), outputs: Vec::new() };
        while self.starts_sizes() {
            self.declare_sizes(given)?;
        }
        let mut names: NameSet = self.sizes.iter().map(|size| size.0.clone()).collect();
        while !self.eat("}") {
            let at = self.mark();
            let output = self.eat_word("output");
            let tensors = if !output && self.eat_word("input") {
                vec![self.input()?]
            } else if self.starts_call() {
                self.call(&program.tensors)?
            } else {
                vec![self.tensor()?]
            };
            if let (true, Some(last)) = (output, tensors.last()) {
                program.outputs.push(last.name.clone());
            }
            for tensor in tensors {
                if !names.insert(tensor.name.clone()) {
                    return self.fail_at(at, &format!("another name than {}, which is taken", tensor.name));
                }
                self.buffers.push((tensor.name.clone(), tensor.dtype));
                program.tensors.push(tensor);
            }
        }
        if program.outputs.is_empty() {
            return self.fail("at least one `output` before the end of the program");
        }
        Ok(program)
    }

    /// Consumes `size` if a declaration of sizes comes next, not a tensor of that name.
    fn starts_sizes(&mut self) -> bool {
        let at = self.mark();
        let sizes = self.eat_word("size") && !self.eat(":");
        if !sizes {
            self.back(at);
        }
        sizes
    }

    /// Reads names and values up to the end of a declaration of sizes.
    fn declare_sizes(&mut self, given: &[(Name, i64)]) -> Parsed<()> {
        loop {
            let at = self.mark();
            let name = self.word("a size's name")?;
            if self.size(&name).is_some() {
                return self.fail_at(at, &format!("another name than {name}, which is taken"));
            }
            self.expect("=")?;
            let at = self.mark();
            let declared = self.whole()?;
            let value = given.iter().find(|g| g.0 == name).map_or(declared, |g| g.1);
            if !(0..=MAX_ELEMENTS).contains(&value) {
                return self.fail_at(at, &format!("a size between 0 and {MAX_ELEMENTS} (it is {value})"));
            }
            self.sizes.push((name, value));
            if !self.eat(",") {
                return Ok(());
            }
        }
    }

    fn input(&mut self) -> Parsed<Tensor> {
        let (name, dtype) = self.head()?;
        let shape = self.separated("]", Self::extent)?;
        let axes = shape.iter().enumerate().map(|(i, &extent)| Axis { var: axis(&name, &format!("i{i}")), extent });
        Ok(Tensor { axes: self.small(axes.collect())?, name, dtype, definition: Definition::Input })
    }

    /// Reads a tensor that is computed.
    fn tensor(&mut self) -> Parsed<Tensor> {
        let (name, dtype) = self.head()?;
        let own = self.separated("]", Self::axis)?;
        self.expect("=")?;
        let full = |axes: &[Axis]| -> Vec<Axis> {
            axes.iter().map(|a| Axis { var: axis(&name, a.var.as_str()), extent: a.extent }).collect()
        };
        let bound = |e: Expr, axes: &[Axis]| {
            e.substitute(&|v| axes.iter().any(|a| &a.var == v).then(|| Expr::Var(axis(&name, v.as_str()))))
        };
        let at = self.mark();
        let reduction = COMBINERS.iter().find(|c| self.eat_word(c.1)).map(|c| c.0);
        let opened = self.eat("(");
        let definition = match reduction {
            Some(combiner) if opened && self.starts_axis() => {
                let mut start = None;
                let mut reduce = vec![self.axis()?];
                while !self.eat(")") {
                    if self.eat_word("from") {
                        start = Some(bound(self.expr()?, &own));
                        self.expect(")")?;
                        break;
                    }
                    self.expect(",")?;
                    reduce.push(self.axis()?);
                }
                let all: Vec<Axis> = own.iter().chain(&reduce).cloned().collect();
                self.distinct(at, &all)?;
                let all = self.counted(all)?;
                let value = bound(self.expr()?, &all);
                let init = start.unwrap_or_else(|| combiner.identity(dtype));
                Definition::Reduce { axes: full(&reduce), combiner, init, value }
            }
            // `max(a, b)` is a function of two values.
            _ => {
                self.back(at);
                self.distinct(at, &own)?;
                Definition::Compute(bound(self.expr()?, &own))
            }
        };
        Ok(Tensor { axes: self.small(full(&own))?, name, dtype, definition })
    }

    /// Reads a name and an element type, up to the bracket before the dimensions.
    pub(super) fn head(&mut self) -> Parsed<(Name, DType)> {
        let name = self.word("a tensor's name")?;
        self.expect(":")?;
        let dtype = self.dtype()?;
        self.expect("[")?;
        Ok((name, dtype))
    }

    pub(super) fn extent(&mut self) -> Parsed<i64> {
        let at = self.mark();
        match self.whole()? {
            n if n >= 1 => Ok(n),
            n => self.fail_at(at, &format!("an extent of at least 1 (it is {n})")),
        }
    }

    fn axis(&mut self) -> Parsed<Axis> {
        let at = self.mark();
        let var = self.word("an axis")?;
        if self.size(&var).is_some() {
            return self.fail_at(at, &format!("an axis with another name than the size {var}"));
        }
        if !self.eat_word("in") {
            return self.fail("`in` and the axis' extent");
        }
        Ok(Axis { var, extent: self.extent()? })
    }

    /// Returns whether an axis comes next, not an expression.
    pub(super) fn starts_axis(&mut self) -> bool {
        let at = self.mark();
        let axis = !self.peek_word().is_empty() && self.word("").is_ok() && self.eat_word("in");
        self.back(at);
        axis
    }

    fn distinct(&self, at: usize, axes: &[Axis]) -> Parsed<()> {
        match axes.iter().enumerate().find(|(i, a)| axes[..*i].iter().any(|b| b.var == a.var)) {
            Some((_, a)) => self.fail_at(at, &format!("axes with different names; {} occurs twice", a.var)),
            None => Ok(()),
        }
    }

    /// Checks the number of terms of all sums of a tensor.
    pub(super) fn counted(&self, axes: Vec<Axis>) -> Parsed<Vec<Axis>> {
        match axes.iter().try_fold(1i64, |n, a| n.checked_mul(a.extent)) {
            Some(n) if n <= MAX_TERMS => Ok(axes),
            _ => self.fail(&format!("a tensor whose sums have at most {MAX_TERMS} terms in total")),
        }
    }

    pub(super) fn small(&self, axes: Vec<Axis>) -> Parsed<Vec<Axis>> {
        let elements = axes.iter().try_fold(1i64, |n, a| n.checked_mul(a.extent));
        match elements {
            Some(n) if n <= MAX_ELEMENTS => Ok(axes),
            _ => self.fail(&format!("a tensor of at most {MAX_ELEMENTS} elements")),
        }
    }
}

/// Returns the name of a tensor's axis within the program.
fn axis(tensor: &Name, axis: &str) -> Name {
    format!("{tensor}.{axis}").into()
}

/// Returns an axis' name within its tensor.
fn short<'a>(tensor: &Name, axis: &'a Name) -> &'a str {
    axis.as_str().strip_prefix(tensor.as_str()).and_then(|rest| rest.strip_prefix('.')).unwrap_or(axis.as_str())
}

fn axes(t: &Tensor, axes: &[Axis], f: &mut Formatter<'_>) -> fmt::Result {
    list(axes, f, |a, f| write!(f, "{} in {}", short(&t.name, &a.var), a.extent))
}

impl Display for Tensor {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}[", self.name, self.dtype)?;
        let own = |e: &Expr| e.substitute(&|v| Some(Expr::Var(short(&self.name, v).into())));
        if self.definition == Definition::Input {
            list(&self.axes, f, |a, f| write!(f, "{}", a.extent))?;
            return f.write_char(']');
        }
        axes(self, &self.axes, f)?;
        f.write_str("] = ")?;
        match &self.definition {
            Definition::Input => Ok(()),
            Definition::Compute(value) => write!(f, "{}", own(value)),
            Definition::Reduce { axes: reduce, combiner, init, value } => {
                let word = COMBINERS.iter().find(|c| c.0 == *combiner).map_or("", |c| c.1);
                write!(f, "{word}(")?;
                axes(self, reduce, f)?;
                if *init != combiner.identity(self.dtype) {
                    write!(f, " from {}", own(init))?;
                }
                write!(f, ") {}", own(value))
            }
        }
    }
}

impl Display for Program {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        writeln!(f, "te {} {{", self.name)?;
        for t in &self.tensors {
            let word = if t.definition == Definition::Input {
                "input "
            } else if self.outputs.contains(&t.name) {
                "output "
            } else {
                ""
            };
            writeln!(f, "  {word}{t}")?;
        }
        f.write_str("}\n")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_sign_turns_an_operand_around() {
        let printed = |dtype: &str, value: &str| {
            let text = format!("te t {{\n  input x: {dtype}[4]\n  output y: {dtype}[i in 4] = {value}\n}}");
            let text = parse(&text).unwrap_or_else(|error| panic!("{value}: {error}")).to_string();
            text.rsplit_once("= ").expect("has a value").1.trim_end_matches(['\n', '}']).to_string()
        };
        assert_eq!(printed("i8", "-x[i]"), "0i8 - x[i]");
        assert_eq!(printed("i32", "2i32 * -(x[i] + 1i32)"), "2i32 * (0i32 - (x[i] + 1i32))");
        assert_eq!(printed("i32", "-x[i] * x[i] - -x[i]"), "(0i32 - x[i]) * x[i] - (0i32 - x[i])");
        assert_eq!(printed("i32", "x[i] --2147483648i32"), "x[i] - -2147483648i32");
        assert_eq!(printed("f32", "-exp(-x[i])"), "-0.0f32 - exp(-0.0f32 - x[i])");
        assert_eq!(printed("f32", "max(-inf, - - x[i])"), "max(-inf, -0.0f32 - (-0.0f32 - x[i]))");
        assert_eq!(printed("i8", "x[-i + 3]"), "x[0 - i + 3]");
    }

    #[test]
    fn mistakes_have_a_position() {
        let wrong = |body: &str| parse(&format!("te t {{\n  input x: i8[4]\n  {body}\n}}")).unwrap_err().to_string();
        assert_eq!(wrong("output y: i8[i in 4] = z[i]"), "line 3, column 26: expected a declared buffer, found `z[i]`");
        assert_eq!(
            wrong("output x: i8[i in 4] = x[i]"),
            "line 3, column 3: expected another name than x, which is taken, found `output x: i8`"
        );
        assert_eq!(
            wrong("output y: i8[i in 4, i in 4] = x[i]"),
            "line 3, column 34: expected axes with different names; i occurs twice, found `x[i]`"
        );
        assert_eq!(
            wrong("output y: i8[i in 0] = x[i]"),
            "line 3, column 21: expected an extent of at least 1 (it is 0), found `0] = x[i]`"
        );
        assert_eq!(
            wrong("y: i8[i in 4] = x[i]"),
            "line 4, column 2: expected at least one `output` before the end of the program, found ``"
        );
        assert_eq!(
            wrong("output y: i8[i in 4] = 1i8 + sum(k in 4) x[k]"),
            "line 3, column 32: sum over an axis must be all of a tensor's value; define a tensor for it"
        );
        assert!(wrong("output y: f32[i in 4] = 0f32").contains("expected a float with a point, such as 0.0f32,"));
        assert!(wrong("output y: f32[i in 4] = 0.5").contains("expected a float with its type, such as 0.5f32,"));
        assert!(wrong("output y: i32[i in 65536, j in 65536] = 0i32").contains("at most"));
        assert!(wrong("output y: i32[] = sum(i in 4294967296, j in 4294967296) 1i32").contains("at most"));
        assert!(wrong(&format!("output y: i32[] = {}1i32", "-".repeat(100_000))).contains("nesting of at most"));
        // An operator chain is a tree as deep as it is long.
        assert!(wrong(&format!("output y: i32[] = 1i32{}", " + 1i32".repeat(100_000))).contains("at most"));
    }
}
