//! A session's two streams.

use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;
use tonic::Streaming;

use crate::caller::Link;
use crate::connection::{ClientError, Connection, client_name};
use crate::runtime::runtime;
use crate::wire::{self, reply, request};
use crate::{PROTOCOL, QUEUE};

/// A session that is open.
pub(crate) struct Line {
    connection: Connection,
    requests: mpsc::Sender<wire::Request>,
    replies: Streaming<wire::Reply>,
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
        let mut line = Line { connection, requests, replies: replies.into_inner(), ended: None };
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
                let sent = runtime()?.block_on(self.requests.send(request));
                sent.map_err(|_| self.why())
            }
            Err(mpsc::error::TrySendError::Closed(_)) => Err(self.why()),
        }
    }

    fn next(&mut self) -> Result<reply::Kind, ClientError> {
        if let Some(ended) = &self.ended {
            return Err(ended.error(self.name()));
        }
        match runtime()?.block_on(self.replies.message()) {
            Ok(Some(wire::Reply { kind: Some(kind) })) => Ok(kind),
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
