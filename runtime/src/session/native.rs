//! CPU steps: functions of the artifact's object code.

use std::sync::Arc;

use super::SessionError;
use crate::artifact::Artifact;
use crate::buffer::AlignedBytes;
use crate::loader::{CpuModule, ImportTable};

/// Loads the artifact's object files, if there are any and this processor runs them, or takes their functions from the
/// program.
pub(super) fn load(artifact: &Artifact) -> Result<Vec<Arc<CpuModule>>, SessionError> {
    let Some(cpu) = &artifact.manifest.cpu else { return Ok(Vec::new()) };
    let other = other_architecture(&cpu.target).map(|architecture| format!("the instructions of {architecture}"));
    if let Some(missing) = other.or_else(|| missing_feature(&cpu.target).map(str::to_string)) {
        return Err(SessionError::OtherProcessor { path: artifact.path.clone(), target: cpu.target.clone(), missing });
    }
    if let Some(code) = artifact.linked() {
        return Ok(vec![code.clone(); cpu.objects.len()]);
    }
    let imports = ImportTable::standard();
    cpu.objects
        .iter()
        .map(|object| {
            CpuModule::load(artifact.blob(*object), &imports)
                .map(Arc::new)
                .map_err(|source| SessionError::Load { path: artifact.path.clone(), source })
        })
        .collect()
}

/// A function of a loaded object.
pub(super) struct Native {
    module: Arc<CpuModule>,
    function: String,
}

impl Native {
    /// The function of that name, or `None` if the object has no such function.
    pub fn new(module: Arc<CpuModule>, function: &str) -> Option<Native> {
        module.function(function)?;
        Some(Native { module, function: function.to_string() })
    }

    /// Calls it; `workspace` has at least as many bytes as its step asks for.
    pub fn call(
        &self,
        inputs: &[&[u8]],
        outputs: &mut [&mut [u8]],
        workspace: &mut AlignedBytes,
    ) -> Result<(), String> {
        let mut args: Vec<*mut u8> = inputs.iter().map(|bytes| bytes.as_ptr().cast_mut()).collect();
        args.extend(outputs.iter_mut().map(|bytes| bytes.as_mut_ptr()));
        args.push(workspace.as_mut_ptr());
        let function = self.module.function(&self.function).ok_or("its function is missing")?;
        // SAFETY: the artifact's checksums hold, and the toolkit's code generator made its object code. Its functions
        // take inputs, outputs and workspace of the sizes that the manifest states, and write only the last two. The
        // buffers do not overlap and are aligned to a cache line.
        match unsafe { function.call(&args) } {
            0 => Ok(()),
            code => Err(format!("{} failed with code {code}", self.function)),
        }
    }
}

/// The architecture of `target`, if it is not this processor's.
fn other_architecture(target: &str) -> Option<&str> {
    let architecture = target.split(['-', ' ']).next().unwrap_or_default();
    let own = if cfg!(target_arch = "arm") { "armv7" } else { std::env::consts::ARCH };
    (architecture != own).then_some(architecture)
}

/// The first instruction set extension named in `target` as `+name` that this processor is known to lack.
fn missing_feature(target: &str) -> Option<&str> {
    target
        .split(|c: char| c == ',' || c.is_whitespace())
        .filter_map(|word| word.strip_prefix('+'))
        .find(|name| has_feature(name) == Some(false))
}

/// Whether this processor has an extension; `None` if the extension is unknown here.
fn has_feature(name: &str) -> Option<bool> {
    #[cfg(any(target_arch = "x86_64", target_arch = "aarch64"))]
    macro_rules! detected {
        ($($llvm:literal = $rust:tt),* $(,)?) => {
            match name {
                $(
                    #[cfg(target_arch = "x86_64")]
                    $llvm => Some(std::arch::is_x86_feature_detected!($rust)),
                    #[cfg(target_arch = "aarch64")]
                    $llvm => Some(std::arch::is_aarch64_feature_detected!($rust)),
                )*
                _ => None,
            }
        };
    }
    #[cfg(target_arch = "aarch64")]
    return detected!("neon" = "neon", "dotprod" = "dotprod");
    #[cfg(target_arch = "x86_64")]
    return detected!(
        "sse3" = "sse3",
        "ssse3" = "ssse3",
        "sse4.1" = "sse4.1",
        "sse4.2" = "sse4.2",
        "popcnt" = "popcnt",
        "avx" = "avx",
        "avx2" = "avx2",
        "fma" = "fma",
        "f16c" = "f16c",
        "bmi" = "bmi1",
        "bmi2" = "bmi2",
        "lzcnt" = "lzcnt",
        "movbe" = "movbe",
        "avx512f" = "avx512f",
        "avx512bw" = "avx512bw",
        "avx512cd" = "avx512cd",
        "avx512dq" = "avx512dq",
        "avx512vl" = "avx512vl",
        "avx512vnni" = "avx512vnni",
        "avx512vbmi" = "avx512vbmi",
        "avx512vbmi2" = "avx512vbmi2",
        "avx512ifma" = "avx512ifma",
        "avx512bitalg" = "avx512bitalg",
        "avx512vpopcntdq" = "avx512vpopcntdq",
        "avx512bf16" = "avx512bf16",
        "avx512fp16" = "avx512fp16",
        "avx512vp2intersect" = "avx512vp2intersect",
        "avxvnni" = "avxvnni",
        "gfni" = "gfni",
        "vaes" = "vaes",
        "vpclmulqdq" = "vpclmulqdq",
        "pclmul" = "pclmulqdq",
        "aes" = "aes",
        "sha" = "sha",
        "adx" = "adx",
        "rdrnd" = "rdrand",
        "rdseed" = "rdseed",
        "sse4a" = "sse4a",
        "fxsr" = "fxsr",
        "xsave" = "xsave",
    );
    // Linux reports extensions of one letter, one bit each.
    #[cfg(all(target_arch = "riscv64", target_os = "linux"))]
    if let &[letter @ b'a'..=b'z'] = name.as_bytes() {
        // SAFETY: it reads a word that the system gave the process.
        let there = unsafe { libc::getauxval(libc::AT_HWCAP) };
        return Some(there >> (letter - b'a') & 1 == 1);
    }
    #[cfg(all(target_arch = "arm", target_os = "linux"))]
    if let Some((_, bit)) = [("neon", 12), ("vfp3", 13), ("d32", 19)].iter().find(|(known, _)| *known == name) {
        // SAFETY: it reads a word that the system gave the process.
        let there = unsafe { libc::getauxval(libc::AT_HWCAP) };
        return Some(there >> bit & 1 == 1);
    }
    #[cfg(not(any(target_arch = "x86_64", target_arch = "aarch64")))]
    {
        // An engine of WebAssembly refuses a module that has instructions that it lacks.
        let _ = name;
        None
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn another_architecture_is_named() {
        let own = if cfg!(target_arch = "arm") { "armv7" } else { std::env::consts::ARCH };
        let own = format!("{own}-unknown-linux-gnu x +made-up");
        assert_eq!(other_architecture(&own), None);
        assert_eq!(other_architecture("sparc64-unknown-linux-gnu generic +vis"), Some("sparc64"));
    }

    #[test]
    fn only_known_and_absent_features_count() {
        assert_eq!(missing_feature("x86_64-unknown-linux-gnu znver4 +sse3,-avx512f,+made-up"), None);
        #[cfg(target_arch = "x86_64")]
        if !std::arch::is_x86_feature_detected!("avx512vnni") {
            assert_eq!(missing_feature("x86_64 x +sse3,+avx512vnni"), Some("avx512vnni"));
        }
    }
}
