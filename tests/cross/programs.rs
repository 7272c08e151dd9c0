//! Models in C programs: compiled, linked with a harness, run, and compared with the graph's evaluation.

use std::fmt::Write;
use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright::model::export;
use tilewright::model::{self, Offload, Options, build_traced};
use tilewright_compiler::graph::{DType, Graph, Tensor, eval};
use tilewright_compiler::suite::{Problem, difference, problems, tolerance};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::npy;

/// How programs for a processor are built and run.
pub struct Machine {
    /// Value for `--cpu-target`.
    pub target: &'static str,
    compiler: &'static str,
    emulator: Vec<&'static str>,
}

impl Machine {
    /// This machine, with only features that every such machine has.
    pub fn own() -> Option<Machine> {
        let target = match std::env::consts::ARCH {
            "x86_64" => "x86_64-linux-gnu",
            "aarch64" => "aarch64-linux-gnu",
            "riscv64" => "riscv64-linux-gnu",
            _ => return None,
        };
        Some(Machine { target, compiler: "cc", emulator: Vec::new() })
    }

    /// Portable C99 with this compiler.
    pub fn portable(compiler: &'static str, emulator: &[&'static str]) -> Machine {
        Machine { target: model::C99, compiler, emulator: emulator.to_vec() }
    }

    /// Another processor. Without its compiler or emulator, the test is skipped.
    pub fn emulated(target: &'static str, compiler: &'static str, emulator: &[&'static str]) -> Option<Machine> {
        let there = [compiler, emulator[0]]
            .iter()
            .all(|program| tilewright_testing::has_optional(program, "run `scripts/setup.sh --cross`"));
        there.then(|| Machine { target, compiler, emulator: emulator.to_vec() })
    }

    /// Runs a program; the error is its output or that of the emulator.
    fn run(&self, program: &Path, arguments: &[&std::ffi::OsStr]) -> Result<(), String> {
        let mut command = match self.emulator.split_first() {
            Some((emulator, options)) => {
                let mut command = Command::new(emulator);
                command.args(options).arg(program);
                command
            }
            None => Command::new(program),
        };
        let done = command.args(arguments).output().unwrap_or_else(|e| panic!("{}: {e}", program.display()));
        let said = String::from_utf8_lossy(&done.stderr);
        if done.status.success() { Ok(()) } else { Err(format!("{}: {:?} {said}", self.target, done.status)) }
    }
}

/// A model with its data, compiled and exported.
pub struct Case {
    pub name: String,
    /// The graph after all passes.
    pub graph: Graph,
    pub inputs: Vec<Tensor>,
    /// The exported files.
    pub files: Vec<(String, Vec<u8>)>,
}

/// A model file's graph.
pub fn graph_of(file: &Path) -> Graph {
    model::import(file, model::Sizes::default()).unwrap_or_else(|e| panic!("{e}"))
}

/// A graph compiled for a processor and exported.
pub fn case(name: &str, graph: Graph, inputs: Vec<Tensor>, target: &str) -> Case {
    let name = export::identifier(name);
    let config = HwConfig::load("1x16x16").unwrap();
    let options =
        Options { offload: Offload::None, processor: Some(target), symbols: Some(&name), ..Options::new(&config) };
    let built = build_traced(graph, &options, &mut |_, _| {}).unwrap_or_else(|e| panic!("{name}: {e}"));
    let constants = |symbol: &str, bytes: &[u8]| model::data_object(target, symbol, bytes);
    let files = export::files(&built.artifact, &name, &constants).unwrap_or_else(|e| panic!("{name}: {e}"));
    Case { name, graph: built.graph, inputs, files }
}

/// A model file with the inputs next to it.
pub fn of_file(name: &str, file: &Path, target: &str) -> Case {
    case(name, graph_of(file), inputs_beside(file), target)
}

/// The inputs next to a model file.
pub fn inputs_beside(file: &Path) -> Vec<Tensor> {
    let stem = file.file_stem().unwrap().to_string_lossy().into_owned();
    let folder = file.parent().unwrap();
    let read = |stem: &str| -> Vec<Tensor> {
        let path = |i: usize| folder.join(format!("{stem}.input_{i}.npy"));
        let files = (0..).map(path).take_while(|path| path.exists());
        files.map(|path| Tensor::try_from(&npy::read(&path).unwrap()).unwrap()).collect()
    };
    let named = format!("{stem}-tflite");
    let inputs = if file.extension().is_some_and(|e| e == "tflite") { read(&named) } else { Vec::new() };
    let inputs = if inputs.is_empty() { read(&stem) } else { inputs };
    assert!(!inputs.is_empty(), "{} has no inputs beside it", file.display());
    inputs
}

/// Problems of the suite, with distinct names.
pub fn each(list: impl IntoIterator<Item = Problem>, target: &str) -> impl Iterator<Item = Case> {
    let numbered = list.into_iter().enumerate();
    numbered.map(move |(i, p)| case(&format!("p{i}_{}", p.name), p.graph, p.inputs, target))
}

/// Every problem of the suite, and the operators of files, whose weights are constants.
pub fn operators(target: &str) -> Vec<Case> {
    let mut cases: Vec<Case> = each(problems(100, 2).unwrap(), target).collect();
    let folder = super::repository("tflite-ops");
    let mut files: Vec<PathBuf> = std::fs::read_dir(folder).unwrap().map(|e| e.unwrap().path()).collect();
    files.retain(|f| f.extension().is_some_and(|e| e == "tflite"));
    files.sort();
    assert_eq!(files.len(), 41);
    cases.extend(files.iter().map(|f| of_file(&format!("op_{}", f.file_stem().unwrap().to_string_lossy()), f, target)));
    cases
}

/// Networks from the repository and from the folder of models.
pub fn networks(target: &str) -> Vec<Case> {
    let own = [
        ("lenet_float", "lenet-mnist/model.onnx"),
        ("lenet_channels", "lenet-mnist/model_qdq_perchannel.onnx"),
        ("lenet_tensors", "lenet-mnist/model_qdq_pertensor.onnx"),
        ("operators_u8", "onnx-runtime/operators_u8.onnx"),
        ("operators_s8", "onnx-runtime/operators_s8.onnx"),
        ("dynamic", "onnx-runtime/dynamic.onnx"),
    ];
    let mut files: Vec<(&str, PathBuf)> = own.into_iter().map(|(name, file)| (name, super::repository(file))).collect();
    for (name, file) in [
        ("resnet8_int8", "resnet8-cifar10/model_int8.tflite"),
        ("resnet8_float", "resnet8-cifar10/model_float.tflite"),
        ("kws_int8", "kws-dscnn/model_int8.tflite"),
    ] {
        files.extend(tilewright_testing::model(file).map(|file| (name, file)));
    }
    files.iter().map(|(name, file)| of_file(name, file, target)).collect()
}

/// Writes one program with all cases.
fn source(cases: &[Case]) -> String {
    let mut text = include_str!("harness.c").to_string();
    for case in cases {
        let _ = writeln!(text, "#include \"{}.c\"", case.name);
    }
    for Case { name, graph, .. } in cases {
        let upper = name.to_uppercase();
        let each = |kind: &str, n: usize| (0..n).map(|i| format!("{upper}_{kind}_{i}_BYTES,")).collect::<String>();
        let (inputs, outputs) = (each("INPUT", graph.inputs().count()), each("OUTPUT", graph.outputs().len()));
        let _ = writeln!(text, "static const size_t {name}_bytes[] = {{{inputs}{outputs}}};");
    }
    text.push_str("static const struct model models[] = {\n");
    for Case { name, .. } in cases {
        let upper = name.to_uppercase();
        let sizes = format!("{upper}_INPUTS, {upper}_OUTPUTS, {upper}_WORKSPACE_BYTES");
        let _ = writeln!(text, "    {{\"{name}\", {name}_run, {sizes}, {name}_bytes}},");
    }
    text.push_str("};\nint main(int count, char **arguments)\n{\n");
    text.push_str("    return count == 4   ? run_all(models + atoi(arguments[3]), 1, arguments)\n");
    text.push_str("           : count == 3 ? run_all(models, sizeof models / sizeof *models, arguments)\n");
    text.push_str("                        : 2;\n}\n");
    text
}

/// Runs all cases in one program. Integers must equal the graph's evaluation; floats can differ as much as a different
/// order of summation allows.
pub fn check(machine: &Machine, cases: &[Case]) {
    let folder = tempfile::tempdir().unwrap();
    let path = |name: &str| folder.path().join(name);
    for (name, bytes) in cases.iter().flat_map(|case| &case.files) {
        std::fs::write(path(name), bytes).unwrap();
    }
    std::fs::write(path("main.c"), source(cases)).unwrap();
    let data: Vec<u8> = cases.iter().flat_map(|case| case.inputs.iter().flat_map(Tensor::to_bytes)).collect();
    std::fs::write(path("inputs"), data).unwrap();
    let objects = cases
        .iter()
        .flat_map(|case| &case.files)
        .filter(|(name, _)| name.ends_with(".o") || name.ends_with("_constants.c") || name.ends_with("_code0.c"));
    let objects: String = objects.map(|(name, _)| format!("{name}\n")).collect();
    std::fs::write(path("objects"), objects).unwrap();
    let options = ["-std=c11", "-O1", "-Wall", "-Wextra", "-Werror", "-static", "-o", "program", "main.c"];
    let imports = path("tilewright_imports.c").exists().then_some("tilewright_imports.c");
    let mut compiler = Command::new(machine.compiler);
    let compiled = compiler.current_dir(folder.path()).args(options).args(imports).args(["@objects", "-lm"]).output();
    let compiled = compiled.unwrap_or_else(|e| panic!("{}: {e}", machine.compiler));
    let errors = String::from_utf8_lossy(&compiled.stderr);
    assert!(compiled.status.success(), "{}: {errors}", machine.target);
    let [program, inputs, outputs] = ["program", "inputs", "outputs"].map(path);
    let files = [inputs.as_os_str(), outputs.as_os_str()];
    match machine.run(&program, &files) {
        Ok(()) => return compare(machine, cases, &std::fs::read(&outputs).unwrap()),
        Err(said) => assert!(said.contains(EMULATOR), "{said}"),
    }
    // One program per case, so that only cases that the emulator rejects are skipped.
    let mut ran = 0;
    for (i, case) in cases.iter().enumerate() {
        let data: Vec<u8> = case.inputs.iter().flat_map(Tensor::to_bytes).collect();
        std::fs::write(&inputs, data).unwrap();
        match machine.run(&program, &[&files[..], &[i.to_string().as_ref()]].concat()) {
            Ok(()) => {
                compare(machine, std::slice::from_ref(case), &std::fs::read(&outputs).unwrap());
                ran += 1;
            }
            Err(said) => {
                assert!(said.contains(EMULATOR), "{}: {said}", case.name);
                let (name, target) = (&case.name, machine.target);
                tilewright_testing::skip(&format!(
                    "{name} for {target}: the emulator stops at an assertion of its own"
                ));
            }
        }
    }
    println!("{}: {ran} of {} models one by one", machine.target, cases.len());
    assert!(ran * 2 > cases.len(), "{}: only {ran} of {} models ran", machine.target, cases.len());
}

/// QEMU 7.2's error message for some programs with vectors.
const EMULATOR: &str = "decode_save_opc: Assertion `ctx->insn_start != NULL' failed";

fn compare(machine: &Machine, cases: &[Case], found: &[u8]) {
    let mut at = 0;
    let (mut wrong, mut integers) = (Vec::new(), 0);
    for Case { name, graph, inputs, .. } in cases {
        for (i, want) in eval(graph, inputs).unwrap().iter().enumerate() {
            let bytes = want.to_bytes().len();
            let got = Tensor::from_bytes(want.dtype(), want.shape(), &found[at..at + bytes]).unwrap();
            at += bytes;
            integers += usize::from(want.dtype() != DType::F32);
            let most = tolerance(want.dtype());
            let far = difference(&got, want);
            // A NaN is wrong, too.
            if far.is_nan() || far > most {
                wrong.push(format!("output {i} of {name} differs by {far}"));
            }
        }
    }
    assert_eq!(at, found.len(), "{}: outputs of another size", machine.target);
    println!("{}: {} models, {integers} outputs of integers", machine.target, cases.len());
    assert!(wrong.is_empty(), "{}:\n{}", machine.target, wrong.join("\n"));
}
