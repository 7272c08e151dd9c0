//! Options of the partition.

use crate::passes::OptLevel;

/// Which operators the accelerator gets.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offload {
    /// Every operator that it can compute.
    #[default]
    All,
    /// Operators that take less time there, including the transfers of their operands and results.
    Auto,
    /// Nothing.
    None,
}

impl Offload {
    /// [`Offload::All`] if there is an accelerator, otherwise [`Offload::None`].
    pub fn all_if(accelerator: bool) -> Offload {
        if accelerator { Offload::All } else { Offload::None }
    }
}

/// How a graph is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// Which operators the accelerator gets.
    pub offload: Offload,
    /// Whether the results of all layers are stored, each in its own memory, so that the host can read them after a
    /// run.
    pub keep_values: bool,
    /// Whether element-wise operators and poolings are fused into the tiles of the product before them.
    pub fuse: bool,
    /// Whether convolutions around a depthwise one become a chain, if operators are fused.
    pub chain: bool,
    /// Whether results stay in inp between layers if they fit.
    pub keep_on_chip: bool,
    /// Whether consecutive nodes in one place become one program, or one function if possible. Otherwise every layer of
    /// the accelerator gets its own program, and every node on the CPU its own function.
    pub join: bool,
    /// Whether products use the tiles with the fewest estimated cycles. Otherwise they use the first tiles that fit.
    pub search_tiles: bool,
    /// Whether each program gets the order of instructions that takes the fewest cycles, if there is a
    /// [`crate::cost::Clock`]. Has no effect with `keep_values`.
    pub reorder: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            offload: Offload::All,
            keep_values: false,
            fuse: false,
            chain: true,
            keep_on_chip: false,
            join: true,
            search_tiles: true,
            reorder: true,
        }
    }
}

impl Options {
    /// The options for an optimization level.
    pub fn of_level(level: OptLevel) -> Options {
        Options {
            join: level >= OptLevel::O1,
            search_tiles: level >= OptLevel::O2,
            reorder: level >= OptLevel::O2,
            fuse: level >= OptLevel::O3,
            keep_on_chip: level >= OptLevel::O3,
            ..Options::default()
        }
    }

    /// Returns these options without what higher levels add for the accelerator, one level lower each time; first without
    /// chains, if there are any.
    pub(super) fn below(self, has_chains: bool) -> Vec<Options> {
        let plain = Options { fuse: false, keep_on_chip: false, ..self };
        let first = Options { search_tiles: false, ..plain };
        let mut all = Vec::new();
        if self.fuse && has_chains {
            all.push(Options { chain: false, ..self });
        }
        if plain != self {
            all.push(plain);
        }
        if first != plain {
            all.push(first);
        }
        all
    }
}

impl From<Offload> for Options {
    fn from(offload: Offload) -> Options {
        Options { offload, ..Options::default() }
    }
}
