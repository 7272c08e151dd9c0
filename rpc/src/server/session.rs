//! A session from its first message to the end of its lease.

use std::sync::Arc;
use std::time::{Duration, Instant};

use tilewright_hw::config::HwConfig;
use tokio::sync::{mpsc, watch};
use tonic::{Code, Status, Streaming};

use super::busy::Busy;
use super::device::{self, Job, Wants};
use super::lends::Shared;
use super::queue::{Abandoned, Place};
use super::replies::Sender;
use crate::client::Asked;
use crate::refusal::refusal;
use crate::wire::{self, reply, request};
use crate::{PROTOCOL, QUEUE};

/// Time in which a session must say what it wants.
const FIRST: Duration = Duration::from_secs(10);
/// How often a session's limits are checked.
const CHECK: Duration = Duration::from_millis(200);
/// Time that a device has to end what it does for a client that is gone, before a simulator is left to itself.
const GRACE: Duration = Duration::from_millis(700);
/// Remedies of refusals.
const SAME_VERSION: &str = "use the same version of Tilewright on both sides";
const OPEN_ANOTHER: &str = "open another one";
/// Simulations that go on for clients that are gone.
static ABANDONED: Abandoned = Abandoned::new(4);

/// Runs a session.
pub(super) async fn run(
    shared: Arc<Shared>,
    _place: Place,
    peer: String,
    mut requests: Streaming<wire::Request>,
    sender: Sender,
) {
    let Sender { replies, end, mut gone } = sender;
    let asked = match first(&shared, &mut requests).await {
        Ok(asked) => asked,
        Err(status) => {
            tracing::warn!("{peer}: refused, because {}", status.message());
            let _ = end.send(status);
            return;
        }
    };
    let peer = format!("{peer} ({})", asked.client);
    let tell = |before: usize| {
        tracing::info!("{peer}: waits for the device, {before} before it");
        let text = format!("waiting for the device of the server, {before} before this one");
        let progress = wire::Reply { kind: Some(reply::Kind::Progress(wire::Progress { text })) };
        let _ = replies.try_send(progress);
    };
    let permit = match asked.without_device {
        true => None,
        false => tokio::select! {
            permit = shared.queue.device(tell) => Some(permit),
            () = is_gone(&mut gone) => {
                tracing::info!("{peer}: gone while it waited");
                return;
            }
        },
    };
    let has_device = permit.is_some();
    tracing::info!("{peer}: {}", if has_device { "has the device" } else { "calls functions" });
    let since = Instant::now();
    let (to_device, jobs) = mpsc::channel(QUEUE);
    let (stop, stopped) = watch::channel(false);
    let (done, mut ended) = watch::channel(false);
    let busy = Arc::new(Busy::default());
    let job =
        Job { shared: shared.clone(), peer: peer.clone(), asked, requests: jobs, replies, stopped, busy: busy.clone() };
    let spawned = std::thread::Builder::new().name("tilewright-session".into()).spawn(move || {
        device::serve(job);
        // The device is closed and clean before the next session has it.
        let _ = done.send(true);
    });
    let why = match spawned {
        Ok(_) => {
            let of_session = OfSession { shared: &shared, has_device_since: has_device.then_some(since) };
            forward(&shared, &mut requests, to_device, &mut gone, &mut ended, &busy, of_session).await
        }
        Err(error) => Err(Status::unavailable(format!("the server has no thread for it: {error}"))),
    };
    match why {
        Ok(reason) => {
            tracing::info!("{peer}: {reason}, after {:.1} s", since.elapsed().as_secs_f64());
            drop(end);
        }
        Err(status) => {
            tracing::warn!("{peer}: ended, because {}", status.message());
            let _ = end.send(status);
        }
    }
    let _ = stop.send(true);
    busy.stop();
    // A simulator that is still busy is left to itself; anything else must end first.
    if tokio::time::timeout(GRACE, is_gone(&mut ended)).await.is_err() {
        match ABANDONED.one_more().filter(|_| has_device && shared.lends.disposable) {
            Some(left) => {
                tracing::warn!("{peer}: its run goes on without it until its limit");
                drop(permit);
                is_gone(&mut ended).await;
                drop(left);
                return;
            }
            None => {
                is_gone(&mut ended).await;
            }
        }
    }
    drop(permit);
}

/// Waits for a flag, or for the end of the one who sets it.
async fn is_gone(gone: &mut watch::Receiver<bool>) {
    let _ = gone.wait_for(|gone| *gone).await;
}

/// Reads and checks the first message.
async fn first(shared: &Shared, requests: &mut Streaming<wire::Request>) -> Result<Wants, Status> {
    let message = tokio::time::timeout(FIRST, requests.message()).await;
    let message = message.map_err(|_| {
        let reason = "it did not say what it wants for 10 seconds";
        refusal(Code::DeadlineExceeded, reason, "open another session over a faster connection")
    })??;
    let Some(request::Kind::Open(open)) = message.and_then(|message| message.kind) else {
        let reason = "its first message does not open a session";
        return Err(refusal(Code::InvalidArgument, reason, SAME_VERSION));
    };
    if open.protocol != PROTOCOL {
        let own = env!("CARGO_PKG_VERSION");
        let reason = format!(
            "it speaks version {} of the services, but this server, Tilewright {own}, version {PROTOCOL}",
            open.protocol
        );
        return Err(refusal(Code::FailedPrecondition, reason, SAME_VERSION));
    }
    let client: String = open.client.chars().filter(|c| !c.is_control()).take(100).collect();
    let lends = &shared.lends;
    let given = match open.any_config || open.without_device {
        true => lends.config.clone(),
        false => HwConfig::parse(&open.config_name, &open.config).map_err(|error| {
            let reason = format!("its configuration is not valid: {error}");
            refusal(Code::InvalidArgument, reason, SAME_VERSION)
        })?,
    };
    if given.hash() != lends.config.hash() {
        let reason = format!(
            "the device has configuration {} ({:016x}), not {} ({:016x})",
            lends.config.name,
            lends.config.hash(),
            given.name,
            given.hash()
        );
        let remedy = "give its own with --hw, or use another server";
        return Err(refusal(Code::FailedPrecondition, reason, remedy));
    }
    // Of the rest, only the memory model is the client's choice.
    let config = HwConfig { dram: given.dram, ..lends.config.clone() };
    let limit = shared.limits.cycles;
    let max_cycles = match (open.max_cycles, limit) {
        (Some(asked), Some(limit)) => Some(asked.min(limit)),
        (asked, limit) => asked.or(limit),
    };
    let asked = Asked { strict: open.strict, spans: open.spans, max_cycles };
    Ok(Wants { client, config, asked, without_device: open.without_device })
}

/// The limits of a session.
struct OfSession<'a> {
    shared: &'a Shared,
    has_device_since: Option<Instant>,
}

impl OfSession<'_> {
    /// Fails if it exceeds one. Its last request came at `last`.
    fn check(&self, busy: &Busy, last: Instant) -> Result<(), Status> {
        let OfSession { shared: Shared { limits, queue, .. }, has_device_since } = self;
        if let Some(time) = busy.time().filter(|time| *time > limits.run) {
            let reason =
                format!("one request took {} s, longer than its limit of {} s", time.as_secs(), limits.run.as_secs());
            let remedy = "raise --max-seconds of the server, or ask for less";
            return Err(refusal(Code::DeadlineExceeded, reason, remedy));
        }
        let others = match has_device_since {
            Some(_) => queue.waiting() > 0,
            // Others are refused.
            None => queue.is_full(),
        };
        if !others {
            return Ok(());
        }
        if busy.idle().is_some_and(|idle| idle.min(last.elapsed()) > limits.idle) {
            let reason = format!("the session did nothing for {} s while others wait", limits.idle.as_secs());
            return Err(refusal(Code::Aborted, reason, OPEN_ANOTHER));
        }
        if has_device_since.is_some_and(|since| since.elapsed() > limits.lease) {
            let reason = format!("the session had the device for {} s and others wait", limits.lease.as_secs());
            return Err(refusal(Code::Aborted, reason, OPEN_ANOTHER));
        }
        Ok(())
    }
}

/// Hands requests to the device's thread until the session ends. Returns why it ended.
async fn forward(
    shared: &Shared,
    requests: &mut Streaming<wire::Request>,
    to_device: mpsc::Sender<wire::Request>,
    gone: &mut watch::Receiver<bool>,
    ended: &mut watch::Receiver<bool>,
    busy: &Busy,
    of_session: OfSession<'_>,
) -> Result<&'static str, Status> {
    let mut last = Instant::now();
    let mut check = tokio::time::interval(CHECK);
    // A request that waits for its place in the queue.
    let mut held: Option<wire::Request> = None;
    let mut stopping = shared.stopping.clone();
    loop {
        tokio::select! {
            biased;
            // The device's thread ends, too, when its replies no longer arrive.
            () = is_gone(gone) => return Ok("gone"),
            () = is_gone(ended) => return Ok("ended by the device"),
            () = is_gone(&mut stopping) => return Err(Status::unavailable("the server stops")),
            _ = check.tick() => of_session.check(busy, last)?,
            permit = to_device.reserve(), if held.is_some() => match permit {
                Ok(permit) => if let Some(request) = held.take() { permit.send(request) },
                Err(_) => return Ok("ended by the device"),
            },
            message = requests.message(), if held.is_none() => match message {
                Ok(Some(request)) => {
                    last = Instant::now();
                    match to_device.try_send(request) {
                        Ok(()) => {}
                        Err(mpsc::error::TrySendError::Full(request)) => held = Some(request),
                        Err(mpsc::error::TrySendError::Closed(_)) => return Ok("ended by the device"),
                    }
                }
                Ok(None) => break,
                Err(status) if status.code() == tonic::Code::Cancelled || status.code() == tonic::Code::Unknown => {
                    return Ok("gone");
                }
                Err(status) => return Err(status),
            },
        }
    }
    finish(to_device, gone, ended, || of_session.check(busy, last)).await
}

/// The client sends nothing more, but may still want replies.
async fn finish(
    to_device: mpsc::Sender<wire::Request>,
    gone: &mut watch::Receiver<bool>,
    ended: &mut watch::Receiver<bool>,
    limits: impl Fn() -> Result<(), Status>,
) -> Result<&'static str, Status> {
    drop(to_device);
    let mut check = tokio::time::interval(CHECK);
    loop {
        tokio::select! {
            biased;
            () = is_gone(gone) => return Ok("gone"),
            () = is_gone(ended) => return Ok("finished"),
            _ = check.tick() => limits()?,
        }
    }
}
