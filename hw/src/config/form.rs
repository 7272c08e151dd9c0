//! The text and JSON forms of a configuration.

use serde_json::Value;

use super::HwConfig;
use crate::form::{Form, FormError};

impl Form for HwConfig {
    const KIND: &'static str = "hardware configuration";

    fn to_text(&self) -> String {
        self.to_toml()
    }

    fn from_text(text: &str) -> Result<HwConfig, FormError> {
        HwConfig::parse("the text", text).map_err(|error| FormError::new(Self::KIND, error))
    }

    fn to_json(&self) -> Value {
        serde_json::to_value(self).unwrap_or_default()
    }

    fn from_json(json: &Value) -> Result<HwConfig, FormError> {
        let text = toml::to_string(json).map_err(|error| FormError::new(Self::KIND, error))?;
        HwConfig::from_text(&text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::PRESETS;

    #[test]
    fn every_preset_is_read_back_from_both_forms() {
        for (name, text) in PRESETS {
            let config = HwConfig::parse(name, text).unwrap();
            assert_eq!(HwConfig::from_text(&config.to_text()).unwrap(), config, "{name}");
            assert_eq!(HwConfig::from_json(&Form::to_json(&config)).unwrap(), config, "{name}");
        }
        let error = HwConfig::from_json(&serde_json::json!({ "batch": 3, "block_in": 5 })).unwrap_err().to_string();
        assert!(error.contains("batch: is 3") && error.contains("block_in: is 5"), "{error}");
    }
}
