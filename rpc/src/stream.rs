//! TCP connections that never raise SIGPIPE.
//!
//! A write to a connection that the other side has closed raises SIGPIPE, which ends the process by default. A Rust
//! program ignores that signal, but a client can be a library in a C program, which does not. The standard library
//! suppresses the signal when it writes one buffer, but not when it writes several at once.

use std::future::Future;
use std::io;
use std::pin::Pin;
use std::task::{Context, Poll};

use hyper_util::rt::TokioIo;
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::TcpStream;
use tonic::codegen::http::Uri;

use crate::endpoint::Endpoint;

/// A connection, which writes several buffers at once without SIGPIPE.
pub(crate) struct Stream(TcpStream);

impl Stream {
    /// Sends what is written at once, without waiting for more.
    pub fn new(stream: TcpStream) -> Stream {
        let _ = stream.set_nodelay(true);
        Stream(stream)
    }

    pub fn tcp(&self) -> &TcpStream {
        &self.0
    }
}

impl AsyncRead for Stream {
    fn poll_read(mut self: Pin<&mut Self>, cx: &mut Context, buf: &mut ReadBuf) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_read(cx, buf)
    }
}

impl AsyncWrite for Stream {
    fn poll_write(mut self: Pin<&mut Self>, cx: &mut Context, buf: &[u8]) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write(cx, buf)
    }

    // Apple's systems have no such flag; there the standard library suppresses the signal for the whole connection.
    #[cfg(all(unix, not(target_vendor = "apple")))]
    fn poll_write_vectored(self: Pin<&mut Self>, cx: &mut Context, bufs: &[io::IoSlice]) -> Poll<io::Result<usize>> {
        use rustix::net::{SendAncillaryBuffer, SendFlags, sendmsg};

        let send = || Ok(sendmsg(&self.0, bufs, &mut SendAncillaryBuffer::default(), SendFlags::NOSIGNAL)?);
        loop {
            std::task::ready!(self.0.poll_write_ready(cx))?;
            match self.0.try_io(tokio::io::Interest::WRITABLE, send) {
                Err(error) if matches!(error.kind(), io::ErrorKind::WouldBlock | io::ErrorKind::Interrupted) => {}
                sent => return Poll::Ready(sent),
            }
        }
    }

    #[cfg(not(all(unix, not(target_vendor = "apple"))))]
    fn poll_write_vectored(
        mut self: Pin<&mut Self>,
        cx: &mut Context,
        bufs: &[io::IoSlice],
    ) -> Poll<io::Result<usize>> {
        Pin::new(&mut self.0).poll_write_vectored(cx, bufs)
    }

    fn is_write_vectored(&self) -> bool {
        self.0.is_write_vectored()
    }

    fn poll_flush(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_flush(cx)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<io::Result<()>> {
        Pin::new(&mut self.0).poll_shutdown(cx)
    }
}

/// Connects to a server for the gRPC client.
#[derive(Clone)]
pub(crate) struct Connector(pub Endpoint);

impl tower_service::Service<Uri> for Connector {
    type Response = TokioIo<Stream>;
    type Error = io::Error;
    type Future = Pin<Box<dyn Future<Output = io::Result<TokioIo<Stream>>> + Send>>;

    fn poll_ready(&mut self, _: &mut Context) -> Poll<io::Result<()>> {
        Poll::Ready(Ok(()))
    }

    fn call(&mut self, _: Uri) -> Self::Future {
        let Connector(Endpoint { host, port }) = self.clone();
        Box::pin(async move {
            let stream = TcpStream::connect((host, port)).await?;
            Ok(TokioIo::new(Stream::new(stream)))
        })
    }
}

#[cfg(all(test, unix))]
mod tests {
    use std::io::IoSlice;

    use tokio::io::AsyncWriteExt;

    use super::*;

    /// In a process that does not ignore the signal, a write to a closed connection is an error.
    #[test]
    fn a_closed_connection_is_an_error_and_no_signal() {
        const CHILD: &str = "TILEWRIGHT_TEST_CLOSED_CONNECTION";
        if std::env::var_os(CHILD).is_none() {
            let name = "stream::tests::a_closed_connection_is_an_error_and_no_signal";
            let mut command = tilewright_testing::this_program();
            let found = command.args(["--exact", name]).env(CHILD, "1").output().expect("it runs");
            assert!(found.status.success(), "{}: {}", found.status, String::from_utf8_lossy(&found.stdout));
            return;
        }
        // SAFETY: no handler of this process is replaced; this is what a C program begins with.
        unsafe { libc::signal(libc::SIGPIPE, libc::SIG_DFL) };
        let runtime = tokio::runtime::Builder::new_current_thread().enable_io().build().expect("a runtime");
        runtime.block_on(async {
            let listener = tokio::net::TcpListener::bind("127.0.0.1:0").await.expect("a port");
            let to = TcpStream::connect(listener.local_addr().expect("an address"));
            let (stream, accepted) = tokio::join!(to, listener.accept());
            let mut stream = Stream::new(stream.expect("it connects"));
            drop(accepted);
            // The first write is answered by a reset; the next one is an error.
            let mut wrote = Ok(0);
            for _ in 0..100 {
                wrote = stream.write_vectored(&[IoSlice::new(b"a"), IoSlice::new(b"b")]).await;
                if wrote.is_err() {
                    break;
                }
                std::thread::sleep(std::time::Duration::from_millis(10));
            }
            assert!(wrote.is_err());
        });
    }
}
