//! The thread that a session's device runs on.

use std::sync::Arc;
use std::time::Instant;

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::DeviceError;
use tilewright_runtime::SharedDevice;
use tokio::sync::{mpsc, watch};

use super::busy::Busy;
use super::executor::{Ended, Replies};
use super::lends::Shared;
use super::lent::Lent;
use super::requests::Requests;
use crate::client::Asked;
use crate::host::names;
use crate::report::failure;
use crate::runtime::runtime;
use crate::wire::{self, reply};

/// What a session wants.
pub(super) struct Wants {
    pub client: String,
    pub config: HwConfig,
    pub asked: Asked,
    pub without_device: bool,
}

/// What the thread of a session needs.
pub(super) struct Job {
    pub shared: Arc<Shared>,
    pub peer: String,
    pub asked: Wants,
    pub requests: mpsc::Receiver<wire::Request>,
    pub replies: mpsc::Sender<wire::Reply>,
    /// True once the session has ended.
    pub stopped: watch::Receiver<bool>,
    pub busy: Arc<Busy>,
}

struct Line {
    replies: mpsc::Sender<wire::Reply>,
    stopped: watch::Receiver<bool>,
}

impl Replies for Line {
    fn send(&mut self, kind: reply::Kind) -> Result<(), Ended> {
        let reply = wire::Reply { kind: Some(kind) };
        match self.replies.try_send(reply) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Closed(_)) => Err(Ended),
            Err(mpsc::error::TrySendError::Full(reply)) => {
                let Line { replies, stopped } = self;
                runtime().map_err(|_| Ended)?.block_on(async {
                    tokio::select! {
                        sent = replies.send(reply) => sent.map_err(|_| Ended),
                        _ = stopped.wait_for(|stopped| *stopped) => Err(Ended),
                    }
                })
            }
        }
    }
}

impl Line {
    /// For a person; dropped if the client does not take replies.
    fn tell(&self, text: &str) {
        let text = text.to_string();
        let _ = self.replies.try_send(wire::Reply { kind: Some(reply::Kind::Progress(wire::Progress { text })) });
    }
}

/// Executes a session's requests until it ends, then closes the device.
pub(super) fn serve(job: Job) {
    let (shared, peer, busy) = (job.shared.clone(), job.peer.clone(), job.busy.clone());
    let Some(lent) = busy.work.during(|| execute(job)) else { return };
    // Nothing stops this.
    let (begun, stays) = (Instant::now(), !shared.lends.disposable);
    match lent.take_back(stays) {
        Ok(()) if stays => tracing::info!("{peer}: its data are cleared in {:.1} s", begun.elapsed().as_secs_f64()),
        Ok(()) => {}
        Err(error) => tracing::error!("{peer}: its data could not be cleared: {error}"),
    }
}

/// Opens the device and executes a session's requests until it ends. Returns the device, if there is one.
fn execute(job: Job) -> Option<Lent> {
    let Job { shared, peer, asked, mut requests, replies, stopped, busy } = job;
    let mut line = Line { replies, stopped };
    let lent = match open(&shared, &asked, &line) {
        Ok(lent) => lent,
        Err(error) => {
            tracing::warn!("{peer}: the device cannot be opened: {error}");
            let _ = line.send(reply::Kind::Failure(failure(error)));
            return None;
        }
    };
    let device = lent.as_ref().map(|lent| SharedDevice::new(lent.device()));
    let module = shared.lends.module(device.clone(), &shared.limits, &line.stopped, &busy);
    let opened = wire::Opened {
        device: device.as_ref().map_or("", |device| device.name()).to_string(),
        memory_bytes: device.as_ref().map_or(0, |device| device.with(|device| device.memory_bytes())),
        version: env!("CARGO_PKG_VERSION").into(),
        config_name: asked.config.name.clone(),
        config: asked.config.to_toml(),
        functions: names(&module),
    };
    let mut session = Requests::new(device, module, shared.limits.memory);
    let mut goes_on = line.send(reply::Kind::Opened(opened)).is_ok();
    while goes_on && let Some(request) = requests.blocking_recv() {
        if *line.stopped.borrow() {
            break;
        }
        goes_on = busy.during(|| session.execute(request.kind, &mut line, &peer)).is_ok();
    }
    // Models on the device end before it is taken back.
    drop(session);
    lent
}

/// Opens the session's device, if it wants one.
fn open(shared: &Shared, asked: &Wants, line: &Line) -> Result<Option<Lent>, DeviceError> {
    if asked.without_device {
        return Ok(None);
    }
    let device = (shared.lends.open)(&asked.config, asked.asked, &|text| line.tell(text))?;
    Ok(Some(Lent::new(device, shared.limits.cycles)))
}
