//! Converts names of values to file names.

use std::collections::BTreeSet;

/// Longest file name without its extension, in bytes; file systems allow 255.
const LONGEST: usize = 200;

/// A unique file name for each value. A name that is valid as a file name stays unchanged. In others, each character
/// that could have a meaning to a shell or file system becomes `_`, and a number makes equal results unique.
pub fn file_names(values: &[&str], ending: &str) -> Vec<String> {
    stems(values).into_iter().map(|name| format!("{name}.{ending}")).collect()
}

/// Like [`file_names`], but without an ending.
pub fn stems(values: &[&str]) -> Vec<String> {
    let plain = |name: &str| -> String {
        let safe = name.chars().map(|c| if c.is_alphanumeric() || "-_.".contains(c) { c } else { '_' });
        let mut text: String = safe.collect::<String>().trim_start_matches('.').to_string();
        while text.len() > LONGEST {
            text.pop();
        }
        if text.is_empty() { "output".to_string() } else { text }
    };
    let mut found: Vec<Option<String>> = vec![None; values.len()];
    let mut taken = BTreeSet::new();
    for (slot, name) in found.iter_mut().zip(values) {
        if plain(name) == **name && taken.insert(name.to_string()) {
            *slot = Some(name.to_string());
        }
    }
    let rest = found.into_iter().zip(values).map(|(slot, name)| {
        slot.unwrap_or_else(|| {
            let text = plain(name);
            let numbered = (2..).map(|n| format!("{text}-{n}"));
            let free = std::iter::once(text.clone()).chain(numbered).find(|name| taken.insert(name.clone()));
            free.unwrap_or(text)
        })
    });
    rest.collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_value_has_a_file_of_its_own() {
        let names = ["a/b", "a_b", "a:b", "logits", "logits", "..", "", ".hidden", "hidden", "a_b-2"];
        let files =
            ["a_b-3", "a_b", "a_b-4", "logits", "logits-2", "output", "output-2", "hidden-2", "hidden", "a_b-2"];
        assert_eq!(file_names(&names, "npy"), files.map(|name| format!("{name}.npy")));
        let long = "ü".repeat(400);
        let files = file_names(&[&long, &long], "npy");
        assert!(files.iter().all(|file| file.len() < 255) && files[0] != files[1], "{files:?}");
    }
}
