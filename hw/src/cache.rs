//! The cache that simulators and bitstreams share: a folder for each result, which is made under another name and renamed when it is
//! whole.

use std::path::Path;
use std::time::Duration;

/// What the names of folders begin with that are being made.
pub const BUILD_PREFIX: &str = "build-";

/// How long nobody touches a folder that is being made before it is held to be cut off.
const LEFT: Duration = Duration::from_secs(24 * 60 * 60);

/// Removes the folders of builds that were cut off or failed: those that nobody has touched for a day.
pub fn remove_left_builds(cache: &Path) {
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        let left = entry.file_name().to_string_lossy().starts_with(BUILD_PREFIX);
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if left && age.is_some_and(|age| age > LEFT) {
            // It may be another process's by now, or gone.
            let _ = std::fs::remove_dir_all(entry.path());
        }
    }
}
