//! Connections: at most so many, and only those that begin as they should.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll, ready};
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
    begins: &'static [u8],
    /// A pause after an error, such as too many open files.
    pause: Option<Pin<Box<Sleep>>>,
}

impl Incoming {
    pub fn new(listener: TcpListener, connections: usize, tls: bool) -> Incoming {
        let begins = if tls { HANDSHAKE } else { PREFACE };
        Incoming { listener, connections: Arc::new(Semaphore::new(connections)), begins, pause: None }
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
            let Ok(permit) = self.connections.clone().try_acquire_owned() else {
                tracing::warn!("{peer}: refused, because too many connections are open");
                continue;
            };
            let deadline = Some(Box::pin(sleep(BEGIN)));
            let begun = 0;
            return Poll::Ready(Some(Ok(Connection {
                stream: Stream::new(stream),
                peer,
                begins: self.begins,
                begun,
                deadline,
                _permit: permit,
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
    _permit: OwnedSemaphorePermit,
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
        let Some(deadline) = &mut self.deadline else { return read };
        if read.is_pending() {
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
