//! One interface for objects that a person can read and write: a text and a JSON form of each.
//!
//! | object | text | JSON |
//! |---|---|---|
//! | graph | its operators, one in a line; large constants follow as comments | the text and the constants |
//! | tensor expression, schedule file | the text of `.te` files | the text |
//! | hardware configuration | TOML | an object of the parameters |
//! | manifest of an artifact | JSON, indented | the same object |

use serde_json::Value;

/// A text or a JSON value that is not the form of an object.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("this is no {kind}: {reason}")]
pub struct FormError {
    /// What was expected.
    pub kind: &'static str,
    /// What is wrong, with the place in the text.
    pub reason: String,
}

impl FormError {
    /// An error of a kind of object, with the reason in the reader's words.
    pub fn new(kind: &'static str, reason: impl std::fmt::Display) -> FormError {
        FormError { kind, reason: reason.to_string() }
    }
}

/// An object with a text form and a JSON form. Reading what was written gives an equal object.
pub trait Form: Sized {
    /// What it is, for messages.
    const KIND: &'static str;

    /// The object as text.
    fn to_text(&self) -> String;

    /// Reads an object from its text.
    ///
    /// # Errors
    /// [`FormError`] with everything that the object's reader finds.
    fn from_text(text: &str) -> Result<Self, FormError>;

    /// The object as JSON; by default an object with its text.
    fn to_json(&self) -> Value {
        serde_json::json!({ "text": self.to_text() })
    }

    /// Reads an object from its JSON.
    ///
    /// # Errors
    /// [`FormError`].
    fn from_json(json: &Value) -> Result<Self, FormError> {
        let text = json["text"].as_str().ok_or_else(|| FormError::new(Self::KIND, "the key `text` is missing"))?;
        Self::from_text(text)
    }
}
