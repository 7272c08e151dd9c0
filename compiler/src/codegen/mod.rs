//! Code generators that need no foreign toolchain.

pub mod accel;
