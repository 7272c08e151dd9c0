//! Writes files whole or not at all.

use std::io::{self, Write};
use std::path::{Path, PathBuf};

use tempfile::NamedTempFile;

/// Writes `parts` one after another into a temporary file next to `path`, then renames it to `path`.
///
/// # Errors
/// The system's, if the folder does not exist or cannot be written, or `path` is not a plain file. The old file is
/// unchanged then.
pub fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    let path = target(path)?;
    let file = written(&path, parts)?;
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
}

/// Writes several files. All of them are written as temporary files next to their destinations first, so that a full or
/// read-only disk leaves every path unchanged.
///
/// # Errors
/// As [`write_whole`], with the path that failed.
pub fn write_together(files: &[(PathBuf, Vec<u8>)]) -> Result<(), (PathBuf, io::Error)> {
    let mut ready = Vec::with_capacity(files.len());
    for (path, bytes) in files {
        let file = target(path).and_then(|place| Ok((written(&place, &[bytes])?, place)));
        ready.push((path, file.map_err(|error| (path.clone(), error))?));
    }
    for (path, (file, place)) in ready {
        file.persist(place).map_err(|error| (path.clone(), error.error))?;
    }
    Ok(())
}

/// A file under a temporary name next to its destination, until it is whole or its content was checked. Dropping it
/// removes it.
#[derive(Debug)]
pub struct Unfinished {
    file: NamedTempFile,
    place: PathBuf,
}

impl Unfinished {
    /// Creates a temporary file for `path` with these bytes.
    ///
    /// # Errors
    /// As [`write_whole`].
    pub fn new(path: &Path, bytes: &[u8]) -> io::Result<Unfinished> {
        let place = target(path)?;
        Ok(Unfinished { file: written(&place, &[bytes])?, place })
    }

    /// Path of the temporary file.
    pub fn path(&self) -> &Path {
        self.file.path()
    }

    /// Renames it to its destination.
    ///
    /// # Errors
    /// The system's.
    pub fn finish(self) -> io::Result<()> {
        self.file.persist(self.place).map(drop).map_err(|error| error.error)
    }
}

/// Checks that a file could be written at `path`, without touching it.
///
/// # Errors
/// The system's, or that `path` is not a plain file.
pub fn check_writable(path: &Path) -> io::Result<()> {
    temporary(folder_of(&target(path)?)).map(drop)
}

/// Whether two paths name one file, even if they are spelled differently or go through links. The file need not exist.
pub fn same(a: &Path, b: &Path) -> bool {
    let place = |path: &Path| -> Option<PathBuf> {
        path.canonicalize().ok().or_else(|| Some(folder_of(path).canonicalize().ok()?.join(path.file_name()?)))
    };
    a == b || place(a).is_some_and(|a| place(b) == Some(a))
}

/// Checks that files could be written in a folder, without leaving a trace; if it does not exist, checks that it could
/// be created.
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

/// The file that a path refers to after following links, which stay in place. A rename would replace a device or pipe
/// with a plain file, so these are refused. Paths in `/dev` and `/proc` are refused even if they lead to a plain file,
/// as `/dev/stdout` can.
fn target(path: &Path) -> io::Result<PathBuf> {
    let no_file = || io::Error::other(format!("{} is not a plain file", path.display()));
    let mut place = std::path::absolute(path)?;
    for _ in 0..40 {
        let is_special = place.starts_with("/proc") || place.starts_with("/dev") && !place.starts_with("/dev/shm");
        if is_special || std::fs::metadata(&place).is_ok_and(|found| !found.is_file()) {
            return Err(no_file());
        }
        match std::fs::read_link(&place) {
            Ok(next) => place = folder_of(&place).join(next),
            Err(_) => return Ok(place),
        }
    }
    Err(no_file())
}

/// The folder that contains a path.
pub fn folder_of(path: &Path) -> &Path {
    path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."))
}

fn temporary(folder: &Path) -> io::Result<NamedTempFile> {
    tempfile::Builder::new().prefix(".tilewright-").tempfile_in(folder).map_err(|error| {
        // The system's message without the temporary name, which means nothing to the user.
        let text = error.to_string();
        io::Error::new(error.kind(), text.split(" at path ").next().unwrap_or(&text).to_string())
    })
}

/// A temporary file next to `path` with its future content.
fn written(path: &Path, parts: &[&[u8]]) -> io::Result<NamedTempFile> {
    let mut file = temporary(folder_of(path))?;
    for part in parts {
        file.write_all(part)?;
    }
    #[cfg(unix)]
    {
        // A temporary file is private; the final file is as readable as any other file that a user writes.
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
        assert!(error.to_string().contains("is not a plain file"), "{error}");
        assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
    }

    #[test]
    fn a_file_of_another_writer_gets_its_name_when_it_is_whole() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("waves");
        let count = || std::fs::read_dir(dir.path()).unwrap().count();
        let file = Unfinished::new(&path, &[]).unwrap();
        std::fs::write(file.path(), "half").unwrap();
        assert!(!path.exists());
        drop(file);
        assert_eq!(count(), 0);
        let file = Unfinished::new(&path, &[]).unwrap();
        std::fs::write(file.path(), "whole").unwrap();
        file.finish().unwrap();
        assert_eq!((std::fs::read(&path).unwrap(), count()), (b"whole".to_vec(), 1));
    }

    #[cfg(unix)]
    #[test]
    fn links_stay_and_devices_are_left_alone() {
        let dir = tempfile::tempdir().unwrap();
        let (file, link) = (dir.path().join("file"), dir.path().join("link"));
        std::os::unix::fs::symlink("file", &link).unwrap();
        write_whole(&link, &[b"x"]).unwrap();
        assert_eq!(std::fs::read(&file).unwrap(), b"x");
        assert!(
            same(&file, &link) && same(&dir.path().join("./file"), &file) && same(Path::new("no"), Path::new("no"))
        );
        assert!(!same(&file, dir.path()) && !same(&file, &dir.path().join("no")));
        assert!(same(&dir.path().join("no"), &dir.path().join("./no")));
        assert!(std::fs::symlink_metadata(&link).unwrap().is_symlink());
        let out = dir.path().join("out");
        std::os::unix::fs::symlink("/dev/stdout", &out).unwrap();
        for path in [Path::new("/dev/stdout"), Path::new("/dev/null"), &out] {
            assert!(
                check_writable(path).unwrap_err().to_string().ends_with("is not a plain file"),
                "{}",
                path.display()
            );
        }
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
