//! A tracker, servers and clients as processes.

use std::io::{BufRead, BufReader};
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::remote::{DIGITS, Network, Server};
use crate::{fine, tilewright};

/// A tracker that runs until it is dropped.
struct Tracker {
    child: Child,
    address: String,
}

impl Tracker {
    fn new() -> Tracker {
        let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(["tracker", "--listen", "127.0.0.1:0"])
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("the program starts");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("is piped")).read_line(&mut address).expect("an address");
        Tracker { child, address: address.trim().to_string() }
    }

    /// For each server, the devices that it has lent.
    fn lent(&self) -> Vec<u64> {
        let text = fine(std::path::Path::new("."), &["tracker", "--list", &self.address, "--json"]);
        let found: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
        let servers = found["servers"].as_array().expect("a list").iter();
        servers.map(|server| server["lent"].as_u64().expect("a number")).collect()
    }
}

impl Drop for Tracker {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

#[test]
fn three_servers_serve_clients_while_some_of_both_are_killed() {
    let tracker = Tracker::new();
    let server = || Server::new(&["--device", "csim", "--tracker", &tracker.address, "--kind", "model"], &[]);
    let mut servers: Vec<Server> = (0..3).map(|_| server()).collect();
    assert_eq!(tracker.lent(), [0, 0, 0]);
    let network = Network::new(&[]);
    let dir = network.dir();
    let device = format!("tracker:{}/model", tracker.address);
    let (finished, lost) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let begun = Instant::now();
    let time = Duration::from_secs(2);
    std::thread::scope(|scope| {
        for client in 0..5 {
            let (network, device, finished, lost) = (&network, &device, &finished, &lost);
            scope.spawn(move || {
                let folder = format!("of-{client}");
                while begun.elapsed() < time {
                    let mut child = network.start(device, &folder, &[]);
                    if client == 0 {
                        std::thread::sleep(Duration::from_millis(60));
                        let _ = child.kill();
                        let _ = child.wait();
                        continue;
                    }
                    let output = child.wait_with_output().expect("it ends");
                    if output.status.success() {
                        assert!(network.is_right(&folder), "client {client} has a wrong result");
                        finished.fetch_add(1, Ordering::Relaxed);
                    } else {
                        // Only the one whose server was killed under it.
                        let text = String::from_utf8_lossy(&output.stderr).into_owned();
                        assert!(text.contains("the connection to remote:"), "{text}");
                        lost.fetch_add(1, Ordering::Relaxed);
                    }
                }
            });
        }
        std::thread::sleep(time / 3);
        drop(servers.pop());
    });
    let (finished, lost) = (finished.into_inner(), lost.into_inner());
    assert!(finished > 0 && lost <= 1, "{finished} finished, {lost} lost their server");
    let free = Instant::now();
    while tracker.lent() != [0, 0] {
        assert!(free.elapsed() < Duration::from_secs(5), "{:?}", tracker.lent());
    }
    let uploaded = ["run", "zoo:lenet-int8", "--device", &device, "--upload"];
    let refused = tilewright(dir, &uploaded);
    assert!(refused.code == 2 && refused.stderr.contains("--allow-native"), "{}", refused.stderr);
    drop(servers);
    let nobody = tilewright(dir, &["run", "lenet.twa", "--input", DIGITS, "--device", &device]);
    let message = "no server lends a device of kind model, no server is registered; start one with serve --tracker";
    assert!(nobody.code == 2 && nobody.stderr.contains(message), "{}", nobody.stderr);
    let unnamed = tilewright(dir, &["run", "lenet.twa", "--device", &device[..device.len() - 6]]);
    assert!(unnamed.code == 2 && unnamed.stderr.contains("names no kind of devices"), "{}", unnamed.stderr);
}

#[test]
fn functions_of_a_server_are_listed_and_called() {
    let server = Server::new(&["--device", "fsim"], &[]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    assert_eq!(fine(dir, &["call", &server.device]), "load\n");
    std::fs::write(dir.join("m.twa"), "TILEWRGT").expect("it is written");
    let damaged = tilewright(dir, &["call", &server.device, "load", "m.twa", "@m.twa"]);
    assert!(damaged.code == 2 && damaged.stderr.contains("m.twa is damaged"), "{}", damaged.stderr);
    for (arguments, message) in [
        (vec!["call", &server.device, "none"], "no function of the server of fsim is named none; there are: load"),
        (vec!["call", "csim"], "csim cannot be asked for what a server does; use remote:HOST:PORT"),
        (vec!["call", &server.device, "load", "1", "2"], "argument 0 of load: it is an integer where a string"),
    ] {
        let refused = tilewright(dir, &arguments);
        assert!(refused.code == 2 && refused.stderr.contains(message), "{}", refused.stderr);
    }
}
