//! Where the system has a core's registers and its buffer.
//!
//! UIO devices stand in `sys/class/uio`, one folder each with its name and its maps (Linux, Documentation/driver-api/uio-howto);
//! buffers in `sys/class/u-dma-buf`, one folder each with address and size (u-dma-buf's Readme).

use super::error::{Fault, Kind, PeripheralError};
use crate::memory::Block;
use std::io;
use std::path::{Path, PathBuf};
use tilewright_hw::peripheral::{DEFAULT_NAME, WINDOW_BYTES};

/// What the system calls a core's registers and its buffer.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// The UIO device: its name, or its file's (`uio0`).
    pub uio: String,
    /// The buffer.
    pub buffer: String,
}

impl Default for Names {
    fn default() -> Names {
        Names { uio: DEFAULT_NAME.into(), buffer: DEFAULT_NAME.into() }
    }
}

impl std::fmt::Display for Names {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.uio == self.buffer {
            true => write!(f, "uio:{}", self.uio),
            false => write!(f, "uio:{}@{}", self.uio, self.buffer),
        }
    }
}

/// A buffer of contiguous memory.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Buffer {
    /// Its folder among the system's.
    pub(super) folder: PathBuf,
    /// Its file, which is mapped.
    pub(super) file: PathBuf,
    /// Where it lies in the address space that the core's bus has.
    pub block: Block,
    /// Whether the hardware keeps the processor's caches and it the same.
    pub coherent: bool,
}

/// Registers and buffer of a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Found {
    /// What they were asked for by.
    pub names: Names,
    /// The UIO device, as its file is called: `uio0`.
    pub uio: String,
    /// Its file, which is mapped and brings interrupts.
    pub(super) file: PathBuf,
    /// Where the registers are.
    pub registers: Block,
    /// Where they begin in the first page of the map.
    pub(super) offset: u64,
    /// The buffer.
    pub buffer: Buffer,
}

/// Looks for a core's registers and its buffer. The system's files are those under `root`, which is `/` but in tests.
///
/// # Errors
/// What is missing, with what to do.
pub fn find(root: &Path, names: &Names) -> Result<Found, PeripheralError> {
    find_both(root, names).map_err(|fault| PeripheralError { device: names.to_string(), fault })
}

fn find_both(root: &Path, names: &Names) -> Result<Found, Fault> {
    let class = root.join("sys/class/uio");
    let uio = choose(&class, &names.uio)?;
    let map = class.join(&uio).join("maps/map0");
    let registers = Block { addr: number(&map.join("addr"))?, bytes: number(&map.join("size"))? };
    // Older kernels have no such file.
    let offset = number(&map.join("offset")).unwrap_or(0);
    if registers.bytes < WINDOW_BYTES {
        return Err(Fault::Window { found: registers.bytes, needed: WINDOW_BYTES });
    }
    let file = root.join("dev").join(&uio);
    Ok(Found { names: names.clone(), file, uio, registers, offset, buffer: find_buffer(root, &names.buffer)? })
}

fn find_buffer(root: &Path, name: &str) -> Result<Buffer, Fault> {
    let class = root.join("sys/class/u-dma-buf");
    let buffers = list(&class, Kind::Buffer)?;
    if !buffers.iter().any(|buffer| buffer == name) {
        return Err(Fault::NoDevice { kind: Kind::Buffer, name: name.into(), there_are: buffers });
    }
    let folder = class.join(name);
    // Whole pages are mapped.
    let bytes = number(&folder.join("size"))? / WINDOW_BYTES * WINDOW_BYTES;
    let block = Block { addr: number(&folder.join("phys_addr"))?, bytes };
    // Kernels that do not know whether memory is coherent have no such file.
    let coherent = number(&folder.join("dma_coherent")).unwrap_or(0) == 1;
    Ok(Buffer { file: root.join("dev").join(name), folder, block, coherent })
}

/// The UIO device of a name; its file's name is one, too.
fn choose(class: &Path, name: &str) -> Result<String, Fault> {
    let devices = list(class, Kind::Uio)?;
    if devices.iter().any(|device| device == name) {
        return Ok(name.into());
    }
    let mut named = Vec::new();
    for device in &devices {
        named.push((text(&class.join(device).join("name"))?, device.clone()));
    }
    let mut found: Vec<String> = named.iter().filter(|(other, _)| other == name).map(|(_, d)| d.clone()).collect();
    match found.len() {
        1 => Ok(found.remove(0)),
        0 => {
            let there_are = named.iter().map(|(name, device)| format!("{name} ({device})")).collect();
            Err(Fault::NoDevice { kind: Kind::Uio, name: name.into(), there_are })
        }
        _ => Err(Fault::Ambiguous { name: name.into(), devices: found }),
    }
}

/// What is in a folder of the system's, in order.
fn list(class: &Path, kind: Kind) -> Result<Vec<String>, Fault> {
    let path = class.display().to_string();
    let entries = std::fs::read_dir(class).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Fault::NoClass { kind, path: path.clone() },
        _ => Fault::Attribute { path: path.clone(), reason: format!("cannot be read: {error}") },
    })?;
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// The text of a file of the system's.
fn text(path: &Path) -> Result<String, Fault> {
    let text = std::fs::read_to_string(path).map_err(|error| Fault::Attribute {
        path: path.display().to_string(),
        reason: format!("cannot be read: {error}"),
    })?;
    Ok(text.trim().into())
}

/// The number in a file of the system's, hexadecimal with `0x` before it.
fn number(path: &Path) -> Result<u64, Fault> {
    let text = text(path)?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| Fault::Attribute {
        path: path.display().to_string(),
        reason: format!("holds {text:?}, which is no number"),
    })
}
