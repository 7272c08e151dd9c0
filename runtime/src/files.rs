//! Writing files whole or not at all.

use std::io::{self, Write};
use std::path::Path;

/// Writes `parts` one after another into a temporary file beside `path`, then renames it to `path`.
///
/// # Errors
/// The system's, where the folder does not exist or cannot be written, or `path` is no plain file; it is then as it was.
pub fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
    // A rename would put a plain file in a device's or pipe's place.
    if std::fs::metadata(path).is_ok_and(|found| !found.is_file()) {
        return Err(io::Error::other(format!("{} is no plain file", path.display())));
    }
    let folder = path.parent().filter(|folder| !folder.as_os_str().is_empty()).unwrap_or(Path::new("."));
    let mut file = tempfile::Builder::new().prefix(".tilewright-").tempfile_in(folder)?;
    for part in parts {
        file.write_all(part)?;
    }
    #[cfg(unix)]
    {
        // A temporary file is private; the one that it becomes is as readable as any other that a person writes.
        use std::os::unix::fs::PermissionsExt;
        file.as_file().set_permissions(std::fs::Permissions::from_mode(0o644))?;
    }
    file.persist(path).map_err(|error| error.error)?;
    Ok(())
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
}
