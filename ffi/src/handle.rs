//! Handles: numbers for what lives in the library.

use std::sync::{Arc, OnceLock, PoisonError, RwLock, RwLockReadGuard, RwLockWriteGuard};

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

static TABLE: RwLock<Option<Table>> = RwLock::new(None);

fn read() -> RwLockReadGuard<'static, Option<Table>> {
    TABLE.read().unwrap_or_else(PoisonError::into_inner)
}

fn write() -> RwLockWriteGuard<'static, Option<Table>> {
    TABLE.write().unwrap_or_else(PoisonError::into_inner)
}

/// A new handle.
pub(crate) fn insert(value: Value) -> u64 {
    let held = Arc::new(Held { value, text: OnceLock::new() });
    write().get_or_insert_default().insert(held).data().as_ffi()
}

fn unknown(handle: u64) -> Failure {
    Failure::new(TW_INVALID_HANDLE, format!("handle {handle:#x} was freed, or the library never gave it out"))
}

/// What a handle stands for.
pub(crate) fn get(handle: u64) -> Result<Arc<Held>, Failure> {
    let table = read();
    let held = table.as_ref().and_then(|table| table.get(KeyData::from_ffi(handle).into()));
    held.cloned().ok_or_else(|| unknown(handle))
}

/// Ends a handle.
pub(crate) fn remove(handle: u64) -> Result<(), Failure> {
    let held = write().as_mut().and_then(|table| table.remove(KeyData::from_ffi(handle).into()));
    // It is dropped here, after the table's lock: what it holds may end other handles.
    held.map(drop).ok_or_else(|| unknown(handle))
}
