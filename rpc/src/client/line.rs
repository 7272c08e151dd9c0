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
    ended: Option<String>,
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

    fn end(&mut self, reason: String) -> ClientError {
        self.ended = Some(reason.clone());
        self.lost(reason)
    }

    fn lost(&self, reason: String) -> ClientError {
        ClientError::Lost { server: self.name().to_string(), reason }
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
        if let Some(reason) = &self.ended {
            return Err(self.lost(reason.clone()));
        }
        match runtime()?.block_on(self.replies.message()) {
            Ok(Some(wire::Reply { kind: Some(kind) })) => Ok(kind),
            Ok(Some(_)) => Err(self.nonsense()),
            Ok(None) => Err(self.end("the server ended the session".into())),
            Err(status) => {
                let error = self.connection.failed(&status);
                self.ended = Some(error.to_string());
                Err(error)
            }
        }
    }

    fn nonsense(&mut self) -> ClientError {
        self.end("the server sent a reply that does not fit the request".into())
    }
}
