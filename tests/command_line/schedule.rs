//! `schedule`.

use std::path::Path;

use serde_json::Value as Json;
use tilewright_runtime::{DType, Tensor, npy};

use crate::{fine, refused, tilewright};

const CLAMP: &str = "te clamp {
  input a: i8[64, 16]
  output c: i8[i in 64, j in 16] = max(a[i, j], 0i8)
}
schedule {
  cache_read c a inp; cache_write c out
  tensorize c.j max
}
";

fn example(name: &str) -> String {
    format!("{}/examples/schedules/{name}.te", env!("CARGO_MANIFEST_DIR"))
}

/// The examples take exactly these cycles on the cycle model, and one of them also on the Verilated design.
#[test]
fn examples_take_their_cycles() {
    let dir = tempfile::tempdir().unwrap();
    let all = [
        ("block_sum", 1256),
        ("channel_sum", 1443),
        ("conv_any_size", 121039),
        ("layer", 121547),
        ("matmul", 71323),
        ("max_pool", 707),
        ("mean_magnitude", 3964),
        ("relu_times", 815),
        ("two_outputs", 1101),
        ("two_scales", 4759),
        ("vector_add", 6471),
        ("window_range", 31971),
    ];
    for (name, cycles) in all {
        // The exit code says that no element differs.
        let report = fine(dir.path(), &["schedule", &example(name), "--device", "csim", "--strict", "--json"]);
        let report: Json = serde_json::from_str(&report).unwrap();
        assert_eq!(report["cycles"], cycles, "{name}");
        // Other data.
        fine(dir.path(), &["schedule", &example(name), "--device", "fsim", "--seed", "7"]);
    }
    let files = std::fs::read_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("examples/schedules")).unwrap();
    assert_eq!(files.count(), all.len(), "every example is here");
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    let text = fine(dir.path(), &["schedule", &example("relu_times"), "--device", "rtl"]);
    assert!(text.contains("cycles        815\n"), "{text}");
}

#[test]
fn sizes_are_bound() {
    let dir = tempfile::tempdir().unwrap();
    let run = |given: &[&str]| {
        let file = example("conv_any_size");
        let all: Vec<&str> = ["schedule", &file, "--device", "csim", "--strict", "--json"]
            .into_iter()
            .chain(given.iter().copied())
            .collect();
        serde_json::from_str::<Json>(&fine(dir.path(), &all)).unwrap()
    };
    let report = run(&["--bind", "rows=3", "--bind", "height=13"]);
    assert_eq!(report["sizes"], serde_json::json!({ "rows": 3, "height": 13, "width": 28, "blocks": 4 }));
    assert_eq!(report["outputs"]["c"]["elements"], 4 * 13 * 28 * 16);
    let file = example("conv_any_size");
    let refuse = |bind: &str, message: &str| refused(dir.path(), &["schedule", &file, "--bind", bind], message);
    let refused_in = |bind: &str, message: &str| refuse(bind, &format!("{file}: {message}"));
    refused_in("depth=3", "there is no size depth; the file declares height, width, blocks, rows");
    refuse("height=0", "--bind height=0: the size is not a whole number above 0");
    refuse("rows", "--bind rows is not of the form SYMBOL=SIZE");
    let full = "inp has 2048 entries, and the schedule needs 9696: padded 9696 (2 slots of 4848); split a loop, or compute a \
                buffer further inside and compact it";
    refused_in("width=200", full);
}

#[test]
fn data_and_outputs_are_arrays() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    std::fs::write(dir.join("clamp.te"), CLAMP).unwrap();
    let bytes: Vec<u8> = (0..1024).map(|i| i as u8).collect();
    let tensor = Tensor { dtype: DType::I8, shape: vec![64, 16], bytes: bytes.into() };
    npy::write(&dir.join("a.npy"), &tensor).unwrap();
    fine(dir, &["schedule", "clamp.te", "--input", "a=a.npy", "--output-dir", "out"]);
    let got = npy::read(&dir.join("out/c.npy")).unwrap();
    let want: Vec<u8> = tensor.bytes.iter().map(|&b| if (b as i8) < 0 { 0 } else { b }).collect();
    assert_eq!((got.shape, got.bytes.to_vec()), (vec![64, 16], want));
    refused(dir, &["schedule", "clamp.te", "--input", "b=a.npy"], "there is no input b; the inputs are a");
    refused(
        dir,
        &["schedule", "clamp.te", "--input", "a=a.npy", "--input", "a=a.npy"],
        "a.npy: input a has data already",
    );
    let small = Tensor { dtype: DType::I8, shape: vec![16, 64], ..tensor };
    npy::write(&dir.join("small.npy"), &small).unwrap();
    refused(
        dir,
        &["schedule", "clamp.te", "--input", "small.npy"],
        "input a is i8[16, 64]; the expression needs i8[64, 16]",
    );
}

/// Runs a file that cannot run.
fn fails(dir: &Path, text: &str, device: &str, message: &str) {
    std::fs::write(dir.join("wrong.te"), text).unwrap();
    let outcome = tilewright(dir, &["schedule", "wrong.te", "--device", device]);
    assert_eq!(outcome.code, 2, "{}", outcome.stderr);
    assert!(outcome.stderr.contains(message), "{message}\n{}", outcome.stderr);
}

#[test]
fn what_cannot_run_is_refused_with_its_place() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let changed = |from: &str, to: &str| CLAMP.replace(from, to);
    fails(dir, "", "csim", "wrong.te: line 1, column 1: expected `te`, found ``");
    fails(dir, &changed("i in 64", "i in 0"), "csim", "wrong.te: line 3, column 21: expected an extent of at least 1");
    fails(
        dir,
        &changed("64", "999999999999"),
        "csim",
        "wrong.te: line 2, column 32: expected a tensor of at most 268435456 elements",
    );
    fails(dir, &changed("a[i, j]", "b[i, j]"), "csim", "expected a declared buffer, found `b[i, j], 0i8`");
    fails(dir, &changed("a[i, j]", "a[i, k]"), "csim", "variable k is not bound");
    fails(
        dir,
        &changed("c.j max", "c.k max"),
        "csim",
        "wrong.te: line 7: cannot apply `tensorize c.k max`: there is no loop c.k\nthe loops are: a.inp.i0 a.inp.i1 \
         c.i c.j c.write.i0 c.write.i1",
    );
    fails(dir, &changed("c.j max", "c.j min"), "csim", "wrong.te: line 7: cannot apply `tensorize c.j min`");
    fails(
        dir,
        &changed("64", "4096"),
        "csim",
        "wrong.te: inp has 2048 entries, and the schedule needs 4096: a.inp 4096",
    );
    fails(dir, CLAMP, "cuda", "cuda runs no schedules; use --device fsim, csim, rtl or cpu");
    fails(dir, CLAMP, "cpu", "there is no intrinsic max");
    let many = "te t { output y: i32[i in 10000] = sum(j in 10000, k in 1000) 1i32 }";
    fails(dir, many, "cpu", "at most 1.0e10 can be checked");
    std::fs::write(dir.join("wrong.te"), [0xff, 0xfe]).unwrap();
    refused(dir, &["schedule", "wrong.te"], "wrong.te is not a text file");
    refused(dir, &["schedule", "none.te"], "cannot read none.te: No such file or directory (os error 2)");
}

/// The schedules of a model's layers are written, run by themselves, edited, and given back.
#[test]
fn schedules_of_a_model_are_given_back() {
    let dir = tempfile::tempdir().unwrap();
    let dir = dir.path();
    let model = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/models/vit-tiny-mnist/model_qdq_perchannel.onnx");
    let list = fine(dir, &["schedule", "--of", model]);
    let layer = list.lines().find(|name| name.contains("MatMul")).unwrap();
    let stem = layer.replace('/', "_");
    fine(dir, &["schedule", "--of", model, "--output-dir", "all"]);
    assert_eq!(std::fs::read_dir(dir.join("all")).unwrap().count(), list.lines().count());
    let one = fine(dir, &["schedule", "--of", &format!("{model}:{layer}")]);
    assert_eq!(one, std::fs::read_to_string(dir.join(format!("all/{stem}.te"))).unwrap());
    let report = fine(dir, &["schedule", &format!("all/{stem}.te"), "--device", "csim", "--strict", "--json"]);
    assert!(serde_json::from_str::<Json>(&report).unwrap()["cycles"].is_u64(), "{report}");
    // The program is the same with the compiler's own schedules, and another one with an edited schedule.
    let compile = |options: &[&str], name: &str| {
        fine(dir, &[&["compile", model, "-o", name, "--quiet"], options].concat());
        fine(dir, &["disasm", name])
    };
    let plain = compile(&[], "plain.twa");
    assert_eq!(plain, compile(&["--schedules", "all"], "same.twa"));
    let rows = one.lines().find(|line| line.contains("split output.i2")).unwrap();
    std::fs::create_dir(dir.join("edited")).unwrap();
    let edited = dir.join(format!("edited/{stem}.te"));
    let given = |text: &str| std::fs::write(&edited, text).unwrap();
    given(&one.replace(rows, "  split output.i2 8"));
    assert_ne!(plain, compile(&["--schedules", "edited"], "edited.twa"));
    let input = format!("{}input_0.npy", model.strip_suffix("onnx").unwrap());
    let outputs = |name: &str| {
        let folder = format!("outputs of {name}");
        fine(dir, &["run", name, "--input", &input, "--output-dir", &folder]);
        let files = std::fs::read_dir(dir.join(folder)).unwrap();
        files.map(|file| std::fs::read(file.unwrap().path()).unwrap()).collect::<Vec<_>>()
    };
    assert_eq!(outputs("plain.twa"), outputs("edited.twa"));
    // What cannot be used is refused with the file.
    let refuse = |arguments: &[&str], message: &str| {
        let outcome = tilewright(dir, arguments);
        assert!(outcome.code == 2 && outcome.stderr.contains(message), "{message}\n{}", outcome.stderr);
        assert!(!dir.join("no.twa").exists());
    };
    let wrong = |from: &str, to: &str, message: &str| {
        given(&one.replace(from, to));
        refuse(&["compile", model, "--schedules", "edited", "-o", "no.twa"], message);
    };
    let loops = format!("edited/{stem}.te: layer {layer}: cannot apply `split output.i9");
    wrong("split output.i2", "split output.i9", &loops);
    wrong("i8(offset_clamp", "i8(1i32 + offset_clamp", "the file computes another expression than the layer");
    wrong("schedule {", "schedul {", "expected `schedule {` or the end of the file");
    wrong(rows, "", "there is no loop output.i2.0");
    std::fs::rename(&edited, dir.join("edited/other.te")).unwrap();
    let folder = |name| ["compile", model, "--schedules", name, "-o", "no.twa"];
    refuse(&folder("edited"), "other.te: no layer of the accelerator has this name; there are:");
    std::fs::remove_file(dir.join("edited/other.te")).unwrap();
    refuse(&folder("edited"), "edited: the folder has no .te files");
    refuse(&folder("none"), "none: the folder cannot be read");
    refuse(&["schedule", "--of", &format!("{model}:none")], "has no layer none on the accelerator; there are:");
    refuse(&["schedule", "x.te", "-O3"], "-O is for a model; add --of MODEL");
}

/// The text of a file on a page.
fn file_of(page: &str, name: &str) -> String {
    let begin = page.find(&format!("$ cat {name}\n")).expect("the page has the file") + name.len() + 7;
    let rest = &page[begin..];
    let end = ["\n$ ", "\n```"].iter().filter_map(|end| rest.find(end)).min().expect("the file ends");
    format!("{}\n", &rest[..end])
}

/// The cycles in the tables of the tutorials are exact too.
#[test]
fn tables_of_the_tutorials_are_exact() {
    let root = Path::new(env!("CARGO_MANIFEST_DIR"));
    let dir = tempfile::tempdir().unwrap();
    let cycles = |text: &str| {
        std::fs::write(dir.path().join("f.te"), text).unwrap();
        let report = fine(dir.path(), &["schedule", "f.te", "--device", "csim", "--json"]);
        let report: Json = serde_json::from_str(&report).unwrap();
        report["cycles"].as_u64().unwrap().to_string()
    };
    let digits = |cell: &str| cell.replace(',', "");
    let page = std::fs::read_to_string(root.join("docs/tutorials/3-convolution.md")).unwrap();
    let (plain, piped) = (file_of(&page, "conv.te"), file_of(&page, "pipelined.te"));
    let rows: Vec<Vec<&str>> = page.lines().map(|l| l.split('|').map(str::trim).collect()).collect();
    let mut checked = 0;
    for row in rows.iter().filter(|row| row.len() == 5 && row[1].parse::<u32>().is_ok()) {
        let tiles = format!("split c.write.i1 {}", row[1]);
        let of = |text: &str| cycles(&text.replace("split c.write.i1 4", &tiles));
        assert_eq!(of(&plain), digits(row[2]), "{tiles}");
        if row[3] != "does not fit" {
            assert_eq!(of(&piped), digits(row[3]), "{tiles}");
        }
        checked += 1;
    }
    assert_eq!(checked, 4);
    let page = std::fs::read_to_string(root.join("docs/tutorials/2-matrix-product.md")).unwrap();
    let (blocked, piped) = (file_of(&page, "blocked.te"), file_of(&page, "pipelined.te"));
    let rows_only = piped.replace("; annotate c.write.i1.0 pipeline", "");
    assert_ne!(rows_only, piped);
    let of = |schedule: &str| {
        let row = page
            .lines()
            .map(|l| l.split('|').map(str::trim).collect::<Vec<_>>())
            .find(|row| row.get(1) == Some(&schedule));
        digits(row.unwrap_or_else(|| panic!("the table has a row {schedule}"))[2])
    };
    for (schedule, text) in
        [("blocks", blocked), ("pipeline over rows", rows_only), ("pipeline over weights too", piped)]
    {
        assert_eq!(cycles(&text), of(schedule), "{schedule}");
    }
}

/// A program runs a schedule with the lines that the page shows.
#[test]
fn a_schedule_runs_from_rust() -> Result<(), Box<dyn std::error::Error>> {
    use tilewright_hw::HwConfig;
    use tilewright_tensor::mapping::Mapping;
    use tilewright_tensor::schedule::file;

    let file = file::parse(&std::fs::read_to_string("examples/schedules/vector_add.te")?)?;
    let mut mapping = Mapping::new(&HwConfig::load("1x16x16")?, &file.program)?;
    for (_, step) in file.steps {
        mapping.apply(step)?;
    }
    let lowered = mapping.lower()?; // lowered.run(&mut device, &inputs, &outputs)

    assert_eq!(lowered.program.insn_count(), 33);
    let page = include_str!("../../docs/schedule.md");
    let shown = page.split("```rust\n").nth(1).and_then(|rest| rest.split("```").next()).ok_or("no block of Rust")?;
    for line in shown.lines().map(str::trim) {
        assert!(include_str!("schedule.rs").contains(line), "{line}");
    }
    Ok(())
}
