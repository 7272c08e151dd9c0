//! `bench`: its tables, its JSON object, and the errors that it reports.

use crate::models::{json, lenet};
use crate::{fine, refused, tilewright};

/// Returns the program's reason why it cannot use a GPU of this machine, and prints which case the calling test checks.
fn gpu_missing() -> Option<String> {
    let missing = tilewright_runtime::cuda::available().err().map(|error| error.to_string());
    println!("cuda: {}", missing.as_deref().unwrap_or("a GPU is there, and its figures are looked at"));
    missing
}

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
    // Every layer on the processor has a row with its time, although the accelerator's layers come first.
    let median = |layer: &serde_json::Value| layer["latency_ms"]["median"].as_f64();
    let rows = found["layers"].as_array().unwrap();
    let in_rows: f64 = rows.iter().filter_map(|row| median(&row["devices"]["cpu"])).sum();
    let own: f64 = found["devices"]["cpu"]["layers"].as_array().unwrap().iter().filter_map(median).sum();
    assert!((in_rows - own).abs() < 1e-9, "{in_rows}, {own}");
    let added: Vec<_> = rows.iter().filter(|row| row["op"] == "added").collect();
    assert!(!added.is_empty() && added.iter().all(|row| row["devices"]["csim"].is_null()), "{rows:?}");
    let csim = &found["devices"]["csim"];
    // Cycles are exact, and the layers' cycles add up to all cycles.
    let cycles: u64 = csim["layers"].as_array().unwrap().iter().filter_map(|l| l["cycles"].as_u64()).sum();
    assert_eq!(csim["cycles"].as_u64(), Some(cycles));
    let parts = &csim["parts_ms"];
    assert!((number(&parts["accelerator"]) - cycles as f64 / 1e5).abs() < 1e-9);
    let sum: f64 = ["accelerator", "launch", "host", "convert", "transfer"].map(|key| number(&parts[key])).iter().sum();
    assert!((sum / number(&csim["latency_ms"]["median"]) - 1.0).abs() < 0.2);
    assert!(number(&csim["speed_up_over_cpu"]) > 0.0 && number(&csim["speed_up_over_target_host"]) > 1.0);
    // In a stream, no place is busy more than all the time, and answers come no faster than the accelerator's part
    // allows.
    let stream = &csim["stream"];
    assert_eq!((&stream["in_flight"], &csim["throughput_per_s"]), (&2.into(), &stream["per_s"]));
    assert!(stream["from"].as_str().unwrap().starts_with("replayed in virtual time"), "{stream}");
    let busy = ["host_busy", "accelerator_busy"].map(|key| number(&stream[key]));
    assert!(busy.iter().all(|share| 0.0 < *share && *share < 1.0 + 1e-9), "{stream}");
    let on_accel = number(&parts["accelerator"]) + number(&parts["launch"]);
    assert!((number(&stream["interval_ms"]) * busy[1] / on_accel - 1.0).abs() < 1e-6, "{stream}");
    assert!(csim["on_target_host"]["stream"]["from"].as_str().unwrap().contains("by its model"), "{csim}");
    for device in ["cpu", "fsim"] {
        let stream = &found["devices"][device]["stream"];
        assert!(stream["from"].as_str().unwrap().starts_with("measured") && stream["inputs"] == 3, "{stream}");
    }
    assert!(csim["energy_mj"].is_null(), "no configuration makes up what nobody measured");
    // An untimed simulator has no speed-up.
    assert!(found["devices"]["fsim"]["speed_up_over_cpu"].is_null());
    let missing = &found["devices"]["serial:/nowhere"];
    assert!(missing["missing"].is_string() && missing["latency_ms"].is_null(), "{missing}");
    let gpu = &found["devices"]["cuda"];
    match gpu_missing() {
        Some(reason) => assert!(gpu["missing"] == reason && gpu["latency_ms"].is_null(), "{gpu}"),
        None => assert!(gpu["outputs_equal_cpu"] == true && number(&gpu["latency_ms"]["median"]) > 0.0, "{gpu}"),
    }
    let ways: Vec<&str> = found["offload"].as_array().unwrap().iter().map(|w| w["offload"].as_str().unwrap()).collect();
    assert_eq!(ways, ["all", "auto", "none"]);
    // Layers that compilation adds for one device do not count, so the model has the same number of layers on each.
    let layers: Vec<_> = found["offload"].as_array().unwrap().iter().map(|w| w["layers"].as_u64().unwrap()).collect();
    assert_eq!((layers, &found["offload"][2]["layers_offloaded"]), (vec![9, 9, 9], &0.into()));
    assert_eq!((&found["threads"], &found["repetitions"], &found["warm_up"]), (&1.into(), &3.into(), &3.into()));
    let csv = std::fs::read_to_string(dir.path().join("b.csv")).unwrap();
    let wanted = csv.lines().next().unwrap().split(',').count();
    assert!(
        csv.lines().count() > 20 && csv.lines().filter(|l| !l.contains('"')).all(|l| l.split(',').count() == wanted)
    );
}

/// Progress names every part when it begins; the last part begins when all others are done.
#[test]
fn each_piece_of_the_work_is_told() {
    use tilewright::model::{self, Offload, Sizes};
    let graph = model::import(lenet().as_ref(), Sizes::default()).unwrap();
    let inputs = tilewright::model::inference::made_up(&model::inputs(&graph).unwrap().iter().collect::<Vec<_>>());
    let devices = ["csim", "cpu", "fsim"].map(|name| tilewright::examine::bench::Asked::parse(name).unwrap());
    let configs = ["1x4x2", "1x8x8"].map(|name| tilewright_hw::config::HwConfig::load(name).unwrap());
    let request = tilewright::examine::bench::BenchRequest {
        devices: &devices,
        configs: &configs,
        offload: Offload::All,
        level: 2,
        precision: Default::default(),
        threads: 1,
        warm_up: 0,
        repetitions: 1,
        compare_offload: true,
        tuned: &Default::default(),
    };
    let told = std::sync::Mutex::new(Vec::new());
    let tell = |what: &str, done: usize, all: usize| told.lock().unwrap().push((what.to_string(), done, all));
    tilewright::examine::bench::bench(&graph, &inputs, &request, &tell).unwrap();
    let told = told.into_inner().unwrap();
    let (names, counts): (Vec<_>, Vec<_>) = told.into_iter().map(|(what, done, all)| (what, (done, all))).unzip();
    let wanted = "cpu, compiling for 1x4x2, compiling for 1x8x8, csim on 1x4x2, csim on 1x8x8, fsim on 1x4x2, fsim on 1x8x8, \
                  --offload all on 1x4x2, --offload auto on 1x4x2, --offload all on 1x8x8, --offload auto on 1x8x8";
    assert_eq!(names.join(", "), wanted);
    assert_eq!(counts, (0..11).map(|done| (done, 11)).collect::<Vec<_>>());
}

/// On a terminal, the elapsed time is updated during a long part.
#[test]
fn long_work_tells_its_time_on_a_terminal() {
    if !tilewright_testing::has_program("script") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let program = env!("CARGO_BIN_EXE_tilewright");
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/vit-tiny-mnist/model_qdq_perchannel.onnx");
    let many = "--devices cpu --threads 1 --warm-up 4000 --repetitions 4000 --json";
    let command = format!("stty cols 120; '{program}' bench '{model}' {many} > found.json");
    let output =
        std::process::Command::new("script").args(["-qec", &command, "/dev/null"]).current_dir(dir.path()).output();
    let shown = String::from_utf8_lossy(&output.unwrap().stdout).into_owned();
    assert!(dir.path().join("found.json").metadata().unwrap().len() > 0, "{shown}");
    let seconds = |text: &str| text.split_once("s ").and_then(|(number, _)| number.parse::<u32>().ok());
    let told = shown.split(" 0/1 ").skip(1).filter_map(seconds).any(|seconds| seconds > 0);
    assert!(shown.contains("bench: cpu") && told, "{shown:?}");
}

#[test]
fn the_table_has_a_line_for_each_device_and_configuration() {
    let dir = tempfile::tempdir().unwrap();
    let energy = "name = \"mine\"\n[host]\ntarget = \"my-host\"\nclock_mhz = 50.0\n\
                  [energy]\nsource = \"a guess\"\nmac_pj = 1.0\ndram_pj_per_byte = 100.0\nstatic_mw = 10.0\n";
    std::fs::write(dir.path().join("mine.toml"), energy).unwrap();
    let devices = ["--devices", "csim,cuda,cpu", "--hw", "1x8x8,mine.toml", "--repetitions", "2"];
    let text = fine(dir.path(), &[&["bench", &lenet()][..], &devices].concat());
    for part in ["csim@1x8x8 ", "csim@mine ", "cuda ", "my-host alone", "auto     mine", "MACs, -O2", "2 measured runs"]
    {
        assert!(text.contains(part), "{part}: {text}");
    }
    let gpu = text.lines().find(|line| line.starts_with("cuda ")).unwrap();
    match gpu_missing() {
        Some(reason) => assert!(gpu.contains(&format!("missing: {reason}")), "{gpu}"),
        None => assert!(!gpu.contains("missing"), "{gpu}"),
    }
    let found = json(&fine(dir.path(), &[&["bench", &lenet(), "--json"][..], &devices].concat()));
    assert!(found["devices"]["csim@mine"]["energy_mj"].as_f64().unwrap() > 0.0);
    assert_eq!(found["devices"]["csim@mine"]["hw"]["energy_source"], "a guess");
}

/// Each configuration's target host has its own time, and the same time with and without an accelerator.
#[test]
fn every_target_host_has_its_own_time() {
    let dir = tempfile::tempdir().unwrap();
    let mut of_host = Vec::new();
    for (name, clock) in [("slow", 100), ("fast", 800)] {
        // A configuration without a name gets the name of its file.
        let text = format!("[host]\ntarget = \"{name}-host\"\nclock_mhz = 50.0\ncpu_clock_mhz = {clock}.0\n");
        std::fs::write(dir.path().join(format!("{name}.toml")), text).unwrap();
    }
    for devices in ["cpu", "csim"] {
        let options = ["--hw", "slow.toml,fast.toml", "--devices", devices, "--warm-up", "0", "--repetitions", "1"];
        let found = json(&fine(dir.path(), &[&["bench", &lenet(), "--json"][..], &options].concat()));
        let hosts = ["slow", "fast"].map(|name| found["target_hosts"][name].clone());
        assert_eq!((&hosts[0]["target"], &hosts[1]["target"]), (&"slow-host".into(), &"fast-host".into()));
        of_host.push(hosts.map(|host| host["latency_ms"].as_f64().unwrap()));
    }
    assert!(of_host[0][0] > 2.0 * of_host[0][1], "{of_host:?}");
    assert_eq!(of_host[0], of_host[1]);
}

/// For a configuration whose memory is too small for the model, the reason is shown; the other configuration has its
/// figures.
#[test]
fn a_configuration_that_the_model_does_not_compile_for_says_why() {
    let dir = tempfile::tempdir().unwrap();
    fine(dir.path(), &["zoo", "make", "resnet18-c11", "-o", "c11.onnx"]);
    let small = "name = \"small\"\n[host]\ntarget = \"x\"\nclock_mhz = 50.0\nmemory_mib = 1\n";
    std::fs::write(dir.path().join("small.toml"), small).unwrap();
    let run = ["--warm-up", "0", "--repetitions", "1"];
    let bench = |hw: &str, options: &[&str]| {
        tilewright(dir.path(), &[&["bench", "c11.onnx", "--hw", hw, "--devices", "csim"][..], &run, options].concat())
    };
    let both = bench("small.toml,1x16x16", &["--json", "--csv", "b.csv"]);
    assert_eq!(both.code, 0, "{}", both.stderr);
    let found = json(&both.stdout);
    let reason = found["devices"]["csim@small"]["missing"].as_str().unwrap();
    assert!(reason.contains("of memory on small") && reason.contains("but only 1048576 are available"), "{reason}");
    assert!(found["devices"]["csim@1x16x16"]["cycles"].as_u64() > Some(0));
    let ways = found["offload"].as_array().unwrap();
    assert!(ways.iter().any(|way| way["hw"] == "small" && way["offload"] == "all" && way["missing"] == reason));
    assert!(ways.iter().any(|way| way["hw"] == "1x16x16" && way["offload"] == "all" && way["latency_ms"].is_number()));
    assert!(std::fs::read_to_string(dir.path().join("b.csv")).unwrap().contains("but only 1048576 are available"));
    let none = bench("small.toml", &[]);
    let message = "error: c11.onnx: no device could run the model; the report gives the reason for each\n";
    assert_eq!((none.code, none.stderr.as_str()), (2, message));
    assert!(none.stdout.contains("missing: the model needs"), "{}", none.stdout);
}

/// Sizes that the model leaves open come from the inputs.
#[test]
fn open_sizes_are_those_of_the_inputs() {
    let dir = tempfile::tempdir().unwrap();
    let case = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/cases/14-input-without-shape");
    let [model, input] = ["model.onnx", "input_0.npy"].map(|name| format!("{case}/{name}"));
    let text = fine(dir.path(), &["bench", &model, "--input", &input, "--devices", "cpu", "--repetitions", "1"]);
    assert!(text.lines().any(|line| line.starts_with("cpu ")), "{text}");
}

#[test]
fn what_cannot_be_compared_is_refused_by_name() {
    let dir = tempfile::tempdir().unwrap();
    let unknown = tilewright(dir.path(), &["bench", &lenet(), "--devices", "cpu,abacus"]);
    let told = "no device is named abacus; use fsim, csim, rtl, cpu, cuda, serial:PATH, spi:PATH, uio, remote:HOST:PORT or tracker:HOST:PORT/KIND";
    assert_eq!(unknown.code, 2);
    assert!(unknown.stderr.contains(told), "{}", unknown.stderr);
    for (text, message) in [
        (
            "batch = 1\n",
            "h.toml does not state host.clock_mhz and host.target, which times depend on; \
                         add to its table [host]: clock_mhz = MEGAHERTZ, target = \"NAME OF THE PROCESSOR\"",
        ),
        (
            "[host]\ntarget = \"x\"\n",
            "h.toml does not state host.clock_mhz, which times depend on; add to \
                                      its table [host]: clock_mhz = MEGAHERTZ",
        ),
    ] {
        std::fs::write(dir.path().join("h.toml"), text).unwrap();
        refused(dir.path(), &["bench", &lenet(), "--hw", "h.toml"], message);
        refused(dir.path(), &["profile", &lenet(), "--hw", "h.toml", "--report", "r.html"], message);
    }
    for (arguments, what) in
        [(["--devices", "csim,cpu,csim"], "device csim"), (["--hw", "1x8x8,1x8x8"], "configuration 1x8x8")]
    {
        let message = format!(
            "{}: {what} is given twice, but results need unique names; give it once, or under another name",
            lenet()
        );
        refused(dir.path(), &[&["bench", &lenet()][..], &arguments].concat(), &message);
    }
    let path = "nowhere/b.csv";
    let outcome = tilewright(dir.path(), &["bench", &lenet(), "--csv", path]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.starts_with("error: cannot write nowhere/b.csv"), "{}", outcome.stderr);
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 1);
}

/// A board reports its own cycles; the rest of its time is spent on the serial line.
#[test]
#[ignore = "two minutes over the line; make test-full runs it"]
fn a_board_stands_beside_the_others() {
    let Some(board) = crate::board::Board::new() else { return };
    let dir = tempfile::tempdir().unwrap();
    // The board's configuration has no clock and no host, because they are not part of the hardware.
    let hw = std::fs::read_to_string(crate::board::HW).unwrap() + "[host]\nclock_mhz = 50.0\ntarget = \"a-host\"\n";
    std::fs::write(dir.path().join("small.toml"), hw).unwrap();
    let devices = format!("{},csim", board.port);
    let options = ["--devices", &devices, "--hw", "small.toml", "--warm-up", "0", "--repetitions", "1", "--json"];
    let found = json(&fine(dir.path(), &[&["bench", &lenet()][..], &options].concat()));
    let [there, csim] = [&board.port[..], "csim"].map(|name| &found["devices"][name]);
    assert_eq!((&there["outputs_equal_cpu"], &csim["outputs_equal_cpu"]), (&true.into(), &true.into()), "{there}");
    assert!(there["cycles"].as_u64().unwrap() > 0 && there["bytes_moved"]["read"].as_u64() > Some(0), "{there}");
    let [parts, modeled] = [there, csim].map(|device| &device["parts_ms"]);
    // Nothing is modeled: the time to start a program is part of the line's time.
    assert_eq!((&parts["launch"], modeled["launch"].as_f64() > Some(0.0)), (&0.0.into(), true));
    assert!(parts["transfer"].as_f64() > modeled["transfer"].as_f64(), "{parts}, {modeled}");
    let stream = &there["stream"];
    let busiest = parts["accelerator"].as_f64().unwrap().max(parts["transfer"].as_f64().unwrap());
    assert!(stream["interval_ms"].as_f64().unwrap() > 0.5 * busiest && stream["in_flight"] == 2, "{stream}, {parts}");
    assert!(stream["from"].as_str().unwrap().starts_with("measured: at most in_flight inputs at a time"), "{stream}");
    // A configuration other than the board's is reported in its row, and the rest goes on.
    let options = ["--devices", &devices, "--hw", "1x16x16", "--warm-up", "0", "--repetitions", "1", "--json"];
    let found = json(&fine(dir.path(), &[&["bench", &lenet()][..], &options].concat()));
    assert!(found["devices"][&board.port]["missing"].is_string() && found["devices"]["csim"]["cycles"].is_number());
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
    std::fs::write(dir.path().join("p.tw"), "load mem=out row_bytes=4\n").unwrap();
    assert_eq!(tilewright(dir.path(), &["asm", "p.tw", "-o", "p.bin", "--quiet"]).stderr, "");
}
