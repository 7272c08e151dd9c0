//! Who gets the device when, and who loses it.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use tilewright_hw::config::Mem;
use tilewright_hw::isa::{Insn, Load, encode};

use super::bad::Raw;
use super::*;
use crate::PIECE;
use crate::client::{Client, Remote};
use crate::wire::{self, reply::Kind as Reply, request::Kind as Request};

#[test]
fn sessions_get_the_device_in_the_order_in_which_they_came() {
    let running = functional();
    let first = plain(&running);
    let client = Client::connect(&endpoint(&running), &Access::default()).expect("it connects");
    let (sender, order) = mpsc::channel();
    let (told, texts) = mpsc::channel();
    let mut threads = Vec::new();
    for number in 0..4 {
        let (sender, told, at) = (sender.clone(), told.clone(), endpoint(&running));
        threads.push(std::thread::spawn(move || {
            let tell = |text: &str| {
                let _ = told.send((number, text.to_string()));
            };
            let mut device = RemoteDevice::open(&at, &Access::default(), &small(), Asked::default(), &tell).unwrap();
            sender.send(number).unwrap();
            device.flush().unwrap();
        }));
        while client.describe().unwrap().waiting != number + 1 {
            std::thread::sleep(Duration::from_millis(5));
        }
    }
    let about = client.describe().unwrap();
    assert_eq!((about.lent, about.waiting), (1, 4));
    drop(first);
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop((sender, told));
    assert_eq!(order.iter().collect::<Vec<_>>(), [0, 1, 2, 3]);
    let of_last: Vec<_> = texts.iter().filter(|(number, text)| *number == 3 && !text.is_empty()).collect();
    assert_eq!(of_last[0].1, "waiting for the device of the server, 3 before this one");
}

#[test]
fn a_session_that_does_nothing_loses_the_device_to_one_that_waits() {
    let limits = Limits { idle: Duration::from_millis(300), ..Limits::default() };
    let running = start(with_limits(limits), simulator(&small(), false, Arc::default()));
    let mut idle = plain(&running);
    std::thread::sleep(Duration::from_millis(700));
    idle.flush().expect("nobody waits, so it keeps the device");
    let begun = Instant::now();
    let mut other = plain(&running);
    assert!(begun.elapsed() < within(3), "{:?}", begun.elapsed());
    let error = idle.flush().unwrap_err().to_string();
    assert!(error.ends_with("the session did nothing for 0 s while others wait; open another one"), "{error}");
    other.flush().expect("it has the device");
}

#[test]
fn a_session_without_a_device_that_does_nothing_ends_when_all_places_are_taken() {
    let limits = Limits { idle: Duration::from_millis(300), sessions: 2, ..Limits::default() };
    let running = start(with_limits(limits), simulator(&small(), false, Arc::default()));
    let open = || Remote::without_device(&endpoint(&running).into(), &Access::default());
    let ask =
        |remote: &Remote| remote.module().function("none").and_then(|none| none.call(&[])).unwrap_err().to_string();
    let (first, begun) = (open().expect("a session"), Instant::now());
    std::thread::sleep(Duration::from_millis(700));
    let unknown = ask(&first);
    assert!(unknown.contains("is named none"), "it goes on: {unknown}");
    let mut others = vec![open().expect("there is a place")];
    while others.len() < 2 {
        assert!(begun.elapsed() < within(10), "no session ends");
        std::thread::sleep(Duration::from_millis(10));
        // The others do something.
        others.iter().for_each(|other| drop(ask(other)));
        others.extend(open());
    }
    let ended = ask(&first);
    assert!(ended.contains("the session did nothing for 0 s while others wait; open another one"), "{ended}");
    assert!(others.iter().map(ask).all(|unknown| unknown.contains("is named none")));
}

#[test]
fn a_session_that_has_the_device_for_long_loses_it_to_one_that_waits() {
    let limits = Limits { lease: Duration::from_millis(500), ..Limits::default() };
    let running = start(with_limits(limits), simulator(&small(), false, Arc::default()));
    let mut busy = plain(&running);
    let at = endpoint(&running);
    let other = std::thread::spawn(move || {
        RemoteDevice::open(&at, &Access::default(), &small(), Asked::default(), &|_| ()).map(|_| ())
    });
    let begun = Instant::now();
    let error = loop {
        match busy.flush() {
            Ok(()) => assert!(begun.elapsed() < within(5)),
            Err(error) => break error.to_string(),
        }
    };
    assert!(error.contains("the session had the device for 0 s and others wait"), "{error}");
    other.join().unwrap().expect("it has the device");
}

#[test]
fn more_sessions_than_the_limit_are_refused() {
    let running =
        start(with_limits(Limits { sessions: 1, ..Limits::default() }), simulator(&small(), false, Arc::default()));
    let first = plain(&running);
    let Err(error) = open(&running, &small(), Asked::default()) else { panic!("it was let in") };
    assert!(error.to_string().contains("1 sessions are open, its limit"), "{error}");
    drop(first);
    let begun = Instant::now();
    while open(&running, &small(), Asked::default()).is_err() {
        assert!(begun.elapsed() < within(2));
    }
}

#[test]
fn a_device_is_back_at_once_when_its_client_is_gone() {
    let opened = Arc::new(AtomicUsize::new(0));
    let running = start(loopback(), simulator(&small(), false, opened.clone()));
    for round in 0..20 {
        let mut device = plain(&running);
        device.write(0, &vec![1; 3 << 20]).expect("it is on its way");
        let begun = Instant::now();
        drop(device);
        drop(plain(&running));
        assert!(begun.elapsed() < within(1), "round {round}: {:?}", begun.elapsed());
    }
    assert_eq!(opened.load(Ordering::Relaxed), 40);
}

#[test]
fn a_run_whose_client_is_gone_is_interrupted() {
    let config = small();
    let running = start(loopback(), simulator(&config, true, Arc::default()));
    // Each instruction fills a scratchpad, row by row: together, minutes of simulation.
    let (mem, insns) = (Mem::Inp, 1u32 << 16);
    let load = Load { mem, row_bytes: config.entry_bytes(mem), rows: config.entries(mem) / 2, ..Load::default() };
    let stream = encode(&Insn::new(load), &config).expect("can be encoded").repeat(insns as usize);
    let command = wire::Command { insns, bases: vec![wire::Base { addr: 0, limit: 1 << 20 }], ..Default::default() };
    // More than the runs that can be left to themselves.
    for _ in 0..6 {
        let mut raw = Raw::new(&running);
        raw.open(|_| ());
        // The one before it may not have given the device back yet.
        while !matches!(raw.next().expect("the session goes on").expect("a reply"), Reply::Opened(_)) {}
        for (piece, data) in stream.chunks(PIECE).enumerate() {
            let addr = (piece * PIECE) as u64;
            raw.send(Request::Write(wire::Write { addr, data: data.to_vec().into() }));
        }
        raw.send(Request::Submit(command.clone()));
        raw.send(Request::Wait(0));
        std::thread::sleep(Duration::from_millis(150));
        let begun = Instant::now();
        drop(raw);
        plain(&running).flush().expect("it has the device");
        assert!(begun.elapsed() < within(2), "{:?}", begun.elapsed());
    }
}
