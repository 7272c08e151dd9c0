//! Functions of a server, and artifacts that run there.

use std::sync::Arc;

use bytes::Bytes;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::DeviceError;
use tilewright_runtime::function::AnyError;
use tilewright_runtime::value::Value;
use tilewright_runtime::{CallError, Module};

use super::{Asked, open_session};
use crate::LOAD;
use crate::caller::{Caller, Link};
use crate::connection::ClientError;
use crate::endpoint::{Access, Lender};
use crate::report::broken;
use crate::tracker::Lease;
use crate::wire;

/// Most bytes of a result.
const RESULT: u64 = 16 << 30;

/// A session of calls. Modules and functions that it returns keep it open; they are called one at a time.
pub struct Remote {
    caller: Arc<Caller>,
    module: Module,
    device: Option<(String, HwConfig)>,
    /// What a tracker wants back.
    _lease: Option<Lease>,
}

impl Remote {
    /// Opens a session that has the server's device, and waits for it. The device must have `config`, if it is given.
    /// `told` receives what it waits for.
    ///
    /// # Errors
    /// As [`super::RemoteDevice::open`].
    pub fn with_device(
        lender: &Lender,
        access: &Access,
        config: Option<&HwConfig>,
        asked: Asked,
        told: &dyn Fn(&str),
    ) -> Result<Remote, DeviceError> {
        let open = wire::Open {
            any_config: config.is_none(),
            config_name: config.map_or_else(String::new, |config| config.name.clone()),
            config: config.map_or_else(String::new, HwConfig::to_toml),
            strict: asked.strict,
            spans: asked.spans,
            max_cycles: asked.max_cycles,
            ..wire::Open::default()
        };
        Remote::open(lender, access, open, told)
    }

    /// Opens a session that waits for no device. Functions can be called, and artifacts can run that need none.
    ///
    /// # Errors
    /// As [`super::RemoteDevice::open`].
    pub fn without_device(lender: &Lender, access: &Access) -> Result<Remote, DeviceError> {
        Remote::open(lender, access, wire::Open { without_device: true, ..wire::Open::default() }, &|_| ())
    }

    fn open(lender: &Lender, access: &Access, open: wire::Open, told: &dyn Fn(&str)) -> Result<Remote, DeviceError> {
        let (line, opened, lease) = open_session(lender, access, &open, told)?;
        let device = match opened.device.is_empty() {
            true => None,
            false => {
                let config = HwConfig::parse(&opened.config_name, &opened.config);
                let wrong = |error| broken(line.name(), format!("its configuration is not valid: {error}"));
                Some((opened.device, config.map_err(wrong)?))
            }
        };
        let caller = Caller::new(Box::new(line), RESULT);
        let module = Module::new(caller.root(opened.functions));
        Ok(Remote { caller, module, device, _lease: lease })
    }

    /// Ends the session after the call that runs, and gives the device back. Every later call of its functions and modules
    /// is [`ClientError::Closed`].
    pub fn close(&self) {
        self.caller.close();
    }

    /// The server's functions.
    pub fn module(&self) -> &Module {
        &self.module
    }

    /// The name of the session's device on the server, and its configuration.
    pub fn device(&self) -> Option<&(String, HwConfig)> {
        self.device.as_ref()
    }

    /// Uploads an artifact and makes a session of it on the server: a module with the functions of
    /// [`SessionModule`](tilewright_runtime::module::SessionModule). `name` names it in messages; `sent` receives the
    /// bytes that are sent, and their total.
    ///
    /// # Errors
    /// [`CallError::Failed`] if the artifact is damaged, was made for another configuration, has code that the server
    /// does not run, or needs more memory than the server allows.
    pub fn load(&self, name: &str, artifact: Bytes, sent: &dyn Fn(u64, u64)) -> Result<Module, CallError> {
        let failed = |error: AnyError| CallError::of(LOAD, error);
        let arguments = [name.into(), Value::Bytes(artifact)];
        match self.caller.call(0, LOAD, &arguments, sent).map_err(failed)? {
            Value::Module(module) => Ok(module),
            other => Err(failed(format!("the server returned {}, not a session", other.kind()).into())),
        }
    }
}

impl From<ClientError> for CallError {
    fn from(error: ClientError) -> CallError {
        CallError::of("remote", Box::new(error))
    }
}
