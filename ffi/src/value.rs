//! Values in C: a kind, and a number or a handle.

use std::collections::BTreeMap;
use std::ffi::{c_char, c_void};

use tilewright_runtime::Value;
use tilewright_runtime::value::Kind;

use crate::error::{Failure, TW_INVALID_ARGUMENT, TW_NOT_FOUND, array, guard, put, text, tw_status};
use crate::handle::{self, Held};

/// No value.
pub const TW_NONE: u32 = 0;
/// An integer, also a truth value: `data.integer`.
pub const TW_INTEGER: u32 = 1;
/// A real number: `data.real`.
pub const TW_FLOAT: u32 = 2;
/// A text in UTF-8.
pub const TW_STRING: u32 = 3;
/// Uninterpreted bytes.
pub const TW_BYTES: u32 = 4;
/// A tensor.
pub const TW_TENSOR: u32 = 5;
/// A function.
pub const TW_FUNCTION: u32 = 6;
/// A module: an artifact, a session or a device.
pub const TW_MODULE: u32 = 7;
/// Values by position.
pub const TW_LIST: u32 = 8;
/// Values by name.
pub const TW_MAP: u32 = 9;

// The header gets numbers, which must be the runtime's.
const _: () = {
    assert!(TW_NONE == Kind::None as u32);
    assert!(TW_INTEGER == Kind::Integer as u32);
    assert!(TW_FLOAT == Kind::Float as u32);
    assert!(TW_STRING == Kind::String as u32);
    assert!(TW_BYTES == Kind::Bytes as u32);
    assert!(TW_TENSOR == Kind::Tensor as u32);
    assert!(TW_FUNCTION == Kind::Function as u32);
    assert!(TW_MODULE == Kind::Module as u32);
    assert!(TW_LIST == Kind::List as u32);
    assert!(TW_MAP == Kind::Map as u32);
};

/// Names something that lives in the library, until [`tw_value_free`].
#[allow(non_camel_case_types, reason = "a name in C")]
pub type tw_handle = u64;

/// A value's number or handle.
#[allow(non_camel_case_types, reason = "a name in C")]
#[derive(Clone, Copy)]
#[repr(C)]
pub union tw_payload {
    /// Of an integer.
    pub integer: i64,
    /// Of a float.
    pub real: f64,
    /// Of every other kind.
    pub handle: tw_handle,
}

/// A value. Arguments are lent to the library; whatever the library puts out belongs to the caller, who frees it with
/// [`tw_value_free`].
#[allow(non_camel_case_types, reason = "a name in C")]
#[derive(Clone, Copy)]
#[repr(C)]
pub struct tw_value {
    /// `TW_INTEGER` or another of these kinds.
    pub kind: u32,
    /// 0.
    pub reserved: u32,
    /// Its number or handle.
    pub data: tw_payload,
}

impl tw_value {
    /// Hands a value to C.
    pub(crate) fn give(value: Value) -> tw_value {
        let kind = value.kind() as u32;
        let data = match value {
            Value::None => tw_payload { integer: 0 },
            Value::Integer(integer) => tw_payload { integer },
            Value::Float(real) => tw_payload { real },
            other => tw_payload { handle: handle::insert(other) },
        };
        tw_value { kind, reserved: 0, data }
    }

    /// The value that C lends.
    pub(crate) fn take(self) -> Result<Value, Failure> {
        // SAFETY: every field of the union is 8 bytes of any pattern.
        unsafe {
            match self.kind {
                TW_NONE => Ok(Value::None),
                TW_INTEGER => Ok(Value::Integer(self.data.integer)),
                TW_FLOAT => Ok(Value::Float(self.data.real)),
                _ => Ok(self.held()?.value.clone()),
            }
        }
    }

    /// What its handle stands for.
    pub(crate) fn held(self) -> Result<std::sync::Arc<Held>, Failure> {
        if !(TW_STRING..=TW_MAP).contains(&self.kind) {
            let text = match self.kind {
                TW_NONE | TW_INTEGER | TW_FLOAT => "a value without a handle is given where one is expected".into(),
                kind => format!("{kind} is no kind of value"),
            };
            return Err(Failure::new(TW_INVALID_ARGUMENT, text));
        }
        // SAFETY: as in `take`.
        let held = handle::get(unsafe { self.data.handle })?;
        if held.value.kind() as u32 != self.kind {
            let found = held.value.kind();
            return Err(Failure::new(TW_INVALID_ARGUMENT, format!("the handle is that of {found}, not of its kind")));
        }
        Ok(held)
    }
}

/// The values of an array of C.
///
/// # Safety
/// As [`array`].
pub(crate) unsafe fn values(items: *const tw_value, count: usize, what: &str) -> Result<Vec<Value>, Failure> {
    // SAFETY: the caller's promise.
    unsafe { array(items, count, what)? }.iter().map(|item| item.take()).collect()
}

/// Makes a string of `bytes` bytes of UTF-8, which are copied.
///
/// # Safety
/// `text` points to so many bytes; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_string_new(text: *const c_char, bytes: usize, out: *mut tw_value) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { array(text.cast::<u8>(), bytes, "text")? };
        let text = std::str::from_utf8(bytes).map_err(|_| Failure::new(TW_INVALID_ARGUMENT, "text is not UTF-8"))?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::from(text)) }
    })
}

/// Makes bytes, which are copied.
///
/// # Safety
/// `data` points to so many bytes; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_bytes_new(data: *const c_void, bytes: usize, out: *mut tw_value) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let bytes = unsafe { array(data.cast::<u8>(), bytes, "data")? };
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::Bytes(bytes.to_vec().into())) }
    })
}

/// Makes a list of `count` values. The values still belong to the caller.
///
/// # Safety
/// `items` points to so many values; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_list_new(items: *const tw_value, count: usize, out: *mut tw_value) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let items = unsafe { values(items, count, "items")? };
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::List(items)) }
    })
}

/// Makes a map of `count` values with their names. Names and values still belong to the caller; of values with the same
/// name the last is kept.
///
/// # Safety
/// `names` points to so many texts that end with a zero, `items` to so many values; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_map_new(
    names: *const *const c_char,
    items: *const tw_value,
    count: usize,
    out: *mut tw_value,
) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let (names, items) = unsafe { (array(names, count, "names")?, values(items, count, "items")?) };
        // SAFETY: the caller's promise.
        let names = names.iter().map(|name| unsafe { text(*name, "a name") });
        let names = names.collect::<Result<Vec<_>, _>>()?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || names.into_iter().zip(items).collect()) }
    })
}

/// Another value that refers to the same; both are freed.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_value_copy(value: tw_value, out: *mut tw_value) -> tw_status {
    guard(|| {
        let value = value.take()?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || value) }
    })
}

/// Frees a value. Those without a handle need not be freed, but may.
#[unsafe(no_mangle)]
pub extern "C" fn tw_value_free(value: tw_value) -> tw_status {
    guard(|| match value.kind {
        TW_NONE | TW_INTEGER | TW_FLOAT => Ok(()),
        _ => {
            value.held()?;
            // SAFETY: as in `tw_value::take`.
            handle::remove(unsafe { value.data.handle })
        }
    })
}

/// The bytes of a string or of bytes, valid until the value is freed. A zero follows a string; it does not count.
///
/// # Safety
/// `data` and `bytes` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_value_data(value: tw_value, data: *mut *const c_void, bytes: *mut usize) -> tw_status {
    guard(|| {
        let held = value.held()?;
        let (at, len) = match &held.value {
            Value::String(text) => {
                let kept = held.text.get_or_init(|| [text.as_bytes(), &[0]].concat());
                (kept.as_ptr(), text.len())
            }
            Value::Bytes(bytes) => (bytes.as_ptr(), bytes.len()),
            other => {
                let text = format!("it is {} where a string or bytes are expected", other.kind());
                return Err(Failure::new(TW_INVALID_ARGUMENT, text));
            }
        };
        // SAFETY: the caller's promise.
        unsafe { put(data, "data", at.cast()).and_then(|()| put(bytes, "bytes", len)) }
    })
}

/// The number of values of a list or a map.
///
/// # Safety
/// `length` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_value_length(value: tw_value, length: *mut usize) -> tw_status {
    guard(|| {
        let count = match &value.held()?.value {
            Value::List(items) => items.len(),
            Value::Map(items) => items.len(),
            other => {
                let text = format!("it is {} where a list or a map is expected", other.kind());
                return Err(Failure::new(TW_INVALID_ARGUMENT, text));
            }
        };
        // SAFETY: the caller's promise.
        unsafe { put(length, "length", count) }
    })
}

/// The value at a place of a list, from 0.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_value_item(list: tw_value, place: usize, out: *mut tw_value) -> tw_status {
    guard(|| {
        let held = list.held()?;
        let items = <&Vec<Value>>::try_from(&held.value)?;
        let missing = || Failure::new(TW_NOT_FOUND, format!("the list has {} items, so none at {place}", items.len()));
        let item = items.get(place).ok_or_else(missing)?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || item.clone()) }
    })
}

/// The value of that name in a map.
///
/// # Safety
/// `name` is a text that ends with a zero; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_value_named(map: tw_value, name: *const c_char, out: *mut tw_value) -> tw_status {
    guard(|| {
        let held = map.held()?;
        let items = <&BTreeMap<String, Value>>::try_from(&held.value)?;
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name")? };
        let missing = || {
            let known: Vec<&str> = items.keys().map(String::as_str).collect();
            Failure::new(TW_NOT_FOUND, format!("the map has no {name}; it has: {}", known.join(", ")))
        };
        let item = items.get(name).ok_or_else(missing)?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || item.clone()) }
    })
}

/// The names of a map's values, a list of strings.
///
/// # Safety
/// `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_value_names(map: tw_value, out: *mut tw_value) -> tw_status {
    guard(|| {
        let held = map.held()?;
        let items = <&BTreeMap<String, Value>>::try_from(&held.value)?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || items.keys().map(|name| Value::from(name.as_str())).collect()) }
    })
}

/// Stores a value where the caller wants it. It is only made if it can be stored, so that no handle is lost.
///
/// # Safety
/// `out` is null or can be written.
pub(crate) unsafe fn put_value(out: *mut tw_value, value: impl FnOnce() -> Value) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::null("out"));
    }
    // SAFETY: the caller's promise.
    unsafe { out.write(tw_value::give(value())) };
    Ok(())
}
