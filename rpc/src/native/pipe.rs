//! Frames over the socket between a server and its process: a length of four bytes, then the message.

use std::io::{self, BufReader, Read, Write};
use std::os::unix::net::UnixStream;
use std::sync::{Arc, Mutex, PoisonError, mpsc};
use std::time::Duration;

use prost::Message;
use tokio::sync::oneshot;

use super::process::Process;
use crate::connection::{ClientError, End};
use crate::server::Ended;
use crate::wire::{self, frame, reply, request};
use crate::{MESSAGE, caller, server};

/// The server calls the process.
pub(super) const CALLS: u32 = 0;
/// The process uses the device.
pub(super) const DEVICE: u32 = 1;
/// The process calls functions of the server.
pub(super) const FUNCTIONS: u32 = 2;

/// Sends frames, whole.
pub(super) struct Writer(Mutex<UnixStream>);

impl Writer {
    pub fn new(stream: UnixStream) -> Writer {
        Writer(Mutex::new(stream))
    }

    pub fn send(&self, channel: u32, kind: frame::Kind) -> io::Result<()> {
        let frame = wire::Frame { channel, kind: Some(kind) };
        let mut bytes = vec![0; 4];
        bytes.reserve(frame.encoded_len());
        frame.encode(&mut bytes).map_err(io::Error::other)?;
        let length = (bytes.len() - 4) as u32;
        bytes[..4].copy_from_slice(&length.to_le_bytes());
        self.0.lock().unwrap_or_else(PoisonError::into_inner).write_all(&bytes)
    }
}

/// Receives frames.
pub(super) struct Frames(BufReader<UnixStream>);

impl Frames {
    pub fn new(stream: UnixStream) -> Frames {
        Frames(BufReader::new(stream))
    }

    /// The next frame; none once the other side is gone or sends what is none.
    pub fn next(&mut self) -> Option<wire::Frame> {
        let mut length = [0; 4];
        self.0.read_exact(&mut length).ok()?;
        let length = u32::from_le_bytes(length) as usize;
        if length > MESSAGE {
            return None;
        }
        let mut bytes = vec![0; length];
        self.0.read_exact(&mut bytes).ok()?;
        wire::Frame::decode(bytes::Bytes::from(bytes)).ok()
    }
}

/// Replies on a channel.
pub(super) struct Replies<'a> {
    pub writer: &'a Writer,
    pub channel: u32,
}

impl server::Replies for Replies<'_> {
    fn send(&mut self, kind: reply::Kind) -> Result<(), Ended> {
        let reply = frame::Kind::Reply(wire::Reply { kind: Some(kind) });
        self.writer.send(self.channel, reply).map_err(|_| Ended)
    }
}

/// Requests on a channel, and their replies.
pub(super) struct Link {
    name: String,
    channel: u32,
    writer: Arc<Writer>,
    replies: mpsc::Receiver<wire::Reply>,
    /// The process at the other side, which ends with this link; none inside the process itself.
    process: Option<Arc<Process>>,
    /// Dropped with the link.
    _open: Option<oneshot::Sender<()>>,
}

impl Link {
    pub fn new(
        name: String,
        channel: u32,
        writer: Arc<Writer>,
        replies: mpsc::Receiver<wire::Reply>,
        process: Option<Arc<Process>>,
        open: Option<oneshot::Sender<()>>,
    ) -> Link {
        Link { name, channel, writer, replies, process, _open: open }
    }

    fn died(&self) -> ClientError {
        let lost = || End::new("lost its server", "see the log of the server");
        let end = self.process.as_ref().map_or_else(lost, |process| process.end());
        ClientError::Died { process: self.name.clone(), end }
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        if let Some(process) = &self.process {
            process.kill();
            process.end();
        }
    }
}

impl caller::Link for Link {
    fn name(&self) -> &str {
        &self.name
    }

    fn send(&mut self, kind: request::Kind) -> Result<(), ClientError> {
        let request = frame::Kind::Request(wire::Request { kind: Some(kind) });
        self.writer.send(self.channel, request).map_err(|_| self.died())
    }

    fn next_within(&mut self, at_most: Duration) -> Result<Option<reply::Kind>, ClientError> {
        match self.replies.recv_timeout(at_most) {
            Ok(wire::Reply { kind: Some(kind) }) => Ok(Some(kind)),
            Ok(_) => Err(self.nonsense()),
            Err(mpsc::RecvTimeoutError::Timeout) => Ok(None),
            Err(mpsc::RecvTimeoutError::Disconnected) => Err(self.died()),
        }
    }

    fn nonsense(&mut self) -> ClientError {
        if let Some(process) = &self.process {
            process.kill();
        }
        let end = End::new("sent a reply that does not fit the request", "compile the model again");
        ClientError::Died { process: self.name.clone(), end }
    }
}
