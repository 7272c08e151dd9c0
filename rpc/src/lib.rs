//! Devices on another machine: the server that lends one, and the client's end, which is a [`tilewright_hw::device::Device`].
//!
//! The service is gRPC; `proto/tilewright.proto` defines it. A session is one stream in each direction. Requests
//! are executed in order, and a client does not wait between those that need no answer, so writes, commands and reads
//! are on their way at the same time. A session has the device as long as its streams live, so a client that is gone
//! gives it back. The functions here are synchronous; threads of this crate do the network's work.
//!
//! Beside the device's requests, a session has calls of the server's functions, with [`Value`]s as arguments: `load`
//! makes a session of an uploaded artifact on the server, and a server can have functions of its own ([`Remote`]).
//!
//! What a server lends comes from its caller, as functions ([`server::Lends`]), so this crate knows no device.
//!
//! [`Value`]: tilewright_runtime::Value

mod caller;
pub mod client;
mod connection;
pub mod endpoint;
mod host;
pub mod native;
mod refusal;
mod report;
mod runtime;
pub mod server;
mod stream;
pub mod tracker;
mod values;

pub use client::{Remote, RemoteDevice};
pub use endpoint::{Access, Endpoint, Lender};

/// The messages and services of `proto/tilewright.proto`.
#[allow(missing_docs, clippy::all)]
pub(crate) mod wire {
    tonic::include_proto!("tilewright.v1");
}

/// Version of the services. Machines of different versions do not work together.
pub const PROTOCOL: u32 = 2;

/// The function of a server that makes a session of an artifact.
pub(crate) const LOAD: &str = "load";

/// Bytes of data in one message; larger data are sent in pieces. Pieces that fit the processor's cache cross faster.
pub(crate) const PIECE: usize = 1 << 18;

/// Most bytes of a message with everything around the piece.
pub(crate) const MESSAGE: usize = 4 << 20;

/// Bytes of an HTTP/2 stream, and of a connection, that can be on their way. The default of 64 KiB would stop the
/// sender a thousand times in 100 MB.
pub(crate) const WINDOW: u32 = 16 << 20;

/// Bytes of an HTTP/2 frame at most. The default of 16 KiB would cut a piece into 16.
pub(crate) const FRAME: u32 = 1 << 20;

/// Messages of a session that are on their way inside a process: with pieces of [`PIECE`], 4 MiB at most.
pub(crate) const QUEUE: usize = 16;
