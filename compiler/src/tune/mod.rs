//! Searches for plans of layers on the accelerator that take fewer cycles.
//!
//! [`tune`] takes the layers of a partition. For each layer it draws plans from the operator's
//! [`Space`](crate::codegen::accel::space::Space) and changes the best ones; the operator's estimate removes those that
//! are not promising, and the cycle model times the others in a program together with the layers before and after. Every
//! trial becomes a [`Record`](crate::records::Record), so that a search can be continued and its result replayed.
//! Nothing here does I/O: the caller writes the records.
//!
//! | file | contents |
//! |---|---|
//! | `draw` | draws and changes decisions |
//! | `task` | the search for one layer |
//! | `tasks` | the layers of a partition, each once |
//! | `candidates` | plans of a layer one by one, for measurements |
//! | `choose` | from the best plans of layers to the best program |
//! | `judge` | trials on all cores |
//! | `request` | what to tune, and the result |
//! | `search` | the search over all layers |

mod candidates;
mod choose;
mod draw;
mod judge;
mod request;
mod search;
mod task;
mod tasks;

pub use candidates::Candidates;
#[cfg(test)]
pub(crate) use draw::random;
pub use request::{LayerResult, Progress, Report, Request, TuneError};
pub use search::tune;
