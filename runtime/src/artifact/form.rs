//! The text and JSON forms of a manifest. Reading them does not check what only the whole artifact shows, such as the
//! sizes of its data; [`Artifact::new`](super::Artifact::new) does.

use serde_json::Value;
use tilewright_hw::form::{Form, FormError};

use super::Manifest;

impl Form for Manifest {
    const KIND: &'static str = "manifest";

    fn to_text(&self) -> String {
        serde_json::to_string_pretty(self).unwrap_or_default()
    }

    fn from_text(text: &str) -> Result<Manifest, FormError> {
        serde_json::from_str(text).map_err(|error| FormError::new(Self::KIND, error))
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn from_json(json: &Value) -> Result<Manifest, FormError> {
        serde_json::from_value(json.clone()).map_err(|error| FormError::new(Self::KIND, error))
    }
}
