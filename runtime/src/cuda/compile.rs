//! Compiles CUDA C for a GPU with NVRTC, and caches the result by its content.

use std::ffi::{CString, c_char, c_int};
use std::path::Path;
use std::ptr;

use sha2::{Digest, Sha256};
use tilewright_hw::cache;

use super::CudaError;
use super::sys::{Code, Handle, Nvrtc, nvrtc};
use crate::files::write_whole;

/// Prefix of the names of cached files.
const PREFIX: &str = "gpu-";

/// Requested output of the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// PTX for GPUs of this compute capability (major x 10 + minor) and later.
    Ptx(u32),
    /// Machine code for exactly this compute capability, which no driver is too old for.
    Cubin(u32),
}

/// Floats are multiplied and added with two roundings unless the source says otherwise, and nothing is flushed to zero.
const OPTIONS: [&str; 3] = ["--fmad=false", "--ftz=false", "--std=c++17"];

/// Compiler options for `form`.
fn options(form: Form) -> Vec<String> {
    let arch = match form {
        Form::Ptx(n) => format!("--gpu-architecture=compute_{n}"),
        Form::Cubin(n) => format!("--gpu-architecture=sm_{n}"),
    };
    std::iter::once(arch).chain(OPTIONS.map(String::from)).collect()
}

/// Compiles a source.
///
/// # Errors
/// [`CudaError::Unavailable`] without NVRTC, [`CudaError::Compile`] with the compiler's message.
pub fn compile(source: &str, form: Form) -> Result<Vec<u8>, CudaError> {
    let program = Program::new(nvrtc()?, source)?;
    if let Err(code) = program.compile(&options(form)) {
        let log = program.log();
        return Err(match (form, log.contains("--gpu-architecture")) {
            // An architecture that the compiler does not know is newer than it.
            (Form::Ptx(n) | Form::Cubin(n), true) => CudaError::Unavailable {
                reason: format!("NVRTC {} does not support compute capability {}.{}", version(), n / 10, n % 10),
                remedy:
                    "install a newer NVRTC (package cuda-nvrtc, or the Python package nvidia-cuda-nvrtc), or use --device cpu"
                        .into(),
            },
            _ => CudaError::Compile { log: format!("{}\n{log}", said(code)) },
        });
    }
    let (size, get): (Size, Get) = match form {
        Form::Ptx(_) => (Nvrtc::nvrtcGetPTXSize, Nvrtc::nvrtcGetPTX),
        Form::Cubin(_) => (Nvrtc::nvrtcGetCUBINSize, Nvrtc::nvrtcGetCUBIN),
    };
    program.bytes(size, get).map_err(|code| CudaError::Compile { log: said(code) })
}

fn said(code: Code) -> String {
    format!("it returned {}", code.0)
}

type Size = unsafe fn(&Nvrtc, Handle, *mut usize) -> Result<(), Code>;
type Get = unsafe fn(&Nvrtc, Handle, *mut c_char) -> Result<(), Code>;

/// A source that was passed to the compiler.
struct Program {
    nvrtc: &'static Nvrtc,
    raw: Handle,
    /// Outlives the compilation.
    _source: CString,
}

impl Program {
    fn new(nvrtc: &'static Nvrtc, source: &str) -> Result<Program, CudaError> {
        let failed = |log: String| CudaError::Compile { log };
        let text = CString::new(source).map_err(|_| failed("the source has a zero byte".into()))?;
        let (name, mut raw) = (c"tilewright.cu", ptr::null_mut());
        // SAFETY: both texts live, there are no headers, and `raw` is a place for the program.
        let made =
            unsafe { nvrtc.nvrtcCreateProgram(&mut raw, text.as_ptr(), name.as_ptr(), 0, ptr::null(), ptr::null()) };
        made.map_err(|code| failed(said(code)))?;
        Ok(Program { nvrtc, raw, _source: text })
    }

    fn compile(&self, options: &[String]) -> Result<(), Code> {
        let texts: Vec<CString> = options.iter().filter_map(|o| CString::new(o.as_str()).ok()).collect();
        let places: Vec<*const c_char> = texts.iter().map(|o| o.as_ptr()).collect();
        // SAFETY: the program and all options live until this returns.
        unsafe { self.nvrtc.nvrtcCompileProgram(self.raw, places.len() as c_int, places.as_ptr()) }
    }

    /// The compiler's output, whose size it reports first.
    fn bytes(&self, size: Size, get: Get) -> Result<Vec<u8>, Code> {
        let mut count = 0;
        // SAFETY: the program lives, and `count` is a place for the size.
        unsafe { size(self.nvrtc, self.raw, &mut count) }?;
        let mut bytes = vec![0u8; count];
        // SAFETY: as above, into memory of that size.
        unsafe { get(self.nvrtc, self.raw, bytes.as_mut_ptr().cast()) }?;
        Ok(bytes)
    }

    fn log(&self) -> String {
        let bytes = self.bytes(Nvrtc::nvrtcGetProgramLogSize, Nvrtc::nvrtcGetProgramLog).unwrap_or_default();
        let end = bytes.iter().position(|&b| b == 0).unwrap_or(bytes.len());
        String::from_utf8_lossy(&bytes[..end]).into_owned()
    }
}

impl Drop for Program {
    fn drop(&mut self) {
        // SAFETY: the program is not used again.
        let _ = unsafe { self.nvrtc.nvrtcDestroyProgram(&mut self.raw) };
    }
}

/// Like [`compile`], but reads a file of `folder` if it exists, and writes it otherwise. Without a folder nothing is
/// cached.
///
/// # Errors
/// As [`compile`]; a cache that cannot be written is ignored.
pub fn compile_cached(folder: Option<&Path>, source: &str, form: Form) -> Result<Vec<u8>, CudaError> {
    let mut hash = Sha256::new();
    hash.update(source);
    hash.update(format!("{:?} {form:?} {}", options(form), version()));
    let name: String = hash.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect();
    let path = folder.map(|f| f.join(format!("{PREFIX}{name}")));
    // The file ends with a checksum of the rest, so a partial file is ignored.
    if let Some(bytes) = path.as_ref().and_then(|p| std::fs::read(p).ok())
        && let Some((code, sum)) = bytes.split_last_chunk::<32>()
        && Sha256::digest(code)[..] == sum[..]
    {
        path.iter().for_each(|path| cache::touch(path));
        return Ok(code.to_vec());
    }
    let code = compile(source, form)?;
    if let (Some(path), Some(folder)) = (path, folder) {
        cache::remove_unused(folder, PREFIX);
        let made = std::fs::create_dir_all(folder).is_ok();
        let _ = made && write_whole(&path, &[&code, &Sha256::digest(&code)]).is_ok();
    }
    Ok(code)
}

/// The compiler's version, or zeros if it is unknown.
pub(super) fn compiler_version() -> (u32, u32) {
    let (mut major, mut minor) = (0, 0);
    // SAFETY: both numbers are places for the result.
    let asked = nvrtc().map(|nvrtc| unsafe { nvrtc.nvrtcVersion(&mut major, &mut minor) });
    if matches!(asked, Ok(Ok(()))) { (major as u32, minor as u32) } else { (0, 0) }
}

fn version() -> String {
    let (major, minor) = compiler_version();
    format!("{major}.{minor}")
}
