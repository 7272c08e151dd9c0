//! The space of an operator's plans: named decisions, each with its possible values.
//!
//! A plan is written as [`Decisions`] and read back from them, so that plans can be drawn, changed, stored and replayed
//! without knowledge of their operator. A space holds all combinations of values; an operator refuses those that do not
//! fit, with the reason.

use super::parts::parts;
use serde::{Deserialize, Serialize};
use std::collections::BTreeMap;
use std::fmt;

/// The value of a decision.
#[derive(Debug, Clone, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(untagged)]
pub enum Choice {
    /// A size or a count.
    Number(usize),
    /// One of several ways.
    Word(String),
}

impl From<usize> for Choice {
    fn from(number: usize) -> Choice {
        Choice::Number(number)
    }
}

impl From<&str> for Choice {
    fn from(word: &str) -> Choice {
        Choice::Word(word.into())
    }
}

impl fmt::Display for Choice {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Choice::Number(number) => write!(f, "{number}"),
            Choice::Word(word) => write!(f, "{word}"),
        }
    }
}

/// The decisions of a plan by their names.
#[derive(Debug, Clone, Default, PartialEq, Eq, Hash, PartialOrd, Ord, Serialize, Deserialize)]
#[serde(transparent)]
pub struct Decisions(pub BTreeMap<String, Choice>);

impl Decisions {
    /// Decisions in any order.
    pub fn new<'a>(list: impl IntoIterator<Item = (&'a str, Choice)>) -> Decisions {
        Decisions(list.into_iter().map(|(name, choice)| (name.to_string(), choice)).collect())
    }

    /// Returns these decisions and those of `other`.
    pub fn and(mut self, other: Decisions) -> Decisions {
        self.0.extend(other.0);
        self
    }

    /// A decision for a number that is at least 1 and at most `most`.
    ///
    /// # Errors
    /// The decision is missing, is a word, or is out of range.
    pub fn size(&self, name: &str, most: usize) -> Result<usize, String> {
        match self.0.get(name) {
            Some(Choice::Number(n)) if (1..=most).contains(n) => Ok(*n),
            Some(other) => Err(format!("the decision {name} is {other}, but must be in 1..={most}")),
            None => Err(format!("the decision {name} is missing")),
        }
    }

    /// A decision for one of several words; returns its position.
    ///
    /// # Errors
    /// The decision is missing or is not one of the words.
    pub fn word(&self, name: &str, words: &[&str]) -> Result<usize, String> {
        let found = self.0.get(name).ok_or_else(|| format!("the decision {name} is missing"))?;
        let at = words.iter().position(|word| *found == Choice::from(*word));
        at.ok_or_else(|| format!("the decision {name} is {found}, but must be one of: {}", words.join(", ")))
    }
}

impl fmt::Display for Decisions {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let list: Vec<String> = self.0.iter().map(|(name, choice)| format!("{name}={choice}")).collect();
        write!(f, "{}", list.join(" "))
    }
}

/// A decision with its possible values.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Knob {
    /// Name of the decision.
    pub name: String,
    /// Its possible values, in an order in which neighbors are similar.
    pub values: Vec<Choice>,
}

/// Up to this size of a part, every size is a value.
const ALL_SIZES: usize = 64;

impl Knob {
    /// The size of a part of `size` elements. The last part can be smaller than the others.
    pub fn size(name: &str, size: usize) -> Knob {
        let mut sizes: Vec<usize> = (1..=size.min(ALL_SIZES)).collect();
        sizes.extend(parts(size));
        sizes.extend((0..usize::BITS).map(|bit| 1 << bit).take_while(|power| *power < size));
        sizes.sort_unstable();
        sizes.dedup();
        Knob { name: name.into(), values: sizes.into_iter().map(Choice::Number).collect() }
    }

    /// One of several words.
    pub fn words(name: &str, words: &[&str]) -> Knob {
        Knob { name: name.into(), values: words.iter().map(|word| Choice::from(*word)).collect() }
    }
}

/// All plans of a layer: one or more forms, each with decisions of its own.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Space {
    /// The forms.
    pub forms: Vec<Vec<Knob>>,
}

impl Space {
    /// A space of one form.
    pub fn of(knobs: Vec<Knob>) -> Space {
        Space { forms: vec![knobs] }
    }

    /// Number of combinations of values, including those that do not fit.
    pub fn combinations(&self) -> u64 {
        let of_form = |knobs: &Vec<Knob>| knobs.iter().fold(1u64, |n, knob| n.saturating_mul(knob.values.len() as u64));
        self.forms.iter().map(of_form).fold(0, u64::saturating_add)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sizes_include_uneven_parts() {
        let values = |size| Knob::size("rows", size).values;
        assert_eq!(values(3), [1, 2, 3].map(Choice::from));
        assert!(values(1).len() == 1 && values(1000).contains(&Choice::from(500)) && values(1000).len() < 140);
        let space = Space { forms: vec![vec![Knob::size("a", 3), Knob::words("b", &["x", "y"])], vec![]] };
        assert_eq!(space.combinations(), 7);
    }

    #[test]
    fn decisions_say_what_is_wrong() {
        let decisions = Decisions::new([("rows", 7.into()), ("order", "pixels".into())]);
        assert_eq!(decisions.size("rows", 7), Ok(7));
        assert_eq!(decisions.size("rows", 6).unwrap_err(), "the decision rows is 7, but must be in 1..=6");
        assert_eq!(decisions.size("order", 6).unwrap_err(), "the decision order is pixels, but must be in 1..=6");
        assert_eq!(decisions.size("columns", 6).unwrap_err(), "the decision columns is missing");
        assert_eq!(decisions.word("order", &["channels", "pixels"]), Ok(1));
        let wrong = decisions.word("order", &["channels"]).unwrap_err();
        assert_eq!(wrong, "the decision order is pixels, but must be one of: channels");
        assert_eq!(decisions.to_string(), "order=pixels rows=7");
    }
}
