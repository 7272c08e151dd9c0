//! Steps of a schedule as text: each a primitive and its operands.

use crate::schedule::Step;

/// The step of a text without line breaks.
pub fn parse(line: &str) -> Result<Step, String> {
    let words: Vec<String> = line.split_whitespace().map(String::from).collect();
    let Some((primitive, operands)) = words.split_first() else { return Err("a step is missing".into()) };
    let wrong = |usage: &str| format!("`{line}` is no step; write: {primitive} {usage}");
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
            let factors = factors.iter().map(|n| n.parse()).collect::<Result<_, _>>().map_err(|_| wrong(usage))?;
            Step::Split { target: target.clone(), factors }
        }
        "fuse" => two("OUTER INNER").map(|(outer, inner)| Step::Fuse { outer, inner })?,
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
        "set_scope" => two("BUFFER SCOPE").map(|(buffer, scope)| Step::SetScope { buffer, scope })?,
        "compact" => Step::Compact { buffer: one("BUFFER")? },
        "annotate" => two("LOOP KIND").map(|(target, kind)| Step::Annotate { target, kind })?,
        "bind" => two("LOOP PLACE").map(|(target, place)| Step::Bind { target, place })?,
        "decompose_reduction" => two("BLOCK LOOP").map(|(block, target)| Step::DecomposeReduction { block, target })?,
        "tensorize" => two("LOOP INTRINSIC").map(|(target, intrinsic)| Step::Tensorize { target, intrinsic })?,
        _ => return Err(format!("there is no primitive `{primitive}`")),
    })
}
