//! Devices that run programs: simulators, boards, or only this machine, by the names that `--device` accepts.
//!
//! A new device is a row of [`DEVICES`] (`table.rs`), with the function that opens it.

pub mod board;
pub mod dram;
mod extras;
mod hw;
mod lend;
mod name;
mod need;
mod open;
mod register;
mod remote;
pub mod stream;
mod table;
pub mod virtual_board;

pub use extras::Extras;
pub use hw::{DEFAULT_HW, HwError, load_hw, load_hw_with_times};
pub use lend::{Listen, lends, serve};
pub use name::{DeviceKind, DeviceNameError};
pub use need::Need;
pub use open::{open, tell_build};
pub use register::register;
pub use remote::{is_exact, open_functions, open_server};
pub use table::{DEVICES, ModelRunner, Spec, Way, help, names};
pub use tilewright_driver::port::{Board, BoardPort, PortError};
pub use tilewright_rpc::client::ClientError;
pub use tilewright_rpc::endpoint::AccessError;
pub use tilewright_rpc::native::serve as run_native;
pub use tilewright_rpc::server::{Lends, Native, Running as Server};
pub use tilewright_rpc::{Access, Remote};
