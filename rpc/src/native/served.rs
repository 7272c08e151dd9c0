//! The process's own side.

use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixStream;
use std::sync::{Arc, mpsc};

use tilewright_hw::config::HwConfig;
use tilewright_runtime::function::AnyError;
use tilewright_runtime::{Function, Module, Registry, SharedDevice};

use super::limits;
use super::pipe::{CALLS, DEVICE, FUNCTIONS, Frames, Link, Replies, Writer};
use crate::RemoteDevice;
use crate::caller::Caller;
use crate::server::{Budget, CpuCode, MachineModule, Requests};
use crate::wire::{self, frame};

/// Runs CPU code of a client for the server that started this process with a socket as its standard input, until the
/// server closes it. Call it first in `main`: it closes all other files, and limits the process for good.
///
/// # Errors
/// The system's, or a text if the other side is no server.
pub fn serve() -> Result<(), AnyError> {
    limits::close_files()?;
    let stream = UnixStream::from(io::stdin().as_fd().try_clone_to_owned()?);
    let mut frames = Frames::new(stream.try_clone()?);
    let Some(wire::Frame { kind: Some(frame::Kind::Begin(begin)), .. }) = frames.next() else {
        return Err("its standard input is no socket of a server; `tilewright serve --allow-native` starts it".into());
    };
    limits::apply(&begin)?;
    let writer = Arc::new(Writer::new(stream));
    let (calls, to_run) = mpsc::channel();
    let (of_device, device_replies) = mpsc::channel();
    let (of_functions, function_replies) = mpsc::channel();
    std::thread::spawn(move || {
        while let Some(wire::Frame { channel, kind: Some(kind) }) = frames.next() {
            // Nobody waits for what cannot be sent on.
            let _ = match (channel, kind) {
                (CALLS, frame::Kind::Request(request)) => calls.send(request).is_ok(),
                (DEVICE, frame::Kind::Reply(reply)) => of_device.send(reply).is_ok(),
                (FUNCTIONS, frame::Kind::Reply(reply)) => of_functions.send(reply).is_ok(),
                _ => break,
            };
        }
    });
    let link = |name: &str, channel, replies| Link::new(name.into(), channel, writer.clone(), replies, None, None);
    let device = match begin.device.is_empty() {
        true => None,
        false => {
            let config = HwConfig::parse(&begin.config_name, &begin.config)?;
            let link = Box::new(link(&begin.device, DEVICE, device_replies));
            Some(SharedDevice::new(Box::new(RemoteDevice::over(link, config, begin.memory_bytes))))
        }
    };
    let server = Caller::new(Box::new(link("the server", FUNCTIONS, function_replies)), begin.model_bytes);
    let functions = Registry::new();
    for name in begin.functions {
        let (server, of_server) = (server.clone(), name.clone());
        functions.add(Function::new(&name, move |args| server.call(0, &of_server, args.values(), &|_, _| ())));
    }
    let module = Module::new(MachineModule {
        name: "the process for CPU code".into(),
        functions,
        device: device.clone(),
        budget: Budget::new(begin.model_bytes, begin.frame_bytes),
        cpu_code: CpuCode::Here,
    });
    let mut requests = Requests::new(None, module, begin.model_bytes);
    for request in to_run {
        let mut line = Replies { writer: &writer, channel: CALLS };
        if requests.execute(request.kind, &mut line, "the server").is_err() {
            break;
        }
    }
    Ok(())
}
