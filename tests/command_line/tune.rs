//! `tune`, and `--tuned`.

use std::collections::BTreeSet;
use std::path::Path;
use tilewright_compiler::records::SCHEMA;

use serde_json::Value as Json;

use crate::remote::Server;
use crate::{fine, tilewright};

fn lenet() -> String {
    "zoo:lenet-int8".into()
}

fn json(text: &str) -> Json {
    serde_json::from_str(text).unwrap()
}

/// The records of a log, without those of final choices.
fn trials(log: &Path) -> Vec<Json> {
    let text = std::fs::read_to_string(log).unwrap();
    text.lines().map(json).filter(|record| record.get("trial").is_some()).collect()
}

fn cycles(dir: &Path, options: &[&str]) -> u64 {
    let lenet = lenet();
    let all = [&["run", &lenet, "-O3", "--device", "csim", "--json", "--quiet"], options].concat();
    let text = fine(dir, &all);
    json(&text)["cycles"].as_u64().unwrap_or_else(|| panic!("{text}"))
}

#[test]
fn a_log_is_continued_and_replayed() {
    let dir = tempfile::tempdir().unwrap();
    let (dir, log) = (dir.path(), dir.path().join("log.jsonl"));
    let tune = |more: &[&str]| {
        let lenet = lenet();
        let all = [&["tune", &lenet, "--log", "log.jsonl", "--tuned", "none", "--json"], more].concat();
        json(&fine(dir, &all))
    };
    let first = tune(&["--trials", "60", "--threads", "1"]);
    assert_eq!((first["trials"].as_u64(), first["known_trials"].as_u64()), (Some(60), Some(0)));
    assert!(first["cycles"].as_u64() <= first["cycles_before"].as_u64(), "{first}");
    assert_eq!(trials(&log).len(), 60);
    // The same again has nothing left to do; a higher limit adds only what is missing.
    let again = tune(&["--trials", "60"]);
    assert_eq!((again["trials"].as_u64(), again["known_trials"].as_u64()), (Some(0), Some(60)));
    assert_eq!(again["cycles"], first["cycles"]);
    // A killed search leaves an incomplete line.
    let text = std::fs::read_to_string(&log).unwrap();
    std::fs::write(&log, text + "{\"schema\":2,\"con").unwrap();
    let more = tune(&["--trials", "90"]);
    assert_eq!(more["trials"].as_u64().unwrap() + more["known_trials"].as_u64().unwrap(), 90);
    assert!(more["known_trials"].as_u64() >= Some(42), "{more}");
    assert_eq!(more["skipped_lines"]["the last line is incomplete"], 1);
    let untuned = cycles(dir, &["--tuned", "none"]);
    let tuned = cycles(dir, &["--tuned", "log.jsonl"]);
    assert_eq!(first["cycles_before"].as_u64(), Some(untuned));
    assert!(Some(tuned) <= more["cycles"].as_u64() && tuned <= untuned, "{more}: {tuned}, {untuned} untuned");
    let outcome = tilewright(dir, &["compile", &lenet(), "-O3", "-o", "x.twa", "--tuned", "log.jsonl"]);
    assert!(outcome.stderr.contains("note: log.jsonl: ") && outcome.stderr.contains("layers use a record"));
    // Plans change the time, not the results.
    fine(dir, &["run", &lenet(), "-O3", "--output-dir", "a", "--tuned", "none"]);
    fine(dir, &["run", &lenet(), "-O3", "--output-dir", "b", "--tuned", "log.jsonl"]);
    let files = std::fs::read_dir(dir.join("a")).unwrap().map(|file| file.unwrap().file_name());
    let equal = files.map(|name| {
        std::fs::read(dir.join("a").join(&name)).unwrap() == std::fs::read(dir.join("b").join(&name)).unwrap()
    });
    assert_eq!(equal.collect::<Vec<_>>(), [true]);
}

#[test]
fn the_same_seed_makes_the_same_trials_on_any_number_of_threads() {
    let dir = tempfile::tempdir().unwrap();
    let logs = [("1", "1", "a"), ("1", "2", "b"), ("7", "2", "c")].map(|(seed, threads, log)| {
        let options = ["--trials", "70", "--seed", seed, "--threads", threads, "--log", log];
        fine(dir.path(), &[&["tune", &lenet()], &options[..]].concat());
        trials(&dir.path().join(log)).iter().map(Json::to_string).collect::<BTreeSet<_>>()
    });
    assert_eq!(logs[0], logs[1]);
    assert_ne!(logs[0], logs[2]);
}

#[test]
fn a_layer_is_tuned_by_itself() {
    let dir = tempfile::tempdir().unwrap();
    let all = ["tune", &lenet(), "--trials", "12", "--log", "log"];
    let report = json(&fine(dir.path(), &[&all[..], &["--json"]].concat()));
    let name = report["layers"][0]["layer"].as_str().unwrap();
    std::fs::remove_file(dir.path().join("log")).unwrap();
    let alone = json(&fine(dir.path(), &[&all[..], &["--json", "--layer", name]].concat()));
    assert_eq!(alone["layers"].as_array().unwrap().len(), 1);
    let outcome = tilewright(dir.path(), &[&all[..], &["--layer", "nowhere"]].concat());
    assert_eq!(outcome.code, 2);
    let told = &outcome.stderr;
    assert!(told.contains("no layer on the accelerator contains a node nowhere; the layers are: "), "{told}");
    assert!(told.contains(name), "{told}");
}

#[test]
fn bad_input_is_refused_or_counted() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let told = |arguments: &[&str], wanted: &str| {
        let outcome = tilewright(dir, arguments);
        assert_eq!(outcome.code, 2, "{arguments:?}: {}", outcome.stderr);
        assert!(outcome.stderr.contains(wanted), "{arguments:?}: {}", outcome.stderr);
    };
    let model = lenet();
    told(&["tune", &model, "--trials", "0", "--log", "l"], "0 is not in 1..");
    told(&["tune", &model, "--log", "l"], "required arguments were not provided");
    told(&["tune", &model, "--time", "5", "--log", "l"], "5 is not a time; write for example 90s, 5m or 1h");
    told(&["tune", &model, "--time", "0s", "--log", "l"], "the time must be longer than 0");
    told(&["tune", &model, "--trials", "5", "--log", "no/l"], "no/l: the log cannot be written");
    told(&["tune", &model, "--trials", "5", "--log", "."], ".: the log cannot be read");
    told(&["tune", "zoo:lenet", "--trials", "5", "--log", "l"], "there is nothing to tune");
    told(&["run", &model, "--tuned", "nowhere"], "nowhere: the log cannot be read");
    std::fs::write(dir.join("damaged"), "\n{\"schema\": 1, \"layer\"}\n").unwrap();
    let damaged = "damaged: line 2 is damaged: it is not JSON";
    told(&["run", &model, "--tuned", "damaged"], damaged);
    told(&["tune", &model, "--trials", "5", "--log", "damaged"], damaged);
    fine(dir, &["tune", &model, "--trials", "24", "--log", "log"]);
    // Records of another configuration, and of another version, are counted and not used.
    let compile = |hw: &str, log: &str| {
        let outcome = tilewright(dir, &["compile", &model, "-O3", "--hw", hw, "-o", "x.twa", "--tuned", log]);
        assert_eq!(outcome.code, 0, "{}", outcome.stderr);
        outcome.stderr
    };
    let lines = std::fs::read_to_string(dir.join("log")).unwrap();
    let count = lines.lines().count();
    let other = compile("1x8x8", "log");
    assert!(other.contains(&format!("{count} line(s) skipped: for another hardware configuration")), "{other}");
    std::fs::write(
        dir.join("newer"),
        lines.replace(&format!("{{\"schema\":{SCHEMA},"), &format!("{{\"schema\":{},", SCHEMA + 1)),
    )
    .unwrap();
    let newer = compile("1x16x16", "newer");
    assert!(
        newer.contains(&format!("{count} line(s) skipped: schema version {} instead of {SCHEMA}", SCHEMA + 1)),
        "{newer}"
    );
    // Decisions that do not fit are refused with the reason, and the layer is planned as without a record.
    let wrong: Vec<String> = lines.lines().map(|line| line.replace("\"rows\":", "\"rows\":9999")).collect();
    std::fs::write(dir.join("wrong"), wrong.join("\n") + "\n").unwrap();
    let told = compile("1x16x16", "wrong");
    assert!(told.contains(" cannot: the decision rows is 9999"), "{told}");
}

#[test]
fn cpu_code_is_tuned_and_replayed_with_the_same_results() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    for model in ["zoo:lenet", "zoo:lenet-int8"] {
        let tune = |trials: &str| {
            let all = ["tune", model, "--device", "cpu", "--log", "cpu.jsonl", "--json", "--trials", trials];
            json(&fine(dir, &all))
        };
        let first = tune("12");
        assert_eq!((first["trials"].as_u64(), first["known_trials"].as_u64()), (Some(12), Some(0)), "{first}");
        assert!(first["ns"].as_u64() <= first["ns_before"].as_u64() && first["ns"].as_u64() > Some(0), "{first}");
        let again = tune("14");
        assert_eq!((again["trials"].as_u64(), again["known_trials"].as_u64()), (Some(2), Some(12)), "{again}");
        let run = |folder: &str, tuned: &str| {
            let all = ["run", model, "--device", "cpu", "--input", "random", "--output-dir", folder, "--tuned", tuned];
            let outcome = tilewright(dir, &all);
            assert_eq!(outcome.code, 0, "{}", outcome.stderr);
            outcome.stderr
        };
        run("a", "none");
        let told = run("b", "cpu.jsonl");
        let layers = first["layers"].as_array().unwrap();
        let places: u64 = layers.iter().map(|layer| layer["places"].as_u64().unwrap()).sum();
        assert!(told.contains(&format!("cpu.jsonl: {places} of {places} layers use a record")), "{told}");
        for file in std::fs::read_dir(dir.join("a")).unwrap().map(|file| file.unwrap().file_name()) {
            let read = |folder: &str| std::fs::read(dir.join(folder).join(&file)).unwrap();
            assert!(read("a") == read("b"), "{model}: {}", file.display());
        }
        let log = std::fs::read_to_string(dir.join("cpu.jsonl")).unwrap();
        // Another processor's records do not count.
        let other: Vec<String> = log.lines().map(|line| line.replace("\"config\":\"", "\"config\":\"f")).collect();
        std::fs::write(dir.join("other.jsonl"), other.join("\n") + "\n").unwrap();
        let told = run("b", "other.jsonl");
        let count = log.lines().count();
        assert!(told.contains(&format!("no layer uses a record; {count} line(s) skipped: for another")), "{told}");
        // Decisions that do not fit are refused, and the layer has its usual code.
        let wrong: Vec<String> = log.lines().map(|line| line.replace("\"vectors\":", "\"vectors\":99")).collect();
        std::fs::write(dir.join("wrong.jsonl"), wrong.join("\n") + "\n").unwrap();
        let told = run("b", "wrong.jsonl");
        assert!(told.contains("cannot: the decision vectors is 99"), "{told}");
        std::fs::remove_file(dir.join("cpu.jsonl")).unwrap();
    }
    let outcome =
        tilewright(dir, &["tune", "zoo:lenet", "--device", "cpu", "--log", "l", "--trials", "3", "--layer", "x"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("contains a node x; the layers are: "), "{}", outcome.stderr);
    let outcome = tilewright(dir, &["tune", "zoo:lenet", "--device", "cpu", "--log", "no/l", "--trials", "3"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("no/l: the log cannot be written"), "{}", outcome.stderr);
    std::fs::write(dir.join("damaged"), "{\n").unwrap();
    let outcome = tilewright(dir, &["tune", "zoo:lenet", "--device", "cpu", "--log", "damaged", "--trials", "3"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("damaged: line 1 is damaged"), "{}", outcome.stderr);
}

/// Layers without trials have records too, so that a replay gives the programs whose cycles `tune` prints.
#[test]
fn a_replay_takes_the_cycles_that_tune_prints() {
    let dir = tempfile::tempdir().unwrap();
    let lenet = lenet();
    let cases: [&[&str]; 4] = [
        &["--layer", "/MaxPool_1", "--trials", "10"],
        &["--trials", "20"],
        &["--trials", "12", "--hw", "1x32x32"],
        &["--trials", "30", "--tuned", "none", "--hw", "1x8x8"],
    ];
    for (n, case) in cases.into_iter().enumerate() {
        let log = format!("{n}.jsonl");
        let tuned = |trials: &[&str]| {
            let all = [&["tune", &lenet, "-O2", "--log", &log, "--json", "--quiet"], case, trials].concat();
            json(&fine(dir.path(), &all))["cycles"].as_u64().unwrap()
        };
        let first = tuned(&[]);
        let hw: &[&str] = if case.contains(&"--hw") { &case[case.len() - 2..] } else { &[] };
        let run = [&["run", &lenet, "-O2", "--device", "csim", "--json", "--quiet", "--tuned", &log], hw].concat();
        assert_eq!(json(&fine(dir.path(), &run))["cycles"].as_u64(), Some(first), "{case:?}");
        // The same search again starts from its own choice.
        assert!(tuned(&[]) <= first, "{case:?}");
    }
}

/// An exact device of a server gives the trials of the cycle model of this machine.
#[test]
fn trials_run_on_the_device_of_a_server() {
    let server = Server::new(&["--device", "csim"], &[]);
    let dir = tempfile::tempdir().unwrap();
    let (dir, lenet) = (dir.path(), lenet());
    let tune = |device: &str, log: &str| {
        let all =
            ["tune", &lenet, "-O2", "--trials", "12", "--threads", "2", "--json", "--device", device, "--log", log];
        let found = json(&fine(dir, &all));
        (found["cycles"].clone(), found["trials"].clone())
    };
    assert_eq!(tune("csim", "here"), tune(&server.device, "there"));
    let set = |log| trials(&dir.join(log)).iter().map(Json::to_string).collect::<BTreeSet<_>>();
    assert_eq!(set("here"), set("there"));
    let told = |device: &str, more: &[&str], wanted: &str| {
        let all = [&["tune", &lenet, "--trials", "12", "--log", "none", "--device", device], more].concat();
        let outcome = tilewright(dir, &all);
        assert!(outcome.code == 2 && outcome.stderr.contains(wanted), "{all:?}: {}", outcome.stderr);
        assert!(!dir.join("none").exists(), "{all:?}");
    };
    told(
        "fsim",
        &[],
        "fsim counts no cycles by which plans could be compared; use --device csim, rtl, cpu, serial:PATH",
    );
    told("csim", &["--upload"], "--upload is for the CPU of a server; use --device remote:HOST:PORT");
    told(&server.device, &["--upload"], "start it with --allow-native");
    let untimed = Server::new(&["--device", "fsim"], &[]);
    told(&untimed.device, &[], "cannot be tuned for, because it counts no cycles");
    drop(server);
}

#[test]
fn code_is_tuned_for_the_cpu_of_a_server() {
    let server = Server::new(&["--device", "fsim", "--allow-native"], &[]);
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let tune = |trials: &str| {
        let device = &server.device;
        json(&fine(
            dir,
            &["tune", "zoo:lenet", "--device", device, "--upload", "--log", "l", "--json", "--trials", trials],
        ))
    };
    let first = tune("6");
    assert_eq!(first["trials"], 6);
    assert!(first["ns"].as_u64() <= first["ns_before"].as_u64() && first["ns"].as_u64() > Some(0), "{first}");
    // The processor is the same, so the log is continued and used here.
    let here = ["tune", "zoo:lenet", "--device", "cpu", "--log", "l", "--json", "--trials", "6"];
    assert_eq!(json(&fine(dir, &here))["known_trials"], 6);
    // Code for another processor is refused at once, by the server.
    let other = if cfg!(target_arch = "aarch64") { "x86_64-linux-gnu" } else { "aarch64-linux-gnu" };
    let all = ["tune", "zoo:lenet", "--device", &server.device, "--upload", "--cpu-target", other, "--log", "o"];
    let outcome = tilewright(dir, &[&all[..], &["--trials", "6"]].concat());
    assert!(outcome.code == 2 && outcome.stderr.contains(other.split('-').next().unwrap()), "{}", outcome.stderr);
    assert!(!server.log().contains("panicked"));
}

/// A file that is no log stays as it is.
#[test]
fn other_files_are_not_changed() {
    let dir = tempfile::tempdir().unwrap();
    for text in ["{\"a\": 1}", "hello", "[1,\n2]"] {
        std::fs::write(dir.path().join("other"), text).unwrap();
        let outcome = tilewright(dir.path(), &["tune", &lenet(), "--trials", "3", "--log", "other"]);
        assert!(outcome.code == 2 && outcome.stderr.contains("is damaged"), "{}", outcome.stderr);
        assert_eq!(std::fs::read_to_string(dir.path().join("other")).unwrap(), text);
    }
}
