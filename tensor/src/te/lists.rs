//! Lists of numbers in expressions, such as `[0, 4, 7 x 3][i]`: their text form, and the same as choices.

use std::fmt::{self, Formatter};
use std::sync::Arc;

use super::print::list;
use super::read::{Parsed, Reader};
use super::{Expr, scalar};

/// Most numbers of a list.
const MOST: usize = 1 << 24;

/// Writes a list; `7 x 3` is three times 7.
pub(super) fn write(numbers: &[i64], f: &mut Formatter<'_>) -> fmt::Result {
    let runs: Vec<&[i64]> = numbers.chunk_by(|a, b| a == b).collect();
    f.write_str("[")?;
    list(&runs, f, |run, f| match run {
        [one] => write!(f, "{one}"),
        many => write!(f, "{} x {}", many[0], many.len()),
    })?;
    f.write_str("]")
}

impl Reader<'_> {
    /// Reads a list of numbers behind its `[`, and the index of one of them.
    pub(super) fn pick(&mut self) -> Parsed<Expr> {
        let mut numbers: Vec<i64> = Vec::new();
        let start = self.mark();
        let runs = self.separated("]", |r| {
            let negative = r.eat("-");
            let number = r.integer()?;
            let count = if r.eat_word("x") { r.integer()? } else { 1 };
            Ok((if negative { -number } else { number }, count))
        })?;
        for (number, count) in runs {
            match usize::try_from(count).ok().filter(|count| *count <= MOST - numbers.len()) {
                Some(count) => numbers.extend(std::iter::repeat_n(number, count)),
                None => return self.refuse_at(start, format!("a list has at most {MOST} numbers")),
            }
        }
        if numbers.is_empty() {
            return self.refuse_at(start, "a list needs a number".into());
        }
        self.expect("[")?;
        let index = self.expr()?;
        self.expect("]")?;
        Ok(Expr::pick(numbers, index))
    }
}

/// Returns a number of a list as choices, for code that has no lists.
pub fn by_choices(numbers: &Arc<[i64]>, index: &Expr) -> Expr {
    let mut runs: Vec<(i64, i64)> = Vec::new();
    for (at, number) in (0..).zip(numbers.iter()) {
        if runs.last().is_none_or(|run| run.1 != *number) {
            runs.push((at, *number));
        }
    }
    fn of(runs: &[(i64, i64)], index: &Expr) -> Expr {
        match runs {
            [] => Expr::int(scalar::pick(&[], 0)),
            [(_, number)] => Expr::int(*number),
            _ => {
                let (a, b) = runs.split_at(runs.len() / 2);
                index.clone().lt(Expr::int(b[0].0)).select(of(a, index), of(b, index))
            }
        }
    }
    of(&runs, index)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::te::{Name, text};
    use crate::tir::{affine::interval, evaluate, simplify};

    #[test]
    fn lists_read_back_and_have_the_value_of_choices() {
        let source = "te t {\n  output y: i64[i in 9] = [4, -7 x 3, 0, 9 x 2][i - 1] + [5][i]\n}\n";
        let program = text::parse(source).unwrap();
        assert_eq!(text::parse(&program.to_string()).unwrap(), program);
        let y = evaluate(&program, &[]).unwrap().remove(0);
        let values: Vec<i64> = (0..9).filter_map(|i| y.get(i)).map(|v| v.int()).collect();
        assert_eq!(values, [9, 9, -2, -2, -2, 5, 14, 14, 14]);
        let numbers: Arc<[i64]> = [4, -7, -7, -7, 0, 9, 9].into();
        let i = || Expr::var("i");
        let (list, choices) = (Expr::pick(numbers.clone(), i()), by_choices(&numbers, &i()));
        for at in -2..9 {
            let known = |_: &Name| Some(Expr::int(at));
            let value = |e: &Expr| simplify(&e.substitute(&known), &Default::default());
            assert_eq!(value(&list), Expr::int(scalar::pick(&numbers, at)));
            assert_eq!(value(&list), value(&choices));
        }
        let bounds = [(Name::from("i"), (2, 4))].into_iter().collect();
        assert_eq!(interval(&list, &bounds), Some((-7, 0)));
    }

    #[test]
    fn wrong_lists_are_refused() {
        for (list, why) in [("[]", "needs a number"), ("[1, x]", "a number"), ("[1 x 99999999]", "at most")] {
            let e = text::parse(&format!("te t {{\n  output y: i64[i in 9] = {list}[i]\n}}\n")).unwrap_err();
            assert!(e.to_string().contains(why), "{e}");
        }
    }
}
