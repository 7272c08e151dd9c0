//! `bench`: its tables, its object, and what it refuses.

use crate::models::{json, lenet};
use crate::{fine, refused, tilewright};

#[test]
fn devices_stand_side_by_side_and_a_missing_one_says_why() {
    let dir = tempfile::tempdir().unwrap();
    let options = ["--devices", "csim,cpu,cuda,fsim,serial:/nowhere", "--repetitions", "3", "--threads", "1"];
    let lenet = lenet();
    let arguments = [&["bench", &lenet, "--json", "--csv", "b.csv"][..], &options].concat();
    let found = json(&fine(dir.path(), &arguments));
    let number = |value: &serde_json::Value| value.as_f64().unwrap_or_else(|| panic!("{value} is no number"));
    for device in ["csim", "cpu", "fsim"] {
        let of = &found["devices"][device];
        let [min, median, max] = ["min", "median", "max"].map(|key| number(&of["latency_ms"][key]));
        assert!(0.0 < min && min <= median && median <= max, "{of}");
        assert_eq!(of["outputs_equal_cpu"], true);
        assert!(number(&of["throughput_per_s"]) > 0.0);
        let layers = of["layers"].as_array().unwrap();
        assert_eq!(layers.iter().map(|l| l["macs"].as_u64().unwrap()).sum::<u64>(), 516_160);
        for layer in layers.iter().filter(|_| device != "fsim") {
            assert!(layer["latency_ms"]["median"].is_number() && layer["where"].is_string(), "{layer}");
        }
    }
    let csim = &found["devices"]["csim"];
    // Exact, and the layers' cycles are all of them.
    let cycles: u64 = csim["layers"].as_array().unwrap().iter().filter_map(|l| l["cycles"].as_u64()).sum();
    assert_eq!(csim["cycles"].as_u64(), Some(cycles));
    let parts = &csim["parts_ms"];
    assert!((number(&parts["accelerator"]) - cycles as f64 / 1e5).abs() < 1e-9);
    let sum: f64 = ["accelerator", "launch", "host", "convert", "transfer"].map(|key| number(&parts[key])).iter().sum();
    assert!((sum / number(&csim["latency_ms"]["median"]) - 1.0).abs() < 0.2);
    assert!(number(&csim["speed_up_over_cpu"]) > 0.0 && number(&csim["speed_up_over_target_host"]) > 1.0);
    assert!(csim["energy_mj"].is_null(), "no configuration makes up what nobody measured");
    // A simulator without time has no speed-up.
    assert!(found["devices"]["fsim"]["speed_up_over_cpu"].is_null());
    for device in ["cuda", "serial:/nowhere"] {
        let missing = &found["devices"][device];
        assert!(missing["missing"].is_string() && missing["latency_ms"].is_null(), "{missing}");
    }
    let ways: Vec<&str> = found["offload"].as_array().unwrap().iter().map(|w| w["offload"].as_str().unwrap()).collect();
    assert_eq!(ways, ["all", "auto", "none"]);
    assert_eq!((&found["threads"], &found["repetitions"], &found["warm_up"]), (&1.into(), &3.into(), &3.into()));
    let csv = std::fs::read_to_string(dir.path().join("b.csv")).unwrap();
    let wanted = csv.lines().next().unwrap().split(',').count();
    assert!(
        csv.lines().count() > 20 && csv.lines().filter(|l| !l.contains('"')).all(|l| l.split(',').count() == wanted)
    );
}

#[test]
fn the_table_has_a_line_for_each_device_and_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let energy = "name = \"mine\"\n[host]\ntarget = \"my-host\"\nclock_mhz = 50.0\n\
                  [energy]\nsource = \"a guess\"\nmac_pj = 1.0\ndram_pj_per_byte = 100.0\nstatic_mw = 10.0\n";
    std::fs::write(dir.path().join("mine.toml"), energy).unwrap();
    let devices = ["--devices", "csim,cuda,cpu", "--hw", "1x8x8,mine.toml", "--repetitions", "2"];
    let text = fine(dir.path(), &[&["bench", &lenet()][..], &devices].concat());
    for part in [
        "csim@1x8x8 ",
        "csim@mine ",
        "cuda ",
        "missing: ",
        "my-host alone",
        "auto     mine",
        "MACs, -O2",
        "2 measured runs",
    ] {
        assert!(text.contains(part), "{part}: {text}");
    }
    let found = json(&fine(dir.path(), &[&["bench", &lenet(), "--json"][..], &devices].concat()));
    assert!(found["devices"]["csim@mine"]["energy_mj"].as_f64().unwrap() > 0.0);
    assert_eq!(found["devices"]["csim@mine"]["hw"]["energy_source"], "a guess");
}

#[test]
fn what_cannot_be_compared_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let unknown = tilewright(dir.path(), &["bench", &lenet(), "--devices", "cpu,abacus"]);
    let told = "no device is named abacus; use cpu, cuda, csim, rtl, fsim, serial:PATH, spi:PATH or uio";
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains(told), "{}", unknown.stderr);
    for (text, message) in [
        (
            "batch = 1\n",
            "h.toml does not state host.clock_mhz and host.target, without which there are no times to compare; \
                         add to its table [host]: clock_mhz = MEGAHERTZ, target = \"NAME OF THE PROCESSOR\"",
        ),
        (
            "[host]\ntarget = \"x\"\n",
            "h.toml does not state host.clock_mhz, without which there are no times to compare; add to \
                                      its table [host]: clock_mhz = MEGAHERTZ",
        ),
    ] {
        std::fs::write(dir.path().join("h.toml"), text).unwrap();
        refused(dir.path(), &["bench", &lenet(), "--hw", "h.toml"], message);
        refused(dir.path(), &["profile", &lenet(), "--hw", "h.toml", "--report", "r.html"], message);
    }
    let path = "nowhere/b.csv";
    let outcome = tilewright(dir.path(), &["bench", &lenet(), "--csv", path]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.starts_with("error: cannot write nowhere/b.csv"), "{}", outcome.stderr);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

#[test]
fn shells_and_man_know_the_commands() {
    let dir = tempfile::tempdir().unwrap();
    for shell in ["bash", "zsh", "fish"] {
        let text = fine(dir.path(), &["completions", shell]);
        assert!(text.contains("tilewright") && text.contains("profile"), "{shell}");
    }
    fine(dir.path(), &["manual", "man"]);
    let page = std::fs::read_to_string(dir.path().join("man/tilewright-bench.1")).unwrap();
    assert!(page.contains("tilewright\\-bench") && page.contains("\\-\\-devices"), "{page}");
    assert!(dir.path().join("man/tilewright.1").exists());
}

#[test]
fn quiet_tells_results_alone() {
    let dir = tempfile::tempdir().unwrap();
    let told = tilewright(dir.path(), &["compile", &lenet(), "-o", "l.twa"]).stderr;
    assert!(told.starts_with("l.twa: "), "{told}");
    assert_eq!(tilewright(dir.path(), &["compile", &lenet(), "-o", "l.twa", "--quiet"]).stderr, "");
    assert!(!told.contains('\x1b'), "colours are for terminals");
}
