//! Connections: at most so many, and only those that begin as they should. Those that send nothing keep nobody out: if
//! there are too many, the oldest that has not begun makes room.

use std::collections::VecDeque;
use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::{Arc, Mutex, PoisonError};
use std::task::{Context, Poll, Waker, ready};
use std::time::Duration;

use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpListener;
use tokio::sync::{OwnedSemaphorePermit, Semaphore};
use tokio::time::{Sleep, sleep};
use tonic::transport::server::{Connected, TcpConnectInfo};

use crate::stream::Stream;

/// Time in which a connection must begin.
const BEGIN: Duration = Duration::from_secs(10);
/// What an HTTP/2 connection begins with.
const PREFACE: &[u8] = b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n";
/// What a TLS connection begins with: a record of its handshake.
const HANDSHAKE: &[u8] = &[0x16, 0x03];

/// The connections of a listener.
pub(super) struct Incoming {
    listener: TcpListener,
    connections: Arc<Semaphore>,
    /// Those that may not have begun, the oldest first.
    silent: VecDeque<Arc<Place>>,
    begins: &'static [u8],
    /// A pause after an error, such as too many open files.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    pub fn new(listener: TcpListener, connections: usize, tls: bool) -> Incoming {
        let begins = if tls { HANDSHAKE } else { PREFACE };
        Incoming {
            listener,
            connections: Arc::new(Semaphore::new(connections)),
            silent: VecDeque::new(),
            begins,
            pause: None,
        }
    }

    /// A place for a connection. If none is free, the oldest connection that has not begun gives up its own.
    fn place(&mut self) -> Option<OwnedSemaphorePermit> {
        self.silent.retain(|place| place.is_silent());
        let free = self.connections.clone().try_acquire_owned().ok();
        free.or_else(|| std::iter::from_fn(|| self.silent.pop_front()).find_map(|place| place.give_up()))
    }
}

/// A connection's place among those that may be open.
struct Place(Mutex<State>);

enum State {
    /// Nothing, or too little, has arrived.
    Silent {
        permit: OwnedSemaphorePermit,
        waker: Option<Waker>,
    },
    /// The connection has begun or is closed.
    Kept {
        _permit: OwnedSemaphorePermit,
    },
    GivenUp,
}

impl Place {
    fn new(permit: OwnedSemaphorePermit) -> Arc<Place> {
        Arc::new(Place(Mutex::new(State::Silent { permit, waker: None })))
    }

    fn change<T>(&self, change: impl FnOnce(&mut State) -> T) -> T {
        change(&mut self.0.lock().unwrap_or_else(PoisonError::into_inner))
    }

    fn is_silent(self: &Arc<Place>) -> bool {
        // A connection that is closed holds its place no longer.
        Arc::strong_count(self) > 1 && self.change(|state| matches!(state, State::Silent { .. }))
    }

    /// The place of a connection that has not begun, which is told.
    fn give_up(&self) -> Option<OwnedSemaphorePermit> {
        self.change(|state| match std::mem::replace(state, State::GivenUp) {
            State::Silent { permit, waker } => {
                waker.into_iter().for_each(Waker::wake);
                Some(permit)
            }
            other => {
                *state = other;
                None
            }
        })
    }

    /// The connection has begun: from now on it keeps its place.
    fn keep(&self) {
        self.change(|state| match std::mem::replace(state, State::GivenUp) {
            State::Silent { permit, .. } => *state = State::Kept { _permit: permit },
            other => *state = other,
        });
    }

    /// Ready once the place is given up; otherwise wakes the task when it is.
    fn poll_given_up(&self, cx: &mut Context) -> Poll<()> {
        self.change(|state| match state {
            State::Silent { waker, .. } => {
                *waker = Some(cx.waker().clone());
                Poll::Pending
            }
            State::Kept { .. } => Poll::Pending,
            State::GivenUp => Poll::Ready(()),
        })
    }
}

impl tokio_stream::Stream for Incoming {
    type Item = io::Result<Connection>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<Option<io::Result<Connection>>> {
        loop {
            if let Some(pause) = &mut self.pause {
                ready!(pause.as_mut().poll(cx));
                self.pause = None;
            }
            let (stream, peer) = match ready!(self.listener.poll_accept(cx)) {
                Ok(accepted) => accepted,
                Err(error) => {
                    tracing::warn!("cannot accept a connection: {error}");
                    self.pause = Some(Box::pin(sleep(Duration::from_millis(200))));
                    continue;
                }
            };
            let Some(permit) = self.place() else {
                tracing::warn!("{peer}: refused, because too many connections are open");
                continue;
            };
            let place = Place::new(permit);
            self.silent.push_back(place.clone());
            let deadline = Some(Box::pin(sleep(BEGIN)));
            let begun = 0;
            return Poll::Ready(Some(Ok(Connection {
                stream: Stream::new(stream),
                peer,
                begins: self.begins,
                begun,
                deadline,
                place,
            })));
        }
    }
}

/// A connection, which is closed if it does not begin as it should.
pub(super) struct Connection {
    stream: Stream,
    peer: SocketAddr,
    begins: &'static [u8],
    /// Bytes of `begins` that arrived.
    begun: usize,
    /// Until when they must arrive; none once they have.
    deadline: Option<Pin<Box<Sleep>>>,
    place: Arc<Place>,
}

impl Connection {
    fn refuse(&self, what: &str) -> io::Error {
        tracing::warn!("{}: closed, because {what}", self.peer);
        io::Error::new(io::ErrorKind::InvalidData, what.to_string())
    }
}

impl Connected for Connection {
    type ConnectInfo = TcpConnectInfo;

    fn connect_info(&self) -> TcpConnectInfo {
        self.stream.tcp().connect_info()
    }
}

impl AsyncRead for Connection {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        let before = buf.filled().len();
        let read = Pin::new(&mut self.stream).poll_read(cx, buf);
        let Connection { deadline, place, .. } = &mut *self;
        let Some(deadline) = deadline else { return read };
        if read.is_pending() {
            if place.poll_given_up(cx).is_ready() {
                return Poll::Ready(Err(self.refuse("it sent nothing yet, and others need its place")));
            }
            ready!(deadline.as_mut().poll(cx));
            return Poll::Ready(Err(self.refuse("it sent nothing for 10 seconds")));
        }
        ready!(read)?;
        let arrived = &buf.filled()[before..];
        let expected = &self.begins[self.begun..];
        let count = arrived.len().min(expected.len());
        if arrived.is_empty() {
            return Poll::Ready(Ok(()));
        }
        if arrived[..count] != expected[..count] {
            let what = match self.begins == HANDSHAKE {
                true => "what it sent is not TLS, which this server wants",
                false => "what it sent is not gRPC without TLS",
            };
            return Poll::Ready(Err(self.refuse(what)));
        }
        self.begun += count;
        if self.begun == self.begins.len() {
            self.deadline = None;
            self.place.keep();
        }
        Poll::Ready(Ok(()))
    }
}

impl AsyncWrite for Connection {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write(cx, buf)
    }

    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
        bufs: &[io::IoSlice],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.stream).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.stream.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(cx)
    }
}
