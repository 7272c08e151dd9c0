//! Executes the requests of a session: those of its device, and calls.

use tilewright_runtime::{Module, SharedDevice};

use super::executor::{Ended, Executor, Replies};
use crate::host::{Host, pieces};
use crate::values::Packed;
use crate::wire::{reply, request};

/// A device and functions that are asked for.
pub(crate) struct Requests {
    executor: Executor,
    host: Host,
}

impl Requests {
    /// The functions of `module`, with calls of at most `most` bytes.
    pub fn new(device: Option<SharedDevice>, module: Module, most: u64) -> Requests {
        Requests { executor: Executor::new(device), host: Host::new(module, most) }
    }

    /// Executes a request. Errors are replies, and lines of the log; `peer` names there who asked.
    pub fn execute(&mut self, request: Option<request::Kind>, line: &mut dyn Replies, peer: &str) -> Result<(), Ended> {
        use request::Kind;
        match request {
            Some(Kind::Bulk(bytes)) => self.host.bulk(&bytes),
            Some(Kind::Release(id)) => self.host.release(id),
            Some(Kind::Call(call)) => match self.host.call(&call) {
                Ok(Packed { tree, bulk }) => {
                    for piece in pieces(bulk) {
                        line.send(reply::Kind::Bulk(piece))?;
                    }
                    line.send(reply::Kind::Returned(tree.into()))?;
                }
                Err(text) => {
                    tracing::warn!("{peer}: {text}");
                    line.send(reply::Kind::Raised(shortened(text)))?;
                }
            },
            kind => self.executor.execute(kind, line, peer)?,
        }
        Ok(())
    }
}

/// Most bytes of an error's text.
const TEXT: usize = 16 << 10;

/// A text that a message can have.
fn shortened(text: String) -> String {
    if text.len() <= TEXT {
        return text;
    }
    let end = (0..=TEXT).rev().find(|at| text.is_char_boundary(*at)).unwrap_or_default();
    format!("{}…", &text[..end])
}
