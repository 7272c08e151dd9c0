//! The limit of memory that an import can take.

/// Bytes that an import can still take. Files are small beside what they can ask for, so whatever a file can make large
/// counts: constants, tables, names, and nodes that one node becomes.
pub(super) struct Room(usize);

impl Room {
    /// Sixteen times the size of a file and its data, and `beside` for what depends on shapes.
    pub fn of(bytes: usize, beside: usize) -> Room {
        Room(bytes.saturating_mul(16).saturating_add(beside))
    }

    /// Adds what data beside the file allow.
    pub fn extend(&mut self, bytes: usize) {
        self.0 = self.0.saturating_add(bytes.saturating_mul(16));
    }

    /// Takes bytes; `None` is more than can be counted.
    ///
    /// # Errors
    /// If fewer are left; `what` says what is too much.
    pub fn take(&mut self, bytes: Option<usize>, what: impl FnOnce() -> String) -> Result<(), String> {
        let left = bytes.and_then(|bytes| self.0.checked_sub(bytes));
        self.0 = left.ok_or_else(|| format!("{}, which is too much for a file of this size", what()))?;
        Ok(())
    }

    /// Takes bytes for something with this name.
    ///
    /// # Errors
    /// If fewer are left.
    pub fn take_for(&mut self, bytes: usize, name: &str) -> Result<(), String> {
        self.take(Some(bytes), || format!("`{name}` needs {bytes} bytes"))
    }
}
