//! Texts of errors, the same on the command line and in Python.

/// Formats an error with its causes in one line, without causes that the text already contains.
pub fn in_one_line(error: &anyhow::Error) -> String {
    error.chain().map(ToString::to_string).fold(String::new(), |text, cause| match text.as_str() {
        "" => cause,
        told if told.contains(&cause) => text,
        told => format!("{told}: {cause}"),
    })
}
