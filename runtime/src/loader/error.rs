//! Why object code could not be loaded.

use thiserror::Error;

/// Why object code could not be loaded.
#[derive(Debug, Clone, PartialEq, Eq, Error)]
pub enum LoadError {
    /// The bytes are not a relocatable ELF object for this processor.
    #[error("object code is damaged or of the wrong kind: {0}; compile the model again")]
    Format(String),
    /// The object uses something that the loader does not support.
    #[error("object code uses {what} ({name}), which the loader does not support; compile it without")]
    Unsupported {
        /// The feature.
        what: &'static str,
        /// Section or symbol.
        name: String,
    },
    /// A name that is neither defined nor imported.
    #[error("object code calls `{0}`, which is not among the imports that the runtime provides")]
    Unresolved(String),
    /// A relocation whose target is out of reach, or that is outside its section.
    #[error("object code has a relocation of type {kind} at {section}+{offset:#x} that cannot be applied: {reason}")]
    Relocation {
        /// Section.
        section: String,
        /// Offset in the section.
        offset: u64,
        /// ELF's number of the type.
        kind: u32,
        /// Why not.
        reason: String,
    },
    /// The system provided no memory, or rejected its protection.
    #[error("cannot map {bytes} bytes for object code: {reason}")]
    Memory {
        /// Size of the image.
        bytes: usize,
        /// The system's message.
        reason: String,
    },
    /// This machine cannot run the code.
    #[error(
        "object code can be loaded only on x86-64, aarch64, armv7 and riscv64 with Unix, which this machine is not; for \
         WebAssembly, compile the model with --emit wasm"
    )]
    Host,
}
