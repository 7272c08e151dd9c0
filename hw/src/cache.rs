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

/// Bytes that the results of one prefix take at most.
const MOST_BYTES: u64 = 4 << 30;

/// Removes the folders of builds that were interrupted or failed: those untouched for a day.
pub fn remove_left_builds(cache: &Path) {
    remove_older(cache, BUILD_PREFIX, LEFT);
}

/// Removes results whose names begin with `prefix` and that were not used for ninety days. If the others take more than
/// 4 GiB, also the least recently used of them. Call it before a result is added.
pub fn remove_unused(cache: &Path, prefix: &str) {
    remove_older(cache, prefix, UNUSED);
    remove_beyond(cache, prefix, MOST_BYTES);
}

/// Marks a result as just used. If that fails, the result is removed ninety days after it was built.
pub fn touch(result: &Path) {
    let _ = std::fs::File::open(result).and_then(|result| result.set_modified(SystemTime::now()));
}

fn remove_older(cache: &Path, prefix: &str, most: Duration) {
    for (path, used) in results(cache, prefix) {
        if used.elapsed().is_ok_and(|age| age > most) {
            remove(&path);
        }
    }
}

/// Removes the least recently used results until the others take at most `most` bytes.
fn remove_beyond(cache: &Path, prefix: &str, most: u64) {
    let mut results = results(cache, prefix);
    results.sort_by_key(|(_, used)| std::cmp::Reverse(*used));
    let mut taken = 0u64;
    for (path, _) in results {
        taken = taken.saturating_add(bytes(&path));
        if taken > most {
            remove(&path);
        }
    }
}

/// The results whose names begin with `prefix`, and when they were last used.
fn results(cache: &Path, prefix: &str) -> Vec<(PathBuf, SystemTime)> {
    let entries = std::fs::read_dir(cache).into_iter().flatten().flatten();
    let named = entries.filter(|entry| entry.file_name().to_string_lossy().starts_with(prefix));
    named.filter_map(|entry| Some((entry.path(), entry.metadata().ok()?.modified().ok()?))).collect()
}

/// Bytes of a file, or of all files in a folder.
fn bytes(path: &Path) -> u64 {
    match std::fs::symlink_metadata(path) {
        Ok(about) if about.is_dir() => {
            let entries = std::fs::read_dir(path).into_iter().flatten().flatten();
            entries.map(|entry| bytes(&entry.path())).fold(0, u64::saturating_add)
        }
        Ok(about) => about.len(),
        Err(_) => 0,
    }
}

fn remove(path: &Path) {
    // Errors are ignored: another process may have replaced or removed it.
    let _ = if path.is_dir() { std::fs::remove_dir_all(path) } else { std::fs::remove_file(path) };
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

    #[test]
    fn the_least_recently_used_results_go_if_all_take_too_much() {
        let dir = tempfile::tempdir().unwrap();
        let put = |name: &str, bytes: usize, hours: u64| {
            let path = dir.path().join(name);
            // Folders count with what is below them.
            let file = if name.ends_with('d') { path.join("in/it") } else { path.clone() };
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, vec![0; bytes]).unwrap();
            let then = SystemTime::now() - Duration::from_secs(hours * 60 * 60);
            std::fs::File::open(&path).unwrap().set_modified(then).unwrap();
            path
        };
        let left = |paths: &[&PathBuf]| paths.iter().map(|path| path.exists()).collect::<Vec<_>>();
        let (old, taken, folder, young) = (put("a-1", 40, 9), put("a-2", 30, 8), put("a-3d", 30, 7), put("a-4", 40, 1));
        let other = put("b-1", 1000, 9);
        let all = [&old, &taken, &folder, &young, &other];
        remove_beyond(dir.path(), "a-", 140);
        assert_eq!(left(&all), [true; 5]);
        touch(&taken);
        remove_beyond(dir.path(), "a-", 139);
        assert_eq!(left(&all), [false, true, true, true, true]);
        remove_beyond(dir.path(), "a-", 70);
        assert_eq!(left(&all), [false, true, false, true, true]);
        remove_beyond(dir.path(), "a-", 0);
        assert_eq!(left(&all), [false, false, false, false, true]);
    }
}
