//! Reads, writes and removes files of a flow.

use super::FlowError;
use serde::de::DeserializeOwned;
use std::io::Write;
use std::path::Path;

/// Reads a JSON file that a program wrote. `what` describes the file in errors.
///
/// # Errors
/// [`FlowError::Io`], [`FlowError::Output`].
pub(super) fn read_json<T: DeserializeOwned>(path: &Path, what: &'static str) -> Result<T, FlowError> {
    let bytes = std::fs::read(path).map_err(|error| FlowError::io(path, &error))?;
    let bad = |error: serde_json::Error| FlowError::Output {
        file: path.display().to_string(),
        what,
        reason: error.to_string(),
    };
    serde_json::from_slice(&bytes).map_err(bad)
}

/// Writes a file atomically: into a temporary file, which it then renames. Creates the folder if needed.
///
/// # Errors
/// [`FlowError::Io`].
pub(super) fn write(path: &Path, bytes: &[u8]) -> Result<(), FlowError> {
    let dir = path.parent().unwrap_or(Path::new("."));
    let io = |error: &std::io::Error| FlowError::io(path, error);
    std::fs::create_dir_all(dir).map_err(|error| io(&error))?;
    #[cfg_attr(not(unix), expect(unused_mut, reason = "only Unix has permissions to set"))]
    let mut builder = tempfile::Builder::new();
    // Temporary files are private by default. Give this one the permissions of a normal file, less the user's mask.
    #[cfg(unix)]
    builder.permissions(std::os::unix::fs::PermissionsExt::from_mode(0o666));
    let mut file = builder.tempfile_in(dir).map_err(|error| io(&error))?;
    file.write_all(bytes).map_err(|error| io(&error))?;
    file.persist(path).map_err(|error| io(&error.error))?;
    Ok(())
}

/// Removes a file if it exists.
///
/// # Errors
/// [`FlowError::Io`].
pub(super) fn remove(path: &Path) -> Result<(), FlowError> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != std::io::ErrorKind::NotFound => Err(FlowError::io(path, &error)),
        _ => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[cfg(unix)]
    #[test]
    fn what_is_written_has_the_permissions_of_any_new_file() {
        use std::os::unix::fs::PermissionsExt;
        let dir = tempfile::tempdir().expect("a folder");
        let mode = |name: &str| std::fs::metadata(dir.path().join(name)).expect("a file").permissions().mode();
        write(&dir.path().join("ours"), b"text").expect("it is written");
        std::fs::write(dir.path().join("any"), b"text").expect("it is written");
        assert_eq!(mode("ours"), mode("any"));
    }
}
