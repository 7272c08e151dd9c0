//! A cache of built programs.

use std::num::NonZeroUsize;
use std::sync::{Arc, Mutex};

use lru::LruCache;
use tilewright_hw::HwConfig;

use crate::program::AccelProgram;

type Key = (u64, Vec<u8>);

/// Programs, or what contains them, by configuration and by a key that the caller chooses, for example an expression's
/// text and its sizes. If the cache is full, the entry that was not used for the longest time goes.
#[derive(Debug)]
pub struct StreamCache<T = AccelProgram> {
    programs: Mutex<LruCache<Key, Arc<T>>>,
}

impl<T> StreamCache<T> {
    /// Makes an empty cache for at most `most` entries.
    pub fn new(most: NonZeroUsize) -> StreamCache<T> {
        StreamCache { programs: Mutex::new(LruCache::new(most)) }
    }

    /// Returns the entry under `key`, or builds it with `build`. Errors are not cached. If several threads build the same
    /// entry at the same time, all get the one that is finished first.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn get<E>(&self, config: &HwConfig, key: &[u8], build: impl FnOnce() -> Result<T, E>) -> Result<Arc<T>, E> {
        let key = (config.hash(), key.to_vec());
        let kept = || self.programs.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = kept().get(&key) {
            return Ok(Arc::clone(found));
        }
        let built = Arc::new(build()?);
        Ok(Arc::clone(kept().get_or_insert(key, || built)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, DriverError};

    #[test]
    fn a_program_is_built_once_while_there_is_room() {
        let cache = StreamCache::new(NonZeroUsize::new(2).unwrap());
        let config = HwConfig::default();
        let mut built = Vec::new();
        // The third entry takes the place of `b`, which is used before `a` for the last time.
        for key in ["a", "b", "a", "c", "a", "b"] {
            let program = cache.get(&config, key.as_bytes(), || {
                built.push(key);
                Builder::new(&config)?.finish()
            });
            assert_eq!(program.unwrap().insn_count(), 0);
        }
        assert_eq!(built, ["a", "b", "c", "b"]);
        let failed = cache.get(&config, b"d", || Err(DriverError::Tokens { token_bits: 3, queue_depth: 8 }));
        assert!(failed.is_err());
    }

    #[test]
    fn programs_of_other_configurations_are_others() {
        let cache = StreamCache::new(NonZeroUsize::new(4).unwrap());
        for (config, expect) in [("1x16x16", 1), ("1x8x8", 2), ("1x16x16", 1)] {
            let made = cache.get(&HwConfig::load(config).unwrap(), b"a", || Ok::<_, DriverError>(expect));
            assert_eq!(*made.unwrap(), expect);
        }
    }
}
