//! The text and JSON forms of tensor expressions and of files with a schedule.

use tilewright_hw::form::{Form, FormError};

use crate::schedule::file::{self, File};
use crate::te::{Program, text};

impl Form for Program {
    const KIND: &'static str = "tensor expression";

    fn to_text(&self) -> String {
        self.to_string()
    }

    fn from_text(given: &str) -> Result<Program, FormError> {
        text::parse(given).map_err(|error| FormError::new(Self::KIND, error))
    }
}

impl Form for File {
    const KIND: &'static str = "schedule";

    fn to_text(&self) -> String {
        self.to_string()
    }

    fn from_text(given: &str) -> Result<File, FormError> {
        file::parse(given).map_err(|error| FormError::new(Self::KIND, error))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const TEXT: &str = "te row_sums {\n  input x: i8[4, 8]\n  output y: i32[i in 4] = sum(k in 8) i32(x[i, k])\n}\n\
                        schedule {\n  split y.i 2\n}\n";

    #[test]
    fn expressions_and_schedules_are_read_back() {
        let file = File::from_text(TEXT).unwrap();
        let again = File::from_json(&file.to_json()).unwrap();
        assert_eq!(again.to_text(), file.to_text());
        assert_eq!(again.steps.len(), 1);
        let program = Program::from_text(&file.program.to_text()).unwrap();
        assert_eq!(program, file.program);
        assert_eq!(Program::from_json(&program.to_json()).unwrap(), program);
        let error = Program::from_text("te x {").unwrap_err().to_string();
        assert!(error.starts_with("this is no tensor expression: "), "{error}");
        assert!(Program::from_json(&serde_json::json!(3)).is_err());
    }
}
