//! Searches for plans of layers on the accelerator that take fewer cycles.
//!
//! [`tune`] takes the layers of a partition. For each layer it draws plans from the operator's
//! [`Space`](crate::codegen::accel::space::Space) and changes the best ones. The operator's estimate removes those that
//! are not promising, the cycle model times the others without their neighbors, and the best of these in a program
//! together with the layers before and after. Each plan that was timed with its neighbors becomes a
//! [`Record`](crate::records::Record), so that a search can be continued and its result replayed.
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
//! | `measured` | the search by measured times, for CPU code |

mod candidates;
mod choose;
mod draw;
mod judge;
mod measured;
mod request;
mod search;
mod task;
mod tasks;

pub use candidates::Candidates;
#[cfg(test)]
pub(crate) use draw::random;
pub use measured::{MeasuredLayer, MeasuredReport, MeasuredRequest, MeasuredResult, tune_measured};
pub use request::{LayerResult, Progress, Report, Request, TuneError};
pub use search::tune;
