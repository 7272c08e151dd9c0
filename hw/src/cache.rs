//! The cache that simulators and bitstreams share. Each result is a folder or file, built under a temporary name and
//! renamed when it is complete.

use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

/// Cache folder of this user, or `None` if neither `XDG_CACHE_HOME` nor `HOME` is set.
pub fn folder() -> Option<PathBuf> {
    let set = |name| std::env::var_os(name).filter(|value| !value.is_empty()).map(PathBuf::from);
    let caches = set("XDG_CACHE_HOME").or_else(|| set("HOME").map(|home| home.join(".cache")))?;
    Some(caches.join("tilewright"))
}

/// Prefix of the names of unfinished builds.
pub const BUILD_PREFIX: &str = "build-";

/// Age after which an untouched unfinished build counts as abandoned.
const LEFT: Duration = Duration::from_secs(24 * 60 * 60);
/// Age after which an unused result is removed.
const UNUSED: Duration = Duration::from_secs(90 * 24 * 60 * 60);

/// Removes the folders of builds that were interrupted or failed: those untouched for a day.
pub fn remove_left_builds(cache: &Path) {
    remove_older(cache, BUILD_PREFIX, LEFT);
}

/// Removes results whose names begin with `prefix` and that were not used for ninety days.
pub fn remove_unused(cache: &Path, prefix: &str) {
    remove_older(cache, prefix, UNUSED);
}

/// Marks a result as just used. If that fails, the result is removed ninety days after it was built.
pub fn touch(result: &Path) {
    let _ = std::fs::File::open(result).and_then(|result| result.set_modified(SystemTime::now()));
}

fn remove_older(cache: &Path, prefix: &str, most: Duration) {
    for entry in std::fs::read_dir(cache).into_iter().flatten().flatten() {
        let named = entry.file_name().to_string_lossy().starts_with(prefix);
        let age = entry.metadata().and_then(|m| m.modified()).ok().and_then(|t| t.elapsed().ok());
        if named && age.is_some_and(|age| age > most) {
            // Errors are ignored: another process may have replaced or removed it.
            let path = entry.path();
            let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
        }
    }
}

#[cfg(all(test, unix))]
mod tests {
    use super::*;

    #[test]
    fn results_go_once_nobody_has_taken_them_for_long() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, is_file: bool, days: u64| {
            let path = dir.path().join(name);
            if is_file {
                std::fs::write(&path, "").unwrap()
            } else {
                std::fs::create_dir(&path).unwrap()
            }
            let then = SystemTime::now() - Duration::from_secs(days * 24 * 60 * 60);
            std::fs::File::open(&path).unwrap().set_modified(then).unwrap();
            path
        };
        for is_file in [false, true] {
            let put = |name: &str, days| put(&format!("{name}{is_file}"), is_file, days);
            let (old, taken, young, other) = (put("a-1", 91), put("a-2", 91), put("a-3", 89), put("b-1", 91));
            touch(&taken);
            remove_unused(dir.path(), "a-");
            assert_eq!([old, taken, young, other].map(|result| result.exists()), [false, true, true, true]);
        }
    }
}
