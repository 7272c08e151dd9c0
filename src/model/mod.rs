//! Model files to artifacts, and artifacts to results.

mod buckets;
mod build;
pub mod classes;
pub mod clock;
pub mod compile;
mod described;
mod error;
pub mod export;
mod file;
pub mod file_names;
pub mod given;
pub mod inference;
mod jit;
pub mod library;
pub mod listing;
pub mod measure;
pub mod picture;
pub mod plans;
mod processor;
pub mod quantize;
pub mod request;
pub mod schedules;
mod several;
pub mod shapes;
pub mod tuned;
mod uploaded;
pub mod values;
pub mod wasm;
pub mod zoo;

pub use buckets::buckets;
pub use build::{
    Built, C99, Datum, Fallback, ImportOptions, Offload, Options, Precision, Sizes, Sources, about, build,
    build_traced, data_object, format_of, import, import_traced, inputs, known_formats, library_object, partitioned,
    passes, text,
};
pub use described::describe;
pub use error::ModelError;
pub use file::ModelFile;
pub use jit::{Jit, for_data, open_inputs};
pub use request::{CompileRequest, Compiled, DumpIr, FallbackKind};
pub use several::Shapes;
pub use uploaded::{UploadError, Uploaded};

#[cfg(feature = "llvm")]
pub use tilewright_llvm::finish;
pub use tilewright_sim::rtl::default_cache_dir as cache_dir;
