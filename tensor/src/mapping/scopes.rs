//! Scopes of buffers, as memories of the accelerator.

use tilewright_hw::config::Mem;

use crate::tir::Scope;

/// Returns the memory of a scope.
pub fn mem(scope: Scope) -> Option<Mem> {
    match scope {
        Scope::Inp => Some(Mem::Inp),
        Scope::Wgt => Some(Mem::Wgt),
        Scope::Acc => Some(Mem::Acc),
        Scope::Out => Some(Mem::Out),
        Scope::Param => Some(Mem::Param),
        Scope::Global | Scope::Local | Scope::Shared => None,
    }
}
