//! The tracker: servers tell it what they lend, and it hands their devices out by kind.

mod client;
mod pool;
#[cfg(test)]
mod tests;

use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use tokio::sync::{mpsc, watch};
use tokio_stream::Stream;
use tonic::{Code, Request, Response, Status};

pub use client::{Lease, Listed, Registration, Station, TrackerClient};

pub use crate::endpoint::is_kind;

use crate::endpoint::Endpoint;
use crate::refusal::refusal;
use crate::runtime::runtime;
use crate::server::{Limits, Options, Peer, ServeError, Server};
use crate::wire::tracker_server::{Tracker, TrackerServer};
use crate::{MESSAGE, PROTOCOL, wire};
use pool::{Place, Pool};

/// A tracker that listens but serves nobody yet.
///
/// # Errors
/// [`ServeError`], as [`Server::bind`].
pub fn bind(options: Options) -> Result<Server, ServeError> {
    let pool = Arc::new(Pool::new(options.limits.sessions));
    let (stops, mut stopping) = watch::channel(false);
    let of_streams = pool.clone();
    runtime().map_err(ServeError::Threads)?.spawn(async move {
        let _ = stopping.wait_for(|stopping| *stopping).await;
        of_streams.close();
    });
    let service = TrackerServer::new(Service { pool }).max_decoding_message_size(MESSAGE);
    Server::of(options, |mut http, guard| http.add_service(guard.before(service)), stops)
}

/// Limits of a tracker: each server and each client has a connection of its own.
pub fn limits(servers_and_clients: usize) -> Limits {
    Limits { connections: servers_and_clients, sessions: servers_and_clients, ..Limits::default() }
}

struct Service {
    pool: Arc<Pool>,
}

/// A stream that keeps a place, and gives it back when its receiver is gone.
pub struct Held<T> {
    messages: mpsc::Receiver<Result<T, Status>>,
    _place: Place,
}

impl<T> Stream for Held<T> {
    type Item = Result<T, Status>;

    fn poll_next(mut self: Pin<&mut Self>, cx: &mut Context) -> Poll<Option<Self::Item>> {
        self.messages.poll_recv(cx)
    }
}

fn same_version(protocol: u32) -> Result<(), Status> {
    if protocol == PROTOCOL {
        return Ok(());
    }
    let own = env!("CARGO_PKG_VERSION");
    let reason =
        format!("it speaks version {protocol} of the services, but this tracker, Tilewright {own}, version {PROTOCOL}");
    Err(refusal(Code::FailedPrecondition, reason, "use the same version of Tilewright everywhere"))
}

/// The address at which clients find a server: as it says, or where it comes from if it says a port alone.
fn address(given: &str, peer: Option<std::net::SocketAddr>) -> Result<String, Status> {
    let from = |port: &str| Some(std::net::SocketAddr::new(peer?.ip(), port.parse().ok()?).to_string());
    let address = given.strip_prefix(':').map_or_else(|| Some(given.to_string()), from);
    let address = address.filter(|address| address.parse::<Endpoint>().is_ok());
    address
        .ok_or_else(|| refusal(Code::InvalidArgument, format!("{given:?} is no address of a server"), "give HOST:PORT"))
}

#[tonic::async_trait]
impl Tracker for Service {
    type RegisterStream = Held<wire::Nothing>;
    type BorrowStream = Held<wire::Grant>;

    async fn register(&self, request: Request<wire::Station>) -> Result<Response<Held<wire::Nothing>>, Status> {
        let peer = Peer::of(&request);
        let station = request.into_inner();
        let checked = same_version(station.protocol).and_then(|()| {
            if !is_kind(&station.kind) {
                let wanted = "give 1 to 64 letters, digits, dots, hyphens and underscores";
                let reason = format!("{:?} names no kind of devices", station.kind);
                return Err(refusal(Code::InvalidArgument, reason, wanted));
            }
            if !(1..=1024).contains(&station.devices) || station.device.len() + station.config_name.len() > 1024 {
                let wanted = "give 1 to 1024 devices, and at most 1024 bytes of device and configuration names";
                let reason = "it names too many devices, or none, or too long names";
                return Err(refusal(Code::InvalidArgument, reason, wanted));
            }
            address(&station.address, peer.address())
        });
        let address = checked.inspect_err(|status| tracing::warn!("{peer}: refused, because {}", status.message()))?;
        let station = wire::Station { address, ..station };
        tracing::info!("{peer}: lends {} {} at {}", station.devices, station.kind, station.address);
        let (place, messages) = self.pool.register(peer.to_string(), station)?;
        Ok(Response::new(Held { messages, _place: place }))
    }

    async fn borrow(&self, request: Request<wire::Wanted>) -> Result<Response<Held<wire::Grant>>, Status> {
        let peer = Peer::of(&request);
        let wanted = request.into_inner();
        let checked = same_version(wanted.protocol).and_then(|()| self.pool.borrow(peer.to_string(), &wanted.kind));
        let (place, messages) =
            checked.inspect_err(|status| tracing::warn!("{peer}: refused, because {}", status.message()))?;
        Ok(Response::new(Held { messages, _place: place }))
    }

    async fn list(&self, _: Request<wire::Nothing>) -> Result<Response<wire::Stations>, Status> {
        Ok(Response::new(wire::Stations { protocol: PROTOCOL, stations: self.pool.list() }))
    }
}
