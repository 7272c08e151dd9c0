//! `profile`: its page and data, its errors, comparisons of two profiles, and the page in a real browser.

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
    // A unit's work is the sum over its layers, and no layer uses more than all of the array or the bus.
    let layers = data["layers"].as_array().unwrap();
    let busy = data["timeline"]["states"].as_array().unwrap().iter().position(|state| state == "busy").unwrap();
    for unit in data["timeline"]["units"].as_array().unwrap() {
        let name = unit["name"].as_str().unwrap();
        let of_layers = layers.iter().filter_map(|layer| layer["busy_cycles"][name].as_u64()).sum::<u64>();
        assert_eq!(of_layers, unit["states"][busy].as_u64().unwrap(), "{name}");
    }
    let (peak, rate) = (&data["ceilings"]["macs_per_cycle"], &data["ceilings"]["bytes_per_cycle"]);
    let (peak, rate) = (peak.as_f64().unwrap(), rate.as_f64().unwrap());
    let mut used = 0.0;
    for layer in layers.iter().filter(|layer| layer["span_cycles"].is_u64()) {
        let of = |key: &str| layer[key].as_f64().unwrap();
        assert!(layer["utilization"].as_f64().is_none_or(|share| share <= 1.0), "{layer}");
        assert!(layer["busy_cycles"]["gemm"].as_f64().unwrap() <= of("cycles") + 0.5, "{layer}");
        assert!(of("macs") <= peak * of("span_cycles"), "{layer}");
        assert!(of("read") + of("written") <= rate * of("span_cycles"), "{layer}");
        used += layer["utilization"].as_f64().unwrap_or(0.0) * of("cycles");
    }
    let whole = data["summary"]["utilization"].as_f64().unwrap() * cycles as f64;
    assert!((used - whole).abs() < 1e-6 * whole, "{used} of {whole}");
    for memory in data["occupancy"]["memories"].as_array().unwrap() {
        let most = memory["most"].as_array().unwrap().iter().map(|n| n.as_u64().unwrap()).max().unwrap();
        assert!(0 < most && most <= memory["entries"].as_u64().unwrap(), "{}", memory["name"]);
    }
    assert!(data["nodes"].as_array().unwrap().iter().skip(1).all(|n| !n["reads"].as_array().unwrap().is_empty()));
    // The trace for Perfetto is where the page says.
    let trace = std::fs::read_to_string(dir.path().join(data["trace"].as_str().unwrap())).unwrap();
    assert!(json(&trace)["traceEvents"].is_array());
    let page = std::fs::read_to_string(dir.path().join("r.html")).unwrap();
    let name = Path::new(&lenet()).file_name().unwrap().to_str().unwrap().to_string();
    assert!(page.contains(&format!("<title>{name} on csim (1x16x16)</title>")), "the title has no path");
    assert!(!page.contains("src=\"http") && !page.contains("href=\"http"), "the page needs no network");
    let nothing = profile(dir.path(), "none", &["--offload", "none"]);
    assert_eq!(nothing["summary"]["cycles"], 0);
}

/// Layers that become one function of the processor share its time. Nodes that compilation added have their own row.
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
            "fsim does not report cycles per instruction; profile on csim or rtl",
        ),
        (&["--report", "r.html", "--waves"], "--waves is for --device rtl, whose signals it records"),
        (&["--report", "r.json"], "--report r.json is the path of its data file; name a file that ends in .html"),
    ] {
        refused(dir.path(), &[&["profile", &lenet()][..], arguments].concat(), message);
    }
    // Files next to the page are also checked before anything runs.
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
    let told = compared_figures(&text);
    assert_eq!(told.len(), 8, "all but the energy, of which nothing is known: {text}");
    for (name, unit) in [("array used", "%"), ("MACs offloaded", "100.0 %"), ("answers per second", ".")] {
        assert!(told.iter().any(|line| line.starts_with(name) && line.contains(unit)), "{name}: {text}");
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
    let hash = |file: &str| {
        let data: Value = serde_json::from_slice(&std::fs::read(dir.path().join(file)).unwrap()).unwrap();
        data["model"]["sha256"].as_str().unwrap()[..8].to_string()
    };
    let message = format!(
        "a.json is of {} ({}) [1,1,28,28], but d.json of {block} ({}) [1,15,15,24]; compare profiles of one model \
         with the same input sizes",
        lenet(),
        hash("a.json"),
        hash("d.json")
    );
    refused(dir.path(), &["profile", "--compare", "a.json", "d.json", "--report", "e.html"], &message);
    assert!(!dir.path().join("e.html").exists());
    // A comparison must not overwrite the profiles' data, page, trace or waves, however their paths are written.
    let whole = dir.path().join("a.html");
    for report in ["./b.json", "a.html", "../DIR/a.html", whole.to_str().unwrap(), "b.htm", "a.trace.json"] {
        let report = report.replace("DIR", dir.path().file_name().unwrap().to_str().unwrap());
        let message = format!("--report {report} would overwrite a profile that is compared; name another file");
        let files = ["a.html", "b.html", "a.json", "b.json", "a.trace.json"].map(|name| dir.path().join(name));
        let before = files.each_ref().map(|file| std::fs::read(file).unwrap());
        refused(dir.path(), &["profile", "--compare", "a.json", "b.json", "--report", &report], &message);
        assert!(files.each_ref().map(|file| std::fs::read(file).unwrap()) == before, "{report}");
    }
    fine(dir.path(), &["profile", "--compare", "a.json", "b.json", "--report", "ab.html"]);
    std::fs::write(dir.path().join("x.json"), "{}").unwrap();
    let message = "x.json is not a profile; give the .json file that profile --report writes next to its page";
    refused(dir.path(), &["profile", "--compare", "a.json", "x.json"], message);
    std::fs::write(dir.path().join("y.json"), "{\"format\": \"tilewright-profile\", \"version\": 9}").unwrap();
    let message = "y.json is a profile of version 9, but this program reads 3; profile the model again";
    refused(dir.path(), &["profile", "--compare", "a.json", "y.json"], message);
}

/// Returns the lines of a comparison that compare summaries: from the first table's head to the layers' table.
fn compared_figures(text: &str) -> Vec<&str> {
    let lines = text.lines().skip_while(|line| !line.ends_with("b / a")).skip(1);
    lines.take_while(|line| !line.starts_with("layer ")).collect()
}

/// The design takes the cycles of its model for every instruction, and writes its signals next to the page.
#[test]
#[ignore = "builds a simulator of the design with waves, minutes"]
fn the_design_is_profiled_with_its_waves() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let dir = tempfile::tempdir().unwrap();
    let modeled = profile(dir.path(), "m", &["--hw", "1x4x4"]);
    let found = profile(dir.path(), "r", &["--hw", "1x4x4", "--device", "rtl", "--waves"]);
    for key in ["timeline", "occupancy", "traffic"] {
        assert_eq!(found[key], modeled[key], "{key}");
    }
    assert_eq!(found["summary"]["cycles"], modeled["summary"]["cycles"]);
    assert_eq!((&found["waves"], &modeled["waves"]), (&"r.fst".into(), &Value::Null));
    // Signals of thousands of cycles, only under their own name.
    assert!(std::fs::metadata(dir.path().join("r.fst")).unwrap().len() > 10_000);
    let mut names: Vec<_> =
        std::fs::read_dir(dir.path()).unwrap().map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    names.sort();
    assert_eq!(names, ["m.html", "m.json", "m.trace.json", "r.fst", "r.html", "r.json", "r.trace.json"]);
}

/// Cycles at the left and right end of the timeline's axes: of the units, and of the scratchpads.
fn shown_cycles(browser: &mut Browser) -> [[f64; 2]; 2] {
    let extents = "(live => [0, 1].map(axis => live.getModel().getComponent('xAxis', axis).axis.scale.getExtent()))\
                   (charts.find(c => c.box.id === 'timeline-chart').live)";
    let found = browser.evaluate(extents);
    [0, 1].map(|axis| [0, 1].map(|end| found[axis][end].as_f64().expect("a cycle")))
}

/// Clicks on the head of a table's column (counted from 0), and returns the column's texts from top to bottom.
fn sorted_by(browser: &mut Browser, table: &str, column: usize) -> Vec<String> {
    let [x, y] = browser.middle_of(&format!("#{table} th:nth-child({}) button", column + 1));
    browser.click(x, y);
    let texts = browser.evaluate(&format!(
        "[...document.querySelectorAll('#{table} tbody tr')].map(row => row.cells[{column}].textContent)"
    ));
    texts.as_array().expect("rows").iter().map(|text| text.as_str().expect("a text").to_string()).collect()
}

/// Colors of a page in a color scheme: background, text, and text of its charts.
fn colours(browser: &mut Browser) -> Value {
    browser.evaluate(
        "[getComputedStyle(document.body).backgroundColor, getComputedStyle(document.body).color, \
         charts[charts.length - 1].live.getOption().textStyle.color]",
    )
}

/// Whether nothing on the page is wider than it or hidden in a scrolling area, charts have its width, and nothing needs
/// a pointer.
#[track_caller]
fn is_fit_for_paper(browser: &mut Browser) {
    // A4 at 96 dots per inch, without margins.
    browser.resize(718, 1000);
    browser.print(true);
    assert_eq!(browser.evaluate("matchMedia('print').matches"), true);
    let cut = browser.evaluate(
        "[...document.querySelectorAll('main, section, .scroll, pre, table, td, th')].filter(e => \
         e.scrollWidth > e.clientWidth + 1 && getComputedStyle(e).overflowX !== 'visible' || \
         e.scrollHeight > e.clientHeight + 1 && getComputedStyle(e).overflowY !== 'visible' || \
         e.getBoundingClientRect().right > innerWidth + 1).map(e => e.tagName + ': ' + e.textContent.slice(0, 60))",
    );
    assert_eq!(cut, serde_json::json!([]));
    assert_eq!(browser.evaluate("charts.every(c => c.live.getWidth() === c.box.clientWidth)"), true);
    assert_eq!(browser.evaluate("getComputedStyle(document.getElementById('nav')).display"), "none");
    let sliders =
        "charts.flatMap(c => c.live.getOption().dataZoom || []).filter(z => z.type === 'slider' && z.show !== false)";
    assert_eq!(browser.evaluate(&format!("{sliders}.length")), 0);
    browser.print(false);
    browser.resize(1400, 1000);
}

#[test]
fn the_page_opens_sorts_zooms_and_tells_in_a_browser() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut browser) = Browser::start(&dir.path().join("browser")) else { return };
    let data = profile(dir.path(), "b", &[]);
    browser.open(&dir.path().join("b.html"));
    assert_eq!(browser.evaluate("document.querySelectorAll('section').length"), 8);
    assert_eq!(browser.evaluate("charts.length"), 4);
    // A click on the head of the cycles sorts in descending order, another click in ascending order. Rows without
    // cycles stay last.
    let number = |text: &String| text.replace(',', "").parse::<u64>().ok();
    let cycles = |column: Vec<String>| column.iter().filter_map(number).collect::<Vec<_>>();
    let mut wanted: Vec<u64> =
        data["layers"].as_array().unwrap().iter().filter_map(|layer| layer["cycles"].as_u64()).collect();
    let as_run = wanted.clone();
    wanted.sort_unstable();
    assert!(wanted.len() > 3 && wanted != as_run);
    let least_last = sorted_by(&mut browser, "layer-table", 4);
    assert!(least_last.last().is_some_and(|text| text == "–"), "{least_last:?}");
    assert_eq!(cycles(least_last), wanted.iter().rev().copied().collect::<Vec<_>>());
    assert_eq!(cycles(sorted_by(&mut browser, "layer-table", 4)), wanted);
    assert_eq!(browser.evaluate("document.querySelector('#layer-table th:nth-child(5)').ariaSort"), "ascending");
    // Places are words and sort alphabetically.
    let places = sorted_by(&mut browser, "layer-table", 2);
    assert!(places.is_sorted() && places.first() != places.last(), "{places:?}");
    // Units and scratchpads share one axis: a cycle has the same position in both.
    let places = "(live => [0, 1].map(axis => [0, data.timeline.cycles].map(cycle => live.convertToPixel({ xAxisIndex: axis }, \
                  cycle))))(charts.find(c => c.box.id === 'timeline-chart').live)";
    let places = browser.evaluate(places);
    assert!(places[0][1].as_f64() > Some(300.0) && places[0] == places[1], "{places}");
    // A narrow window still shows the whole graph.
    browser.resize(900, 700);
    let inside = browser.evaluate(
        "(({ box, live }) => data.nodes.every((_, at) => (([x, y]) => x > 0 && x < box.clientWidth && y > 0 && y < \
         box.clientHeight)(live.convertToPixel({ seriesIndex: 0 }, live.getModel().getSeriesByIndex(0).getData().getItemLayout(at)\
         ))))(charts.find(c => c.box.id === 'graph-chart'))",
    );
    assert_eq!(inside, true);
    assert_eq!(browser.evaluate("document.documentElement.scrollWidth <= innerWidth"), true);
    browser.resize(1400, 1000);
    // There is no tooltip without a pointer.
    let told = "[...document.querySelectorAll('#timeline-chart > div')].filter(e => getComputedStyle(e).visibility === 'visible' \
                && getComputedStyle(e).opacity !== '0').map(e => e.innerText).join(' ')";
    let before = browser.evaluate(told);
    assert!(!before.as_str().unwrap().contains("cycle "), "{before}");
    // The mouse wheel over the units zooms units and scratchpads together, in and out.
    let [x, y] = browser.middle_of("#timeline-chart");
    let all = [0.0, data["summary"]["cycles"].as_f64().unwrap()];
    assert_eq!(shown_cycles(&mut browser), [all, all]);
    browser.wheel(x, y - 100.0, -240.0);
    let [units, scratchpads] = shown_cycles(&mut browser);
    assert_eq!(units, scratchpads);
    assert!(0.0 < units[0] && units[1] < all[1] && units[1] - units[0] < 0.95 * all[1], "{units:?} of {all:?}");
    browser.wheel(x, y - 100.0, 240.0);
    let [wider, _] = shown_cycles(&mut browser);
    assert!(wider[0] <= units[0] && wider[1] - wider[0] > units[1] - units[0], "{wider:?} of {units:?}");
    // Hovering shows the cycle under the pointer and the units' instructions in it.
    browser.hover(x, y - 100.0);
    let after = browser.evaluate(told);
    let after = after.as_str().unwrap();
    let cycle = after.trim_start().strip_prefix("cycle ").and_then(|rest| rest.split(' ').next()).unwrap();
    let cycle: f64 = cycle.replace(',', "").parse().unwrap();
    assert!(wider[0] < cycle && cycle < wider[1] && after.contains("gemm"), "{after}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// Names that differ only at the end are still distinct if shortened, no reason exceeds a small screen, and the graph
/// has the size that its nodes need.
#[test]
#[ignore = "long; make test-full runs it"]
fn everything_can_be_read_on_a_small_screen() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut browser) = Browser::start(&dir.path().join("browser")) else { return };
    let data = profile(dir.path(), "a", &["--hw", "1x8x8"]);
    profile(dir.path(), "b", &[]);
    fine(dir.path(), &["profile", "--compare", "a.json", "b.json", "--report", "c.html"]);
    // The labels of a chart's rows.
    let labels = |browser: &mut Browser, chart: &str| {
        let found = browser.evaluate(&format!(
            "charts.find(c => c.box.id === '{chart}').live.getModel().getComponent('yAxis', 0).axis.getViewLabels()\
             .map(label => [label.rawLabel, label.formattedLabel])"
        ));
        let pairs = found.as_array().expect("labels").clone();
        pairs
            .into_iter()
            .map(|pair| [0, 1].map(|at| pair[at].as_str().expect("a text").to_string()))
            .collect::<Vec<_>>()
    };
    for (page, chart) in [("a.html", "traffic-chart"), ("c.html", "compare-chart")] {
        browser.open(&dir.path().join(page));
        browser.resize(600, 800);
        let labels = labels(&mut browser, chart);
        assert!(labels.iter().any(|[whole, shown]| whole != shown), "some are cut: {labels:?}");
        for [whole, shown] in &labels {
            let (begin, end) = shown.split_once('…').unwrap_or((shown, shown));
            assert!(whole.starts_with(begin) && whole.ends_with(end) && begin.len().abs_diff(end.len()) < 2, "{shown}");
        }
        let at = format!(
            "(({{ box, live }}) => {{ box.scrollIntoView({{ block: 'center' }}); const r = box.getBoundingClientRect(); return [r.x + \
             110, r.y + live.convertToPixel({{ yAxisIndex: 0 }}, 1)]; }})(charts.find(c => c.box.id === '{chart}'))"
        );
        let at = browser.evaluate(&at);
        browser.hover(at[0].as_f64().expect("a place"), at[1].as_f64().expect("a place"));
        assert_eq!(browser.evaluate(&format!("document.getElementById('{chart}').title")), labels[1][0]);
        let shown: std::collections::HashSet<&String> = labels.iter().map(|[_, shown]| shown).collect();
        assert_eq!(shown.len(), labels.len(), "{labels:?}");
    }
    browser.open(&dir.path().join("a.html"));
    browser.resize(1366, 768);
    let reasons =
        browser.evaluate("[...document.querySelectorAll('#explain-table tbody tr')].map(r => r.cells[8].textContent)");
    let wanted: Vec<&Value> = data["nodes"].as_array().unwrap().iter().map(|node| &node["why"]).collect();
    assert_eq!(reasons.as_array().unwrap().iter().collect::<Vec<_>>(), wanted);
    let wide = browser.evaluate(
        "[...document.querySelectorAll('.scroll, .scroll td')].filter(e => e.scrollWidth > e.clientWidth).map(e => e.textContent)",
    );
    assert_eq!(wide, serde_json::json!([]));
    // A chain of nodes takes few rows, far enough apart for the names of the operators.
    let graph = browser.evaluate(
        "(({ box, live }) => { const nodes = live.getModel().getSeriesByIndex(0).getData(), at = data.nodes.map((_, i) => \
         live.convertToPixel({ seriesIndex: 0 }, nodes.getItemLayout(i))), ys = at.map(p => p[1]), steps = at.slice(1).map((p, i) \
         => Math.hypot(p[0] - at[i][0], p[1] - at[i][1])); return [box.clientHeight - Math.max(...ys) + Math.min(...ys), \
         Math.min(...steps), Math.min(...ys)]; })(charts.find(c => c.box.id === 'graph-chart'))",
    );
    let [margins, step, above] = [0, 1, 2].map(|at| graph[at].as_f64().expect("pixels"));
    assert!(margins < 100.0 && step > 60.0 && above > 20.0, "{graph}");
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

#[test]
#[ignore = "long; make test-full runs it"]
fn pages_follow_the_dark_scheme_and_print_whole() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut browser) = Browser::start(&dir.path().join("browser")) else { return };
    profile(dir.path(), "a", &["--hw", "1x8x8"]);
    profile(dir.path(), "b", &[]);
    let text = fine(dir.path(), &["profile", "--compare", "a.json", "b.json", "--report", "c.html"]);
    browser.open(&dir.path().join("c.html"));
    let names =
        browser.evaluate("[...document.querySelectorAll('#sides tbody tr')].map(row => row.cells[0].textContent)");
    let (names, told) = (names.as_array().unwrap(), compared_figures(&text));
    assert_eq!(names.len(), told.len(), "the page compares what the text does: {names:?}");
    assert!(told.iter().zip(names).all(|(line, name)| line.starts_with(name.as_str().unwrap())), "{names:?}: {text}");
    for page in ["b.html", "c.html"] {
        browser.open(&dir.path().join(page));
        assert_eq!(browser.evaluate("document.querySelectorAll('#layer-table tbody tr').length > 5"), true);
        let light = colours(&mut browser);
        browser.dark(true);
        let dark = colours(&mut browser);
        assert!((0..3).all(|what| light[what] != dark[what]), "{light}, {dark}");
        browser.dark(false);
        assert_eq!(colours(&mut browser), light);
        is_fit_for_paper(&mut browser);
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}

/// `make bench-report` measures the time of opening and zooming.
#[test]
fn the_page_of_a_large_network_is_small_and_zooms() {
    let dir = tempfile::tempdir().unwrap();
    let Some(mut browser) = Browser::start(&dir.path().join("browser")) else { return };
    fine(dir.path(), &["zoo", "make", "resnet18", "-o", "resnet18.onnx"]);
    let once = ["--warm-up", "0", "--repetitions", "1"];
    fine(dir.path(), &[&["profile", "resnet18.onnx", "--report", "r.html"][..], &once].concat());
    let bytes = std::fs::metadata(dir.path().join("r.html")).unwrap().len();
    assert!(bytes < 5_000_000, "{bytes} bytes");
    browser.open(&dir.path().join("r.html"));
    let cycles = browser.evaluate("data.timeline.cycles").as_f64().unwrap();
    for percent in [10.0, 30.0, 49.0] {
        browser.evaluate(&format!(
            "(live => {{ live.dispatchAction({{ type: 'dataZoom', start: {percent}, end: {} }}); live.getZr().flush(); }})\
             (charts.find(c => c.box.id === 'timeline-chart').live)",
            100.0 - percent
        ));
        let wanted = [percent, 100.0 - percent].map(|percent| cycles * percent / 100.0);
        for shown in shown_cycles(&mut browser) {
            assert!((0..2).all(|end| (shown[end] - wanted[end]).abs() <= 1e-6 * cycles), "{shown:?}, {wanted:?}");
        }
    }
    assert_eq!(browser.complaints(), Vec::<String>::new());
}
