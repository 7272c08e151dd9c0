//! Shortens lists of errors for people: the first entries, and how many more there are.

use std::fmt::Display;

/// Most entries of a list that are shown.
pub const SHOWN: usize = 20;

/// Joins the first [`SHOWN`] entries with `between`, followed by the number of those left out.
pub fn first<T: Display>(list: &[T], between: &str) -> String {
    let mut parts: Vec<String> = list.iter().take(SHOWN).map(T::to_string).collect();
    if list.len() > SHOWN {
        parts.push(format!("and {} more", list.len() - SHOWN));
    }
    parts.join(between)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_list_ends_after_twenty_with_a_count() {
        let list: Vec<u32> = (1..=23).collect();
        assert_eq!(first(&list[..3], ", "), "1, 2, 3");
        assert!(first(&list[..20], ", ").ends_with(", 19, 20"));
        assert!(first(&list, "\n").ends_with("\n19\n20\nand 3 more"));
    }
}
