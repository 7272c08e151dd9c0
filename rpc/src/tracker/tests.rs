//! A tracker with servers and clients of one process.

use std::sync::Arc;
use std::sync::mpsc;
use std::time::{Duration, Instant};

use super::*;
use crate::client::{Asked, ClientError, Remote};
use crate::endpoint::{Access, Lender};
use crate::runtime::runtime;
use crate::server::Running;
use crate::server::tests::{endpoint, loopback, simulator, small, start};
use crate::wire::tracker_client::TrackerClient as Rpc;

fn tracker(options: Options) -> Running {
    bind(options).expect("it listens").start().expect("it starts")
}

fn station(kind: &str, running: &Running, devices: u32) -> Station {
    let (device, config_name) = ("fsim".into(), "1x4x4".into());
    Station { kind: kind.into(), address: format!(":{}", running.address().port()), device, config_name, devices }
}

/// A server that is listed at a tracker.
fn server(kind: &str, tracker: &Running) -> Running {
    let mut running = start(loopback(), simulator(&small(), false, Arc::default()));
    let station = station(kind, &running, 1);
    running.keep(station.register(&endpoint(tracker), &Access::default()).expect("it is listed"));
    running
}

fn client(tracker: &Running) -> TrackerClient {
    TrackerClient::connect(&endpoint(tracker), &Access::default()).expect("it connects")
}

fn wait_until(what: &str, mut is_so: impl FnMut() -> bool) {
    let begun = Instant::now();
    while !is_so() {
        assert!(begun.elapsed() < Duration::from_secs(5), "{what}");
        std::thread::sleep(Duration::from_millis(5));
    }
}

fn lent(client: &TrackerClient) -> Vec<u32> {
    client.list().expect("it answers").iter().map(|listed| listed.lent).collect()
}

#[test]
fn three_servers_are_handed_out_and_taken_back() {
    let tracker = tracker(loopback());
    let servers: Vec<Running> = (0..3).map(|_| server("small", &tracker)).collect();
    let client = client(&tracker);
    let listed = client.list().expect("it answers");
    let addresses: Vec<String> = listed.iter().map(|listed| listed.station.address.clone()).collect();
    assert_eq!(addresses, servers.iter().map(|server| endpoint(server).to_string()).collect::<Vec<_>>());
    let mut leases: Vec<Lease> = (0..3).map(|_| client.borrow("small", &|_| ()).expect("a device")).collect();
    let mut given: Vec<String> = leases.iter().map(|lease| lease.server.to_string()).collect();
    given.sort();
    let mut all = addresses;
    all.sort();
    assert_eq!(given, all);
    assert_eq!(lent(&client), [1, 1, 1]);
    // Two wait; they get the devices in their order.
    let (sender, order) = mpsc::channel();
    let at = endpoint(&tracker);
    let mut threads = Vec::new();
    for number in 0..2 {
        let (at, sender) = (at.clone(), sender.clone());
        threads.push(std::thread::spawn(move || {
            let client = TrackerClient::connect(&at, &Access::default()).expect("it connects");
            let told = |text: &str| sender.send(text.to_string()).unwrap();
            let lease = client.borrow("small", &told).expect("a device");
            sender.send(format!("{number} has it")).unwrap();
            drop(lease);
        }));
        let text = order.recv_timeout(Duration::from_secs(5)).expect("it is told");
        assert_eq!(text, format!("waiting for a device of kind small, {number} before this one"));
    }
    assert!(client.list().unwrap().iter().all(|listed| listed.waiting == 2));
    leases.pop();
    threads.into_iter().for_each(|thread| thread.join().unwrap());
    drop(sender);
    let told: Vec<String> = order.iter().filter(|text| text.ends_with("has it")).collect();
    assert_eq!(told, ["0 has it", "1 has it"]);
    drop(leases);
    wait_until("all devices are back", || lent(&client) == [0, 0, 0]);
}

#[test]
fn servers_that_are_gone_are_no_longer_handed_out() {
    let tracker = tracker(loopback());
    let mut servers: Vec<Running> = (0..3).map(|_| server("small", &tracker)).collect();
    let client = client(&tracker);
    let _first = client.borrow("small", &|_| ()).expect("a device");
    drop(servers.remove(0));
    wait_until("two are left", || client.list().unwrap().len() == 2);
    // Devices are opened on those that are left, also while others use them.
    let lender = Lender::Tracker(endpoint(&tracker), "small".into());
    let open = || crate::RemoteDevice::of(&lender, &Access::default(), &small(), Asked::default(), &|_| ());
    let mut devices: Vec<_> = (0..2).map(|_| open().expect("a device")).collect();
    devices.iter_mut().for_each(|device| device.flush().expect("it answers"));
    assert_eq!(lent(&client), [1, 1]);
    drop(devices);
    let remote = Remote::with_device(&lender, &Access::default(), None, Asked::default(), &|_| ());
    assert_eq!(remote.expect("a session").module().names(), ["load"]);
    // One who waits for a kind that nobody lends any more is told.
    let leases: Vec<Lease> = (0..2).map(|_| client.borrow("small", &|_| ()).expect("a device")).collect();
    let at = endpoint(&tracker);
    let waits = std::thread::spawn(move || {
        let client = TrackerClient::connect(&at, &Access::default()).expect("it connects");
        client.borrow("small", &|_| ()).map(|_| ()).unwrap_err().to_string()
    });
    wait_until("one waits", || client.list().unwrap().iter().all(|listed| listed.waiting == 1));
    drop(servers);
    let error = waits.join().unwrap();
    assert!(error.contains("no server lends a device of kind small, no server is registered"), "{error}");
    drop(leases);
}

#[test]
fn a_server_that_has_died_but_is_listed_is_not_an_error() {
    let tracker = tracker(loopback());
    // Nothing listens at the first one's address any more, though its entry is still there.
    let gone = start(loopback(), simulator(&small(), false, Arc::default()));
    let entry = station("small", &gone, 1).register(&endpoint(&tracker), &Access::default()).expect("it is listed");
    drop(gone);
    let lender = Lender::Tracker(endpoint(&tracker), "small".into());
    let ends = std::thread::spawn(move || {
        std::thread::sleep(Duration::from_millis(300));
        drop(entry);
    });
    std::thread::sleep(Duration::from_millis(50));
    let _other = server("small", &tracker);
    let device = crate::RemoteDevice::of(&lender, &Access::default(), &small(), Asked::default(), &|_| ());
    device.expect("a device").flush().expect("it answers");
    ends.join().unwrap();
}

#[test]
fn a_tracker_that_starts_again_gets_its_servers_back() {
    let first = tracker(loopback());
    let server = server("small", &first);
    let again = Options { listen: endpoint(&first), ..loopback() };
    drop(first);
    let begun = Instant::now();
    let second = loop {
        match bind(again.clone()) {
            Ok(server) => break server.start().expect("it starts"),
            Err(error) => assert!(begun.elapsed() < Duration::from_secs(5), "{error}"),
        }
        std::thread::sleep(Duration::from_millis(20));
    };
    let client = client(&second);
    wait_until("the server is listed again", || client.list().unwrap().len() == 1);
    assert_eq!(client.borrow("small", &|_| ()).expect("a device").server, endpoint(&server));
}

#[test]
fn wrong_requests_are_refused() {
    let tracker = tracker(Options { token: Some("right".into()), ..loopback() });
    let access = |token: &str| Access { token: Some(token.into()), ..Access::default() };
    let running = start(loopback(), simulator(&small(), false, Arc::default()));
    let register = |station: Station, token: &str| {
        let registered = station.register(&endpoint(&tracker), &access(token));
        registered.map(|_| ()).map_err(|error| error.to_string()).unwrap_err()
    };
    let good = station("small", &running, 1);
    assert!(register(good.clone(), "wrong").contains("the token is wrong"));
    assert!(register(Station { kind: "a b".into(), ..good.clone() }, "right").contains("\"a b\" names no kind"));
    assert!(register(Station { address: "here".into(), ..good.clone() }, "right").contains("\"here\" is no address"));
    assert!(register(Station { devices: 0, ..good.clone() }, "right").contains("give 1 to 1024 devices"));
    let client = TrackerClient::connect(&endpoint(&tracker), &access("right")).expect("it connects");
    let unknown = |client: &TrackerClient| client.borrow("large", &|_| ()).map(|_| ()).unwrap_err().to_string();
    assert!(unknown(&client).contains("no server lends a device of kind large, no server is registered"));
    let _entry = good.register(&endpoint(&tracker), &access("right")).expect("it is listed");
    assert!(unknown(&client).contains("no server lends a device of kind large, there are: small; start one"));
    let other = TrackerClient::connect(&endpoint(&tracker), &access("wrong")).expect("it connects");
    assert!(matches!(other.list(), Err(ClientError::Refused { .. })));
    assert!(unknown(&other).contains("the token is wrong"));
    // Another version.
    let name = "tracker:x".to_string();
    let connection =
        crate::connection::Connection::open(name, &endpoint(&tracker), &access("right")).expect("it connects");
    let wanted = wire::Wanted { protocol: 99, kind: "small".into(), client: String::new() };
    let reply = runtime().unwrap().block_on(Rpc::new(connection.channel.clone()).borrow(connection.request(wanted)));
    assert!(reply.unwrap_err().message().contains("it speaks version 99 of the services"));
}

#[test]
fn more_clients_than_the_limit_are_refused() {
    let tracker = tracker(Options { limits: limits(3), ..loopback() });
    let _server = server("small", &tracker);
    let client = client(&tracker);
    let _lease = client.borrow("small", &|_| ()).expect("a device");
    let at = endpoint(&tracker);
    let waits = std::thread::spawn(move || {
        let client = TrackerClient::connect(&at, &Access::default()).expect("it connects");
        drop(client.borrow("small", &|_| ()));
    });
    wait_until("one waits", || client.list().unwrap()[0].waiting == 1);
    let error = client.borrow("small", &|_| ()).map(|_| ()).unwrap_err().to_string();
    assert!(error.contains("3 servers and clients are there, the tracker's limit"), "{error}");
    drop(_lease);
    waits.join().unwrap();
}

#[test]
fn a_server_is_no_tracker() {
    let running = start(loopback(), simulator(&small(), false, Arc::default()));
    let client = client(&running);
    assert!(client.list().is_err());
}

#[test]
fn a_client_that_takes_no_messages_is_ended_and_the_next_one_gets_the_device() {
    let pool = Pool::new(100);
    let station = wire::Station { kind: "small".into(), devices: 1, ..wire::Station::default() };
    let (_server, _open) = pool.register("server".into(), station).expect("it is listed");
    let borrow = || pool.borrow("client".into(), "small").expect("a place");
    let (first, mut granted) = borrow();
    assert!(matches!(granted.try_recv().expect("it has it").unwrap().kind, Some(wire::grant::Kind::Address(_))));
    // Each one that leaves is a message to those after it.
    let before: Vec<_> = (0..30).map(|_| borrow()).collect();
    let (_stuck, mut unread) = borrow();
    drop(before);
    let (next, mut gets) = borrow();
    drop(first);
    assert_eq!(std::iter::from_fn(|| unread.try_recv().ok()).count(), 16);
    assert!(unread.is_closed(), "its stream ends");
    let kinds: Vec<_> = std::iter::from_fn(|| gets.try_recv().ok()).map(|grant| grant.unwrap().kind).collect();
    assert!(matches!(kinds.last(), Some(Some(wire::grant::Kind::Address(_)))), "{kinds:?}");
    let listed = pool.list();
    assert_eq!((listed[0].lent, listed[0].waiting), (1, 0));
    drop(next);
    assert_eq!(pool.list()[0].lent, 0);
}
