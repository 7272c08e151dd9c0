//! Steps of a schedule as text: each a primitive and its operands, such as `split i 4`.

use std::fmt::{self, Display, Formatter};

use super::Step;
use crate::te::{Name, ParseError, read::Reader};

/// Parses steps, one in a line or several between `;`. What follows `//` in a line is a comment. Returns each step with
/// its line, from 1.
///
/// # Errors
/// The line of the first wrong step, and how that step is written.
pub fn parse_steps(text: &str) -> Result<Vec<(usize, Step)>, (usize, String)> {
    parse_sized(text, &[])
}

/// Parses steps as [`parse_steps`] does. Their numbers can be expressions of sizes, without spaces: `split i min(n,8)`.
///
/// # Errors
/// The same as [`parse_steps`].
pub fn parse_sized(text: &str, sizes: &[(Name, i64)]) -> Result<Vec<(usize, Step)>, (usize, String)> {
    let mut steps = Vec::new();
    for (number, line) in (1..).zip(text.lines()) {
        let line = line.split_once("//").map_or(line, |(code, _)| code);
        for step in line.split(';').map(str::trim).filter(|step| !step.is_empty()) {
            steps.push((number, parse_step(step, sizes).map_err(|e| (number, e))?));
        }
    }
    Ok(steps)
}

/// Parses a step.
///
/// # Errors
/// How the step is written, or that there is no such primitive.
pub fn parse(line: &str) -> Result<Step, String> {
    parse_step(line, &[])
}

fn parse_step(line: &str, sizes: &[(Name, i64)]) -> Result<Step, String> {
    let words: Vec<String> = line.split_whitespace().map(String::from).collect();
    let Some((primitive, operands)) = words.split_first() else { return Err("a step is missing".into()) };
    let wrong = |usage: &str| format!("`{line}` is not a step; write: {primitive} {usage}");
    let number = |word: &String, usage: &str| match whole(word, sizes) {
        Err(e) if !sizes.is_empty() => Err(format!("{}: {}", wrong(usage), e.message)),
        other => other.map_err(|_| wrong(usage)),
    };
    let two = |usage: &str| match operands {
        [a, b] => Ok((a.clone(), b.clone())),
        _ => Err(wrong(usage)),
    };
    let one = |usage: &str| match operands {
        [a] => Ok(a.clone()),
        _ => Err(wrong(usage)),
    };
    Ok(match primitive.as_str() {
        "split" => {
            let usage = "LOOP FACTOR...";
            let (target, factors) = operands.split_first().ok_or_else(|| wrong(usage))?;
            let factors = factors.iter().map(|n| number(n, usage)).collect::<Result<_, _>>()?;
            Step::Split { target: target.clone(), factors }
        }
        "fuse" => two("OUTER INNER").map(|(outer, inner)| Step::Fuse { outer, inner })?,
        "merge" => two("FIRST SECOND").map(|(first, second)| Step::Merge { first, second })?,
        "reorder" => Step::Reorder { order: operands.to_vec() },
        "compute_at" => two("BLOCK LOOP").map(|(block, target)| Step::ComputeAt { block, target })?,
        "compute_inline" => Step::ComputeInline { block: one("BLOCK")? },
        "cache_read" => match operands {
            [block, buffer, scope] => {
                Step::CacheRead { block: block.clone(), buffer: buffer.clone(), scope: scope.clone() }
            }
            _ => return Err(wrong("BLOCK BUFFER SCOPE")),
        },
        "cache_write" => two("BLOCK SCOPE").map(|(block, scope)| Step::CacheWrite { block, scope })?,
        "keep" => match operands {
            [block, target, scope] => Step::Keep { block: block.clone(), target: target.clone(), scope: scope.clone() },
            _ => return Err(wrong("BLOCK LOOP SCOPE")),
        },
        "set_scope" => two("BUFFER SCOPE").map(|(buffer, scope)| Step::SetScope { buffer, scope })?,
        "compact" => Step::Compact { buffer: one("BUFFER")? },
        "slots" => {
            let (buffer, count) = two("BUFFER COUNT")?;
            Step::Slots { buffer, count: number(&count, "BUFFER COUNT")? }
        }
        "overlay" => two("BUFFER OTHER").map(|(buffer, other)| Step::Overlay { buffer, other })?,
        "stage" => {
            let (block, stage) = two("BLOCK NUMBER")?;
            Step::Stage { block, number: number(&stage, "BLOCK NUMBER")? }
        }
        "annotate" => two("LOOP KIND").map(|(target, kind)| Step::Annotate { target, kind })?,
        "bind" => two("LOOP PLACE").map(|(target, place)| Step::Bind { target, place })?,
        "omit" => Step::Omit { block: one("BLOCK")? },
        "decompose_padding" => two("BLOCK LOOP").map(|(block, target)| Step::DecomposePadding { block, target })?,
        "decompose_reduction" => two("BLOCK LOOP").map(|(block, target)| Step::DecomposeReduction { block, target })?,
        "split_sum" => two("BLOCK LOOP").map(|(block, target)| Step::SplitSum { block, target })?,
        "tensorize" => two("LOOP INTRINSIC").map(|(target, intrinsic)| Step::Tensorize { target, intrinsic })?,
        _ => return Err(format!("there is no primitive `{primitive}`; there are: {}", PRIMITIVES.join(", "))),
    })
}

/// Names of all primitives.
const PRIMITIVES: [&str; 21] = [
    "split",
    "fuse",
    "merge",
    "reorder",
    "compute_at",
    "compute_inline",
    "cache_read",
    "cache_write",
    "keep",
    "set_scope",
    "compact",
    "slots",
    "overlay",
    "annotate",
    "stage",
    "bind",
    "omit",
    "decompose_padding",
    "decompose_reduction",
    "split_sum",
    "tensorize",
];

/// Reads an expression of numbers and sizes.
fn whole(text: &str, sizes: &[(Name, i64)]) -> Result<i64, ParseError> {
    let mut reader = Reader::new(text);
    reader.sizes = sizes.to_vec();
    let value = reader.whole()?;
    reader.end()?;
    Ok(value)
}

impl Display for Step {
    fn fmt(&self, f: &mut Formatter<'_>) -> fmt::Result {
        match self {
            Step::Split { target, factors } => {
                write!(f, "split {target}")?;
                factors.iter().try_for_each(|n| write!(f, " {n}"))
            }
            Step::Fuse { outer, inner } => write!(f, "fuse {outer} {inner}"),
            Step::Merge { first, second } => write!(f, "merge {first} {second}"),
            Step::Reorder { order } => write!(f, "reorder {}", order.join(" ")),
            Step::ComputeAt { block, target } => write!(f, "compute_at {block} {target}"),
            Step::ComputeInline { block } => write!(f, "compute_inline {block}"),
            Step::CacheRead { block, buffer, scope } => write!(f, "cache_read {block} {buffer} {scope}"),
            Step::CacheWrite { block, scope } => write!(f, "cache_write {block} {scope}"),
            Step::Keep { block, target, scope } => write!(f, "keep {block} {target} {scope}"),
            Step::SetScope { buffer, scope } => write!(f, "set_scope {buffer} {scope}"),
            Step::Compact { buffer } => write!(f, "compact {buffer}"),
            Step::Slots { buffer, count } => write!(f, "slots {buffer} {count}"),
            Step::Overlay { buffer, other } => write!(f, "overlay {buffer} {other}"),
            Step::Stage { block, number } => write!(f, "stage {block} {number}"),
            Step::Annotate { target, kind } => write!(f, "annotate {target} {kind}"),
            Step::Bind { target, place } => write!(f, "bind {target} {place}"),
            Step::Omit { block } => write!(f, "omit {block}"),
            Step::DecomposePadding { block, target } => write!(f, "decompose_padding {block} {target}"),
            Step::DecomposeReduction { block, target } => write!(f, "decompose_reduction {block} {target}"),
            Step::SplitSum { block, target } => write!(f, "split_sum {block} {target}"),
            Step::Tensorize { target, intrinsic } => write!(f, "tensorize {target} {intrinsic}"),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn steps_read_back() {
        let text = "split i 4 2; fuse a b; merge c d; reorder k j i // outermost first\ncompute_at b i; compute_inline b\n\
                    cache_read b x inp; cache_write b acc; keep b i out; set_scope b out; compact b; slots b 3; overlay c b; annotate i pipeline; stage b 1; bind i block_x\n\
                    omit b; decompose_padding b i; decompose_reduction b k; split_sum b i; tensorize i gemm";
        let steps = parse_steps(text).unwrap();
        assert_eq!(steps.len(), PRIMITIVES.len());
        for (name, (_, step)) in PRIMITIVES.iter().zip(&steps) {
            assert!(step.to_string().starts_with(&format!("{name} ")), "{name}: {step}");
        }
        assert_eq!(steps[4], (2, Step::ComputeAt { block: "b".into(), target: "i".into() }));
        for (_, step) in &steps {
            assert_eq!(parse(&step.to_string()).as_ref(), Ok(step));
        }
    }

    #[test]
    fn wrong_steps_say_how_they_are_written() {
        let wrong = |text: &str| parse_steps(text).unwrap_err();
        assert_eq!(
            wrong("split i 2\nsplit i two"),
            (2, "`split i two` is not a step; write: split LOOP FACTOR...".into())
        );
        let sized = |text: &str| parse_sized(text, &[("n".into(), 6)]).map_err(|(_, what)| what);
        let split = Step::Split { target: "i".into(), factors: vec![3, 4] };
        assert_eq!(sized("split i n/2 min(n,4)"), Ok(vec![(1, split)]));
        let e = sized("split i m").unwrap_err();
        assert!(e.ends_with("there is no size m, the sizes are: n, found `m`"), "{e}");
        assert!(sized("slots b n/0").unwrap_err().contains("without a division by 0"));
        let (_, told) = wrong("tensorise i gemm");
        assert!(told.starts_with("there is no primitive `tensorise`; there are: split, fuse, "), "{told}");
    }
}
