//! The stream of a session's replies, which the server can end at any time.

use std::pin::Pin;
use std::task::{Context, Poll};

use tokio::sync::{mpsc, oneshot, watch};
use tokio_stream::Stream;
use tonic::Status;

use crate::{QUEUE, wire};

/// A session's replies. They end with a status if the server ends the session.
pub(crate) struct Replies {
    replies: mpsc::Receiver<wire::Reply>,
    end: Option<oneshot::Receiver<Status>>,
    gone: watch::Sender<bool>,
}

/// The server's side of the replies.
pub(super) struct Sender {
    pub replies: mpsc::Sender<wire::Reply>,
    pub end: oneshot::Sender<Status>,
    /// True once the client is gone.
    pub gone: watch::Receiver<bool>,
}

pub(super) fn pair() -> (Replies, Sender) {
    let (replies, receiver) = mpsc::channel(QUEUE);
    let (end, ended) = oneshot::channel();
    let (gone, is_gone) = watch::channel(false);
    (Replies { replies: receiver, end: Some(ended), gone }, Sender { replies, end, gone: is_gone })
}

impl Stream for Replies {
    type Item = Result<wire::Reply, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<Option<Self::Item>> {
        let mut ended = Poll::Ready(None);
        if let Some(end) = &mut self.end {
            match Pin::new(end).poll(cx) {
                Poll::Ready(Ok(status)) => {
                    self.end = None;
                    self.replies.close();
                    while self.replies.try_recv().is_ok() {}
                    return Poll::Ready(Some(Err(status)));
                }
                Poll::Ready(Err(_)) => self.end = None,
                // The reason can come after the last reply.
                Poll::Pending => ended = Poll::Pending,
            }
        }
        match self.replies.poll_recv(cx) {
            Poll::Ready(None) => ended,
            reply => reply.map(|reply| reply.map(Ok)),
        }
    }
}

impl Drop for Replies {
    fn drop(&mut self) {
        let _ = self.gone.send(true);
    }
}
