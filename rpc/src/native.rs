//! CPU code of clients, in a process of its own: a crash or an endless loop ends that process alone.
//!
//! The process is the server's program with a command of its own. It gets one socket as its standard input, and over it
//! the artifact; it asks the server for the device, which only the server has.

mod limits;
mod pipe;
mod process;
mod served;
#[cfg(test)]
mod tests;

use std::ffi::OsString;
use std::net::Shutdown;
use std::os::fd::OwnedFd;
use std::os::unix::net::UnixStream;
use std::path::PathBuf;
use std::process::{Command, Stdio};
use std::sync::Arc;
use std::sync::mpsc;

use bytes::Bytes;
use tilewright_runtime::function::AnyError;
use tilewright_runtime::value::Value;
use tilewright_runtime::{Module, Registry, SharedDevice};
use tokio::sync::{oneshot, watch};

pub use served::serve;

use crate::LOAD;
use crate::caller::Caller;
use crate::connection::ClientError;
use crate::host::{Registered, names};
use crate::runtime::runtime;
use crate::server::{Busy, Requests};
use crate::wire::{self, frame};
use pipe::{CALLS, DEVICE, FUNCTIONS, Frames, Link, Replies, Writer};
use process::Process;

/// Address space that the process takes without any model: libraries, stacks, and what its allocator reserves.
const OWN_BYTES: u64 = 4 << 30;

/// Variables that the process keeps: where libraries are, how many threads to use. It gets no token.
const KEPT: [&str; 2] = ["LD_LIBRARY_PATH", "RAYON_NUM_THREADS"];

/// What a process can use of its server.
pub(crate) struct Offer {
    pub device: Option<SharedDevice>,
    pub functions: Registry,
    /// Bytes of memory, and of a call, at most.
    pub most: u64,
    /// Bytes of inputs and outputs of frames at most.
    pub frames: u64,
}

/// How CPU code of clients runs.
#[derive(Debug, Clone)]
pub struct Native {
    /// The program, which calls [`serve`] if it is started with `arguments`.
    pub program: PathBuf,
    /// Its arguments.
    pub arguments: Vec<OsString>,
    /// Variables of its environment; others are cleared.
    pub variables: Vec<(OsString, OsString)>,
    /// Seconds of CPU time, all threads together, after which a process is killed.
    pub cpu_seconds: u64,
}

impl Native {
    /// This program with these arguments.
    ///
    /// # Errors
    /// The system's, if it does not tell the program's path.
    pub fn this_program(arguments: &[&str], cpu_seconds: u64) -> std::io::Result<Native> {
        Ok(Native {
            program: std::env::current_exe()?,
            arguments: arguments.iter().map(OsString::from).collect(),
            variables: Vec::new(),
            cpu_seconds,
        })
    }

    /// Starts a process that makes a session of an artifact, with what `offer` has. It is killed
    /// when the session is dropped, or `stopped` is true. What it asks of the server is done as a part of `busy`.
    pub(crate) fn load(
        &self,
        name: &str,
        artifact: &Bytes,
        offer: &Offer,
        mut stopped: watch::Receiver<bool>,
        busy: Arc<Busy>,
    ) -> Result<Module, AnyError> {
        let (own, its) = UnixStream::pair()?;
        let socket = own.try_clone()?;
        let process = Arc::new(self.start(name, its)?);
        let writer = Arc::new(Writer::new(own.try_clone()?));
        let died = |_| ClientError::Died { process: process.name(), end: process.end() };
        writer.send(CALLS, frame::Kind::Begin(self.begin(offer))).map_err(died)?;
        let (replies, receiver) = mpsc::sync_channel(crate::QUEUE);
        let (open, closed) = oneshot::channel::<()>();
        let mut server = Server::new(offer, writer.clone());
        let (reader, ending) = (Frames::new(own), process.clone());
        std::thread::Builder::new().name("tilewright-native".into()).spawn(move || {
            server.serve(reader, &replies, &busy);
            ending.end();
        })?;
        let killed = process.clone();
        runtime()?.spawn(async move {
            tokio::select! {
                _ = stopped.wait_for(|stopped| *stopped) => killed.kill(),
                _ = closed => {}
            }
            // Processes that it started can have its end.
            let _ = socket.shutdown(Shutdown::Both);
        });
        let link = Link::new(process.name(), CALLS, writer, receiver, Some(process.clone()), Some(open));
        let caller = Caller::new(Box::new(link), offer.most);
        match caller.call(0, LOAD, &[name.into(), Value::Bytes(artifact.clone())], &|_, _| ())? {
            Value::Module(module) => Ok(module),
            other => Err(format!("the process returned {}, not a session", other.kind()).into()),
        }
    }

    fn start(&self, name: &str, socket: UnixStream) -> std::io::Result<Process> {
        let kept = KEPT.iter().filter_map(|name| Some((OsString::from(name), std::env::var_os(name)?)));
        let child = Command::new(&self.program)
            .args(&self.arguments)
            .env_clear()
            .envs(kept)
            .envs(self.variables.iter().cloned())
            .stdin(Stdio::from(OwnedFd::from(socket)))
            .stdout(Stdio::null())
            .stderr(Stdio::null())
            .spawn()?;
        Ok(Process::new(child, name, self.cpu_seconds))
    }

    fn begin(&self, offer: &Offer) -> wire::Begin {
        let device = offer.device.as_ref();
        let most = offer.most;
        wire::Begin {
            device: device.map_or_else(String::new, |device| device.name().into()),
            memory_bytes: device.map_or(0, |device| device.with(|device| device.memory_bytes())),
            config_name: device.map_or_else(String::new, |device| device.config().name.clone()),
            config: device.map_or_else(String::new, |device| device.config().to_toml()),
            functions: names(&Module::new(Registered(offer.functions.clone()))),
            cpu_seconds: self.cpu_seconds,
            address_bytes: OWN_BYTES
                .saturating_add(most.saturating_mul(3))
                .saturating_add(offer.frames.saturating_mul(2)),
            model_bytes: most,
            frame_bytes: offer.frames,
        }
    }
}

/// What a process can ask of the server. Its code is a client's, so nothing that it sends is trusted.
struct Server {
    device: Requests,
    functions: Requests,
    writer: Arc<Writer>,
}

impl Server {
    fn new(offer: &Offer, writer: Arc<Writer>) -> Server {
        let nothing = Module::new(Registered(Registry::new()));
        let functions = Module::new(Registered(offer.functions.clone()));
        Server {
            device: Requests::new(offer.device.clone(), nothing, 0),
            functions: Requests::new(None, functions, offer.most),
            writer,
        }
    }

    /// Serves it until it ends or sends what it should not.
    fn serve(&mut self, mut frames: Frames, replies: &mpsc::SyncSender<wire::Reply>, busy: &Busy) {
        while let Some(wire::Frame { channel, kind: Some(kind) }) = frames.next() {
            let requests = match channel {
                DEVICE => &mut self.device,
                _ => &mut self.functions,
            };
            let goes_on = match (channel, kind) {
                (CALLS, frame::Kind::Reply(reply)) => replies.send(reply).is_ok(),
                (DEVICE | FUNCTIONS, frame::Kind::Request(request)) => {
                    let mut line = Replies { writer: &self.writer, channel };
                    busy.during(|| requests.execute(request.kind, &mut line, "a process for CPU code")).is_ok()
                }
                _ => false,
            };
            if !goes_on {
                break;
            }
        }
    }
}
