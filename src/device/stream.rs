//! Instruction streams in files: as text, or as binary files with the version and configuration that they were encoded
//! for.
//!
//! ```text
//! offset 0   magic "TWSTREAM"
//!        8   version of the instruction set, u32
//!       12   instructions, u32
//!       16   configuration hash, u64
//!       24   zero, u64
//!       32   instructions, 32 bytes each
//! ```

use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{self, DecodeError, INSN_BYTES, ISA_VERSION, Insn, decode, encode};
use tilewright_hw::list;

const MAGIC: &[u8; 8] = b"TWSTREAM";
const HEADER_BYTES: usize = 32;

/// Why a stream cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum StreamError {
    /// The text has errors; each one contains file, line, column and the line itself.
    #[error("{}", list::first(.0, "\n"))]
    Text(Vec<String>),
    /// Instructions without a text, for example from a stream, are illegal in the configuration; lists all errors.
    #[error("{}", list::first(.0, "\n"))]
    Illegal(Vec<String>),
    /// Bits that are not an instruction.
    #[error("{file}: instruction {index}: {source}; the file is damaged, assemble it again")]
    Decode {
        /// The file.
        file: String,
        /// Index in the stream, from 0.
        index: usize,
        /// The field and its value.
        source: DecodeError,
    },
    /// The file is not a stream, or is for another version or configuration.
    #[error("{file}: {reason}")]
    File {
        /// The file.
        file: String,
        /// What is wrong and what to do.
        reason: String,
    },
}

/// Whether the bytes are those of a stream file.
pub fn is_one(bytes: &[u8]) -> bool {
    bytes.starts_with(MAGIC)
}

/// Parses a program's text for a configuration; `file` is its name in errors.
///
/// # Errors
/// [`StreamError::Text`] with every error of the text: syntax, and values that the configuration does not allow.
pub fn parse(file: &str, text: &str, config: &HwConfig) -> Result<Vec<Insn>, StreamError> {
    isa::parse_for(text, config).map_err(|errors| {
        let lines: Vec<&str> = text.lines().collect();
        let shown = errors.iter().map(|error| {
            let line = lines.get(error.line.saturating_sub(1)).copied().unwrap_or("");
            let number = error.line.to_string();
            let margin = " ".repeat(number.len());
            // A tab before the caret aligns it with its column for any tab width.
            let caret: String =
                line.chars().take(error.column.saturating_sub(1)).map(|c| if c == '\t' { c } else { ' ' }).collect();
            format!(
                "{file}:{}:{}: {}\n {number} | {line}\n {margin} | {caret}^",
                error.line, error.column, error.message
            )
        });
        StreamError::Text(shown.collect())
    })
}

/// Encodes a program as a stream file's instructions, without the header, and checks every value.
///
/// # Errors
/// [`StreamError::Illegal`] with every value that the configuration does not allow.
pub fn encode_all(file: &str, program: &[Insn], config: &HwConfig) -> Result<Vec<u8>, StreamError> {
    let mut bytes = Vec::with_capacity(program.len() * INSN_BYTES);
    let mut errors = Vec::new();
    for (index, insn) in program.iter().enumerate() {
        let unfit = isa::unfit_reasons(insn, config);
        match encode(insn, config) {
            Ok(code) if unfit.is_empty() => bytes.extend_from_slice(&code),
            _ => errors.extend(unfit.iter().map(|why| format!("{file}: instruction {index}: {why}"))),
        }
    }
    if errors.is_empty() { Ok(bytes) } else { Err(StreamError::Illegal(errors)) }
}

/// Encodes a program as a stream file.
///
/// # Errors
/// Same as [`encode_all`].
pub fn to_file(file: &str, program: &[Insn], config: &HwConfig) -> Result<Vec<u8>, StreamError> {
    let code = encode_all(file, program, config)?;
    let mut bytes = MAGIC.to_vec();
    bytes.extend_from_slice(&ISA_VERSION.to_le_bytes());
    bytes.extend_from_slice(&(program.len() as u32).to_le_bytes());
    bytes.extend_from_slice(&config.hash().to_le_bytes());
    bytes.resize(HEADER_BYTES, 0);
    bytes.extend_from_slice(&code);
    Ok(bytes)
}

/// Decodes the program of a stream file.
///
/// # Errors
/// [`StreamError::File`] if it is for another version or configuration or truncated; [`StreamError::Decode`].
pub fn from_file(file: &str, bytes: &[u8], config: &HwConfig) -> Result<Vec<Insn>, StreamError> {
    let wrong = |reason: String| StreamError::File { file: file.to_string(), reason };
    if !is_one(bytes) {
        return Err(wrong("it is not an instruction stream; make one with: tilewright asm FILE -o STREAM".to_string()));
    }
    if bytes.len() < HEADER_BYTES {
        return Err(wrong("its header is truncated; assemble it again".to_string()));
    }
    let u32_at = |at: usize| u32::from_le_bytes([bytes[at], bytes[at + 1], bytes[at + 2], bytes[at + 3]]);
    let (version, count) = (u32_at(8), u32_at(12) as usize);
    if version != ISA_VERSION {
        return Err(wrong(format!(
            "it has instruction set version {version}, but this program has {ISA_VERSION}; assemble it again"
        )));
    }
    let hash = u64::from(u32_at(16)) | u64::from(u32_at(20)) << 32;
    if hash != config.hash() {
        return Err(wrong(format!(
            "it was encoded for the configuration with hash {hash:016x}, but {} has {:016x}; give the right one with \
             --hw",
            config.name,
            config.hash()
        )));
    }
    let (code, rest) = bytes[HEADER_BYTES..].as_chunks::<INSN_BYTES>();
    if code.len() != count || !rest.is_empty() {
        let len = bytes.len() - HEADER_BYTES;
        return Err(wrong(format!("it has {len} bytes of code for {count} instructions; assemble it again")));
    }
    let decoded = code.iter().enumerate().map(|(index, code)| {
        decode(code, config).map_err(|source| StreamError::Decode { file: file.to_string(), index, source })
    });
    decoded.collect()
}

#[cfg(test)]
mod tests;
