//! A device as a module.

use std::sync::Arc;

use bytes::Bytes;
use tilewright_driver::{ALIGN, Block};
use tilewright_hw::device::{Base, Command, RunReport};
use tilewright_hw::regs::{TrapUnit, UnitState};

use super::{Functions, Module};
use crate::device::SharedDevice;
use crate::function::{AnyError, Args, CallError, Function};
use crate::registry::Registry;
use crate::value::Value;

/// A device's functions. Addresses are bytes of device memory.
///
/// | function | arguments | result |
/// |---|---|---|
/// | `config` | | the hardware's configuration, as TOML |
/// | `memory_bytes`, `free_bytes` | | bytes of its memory, and those that are free |
/// | `alloc` | bytes | address of a block of so many bytes, which nothing else uses |
/// | `free` | address and bytes of a block, as they were allocated | |
/// | `write` | address, bytes | |
/// | `read` | address, number of bytes | the bytes |
/// | `run` | address of a stream, instructions, list of bases (each a list of address and bytes), limit of cycles or none | a map with what the device reports: `cycles`, `trap`, `retired`, `macs`, `bytes_read`, `bytes_written`, `counters` |
pub struct DeviceModule(pub SharedDevice);

impl DeviceModule {
    /// The device behind a module.
    ///
    /// # Errors
    /// A text, if the module is no device.
    pub fn of(module: &Module) -> Result<&SharedDevice, AnyError> {
        let device = module.downcast::<DeviceModule>().map(|module| &module.0);
        device.ok_or_else(|| format!("{} is no device but a module of kind {}", module.name(), module.kind()).into())
    }
}

type Body = fn(&SharedDevice, Args) -> Result<Value, AnyError>;

const FUNCTIONS: [(&str, Body); 8] = [
    ("config", |device, _| Ok(device.config().to_toml().into())),
    ("memory_bytes", |device, _| Ok((device.with(|device| device.memory_bytes()) as i64).into())),
    ("free_bytes", |device, _| Ok((device.free_bytes() as i64).into())),
    ("alloc", |device, args| {
        let bytes = unsigned(args, 0)?;
        let block = device.lock().memory.plan(&[("alloc".into(), bytes)], ALIGN)?;
        Ok((block[0].addr as i64).into())
    }),
    ("free", |device, args| {
        let block = Block { addr: unsigned(args, 0)?, bytes: unsigned(args, 1)?.max(1) };
        let mut device = device.lock();
        if !device.memory.has(&block) {
            let Block { addr, bytes } = block;
            return Err(format!("no block of {bytes} bytes was allocated at {addr}, or it was freed before").into());
        }
        device.memory.release(&[block]);
        Ok(Value::None)
    }),
    ("write", |device, args| {
        let (addr, bytes) = (unsigned(args, 0)?, args.get::<Bytes>(1)?);
        device.with(|device| {
            device.write(addr, bytes)?;
            device.clean_cache(addr, bytes.len() as u64)
        })?;
        Ok(Value::None)
    }),
    ("read", |device, args| {
        let (addr, len) = (unsigned(args, 0)?, unsigned(args, 1)?);
        let bytes = device.with(|device| {
            // Checked before so many bytes are allocated.
            let range = tilewright_hw::device::memory_range(addr, len, device.memory_bytes())?;
            let mut bytes = vec![0; range.len()];
            device.invalidate_cache(addr, len)?;
            device.read(addr, &mut bytes).map(|()| bytes)
        })?;
        Ok(Bytes::from(bytes).into())
    }),
    ("run", |device, args| {
        let bases = args.get::<Vec<Value>>(2)?.iter().map(base).collect::<Result<_, _>>()?;
        let insns = u32::try_from(unsigned(args, 1)?).map_err(|_| "a stream has less than 2^32 instructions")?;
        let cycle_limit = args.option::<i64>(3)?.map(|_| unsigned(args, 3)).transpose()?;
        let command = Command { stream_addr: unsigned(args, 0)?, insns, bases, cycle_limit };
        Ok(report(&device.with(|device| device.run(&command))?))
    }),
];

/// The argument at `index`, which is not negative.
fn unsigned(args: Args, index: usize) -> Result<u64, AnyError> {
    let value = *args.get::<i64>(index)?;
    u64::try_from(value).map_err(|_| format!("argument {index} is {value}, but it cannot be negative").into())
}

fn base(value: &Value) -> Result<Base, AnyError> {
    let wrong = || format!("a base is a list of address and bytes, not {value}");
    let Value::List(pair) = value else { return Err(wrong().into()) };
    let [Value::Integer(addr), Value::Integer(limit)] = pair[..] else { return Err(wrong().into()) };
    Ok(Base { addr: u64::try_from(addr).map_err(|_| wrong())?, limit: u64::try_from(limit).map_err(|_| wrong())? })
}

/// What a device reports of a run; counts that it does not have are no values.
fn report(report: &RunReport) -> Value {
    let trap = report.trap.map_or(Value::None, |trap| {
        let text = trap.to_string();
        report.trap_text.as_ref().map_or(text.clone(), |more| format!("{text}: {more}")).into()
    });
    let counters = report.counters.map_or(Value::None, |counters| {
        let of_unit = |unit: &TrapUnit| {
            let states = UnitState::ALL.iter();
            let count = |state: &UnitState| counters.0[*unit as usize][*state as usize] as i64;
            (unit.name(), states.map(|state| (state.name(), Value::Integer(count(state)))).collect())
        };
        TrapUnit::ALL.iter().map(of_unit).collect()
    });
    Value::from_iter([
        ("cycles", report.cycles.into()),
        ("trap", trap),
        ("retired", report.retired.iter().map(|count| Value::Integer((*count).into())).collect()),
        ("macs", Value::Integer(report.macs as i64)),
        ("bytes_read", report.bytes.map(|(read, _)| read).into()),
        ("bytes_written", report.bytes.map(|(_, written)| written).into()),
        ("counters", counters),
    ])
}

impl Functions for DeviceModule {
    fn kind(&self) -> &'static str {
        "device"
    }

    fn name(&self) -> String {
        self.0.name().to_string()
    }

    fn names(&self) -> Vec<String> {
        FUNCTIONS.iter().map(|(name, _)| name.to_string()).collect()
    }

    fn find(self: Arc<Self>, name: &str) -> Result<Option<Function>, AnyError> {
        let body = FUNCTIONS.iter().find(|(known, _)| *known == name).map(|(_, body)| *body);
        Ok(body.map(|body| Function::new(name, move |args| body(&self.0, args))))
    }
}

/// Opens a device by the name that `--device` accepts, with the registered function `device.KIND`, where KIND is the
/// name up to its first colon. The function takes the whole name and a configuration as TOML, and returns a module.
///
/// # Errors
/// [`CallError::NoDevice`] if no such function is registered, or its error.
pub fn open_device(functions: &Registry, name: &str, config: &str) -> Result<Module, CallError> {
    const PREFIX: &str = "device.";
    let kind = name.split(':').next().unwrap_or_default();
    let open = functions.get(&format!("{PREFIX}{kind}")).ok_or_else(|| {
        let names = functions.names().into_iter();
        let known = names.filter_map(|name| name.strip_prefix(PREFIX).map(str::to_string)).collect();
        CallError::NoDevice { name: kind.to_string(), known }
    })?;
    match open.call(&[name.into(), config.into()])? {
        Value::Module(module) => Ok(module),
        other => Err(CallError::of(open.name(), format!("it returned {}, not a device", other.kind()).into())),
    }
}
