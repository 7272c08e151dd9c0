//! Connections to servers and trackers, and what can go wrong with them.

use std::time::Duration;

use tilewright_hw::device::DeviceError;
use tonic::Status;
use tonic::metadata::{Ascii, MetadataValue};
use tonic::transport::{Certificate, Channel, ClientTlsConfig};

use crate::endpoint::{Access, CERTIFICATE, Endpoint, INSECURE};
use crate::runtime::runtime;
use crate::stream::Connector;
use crate::wire::machine_client::MachineClient;
use crate::{FRAME, MESSAGE, WINDOW, refusal};

/// Time in which a server must answer that it is there.
const CONNECT: Duration = Duration::from_secs(10);

/// What to do if a refusal does not say it.
const SEE_LOG: &str = "see the log of the server";

/// Why a server cannot be used.
#[derive(Debug)]
pub enum ClientError {
    /// Nothing answers, or not with TLS as it should.
    Unreachable {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// The token would be readable for others.
    Plain {
        /// The server.
        server: String,
    },
    /// The server refused the request.
    Refused {
        /// The server.
        server: String,
        /// Its reason.
        reason: String,
        /// What to do.
        remedy: String,
    },
    /// The connection ended.
    Lost {
        /// The server.
        server: String,
        /// Why.
        reason: String,
    },
    /// This side closed the session.
    Closed {
        /// The server.
        server: String,
    },
    /// Another version of the services.
    Version {
        /// The server.
        server: String,
        /// Its program's version.
        found: String,
    },
    /// A process ended.
    Died {
        /// What it was for.
        process: String,
        /// Why it ended.
        end: End,
    },
    /// The system gives no threads.
    Threads(std::io::Error),
}

/// Why a process ended, and what to do.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct End {
    /// What it did, such as `died of signal 11`.
    pub reason: String,
    /// What to do.
    pub remedy: String,
}

impl End {
    pub(crate) fn new(reason: impl Into<String>, remedy: &str) -> End {
        End { reason: reason.into(), remedy: remedy.into() }
    }
}

impl ClientError {
    /// The server or process that it is about.
    pub fn subject(&self) -> &str {
        match self {
            ClientError::Unreachable { server, .. }
            | ClientError::Plain { server }
            | ClientError::Refused { server, .. }
            | ClientError::Lost { server, .. }
            | ClientError::Closed { server }
            | ClientError::Version { server, .. } => server,
            ClientError::Died { process, .. } => process,
            ClientError::Threads(_) => "remote",
        }
    }

    /// What happened, to be read after the [subject](ClientError::subject) or a colon behind it.
    pub fn reason(&self) -> String {
        match self {
            ClientError::Unreachable { reason, .. } => format!("cannot be reached: {reason}"),
            ClientError::Plain { server } => {
                format!("the token for {server} would cross the network unencrypted")
            }
            ClientError::Refused { reason, .. } => format!("refuses: {reason}"),
            ClientError::Lost { server, reason } => format!("the connection to {server} ended: {reason}"),
            ClientError::Closed { server } => format!("the connection to {server} is closed"),
            ClientError::Version { found, .. } => {
                format!("is Tilewright {found} and speaks another version of the services than this program")
            }
            ClientError::Died { end, .. } => end.reason.clone(),
            ClientError::Threads(error) => format!("no threads for the network: {error}"),
        }
    }

    /// What to do.
    pub fn remedy(&self) -> String {
        match self {
            ClientError::Unreachable { .. } => {
                "check that it runs, its address, and that both sides use TLS or neither".into()
            }
            ClientError::Plain { .. } => {
                format!("set {CERTIFICATE} to the server's certificate, or {INSECURE}=1 on a network that you trust")
            }
            ClientError::Refused { remedy, .. } => remedy.clone(),
            ClientError::Lost { .. } => format!("{SEE_LOG}, and run it again"),
            ClientError::Closed { .. } => "open another one".into(),
            ClientError::Version { .. } => "use the same version on both sides".into(),
            ClientError::Died { end, .. } => end.remedy.clone(),
            ClientError::Threads(_) => "end other programs, or allow more processes and threads (ulimit -u)".into(),
        }
    }
}

impl std::fmt::Display for ClientError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        // These reasons name it, or have none.
        let has_subject = matches!(
            self,
            ClientError::Plain { .. } | ClientError::Lost { .. } | ClientError::Closed { .. } | ClientError::Threads(_)
        );
        if !has_subject {
            write!(f, "{} ", self.subject())?;
        }
        write!(f, "{}; {}", self.reason(), self.remedy())
    }
}

impl std::error::Error for ClientError {
    fn source(&self) -> Option<&(dyn std::error::Error + 'static)> {
        match self {
            ClientError::Threads(error) => Some(error),
            _ => None,
        }
    }
}

impl From<std::io::Error> for ClientError {
    fn from(error: std::io::Error) -> ClientError {
        ClientError::Threads(error)
    }
}

impl From<ClientError> for DeviceError {
    fn from(error: ClientError) -> DeviceError {
        let (tool, reason, remedy) = (error.subject().to_string(), error.reason(), error.remedy());
        DeviceError::Tool { tool, reason, remedy }
    }
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
            | tonic::Code::InvalidArgument => {
                let remedy = refusal::remedy(status).unwrap_or_else(|| SEE_LOG.into());
                ClientError::Refused { server, reason, remedy }
            }
            tonic::Code::Unimplemented => ClientError::Refused {
                server,
                reason: "it does not offer what was asked for".into(),
                remedy: "name a server as remote:HOST:PORT, and a tracker as tracker:HOST:PORT/KIND".into(),
            },
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn reasons_and_remedies_stay_apart_in_errors_of_devices() {
        let server = || "remote:h:1".to_string();
        let end = End::new("died; of a signal", "load it again; then compile it");
        let (reason, remedy) = ("a; b".to_string(), "c; d".to_string());
        for (error, text) in [
            (ClientError::Refused { server: server(), reason, remedy }, "remote:h:1|refuses: a; b|c; d"),
            (ClientError::Died { process: "p".into(), end }, "p|died; of a signal|load it again; then compile it"),
            (
                ClientError::Closed { server: server() },
                "remote:h:1|the connection to remote:h:1 is closed|open another one",
            ),
            (
                ClientError::Unreachable { server: server(), reason: "no; route".into() },
                "remote:h:1|cannot be reached: no; route|check that it runs, its address, and that both sides use TLS or \
                 neither",
            ),
        ] {
            let DeviceError::Tool { tool, reason, remedy } = error.into() else { panic!("{text}: another kind") };
            assert_eq!(format!("{tool}|{reason}|{remedy}"), text);
        }
    }
}
