//! The variables of a sum with their coefficients.

use smallvec::SmallVec;

use crate::te::Name;

/// Variables with their coefficients, in order of their names. Most sums have a few, which need no allocation.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct Terms(SmallVec<[(Name, i64); 4]>);

impl Terms {
    /// Returns the variables with their coefficients.
    pub fn iter(&self) -> impl DoubleEndedIterator<Item = (&Name, i64)> {
        self.0.iter().map(|(v, c)| (v, *c))
    }

    /// Returns the variables.
    pub fn keys(&self) -> impl Iterator<Item = &Name> {
        self.0.iter().map(|(v, _)| v)
    }

    /// Returns the coefficients.
    pub fn values(&self) -> impl Iterator<Item = i64> {
        self.0.iter().map(|(_, c)| *c)
    }

    /// Returns the coefficients to change them.
    pub fn values_mut(&mut self) -> impl Iterator<Item = &mut i64> {
        self.0.iter_mut().map(|(_, c)| c)
    }

    /// Returns the coefficient of a variable.
    pub fn get(&self, var: &Name) -> Option<i64> {
        // Most variables are shared, so that this compares addresses.
        self.0.iter().find(|(v, _)| v == var).map(|(_, c)| *c)
    }

    /// Returns whether there are no variables.
    pub fn is_empty(&self) -> bool {
        self.0.is_empty()
    }

    /// Sets the coefficient of a variable.
    pub fn insert(&mut self, var: Name, coefficient: i64) {
        match self.0.last() {
            Some((last, _)) if *last >= var => match self.0.binary_search_by(|(v, _)| v.cmp(&var)) {
                Ok(at) => self.0[at].1 = coefficient,
                Err(at) => self.0.insert(at, (var, coefficient)),
            },
            _ => self.0.push((var, coefficient)),
        }
    }

    /// Removes a variable.
    pub fn remove(&mut self, var: &Name) {
        self.0.retain(|(v, _)| v != var);
    }

    /// Adds the terms of another sum, each times `factor`.
    pub fn add(&mut self, other: &Terms, factor: i64) {
        if self.0.is_empty() && factor != 0 {
            self.0.extend(other.0.iter().map(|(v, c)| (v.clone(), c.wrapping_mul(factor))));
        } else {
            for (v, c) in &other.0 {
                let more = c.wrapping_mul(factor);
                match self.0.iter_mut().find(|(own, _)| own == v) {
                    Some((_, own)) => *own = own.wrapping_add(more),
                    None => self.insert(v.clone(), more),
                }
            }
        }
        self.0.retain(|(_, c)| *c != 0);
    }
}

impl FromIterator<(Name, i64)> for Terms {
    fn from_iter<T: IntoIterator<Item = (Name, i64)>>(terms: T) -> Terms {
        let mut all = Terms::default();
        terms.into_iter().for_each(|(var, coefficient)| all.insert(var, coefficient));
        all
    }
}

impl IntoIterator for Terms {
    type Item = (Name, i64);
    type IntoIter = smallvec::IntoIter<[(Name, i64); 4]>;

    fn into_iter(self) -> Self::IntoIter {
        self.0.into_iter()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use rand::rngs::StdRng;
    use rand::{Rng, SeedableRng};
    use std::collections::BTreeMap;

    #[test]
    fn terms_equal_those_of_a_map() {
        let mut rng = StdRng::seed_from_u64(1);
        let name = |rng: &mut StdRng| Name::from(format!("v{}", rng.random_range(0..9)));
        for _ in 0..200 {
            let mut draw = || -> Vec<(Name, i64)> {
                (0..rng.random_range(0..7)).map(|_| (name(&mut rng), rng.random_range(-2..3))).collect()
            };
            let (a, b) = (draw(), draw());
            let (mut found, mut map): (Terms, BTreeMap<Name, i64>) =
                (a.iter().cloned().collect(), a.iter().cloned().collect());
            let (other, others): (Terms, BTreeMap<Name, i64>) =
                (b.iter().cloned().collect(), b.iter().cloned().collect());
            let factor = rng.random_range(-2..3);
            found.add(&other, factor);
            others.iter().for_each(|(v, c)| *map.entry(v.clone()).or_insert(0) += c * factor);
            map.retain(|_, c| *c != 0);
            let removed = name(&mut rng);
            found.remove(&removed);
            map.remove(&removed);
            assert_eq!(found.clone().into_iter().collect::<Vec<_>>(), map.clone().into_iter().collect::<Vec<_>>());
            assert_eq!(found.get(&removed), None);
            assert!(map.iter().all(|(v, c)| found.get(v) == Some(*c)));
        }
    }
}
