//! Micro-ops that repeat at a distance, as a loop of an instruction.

use tilewright_driver::{Dim, Nest};

/// Fewest micro-ops that a loop must save. A loop needs instructions of its own, and micro-ops are loaded once.
const LEAST_SAVED: usize = 32;

/// Divides the micro-ops of a nest: those of the first period but the first, which is elsewhere; a loop over the other
/// whole periods; and the rest. Without periods, or if an instruction of `loops` loops has none left for them, the result
/// is the nest. Parts without micro-ops are left out.
///
/// `nest` has the first micro-op too, but the result does not.
pub fn periods(nest: &Nest, loops: usize) -> Vec<Nest> {
    let mut parts = divided(nest, loops);
    parts.retain(|part| !part.body.is_empty());
    parts
}

fn divided(nest: &Nest, loops: usize) -> Vec<Nest> {
    let body = &nest.body;
    let others = Nest { body: body[1..].to_vec(), ..nest.clone() };
    let used = nest.dims.iter().filter(|d| d.count > 1).count();
    let found = (2..=body.len() / 2).find_map(|length| Some((length, step(body, length)?)));
    let Some((length, step)) = found.filter(|_| used < loops) else { return vec![others] };
    let whole = body.len() / length;
    let rest = &body[whole * length..];
    if (whole - 2) * length < LEAST_SAVED {
        return vec![others];
    }
    let part = |body: &[[u32; 3]]| Nest { body: body.to_vec(), ..nest.clone() };
    let mut looped = part(&body[length..2 * length]);
    looped.dims.push(Dim::new(whole as u32 - 1, step));
    vec![part(&body[1..length]), looped, part(rest)]
}

/// Returns the distance of micro-ops that are `length` apart, if it is the same everywhere.
fn step(body: &[[u32; 3]], length: usize) -> Option<[u32; 3]> {
    let between = |(a, b): (&[u32; 3], &[u32; 3])| -> Option<[u32; 3]> {
        Some([b[0].checked_sub(a[0])?, b[1].checked_sub(a[1])?, b[2].checked_sub(a[2])?])
    };
    let mut steps = body.iter().zip(&body[length..]).map(between);
    let first = steps.next()??;
    steps.all(|step| step == Some(first)).then_some(first)
}

#[cfg(test)]
mod tests {
    use super::*;

    /// All micro-ops in the order in which they run.
    fn run(parts: &[Nest]) -> Vec<[u32; 3]> {
        let mut found = Vec::new();
        for part in parts {
            let loops = &part.dims[..];
            let count = loops.last().map_or(1, |d| d.count);
            for k in 0..count {
                let step = |i: usize| loops.last().map_or(0, |d| d.steps[i] * k);
                found.extend(part.body.iter().map(|u| [u[0] + step(0), u[1] + step(1), u[2] + step(2)]));
            }
        }
        found
    }

    #[test]
    fn windows_are_rows_of_taps() {
        for (rows, columns, left_out) in [(7, 7, 0), (25, 5, 0), (9, 8, 1), (40, 2, 1), (3, 3, 0), (50, 1, 0)] {
            let taps = (0..rows).flat_map(|y| (0..columns).map(move |x| [0, 0, y * 20 + x]));
            let mut body: Vec<[u32; 3]> = taps.collect();
            body.truncate(body.len() - left_out);
            let nest = Nest { at: [0; 3], body: body.clone(), dims: Vec::new() };
            let parts = periods(&nest, 2);
            assert_eq!(run(&parts), body[1..]);
            assert_eq!(parts.len() > 1, rows > 3, "{rows}x{columns}: {parts:?}");
            let taken = Nest { dims: vec![Dim::new(4, [1; 3]); 2], ..nest };
            assert_eq!(periods(&taken, 2).len(), 1);
        }
    }
}
