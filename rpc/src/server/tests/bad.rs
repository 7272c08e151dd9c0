//! Clients and devices that do not behave.

use std::io::{ErrorKind, Read, Write};
use std::net::TcpStream;
use std::time::{Duration, Instant};

use tilewright_testing::device::{Hooked, HostAccess};
use tokio::sync::mpsc;
use tokio_stream::wrappers::ReceiverStream;

use super::*;
use crate::client::Client;
use crate::connection::Connection;
use crate::runtime::runtime;
use crate::wire::{self, reply, request};
use crate::{PIECE, PROTOCOL};

/// A session without the client's own checks.
pub(crate) struct Raw {
    pub requests: mpsc::Sender<wire::Request>,
    pub replies: tonic::Streaming<wire::Reply>,
}

impl Raw {
    pub fn new(running: &Running) -> Raw {
        let at = endpoint(running);
        let connection = Connection::open("raw".into(), &at, &Access::default()).expect("it connects");
        let (requests, outgoing) = mpsc::channel(64);
        let session = connection.machine();
        let replies = runtime().unwrap().block_on(async move {
            let mut session = session;
            session.session(connection.request(ReceiverStream::new(outgoing))).await
        });
        Raw { requests, replies: replies.expect("a stream").into_inner() }
    }

    /// Waits until the session has the device. The one before it may not have given it back yet.
    pub(super) fn until_opened(&mut self) {
        while !matches!(self.next().expect("the session goes on").expect("a reply"), reply::Kind::Opened(_)) {}
    }

    pub fn send(&self, kind: request::Kind) -> bool {
        self.requests.blocking_send(wire::Request { kind: Some(kind) }).is_ok()
    }

    pub fn open(&self, change: impl FnOnce(&mut wire::Open)) {
        let config = small();
        let mut open = wire::Open {
            protocol: PROTOCOL,
            config_name: config.name.clone(),
            config: config.to_toml(),
            ..wire::Open::default()
        };
        change(&mut open);
        assert!(self.send(request::Kind::Open(open)));
    }

    pub fn next(&mut self) -> Result<Option<reply::Kind>, String> {
        let next = runtime().unwrap().block_on(self.replies.message());
        next.map(|reply| reply.and_then(|reply| reply.kind)).map_err(|status| status.message().to_string())
    }

    /// The error that ends the session.
    fn error(&mut self) -> String {
        loop {
            match self.next() {
                Ok(Some(_)) => {}
                Ok(None) => panic!("it ends without an error"),
                Err(error) => return error,
            }
        }
    }
}

#[test]
fn garbage_on_the_port_hurts_nobody() {
    let running = functional();
    let mut device = plain(&running);
    let mut seed = 1u32;
    for length in [1, 3, 24, 100, 70_000] {
        for start in ["", "GET / HTTP/1.1\r\n\r\n", "\u{16}\u{3}\u{1}", "PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n"] {
            let mut stream = TcpStream::connect(running.address()).expect("it connects");
            stream.set_read_timeout(Some(Duration::from_secs(5))).unwrap();
            let noise = (0..length).map(|_| {
                seed = seed.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                (seed >> 24) as u8
            });
            let bytes: Vec<u8> = start.bytes().chain(noise).collect();
            // The server may close before everything is written.
            let _ = stream.write_all(&bytes);
            let _ = stream.shutdown(std::net::Shutdown::Write);
            let mut back = Vec::new();
            let _ = stream.read_to_end(&mut back);
            assert!(back.len() < 10_000);
        }
    }
    device.flush().expect("the session goes on");
}

/// As many connections as may be open, which send nothing, keep no client out.
#[test]
fn silent_connections_make_room() {
    let running =
        start(with_limits(Limits { connections: 4, ..Limits::default() }), simulator(&small(), false, Arc::default()));
    let mut device = plain(&running);
    let mut silent: Vec<TcpStream> =
        (0..12).map(|_| TcpStream::connect(running.address()).expect("it connects")).collect();
    // The oldest of them are closed, the youngest are not.
    for (place, stream) in silent.iter_mut().enumerate() {
        stream.set_read_timeout(Some(if place < 9 { within(5) } else { Duration::from_millis(50) })).unwrap();
        // What the server begins with arrives in any case.
        let read = stream.read_to_end(&mut Vec::new());
        let is_late = |error: &std::io::Error| matches!(error.kind(), ErrorKind::WouldBlock | ErrorKind::TimedOut);
        let closed = !read.as_ref().is_err_and(is_late);
        assert_eq!(closed, place < 9, "{place}: {read:?}");
    }
    log::has(&[" WARN ", "closed, because it sent nothing yet, and others need its place"]);
    let asked = Instant::now();
    let client = Client::connect(&endpoint(&running), &Access::default()).expect("a new client connects");
    client.describe().expect("and is answered");
    assert!(asked.elapsed() < within(5), "{:?}", asked.elapsed());
    device.flush().expect("who has begun is not closed");
}

#[test]
fn another_version_is_told() {
    let running = functional();
    let mut raw = Raw::new(&running);
    raw.open(|open| open.protocol = 99);
    let error = raw.error();
    log::has(&[" WARN ", ": refused, because it speaks version 99 of the services"]);
    assert!(error.starts_with("it speaks version 99 of the services, but this server, Tilewright "), "{error}");
}

#[test]
fn a_session_must_begin_with_what_it_wants() {
    let running = functional();
    let mut raw = Raw::new(&running);
    raw.send(request::Kind::Wait(0));
    assert_eq!(raw.error(), "its first message does not open a session");
    let mut raw = Raw::new(&running);
    raw.open(|open| open.config = "batch = [".into());
    assert!(raw.error().starts_with("its configuration is not valid: "));
    plain(&running).flush().expect("others are served");
}

#[test]
fn messages_beyond_the_limit_end_the_session() {
    let running = functional();
    let mut raw = Raw::new(&running);
    raw.open(|_| ());
    raw.send(request::Kind::Write(wire::Write { addr: 0, data: vec![0; 5 << 20].into() }));
    let error = raw.error();
    assert!(error.contains("decoded message length too large"), "{error}");
    plain(&running).flush().expect("others are served");
}

#[test]
fn a_disconnect_in_mid_upload_gives_the_device_back() {
    let running = functional();
    for round in 0..3 {
        let mut raw = Raw::new(&running);
        raw.open(|open| open.client = format!("half a write {round}"));
        raw.until_opened();
        for piece in 0..8 {
            let data = vec![3; PIECE].into();
            raw.send(request::Kind::Write(wire::Write { addr: piece * PIECE as u64, data }));
        }
        drop(raw);
        let begun = Instant::now();
        let mut device = plain(&running);
        assert!(begun.elapsed() < within(1), "{:?}", begun.elapsed());
        let mut memory = vec![1; 9 * PIECE];
        device.read(0, &mut memory).expect("it is read");
        // Its requests may have ended before the connection: "gone", or "finished".
        log::has(&[&format!("(half a write {round}): "), ", after "]);
        assert!(memory.iter().all(|byte| *byte == 0));
    }
}

#[test]
fn a_client_that_does_not_take_its_replies_does_not_keep_the_device() {
    let limits = Limits { idle: Duration::from_millis(400), run: Duration::from_millis(1000), ..Limits::default() };
    let running = start(with_limits(limits), simulator(&small(), false, Arc::default()));
    let raw = Raw::new(&running);
    raw.open(|_| ());
    // 200 MB. Only a part is sent while the client takes nothing.
    for _ in 0..8 {
        raw.send(request::Kind::Read(wire::Read { addr: 0, len: 25 << 20 }));
    }
    std::thread::sleep(Duration::from_millis(200));
    let begun = Instant::now();
    plain(&running).flush().expect("it gets the device");
    assert!(begun.elapsed() < within(4), "{:?}", begun.elapsed());
    drop(raw);
}

/// A device that fails after some accesses, as a board whose cable is pulled.
pub(super) fn fragile(config: &HwConfig, accesses: usize, port: &'static str) -> Box<dyn Device> {
    let mut left = accesses;
    Box::new(Hooked::new("fragile", Fsim::new(config.clone(), config.memory_bytes())).before(move |access| {
        left = if access == HostAccess::Submit { left } else { left.saturating_sub(1) };
        let (reason, remedy) = ("the board does not answer".into(), "plug it in".into());
        if left == 0 { Err(DeviceError::Tool { tool: port.into(), reason, remedy }) } else { Ok(()) }
    }))
}

#[test]
fn a_device_that_fails_under_a_client_is_told_and_the_next_client_is_served() {
    let make = |config: &HwConfig, _: Asked, _: &dyn Fn(&str)| -> Result<Box<dyn Device>, DeviceError> {
        Ok(fragile(config, 4, "serial:/dev/ttyUSB0"))
    };
    let lends = Lends {
        name: "fragile".into(),
        config: small(),
        devices: 1,
        disposable: false,
        open: Box::new(make),
        functions: Registry::new(),
        native: None,
    };
    let running = start(loopback(), lends);
    for _ in 0..3 {
        let mut device = plain(&running);
        let mut byte = [0];
        device.write(0, &[7]).expect("it is on its way");
        device.read(0, &mut byte).expect("it is read");
        assert_eq!(byte, [7]);
        device.write(0, &[8]).expect("it is on its way");
        device.write(1, &[8]).expect("it is on its way");
        let error = device.read(0, &mut byte).unwrap_err().to_string();
        let at = endpoint(&running);
        assert_eq!(error, format!("remote:{at}: serial:/dev/ttyUSB0: the board does not answer; plug it in"));
        log::has(&[" WARN ", "): serial:/dev/ttyUSB0: the board does not answer; plug it in"]);
    }
}

#[test]
fn a_server_that_stops_is_an_error_of_the_caller() {
    let running = functional();
    let mut device = plain(&running);
    device.flush().expect("it answers");
    let at = endpoint(&running);
    drop(running);
    let begun = Instant::now();
    let error = loop {
        if let Err(error) = device.flush() {
            break error.to_string();
        }
        assert!(begun.elapsed() < within(10));
    };
    assert!(error.starts_with(&format!("remote:{at}: ")), "{error}");
}
