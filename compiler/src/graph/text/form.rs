//! The graph's text and JSON forms with all constants in them.

use serde_json::{Value, json};
use tilewright_hw::form::{Form, FormError};

use super::{Blobs, parse, print_with_blobs};
use crate::graph::Graph;

/// A line with a large constant; `#` makes it a comment of the graph's text.
const BLOB: &str = "# blob ";

impl Form for Graph {
    const KIND: &'static str = "graph";

    fn to_text(&self) -> String {
        let (mut text, blobs) = print_with_blobs(self);
        for (hash, bytes) in &blobs {
            text += &format!("{BLOB}{hash} {}\n", hex(bytes));
        }
        text
    }

    fn from_text(text: &str) -> Result<Graph, FormError> {
        let mut blobs = Blobs::new();
        for line in text.lines().filter_map(|line| line.strip_prefix(BLOB)) {
            let (hash, bytes) = line.split_once(' ').unwrap_or((line, ""));
            blobs.insert(hash.to_string(), bytes_of(hash, bytes)?);
        }
        parse(text, &blobs).map_err(|error| FormError::new(Self::KIND, error))
    }

    fn to_json(&self) -> Value {
        let (text, blobs) = print_with_blobs(self);
        let constants: serde_json::Map<_, _> =
            blobs.into_iter().map(|(hash, bytes)| (hash, Value::from(hex(&bytes)))).collect();
        json!({ "text": text, "constants": constants })
    }

    fn from_json(json: &Value) -> Result<Graph, FormError> {
        let wrong = |what: &str| FormError::new(Self::KIND, what);
        let text = json["text"].as_str().ok_or_else(|| wrong("the key `text` is missing"))?;
        let constants = json["constants"].as_object().ok_or_else(|| wrong("the key `constants` is missing"))?;
        let mut blobs = Blobs::new();
        for (hash, bytes) in constants {
            blobs.insert(hash.clone(), bytes_of(hash, bytes.as_str().unwrap_or("-"))?);
        }
        parse(text, &blobs).map_err(|error| FormError::new(Self::KIND, error))
    }
}

fn hex(bytes: &[u8]) -> String {
    bytes
        .iter()
        .flat_map(|byte| [byte >> 4, byte & 15])
        .filter_map(|digit| char::from_digit(digit.into(), 16))
        .collect()
}

fn bytes_of(hash: &str, text: &str) -> Result<Vec<u8>, FormError> {
    let wrong = || FormError::new(Graph::KIND, format!("constant {hash}: its bytes are not hexadecimal"));
    let digit = |c: &u8| char::from(*c).to_digit(16).map(|digit| digit as u8);
    let digits: Vec<u8> = text.trim_end().as_bytes().iter().map(digit).collect::<Option<_>>().ok_or_else(wrong)?;
    match digits.as_chunks::<2>() {
        (pairs, []) => Ok(pairs.iter().map(|[high, low]| high << 4 | low).collect()),
        _ => Err(wrong()),
    }
}
