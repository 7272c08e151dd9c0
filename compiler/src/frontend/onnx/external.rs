//! Data of constants in files beside the model.

use super::proto::TensorProto;
use std::fs::File;
use std::io::{Read, Seek, SeekFrom};
use std::path::{Component, Path, PathBuf};

/// The bytes of a constant in a file of one of these folders, `size` of them, which is what its shape wants.
pub(super) fn read(t: &TensorProto, folders: &[&Path], size: u64) -> Result<Vec<u8>, String> {
    let get = |key: &str| t.external_data.iter().find(|e| e.key == key).map(|e| e.value.as_str());
    let number = |key: &str| get(key).map(|v| v.parse::<u64>().map_err(|_| format!("its {key} `{v}` is no number")));
    if folders.is_empty() {
        return Err("its data are in another file, which cannot be found from here".into());
    }
    let name = get("location").ok_or("its data are in another file that is not named")?;
    let path = find(name, folders)?;
    let failed = |e: std::io::Error| format!("cannot read its data from {}: {e}", path.display());
    // Opening a pipe would wait for somebody who writes into it.
    if !path.metadata().map_err(failed)?.is_file() {
        return Err(format!("its data file {} is no ordinary file", path.display()));
    }
    let mut file = File::open(&path).map_err(failed)?;
    let offset = number("offset").transpose()?.unwrap_or(0);
    file.seek(SeekFrom::Start(offset)).map_err(failed)?;
    let length = number("length").transpose()?.unwrap_or(size);
    let mut bytes = Vec::new();
    file.take(length.min(size)).read_to_end(&mut bytes).map_err(failed)?;
    // A file that ends before is told by what it has, a length that is wrong as it stands.
    let found = if length > size { length } else { bytes.len() as u64 };
    if found != size {
        let place = format!("{} from byte {offset} on", path.display());
        return Err(format!("its data in {place} are {found} bytes, and its shape wants {size}"));
    }
    Ok(bytes)
}

/// The data file of a name: in the first of the folders that has one. A link may lead from one of these folders into
/// another, as the caches of model hubs lay their files, but not out of them.
fn find(name: &str, folders: &[&Path]) -> Result<PathBuf, String> {
    let components = || Path::new(name).components().filter(|c| *c != Component::CurDir);
    if components().next().is_none() || components().any(|c| !matches!(c, Component::Normal(_))) {
        return Err(format!("its data file `{name}` must be named by a path below the model's folder, without `..`"));
    }
    let here = |folder: &&Path| if folder.as_os_str().is_empty() { PathBuf::from(".") } else { folder.to_path_buf() };
    let folders: Vec<PathBuf> = folders.iter().map(here).collect();
    let named = |folder: &PathBuf| components().fold(folder.clone(), |path, c| path.join(c));
    let candidates: Vec<PathBuf> = folders.iter().map(named).collect();
    let path = candidates.iter().find(|path| path.exists()).unwrap_or(&candidates[0]);
    let failed = |path: &Path, e: std::io::Error| format!("cannot read its data from {}: {e}", path.display());
    let resolved = path.canonicalize().map_err(|e| failed(path, e))?;
    for folder in &folders {
        if resolved.starts_with(folder.canonicalize().map_err(|e| failed(folder, e))?) {
            return Ok(resolved);
        }
    }
    let target = resolved.display();
    Err(format!("its data file `{name}` must lie in the model's folder, and it is a link to {target}"))
}

#[cfg(test)]
mod tests;
