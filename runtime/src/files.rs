//! Writing files whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Writes `parts` one after another into a temporary file beside `path`, then renames it to `path`.
///
/// # Errors
/// The system's, where the folder does not exist or cannot be written, or `path` is no plain file; it is then as it was.
pub fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    check_target(path)?;
    let file = written(path, parts)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes files of these paths and contents: all of them as temporary files beside their places first, so that a full or
/// read-only disk leaves every path as it was.
///
/// # Errors
/// As [`write_whole`], with the path that was refused.
pub fn write_together(files: &[(PathBuf, Vec<u8>)]) -> Result<(), (PathBuf, io::Error)> {
    let mut ready = Vec::with_capacity(files.len());
    for (path, bytes) in files {
        let file = check_target(path).and_then(|()| written(path, &[bytes]));
        ready.push((path, file.map_err(|error| (path.clone(), error))?));
    }
    for (path, file) in ready {
        file.persist(path).map_err(|error| (path.clone(), error.error))?;
    }
    Ok(())
}

/// Whether a file could be written at `path`, tried without touching it.
///
/// # Errors
/// The system's, or that `path` is no plain file.
pub fn check_writable(path: &Path) -> io::Result<()> {
    check_target(path)?;
    temporary(folder_of(path)).map(drop)
}

/// Whether files could be written in a folder, tried without a trace; where it is missing, whether it could be made.
///
/// # Errors
/// The system's.
pub fn check_folder(folder: &Path) -> io::Result<()> {
    let mut folder = folder;
    while let Err(error) = std::fs::metadata(folder) {
        if error.kind() != io::ErrorKind::NotFound {
            return Err(error);
        }
        folder = folder_of(folder);
    }
    temporary(folder).map(drop)
}

/// A rename would put a plain file in a device's or pipe's place.
fn check_target(path: &Path) -> io::Result<()> {
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other(format!("{} is no plain file", path.display())));
    }
    Ok(())
}

fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".tilewright-").tempfile_in(folder).map_err(|error| {
        // The system's words, without the temporary name that nobody asked for.
        let text = error.to_string();
        io::Error::new(error.kind(), text.split(" at path ").next().unwrap_or(&text).to_string())
    })
}

/// A temporary file beside `path` with its content-to-be.
fn written(path: &Path, parts: &[&[u8]]) -> io::Result<NamedTempFile> {
    let mut file = temporary(folder_of(path))?;
    for part in parts {
        file.write_all(part)?;
    }
    #[cfg(unix)]
    {
        // A temporary file is private; the one that it becomes is as readable as any other that a person writes.
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    Ok(file)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_no_plain_file_is_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let error = write_whole(dir.path(), &[b"x"]).unwrap_err();
        assert!(error.to_string().contains("is no plain file"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn files_are_written_together_or_not_at_all() {
        let dir = tempfile::tempdir().unwrap();
        let (a, b) = (dir.path().join("a"), dir.path().join("b"));
        std::fs::write(&a, "old").unwrap();
        std::fs::create_dir(&b).unwrap();
        let files = [(a.clone(), b"new".to_vec()), (b.clone(), b"new".to_vec())];
        assert_eq!(write_together(&files).unwrap_err().0, b);
        assert_eq!(std::fs::read(&a).unwrap(), b"old");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 2);
        std::fs::remove_dir(&b).unwrap();
        write_together(&files).unwrap();
        assert_eq!((std::fs::read(&a).unwrap(), std::fs::read(&b).unwrap()), (b"new".to_vec(), b"new".to_vec()));
    }

    #[test]
    fn writability_is_told_without_a_trace() {
        let dir = tempfile::tempdir().unwrap();
        std::fs::write(dir.path().join("file"), "").unwrap();
        let check = |path: &str| check_writable(&dir.path().join(path));
        assert!(check("new").is_ok() && check("file").is_ok());
        assert!(check("file/new").is_err() && check("deep/new").is_err() && check(".").is_err());
        let folder = |path: &str| check_folder(&dir.path().join(path));
        assert!(folder(".").is_ok() && folder("deep/er").is_ok());
        assert!(folder("file").is_err() && folder("file/deep/er").is_err());
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
    }
}
