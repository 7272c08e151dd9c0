//! Tilewright's hardware: configuration, instruction set, integer arithmetic, the device contract, and the RTL.
//!
//! This crate depends on no other crate of the workspace.

pub mod cache;
pub mod config;
pub mod device;
pub mod flow;
pub mod form;
pub mod host;
pub mod interrupt;
pub mod isa;
pub mod layout;
pub mod link;
pub mod list;
pub mod num;
pub mod peripheral;
pub mod process;
pub mod regs;
pub mod rtl;

pub use config::{HwConfig, Mem};
pub use form::{Form, FormError};
