//! Artifacts that run on a server.

use std::path::Path;
use std::process::{Command, Stdio};
use std::time::{Duration, Instant};

use tilewright_runtime::Artifact;

use crate::remote::{DIGITS, Server, arrays};
use crate::{fine, tilewright};

/// Compiles a network with CPU code.
fn compiled(dir: &Path) -> Artifact {
    fine(dir, &["compile", "zoo:lenet-int8", "-o", "lenet.twa"]);
    Artifact::read(&dir.join("lenet.twa")).expect("is an artifact")
}

fn run<'a>(file: &'a str, device: &'a str) -> Vec<&'a str> {
    vec!["run", file, "--input", DIGITS, "--device", device]
}

#[test]
fn an_artifact_runs_on_the_server_as_it_does_here() {
    let server = Server::new(&["--device", "csim", "--allow-native"], &[]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    compiled(dir);
    let run = |file: &str, device: &str, more: &[&str]| {
        let text = fine(dir, &[&run(file, device)[..], &["--json"], more].concat());
        serde_json::from_str::<serde_json::Value>(&text).expect("is JSON")
    };
    let here = run("lenet.twa", "csim", &["--output-dir", "here"]);
    let there = run("lenet.twa", &server.device, &["--upload", "--repeat", "20", "--output-dir", "there"]);
    assert_eq!(here["cycles"], there["cycles"]);
    assert_eq!(arrays(&dir.join("here")), arrays(&dir.join("there")));
    let ms = |key: &str| there["server_ms"][key].as_f64().expect("a number");
    assert!(0.0 < ms("min") && ms("min") <= ms("median") && ms("median") <= ms("max"));
    let places = |found: &serde_json::Value| {
        let steps = found["steps"].as_array().expect("a list").iter();
        steps.map(|step| (step["where"].clone(), step["cycles"].clone())).collect::<Vec<_>>()
    };
    assert_eq!(places(&here), places(&there));
    // A model is compiled here, then uploaded.
    let model = run("zoo:lenet-int8", &server.device, &["--upload"]);
    assert_eq!(model["cycles"], here["cycles"]);
    for (device, message) in [
        ("csim", "--upload is for the device of a server; use --device remote:HOST:PORT"),
        (&server.device[..], "was compiled for configuration 1x16x16"),
    ] {
        let hw = if device == "csim" { "1x16x16" } else { "1x8x8" };
        let refused =
            tilewright(dir, &["run", "lenet.twa", "--hw", hw, "--input", DIGITS, "--device", device, "--upload"]);
        assert!(refused.code == 2 && refused.stderr.contains(message), "{}", refused.stderr);
    }
}

/// The artifact with each executable section of its first object code filled with an instruction of two bytes.
#[cfg(target_arch = "x86_64")]
fn with_code(artifact: &Artifact, instruction: [u8; 2]) -> Artifact {
    let object = artifact.manifest.cpu.as_ref().expect("it has code").objects[0];
    let mut elf = artifact.blob(object).to_vec();
    let number = |elf: &[u8], at: usize, bytes: usize| {
        (0..bytes).fold(0, |number, byte| number | usize::from(elf[at + byte]) << (8 * byte))
    };
    let (start, size, count) = (number(&elf, 0x28, 8), number(&elf, 0x3a, 2), number(&elf, 0x3c, 2));
    for header in (0..count).map(|index| start + index * size) {
        let executable = number(&elf, header + 8, 8) & 4 != 0;
        let (offset, len) = (number(&elf, header + 24, 8), number(&elf, header + 32, 8));
        if executable {
            elf[offset..offset + len].chunks_exact_mut(2).for_each(|bytes| bytes.copy_from_slice(&instruction));
        }
    }
    artifact.with_blob(object, elf).expect("is an artifact")
}

#[test]
#[cfg(target_arch = "x86_64")]
fn cpu_code_that_crashes_or_does_not_end_costs_its_client_alone() {
    let server = Server::new(&["--device", "fsim", "--allow-native", "--native-seconds", "1"], &[]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let artifact = compiled(dir);
    for (file, instruction, message) in [
        ("crash.twa", [0x0f, 0x0b], "the CPU code of crash.twa died of signal 4 (SIGILL"),
        (
            "loop.twa",
            [0xeb, 0xfe],
            "the CPU code of loop.twa took more than its 1 s of CPU time; raise --native-seconds",
        ),
    ] {
        with_code(&artifact, instruction).write(&dir.join(file)).expect("it is written");
        let failed = tilewright(dir, &[&run(file, &server.device)[..], &["--upload"]].concat());
        assert!(failed.code == 2 && failed.stderr.contains(message), "{}", failed.stderr);
        fine(dir, &[&run("lenet.twa", &server.device)[..], &["--upload"]].concat());
    }
    all_end(&server);
    let log = server.log();
    assert!(log.contains("died of signal 4") && !log.contains("panicked"), "{log}");
}

#[test]
#[cfg(target_arch = "x86_64")]
fn cpu_code_has_limits_and_ends_with_its_client() {
    let secret = ("TILEWRIGHT_TOKEN", "secret");
    let server = Server::new(&["--device", "fsim", "--allow-native"], &[secret]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    with_code(&compiled(dir), [0xeb, 0xfe]).write(&dir.join("loop.twa")).expect("it is written");
    let mut client = Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(run("loop.twa", &server.device))
        .arg("--upload")
        .env(secret.0, secret.1)
        .current_dir(dir)
        .stdin(Stdio::null())
        .stderr(Stdio::null())
        .spawn()
        .expect("the program starts");
    let begun = Instant::now();
    let of = |process: u32, file: &str| std::fs::read_to_string(format!("/proc/{process}/{file}")).unwrap_or_default();
    let limit = |process: u32, name: &str| {
        let limits = of(process, "limits");
        let line = limits.lines().find(|line| line.starts_with(name)).unwrap_or_default();
        line.get(name.len()..).and_then(|rest| rest.split_whitespace().next()).unwrap_or_default().to_string()
    };
    // The last one that is set.
    let limited = |process: u32| limit(process, "Max file size") == "0";
    let process = loop {
        match server.processes().first() {
            Some(process) if limited(*process) => break *process,
            _ => assert!(begun.elapsed() < Duration::from_secs(20), "no process runs"),
        }
        std::thread::sleep(Duration::from_millis(5));
    };
    assert_eq!(limit(process, "Max cpu time"), "3600");
    // Its own, three times --max-memory, and twice --max-frame-memory.
    assert_eq!(limit(process, "Max address space"), ((4u64 << 30) + (3 << 30) + (2 << 30)).to_string());
    assert_eq!((limit(process, "Max open files"), limit(process, "Max file size")), ("64".into(), "0".into()));
    assert!(!of(process, "environ").contains("TILEWRIGHT"));
    // Standard input, output and errors, and the copy of its socket that it uses.
    for file in std::fs::read_dir(format!("/proc/{process}/fd")).expect("it runs") {
        let target = std::fs::read_link(file.expect("a file").path()).expect("is a link").display().to_string();
        assert!(target == "/dev/null" || target.starts_with("socket:"), "{target}");
    }
    client.kill().expect("it runs");
    client.wait().expect("it ends");
    all_end(&server);
}

/// Waits until the server has no process any more; each ends soon after its client.
#[cfg(target_arch = "x86_64")]
fn all_end(server: &Server) {
    let gone = Instant::now();
    while !server.processes().is_empty() {
        assert!(gone.elapsed() < Duration::from_secs(2), "a process goes on without its client");
        std::thread::sleep(Duration::from_millis(5));
    }
}

#[test]
fn without_leave_no_cpu_code_of_a_client_runs() {
    let server = Server::new(&["--device", "fsim"], &[]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    compiled(dir);
    let refused = tilewright(dir, &[&run("lenet.twa", &server.device)[..], &["--upload"]].concat());
    let message = "lenet.twa has code for the CPU, which this server does not run for clients; start it with --allow-native, or run";
    assert!(refused.code == 2 && refused.stderr.contains(message), "{}", refused.stderr);
    let other = tilewright(dir, &["run-native"]);
    assert!(
        other.code == 2 && other.stderr.contains("its standard input is no socket of a server"),
        "{}",
        other.stderr
    );
}
