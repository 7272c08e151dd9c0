//! `call`: describes a server, and calls its functions.

use std::path::Path;

use anyhow::{Context, Result, bail};
use tilewright::device::{DeviceKind, open_functions};
use tilewright_runtime::npy;
use tilewright_runtime::value::Value;

use super::{Verdict, write_or_print};

/// Arguments of `call`.
#[derive(clap::Args)]
pub struct Call {
    /// The server: remote:HOST:PORT, or tracker:HOST:PORT/KIND
    #[arg(value_name = "SERVER")]
    server: DeviceKind,
    /// The function; without it, the names of all are printed
    function: Option<String>,
    /// Its arguments: numbers, @FILE.npy for a tensor, @FILE for bytes; anything else is a text
    #[arg(allow_negative_numbers = true)]
    arguments: Vec<String>,
    /// File for a result that is a tensor (.npy) or bytes
    #[arg(short, long, value_name = "FILE")]
    output: Option<std::path::PathBuf>,
}

/// An argument as its text says. What has no digit is no number, so that `inf` and `nan` are texts.
fn argument(text: &str) -> Result<Value> {
    if let Some(path) = text.strip_prefix('@') {
        let path = Path::new(path);
        return Ok(match path.extension().is_some_and(|extension| extension == "npy") {
            true => npy::read(path)?.into(),
            false => Value::Bytes(std::fs::read(path).with_context(|| path.display().to_string())?.into()),
        });
    }
    let is_number = text.contains(|c: char| c.is_ascii_digit());
    Ok(match (text.parse::<i64>(), text.parse::<f64>()) {
        (Ok(integer), _) => integer.into(),
        (_, Ok(float)) if is_number => float.into(),
        _ => text.into(),
    })
}

impl Call {
    pub fn run(self) -> Result<Verdict> {
        let remote = open_functions(self.server, None)?;
        let module = remote.module();
        let Some(name) = &self.function else {
            let names: String = module.names().into_iter().map(|name| name + "\n").collect();
            write_or_print(None, names.as_bytes())?;
            return Ok(Verdict::Fine);
        };
        let arguments = self.arguments.iter().map(|text| argument(text)).collect::<Result<Vec<Value>>>()?;
        let result = module.function(name)?.call(&arguments)?;
        match (&self.output, &result) {
            (None, Value::None) => {}
            (None, _) => write_or_print(None, format!("{result}\n").as_bytes())?,
            (Some(path), Value::Tensor(tensor)) => npy::write(path, tensor)?,
            (Some(path), Value::Bytes(bytes)) => write_or_print(Some(path), bytes)?,
            (Some(_), other) => bail!("{name} returned {}, not a tensor or bytes; leave out --output", other.kind()),
        }
        Ok(Verdict::Fine)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn arguments_are_what_they_look_like() {
        let text = |given: &str| argument(given).unwrap().to_string();
        assert_eq!(["-3", "2.5", "abc", "1x"].map(text), ["-3", "2.5", "\"abc\"", "\"1x\""]);
        for word in ["nan", "inf", "-inf", "infinity", "NaN"] {
            assert_eq!(text(word), format!("\"{word}\""));
        }
        assert!(argument("@none").unwrap_err().to_string().contains("none"));
    }
}
