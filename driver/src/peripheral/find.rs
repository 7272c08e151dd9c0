//! Locates a core's registers and its buffer in the system.
//!
//! UIO devices are listed in `sys/class/uio`, one folder each with name and maps (Linux,
//! Documentation/driver-api/uio-howto); buffers in `sys/class/u-dma-buf`, one folder each with address and size
//! (u-dma-buf's Readme).

use super::error::{Fault, PeripheralError, SystemDeviceKind};
use crate::memory::Block;
use std::io;
use std::path::{Path, PathBuf};
use tilewright_hw::peripheral::{DEFAULT_NAME, WINDOW_BYTES};

/// Names of a core's registers and its buffer in the system.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Names {
    /// Name of the UIO device, or of its file (`uio0`).
    pub uio: String,
    /// Name of the buffer.
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
    /// Its folder in `sys/class`.
    pub(super) folder: PathBuf,
    /// Its device file, which is mapped.
    pub(super) file: PathBuf,
    /// Its place in the address space of the core's bus.
    pub block: Block,
    /// Whether the hardware keeps the processor's caches coherent with it.
    pub coherent: bool,
}

/// Registers and buffer of a core.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct FoundCore {
    /// The names that were searched for.
    pub names: Names,
    /// File name of the UIO device: `uio0`.
    pub uio: String,
    /// Its device file, which is mapped and delivers interrupts.
    pub(super) file: PathBuf,
    /// Place of the registers.
    pub registers: Block,
    /// Their offset in the first page of the map.
    pub(super) offset: u64,
    /// The buffer.
    pub buffer: Buffer,
}

/// Locates a core's registers and its buffer. System files are those below `root`, which is `/` except in tests.
///
/// # Errors
/// What is missing, and what to do.
pub fn find(root: &Path, names: &Names) -> Result<FoundCore, PeripheralError> {
    find_both(root, names).map_err(|fault| PeripheralError { device: names.to_string(), fault })
}

fn find_both(root: &Path, names: &Names) -> Result<FoundCore, Fault> {
    let class = root.join("sys/class/uio");
    let uio = choose(&class, &names.uio)?;
    let map = class.join(&uio).join("maps/map0");
    let registers = Block { addr: number(&map.join("addr"))?, bytes: number(&map.join("size"))? };
    // Older kernels do not have this file.
    let offset = number(&map.join("offset")).unwrap_or(0);
    if registers.bytes < WINDOW_BYTES {
        return Err(Fault::Window { found: registers.bytes, needed: WINDOW_BYTES });
    }
    let file = root.join("dev").join(&uio);
    Ok(FoundCore { names: names.clone(), file, uio, registers, offset, buffer: find_buffer(root, &names.buffer)? })
}

fn find_buffer(root: &Path, name: &str) -> Result<Buffer, Fault> {
    let class = root.join("sys/class/u-dma-buf");
    let buffers = list(&class, SystemDeviceKind::Buffer)?;
    if !buffers.iter().any(|buffer| buffer == name) {
        return Err(Fault::NoDevice { kind: SystemDeviceKind::Buffer, name: name.into(), there_are: buffers });
    }
    let folder = class.join(name);
    // Whole pages are mapped.
    let bytes = number(&folder.join("size"))? / WINDOW_BYTES * WINDOW_BYTES;
    let block = Block { addr: number(&folder.join("phys_addr"))?, bytes };
    // Kernels that do not know whether memory is coherent do not have this file.
    let coherent = number(&folder.join("dma_coherent")).unwrap_or(0) == 1;
    Ok(Buffer { file: root.join("dev").join(name), folder, block, coherent })
}

/// The UIO device with this name or with this file name.
fn choose(class: &Path, name: &str) -> Result<String, Fault> {
    let devices = list(class, SystemDeviceKind::Uio)?;
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
            Err(Fault::NoDevice { kind: SystemDeviceKind::Uio, name: name.into(), there_are })
        }
        _ => Err(Fault::Ambiguous { name: name.into(), devices: found }),
    }
}

/// Names in a system folder, sorted.
fn list(class: &Path, kind: SystemDeviceKind) -> Result<Vec<String>, Fault> {
    let path = class.display().to_string();
    let entries = std::fs::read_dir(class).map_err(|error| match error.kind() {
        io::ErrorKind::NotFound => Fault::NoClass { kind, path: path.clone() },
        _ => Fault::Attribute { path: path.clone(), reason: format!("cannot be read: {error}") },
    })?;
    let mut names: Vec<String> = entries.filter_map(|entry| entry.ok()?.file_name().into_string().ok()).collect();
    names.sort();
    Ok(names)
}

/// The text of a system file.
fn text(path: &Path) -> Result<String, Fault> {
    let text = std::fs::read_to_string(path).map_err(|error| Fault::Attribute {
        path: path.display().to_string(),
        reason: format!("cannot be read: {error}"),
    })?;
    Ok(text.trim().into())
}

/// The number in a system file, decimal, or hexadecimal with the prefix `0x`.
fn number(path: &Path) -> Result<u64, Fault> {
    let text = text(path)?;
    let number = match text.strip_prefix("0x") {
        Some(digits) => u64::from_str_radix(digits, 16),
        None => text.parse(),
    };
    number.map_err(|_| Fault::Attribute {
        path: path.display().to_string(),
        reason: format!("contains {text:?}, which is not a number"),
    })
}
