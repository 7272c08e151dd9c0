//! A session's two streams.

use std::collections::VecDeque;
use std::pin::pin;
use std::time::Duration;

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::{Status, Streaming};

use crate::caller::Link;
use crate::connection::{ClientError, Connection, client_name};
use crate::runtime::runtime;
use crate::wire::{self, reply, request};
use crate::{PROTOCOL, QUEUE};

/// Replies that are kept while a request waits for its place.
const EARLY: usize = 64;

/// A session that is open.
pub(crate) struct Line {
    connection: Connection,
    requests: mpsc::Sender<wire::Request>,
    replies: Streaming<wire::Reply>,
    /// Replies that came while a request waited for its place.
    early: VecDeque<Result<Option<wire::Reply>, Status>>,
    /// Why it ended, for calls after that.
    ended: Option<Ended>,
}

/// Why a session ended.
enum Ended {
    Lost(String),
    Refused { reason: String, remedy: String },
}

impl Ended {
    fn error(&self, server: &str) -> ClientError {
        let server = server.to_string();
        match self {
            Ended::Lost(reason) => ClientError::Lost { server, reason: reason.clone() },
            Ended::Refused { reason, remedy } => {
                ClientError::Refused { server, reason: reason.clone(), remedy: remedy.clone() }
            }
        }
    }
}

impl Line {
    /// Opens a session and waits until it has the device. `told` receives what it waits for.
    pub fn open(
        connection: Connection,
        open: wire::Open,
        told: &dyn Fn(&str),
    ) -> Result<(Line, Result<wire::Opened, wire::Failure>), ClientError> {
        let (requests, outgoing) = mpsc::channel(QUEUE);
        let open = wire::Open { protocol: PROTOCOL, client: client_name(), ..open };
        // The queue is empty, so this does not wait.
        let _ = requests.try_send(wire::Request { kind: Some(request::Kind::Open(open)) });
        let mut machine = connection.machine();
        let stream = connection.request(ReceiverStream::new(outgoing));
        let replies = runtime()?.block_on(machine.session(stream)).map_err(|status| connection.failed(&status))?;
        let mut line =
            Line { connection, requests, replies: replies.into_inner(), early: VecDeque::new(), ended: None };
        let opened = loop {
            match line.next()? {
                reply::Kind::Opened(opened) => break Ok(opened),
                reply::Kind::Failure(failure) => break Err(failure),
                reply::Kind::Progress(progress) => told(&progress.text),
                _ => return Err(line.nonsense()),
            }
        };
        told("");
        Ok((line, opened))
    }

    fn end(&mut self, ended: Ended) -> ClientError {
        let error = ended.error(self.name());
        self.ended = Some(ended);
        error
    }

    /// Why requests can no longer be sent: the replies end with the reason.
    fn why(&mut self) -> ClientError {
        loop {
            if let Err(error) = self.next() {
                return error;
            }
        }
    }
}

impl Link for Line {
    fn name(&self) -> &str {
        &self.connection.name
    }

    fn send(&mut self, kind: request::Kind) -> Result<(), ClientError> {
        let request = wire::Request { kind: Some(kind) };
        match self.requests.try_send(request) {
            Ok(()) => Ok(()),
            Err(mpsc::error::TrySendError::Full(request)) => {
                let Line { requests, replies, early, .. } = self;
                // The server may be unable to take requests before its replies are taken.
                let sent = runtime()?.block_on(async {
                    let mut sending = pin!(requests.send(request));
                    loop {
                        let more = early.len() < EARLY && early.back().is_none_or(|reply| matches!(reply, Ok(Some(_))));
                        tokio::select! {
                            biased;
                            sent = &mut sending => return sent,
                            reply = replies.message(), if more => early.push_back(reply),
                        }
                    }
                });
                sent.map_err(|_| self.why())
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(self.why()),
        }
    }

    fn next_within(&mut self, at_most: Duration) -> Result<Option<reply::Kind>, ClientError> {
        if let Some(ended) = &self.ended {
            return Err(ended.error(self.name()));
        }
        let reply = match self.early.pop_front() {
            Some(reply) => reply,
            None => {
                let message = self.replies.message();
                let within = async { tokio::time::timeout(at_most, message).await };
                match runtime()?.block_on(within) {
                    Ok(reply) => reply,
                    Err(_) => return Ok(None),
                }
            }
        };
        match reply {
            Ok(Some(wire::Reply { kind: Some(kind) })) => Ok(Some(kind)),
            Ok(Some(_)) => Err(self.nonsense()),
            Ok(None) => Err(self.end(Ended::Lost("the server ended the session".into()))),
            Err(status) => Err(self.end(match self.connection.failed(&status) {
                ClientError::Refused { reason, remedy, .. } => Ended::Refused { reason, remedy },
                ClientError::Lost { reason, .. } => Ended::Lost(reason),
                other => Ended::Lost(other.to_string()),
            })),
        }
    }

    fn nonsense(&mut self) -> ClientError {
        self.end(Ended::Lost("the server sent a reply that does not fit the request".into()))
    }
}
