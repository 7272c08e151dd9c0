//! CUDA C to code of a GPU by NVRTC, kept by its content.

use std::ffi::{CStr, CString};
use std::path::Path;

use cudarc::nvrtc::{result, sys};
use sha2::{Digest, Sha256};
use tilewright_hw::cache;

use super::{CudaError, Library};
use crate::files::write_whole;

/// What the names of kept files begin with.
const PREFIX: &str = "gpu-";

/// What is asked of the compiler.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
pub enum Form {
    /// PTX for GPUs of this compute capability (major x 10 + minor) and later.
    Ptx(u32),
    /// Machine code for exactly this one, which no driver is too old for.
    Cubin(u32),
}

/// Floats are multiplied and added in two roundings where the source does not say otherwise, and nothing is flushed to zero.
const OPTIONS: [&str; 3] = ["--fmad=false", "--ftz=false", "--std=c++17"];

/// The options that `form` stands for.
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
/// [`CudaError::Unavailable`] without NVRTC, [`CudaError::Compile`] with what it said.
pub fn compile(source: &str, form: Form) -> Result<Vec<u8>, CudaError> {
    Library::Nvrtc.need()?;
    let failed = |what: &str| CudaError::Compile { log: what.to_string() };
    let text = CString::new(source).map_err(|_| failed("the source has a zero byte"))?;
    let program = result::create_program(&text, Some(c"tilewright.cu")).map_err(|e| failed(&e.to_string()))?;
    // SAFETY: the program lives until it is destroyed below, and the source until the end of this function.
    let compiled = unsafe { result::compile_program(program, &options(form)) };
    let code = match compiled {
        Ok(()) => match form {
            // SAFETY: as above.
            Form::Ptx(_) => unsafe { result::get_ptx(program) }
                .map(|text| text.iter().map(|c| *c as u8).collect())
                .map_err(|e| failed(&e.to_string())),
            Form::Cubin(_) => cubin(program),
        },
        Err(error) => {
            // SAFETY: as above.
            let log = unsafe { result::get_program_log(program) }.unwrap_or_default();
            let bytes: Vec<u8> = log.iter().map(|c| *c as u8).collect();
            let text = CStr::from_bytes_until_nul(&bytes).map(|t| t.to_string_lossy().into_owned()).unwrap_or_default();
            Err(match (form, text.contains("--gpu-architecture")) {
                // What it knows no name of is newer than it.
                (Form::Ptx(n) | Form::Cubin(n), true) => CudaError::Unavailable {
                    reason: format!("NVRTC {} knows no GPU of compute capability {}.{}", version(), n / 10, n % 10),
                    remedy: "install a newer NVRTC (package cuda-nvrtc, or nvidia-cuda-nvrtc of Python's), or use --device cpu".into(),
                },
                _ => failed(&format!("{error}\n{text}")),
            })
        }
    };
    // SAFETY: the program is not used again.
    let _ = unsafe { result::destroy_program(program) };
    code
}

fn cubin(program: sys::nvrtcProgram) -> Result<Vec<u8>, CudaError> {
    let failed = |e: result::NvrtcError| CudaError::Compile { log: e.to_string() };
    let mut size = 0;
    // SAFETY: the program has been compiled, and the size is written where it is asked for.
    unsafe { sys::nvrtcGetCUBINSize(program, &mut size) }.result().map_err(failed)?;
    let mut bytes = vec![0u8; size];
    // SAFETY: as above, into memory of that size.
    unsafe { sys::nvrtcGetCUBIN(program, bytes.as_mut_ptr().cast()) }.result().map_err(failed)?;
    Ok(bytes)
}

/// The same, from a file of `folder` if it is there, which is written otherwise; without a folder nothing is kept.
///
/// # Errors
/// As [`compile`]; a cache that cannot be written is none.
pub fn compile_cached(folder: Option<&Path>, source: &str, form: Form) -> Result<Vec<u8>, CudaError> {
    let mut hash = Sha256::new();
    hash.update(source);
    hash.update(format!("{:?} {form:?} {}", options(form), version()));
    let name: String = hash.finalize().iter().take(16).map(|b| format!("{b:02x}")).collect();
    let path = folder.map(|f| f.join(format!("{PREFIX}{name}")));
    // The file ends with a checksum of the rest: half a file is none.
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

/// The compiler's version, or zeros.
fn version() -> String {
    if Library::Nvrtc.need().is_err() {
        return String::new();
    }
    let (mut major, mut minor) = (0, 0);
    // SAFETY: the library is there, and both numbers are written where they are asked for.
    let _ = unsafe { sys::nvrtcVersion(&mut major, &mut minor) };
    format!("{major}.{minor}")
}
