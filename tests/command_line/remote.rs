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

    /// Lines of its log with a text.
    pub fn lines(&self, text: &str) -> usize {
        let log = std::fs::read_to_string(self.log.path()).expect("is text");
        log.lines().filter(|line| line.contains(text)).count()
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

/// A network that was compiled into a folder, and what it computes.
pub struct Network {
    dir: tempfile::TempDir,
    right: Vec<(String, Vec<u8>)>,
}

impl Network {
    /// Compiles it with some options.
    pub fn new(options: &[&str]) -> Network {
        let dir = tempfile::tempdir().expect("a folder");
        fine(dir.path(), &[&["compile", "zoo:lenet-int8", "-o", "lenet.twa"], options].concat());
        let mut network = Network { dir, right: Vec::new() };
        network.run("csim", "right");
        network.right = arrays(&network.dir.path().join("right"));
        network
    }

    pub fn dir(&self) -> &Path {
        self.dir.path()
    }

    /// Starts a run on a device that writes its outputs into a folder.
    pub fn start(&self, device: &str, folder: &str, more: &[&str]) -> Child {
        Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(["run", "lenet.twa", "--input", DIGITS, "--device", device, "--output-dir", folder])
            .args(more)
            .current_dir(self.dir())
            .stdin(Stdio::null())
            .stdout(Stdio::null())
            .stderr(Stdio::piped())
            .spawn()
            .expect("the program starts")
    }

    /// Runs it.
    pub fn run(&self, device: &str, folder: &str) {
        let output = self.start(device, folder, &[]).wait_with_output().expect("it ends");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
    }

    /// Whether the outputs in a folder are right.
    pub fn is_right(&self, folder: &str) -> bool {
        arrays(&self.dir().join(folder)) == self.right
    }
}

/// Eight clients run a network again and again, every second one of them on the server as a whole, and a third of the runs
/// are killed at a random time. Every run that ends must be right, the server's memory must stay flat, and the device must
/// be back within a second.
fn soak(seconds: u64) {
    const CLIENTS: usize = 8;
    let folder = tempfile::tempdir().unwrap();
    // With a small memory, so that one that is not given back shows.
    let mut config = tilewright_hw::HwConfig::load("1x8x8").expect("is a preset");
    config.host.memory_mib = 16;
    let hw = folder.path().join("small.toml").display().to_string();
    std::fs::write(&hw, config.to_toml()).expect("it is written");
    let server = Server::new(&["--device", "csim", "--hw", &hw, "--allow-native"], &[]);
    let network = Network::new(&["--hw", &hw]);
    // Runs and uploads that ended, and those that were killed.
    let (finished, killed) = ([0; 2].map(AtomicUsize::new), [0; 2].map(AtomicUsize::new));
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
            let (finished, killed, server, network) = (&finished[client % 2], &killed[client % 2], &server, &network);
            scope.spawn(move || {
                let mut random = client as u32 * 7919 + 1;
                let mut next = || {
                    random = random.wrapping_mul(1_664_525).wrapping_add(1_013_904_223);
                    random >> 16
                };
                let folder = format!("of-{client}");
                let more: &[&str] = if client % 2 == 1 { &["--upload"] } else { &[] };
                while begun.elapsed() < time {
                    let mut child = network.start(&server.device, &folder, more);
                    if next() % 3 == 0 {
                        std::thread::sleep(Duration::from_millis(u64::from(next() % 400)));
                        let _ = child.kill();
                        let _ = child.wait();
                        killed.fetch_add(1, Ordering::Relaxed);
                        let _ = std::fs::remove_dir_all(network.dir().join(&folder));
                        continue;
                    }
                    let output = child.wait_with_output().expect("it ends");
                    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
                    assert!(network.is_right(&folder), "client {client} has a wrong result");
                    finished.fetch_add(1, Ordering::Relaxed);
                }
            });
        }
        std::thread::sleep(time / 6);
        early = least(&server, time / 6);
    });
    // Nobody is there any more, so a client has the device at once.
    let free = Instant::now();
    network.run(&server.device, "last");
    let back = free.elapsed();
    let late = least(&server, time / 6);
    let ([finished, uploaded], [killed, cut]) =
        (finished.map(AtomicUsize::into_inner), killed.map(AtomicUsize::into_inner));
    println!(
        "{CLIENTS} clients, {seconds} s: {finished} runs and {uploaded} uploads right, {killed} runs and {cut} uploads killed; memory \
         {} MB in the first third, {} MB at the end; device back and a run done in {:.2} s",
        early >> 20,
        late >> 20,
        back.as_secs_f64()
    );
    // Each process for CPU code ends with its client.
    let gone = Instant::now();
    while !server.processes().is_empty() {
        assert!(gone.elapsed() < Duration::from_secs(2), "a process goes on without its client");
    }
    let log = server.log();
    assert!(!log.contains("panicked"), "{log}");
    assert!(finished > 0 && uploaded > 0 && killed + cut > 0);
    assert!(network.is_right("last"));
    assert!(back < Duration::from_secs(2), "{back:?}");
    assert!(late < early + (64 << 20), "memory grew from {early} to {late} bytes");
}

/// A run of the Verilated design ends with its client.
#[test]
fn a_verilated_run_whose_client_is_gone_is_stopped() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let server = Server::new(&["--device", "rtl", "--hw", "1x4x4"], &[]);
    let dir = tempfile::tempdir().unwrap();
    // A minute of simulation.
    let fill = "load mem=inp row_bytes=4 rows=1024\n";
    std::fs::write(dir.path().join("long.tw"), fill.repeat(1 << 15)).expect("it is written");
    std::fs::write(dir.path().join("short.tw"), fill).expect("it is written");
    let run = |file: &'static str| ["run", file, "--hw", "1x4x4", "--device", &server.device];
    // Builds the simulator.
    fine(dir.path(), &run("short.tw"));
    let mut client = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(run("long.tw"))
        .current_dir(dir.path())
        .stdin(Stdio::null())
        .stdout(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    // It has the device, has loaded the simulator and sent its program.
    let begun = Instant::now();
    while server.lines(": has the device") < 2 {
        assert!(begun.elapsed() < Duration::from_secs(20), "it does not get the device");
        std::thread::sleep(Duration::from_millis(10));
    }
    std::thread::sleep(Duration::from_secs(2));
    assert!(client.try_wait().expect("its state").is_none(), "it still runs");
    client.kill().expect("it runs");
    client.wait().expect("it ends");
    let begun = Instant::now();
    fine(dir.path(), &run("short.tw"));
    assert!(begun.elapsed() < Duration::from_secs(5), "{:?}", begun.elapsed());
    let log = server.log();
    assert!(log.contains(": gone, after") && !log.contains("goes on without it"), "{log}");
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
