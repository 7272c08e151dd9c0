//! Time that steps take.

use std::time::Duration;

/// A point in time.
#[cfg(not(target_arch = "wasm32"))]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(std::time::Instant);

#[cfg(not(target_arch = "wasm32"))]
impl Moment {
    /// This moment.
    pub fn now() -> Moment {
        Moment(std::time::Instant::now())
    }

    /// Time that has passed since.
    pub fn elapsed(self) -> Duration {
        self.0.elapsed()
    }
}

/// A point in time: milliseconds of the program that embeds WebAssembly, which has no clock of its own.
#[cfg(target_arch = "wasm32")]
#[derive(Debug, Clone, Copy)]
pub(crate) struct Moment(f64);

#[cfg(target_arch = "wasm32")]
impl Moment {
    /// This moment.
    pub fn now() -> Moment {
        #[link(wasm_import_module = "tilewright")]
        unsafe extern "C" {
            safe fn now() -> f64;
        }
        Moment(now())
    }

    /// Time that has passed since.
    pub fn elapsed(self) -> Duration {
        // A clock that was set back gives no negative time.
        Duration::try_from_secs_f64((Moment::now().0 - self.0) / 1e3).unwrap_or_default()
    }
}
