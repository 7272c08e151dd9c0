//! How a server listens, whom it lets in, and what clients can use up.

use std::io;
use std::net::{SocketAddr, TcpListener, ToSocketAddrs};
use std::path::Path;
use std::time::Duration;

use crate::endpoint::{AccessError, Endpoint, read, token};

/// What clients can use up.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Limits {
    /// Connections at the same time.
    pub connections: usize,
    /// Sessions at the same time, those that wait included.
    pub sessions: usize,
    /// Time without a request after which a session ends: one with a device if others wait for it, one without if as many
    /// sessions as allowed are open.
    pub idle: Duration,
    /// Time after which a session loses the device, if others wait for it.
    pub lease: Duration,
    /// Time of a single run or read; a session that exceeds it ends.
    pub run: Duration,
    /// Cycles of a run, or instructions on a device without cycles, whatever the client asks.
    pub cycles: Option<u64>,
    /// Bytes of memory that the models of a session can take together, and bytes of the arguments of a call.
    pub memory: u64,
    /// Bytes of inputs and outputs of the frames of a session that were submitted and not waited for.
    pub frames: u64,
}

impl Default for Limits {
    fn default() -> Limits {
        Limits {
            connections: 64,
            sessions: 32,
            idle: Duration::from_secs(60),
            lease: Duration::from_secs(600),
            run: Duration::from_secs(600),
            cycles: None,
            memory: 1 << 30,
            frames: 1 << 30,
        }
    }
}

/// A server's certificate and key, in PEM.
#[derive(Clone)]
pub struct Tls {
    /// The certificate.
    pub certificate: String,
    /// Its private key.
    pub key: String,
}

impl Tls {
    /// Reads both files.
    ///
    /// # Errors
    /// [`AccessError::File`].
    pub fn read(certificate: &Path, key: &Path) -> Result<Tls, AccessError> {
        Ok(Tls { certificate: read("--tls-cert", certificate)?, key: read("--tls-key", key)? })
    }
}

/// How a server listens.
#[derive(Clone)]
pub struct Options {
    /// The address; port 0 for one that the system chooses.
    pub listen: Endpoint,
    /// The token that clients must have.
    pub token: Option<String>,
    /// Certificate and key; without them, the connection is not encrypted.
    pub tls: Option<Tls>,
    /// Whether to listen beyond this machine without a token or TLS.
    pub insecure: bool,
    /// What clients can use up.
    pub limits: Limits,
}

impl Options {
    /// Without a token or TLS.
    pub fn new(listen: Endpoint) -> Options {
        Options { listen, token: None, tls: None, insecure: false, limits: Limits::default() }
    }

    /// Takes the token from a file.
    ///
    /// # Errors
    /// [`AccessError`].
    pub fn with_token_file(mut self, path: &Path) -> Result<Options, AccessError> {
        let text = read("--token-file", path)?;
        self.token = Some(token(&format!("--token-file {}", path.display()), &text)?);
        Ok(self)
    }

    /// Refuses to serve the network unprotected.
    pub(super) fn check(&self) -> Result<(), ServeError> {
        let missing = match (&self.token, &self.tls) {
            (None, None) => "a token (--token-file) and TLS (--tls-cert, --tls-key)",
            (None, _) => "a token (--token-file)",
            (_, None) => "TLS (--tls-cert, --tls-key)",
            _ => return Ok(()),
        };
        match self.insecure || self.listen.is_loopback() {
            true => Ok(()),
            false => Err(ServeError::Unprotected { address: self.listen.to_string(), missing }),
        }
    }

    pub(super) fn cannot_listen(&self, source: io::Error) -> ServeError {
        ServeError::Listen { address: self.listen.to_string(), source }
    }

    pub(super) fn listen(&self) -> Result<TcpListener, ServeError> {
        let failed = |source| self.cannot_listen(source);
        let addresses: Vec<SocketAddr> =
            (self.listen.host.as_str(), self.listen.port).to_socket_addrs().map_err(failed)?.collect();
        // A name that this machine alone should have can be changed in its table of hosts.
        if self.listen.is_loopback() && !addresses.iter().all(|address| address.ip().is_loopback()) {
            return Err(failed(io::Error::other("it is an address beyond this machine")));
        }
        TcpListener::bind(&addresses[..]).map_err(failed)
    }
}

/// Why a server cannot serve.
#[derive(Debug, thiserror::Error)]
pub enum ServeError {
    /// It would serve the network without protection.
    #[error(
        "{address} can be reached from other machines, and {missing} is missing; give it, listen on 127.0.0.1, or give --insecure on a \
         network that you trust"
    )]
    Unprotected {
        /// The address.
        address: String,
        /// What is missing.
        missing: &'static str,
    },
    /// The address is not free, or not this machine's.
    #[error("cannot listen on {address}: {source}; give another address with --listen")]
    Listen {
        /// The address.
        address: String,
        /// The system's reason.
        source: io::Error,
    },
    /// The certificate or the key cannot be used.
    #[error("the certificate and the key cannot be used: {0}; make them as docs/remote.md shows")]
    Tls(String),
    /// The system gives no threads.
    #[error("no threads for the network: {0}; end other programs, or allow more processes and threads (ulimit -u)")]
    Threads(io::Error),
    /// The server ended.
    #[error("the server ended: {0}")]
    Ended(String),
}
