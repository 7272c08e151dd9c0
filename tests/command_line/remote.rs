//! A server and its clients as processes.

use std::io::{BufRead, BufReader, Read, Write};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::atomic::{AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use crate::{Outcome, fine, tilewright};

pub const DIGITS: &str = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/digits/digits.npy");

/// A server that runs until it is dropped.
pub struct Server {
    child: Child,
    /// Its device, for `--device`.
    pub device: String,
    /// Its log: a file, because nobody reads a pipe meanwhile.
    log: tempfile::NamedTempFile,
}

impl Server {
    pub fn new(arguments: &[&str], variables: &[(&str, &str)]) -> Server {
        let log = tempfile::NamedTempFile::new().expect("a file");
        let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(["serve", "--listen", "127.0.0.1:0"])
            .args(arguments)
            .envs(variables.iter().copied())
            .stdin(Stdio::null())
            .stdout(Stdio::piped())
            .stderr(log.reopen().expect("it is opened"))
            .spawn()
            .expect("the program starts");
        let mut address = String::new();
        BufReader::new(child.stdout.take().expect("is piped")).read_line(&mut address).expect("an address");
        Server { child, device: format!("remote:{}", address.trim()), log }
    }

    /// The processes that it started.
    pub fn processes(&self) -> Vec<u32> {
        let parent = |process: u32| {
            let text = std::fs::read_to_string(format!("/proc/{process}/stat")).ok()?;
            text.rsplit(')').next()?.split_whitespace().nth(1)?.parse::<u32>().ok()
        };
        let all = std::fs::read_dir("/proc")
            .expect("a folder")
            .filter_map(|entry| entry.ok()?.file_name().to_str()?.parse().ok());
        all.filter(|process| parent(*process) == Some(self.child.id())).collect()
    }

    /// Bytes of its memory.
    fn memory(&self) -> u64 {
        let path = format!("/proc/{}/statm", self.child.id());
        let text = std::fs::read_to_string(path).expect("it runs");
        text.split_whitespace().nth(1).and_then(|pages| pages.parse::<u64>().ok()).expect("a number") * 4096
    }

    /// Stops it and returns its log.
    pub fn log(mut self) -> String {
        self.child.kill().expect("it runs");
        self.child.wait().expect("it ends");
        std::fs::read_to_string(self.log.path()).expect("is text")
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

pub fn arrays(dir: &Path) -> Vec<(String, Vec<u8>)> {
    let mut files: Vec<_> = std::fs::read_dir(dir)
        .expect("a folder")
        .map(|entry| entry.expect("a file"))
        .map(|entry| {
            (entry.file_name().to_string_lossy().into_owned(), std::fs::read(entry.path()).expect("it is read"))
        })
        .collect();
    files.sort();
    files
}

#[test]
fn commands_work_unchanged_on_a_device_of_a_server() {
    let server = Server::new(&["--device", "csim"], &[]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let run = |device: &str, folder: &str| {
        let text = fine(
            dir,
            &["run", "zoo:lenet-int8", "--input", DIGITS, "--device", device, "--output-dir", folder, "--json"],
        );
        let found: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
        found["cycles"].as_u64().expect("it counts cycles")
    };
    assert_eq!(run("csim", "here"), run(&server.device, "there"));
    assert_eq!(arrays(&dir.join("here")), arrays(&dir.join("there")));
    fine(dir, &["diff", "zoo:lenet-int8", "--a", "csim", "--b", &server.device]);
    fine(dir, &["profile", "zoo:lenet-int8", "--device", &server.device, "--report", "there.html"]);
    fine(dir, &["profile", "zoo:lenet-int8", "--device", "csim", "--report", "here.html"]);
    let cycles = |file: &str| {
        let text = std::fs::read_to_string(dir.join(file)).expect("a file");
        let found: serde_json::Value = serde_json::from_str(&text).expect("is JSON");
        found["cycles"].clone()
    };
    assert_eq!(cycles("here.json"), cycles("there.json"));
    let devices = format!("csim,{}", server.device);
    let text = fine(dir, &["bench", "zoo:lenet-int8", "--devices", &devices, "--repetitions", "1", "--json"]);
    assert!(text.contains(&server.device), "{text}");
    let log = server.log();
    assert!(
        log.contains(": has the device") && (log.contains(": gone, after ") || log.contains(": finished, after ")),
        "{log}"
    );
}

fn with_token(device: &str, variables: &[(&str, &str)]) -> Outcome {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command.args(["run", "zoo:lenet-int8", "--device", device]).envs(variables.iter().copied());
    Outcome::of(command.stdin(Stdio::null()).output().expect("the program starts"))
}

#[test]
fn refusals_are_errors_of_the_caller_and_lines_of_the_log() {
    let server = Server::new(&["--device", "fsim"], &[("TILEWRIGHT_TOKEN", "right")]);
    let device = server.device.clone();
    let wrong = with_token(&device, &[("TILEWRIGHT_TOKEN", "wrong")]);
    let remedy = "set TILEWRIGHT_TOKEN, or TILEWRIGHT_TOKEN_FILE to the path of a file that has the server's token";
    assert_eq!(wrong.stderr, format!("error: {device}: refuses: the token is wrong; {remedy}\n"));
    assert_eq!(wrong.code, 2);
    assert_eq!(with_token(&device, &[("TILEWRIGHT_TOKEN", "right")]).code, 0);
    let dir = tempfile::tempdir().unwrap();
    let other = tilewright(dir.path(), &["serve", "--listen", "0.0.0.0:0"]);
    assert_eq!((other.code, other.stdout.as_str()), (2, ""));
    assert!(other.stderr.contains("0.0.0.0:0 can be reached from other machines"), "{}", other.stderr);
    for (arguments, message) in [
        (
            ["serve", "--device", "cpu"],
            "cpu cannot be lent; use --device fsim, csim, rtl, serial:PATH, spi:PATH or uio",
        ),
        (["serve", "--listen", "here"], "\"here\" is not an address; give HOST:PORT"),
        (["serve", "--token-file", "none"], "--token-file none: No such file"),
    ] {
        let refused = tilewright(dir.path(), &[&arguments[..], &["--hw", "1x4x4"]].concat());
        assert!(refused.code == 2 && refused.stderr.contains(message), "{}", refused.stderr);
    }
    let address = device.strip_prefix("remote:").expect("is remote");
    let mut stream = std::net::TcpStream::connect(address).expect("it connects");
    stream.write_all(b"GET / HTTP/1.1\r\n\r\n").expect("it is sent");
    // The server closes the connection; that it still had something to read is no matter.
    let _ = stream.read_to_end(&mut Vec::new());
    let log = server.log();
    for line in ["refused, because the token is wrong", "closed, because what it sent is not gRPC without TLS"] {
        assert!(log.contains(line), "{log}");
    }
}

/// Eight clients run a program again and again, and a third of them are killed at a random time. Every run that ends
/// must be right, the server's memory must stay flat, and the device must be back within a second.
fn soak(seconds: u64) {
    const CLIENTS: usize = 8;
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    // With a small memory, so that one that is not given back shows.
    let mut config = tilewright_hw::HwConfig::load("1x8x8").expect("is a preset");
    config.host.memory_mib = 16;
    let hw = dir.join("small.toml").display().to_string();
    std::fs::write(&hw, config.to_toml()).expect("it is written");
    let server = Server::new(&["--device", "csim", "--hw", &hw], &[]);
    let artifact = ["compile", "zoo:lenet-int8", "--hw", &hw, "-o", "lenet.twa"];
    fine(dir, &artifact);
    let arguments = |device: &str, folder: &str| {
        ["run", "lenet.twa", "--input", DIGITS, "--device", device, "--output-dir", folder].map(String::from)
    };
    fine(dir, &arguments("csim", "right").each_ref().map(String::as_str));
    let right = arrays(&dir.join("right"));
    let (finished, killed) = (AtomicUsize::new(0), AtomicUsize::new(0));
    let begun = Instant::now();
    let time = Duration::from_secs(seconds);
    // The least over a while, since each session's simulator has a memory of its own.
    let least = |server: &Server, period: Duration| {
        let until = Instant::now() + period;
        let mut least = server.memory();
        while Instant::now() < until {
            std::thread::sleep(Duration::from_millis(20));
            least = least.min(server.memory());
        }
        least
    };
    let mut early = 0;
    std::thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (finished, killed, server, right) = (&finished, &killed, &server, &right);
            scope.spawn(move || {
                let mut random = client as u32 * 7919 + 1;
                let mut next = || {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    random >> 16
                };
                let folder = format!("of-{client}");
                while begun.elapsed() < time {
                    let mut child = Command::new(env!("CARGO_BIN_EXE_tilewright"))
                        .args(arguments(&server.device, &folder))
                        .current_dir(dir)
                        .stdin(Stdio::null())
                        .stdout(Stdio::null())
                        .stderr(Stdio::piped())
                        .spawn()
                        .expect("the program starts");
                    if next() % 3 == 0 {
                        std::thread::sleep(Duration::from_millis(u64::from(next() % 400)));
                        let _ = child.kill();
                        let _ = child.wait();
                        killed.fetch_add(1, Ordering::Relaxed);
                        let _ = std::fs::remove_dir_all(dir.join(&folder));
                        continue;
                    }
                    let output = child.wait_with_output().expect("it ends");
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                    assert!(&arrays(&dir.join(&folder)) == right, "client {client} has a wrong result");
                    finished.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(time / 6);
        early = least(&server, time / 6);
    });
    // Nobody is there any more, so a client has the device at once.
    let free = Instant::now();
    fine(dir, &arguments(&server.device, "last").each_ref().map(String::as_str));
    let back = free.elapsed();
    let late = least(&server, time / 6);
    let (finished, killed) = (finished.into_inner(), killed.into_inner());
    println!(
        "{CLIENTS} clients, {seconds} s: {finished} runs right, {killed} killed; memory {} MB in the first third, {} MB at the end; device \
         back and a run done in {:.2} s",
        early >> 20,
        late >> 20,
        back.as_secs_f64()
    );
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
    assert!(finished > 0 && killed > 0);
    assert_eq!(arrays(&dir.join("last")), right);
    assert!(back < Duration::from_secs(2), "{back:?}");
    assert!(late < early + (64 << 20), "memory grew from {early} to {late} bytes");
}

#[test]
fn clients_that_are_killed_cost_others_nothing() {
    soak(4);
}

#[test]
#[ignore = "two minutes"]
fn clients_that_are_killed_cost_others_nothing_for_two_minutes() {
    soak(120);
}
