//! Writing files whole or not at all.

use std::io::{self, Write};
use std::path::Path;

/// Writes `parts` one after another into a temporary file beside `path`, then renames it to `path`.
///
/// # Errors
/// The system's, where the folder does not exist or cannot be written; `path` is then as it was.
pub fn write_whole(path: &Path, parts: &[&[u8]]) -> io::Result<()> {
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
