//! Devices by name.

use std::ffi::c_char;
use std::sync::Once;

#[cfg(not(target_family = "wasm"))]
use tilewright_driver::port::{Board, BoardPort};
use tilewright_hw::config::{HwConfig, PRESETS};
use tilewright_hw::device::Device;
use tilewright_runtime::function::{AnyError, Args};
use tilewright_runtime::module::{DeviceModule, open_device};
use tilewright_runtime::{Function, Module, Registry, SharedDevice, Value};

use crate::error::{Failure, TW_NOT_FOUND, guard, text, tw_status};
use crate::value::{put_value, tw_value};

type Open = fn(&str, HwConfig) -> Result<Box<dyn Device>, AnyError>;

/// The devices of this library, by the kinds of their names.
const DEVICES: &[(&str, Open)] = &[
    #[cfg(not(target_family = "wasm"))]
    ("serial", board),
    #[cfg(not(target_family = "wasm"))]
    ("spi", board),
    #[cfg(not(target_family = "wasm"))]
    ("uio", board),
    #[cfg(all(feature = "remote", not(target_family = "wasm")))]
    ("remote", server),
    #[cfg(all(feature = "remote", not(target_family = "wasm")))]
    ("tracker", server),
    #[cfg(feature = "sim")]
    ("fsim", |_, config| {
        let bytes = config.memory_bytes();
        Ok(fsim(config, bytes))
    }),
    #[cfg(feature = "sim")]
    ("csim", |_, config| {
        let bytes = config.memory_bytes();
        Ok(csim(config, bytes))
    }),
];

/// The functional simulator with so many bytes of memory.
#[cfg(feature = "sim")]
pub(crate) fn fsim(config: HwConfig, bytes: u64) -> Box<dyn Device> {
    Box::new(tilewright_sim::Fsim::new(config, bytes))
}

/// The cycle model with so many bytes of memory.
#[cfg(feature = "sim")]
pub(crate) fn csim(config: HwConfig, bytes: u64) -> Box<dyn Device> {
    Box::new(tilewright_sim::Csim::new(config, bytes, tilewright_sim::CsimOptions::default()))
}

#[cfg(not(target_family = "wasm"))]
fn board(name: &str, config: HwConfig) -> Result<Box<dyn Device>, AnyError> {
    let port: BoardPort = name.parse()?;
    Ok(Board::open(&port, &config, &|_| ())?.into_device(None))
}

/// The device of a server, or of one that a tracker chooses. Token and certificate are those of the variables of the
/// environment that the command line reads.
#[cfg(all(feature = "remote", not(target_family = "wasm")))]
fn server(name: &str, config: HwConfig) -> Result<Box<dyn Device>, AnyError> {
    use tilewright_rpc::client::Asked;
    use tilewright_rpc::{Access, Lender, RemoteDevice};
    let lender: Lender = name.parse()?;
    // The configuration has the device's name, which says nothing to the server.
    let config = HwConfig { name: "the program's".into(), ..config };
    Ok(Box::new(RemoteDevice::of(&lender, &Access::from_environment()?, &config, Asked::default(), &|_| ())?))
}

/// Registers the library's devices, once in a process.
pub(crate) fn register() {
    static ONCE: Once = Once::new();
    ONCE.call_once(|| {
        for &(kind, open) in DEVICES {
            let open = move |args: Args| {
                let name = args.get::<String>(0)?;
                let config = HwConfig::parse(name, args.get::<String>(1)?)?;
                Ok(Module::new(DeviceModule(SharedDevice::new(open(name, config)?))).into())
            };
            Registry::global().add(Function::new(&format!("device.{kind}"), open));
        }
    });
}

/// Opens a device that sessions can share, by the name that `--device` accepts. `config` is the name of a preset, or a
/// configuration as TOML.
///
/// # Safety
/// `name` and `config` are texts that end with a zero; `out` can be written.
#[unsafe(no_mangle)]
pub unsafe extern "C" fn tw_device_open(name: *const c_char, config: *const c_char, out: *mut tw_value) -> tw_status {
    guard(|| {
        register();
        // SAFETY: the caller's promise.
        let (name, config) = unsafe { (text(name, "name")?, text(config, "config")?) };
        let preset = PRESETS.iter().find(|(preset, _)| *preset == config).map(|(_, text)| *text);
        // A text of TOML that says anything has a key with a value.
        if preset.is_none() && !config.trim().is_empty() && !config.contains('=') {
            let presets: Vec<&str> = PRESETS.iter().map(|(preset, _)| *preset).collect();
            let known = format!("the presets are {}, or give a configuration as TOML", presets.join(", "));
            return Err(Failure::new(TW_NOT_FOUND, format!("no configuration is named {config}; {known}")));
        }
        let device = open_device(Registry::global(), name, preset.unwrap_or(config))?;
        // SAFETY: the caller's promise.
        unsafe { put_value(out, || Value::Module(device)) }
    })
}
