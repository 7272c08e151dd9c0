//! What a server lends, and servers in this process.

use std::path::Path;

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::DeviceError;
use tilewright_rpc::client::Asked;
use tilewright_rpc::endpoint::{Endpoint, given_token, token_from_environment};
use tilewright_rpc::server::{Lends, Options, Running, Server, Tls};
use tilewright_runtime::Registry;

use super::extras::Extras;
use super::name::DeviceKind;
use super::open::open;
use super::table::{Spec, names};

impl Spec {
    /// Whether `tilewright serve` can lend it.
    pub fn can_be_lent(&self) -> bool {
        self.is_simulator() || self.is_board()
    }
}

/// How a server of this process listens.
#[derive(Debug, Clone, Default)]
pub struct Listen<'a> {
    /// Its address, `HOST:PORT`; with port 0, the system chooses one.
    pub address: &'a str,
    /// The token that clients must have. Without it, that of the environment's variables, if there is one.
    pub token: Option<&'a str>,
    /// The paths of a certificate for TLS and of its private key, in PEM.
    pub tls: Option<(&'a Path, &'a Path)>,
    /// Whether to listen beyond this machine without a token or TLS.
    pub insecure: bool,
}

/// Starts a server on threads of this process, which lends what [`lends`] made until the result is dropped.
///
/// # Errors
/// An address that is none or that is not of this machine, a token that is none, files that cannot be read, and an address
/// beyond this machine without token or TLS.
pub fn serve(lends: Lends, listen: Listen) -> anyhow::Result<Running> {
    let options = Options::new(listen.address.parse::<Endpoint>()?);
    let token = listen.token.map_or_else(token_from_environment, |text| given_token(text).map(Some))?;
    let tls = listen.tls.map(|(certificate, key)| Tls::read(certificate, key)).transpose()?;
    Ok(Server::bind(Options { token, tls, insecure: listen.insecure, ..options }, lends)?.start()?)
}

/// What a server lends: up to `devices` devices of this kind at a time, and one if it is a board. It has no functions of
/// its own; add yours to [`Lends::functions`].
///
/// # Errors
/// [`DeviceError::Unsupported`] if the device cannot be lent.
pub fn lends(kind: DeviceKind, config: HwConfig, devices: usize) -> Result<Lends, DeviceError> {
    if !kind.spec().can_be_lent() {
        let what = format!("be lent; use --device {}", names(Spec::can_be_lent));
        return Err(DeviceError::Unsupported { device: kind.to_string(), what });
    }
    let disposable = kind.spec().is_simulator();
    if devices > 1 && !disposable {
        let what = "be lent to several sessions at the same time; leave out --devices".into();
        return Err(DeviceError::Unsupported { device: kind.to_string(), what });
    }
    let open = move |config: &HwConfig, asked: Asked, told: &dyn Fn(&str)| {
        let Asked { strict, spans, max_cycles } = asked;
        let device = open(kind, config, Extras { waves: None, strict, spans, max_cycles }, told)?;
        device.ok_or_else(|| DeviceError::Unsupported { device: kind.to_string(), what: "run programs".into() })
    };
    Ok(Lends {
        name: kind.to_string(),
        config,
        devices,
        disposable,
        open: Box::new(open),
        functions: Registry::new(),
        native: None,
    })
}
