//! Models whose sizes are open, and operators that are functions of the program.

use std::path::Path;
use std::process::Command;

use tilewright::model::wasm::WasmLinker;
use tilewright_runtime::tensor::Tensor;
use tilewright_runtime::{Artifact, npy};
use tilewright_testing::proto::{field, number};

use super::{fine, tilewright};

/// The file of `y = OP(x)` on floats of [rows, 4], with a domain for the operator if it is not empty.
fn model(op: &[u8], domain: &[u8]) -> Vec<u8> {
    let dims = [field(1, &field(2, b"rows")), field(1, &number(1, 4))].concat();
    let ty = field(2, &field(1, &[number(1, 1), field(2, &dims)].concat()));
    let value = |name: &[u8]| [field(1, name), ty.clone()].concat();
    let mut node = [field(1, b"x"), field(2, b"y"), field(4, op)].concat();
    if !domain.is_empty() {
        node.extend(field(7, domain));
    }
    let graph = [field(1, &node), field(2, b"g"), field(11, &value(b"x")), field(12, &value(b"y"))];
    [number(1, 8), field(8, &number(2, 13)), field(7, &graph.concat())].concat()
}

fn failed(dir: &Path, arguments: &[&str]) -> String {
    let outcome = tilewright(dir, arguments);
    assert_eq!(outcome.code, 2, "{}", outcome.stdout);
    outcome.stderr
}

/// Compiles a model for two sizes as WebAssembly; without a linker the calling test skips.
fn wasm(dir: &Path) -> bool {
    if let Err(error) = WasmLinker::find() {
        tilewright_testing::skip(&error.to_string());
        return false;
    }
    std::fs::write(dir.join("m.onnx"), model(b"Relu", b"")).unwrap();
    fine(dir, &["compile", "m.onnx", "--shapes", "rows=2,3", "--emit", "wasm", "-o", "m.wasm"]);
    true
}

#[test]
fn a_webassembly_module_has_all_sizes() {
    let folder = tempfile::tempdir().unwrap();
    if !wasm(folder.path()) {
        return;
    }
    let bytes = std::fs::read(folder.path().join("m.wasm")).unwrap();
    // The last section is the artifact.
    let at = bytes.windows(8).position(|window| window == b"TILEWRGT").expect("an artifact");
    let artifact = Artifact::decode("m.wasm", &bytes[at..]).unwrap();
    let shapes: Vec<_> = artifact.manifest.of_each_shape().map(|one| one.input_values()[0].shape.clone()).collect();
    assert_eq!(shapes, [[2, 4], [3, 4]]);
}

#[test]
#[ignore = "needs the package of make wasm; make test-full runs it"]
fn a_webassembly_module_for_several_sizes_runs_data_of_each() {
    let package = concat!(env!("CARGO_MANIFEST_DIR"), "/build/js");
    if !tilewright_testing::has_optional("node", "run scripts/setup.sh --wasm") {
        return;
    }
    if !Path::new(package).join("runtime.wasm").exists() {
        return tilewright_testing::skip("the JavaScript package is not built; run make wasm");
    }
    let folder = tempfile::tempdir().unwrap();
    if !wasm(folder.path()) {
        return;
    }
    let script = "
        import { readFile } from 'node:fs/promises';
        const { load } = await import(process.argv[1] + '/index.js');
        const model = await load(await readFile('m.wasm'));
        console.log(JSON.stringify([model.inputs, model.outputs]));
        for (const rows of [3, 2, 5]) {
            const data = Float32Array.from({ length: 4 * rows }, (_, i) => i - 5);
            try {
                const { y } = await model.run({ x: { shape: [rows, 4], data } });
                console.log(String(y.shape), y.data.every((value, i) => value === Math.max(0, i - 5)));
            } catch (error) {
                console.log(error.name, error.message.includes('5x4'));
            }
        }
        console.log(await model.run(new Float32Array(8)).catch((error) => error.name));";
    let found = Command::new("node")
        .args(["--input-type=module", "-e", script, "--", package])
        .current_dir(folder.path())
        .output()
        .unwrap();
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    let described =
        r#"[[{"dtype":"f32","name":"x","shape":["rows",4]}],[{"dtype":"f32","name":"y","shape":[null,4]}]]"#;
    let printed = String::from_utf8_lossy(&found.stdout).into_owned();
    assert_eq!(printed, format!("{described}\n3,4 true\n2,4 true\nTilewrightError true\nTypeError\n"));
}

#[test]
fn an_artifact_for_several_sizes_runs_data_of_each() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("m.onnx"), model(b"Relu", b"")).unwrap();
    fine(dir, &["compile", "m.onnx", "--shapes", "rows=2,3", "-o", "m.twa"]);
    fine(dir, &["compile", "m.onnx", "--shapes", "rows=2,6", "--bucket", "-o", "padded.twa"]);
    let text = fine(dir, &["inspect", "m.twa"]);
    let shapes = "shapes     2, of x: f32 rowsx4; what follows is the first\n           2x4\n           3x4\n";
    assert!(text.contains(shapes), "{text}");
    for rows in [3, 2, 5] {
        let values: Vec<f32> = (0..4 * rows).map(|i| i as f32 - 5.0).collect();
        let bytes = values.iter().flat_map(|x| x.to_le_bytes()).collect::<Vec<u8>>();
        let x = Tensor { dtype: tilewright_runtime::DType::F32, shape: vec![rows, 4], bytes: bytes.into() };
        npy::write(&dir.join("x.npy"), &x).unwrap();
        let run = |file| {
            let outcome = tilewright(dir, &["run", file, "--device", "cpu", "--input", "x.npy", "--output-dir", "out"]);
            if outcome.code == 0 {
                let y = npy::read(&dir.join("out/y.npy")).unwrap();
                assert_eq!(y.shape, [rows, 4]);
                assert_eq!(y.to_f64(), values.iter().map(|x| f64::from(x.max(0.0))).collect::<Vec<_>>());
            }
            outcome
        };
        let outcome = run("m.twa");
        let wrong = outcome.code == 2 && outcome.stderr.contains("input x is f32");
        assert!(if rows == 5 { wrong } else { outcome.code == 0 }, "{rows} rows: {}", outcome.stderr);
        // 5 rows are padded to 6.
        let outcome = run("padded.twa");
        assert_eq!(outcome.code, 0, "{rows} rows: {}", outcome.stderr);
    }
}

#[test]
fn wrong_sizes_are_refused() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("m.onnx"), model(b"Relu", b"")).unwrap();
    let compile = |options: &[&str]| failed(dir, &[&["compile", "m.onnx", "-o", "m.twa"][..], options].concat());
    for (options, wanted) in [
        (&["--shapes", "rows"][..], "--shapes rows is not of the form SYMBOL=SIZE,SIZE"),
        (&["--shapes", "rows=2,0"], "--shapes rows=2,0 is not of the form"),
        (&["--shapes", "rows=2", "--shapes", "rows=3"], "--shapes gives rows twice; give all of its sizes at once"),
        (&["--shapes", "rows=2", "--bind", "rows=3"], "bind and shapes both give sizes of rows; leave one of them out"),
        (&["--shapes", "lines=2"], "has no open dimension lines; it has rows"),
        (&["--shapes", "rows=2", "--emit", "object"], "--shapes"),
    ] {
        let text = compile(options);
        assert!(text.contains(wanted), "{options:?}: {text}");
    }
    assert!(!dir.join("m.twa").exists());
}

#[test]
fn operators_of_a_domain_are_functions_of_the_program() {
    let folder = tempfile::tempdir().unwrap();
    let dir = folder.path();
    std::fs::write(dir.join("m.onnx"), model(b"Peaks", b"my.ops")).unwrap();
    let compile = ["compile", "m.onnx", "-o", "m.twa", "--bind", "rows=2"];
    let text = failed(dir, &compile);
    assert!(text.contains("unsupported operators: my.ops.Peaks (node `y`)"), "{text}");
    assert!(text.contains("with --packed my.ops, functions of your program compute"), "{text}");
    fine(dir, &[&compile[..], &["--packed", "my.ops"]].concat());
    assert!(fine(dir, &["inspect", "m.twa"]).contains("packed my.ops.Peaks"));
    let text = failed(dir, &["run", "m.twa", "--device", "cpu", "--input", "random"]);
    assert!(text.contains("calls the function my.ops.Peaks, which is not registered"), "{text}");
}
