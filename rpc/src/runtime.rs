//! The threads that do the network's work.

use std::io;
use std::sync::OnceLock;

use tokio::runtime::{Builder, Runtime};

/// The process's runtime.
///
/// # Errors
/// The system's, if it gives no threads.
pub(crate) fn runtime() -> io::Result<&'static Runtime> {
    static RUNTIME: OnceLock<io::Result<Runtime>> = OnceLock::new();
    let made = RUNTIME.get_or_init(|| {
        Builder::new_multi_thread().worker_threads(2).thread_name("tilewright-rpc").enable_all().build()
    });
    made.as_ref().map_err(|error| io::Error::new(error.kind(), error.to_string()))
}
