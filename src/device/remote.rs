//! Devices of other machines.

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError};
use tilewright_rpc::client::{Asked, Client};
use tilewright_rpc::endpoint::Endpoint;
use tilewright_rpc::{Access, Remote, RemoteDevice};

use super::name::DeviceKind;
use super::open::Extras;

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
    server: &Endpoint,
    config: &HwConfig,
    asked: Asked,
    told: &dyn Fn(&str),
) -> Result<Box<dyn Device>, DeviceError> {
    Ok(Box::new(RemoteDevice::open(server, &access(&kind)?, config, asked, told)?))
}

/// Opens a session of a server, which has its device, for artifacts that run there and for its functions. The device must
/// have `config`, if it is given. `told` receives what it waits for.
///
/// # Errors
/// [`DeviceError::Unsupported`] if the device is no server's, and as [`Remote::with_device`].
pub fn open_server(
    kind: DeviceKind,
    config: Option<&HwConfig>,
    extras: Extras,
    told: &dyn Fn(&str),
) -> Result<Remote, DeviceError> {
    let Some(server) = kind.server() else {
        let what = "run artifacts by itself; use --device remote:HOST:PORT".into();
        return Err(DeviceError::Unsupported { device: kind.to_string(), what });
    };
    let Extras { strict, max_cycles, spans, .. } = extras;
    Remote::with_device(server, &access(&kind)?, config, Asked { strict, spans, max_cycles }, told)
}

/// Whether a device reports exact cycles, and when each instruction ran. A server is asked what it lends.
///
/// # Errors
/// [`DeviceError::Tool`] if the server does not answer.
pub fn is_exact(kind: DeviceKind) -> Result<bool, DeviceError> {
    let Some(server) = kind.server() else { return Ok(kind.spec().exact) };
    let about = Client::connect(server, &access(&kind)?)?.describe()?;
    Ok(about.device.parse().is_ok_and(|kind: DeviceKind| kind.spec().exact))
}
