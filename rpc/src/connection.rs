//! Connections to servers and trackers, and what can go wrong with them.

use std::time::Duration;

use tonic::Status;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig};

use crate::endpoint::{Access, CERTIFICATE, Endpoint, INSECURE};
use crate::runtime::runtime;
use crate::stream::Connector;
use crate::wire::machine_client::MachineClient;
use crate::{FRAME, MESSAGE, WINDOW};

/// Time in which a server must answer that it is there.
const CONNECT: Duration = Duration::from_secs(10);

/// Why a server cannot be used.
#[derive(Debug, thiserror::Error)]
pub enum ClientError {
    /// Nothing answers, or not with TLS as it should.
    #[error(
        "{server} cannot be reached: {reason}; check that it runs, its address, and that both sides use TLS or neither"
    )]
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// The token would be readable for others.
    #[error(
        "the token for {server} would cross the network unencrypted; set {CERTIFICATE} to the server's certificate, or {INSECURE}=1 on \
         a network that you trust"
    )]
    Plain {
        /// The server.
        server: String,
    },
    /// The server refused the request.
    #[error("{server} refuses: {reason}")]
    Refused {
        /// The server.
        server: String,
        /// Its reason, with the remedy.
        reason: String,
    },
    /// The connection ended.
    #[error("the connection to {server} ended: {reason}; see the log of the server, and run it again")]
    Lost {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// This side closed the session.
    #[error("the connection to {server} is closed; open another one")]
    Closed {
        /// The server.
        server: String,
    },
    /// Another version of the services.
    #[error(
        "{server} is Tilewright {found} and speaks another version of the services than this program; use the same version on both sides"
    )]
    Version {
        /// The server.
        server: String,
        /// Its program's version.
        found: String,
    },
    /// A process ended.
    #[error("{process} {reason}")]
    Died {
        /// What it was for.
        process: String,
        /// Why, with the remedy.
        reason: String,
    },
    /// The system gives no threads.
    #[error("no threads for the network: {0}")]
    Threads(#[from] std::io::Error),
}

/// A connection to a server. Copies share it.
#[derive(Clone)]
pub(crate) struct Connection {
    /// Its name in messages: `remote:HOST:PORT`.
    pub name: String,
    pub channel: Channel,
    token: Option<MetadataValue<Ascii>>,
}

impl Connection {
    /// Connects to a server; `name` names it in messages.
    pub fn open(name: String, endpoint: &Endpoint, access: &Access) -> Result<Connection, ClientError> {
        runtime()?.block_on(Connection::connect(name, endpoint, access))
    }

    /// Connects to a server; `name` names it in messages.
    pub async fn connect(name: String, endpoint: &Endpoint, access: &Access) -> Result<Connection, ClientError> {
        if access.token.is_some() && access.certificate.is_none() && !access.insecure && !endpoint.is_loopback() {
            return Err(ClientError::Plain { server: name });
        }
        let unreachable = |error: &dyn std::error::Error| ClientError::Unreachable {
            server: name.clone(),
            reason: with_causes(error),
        };
        let scheme = if access.certificate.is_some() { "https" } else { "http" };
        let mut to = tonic::transport::Endpoint::from_shared(format!("{scheme}://{endpoint}"))
            .map_err(|error| unreachable(&error))?
            .connect_timeout(CONNECT)
            .initial_stream_window_size(WINDOW)
            .initial_connection_window_size(WINDOW)
            .max_frame_size(FRAME)
            .http2_keep_alive_interval(Duration::from_secs(10))
            .keep_alive_timeout(Duration::from_secs(20));
        if let Some(certificate) = &access.certificate {
            let tls = ClientTlsConfig::new()
                .ca_certificate(Certificate::from_pem(certificate))
                .domain_name(endpoint.host.clone());
            to = to.tls_config(tls).map_err(|error| unreachable(&error))?;
        }
        let channel =
            to.connect_with_connector(Connector(endpoint.clone())).await.map_err(|error| unreachable(&error))?;
        let token = access.token.as_ref().and_then(|token| format!("Bearer {token}").parse().ok());
        Ok(Connection { name, channel, token })
    }

    /// A request with the token.
    pub fn request<T>(&self, message: T) -> tonic::Request<T> {
        let mut request = tonic::Request::new(message);
        if let Some(token) = &self.token {
            request.metadata_mut().insert("authorization", token.clone());
        }
        request
    }

    pub fn machine(&self) -> MachineClient<Channel> {
        MachineClient::new(self.channel.clone()).max_decoding_message_size(MESSAGE)
    }

    /// The error for a status: a refusal with its reason, or a connection that ended.
    pub fn failed(&self, status: &Status) -> ClientError {
        let (server, reason) = (self.name.clone(), status.message().to_string());
        match status.code() {
            tonic::Code::Unauthenticated
            | tonic::Code::PermissionDenied
            | tonic::Code::ResourceExhausted
            | tonic::Code::FailedPrecondition
            | tonic::Code::Aborted
            | tonic::Code::DeadlineExceeded
            | tonic::Code::NotFound
            | tonic::Code::InvalidArgument => ClientError::Refused { server, reason },
            _ => match std::error::Error::source(status) {
                Some(source) => ClientError::Lost { server, reason: with_causes(source) },
                None => ClientError::Lost { server, reason },
            },
        }
    }
}

/// An error with its causes, each once.
pub(crate) fn with_causes(error: &dyn std::error::Error) -> String {
    let mut text = error.to_string();
    let mut next = error.source();
    while let Some(cause) = next {
        let more = cause.to_string();
        if !text.contains(&more) {
            text = format!("{text}: {more}");
        }
        next = cause.source();
    }
    text
}

/// Who asks, for the server's log.
pub(crate) fn client_name() -> String {
    let host = std::fs::read_to_string("/proc/sys/kernel/hostname").unwrap_or_default();
    format!("{} process {}", host.trim(), std::process::id())
}
