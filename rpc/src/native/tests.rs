//! Processes that do not behave.

use std::io::Read;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::time::{Duration, Instant};

use tilewright_hw::config::HwConfig;
use tilewright_hw::device::{Device, DeviceError};
use tilewright_hw::interrupt::{Interrupt, check};
use tilewright_runtime::artifact::{CpuTarget, Manifest};
use tilewright_runtime::{Artifact, Function, Module, Registry, SharedDevice};
use tilewright_sim::Fsim;
use tilewright_testing::device::{Hooked, HostAccess};

use super::*;
use crate::client::{Asked, Remote};
use crate::endpoint::Access;
use crate::host::pieces;
use crate::server::tests::bad::Raw;
use crate::server::tests::fuzz::{Random, seconds};
use crate::server::tests::{calls, endpoint, plain, simulator, small, start, with_limits, within};
use crate::server::{Lends, Limits, Running};
use crate::values::{Objects, ValueError, pack, pack_list, tests::Nothing};
use crate::wire::{reply, request};

/// Processes of a shell's command.
fn shell(command: &str) -> Native {
    Native {
        program: "/bin/sh".into(),
        arguments: ["-c", command].map(OsString::from).to_vec(),
        variables: vec![("PATH".into(), "/usr/bin:/bin".into())],
        cpu_seconds: 5,
    }
}

/// A server whose processes are those of a shell's command.
fn with_process(command: &str, limits: Limits) -> Running {
    let native = Some(shell(command));
    let lends = Lends { functions: calls::functions(), native, ..simulator(&small(), false, Arc::default()) };
    start(with_limits(limits), lends)
}

fn remote(running: &Running) -> Remote {
    Remote::without_device(&endpoint(running).into(), &Access::default()).expect("a session")
}

/// An artifact with object code, whose bytes are none.
fn with_code() -> Artifact {
    let artifact = calls::doubling();
    let cpu = CpuTarget { target: "none".into(), objects: vec![tilewright_runtime::artifact::BlobId(0)] };
    let manifest = Manifest { cpu: Some(cpu), ..artifact.manifest };
    Artifact::new("doubling", manifest, vec![vec![0; 64]]).expect("is an artifact")
}

fn load(remote: &Remote) -> String {
    let loaded = remote.load("m.twa", with_code().encode().into(), &|_, _| ());
    loaded.map(|_| ()).unwrap_err().to_string()
}

#[test]
fn processes_that_do_not_behave_are_told_and_end() {
    for (command, message) in [
        ("exit 3", "m.twa ended with exit code 3"),
        ("kill -SEGV $$", "m.twa died of signal 11 (SIGSEGV"),
        // Too long, no frame, a frame on a channel that it cannot use, a reply that fits nothing.
        ("printf '\\377\\377\\377\\377' >&0; cat", "m.twa was killed, because it no longer answered"),
        ("printf '\\2\\0\\0\\0\\377\\377' >&0; cat", "m.twa was killed"),
        ("printf '\\4\\0\\0\\0\\10\\7\\32\\0' >&0; cat", "m.twa was killed"),
        ("printf '\\6\\0\\0\\0\\42\\4\\102\\0\\0\\0' >&0; cat", "m.twa "),
        ("head -c 300000 /dev/zero >&0; cat", "m.twa "),
    ] {
        let running = with_process(command, Limits::default());
        let remote = remote(&running);
        for _ in 0..2 {
            let error = load(&remote);
            assert!(error.contains(message), "{command}: {error}");
        }
        // The session goes on.
        let session = remote.load("d.twa", calls::doubling().encode().into(), &|_, _| ());
        assert_eq!(session.expect("it is loaded").kind(), "session");
    }
}

#[test]
fn a_process_that_does_not_answer_is_killed() {
    let limits = Limits { run: Duration::from_millis(300), ..Limits::default() };
    let running = with_process("sleep 77.7", limits);
    let begun = Instant::now();
    let error = load(&remote(&running));
    assert!(error.contains("longer than its limit") && begun.elapsed() < Duration::from_secs(5), "{error}");
}

/// Frames as a shell's command that sends them.
fn sending(frames: &[(u32, frame::Kind)]) -> String {
    let (own, mut its) = UnixStream::pair().expect("sockets");
    let writer = Writer::new(own);
    frames.iter().for_each(|(channel, kind)| writer.send(*channel, kind.clone()).expect("it is sent"));
    drop(writer);
    let mut bytes = Vec::new();
    its.read_to_end(&mut bytes).expect("they arrive");
    let octal: String = bytes.iter().map(|byte| format!("\\{byte:03o}")).collect();
    format!("printf '{octal}' >&0; exec cat")
}

/// A board that runs its commands until they are stopped. `state` is 1 while it does, then 2.
fn endless(config: &HwConfig, state: Arc<AtomicU32>) -> Box<dyn Device> {
    let hook = move |access| {
        if access == HostAccess::Wait {
            state.store(1, Ordering::SeqCst);
            while check().is_ok() && Interrupt::current().is_some() {
                std::thread::sleep(Duration::from_millis(1));
            }
            state.store(2, Ordering::SeqCst);
        }
        Ok(())
    };
    Box::new(Hooked::new("endless", Fsim::new(config.clone(), config.memory_bytes())).before(hook))
}

/// The object with number 1.
struct First;

impl Objects for First {
    fn module(&mut self, module: &Module) -> Result<wire::Object, ValueError> {
        let (name, kind, functions) = (module.name(), module.kind().into(), module.names());
        Ok(wire::Object { id: 1, name, kind, functions, ..wire::Object::default() })
    }
    fn function(&mut self, function: &Function) -> Result<wire::Object, ValueError> {
        Nothing.function(function)
    }
    fn to_module(&mut self, object: wire::Object) -> Result<Module, ValueError> {
        Nothing.to_module(object)
    }
    fn to_function(&mut self, object: wire::Object) -> Result<Function, ValueError> {
        Nothing.to_function(object)
    }
}

#[test]
fn a_session_has_few_processes() {
    let module = Value::Module(Module::new(Registered(Registry::new())));
    let loaded = reply::Kind::Returned(pack(&module, &mut First).expect("it can be sent").tree.into());
    let loaded = sending(&[(CALLS, frame::Kind::Reply(wire::Reply { kind: Some(loaded) }))]);
    let running = with_process(&loaded, Limits::default());
    let remote = remote(&running);
    let load_one = || remote.load("m.twa", with_code().encode().into(), &|_, _| ());
    let mut models: Vec<Module> = (0..8).map(|_| load_one().expect("there is room")).collect();
    let refused = load(&remote);
    assert!(refused.contains("m.twa needs a process for its CPU code and the session has 8, its limit"), "{refused}");
    models.pop();
    load_one().expect("there is room for one");
}

#[test]
fn a_run_for_a_process_stops_when_its_client_is_gone() {
    let state = Arc::<AtomicU32>::default();
    let of_device = state.clone();
    let open = move |config: &HwConfig, _: Asked, _: &dyn Fn(&str)| -> Result<Box<dyn Device>, DeviceError> {
        Ok(endless(config, of_device.clone()))
    };
    let request = |kind| (DEVICE, frame::Kind::Request(wire::Request { kind: Some(kind) }));
    let command = sending(&[request(request::Kind::Submit(wire::Command::default())), request(request::Kind::Wait(0))]);
    let lends = Lends {
        native: Some(shell(&command)),
        disposable: false,
        open: Box::new(open),
        ..simulator(&small(), false, Arc::default())
    };
    let running = start(with_limits(Limits::default()), lends);
    let raw = Raw::new(&running);
    raw.open(|_| ());
    let arguments = ["m.twa".into(), Value::Bytes(with_code().encode().into())];
    let packed = pack_list(&arguments, &mut Nothing).expect("they can be sent");
    pieces(packed.bulk).for_each(|piece| assert!(raw.send(request::Kind::Bulk(piece))));
    let call = wire::Call { object: 0, name: LOAD.into(), arguments: packed.tree.into() };
    assert!(raw.send(request::Kind::Call(call)));
    let reaches = |wanted| {
        let begun = Instant::now();
        while state.load(Ordering::SeqCst) != wanted {
            assert!(begun.elapsed() < within(10), "the device is in state {}", state.load(Ordering::SeqCst));
            std::thread::sleep(Duration::from_millis(2));
        }
    };
    reaches(1);
    drop(raw);
    reaches(2);
    // The next session gets the device.
    plain(&running).flush().expect("it answers");
}

#[test]
fn a_program_that_is_missing_is_told() {
    let native = Native { program: "/none".into(), arguments: Vec::new(), variables: Vec::new(), cpu_seconds: 1 };
    let lends = Lends { native: Some(native), ..simulator(&small(), false, Arc::default()) };
    let running = start(with_limits(Limits::default()), lends);
    let error = load(&remote(&running));
    // An emulator of processors that starts it tells this by an exit code.
    assert!(error.contains("No such file") || error.contains("ended with exit code 127"), "{error}");
}

#[test]
fn no_message_of_a_process_stops_its_server() {
    let config = small();
    let device = Fsim::new(config.clone(), config.memory_bytes()).with_cycle_limit(Some(10_000));
    let device = Some(SharedDevice::new(Box::new(device)));
    let offer = Offer { device, functions: calls::functions(), most: 4 << 20, frames: 4 << 20 };
    let (begun, mut random) = (Instant::now(), Random(0x1234_5678_9abc_def1));
    let mut rounds = 0;
    while begun.elapsed() < Duration::from_secs(seconds() / 2) || rounds < 3 {
        let (own, its) = UnixStream::pair().expect("sockets");
        let mut server = Server::new(&offer, Arc::new(Writer::new(own.try_clone().expect("a socket"))));
        let (replies, receiver) = mpsc::sync_channel(crate::QUEUE);
        let mut taken = its.try_clone().expect("a socket");
        let threads = [
            std::thread::spawn(move || server.serve(Frames::new(own), &replies, &Busy::default())),
            std::thread::spawn(move || receiver.into_iter().for_each(drop)),
            std::thread::spawn(move || drop(std::io::copy(&mut taken, &mut std::io::sink()))),
        ];
        let end = its.try_clone().expect("a socket");
        let writer = Writer::new(its);
        'sending: for _ in 0..random.next() % 300 {
            let valid = !random.next().is_multiple_of(100);
            for kind in random.kinds() {
                let (channel, kind) = match random.next() % 16 {
                    _ if !valid => (random.next() as u32, frame::Kind::Begin(wire::Begin::default())),
                    0 => (CALLS, frame::Kind::Reply(wire::Reply { kind: None })),
                    1..8 => (DEVICE, frame::Kind::Request(wire::Request { kind })),
                    _ => (FUNCTIONS, frame::Kind::Request(wire::Request { kind })),
                };
                if writer.send(channel, kind).is_err() {
                    break 'sending;
                }
            }
        }
        // It has written all; the server ends when it has read all.
        let _ = end.shutdown(std::net::Shutdown::Write);
        threads.into_iter().for_each(|thread| thread.join().expect("no thread panics"));
        rounds += 1;
    }
}
