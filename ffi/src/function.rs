//! Functions: those of the library called from C, and those of C called from everywhere.

use std::ffi::{c_char, c_void};

use tilewright_runtime::function::AnyError;
use tilewright_runtime::{Function, Registry, Value};

use crate::error::{self, Failure, TW_NOT_FOUND, TW_OK, guard, text, tw_status};
use crate::value::{put_value, tw_value, values};

/// A function in C. `args` are lent for the call; `result` holds no value, and the library takes over and frees what
/// the function stores there. After [`tw_set_error`](crate::tw_set_error) it returns `TW_FAILED`. It can be called by
/// several threads at the same time.
#[allow(non_camel_case_types, reason = "a name in C")]
pub type tw_callback = Option<
    unsafe extern "C" fn(context: *mut c_void, args: *const tw_value, count: usize, result: *mut tw_value) -> tw_status,
>;

/// Frees a function's context.
#[allow(non_camel_case_types, reason = "a name in C")]
pub type tw_drop = Option<unsafe extern "C" fn(context: *mut c_void)>;

/// What a function in C works on.
struct Context {
    at: *mut c_void,
    drop: tw_drop,
}

// SAFETY: `tw_function_new` asks for a context that any thread can use.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Drop for Context {
    fn drop(&mut self) {
        if let Some(drop) = self.drop {
            // SAFETY: the promise of `tw_function_new`; nothing calls the function any more.
            unsafe { drop(self.at) }
        }
    }
}

/// Values that are freed when a call ends, whichever way.
struct Lent(Vec<tw_value>);

impl Drop for Lent {
    fn drop(&mut self) {
        for value in &self.0 {
            // A function that frees its arguments breaks its contract, but no more than that.
            let _ = crate::value::tw_value_free(*value);
        }
    }
}

fn call(
    callback: unsafe extern "C" fn(*mut c_void, *const tw_value, usize, *mut tw_value) -> tw_status,
    context: &Context,
    args: &[Value],
) -> Result<Value, AnyError> {
    let args = Lent(args.iter().cloned().map(tw_value::give).collect());
    let mut result = tw_value::give(Value::None);
    error::take();
    // SAFETY: the promise of `tw_function_new`.
    let status = unsafe { callback(context.at, args.0.as_ptr(), args.0.len(), &mut result) };
    let owned = Lent(vec![result]);
    if status != TW_OK {
        let text = error::take();
        return Err(if text.is_empty() { format!("it returned status {status}") } else { text }.into());
    }
    owned.0[0].take().map_err(|failure| format!("its result: {}", failure.text()).into())
}

/// Makes a function from one in C. `context` is passed to every call; `drop`, which can be null, frees it when nothing
/// refers to the function any more.
///
/// # Safety
/// `name` is a text that ends with a zero. `callback` and `drop` are functions of these types, and any thread can use
/// them and the context. `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_function_new(
    name: *const c_char,
    callback: tw_callback,
    context: *mut c_void,
    drop: tw_drop,
    out: *mut tw_value,
) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name")? };
        let callback = callback.ok_or_else(|| Failure::null("callback"))?;
        if out.is_null() {
            return Err(Failure::null("out"));
        }
        let context = Context { at: context, drop };
        let function = Function::new(name, move |args| call(callback, &context, args.values()));
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::Function(function)) }
    })
}

/// Registers a function under its name, in place of one that has the name. Packed steps of models find it there. The
/// value still belongs to the caller.
#[unsafe(no_mangle)]
pub extern "C" fn tw_function_register(function: tw_value) -> tw_status {
    guard(|| {
        Registry::global().add(<&Function>::try_from(&function.held()?.value)?.clone());
        Ok(())
    })
}

/// Removes a function from the registry. Sessions that use it still can.
///
/// # Safety
/// `name` is a text that ends with a zero.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_function_unregister(name: *const c_char) -> tw_status {
    guard(|| {
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name")? };
        match Registry::global().remove(name) {
            true => Ok(()),
            false => Err(unknown(name)),
        }
    })
}

fn unknown(name: &str) -> Failure {
    let known = Registry::global().names().join(", ");
    Failure::new(TW_NOT_FOUND, format!("no function is registered as {name}; there are: {known}"))
}

/// The registered function of that name.
///
/// # Safety
/// `name` is a text that ends with a zero; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_function_find(name: *const c_char, out: *mut tw_value) -> tw_status {
    guard(|| {
        crate::device::register();
        // SAFETY: the caller's promise.
        let name = unsafe { text(name, "name")? };
        let function = Registry::global().get(name).ok_or_else(|| unknown(name))?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::Function(function)) }
    })
}

/// Calls a function with `count` arguments.
///
/// # Safety
/// `args` points to so many values; `result` can be written, or is null if the result is not wanted.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_function_call(
    function: tw_value,
    args: *const tw_value,
    count: usize,
    result: *mut tw_value,
) -> tw_status {
    guard(|| {
        let held = function.held()?;
        // SAFETY: the caller's promise.
        let args = unsafe { values(args, count, "args")? };
        let value = <&Function>::try_from(&held.value)?.call(&args)?;
        if result.is_null() {
            return Ok(());
        }
        // SAFETY: the caller's promise.
        unsafe { put_value(result, || value) }
    })
}
