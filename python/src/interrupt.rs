//! Native work that other threads of Python run beside, and that Ctrl-C stops.

use std::cell::{Cell, RefCell};

use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use tilewright_hw::interrupt::Interrupt;

thread_local! {
    /// What a signal's handler raised while this thread did native work.
    static RAISED: RefCell<Option<PyErr>> = const { RefCell::new(None) };
    /// How much native work of this thread waits for functions of Python that it called.
    static DEPTH: Cell<usize> = const { Cell::new(0) };
}

/// Deepest nesting of native work: a pass or a function that compiles takes some 50 KB of the stack for each.
const DEEPEST: usize = 64;

/// Native work that is being done.
struct Nested;

impl Nested {
    fn new() -> PyResult<Nested> {
        let depth = DEPTH.get();
        if depth >= DEEPEST {
            let text = format!("a pass or a function calls itself through the library, {DEEPEST} times");
            return Err(PyRecursionError::new_err(text));
        }
        DEPTH.set(depth + 1);
        Ok(Nested)
    }
}

impl Drop for Nested {
    fn drop(&mut self) {
        DEPTH.set(DEPTH.get() - 1);
    }
}

/// Runs the handlers of signals that have come, as Python does between its instructions. Only the main thread has any.
fn poll() -> bool {
    let raised = Python::attach(|py| py.check_signals().err());
    let is_raised = raised.is_some();
    if is_raised {
        RAISED.with(|kept| *kept.borrow_mut() = raised);
    }
    is_raised
}

/// Does native work, while other threads of Python run. If a signal's handler raises, as that of Ctrl-C does, the work
/// stops at its next check. It also stops with the work that called the function of Python that does this work.
///
/// # Errors
/// What the handler raised, and `RecursionError` if the work is part of too much other work.
pub fn detached<T: Send>(py: Python<'_>, work: impl Send + FnOnce() -> T) -> PyResult<T> {
    let _nested = Nested::new()?;
    let interrupt = Interrupt::new(poll);
    let result = py.detach(|| interrupt.during(work));
    match RAISED.with(|kept| kept.borrow_mut().take()) {
        Some(raised) => Err(raised),
        None => py.check_signals().map(|()| result),
    }
}

/// Stops the work that called a function of Python, which raised.
pub fn stop() {
    if let Some(interrupt) = Interrupt::current() {
        interrupt.stop();
    }
}
