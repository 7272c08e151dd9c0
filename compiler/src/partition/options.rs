//! How a graph is split.

use crate::passes::OptLevel;

/// What is offered to the accelerator.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Default)]
pub enum Offload {
    /// Every operator that it can compute.
    #[default]
    All,
    /// What takes less time there, with what it takes to bring its operands there and its results back.
    Auto,
    /// Nothing.
    None,
}

impl Offload {
    /// Everything where there is an accelerator, else nothing.
    pub fn all_if(accelerator: bool) -> Offload {
        if accelerator { Offload::All } else { Offload::None }
    }
}

/// How a graph is split.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Options {
    /// What is offered to the accelerator.
    pub offload: Offload,
    /// Whether the host reads what every layer writes, each in memory of its own, so that all can be looked at after a run.
    pub keep_values: bool,
    /// Whether operators of single elements and poolings are taken into the tiles of the product before them.
    pub fuse: bool,
    /// Whether results stay in inp between layers where they fit.
    pub keep_on_chip: bool,
    /// Whether what follows each other in one place becomes one program, or one function where that is possible; else every
    /// layer of the accelerator has a program, and every node of the CPU a function.
    pub join: bool,
    /// Whether the tiles of products are those of the fewest estimated cycles; else they are the first that fit.
    pub search_tiles: bool,
}

impl Default for Options {
    fn default() -> Options {
        Options {
            offload: Offload::All,
            keep_values: false,
            fuse: false,
            keep_on_chip: false,
            join: true,
            search_tiles: true,
        }
    }
}

impl Options {
    /// Those of a level of optimisation.
    pub fn of_level(level: OptLevel) -> Options {
        Options {
            join: level >= OptLevel::O1,
            search_tiles: level >= OptLevel::O2,
            fuse: level >= OptLevel::O3,
            keep_on_chip: level >= OptLevel::O3,
            ..Options::default()
        }
    }

    /// The same with what the accelerator gains at a level taken away, level by level.
    pub(super) fn below(self) -> Vec<Options> {
        let plain = Options { fuse: false, keep_on_chip: false, ..self };
        let first = Options { search_tiles: false, ..plain };
        let mut all = Vec::new();
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
