//! The runtime as WebAssembly and its JavaScript package: networks run in Node and in a page of a browser, and must
//! answer as here: with the same bits where sums are of integers.

use std::collections::BTreeMap;
use std::io::{BufRead, BufReader};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};
use tilewright::model::wasm::{TARGET, WasmLinker, module};
use tilewright::model::{self, inference, zoo};
use tilewright_compiler::graph::op::{Attr, Packed, Relu};
use tilewright_compiler::graph::{DType, Graph, GraphBuilder, TensorType};
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Device;
use tilewright_runtime::{Artifact, Registry, Session, Tensor};
use tilewright_sim::{Csim, CsimOptions, Fsim};

fn root() -> &'static Path {
    Path::new(concat!(env!("CARGO_MANIFEST_DIR"), "/.."))
}

/// The package, which `make wasm` builds; without it, or without Node, the calling test skips.
fn package() -> Option<PathBuf> {
    let package = root().join("build/js");
    if !tilewright_testing::has_optional("node", "run scripts/setup.sh --wasm") {
        return None;
    }
    if !package.join("runtime.wasm").exists() {
        tilewright_testing::skip("the JavaScript package is not built; run make wasm");
        return None;
    }
    if let Err(error) = WasmLinker::find() {
        tilewright_testing::skip(&error.to_string());
        return None;
    }
    Some(package)
}

/// A network that is compiled twice: for WebAssembly, and for this architecture's base.
struct Network {
    wasm: Vec<u8>,
    here: Artifact,
}

fn compiled(file: &Path, offload: model::Offload, preset: &str, folder: &Path) -> Network {
    let config = HwConfig::load(preset).expect("a preset");
    let compile = |processor: &str| {
        let graph = model::import(file, model::Sizes::default()).expect("it is read");
        let options = model::Options { offload, processor: Some(processor), ..model::Options::new(&config) };
        model::build(graph, &options, &mut |_, _| {}).expect("it compiles")
    };
    let artifact = compile(&format!("{TARGET},+simd128"));
    let linker = WasmLinker::find().expect("it was found before");
    let wasm = module(&artifact, &linker, folder).expect("it links");
    Network { wasm, here: compile(&format!("{}-linux-gnu", std::env::consts::ARCH)) }
}

/// A graph with an operator of its own between two others, which has attributes and two outputs.
fn peaks() -> Graph {
    let mut b = GraphBuilder::new("peaks");
    let x = b.input("x", TensorType::new(DType::F32, &[4]));
    let types = vec![b.ty(x).clone(), TensorType::new(DType::I64, &[1])];
    let attributes = BTreeMap::from([
        ("above".to_string(), Attr::Float(0.5)),
        ("by".to_string(), Attr::Float(2.5)),
        ("names".to_string(), Attr::List(["a", "b"].map(|name| Attr::Text(name.into())).to_vec())),
    ]);
    let op = Packed { function: "tests.Peaks".into(), attributes, types };
    let found = b.node_outputs("peaks", op.into(), &[x]).expect("it suits");
    let y = b.node("y", Relu {}, &[found[0]]).expect("it suits");
    b.output("y", y);
    b.output("count", found[1]);
    b.finish().expect("a graph")
}

/// The WebAssembly module of a graph, all of whose steps are on the host.
fn linked(graph: &Graph, folder: &Path) -> Vec<u8> {
    let config = HwConfig::load("1x8x8").expect("a preset");
    let processor = format!("{TARGET},+simd128");
    let options =
        model::Options { offload: model::Offload::None, processor: Some(&processor), ..model::Options::new(&config) };
    let artifact = model::build(graph.clone(), &options, &mut |_, _| {}).expect("it compiles");
    module(&artifact, &WasmLinker::find().expect("it was found before"), folder).expect("it links")
}

fn device(name: &str, config: &HwConfig) -> Box<dyn Device> {
    match name {
        "csim" => Box::new(Csim::new(config.clone(), config.memory_bytes(), CsimOptions::default())),
        _ => Box::new(Fsim::new(config.clone(), config.memory_bytes())),
    }
}

/// Writes a network with inputs and this machine's answers, and describes it for the scripts.
fn case(folder: &Path, name: &str, network: &Network, on: &str, tolerance: f64) -> Value {
    let artifact = &network.here;
    let hardware = artifact.manifest.hardware.as_ref();
    let config = hardware.map(|hardware| HwConfig::load(&hardware.name).expect("a preset"));
    let accelerated = config.is_some();
    let inputs = inference::made_up(&artifact.manifest.input_values());
    let mut session =
        Session::new(artifact.clone(), &Registry::new(), config.map(|c| device(on, &c))).expect("it opens");
    let (outputs, _) = session.run(&inputs).expect("it runs");
    std::fs::write(folder.join(format!("{name}.wasm")), &network.wasm).expect("room");
    let write = |what: &str, names: Vec<&str>, tensors: &[Tensor]| -> Vec<Value> {
        let one = |(i, (own, tensor)): (usize, (&str, &Tensor))| {
            let file = format!("{name}.{on}.{what}{i}");
            std::fs::write(folder.join(&file), &tensor.bytes).expect("room");
            json!({ "name": own, "dtype": tensor.dtype.name(), "shape": tensor.shape, "file": file })
        };
        names.into_iter().zip(tensors).enumerate().map(one).collect()
    };
    let names = artifact.manifest.input_values().iter().map(|value| value.name.as_str()).collect();
    let outputs_named = artifact.manifest.named_outputs().map(|(name, _)| name).collect();
    json!({
        "model": format!("{name}.wasm"),
        "device": on,
        "accelerated": accelerated,
        "tolerance": tolerance,
        "runs": [{ "inputs": write("in", names, &inputs), "outputs": write("out", outputs_named, &outputs) }],
    })
}

fn run(command: &mut Command) -> String {
    let output = command.output().expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {error}", output.status);
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
#[ignore = "needs the package of make wasm; make test-full runs it"]
fn networks_answer_in_node_as_on_this_machine() {
    let Some(package) = package() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let zoo = |name: &str| zoo::find(name).and_then(|entry| entry.extract(dir)).expect("the zoo has it");
    let (float, int8) = (zoo("lenet"), zoo("lenet-int8"));
    let mut files = vec![
        ("lenet", float, model::Offload::None, 1e-6),
        ("lenet-int8", int8.clone(), model::Offload::None, 0.0),
        ("lenet-int8-offloaded", int8, model::Offload::All, 0.0),
        ("vit-int8-offloaded", zoo("vit-tiny-int8"), model::Offload::All, 0.0),
        ("blazeface", zoo("blazeface-short"), model::Offload::None, 1e-5),
    ];
    if let Some(file) = tilewright_testing::model("resnet8-cifar10/model_int8.tflite") {
        files.push(("resnet8", file.clone(), model::Offload::None, 0.0));
        files.push(("resnet8-offloaded", file, model::Offload::All, 0.0));
    }
    let mut cases = Vec::new();
    for (name, file, offload, tolerance) in files {
        // Blocks of 8 and of 16 outputs, for which the simulator has different code.
        let preset = if name.starts_with("resnet8") { "1x16x16" } else { "1x8x8" };
        let network = compiled(&file, offload, preset, dir);
        cases.push(case(dir, name, &network, "fsim", tolerance));
        if name.starts_with("lenet") {
            cases.push(case(dir, name, &network, "csim", tolerance));
        }
    }
    std::fs::write(dir.join("packed.wasm"), linked(&peaks(), dir)).expect("room");
    std::fs::write(dir.join("cases.json"), Value::from(cases).to_string()).expect("room");
    let script = root().join("ffi/tests/wasm.mjs");
    assert_eq!(run(Command::new("node").arg(script).arg(&package).arg(dir)), "all as it should be\n");

    // The example of the page, with the package where npm would install it.
    let modules = dir.join("node_modules");
    std::fs::create_dir(&modules).expect("a folder");
    std::os::unix::fs::symlink(&package, modules.join("tilewright")).expect("a link");
    std::fs::copy(root().join("examples/js/infer.js"), dir.join("infer.mjs")).expect("room");
    let input = std::fs::File::open(dir.join("lenet-int8-offloaded.fsim.in0")).expect("it was written");
    let found =
        Command::new("node").arg("infer.mjs").arg("lenet-int8-offloaded.wasm").stdin(input).current_dir(dir).output();
    let found = found.expect("node runs");
    assert!(found.status.success(), "{}", String::from_utf8_lossy(&found.stderr));
    assert_eq!(found.stdout, std::fs::read(dir.join("lenet-int8-offloaded.fsim.out0")).expect("it was written"));
}

/// A server of files, which ends with this.
struct Server(Child);

impl Server {
    /// Serves a folder; returns the address.
    fn start(folder: &Path) -> (Server, String) {
        let mut child = Command::new("python3")
            .args(["-u", "-m", "http.server", "0", "--bind", "127.0.0.1", "--directory"])
            .arg(folder)
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .expect("python3 runs");
        let mut line = String::new();
        BufReader::new(child.stdout.take().expect("a pipe")).read_line(&mut line).expect("it says where");
        let port = line.split_whitespace().skip_while(|word| *word != "port").nth(1).expect("a port").to_string();
        (Server(child), format!("http://127.0.0.1:{port}"))
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

#[test]
#[ignore = "needs the package of make wasm and a browser; make test-full runs it"]
fn a_drawn_digit_is_read_in_a_page() {
    let Some(package) = package() else { return };
    let dir = tempfile::tempdir().expect("a folder");
    let site = dir.path().join("site");
    std::fs::create_dir(&site).expect("a folder");
    let Some(mut browser) = tilewright_testing::browser::Browser::start(dir.path()) else { return };
    std::fs::copy(root().join("examples/js/index.html"), site.join("index.html")).expect("room");
    std::os::unix::fs::symlink(&package, site.join("tilewright")).expect("a link");
    let file = zoo::find("lenet-int8").and_then(|entry| entry.extract(dir.path())).expect("the zoo has it");
    let network = compiled(&file, model::Offload::All, "1x8x8", dir.path());
    case(&site, "lenet", &network, "csim", 0.0);
    let (_server, address) = Server::start(&site);
    browser.open_address(&format!("{address}/index.html"));

    // The same bits as here, and as many cycles.
    let output = browser.evaluate(
        "(async () => { \
           for (let i = 0; !window.ready && i < 300; i++) await new Promise(done => setTimeout(done, 100)); \
           const { model } = window.ready; \
           const input = new Float32Array(await (await fetch('lenet.csim.in0')).arrayBuffer()); \
           const wanted = new Uint8Array(await (await fetch('lenet.csim.out0')).arrayBuffer()); \
           const { outputs, cycles } = await model.report(input); \
           const found = new Uint8Array(outputs[model.outputs[0].name].data.buffer); \
           return [String(found) === String(wanted), cycles]; })()",
    );
    let config = HwConfig::load("1x8x8").expect("a preset");
    let mut session =
        Session::new(network.here.clone(), &Registry::new(), Some(device("csim", &config))).expect("it opens");
    let (_, report) = session.run(&inference::made_up(&network.here.manifest.input_values())).expect("it runs");
    assert_eq!(output, json!([true, report.cycles()]));

    // A seven, drawn with the mouse.
    let [x, y] = browser.middle_of("#pad");
    browser.drag(&[[x - 60.0, y - 80.0], [x + 60.0, y - 80.0], [x - 10.0, y + 90.0]]);
    let best = browser.evaluate("document.querySelector('tr.best td').textContent");
    let status = browser.evaluate("document.querySelector('#status').textContent");
    assert_eq!(best, json!("7"), "{status}");
    assert!(status.as_str().is_some_and(|text| text.contains("cycles of the accelerator")), "{status}");
    assert_eq!(browser.complaints(), [""; 0]);
}
