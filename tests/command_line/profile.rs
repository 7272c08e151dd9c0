//! `profile`: its page and data, what it refuses, two of them compared, and the page in a real browser.

use std::path::Path;

use serde_json::Value;
use tilewright_testing::browser::Browser;

use crate::models::{json, lenet};
use crate::{fine, refused, tilewright};

/// A profile of LeNet in `dir` as `name.html`.
fn profile(dir: &Path, name: &str, options: &[&str]) -> Value {
    let report = format!("{name}.html");
    fine(dir, &[&["profile", &lenet(), "--report", &report][..], options].concat());
    json(&std::fs::read_to_string(dir.join(format!("{name}.json"))).unwrap())
}

#[test]
fn the_data_of_a_profile_add_up() {
    let dir = tempfile::tempdir().unwrap();
    let data = profile(dir.path(), "r", &[]);
    let sum = |list: &Value, key: &str| list.as_array().unwrap().iter().filter_map(|x| x[key].as_u64()).sum::<u64>();
    let cycles = data["summary"]["cycles"].as_u64().unwrap();
    assert_eq!(sum(&data["layers"], "cycles"), cycles);
    assert_eq!(sum(&data["traffic"], "read"), data["summary"]["bytes_read"].as_u64().unwrap());
    assert_eq!(sum(&data["traffic"], "written"), data["summary"]["bytes_written"].as_u64().unwrap());
    for unit in data["timeline"]["units"].as_array().unwrap() {
        assert_eq!(unit["states"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).sum::<u64>(), cycles);
        assert_eq!(unit["pieces"].as_array().unwrap().len(), 11 * unit["insns"].as_u64().unwrap() as usize);
    }
    for memory in data["occupancy"]["memories"].as_array().unwrap() {
        let most = memory["most"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).max().unwrap();
        assert!(0 < most && most <= memory["entries"].as_u64().unwrap(), "{}", memory["name"]);
    }
    assert!(data["nodes"].as_array().unwrap().iter().skip(1).all(|n| !n["reads"].as_array().unwrap().is_empty()));
    // The trace for Perfetto lies where the page says.
    let trace = std::fs::read_to_string(dir.path().join(data["trace"].as_str().unwrap())).unwrap();
    assert!(json(&trace)["traceEvents"].is_array());
    let page = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"), "the page needs no network");
    let nothing = profile(dir.path(), "none", &["--offload", "none"]);
    assert_eq!(nothing["summary"]["cycles"], 0);
}

/// Layers that are one function of the processor share its time, and what compilation added has a row of its own.
#[test]
fn times_of_the_hosts_layers_add_up_to_its_steps() {
    let dir = tempfile::tempdir().unwrap();
    let data = profile(dir.path(), "r", &["--offload", "none", "--warm-up", "1", "--repetitions", "4"]);
    assert_eq!((&data["runs"]["warm_up"], &data["runs"]["measured"]), (&1.into(), &4.into()));
    let (layers, steps) = (data["layers"].as_array().unwrap(), data["steps"].as_array().unwrap());
    let ms = |layer: &Value| layer["ms"].as_f64().unwrap();
    for (number, step) in steps.iter().enumerate() {
        let own = layers.iter().filter(|layer| layer["step"] == number).map(ms);
        let (sum, wall) = (own.sum::<f64>(), step["ms"].as_f64().unwrap());
        assert!(wall > 0.0 && (sum - wall).abs() < 1e-9, "{step}: {sum}");
    }
    assert!(layers.len() > steps.len(), "a step has several layers");
    assert!(layers.iter().any(|layer| layer["op"] == "added" && layer["target_host_ms"].is_null()));
    let host = data["summary"]["here"]["host"].as_f64().unwrap();
    assert!((layers.iter().map(ms).sum::<f64>() - host).abs() < 1e-9, "{host}");
}

#[test]
fn what_cannot_be_profiled_leaves_nothing_behind() {
    let dir = tempfile::tempdir().unwrap();
    for (arguments, message) in [
        (
            &["--report", "r.html", "--device", "fsim"][..],
            "fsim tells no cycles instruction by instruction; profile on csim or rtl",
        ),
        (&["--report", "r.html", "--waves"], "--waves is for --device rtl, whose signals it records"),
        (&["--report", "r.json"], "--report r.json is where its data go; name a file that ends in .html"),
    ] {
        refused(dir.path(), &[&["profile", &lenet()][..], arguments].concat(), message);
    }
    // What lies beside the page is tried before anything runs, too.
    for (beside, options) in [("q.json", &[][..]), ("q.trace.json", &[]), ("q.fst", &["--device", "rtl", "--waves"])] {
        std::fs::create_dir(dir.path().join(beside)).unwrap();
        let outcome = tilewright(dir.path(), &[&["profile", &lenet(), "--report", "q.html"][..], options].concat());
        assert_eq!(outcome.code, 2);
        let message = format!("error: cannot write {beside}: ");
        assert!(outcome.stderr.starts_with(&message), "{}", outcome.stderr);
        std::fs::remove_dir(dir.path().join(beside)).unwrap();
    }
    for path in ["nowhere/r.html", "."] {
        let outcome = tilewright(dir.path(), &["profile", &lenet(), "--report", path]);
        assert_eq!(outcome.code, 2);
        assert!(outcome.stderr.starts_with(&format!("error: cannot write {path}: ")), "{}", outcome.stderr);
    }
    assert_eq!(std::fs::read_dir(dir.path()).unwrap().count(), 0);
}

#[test]
fn two_profiles_of_one_model_compare_and_others_do_not() {
    let dir = tempfile::tempdir().unwrap();
    profile(dir.path(), "a", &["--hw", "1x8x8"]);
    profile(dir.path(), "b", &[]);
    let text = fine(dir.path(), &["profile", "--compare", "a.json", "b.json", "--report", "c.html"]);
    for part in ["a  a.json: 1x8x8 on csim", "b  b.json: 1x16x16 on csim", "b / a", "cycles", "/MaxPool"] {
        assert!(text.contains(part), "{part}: {text}");
    }
    assert!(dir.path().join("c.html").exists());
    assert!(!text.contains("dram") && !text.contains("--offload") && !text.contains("MHz"), "what is alike: {text}");
    profile(dir.path(), "slow", &["--dram", "latency=99", "--offload", "auto"]);
    let text = fine(dir.path(), &["profile", "--compare", "b.json", "slow.json"]);
    let latency = |line: &str| {
        let line = text.lines().find(|l| l.starts_with(line)).unwrap();
        line.split_once("latency=").unwrap().1.split(',').next().unwrap().to_string()
    };
    assert_eq!([latency("a  b.json"), latency("b  slow.json")], ["64", "99"], "{text}");
    assert!(text.contains("-O2, --offload all, dram ") && text.contains("-O2, --offload auto, dram "), "{text}");
    let block = format!("{}/tests/models/tflite-ops/residual_block.tflite", env!("CARGO_MANIFEST_DIR"));
    fine(dir.path(), &["profile", &block, "--report", "d.html"]);
    let message = format!(
        "a.json is of {} [1,1,28,28], d.json of {block} [1,15,15,24]: profiles of two models, or of other sizes of its inputs, \
         do not compare",
        lenet()
    );
    refused(dir.path(), &["profile", "--compare", "a.json", "d.json", "--report", "e.html"], &message);
    assert!(!dir.path().join("e.html").exists());
    // A comparison takes no place of what it compares: data, page, trace or waves, by whatever words.
    let whole = dir.path().join("a.html");
    for report in ["./b.json", "a.html", "../DIR/a.html", whole.to_str().unwrap(), "b.htm", "a.trace.json"] {
        let report = report.replace("DIR", dir.path().file_name().unwrap().to_str().unwrap());
        let message =
            format!("--report {report} would take the place of a profile that is compared; name another file");
        let files = ["a.html", "b.html", "a.json", "b.json", "a.trace.json"].map(|name| dir.path().join(name));
        let before = files.each_ref().map(|file| std::fs::read(file).unwrap());
        refused(dir.path(), &["profile", "--compare", "a.json", "b.json", "--report", &report], &message);
        assert!(files.each_ref().map(|file| std::fs::read(file).unwrap()) == before, "{report}");
    }
    fine(dir.path(), &["profile", "--compare", "a.json", "b.json", "--report", "ab.html"]);
    std::fs::write(dir.path().join("x.json"), "{}").unwrap();
    let message = "x.json is no profile; give the .json file that profile --report writes beside its page";
    refused(dir.path(), &["profile", "--compare", "a.json", "x.json"], message);
    std::fs::write(dir.path().join("y.json"), "{\"format\": \"tilewright-profile\", \"version\": 9}").unwrap();
    let message = "y.json is a profile of version 9, this program reads 1; profile the model again";
    refused(dir.path(), &["profile", "--compare", "a.json", "y.json"], message);
}

/// The design takes the cycles that its model says, instruction by instruction, and leaves its signals beside the page.
#[test]
#[ignore = "builds a simulator of the design with waves, minutes"]
fn the_design_is_profiled_with_its_waves() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let modelled = profile(dir.path(), "m", &["--hw", "1x4x4"]);
    let found = profile(dir.path(), "r", &["--hw", "1x4x4", "--device", "rtl", "--waves"]);
    for key in ["timeline", "occupancy", "traffic"] {
        assert_eq!(found[key], modelled[key], "{key}");
    }
    assert_eq!(found["summary"]["cycles"], modelled["summary"]["cycles"]);
    assert_eq!((&found["waves"], &modelled["waves"]), (&"r.fst".into(), &Value::Null));
    // Signals of thousands of cycles, under their own name and no other.
    assert!(std::fs::metadata(dir.path().join("r.fst")).unwrap().len() > 10_000);
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["m.html", "m.json", "m.trace.json", "r.fst", "r.html", "r.json", "r.trace.json"]);
}

#[test]
fn the_page_opens_sorts_zooms_and_tells_in_a_browser() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut browser) = Browser::start(&dir.path().join("browser")) else { return };
    profile(dir.path(), "a", &["--hw", "1x8x8"]);
    profile(dir.path(), "b", &[]);
    fine(dir.path(), &["profile", "--compare", "a.json", "b.json", "--report", "c.html"]);

    browser.open(&dir.path().join("b.html"));
    assert_eq!(browser.evaluate("document.querySelectorAll('section').length"), 8);
    assert_eq!(browser.evaluate("charts.length"), 4);
    // Sorting: a click on the head of the cycles puts the most first, another the least.
    let column = "[...document.querySelectorAll('#layer-table tbody tr')].map(r => \
                  Number(r.cells[4].textContent.replace(/,/g, ''))).filter(n => !isNaN(n))";
    browser.evaluate("document.querySelectorAll('#layer-table th button')[4].click()");
    assert_eq!(
        browser.evaluate(&format!("(c => c.length > 3 && c.every((n, i) => !i || c[i - 1] >= n))({column})")),
        true
    );
    browser.evaluate("document.querySelectorAll('#layer-table th button')[4].click()");
    assert_eq!(browser.evaluate(&format!("(c => c.every((n, i) => !i || c[i - 1] <= n))({column})")), true);
    assert_eq!(browser.evaluate("document.querySelector('#layer-table th:nth-child(5)').ariaSort"), "ascending");
    // Units and scratchpads share one axis: a cycle lies at one place in both.
    let places = "(live => [0, 1].map(axis => [0, data.timeline.cycles].map(cycle => live.convertToPixel({ xAxisIndex: axis }, \
                  cycle))))(charts.find(c => c.box.id === 'timeline-chart').live)";
    let places = browser.evaluate(places);
    assert!(places[0][1].as_f64() > Some(300.0) && places[0] == places[1], "{places}");
    // In a narrow window the whole graph is still there.
    browser.resize(900, 700);
    let inside = browser.evaluate(
        "(({ box, live }) => data.nodes.every((_, at) => (([x]) => x > 0 && x < box.clientWidth)(live.convertToPixel({ seriesIndex: \
         0 }, live.getModel().getSeriesByIndex(0).getData().getItemLayout(at)))))(charts.find(c => c.box.id === 'graph-chart'))",
    );
    assert_eq!(inside, true);
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
    browser.resize(1400, 1000);
    // Zooming by the wheel, over the units.
    let [x, y] = browser.middle_of("#timeline-chart");
    let span = "(z => z.end - z.start)(charts.find(c => c.box.id === 'timeline-chart').live.getOption().dataZoom[0])";
    assert_eq!(browser.evaluate(span), 100);
    browser.wheel(x, y - 100.0, -240.0);
    assert!(browser.evaluate(span).as_f64().unwrap() < 99.0);
    // Hovering tells the units' instructions.
    browser.hover(x, y - 100.0);
    let told = browser.evaluate("document.querySelector('#timeline-chart').innerText");
    assert!(told.as_str().unwrap().contains("cycle ") && told.as_str().unwrap().contains("gemm"), "{told}");
    // The other scheme, paper, and the comparison.
    browser.dark(true);
    assert_eq!(browser.evaluate("charts.every(c => c.live.getWidth() > 300)"), true);
    browser.open(&dir.path().join("c.html"));
    assert_eq!(browser.evaluate("document.querySelectorAll('#layer-table tbody tr').length > 5"), true);
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
fn the_page_of_a_large_network_is_small_and_opens_at_once() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut browser) = Browser::start(&dir.path().join("browser")) else { return };
    fine(dir.path(), &["zoo", "make", "resnet18", "-o", "resnet18.onnx"]);
    fine(dir.path(), &["profile", "resnet18.onnx", "--report", "r.html"]);
    let bytes = std::fs::metadata(dir.path().join("r.html")).unwrap().len();
    assert!(bytes < 5_000_000, "{bytes} bytes");
    browser.open(&dir.path().join("r.html"));
    let ms = browser.evaluate("performance.getEntriesByType('navigation')[0].loadEventEnd").as_f64().unwrap();
    println!("a report of {bytes} bytes opened in {ms:.0} ms");
    // Twice is the goal; other work of this machine may take the rest.
    assert!(ms < 10_000.0, "{ms} ms");
    let zoom = browser.evaluate(
        "(() => { const live = charts.find(c => c.box.id === 'timeline-chart').live, begun = performance.now(); \
         for (let i = 1; i <= 20; i++) { live.dispatchAction({ type: 'dataZoom', start: 2 * i, end: 100 - 2 * i }); \
         live.getZr().flush(); } return (performance.now() - begun) / 20; })()",
    );
    println!("a step of zooming took {:.0} ms", zoom.as_f64().unwrap());
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
