//! A cache of generated object code on disk, keyed by everything the code depends on.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use include_dir::{Dir, include_dir};
use sha2::{Digest, Sha256};
use tilewright_compiler::tir;
use tilewright_hw::cache;

use crate::Processor;

/// Prefix of result names. Each result is a folder of the cache.
const PREFIX: &str = "cpu-";
/// The file inside a result's folder.
const FILE: &str = "code";
/// Size of a checksum in bytes.
pub const SUM: usize = 32;

/// Source of the code generator. A change invalidates cached code.
static EMITTER: Dir<'_> = include_dir!("$CARGO_MANIFEST_DIR/src/emit");
/// Compiler sources that the generator uses: how intrinsics are expanded, which indices are sums of variables, and how
/// functions such as `exp` are computed.
const ASKED: [&[u8]; 3] = [
    include_bytes!("../../../tensor/src/tir/eval.rs"),
    include_bytes!("../../../tensor/src/tir/affine.rs"),
    include_bytes!("../../../tensor/src/math.rs"),
];

/// The object file of some functions, and the workspace size of each function in bytes.
pub type Code = (Vec<u8>, Vec<usize>);

/// Returns the hash of the generator's own sources and of LLVM's version.
fn generator() -> &'static [u8] {
    static HASH: OnceLock<Vec<u8>> = OnceLock::new();
    HASH.get_or_init(|| {
        let mut sha = Sha256::new();
        for file in EMITTER.files() {
            add(&mut sha, file.contents());
        }
        add(&mut sha, include_bytes!("target.rs"));
        ASKED.iter().for_each(|file| add(&mut sha, file));
        let (major, minor, patch) = inkwell::support::get_llvm_version();
        add(&mut sha, format!("{major}.{minor}.{patch}").as_bytes());
        sha.finalize().to_vec()
    })
}

fn add(sha: &mut Sha256, bytes: &[u8]) {
    sha.update((bytes.len() as u64).to_le_bytes());
    sha.update(bytes);
}

/// Returns the hash of texts from which code for a processor is generated.
pub fn hash_of<'t>(processor: &Processor, texts: impl IntoIterator<Item = &'t [u8]>) -> String {
    let mut sha = Sha256::new();
    add(&mut sha, generator());
    let tuned_for = processor.tuned_for.as_deref().unwrap_or_default();
    [&processor.triple, &processor.cpu, &processor.features, tuned_for]
        .iter()
        .for_each(|text| add(&mut sha, text.as_bytes()));
    texts.into_iter().for_each(|text| add(&mut sha, text));
    sha.finalize()[..16].iter().map(|byte| format!("{byte:02x}")).collect()
}

/// The location of some functions' code in a cache.
pub struct Entry {
    cache: PathBuf,
    home: PathBuf,
}

impl Entry {
    /// Returns the location for these functions' code for a processor.
    pub fn of(cache: &Path, processor: &Processor, functions: &[(String, tir::Function)]) -> Entry {
        let texts: Vec<_> = functions.iter().map(|(symbol, f)| [symbol.clone(), f.to_string()]).collect();
        let key = hash_of(processor, texts.iter().flatten().map(String::as_bytes));
        Entry { cache: cache.to_path_buf(), home: cache.join(format!("{PREFIX}{key}")) }
    }

    /// Returns the code, if it is present and intact.
    pub fn read(&self) -> Option<Code> {
        let code = decode(&std::fs::read(self.home.join(FILE)).ok()?)?;
        cache::touch(&self.home);
        Some(code)
    }

    /// Stores code. Errors are ignored, because nothing depends on the cache.
    pub fn write(&self, code: &Code) {
        let _ = self.try_write(code);
    }

    fn try_write(&self, code: &Code) -> std::io::Result<()> {
        std::fs::create_dir_all(&self.cache)?;
        cache::remove_left_builds(&self.cache);
        cache::remove_unused(&self.cache, PREFIX);
        let work = tempfile::Builder::new().prefix(cache::BUILD_PREFIX).tempdir_in(&self.cache)?;
        std::fs::write(work.path().join(FILE), encode(code))?;
        if self.home.exists() {
            // Another process wrote it, or it is damaged.
            std::fs::remove_dir_all(&self.home)?;
        }
        std::fs::rename(work.path(), &self.home)?;
        // The folder was renamed, so there is nothing left to remove.
        let _ = work.keep();
        Ok(())
    }
}

fn encode((object, workspaces): &Code) -> Vec<u8> {
    let mut bytes = (workspaces.len() as u64).to_le_bytes().to_vec();
    workspaces.iter().for_each(|n| bytes.extend((*n as u64).to_le_bytes()));
    bytes.extend(object);
    [Sha256::digest(&bytes).to_vec(), bytes].concat()
}

fn decode(bytes: &[u8]) -> Option<Code> {
    let (sum, rest) = bytes.split_at_checked(SUM)?;
    if Sha256::digest(rest).as_slice() != sum {
        return None;
    }
    let (count, mut rest) = rest.split_first_chunk::<8>()?;
    let mut workspaces = Vec::new();
    for _ in 0..u64::from_le_bytes(*count) {
        let (n, behind) = rest.split_first_chunk::<8>()?;
        workspaces.push(usize::try_from(u64::from_le_bytes(*n)).ok()?);
        rest = behind;
    }
    Some((rest.to_vec(), workspaces))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn code_comes_back_as_it_was_and_damaged_code_does_not() {
        let dir = tempfile::tempdir().unwrap();
        let processor = Processor::detect().unwrap();
        let entry = Entry::of(dir.path(), &processor, &[]);
        assert_eq!(entry.read(), None);
        let code = (vec![1, 2, 3], vec![0, 4096]);
        entry.write(&code);
        assert_eq!(entry.read(), Some(code.clone()));
        let path = entry.home.join(FILE);
        let mut bytes = std::fs::read(&path).unwrap();
        *bytes.last_mut().unwrap() ^= 1;
        std::fs::write(&path, &bytes).unwrap();
        assert_eq!(entry.read(), None);
        entry.write(&code);
        assert_eq!(entry.read(), Some(code));
        let other = Processor { features: "+sse2".into(), ..processor };
        assert_eq!(Entry::of(dir.path(), &other, &[]).read(), None);
    }
}
