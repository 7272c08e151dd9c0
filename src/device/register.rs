//! Devices as functions of a registry, by which modules of artifacts open them.

use tilewright_hw::config::HwConfig;
use tilewright_runtime::function::{AnyError, Args};
use tilewright_runtime::module::DeviceModule;
use tilewright_runtime::{Function, Module, Registry, SharedDevice, Value};

use super::extras::Extras;
use super::name::DeviceKind;
use super::open::open;
use super::table::DEVICES;

/// Registers a function `device.KIND` for each device that runs the accelerator's programs, as
/// [`open_device`](tilewright_runtime::module::open_device) looks for them.
pub fn register(registry: &Registry) {
    for spec in DEVICES.iter().filter(|spec| spec.is_accelerator()) {
        registry.add(Function::new(&format!("device.{}", spec.name), open_module));
    }
}

/// Opens a device; the arguments are its name and a configuration as TOML.
fn open_module(args: Args) -> Result<Value, AnyError> {
    let name = args.get::<String>(0)?;
    let config = HwConfig::parse(name, args.get::<String>(1)?)?;
    let kind: DeviceKind = name.parse()?;
    let device = open(kind, &config, Extras::default(), &|_| ())?;
    let device = device.ok_or_else(|| format!("{name} runs no programs of the accelerator"))?;
    Ok(Module::new(DeviceModule(SharedDevice::new(device))).into())
}

#[cfg(test)]
mod tests {
    use tilewright_runtime::module::open_device;

    use super::*;

    #[test]
    fn devices_are_opened_by_name() {
        let registry = Registry::new();
        register(&registry);
        let config = HwConfig::load("1x8x8").unwrap().to_toml();
        let open = |name: &str| open_device(&registry, name, &config).map(|m| m.name()).map_err(|e| e.to_string());
        assert_eq!(open("csim"), Ok("csim".into()));
        assert_eq!(open("fsim").unwrap(), "fsim");
        assert!(open("csim:1").unwrap_err().contains("no device is named csim:1"));
        let unknown = open("cpu").unwrap_err();
        assert_eq!(
            unknown,
            "there is no device cpu here; there are: csim, fsim, remote, rtl, serial, spi, tracker, uio"
        );
    }
}
