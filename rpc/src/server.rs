//! The server: lends devices of its machine to clients, one session after another.

mod access;
mod busy;
mod device;
mod executor;
mod incoming;
mod lends;
mod lent;
mod machine;
mod options;
mod peer;
mod queue;
mod replies;
mod requests;
mod scrub;
mod session;
#[cfg(test)]
pub(crate) mod tests;

use std::net::{SocketAddr, TcpListener};
use std::sync::Arc;
use std::time::Duration;

use tokio::sync::{oneshot, watch};
use tonic::transport::server::Router;
use tonic::transport::{Identity, Server as Http, ServerTlsConfig};
use tonic::{Code, Request, Response, Status, Streaming};

pub use crate::native::Native;
pub(crate) use busy::Busy;
pub(crate) use executor::{Ended, Replies};
pub use lends::{Lends, OpenDevice};
pub(crate) use machine::{Budget, CpuCode, MachineModule};
pub use options::{Limits, Options, ServeError, Tls};
pub(crate) use peer::Peer;
pub(crate) use requests::Requests;

use crate::refusal::refusal;
use crate::runtime::runtime;
use crate::tracker::Registration;
use crate::wire::machine_server::{Machine, MachineServer};
use crate::{FRAME, MESSAGE, PROTOCOL, WINDOW, wire};
use access::Guard;
use incoming::Incoming;
use lends::Shared;
use queue::Queue;

/// A server that listens but serves nobody yet.
pub struct Server {
    listener: TcpListener,
    address: SocketAddr,
    router: Router,
    limits: Limits,
    tls: bool,
    stops: watch::Sender<bool>,
}

/// A server that runs. It stops when this is dropped.
pub struct Running {
    address: SocketAddr,
    stop: Option<oneshot::Sender<()>>,
    stopped: watch::Receiver<Option<String>>,
    registration: Option<Registration>,
}

impl Server {
    /// Listens.
    ///
    /// # Errors
    /// [`ServeError`]: without TLS and a token, only addresses of this machine are accepted unless
    /// [`Options::insecure`] is set.
    pub fn bind(options: Options, lends: Lends) -> Result<Server, ServeError> {
        let (stops, stopping) = watch::channel(false);
        let shared = Arc::new(Shared {
            queue: Queue::new(lends.devices.max(1), options.limits.sessions),
            lends: Arc::new(lends),
            limits: options.limits.clone(),
            stopping,
        });
        let service = MachineServer::new(Service { shared }).max_decoding_message_size(MESSAGE);
        Server::of(options, |mut http, guard| http.add_service(guard.before(service)), stops)
    }

    /// Listens; `add` adds the service. `stops` is told when the server stops.
    pub(crate) fn of(
        options: Options,
        add: impl FnOnce(Http, Guard) -> Router,
        stops: watch::Sender<bool>,
    ) -> Result<Server, ServeError> {
        options.check()?;
        let listener = options.listen()?;
        let address = listener.local_addr().map_err(|source| options.cannot_listen(source))?;
        let router = add(http(&options)?, Guard::new(options.token.as_deref()));
        Ok(Server { listener, address, router, limits: options.limits, tls: options.tls.is_some(), stops })
    }

    /// Where it listens, with the port that the system chose if the given one was 0.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Serves on threads of this crate until the result is dropped.
    ///
    /// # Errors
    /// [`ServeError::Threads`].
    pub fn start(self) -> Result<Running, ServeError> {
        let runtime = runtime().map_err(ServeError::Threads)?;
        let (stop, stopping) = oneshot::channel();
        let (ended, stopped) = watch::channel(None);
        let (address, limits, tls, stops) = (self.address, self.limits, self.tls, self.stops);
        let listener = {
            let _context = runtime.enter();
            self.listener.set_nonblocking(true).and_then(|()| tokio::net::TcpListener::from_std(self.listener))
        };
        let incoming = Incoming::new(listener.map_err(ServeError::Threads)?, limits.connections, tls);
        runtime.spawn(async move {
            let stopping = async {
                let _ = stopping.await;
            };
            let outcome = tokio::select! {
                outcome = self.router.serve_with_incoming(incoming) => outcome.map_err(|error| error.to_string()),
                () = stopping => Ok(()),
            };
            let _ = stops.send(true);
            let _ = ended.send(Some(outcome.err().unwrap_or_default()));
        });
        Ok(Running { address, stop: Some(stop), stopped, registration: None })
    }
}

impl Running {
    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Keeps the server's entry at a tracker as long as it runs.
    pub fn keep(&mut self, registration: Registration) {
        self.registration = Some(registration);
    }

    /// Waits until the server ends by itself, which it does only if it fails.
    ///
    /// # Errors
    /// [`ServeError::Ended`].
    pub fn wait(mut self) -> Result<(), ServeError> {
        let runtime = runtime().map_err(ServeError::Threads)?;
        let reason = runtime.block_on(async {
            match self.stopped.wait_for(Option::is_some).await {
                Ok(reason) => reason.clone().unwrap_or_default(),
                Err(_) => "its threads ended".into(),
            }
        });
        Err(ServeError::Ended(reason))
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        if let Some(stop) = self.stop.take() {
            let _ = stop.send(());
        }
    }
}

/// The HTTP/2 server with its limits.
fn http(options: &Options) -> Result<Http, ServeError> {
    let http = Http::builder()
        .initial_stream_window_size(WINDOW)
        .initial_connection_window_size(WINDOW)
        .max_frame_size(FRAME)
        .max_concurrent_streams(64)
        .http2_max_header_list_size(16 << 10)
        // A client that is gone without a word is found out.
        .http2_keepalive_interval(Some(Duration::from_secs(5)))
        .http2_keepalive_timeout(Some(Duration::from_secs(10)));
    match &options.tls {
        None => Ok(http),
        Some(tls) => {
            let identity = Identity::from_pem(&tls.certificate, &tls.key);
            let config = ServerTlsConfig::new().identity(identity).timeout(Duration::from_secs(10));
            http.tls_config(config).map_err(|error| ServeError::Tls(crate::connection::with_causes(&error)))
        }
    }
}

struct Service {
    shared: Arc<Shared>,
}

#[tonic::async_trait]
impl Machine for Service {
    async fn ping(&self, _: Request<wire::Nothing>) -> Result<Response<wire::Nothing>, Status> {
        Ok(Response::new(wire::Nothing {}))
    }

    async fn describe(&self, _: Request<wire::Nothing>) -> Result<Response<wire::Description>, Status> {
        let Shared { lends, queue, limits, .. } = &*self.shared;
        Ok(Response::new(wire::Description {
            protocol: PROTOCOL,
            version: env!("CARGO_PKG_VERSION").into(),
            device: lends.name.clone(),
            config_name: lends.config.name.clone(),
            config: lends.config.to_toml(),
            memory_bytes: lends.config.memory_bytes(),
            devices: lends.devices as u32,
            lent: queue.lent() as u32,
            waiting: queue.waiting() as u32,
            functions: crate::host::names(&lends.module(None, limits, &self.shared.stopping, &Arc::default())),
            native: lends.native.is_some(),
            architecture: std::env::consts::ARCH.into(),
        }))
    }

    type SessionStream = replies::Replies;

    async fn session(&self, request: Request<Streaming<wire::Request>>) -> Result<Response<replies::Replies>, Status> {
        let peer = Peer::of(&request).to_string();
        let Some(place) = self.shared.queue.enter() else {
            let limit = self.shared.limits.sessions;
            tracing::warn!("{peer}: refused, because {limit} sessions are open");
            let reason = format!("{limit} sessions are open, its limit");
            return Err(refusal(Code::ResourceExhausted, reason, "try again later"));
        };
        let (replies, sender) = replies::pair();
        tokio::spawn(session::run(self.shared.clone(), place, peer, request.into_inner(), sender));
        Ok(Response::new(replies))
    }
}
