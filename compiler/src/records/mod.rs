//! Plans that `tilewright tune` found, by what determines a layer's cycles.
//!
//! A [`Record`] is one line of a log: a layer, its decisions, and the cycles that the cycle model
//! counted or the time that was measured. [`Log`] reads
//! lines and sets those of other versions and configurations aside. [`Records`] answers which decisions a layer gets, and
//! [`OtherShapes`] which it got at the first shape of the same model.

mod book;
mod log;
mod record;
mod shapes;
mod workload;

pub use book::{Records, Replay};
pub use log::{Log, LogError};
pub use record::{Outcome, Record, SCHEMA, config_key};
pub use shapes::{Elsewhere, OtherShapes};
pub use workload::Workload;
