//! What devices need in addition to this program.

use tilewright_hw::device::DeviceError;
use tilewright_sim::rtl::{Compiler, Verilator};

use super::table::{ModelRunner, Spec, Way};

/// What a device needs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Need {
    /// Nothing.
    Nothing,
    /// Verilator and a C++ compiler, which build the design's simulator.
    Verilator,
    /// A code generator for this processor.
    CodeGenerator,
    /// A GPU and its libraries.
    Gpu,
    /// A board behind its port, with the bitstream of the configuration.
    Board,
    /// A server that lends a device.
    Server,
}

impl Spec {
    /// What the device needs.
    pub fn need(&self) -> Need {
        match self.way {
            Way::Functional | Way::Cycle => Need::Nothing,
            Way::Design => Need::Verilator,
            Way::None(ModelRunner::Cpu) => Need::CodeGenerator,
            Way::None(ModelRunner::Gpu) => Need::Gpu,
            Way::Board => Need::Board,
            Way::Remote => Need::Server,
        }
    }
}

impl Need {
    /// In words.
    pub fn text(self) -> &'static str {
        match self {
            Need::Nothing => "nothing",
            Need::Verilator => "Verilator and a C++ compiler",
            Need::CodeGenerator => "LLVM in this program, for models; nothing for artifacts",
            Need::Gpu => "an NVIDIA GPU, its driver and NVRTC",
            Need::Server => "a machine that runs tilewright serve",
            Need::Board => "a board with the configuration's bitstream; check it with tilewright doctor --device",
        }
    }

    /// What of it is missing here, and the remedy; `None` also for a board or a server, which only its port can tell.
    pub fn missing(self) -> Option<String> {
        let tool = |error: DeviceError| match error {
            DeviceError::Tool { tool, reason, remedy } => format!("{tool} {reason}; {remedy}"),
            other => other.to_string(),
        };
        match self {
            Need::Nothing | Need::Board | Need::Server => None,
            Need::Verilator => Verilator::find(None).err().or(Compiler::find().err()).map(tool),
            Need::CodeGenerator if cfg!(feature = "llvm") => None,
            Need::CodeGenerator => Some("build this program with the feature `llvm`".into()),
            Need::Gpu => tilewright_runtime::cuda::available().err().map(|error| error.to_string()),
        }
    }
}
