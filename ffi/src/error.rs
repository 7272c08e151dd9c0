//! Statuses and the texts of errors.

use std::cell::RefCell;
use std::ffi::{CStr, CString, c_char};
use std::panic::{AssertUnwindSafe, catch_unwind};

use tilewright_runtime::CallError;
use tilewright_runtime::function::AnyError;
use tilewright_runtime::value::WrongKind;

/// How a call of the library ended.
#[allow(non_camel_case_types, reason = "a name in C")]
pub type tw_status = i32;

/// The call did what it should.
pub const TW_OK: tw_status = 0;
/// An argument is a null pointer, of the wrong kind, or otherwise not what the call takes.
pub const TW_INVALID_ARGUMENT: tw_status = 1;
/// A handle that was freed, or that the library never gave out.
pub const TW_INVALID_HANDLE: tw_status = 2;
/// Nothing has this name.
pub const TW_NOT_FOUND: tw_status = 3;
/// Another thread uses the session.
pub const TW_BUSY: tw_status = 4;
/// The call was in order, but what it asked for failed.
pub const TW_FAILED: tw_status = 5;
/// A fault of the library. Please report it; the library can still be used.
pub const TW_PANIC: tw_status = 6;

/// An error on its way to C.
pub(crate) struct Failure {
    status: tw_status,
    text: String,
}

impl Failure {
    pub fn new(status: tw_status, text: impl Into<String>) -> Failure {
        Failure { status, text: text.into() }
    }

    /// Its text.
    pub fn text(&self) -> &str {
        &self.text
    }

    /// A null pointer where one is not allowed.
    pub fn null(what: &str) -> Failure {
        Failure::new(TW_INVALID_ARGUMENT, format!("{what} is a null pointer"))
    }
}

impl From<CallError> for Failure {
    fn from(error: CallError) -> Failure {
        let status = match &error {
            CallError::Count { .. } | CallError::Argument { .. } => TW_INVALID_ARGUMENT,
            CallError::Unknown { .. } | CallError::NoDevice { .. } => TW_NOT_FOUND,
            CallError::Failed { .. } => TW_FAILED,
        };
        Failure::new(status, error.to_string())
    }
}

impl From<AnyError> for Failure {
    fn from(error: AnyError) -> Failure {
        Failure::new(TW_FAILED, error.to_string())
    }
}

impl From<WrongKind> for Failure {
    fn from(error: WrongKind) -> Failure {
        Failure::new(TW_INVALID_ARGUMENT, error.to_string())
    }
}

thread_local! {
    static TEXT: RefCell<CString> = RefCell::default();
}

/// Keeps an error's text for [`tw_error`].
fn keep(text: &str) {
    // A zero would end the text in C.
    let text = CString::new(text.replace('\0', "\u{fffd}")).unwrap_or_default();
    TEXT.with(|kept| *kept.borrow_mut() = text);
}

/// The text of the last error on this thread; empty if there was none. It is valid until the next call of the library
/// on this thread.
#[unsafe(no_mangle)]
pub extern "C" fn tw_error() -> *const c_char {
    TEXT.with(|kept| kept.borrow().as_ptr())
}

/// Sets the text of an error, for a function in C that fails.
///
/// # Safety
/// `text` is null or points to a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_set_error(text: *const c_char) {
    if !text.is_null() {
        // SAFETY: the caller's promise.
        keep(&unsafe { CStr::from_ptr(text) }.to_string_lossy());
    }
}

/// Takes the text of the last error.
pub(crate) fn take() -> String {
    TEXT.with(|kept| kept.take()).to_string_lossy().into_owned()
}

/// Runs the body of a call: an error becomes its status and text, and so does a panic.
pub(crate) fn guard(body: impl FnOnce() -> Result<(), Failure>) -> tw_status {
    let failure = match catch_unwind(AssertUnwindSafe(body)) {
        Ok(Ok(())) => return TW_OK,
        Ok(Err(failure)) => failure,
        Err(panic) => {
            let text = panic.downcast_ref::<String>().map(String::as_str);
            let text = text.or(panic.downcast_ref::<&str>().copied()).unwrap_or("without a text");
            Failure::new(TW_PANIC, format!("a fault of the library: {text}"))
        }
    };
    keep(&failure.text);
    failure.status
}

/// Stores a result where the caller wants it.
///
/// # Safety
/// `out` is null or can be written.
pub(crate) unsafe fn put<T>(out: *mut T, what: &str, value: T) -> Result<(), Failure> {
    if out.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: the caller's promise.
    unsafe { out.write(value) };
    Ok(())
}

/// A text of C.
///
/// # Safety
/// `text` is null or points to a text that ends with a zero, and is not changed meanwhile.
pub(crate) unsafe fn text<'a>(text: *const c_char, what: &str) -> Result<&'a str, Failure> {
    if text.is_null() {
        return Err(Failure::null(what));
    }
    // SAFETY: the caller's promise.
    let text = unsafe { CStr::from_ptr(text) };
    text.to_str().map_err(|_| Failure::new(TW_INVALID_ARGUMENT, format!("{what} is not UTF-8")))
}

/// An array of C; null is allowed if it is empty.
///
/// # Safety
/// `items` is null or points to `count` items that are not changed meanwhile.
pub(crate) unsafe fn array<'a, T>(items: *const T, count: usize, what: &str) -> Result<&'a [T], Failure> {
    if count == 0 {
        return Ok(&[]);
    }
    if items.is_null() {
        return Err(Failure::null(what));
    }
    if count.checked_mul(size_of::<T>()).is_none_or(|bytes| isize::try_from(bytes).is_err()) {
        return Err(Failure::new(TW_INVALID_ARGUMENT, format!("{what} has {count} items, more than memory holds")));
    }
    // SAFETY: the caller's promise.
    Ok(unsafe { std::slice::from_raw_parts(items, count) })
}
