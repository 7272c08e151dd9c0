//! The input channels at which the output tiles of a product with groups begin.

use crate::te::Expr;

/// The first block of the input of each output tile.
pub struct FirstBlocks {
    /// Empty if all channels are one group.
    pub of_tiles: Vec<i64>,
    /// Output tiles of a block of the output.
    pub out_ratio: usize,
}

impl FirstBlocks {
    /// Returns the first block of each block of the output, if the tiles of a block share it.
    fn of_blocks(&self) -> Option<Vec<i64>> {
        let blocks = self.of_tiles.chunks(self.out_ratio);
        blocks.map(|tiles| tiles.iter().all(|first| *first == tiles[0]).then_some(tiles[0])).collect()
    }

    /// Whether they are the same distance apart, so that a part of the output reads a part of the input.
    pub fn is_even(&self) -> bool {
        step(&self.of_tiles).is_some() || self.of_blocks().is_some_and(|firsts| step(&firsts).is_some())
    }

    /// Returns the first block for a block of the output and an output tile; `None` if all channels are one group.
    pub fn at(&self, out_block: &Expr, out_tile: &Expr) -> Option<Expr> {
        match self.of_blocks() {
            _ if self.of_tiles.is_empty() => None,
            Some(firsts) if step(&self.of_tiles).is_none() => Some(by_cases(&firsts, out_block)),
            _ => Some(by_cases(&self.of_tiles, out_tile)),
        }
    }
}

/// Returns the distance of numbers that begin with 0 and are all the same distance apart.
fn step(list: &[i64]) -> Option<i64> {
    let each = list.get(1).copied().unwrap_or(0);
    (0..).zip(list).all(|(i, number)| *number == i * each).then_some(each)
}

/// Returns the number of a list at an index: a sum for each part of the list whose numbers are the same distance apart.
pub fn by_cases(list: &[i64], at: &Expr) -> Expr {
    if let Some(each) = step(list) {
        return at.clone() * each;
    }
    let mut parts: Vec<(usize, i64, i64)> = Vec::new();
    let mut first = 0;
    while first < list.len() {
        let each = list.get(first + 1).map_or(0, |next| next - list[first]);
        let more = list[first..].windows(2).take_while(|pair| pair[1] - pair[0] == each).count();
        parts.push((first, list[first] - each * first as i64, each));
        first += 1 + more;
    }
    let value = |&(_, constant, each): &(usize, i64, i64)| match each {
        0 => Expr::int(constant),
        _ => at.clone() * each + Expr::int(constant),
    };
    let last = parts.last().map_or(Expr::int(0), value);
    let ends = parts.windows(2).rev().map(|pair| (&pair[0], pair[1].0 as i64));
    ends.fold(last, |rest, (part, end)| at.clone().lt(Expr::int(end)).select(value(part), rest))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn uneven_tiles_begin_by_cases() {
        let firsts = |of_tiles: &[i64], out_ratio| FirstBlocks { of_tiles: of_tiles.to_vec(), out_ratio };
        assert!(firsts(&[0, 2, 4, 6], 1).is_even() && firsts(&[0, 0, 1, 1, 2, 2], 2).is_even());
        assert!(!firsts(&[0, 0, 1, 1], 1).is_even() && !firsts(&[0, 0, 1, 3, 3, 3], 2).is_even());
        let (block, tile) = (Expr::Var("b".into()), Expr::Var("t".into()));
        for (list, ratio) in
            [(vec![0, 2, 4], 1), (vec![0, 0, 1, 3, 3, 3], 1), (vec![0, 0, 2, 2, 3, 3], 2), (vec![5], 1)]
        {
            let at = firsts(&list, ratio).at(&block, &tile).unwrap();
            for (t, first) in list.iter().enumerate() {
                let known = |v: &crate::te::Name| Some(Expr::int(if v.as_str() == "t" { t } else { t / ratio } as i64));
                let value = crate::tir::simplify(&at.substitute(&known), &Default::default());
                assert_eq!(value, Expr::int(*first), "{list:?}: {at}");
            }
        }
        assert_eq!(firsts(&[], 1).at(&block, &tile), None);
    }
}
