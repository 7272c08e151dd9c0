//! Places a program's data, results and instructions in device memory, and checks them before a simulator starts.

use std::ops::Range;
use std::path::{Path, PathBuf};

use anyhow::{Context, Result, anyhow, bail};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Base, Device, memory_range};
use tilewright_runtime::files;

use super::arguments::Run;
use crate::cli::read_file;

/// Alignment of the instruction stream, and minimum free bytes after it.
const STREAM_ALIGN: u64 = 4096;

/// Device memory of a run: contents before it, and ranges to save after it.
pub struct RunMemory {
    /// Address of the instruction stream, at the end of the addressable memory.
    pub stream_addr: u64,
    code: Vec<u8>,
    data: Vec<(u64, Vec<u8>)>,
    reads: Vec<(u64, usize, PathBuf)>,
    /// Bytes that instructions can address.
    size: u64,
}

impl RunMemory {
    /// Reads the files of `--data`, and places the stream at the end of `bytes` bytes of memory.
    pub fn plan(args: &Run, config: &HwConfig, bytes: u64, code: Vec<u8>) -> Result<RunMemory> {
        let size = bytes.min(config.last_address());
        let Some(stream_addr) =
            size.checked_sub(code.len() as u64 + STREAM_ALIGN).map(|last| last / STREAM_ALIGN * STREAM_ALIGN)
        else {
            let bytes = code.len();
            bail!("{}: {bytes} bytes of instructions do not fit the {size} bytes of memory", args.file.display());
        };
        let mut taken = vec![("the program's instructions".to_string(), stream_addr..stream_addr + code.len() as u64)];
        let mut data = Vec::new();
        for text in &args.data {
            let (place, path) =
                text.split_once('=').ok_or_else(|| anyhow!("--data {text} is not of the form ADDRESS=FILE"))?;
            let address = number(place).with_context(|| format!("--data {text}"))?;
            let bytes = read_file(Path::new(path)).with_context(|| format!("--data {text}"))?;
            let range = inside(address, bytes.len() as u64, size).with_context(|| format!("--data {text}"))?;
            if let Some((what, other)) = taken.iter().find(|(_, other)| overlap(other, &range)) {
                bail!(
                    "--data {text}: bytes {:#x} to {:#x} overlap {what} at {:#x} to {:#x}; use another address",
                    range.start,
                    range.end,
                    other.start,
                    other.end
                );
            }
            taken.push((format!("--data {text}"), range));
            data.push((address, bytes));
        }
        let mut reads: Vec<(u64, usize, PathBuf)> = Vec::new();
        for text in &args.read {
            let (address, len, path) = parse_read(text)?;
            inside(address, len as u64, size).with_context(|| format!("--read {text}"))?;
            files::check_writable(&path).with_context(|| format!("--read {text}: cannot write {}", path.display()))?;
            if reads.iter().any(|(_, _, other)| *other == path) {
                bail!("--read {text}: another --read already writes {}", path.display());
            }
            reads.push((address, len, path));
        }
        Ok(RunMemory { stream_addr, code, data, reads, size })
    }

    /// Writes data and instructions into a device's memory.
    pub fn install(&self, device: &mut dyn Device) -> Result<()> {
        for (address, bytes) in &self.data {
            device.write(*address, bytes)?;
        }
        device.write(self.stream_addr, &self.code)?;
        Ok(())
    }

    /// Base registers that all cover the addressable memory, so that offsets are addresses.
    pub fn bases(&self, config: &HwConfig) -> Vec<Base> {
        vec![Base { addr: 0, limit: self.size }; config.bases as usize]
    }

    /// Writes the files of `--read`, either all or none.
    pub fn save(&self, device: &mut dyn Device) -> Result<()> {
        let mut contents = Vec::with_capacity(self.reads.len());
        for (address, len, path) in &self.reads {
            let mut bytes = vec![0; *len];
            device.read(*address, &mut bytes)?;
            contents.push((path.clone(), bytes));
        }
        match files::write_together(&contents) {
            Ok(()) => Ok(()),
            Err((path, error)) => Err(error).with_context(|| format!("cannot write {}", path.display())),
        }
    }
}

fn overlap(a: &Range<u64>, b: &Range<u64>) -> bool {
    a.start < b.end && b.start < a.end
}

/// The range of `len` bytes from `address`; an error if it exceeds device memory.
fn inside(address: u64, len: u64, size: u64) -> Result<Range<u64>> {
    let range = memory_range(address, len, size)?;
    Ok(range.start as u64..range.end as u64)
}

fn parse_read(text: &str) -> Result<(u64, usize, PathBuf)> {
    let wrong = || anyhow!("--read {text} is not of the form ADDRESS:LEN=FILE");
    let (place, path) = text.split_once('=').ok_or_else(wrong)?;
    let (address, len) = place.split_once(':').ok_or_else(wrong)?;
    let len = number(len).with_context(|| format!("--read {text}"))?;
    let address = number(address).with_context(|| format!("--read {text}"))?;
    Ok((address, usize::try_from(len)?, path.into()))
}

/// Parses an integer, decimal or hexadecimal with the prefix `0x`.
pub fn number(text: &str) -> Result<u64> {
    let digits = text.trim();
    let parsed = match digits.strip_prefix("0x") {
        Some(hex) => u64::from_str_radix(hex, 16),
        None => digits.parse(),
    };
    parsed.map_err(|_| anyhow!("{text} is not a number; write 4096 or 0x1000"))
}
