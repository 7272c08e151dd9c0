//! Devices of other machines.

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError};
use tilewright_rpc::client::{Asked, Client};
use tilewright_rpc::tracker::TrackerClient;
use tilewright_rpc::{Access, Lender, Remote, RemoteDevice};

use super::extras::Extras;
use super::name::DeviceKind;

/// What clients show, from the environment's variables.
fn access(of: &DeviceKind) -> Result<Access, DeviceError> {
    Access::from_environment().map_err(|error| DeviceError::Tool {
        tool: of.to_string(),
        reason: error.to_string(),
        remedy: "see docs/remote.md".into(),
    })
}

/// Opens the device of a server.
pub(super) fn open_remote(
    kind: DeviceKind,
    lender: &Lender,
    config: &HwConfig,
    asked: Asked,
    told: &dyn Fn(&str),
) -> Result<Box<dyn Device>, DeviceError> {
    Ok(Box::new(RemoteDevice::of(lender, &access(&kind)?, config, asked, told)?))
}

/// Opens a session of a server, which has its device, for artifacts that run there and for its functions. The device must
/// have `config`, if it is given. `access` is what the client shows, by default what the environment's variables say.
/// `told` receives what it waits for.
///
/// # Errors
/// [`DeviceError::Unsupported`] if the device is no server's, and as [`Remote::with_device`].
pub fn open_server(
    kind: DeviceKind,
    access: Option<Access>,
    config: Option<&HwConfig>,
    extras: Extras,
    told: &dyn Fn(&str),
) -> Result<Remote, DeviceError> {
    let Extras { strict, max_cycles, spans, .. } = extras;
    Remote::with_device(lender(kind)?, &given(&kind, access)?, config, Asked { strict, spans, max_cycles }, told)
}

/// Opens a session of a server for its functions, without its device. `access` is as for [`open_server`].
///
/// # Errors
/// As [`open_server`].
pub fn open_functions(kind: DeviceKind, access: Option<Access>) -> Result<Remote, DeviceError> {
    Remote::without_device(lender(kind)?, &given(&kind, access)?)
}

fn given(kind: &DeviceKind, access: Option<Access>) -> Result<Access, DeviceError> {
    access.map_or_else(|| self::access(kind), Ok)
}

fn lender(kind: DeviceKind) -> Result<&'static Lender, DeviceError> {
    kind.lender().ok_or_else(|| {
        let what = "be asked for what a server does; use remote:HOST:PORT".into();
        DeviceError::Unsupported { device: kind.to_string(), what }
    })
}

/// Whether a device reports exact cycles, and when each instruction ran. A server is asked what it lends.
///
/// # Errors
/// [`DeviceError::Tool`] if the server does not answer.
pub fn is_exact(kind: DeviceKind) -> Result<bool, DeviceError> {
    let Some(lender) = kind.lender() else { return Ok(kind.spec().exact) };
    let access = access(&kind)?;
    let exact = |device: &str| device.parse().is_ok_and(|kind: DeviceKind| kind.spec().exact);
    match lender {
        Lender::Server(server) => Ok(exact(&Client::connect(server, &access)?.describe()?.device)),
        Lender::Tracker(tracker, wanted) => {
            let listed = TrackerClient::connect(tracker, &access)?.list()?;
            // A kind that nobody lends is an error when it is opened.
            Ok(listed.iter().filter(|listed| listed.station.kind == *wanted).all(|of| exact(&of.station.device)))
        }
    }
}
