//! Who asks, by address.

use std::net::SocketAddr;

use tonic::Request;
use tonic::transport::server::{TcpConnectInfo, TlsConnectInfo};

/// The address of who asks, if the connection has one.
pub(crate) struct Peer(Option<SocketAddr>);

impl Peer {
    pub fn of<T>(request: &Request<T>) -> Peer {
        let of = |info: &TcpConnectInfo| info.remote_addr();
        let plain = request.extensions().get::<TcpConnectInfo>().and_then(of);
        let tls = request.extensions().get::<TlsConnectInfo<TcpConnectInfo>>();
        Peer(plain.or_else(|| tls.and_then(|info| of(info.get_ref()))))
    }

    pub fn address(&self) -> Option<SocketAddr> {
        self.0
    }
}

impl std::fmt::Display for Peer {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self.0 {
            Some(address) => write!(f, "{address}"),
            None => f.write_str("a client"),
        }
    }
}
