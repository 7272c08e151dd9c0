//! Products in tiles.

use tilewright_compiler::tir::Function;

/// The function with its product in tiles, where it has one that is worth it.
pub fn tiled(_f: Function) -> Option<Function> {
    None
}
