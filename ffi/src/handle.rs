//! Handles: numbers for what lives in the library.

use std::sync::{Arc, LazyLock, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

use slotmap::{DefaultKey, Key, KeyData, SlotMap};
use tilewright_runtime::Value;

use crate::error::{Failure, TW_INVALID_HANDLE};

/// What a handle stands for.
pub(crate) struct Held {
    pub value: Value,
    /// A string with a zero at its end, made when C asks for it.
    pub text: OnceLock<Vec<u8>>,
}

/// A slot's generation is part of its handle, so that the handle of something freed never means what came after it.
type Table = SlotMap<DefaultKey, Arc<Held>>;

static TABLE: LazyLock<RwLock<Table>> = LazyLock::new(RwLock::default);

fn read() -> RwLockReadGuard<'static, Table> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Table> {
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

/// A new handle.
pub(crate) fn insert(value: Value) -> u64 {
    let held = Arc::new(Held { value, text: OnceLock::new() });
    write().insert(held).data().as_ffi()
}

fn unknown(handle: u64) -> Failure {
    Failure::new(TW_INVALID_HANDLE, format!("handle {handle:#x} was freed, or the library never gave it out"))
}

/// What a handle stands for.
pub(crate) fn get(handle: u64) -> Result<Arc<Held>, Failure> {
    read().get(KeyData::from_ffi(handle).into()).cloned().ok_or_else(|| unknown(handle))
}

/// Ends a handle.
pub(crate) fn remove(handle: u64) -> Result<(), Failure> {
    let held = write().remove(KeyData::from_ffi(handle).into());
    // It is dropped here, after the table's lock: what it holds may end other handles.
    held.map(drop).ok_or_else(|| unknown(handle))
}
