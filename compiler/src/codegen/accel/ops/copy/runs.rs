//! Rows and columns of a copy as runs with a stride.

/// Rows or columns `first + k * step` of the result, read from `source + k * stride`, for `k` in `0..count`.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct StridedRun {
    pub first: usize,
    pub step: usize,
    pub count: usize,
    pub source: usize,
    pub stride: usize,
}

/// Maximum number of interleaved runs into which a map is split. Enlarging by a factor needs that many.
const MOST_PHASES: usize = 8;

/// Splits a map of rows or columns into runs: a few interleaved runs if possible, otherwise consecutive ones. `first` is
/// the row or column of the result for the map's first element.
pub fn runs(first: usize, map: &[usize]) -> Vec<StridedRun> {
    let run = |at: usize, step: usize| -> Option<StridedRun> {
        let values: Vec<usize> = map[at..].iter().copied().step_by(step).collect();
        let stride = if values.len() > 1 { values[1].checked_sub(values[0])? } else { 0 };
        let affine = values.iter().enumerate().all(|(k, &v)| v == values[0] + k * stride);
        affine.then_some(StridedRun { first: first + at, step, count: values.len(), source: values[0], stride })
    };
    for step in 1..=MOST_PHASES.min(map.len()) {
        if let Some(found) = (0..step).map(|at| run(at, step)).collect() {
            return found;
        }
    }
    let mut found: Vec<StridedRun> = Vec::new();
    for (i, &v) in map.iter().enumerate() {
        match found.last_mut() {
            Some(r) if r.count == 1 && v >= r.source => (r.count, r.stride) = (2, v - r.source),
            Some(r) if r.count > 1 && v == r.source + r.count * r.stride => r.count += 1,
            _ => found.push(StridedRun { first: first + i, step: 1, count: 1, source: v, stride: 0 }),
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn runs_say_the_map() {
        let maps: [&[usize]; 6] =
            [&[3, 4, 5, 6], &[0, 0, 1, 1, 2, 2], &[0, 2, 4], &[5], &[0, 0, 0, 1, 1, 2, 2, 2, 3], &[4, 3, 9, 1, 1]];
        for map in maps {
            let mut found = vec![usize::MAX; map.len()];
            for r in runs(7, map) {
                (0..r.count).for_each(|k| found[r.first - 7 + k * r.step] = r.source + k * r.stride);
            }
            assert_eq!(found, map);
        }
        assert_eq!(runs(0, maps[1]).len(), 2);
    }
}
