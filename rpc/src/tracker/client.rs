//! What servers and clients ask of a tracker.

use std::time::Duration;

use tokio::task::JoinHandle;
use tonic::{Status, Streaming};

use crate::connection::{ClientError, Connection, client_name};
use crate::endpoint::{Access, Endpoint};
use crate::runtime::runtime;
use crate::wire::grant::Kind;
use crate::wire::tracker_client::TrackerClient as Rpc;
use crate::{MESSAGE, PROTOCOL, wire};

/// Pause before a server tries again to reach its tracker.
const AGAIN: Duration = Duration::from_secs(1);

/// What a server tells the tracker.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Station {
    /// The kind of its devices: letters, digits, dots, hyphens and underscores.
    pub kind: String,
    /// Its address: `HOST:PORT`, or `:PORT` if the tracker is to take the host from the connection.
    pub address: String,
    /// The device's name, as `--device` accepts it on the server.
    pub device: String,
    /// The name of its configuration.
    pub config_name: String,
    /// Devices that it lends at a time.
    pub devices: u32,
}

/// A server as the tracker lists it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Listed {
    /// What the server told, with its whole address.
    pub station: Station,
    /// Its devices that the tracker has handed out.
    pub lent: u32,
    /// Clients that wait for the kind.
    pub waiting: u32,
}

/// A server's entry at a tracker. Dropping it removes the entry.
pub struct Registration(JoinHandle<()>);

impl Drop for Registration {
    fn drop(&mut self) {
        self.0.abort();
    }
}

fn rpc(connection: &Connection) -> Rpc<tonic::transport::Channel> {
    Rpc::new(connection.channel.clone()).max_decoding_message_size(MESSAGE)
}

impl Station {
    fn message(&self) -> wire::Station {
        wire::Station {
            protocol: PROTOCOL,
            kind: self.kind.clone(),
            address: self.address.clone(),
            device: self.device.clone(),
            config_name: self.config_name.clone(),
            devices: self.devices,
        }
    }

    /// Tells a tracker, and tells it again whenever it was not reachable. The first time must succeed.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn register(self, tracker: &Endpoint, access: &Access) -> Result<Registration, ClientError> {
        let name = format!("tracker:{tracker}");
        let first = runtime()?.block_on(self.once(&name, tracker, access))?;
        let (tracker, access) = (tracker.clone(), access.clone());
        Ok(Registration(runtime()?.spawn(async move {
            let mut stream = Some(first);
            loop {
                if let Some(mut open) = stream.take() {
                    // It ends when the tracker does.
                    while let Ok(Some(_)) = open.message().await {}
                    tracing::warn!("{name}: no longer answers; this server tries again");
                }
                tokio::time::sleep(AGAIN).await;
                match self.once(&name, &tracker, &access).await {
                    Ok(open) => {
                        tracing::info!("{name}: lists this server again");
                        stream = Some(open);
                    }
                    Err(error) => tracing::debug!("{error}"),
                }
            }
        })))
    }

    async fn once(
        &self,
        name: &str,
        tracker: &Endpoint,
        access: &Access,
    ) -> Result<Streaming<wire::Nothing>, ClientError> {
        let connection = Connection::connect(name.to_string(), tracker, access).await?;
        let request = connection.request(self.message());
        let stream = rpc(&connection).register(request).await.map_err(|status| connection.failed(&status))?;
        Ok(stream.into_inner())
    }
}

/// A device that a tracker handed out. Dropping this gives it back.
pub struct Lease {
    /// The device's server.
    pub server: Endpoint,
    _open: Streaming<wire::Grant>,
}

/// A tracker, for clients.
pub struct TrackerClient {
    connection: Connection,
}

impl TrackerClient {
    /// Connects to a tracker.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn connect(tracker: &Endpoint, access: &Access) -> Result<TrackerClient, ClientError> {
        Ok(TrackerClient { connection: Connection::open(format!("tracker:{tracker}"), tracker, access)? })
    }

    fn failed(&self, status: &Status) -> ClientError {
        self.connection.failed(status)
    }

    /// Waits until there is a free device of a kind. `told` receives what it waits for.
    ///
    /// # Errors
    /// [`ClientError::Refused`] if no server lends devices of this kind.
    pub fn borrow(&self, kind: &str, told: &dyn Fn(&str)) -> Result<Lease, ClientError> {
        let wanted = wire::Wanted { protocol: PROTOCOL, kind: kind.into(), client: client_name() };
        let mut rpc = rpc(&self.connection);
        let request = self.connection.request(wanted);
        let stream = runtime()?.block_on(rpc.borrow(request)).map_err(|status| self.failed(&status))?;
        let mut open = stream.into_inner();
        let lost = |reason: &str| ClientError::Lost { server: self.connection.name.clone(), reason: reason.into() };
        loop {
            let message = runtime()?.block_on(open.message()).map_err(|status| self.failed(&status))?;
            match message.map(|grant| grant.kind) {
                Some(Some(Kind::Progress(progress))) => told(&progress.text),
                Some(Some(Kind::Address(address))) => {
                    let server = address.parse().map_err(|_| lost("the address that it returned is none"))?;
                    return Ok(Lease { server, _open: open });
                }
                Some(None) => return Err(lost("the tracker sent a reply that does not fit the request")),
                None => return Err(lost("the tracker ended")),
            }
        }
    }

    /// The servers.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn list(&self) -> Result<Vec<Listed>, ClientError> {
        let request = self.connection.request(wire::Nothing {});
        let reply = runtime()?.block_on(rpc(&self.connection).list(request)).map_err(|status| self.failed(&status))?;
        let listed = |listed: wire::Listed| {
            let wire::Listed { station, lent, waiting } = listed;
            let wire::Station { kind, address, device, config_name, devices, .. } = station?;
            Some(Listed { station: Station { kind, address, device, config_name, devices }, lent, waiting })
        };
        Ok(reply.into_inner().stations.into_iter().filter_map(listed).collect())
    }
}
