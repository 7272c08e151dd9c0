//! The loops of one entry of a scratchpad.

use tilewright_hw::config::HwConfig;

/// How a block loops over an entry: with a loop over batch rows, or without it if there is only one.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Entry {
    rows: Option<u32>,
}

/// Returns the forms in which a block can loop over an entry.
pub fn layouts(config: &HwConfig) -> impl Iterator<Item = Entry> {
    let one = (config.batch == 1).then_some(Entry { rows: None });
    one.into_iter().chain([Entry::of_batch(config)])
}

impl Entry {
    /// With a loop over the configuration's batch rows.
    pub fn of_batch(config: &HwConfig) -> Entry {
        Entry { rows: Some(config.batch) }
    }

    /// Returns the dimensions of an entry whose rows have `last` elements.
    pub fn dims(self, last: u32) -> String {
        self.rows.map_or(format!("[{last}]"), |n| format!("[{n}, {last}]"))
    }

    /// Returns the indices of an element.
    pub fn at(self, last: &str) -> String {
        self.rows.map_or(format!("[{last}]"), |_| format!("[n, {last}]"))
    }

    /// Returns a body with the loop over batch rows around it.
    pub fn around(self, body: &str) -> String {
        self.rows.map_or(body.to_string(), |n| format!("for n in {n} {{ {body} }}"))
    }
}
