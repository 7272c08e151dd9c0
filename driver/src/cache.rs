//! A cache of built programs.

use crate::program::AccelProgram;
use std::collections::HashMap;
use std::sync::{Arc, Mutex};
use tilewright_hw::HwConfig;

type Key = (u64, Vec<u8>);

/// Programs by configuration and by a key that the caller chooses, for example a region's text and its shapes.
#[derive(Debug, Default)]
pub struct StreamCache {
    programs: Mutex<HashMap<Key, Arc<AccelProgram>>>,
}

impl StreamCache {
    /// Returns the program under `key`, or builds it with `build`. Errors are not cached.
    ///
    /// # Errors
    /// Those of `build`.
    pub fn get<E>(
        &self,
        config: &HwConfig,
        key: &[u8],
        build: impl FnOnce() -> Result<AccelProgram, E>,
    ) -> Result<Arc<AccelProgram>, E> {
        let key = (config.hash(), key.to_vec());
        let kept = || self.programs.lock().unwrap_or_else(|e| e.into_inner());
        if let Some(found) = kept().get(&key) {
            return Ok(Arc::clone(found));
        }
        let program = Arc::new(build()?);
        Ok(Arc::clone(kept().entry(key).or_insert(program)))
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, DriverError};

    #[test]
    fn a_program_is_built_once() {
        let cache = StreamCache::default();
        let config = HwConfig::default();
        let mut built = 0;
        for key in ["a", "b", "a"] {
            let program = cache.get(&config, key.as_bytes(), || {
                built += 1;
                Builder::new(&config)?.finish()
            });
            assert_eq!(program.unwrap().insn_count(), 0);
        }
        assert_eq!(built, 2);
        let failed = cache.get(&config, b"c", || Err(DriverError::Tokens { token_bits: 3, queue_depth: 8 }));
        assert!(failed.is_err());
    }
}
