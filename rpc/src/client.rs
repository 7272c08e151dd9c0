//! The client's end: sessions, and the device of a session.

mod device;
mod line;
mod remote;

use std::time::Duration;

pub use crate::connection::{ClientError, End};
pub use device::{Asked, RemoteDevice};
pub(crate) use line::Line;
pub use remote::Remote;

use tilewright_hw::device::DeviceError;

use crate::caller::Link;
use crate::connection::Connection;
use crate::endpoint::{Access, Endpoint, Lender};
use crate::runtime::runtime;
use crate::tracker::{Lease, TrackerClient};
use crate::{PROTOCOL, report, wire};

/// How often another server is asked of a tracker if one cannot be reached, and the time between.
const TRIES: usize = 5;
const PAUSE: Duration = Duration::from_millis(200);

/// Opens a session at whoever lends, or at the server that a tracker chooses, and waits until it has what it asks for.
/// `told` receives what it waits for.
pub(crate) fn open_session(
    lender: &Lender,
    access: &Access,
    open: &wire::Open,
    told: &dyn Fn(&str),
) -> Result<(Line, wire::Opened, Option<Lease>), DeviceError> {
    let at = |server: &Endpoint| {
        let connection = Connection::open(format!("remote:{server}"), server, access)?;
        Line::open(connection, open.clone(), told)
    };
    let (line, opened, lease) = match lender {
        Lender::Server(server) => {
            let (line, opened) = at(server)?;
            (line, opened, None)
        }
        Lender::Tracker(tracker, kind) => {
            let tracker = TrackerClient::connect(tracker, access)?;
            let mut tries = 0;
            loop {
                let lease = tracker.borrow(kind, told)?;
                match at(&lease.server) {
                    Ok((line, opened)) => break (line, opened, Some(lease)),
                    // A server that has just died is still listed for a moment.
                    Err(ClientError::Unreachable { .. } | ClientError::Lost { .. }) if tries < TRIES => tries += 1,
                    Err(error) => return Err(error.into()),
                }
                drop(lease);
                std::thread::sleep(PAUSE);
            }
        }
    };
    let opened = opened.map_err(|failure| report::error(failure, line.name()))?;
    Ok((line, opened, lease))
}

/// What a server lends, and who waits for it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Description {
    /// Version of the server's program.
    pub version: String,
    /// The device, as `--device` accepts it on the server.
    pub device: String,
    /// Name of the hardware's configuration.
    pub config_name: String,
    /// The configuration as TOML.
    pub config: String,
    /// Bytes of device memory.
    pub memory_bytes: u64,
    /// Devices that can be lent at a time.
    pub devices: u32,
    /// Sessions that have a device.
    pub lent: u32,
    /// Sessions that wait for one.
    pub waiting: u32,
}

/// A server, for requests that need no device.
pub struct Client {
    connection: Connection,
}

impl Client {
    /// Connects to a server.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn connect(endpoint: &Endpoint, access: &Access) -> Result<Client, ClientError> {
        let connection = Connection::open(format!("remote:{endpoint}"), endpoint, access)?;
        Ok(Client { connection })
    }

    /// What the server lends.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn describe(&self) -> Result<Description, ClientError> {
        let request = self.connection.request(wire::Nothing {});
        let mut machine = self.connection.machine();
        let reply = runtime()?.block_on(machine.describe(request)).map_err(|status| self.connection.failed(&status))?;
        let about = reply.into_inner();
        if about.protocol != PROTOCOL {
            return Err(ClientError::Version { server: self.connection.name.clone(), found: about.version });
        }
        Ok(Description {
            version: about.version,
            device: about.device,
            config_name: about.config_name,
            config: about.config,
            memory_bytes: about.memory_bytes,
            devices: about.devices,
            lent: about.lent,
            waiting: about.waiting,
        })
    }

    /// Asks the server for nothing, for the time of a round trip.
    ///
    /// # Errors
    /// [`ClientError`].
    pub fn ping(&self) -> Result<(), ClientError> {
        let request = self.connection.request(wire::Nothing {});
        let mut machine = self.connection.machine();
        let reply = runtime()?.block_on(machine.ping(request));
        reply.map(drop).map_err(|status| self.connection.failed(&status))
    }
}
