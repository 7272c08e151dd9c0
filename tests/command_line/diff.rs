//! `diff`: equal sides, faults injected into programs, and arrays that do not fit.

use std::io::Write;
use std::path::Path;

use serde_json::Value as Json;
use tilewright_driver::Role;
use tilewright_hw::config::HwConfig;
use tilewright_hw::isa::{self, INSN_BYTES, Insn, Op, VecOp};
use tilewright_runtime::artifact::{AccelStep, Artifact, StepKind};
use tilewright_runtime::npy;
use tilewright_runtime::tensor::Tensor;
use tilewright_testing::proto::{field, number};

use crate::models::{carried, digits, lenet};
use crate::{Outcome, fine, refused, tilewright};

const RELU: &str = "/Relu_output_0_QuantizeLinear";
const POOL: &str = "/MaxPool_1";

/// A folder with lenet, compiled to `good.twa` with all values kept, and its values in `ref`.
fn prepared() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    let first = npy::read(Path::new(&digits())).unwrap();
    let one = Tensor { shape: vec![1, 1, 28, 28], bytes: first.bytes.slice(..28 * 28 * 4), ..first };
    npy::write(&dir.path().join("d.npy"), &one).unwrap();
    fine(dir.path(), &["compile", &lenet(), "-o", "good.twa", "--keep-values"]);
    fine(dir.path(), &["run", "good.twa", "--input", "d.npy", "--dump-tensors", "ref"]);
    dir
}

/// The accelerator's step of an artifact.
fn accel(artifact: &Artifact) -> AccelStep {
    let found = artifact.manifest.steps.iter().find_map(|step| match &step.kind {
        StepKind::Accel(accel) => Some(accel.clone()),
        _ => None,
    });
    found.expect("a step runs on the accelerator")
}

/// Writes `bad.twa`, in whose stream one instruction is changed, and returns the instruction's index.
fn patched(dir: &Path, change: impl Fn(&mut Insn) -> bool, which: usize) -> usize {
    let artifact = Artifact::read(&dir.join("good.twa")).unwrap();
    let config = HwConfig::load("1x16x16").unwrap();
    let stream = accel(&artifact).stream;
    let mut bytes = artifact.blob(stream).to_vec();
    let mut seen = 0;
    for (index, chunk) in bytes.chunks_exact_mut(INSN_BYTES).enumerate() {
        let mut insn = isa::decode(&(&*chunk).try_into().unwrap(), &config).unwrap();
        if change(&mut insn) {
            seen += 1;
            if seen > which {
                chunk.copy_from_slice(&isa::encode(&insn, &config).unwrap());
                artifact.with_blob(stream, bytes).unwrap().write(&dir.join("bad.twa")).unwrap();
                return index;
            }
        }
    }
    panic!("the stream has only {seen} such instructions");
}

/// Compares `bad.twa` with the reference: exit code 1 and the first difference.
fn first_difference(dir: &Path) -> Json {
    let arguments = ["diff", "bad.twa", "--b", "dir:ref", "--input", "d.npy", "--json"];
    let outcome = tilewright(dir, &arguments);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    let report: Json = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!(report["equal"], false);
    report["first"].clone()
}

/// The element's value in the reference.
fn reference(dir: &Path, name: &str, index: &Json) -> f64 {
    let tensor = npy::read(&dir.join("ref").join(name.replace('/', "_") + ".npy")).unwrap();
    let at = index.as_array().unwrap().iter().zip(&tensor.shape);
    tensor.get_f64(at.fold(0, |flat, (i, size)| flat * size + i.as_u64().unwrap() as usize))
}

#[test]
fn devices_and_configurations_that_agree_are_equal() {
    let dir = prepared();
    for [a, b] in [["rtl", "fsim"], ["csim", "rtl"], ["fsim", "csim"]] {
        let text = fine(dir.path(), &["diff", &lenet(), "--input", "d.npy", "--a", a, "--b", b]);
        assert_eq!(text, format!("main_graph: {a} and {b}, 10 values compared, 1 run(s)\nequal\n"));
    }
    fine(dir.path(), &["diff", &lenet(), "--input", "d.npy", "--a", "csim"]);
    let other = ["diff", &lenet(), "--b", "fsim", "--hw-b", "1x8x16"];
    let text = fine(dir.path(), &other);
    assert_eq!(text, "main_graph: fsim 1x16x16 and fsim 1x8x16, 10 values compared, 1 run(s)\nequal\n");
    let report = fine(dir.path(), &["diff", &lenet(), "--input", &digits(), "--json"]);
    let report: Json = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["equal"], &report["runs"], &report["first"]), (&true.into(), &32.into(), &Json::Null));
    assert_eq!(report["ordinary"], Json::Null);
    fine(dir.path(), &["diff", &lenet(), "-O3", "--input", "d.npy"]);
    fine(dir.path(), &["diff", "good.twa", "--input", "d.npy", "--b", "dir:ref"]);
}

#[test]
fn a_vector_operation_that_is_another_is_named() {
    let dir = prepared();
    let change = |insn: &mut Insn| match &mut insn.op {
        Op::Vector(x) if x.op == VecOp::Max => {
            x.op = VecOp::Min;
            true
        }
        _ => false,
    };
    // The program's last instruction of this kind belongs to the second pooling.
    let all = (0..).take_while(|n| std::panic::catch_unwind(|| patched(dir.path(), change, *n)).is_ok()).count();
    let index = patched(dir.path(), change, all - 1);
    let first = first_difference(dir.path());
    assert_eq!((&first["name"], &first["op"]), (&POOL.into(), &"max_pool2d".into()));
    assert_eq!(first["b"], reference(dir.path(), POOL, &first["index"]));
    assert_ne!(first["a"], first["b"]);
    let made = &first["a_made"]["made"];
    let makers: Vec<u64> = made["makers"].as_array().unwrap().iter().map(|m| m["index"].as_u64().unwrap()).collect();
    assert!(makers.contains(&(index as u64)), "{index} in {makers:?}");
    let rows = made["tile"]["rows"].as_array().unwrap();
    let row = first["index"][2].as_u64();
    assert!(rows[0].as_u64() <= row && row < rows[1].as_u64(), "{first}");
    // The output for people says the same, with the instruction as text.
    let outcome = tilewright(dir.path(), &["diff", "bad.twa", "--b", "dir:ref", "--input", "d.npy"]);
    assert_eq!(outcome.code, 1);
    assert!(outcome.stdout.contains("the first is /MaxPool_1 (max_pool2d, i8 1x16x5x5)"), "{}", outcome.stdout);
    assert!(outcome.stdout.contains(&format!("  {index:<9} vector op=min ")), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("store base="), "{}", outcome.stdout);
}

#[test]
fn a_requantization_and_a_store_that_read_elsewhere_are_named() {
    let dir = prepared();
    let index = patched(
        dir.path(),
        |insn| match &mut insn.op {
            Op::Vector(x) if x.op == VecOp::Requant => {
                x.a_at += 1;
                true
            }
            _ => false,
        },
        1,
    );
    let first = first_difference(dir.path());
    assert_eq!((&first["name"], &first["op"]), (&RELU.into(), &"requantize".into()));
    let makers = &first["a_made"]["made"]["makers"];
    assert_eq!(makers[0]["index"], index as u64, "{makers}");
    assert!(makers[0]["text"].as_str().unwrap().starts_with("vector op=requant "));
    assert!(makers[1]["text"].as_str().unwrap().starts_with("gemm "), "{makers}");

    let index = patched(
        dir.path(),
        |insn| match &mut insn.op {
            Op::Store(x) => {
                x.entry += 1;
                true
            }
            _ => false,
        },
        2,
    );
    let first = first_difference(dir.path());
    let made = &first["a_made"]["made"];
    assert_eq!((&first["name"], &made["store"]["index"]), (&RELU.into(), &(index as u64).into()));
    // The third store of the first value: its tile begins at the first element that differs.
    assert_eq!(made["store_number"], 3);
    let row = first["index"][2].as_u64().unwrap();
    assert_eq!(made["tile"]["rows"][0].as_u64().unwrap(), row, "{first}");
}

#[test]
fn a_weight_that_is_another_is_found_by_its_products() {
    let dir = prepared();
    let artifact = Artifact::read(&dir.path().join("good.twa")).unwrap();
    let step = accel(&artifact);
    let weights = step.program.sections.iter().find(|s| s.role == Role::Weights).unwrap();
    let mut bytes = artifact.blob(step.constants).to_vec();
    bytes[weights.offset as usize] ^= 0x40;
    artifact.with_blob(step.constants, bytes).unwrap().write(&dir.path().join("bad.twa")).unwrap();
    let first = first_difference(dir.path());
    assert_eq!(first["name"], RELU);
    // The first weight is that of the first output channel.
    assert_eq!(first["index"][1], 0);
    let makers = first["a_made"]["made"]["makers"].as_array().unwrap();
    assert!(makers.last().unwrap()["text"].as_str().unwrap().starts_with("gemm "), "{makers:?}");
}

/// Writes arrays as `.npz`.
fn npz(path: &Path, arrays: &[(&str, &Tensor)]) {
    let mut archive = zip::ZipWriter::new(std::fs::File::create(path).unwrap());
    for (name, tensor) in arrays {
        archive.start_file(format!("{name}.npy"), zip::write::SimpleFileOptions::default()).unwrap();
        archive.write_all(&npy::encode(tensor)).unwrap();
    }
    archive.finish().unwrap();
}

#[test]
fn arrays_are_found_by_any_name_and_compared_within_a_tolerance() {
    let dir = prepared();
    let relu = npy::read(&dir.path().join("ref/_Relu_output_0_QuantizeLinear.npy")).unwrap();
    let (mut bytes, at) = (relu.bytes.to_vec(), 3 * 784 + 5 * 28 + 7);
    bytes[at] = bytes[at].wrapping_add(1);
    let near = Tensor { bytes: bytes.into(), ..relu.clone() };
    // The model's values from another runtime: real numbers, under the tensor's name in the file.
    let real = relu.to_f64().iter().map(|q| ((q + 128.0) * 0.011253786) as f32).collect::<Vec<_>>();
    let real = Tensor::from_f32(relu.shape.clone(), &real).unwrap();
    npz(&dir.path().join("near.npz"), &[(RELU, &near)]);
    npz(&dir.path().join("real.npz"), &[("/Relu_output_0_QuantizeLinear_Output", &real)]);
    // Under two names: `diff` uses the integers, not the real numbers that differ by a step.
    let far = Tensor::from_f32(real.shape.clone(), &real.to_f64().iter().map(|x| *x as f32 + 1.0).collect::<Vec<_>>())
        .unwrap();
    npz(&dir.path().join("both.npz"), &[("/Relu_output_0_QuantizeLinear_Output", &far), (RELU, &relu)]);
    npz(&dir.path().join("same.npz"), &[("/Relu_output_0_QuantizeLinear_Output", &relu), (RELU, &relu)]);
    let model = lenet();
    let call = |file: &str, extra: &[&str]| -> Outcome {
        let b = format!("npz:{file}");
        tilewright(dir.path(), &[&["diff", &model, "--input", "d.npy", "--b", &b][..], extra].concat())
    };
    let outcome = call("near.npz", &[]);
    assert_eq!(outcome.code, 1, "{}", outcome.stderr);
    let value = |t: &Tensor| t.get_f64(at);
    let line = format!("element     [0, 3, 5, 7]: fsim {}, near.npz {}\n", value(&relu), value(&near));
    assert!(outcome.stdout.contains(&line), "{}", outcome.stdout);
    assert!(outcome.stdout.contains("differing   1 of 6272 elements, by at most 1\n"), "{}", outcome.stdout);
    assert_eq!(call("near.npz", &["--tolerance", "1"]).code, 0);
    assert_eq!(call("real.npz", &[]).code, 0);
    assert_eq!(call("both.npz", &[]).code, 0);
    assert_eq!(call("same.npz", &[]).code, 0);
}

#[test]
fn arrays_that_do_not_fit_are_refused() {
    let dir = prepared();
    let relu = npy::read(&dir.path().join("ref/_Relu_output_0_QuantizeLinear.npy")).unwrap();
    let flat = Tensor { shape: vec![relu.len()], ..relu.clone() };
    let wide = Tensor::new(tilewright_runtime::tensor::DType::I32, vec![1, 8, 28, 28], vec![0; 4 * 6272]).unwrap();
    npz(&dir.path().join("unknown.npz"), &[(RELU, &relu), ("nobody", &relu)]);
    npz(&dir.path().join("flat.npz"), &[(RELU, &flat)]);
    npz(&dir.path().join("wide.npz"), &[(RELU, &wide)]);
    let mut bytes = relu.bytes.to_vec();
    bytes[0] ^= 1;
    let other = Tensor { bytes: bytes.into(), ..relu.clone() };
    npz(&dir.path().join("twice.npz"), &[(RELU, &relu), ("/Relu_output_0_QuantizeLinear_Output", &other)]);
    npz(&dir.path().join("inside.npz"), &[("/Relu_output_0", &relu)]);
    std::fs::create_dir(dir.path().join("empty")).unwrap();
    std::fs::create_dir(dir.path().join("other")).unwrap();
    std::fs::write(dir.path().join("other/index.json"), "{}").unwrap();
    std::fs::write(dir.path().join("broken.npz"), "PK and no more").unwrap();
    let check = |b: &str, message: &str| {
        refused(dir.path(), &["diff", "good.twa", "--input", "d.npy", "--b", b], message);
    };
    check(
        "npz:unknown.npz",
        "unknown.npz has arrays that the model does not have: nobody; its values have names like input, \
         input_QuantizeLinear, /Relu_output_0_QuantizeLinear",
    );
    check(
        "npz:flat.npz",
        "array /Relu_output_0_QuantizeLinear of flat.npz has shape 6272, but value /Relu_output_0_QuantizeLinear has \
         1x8x28x28 in 1 run(s); save it in the model's own layout, with the inputs of the same runs",
    );
    check(
        "npz:wide.npz",
        "array /Relu_output_0_QuantizeLinear of wide.npz is i32, but value /Relu_output_0_QuantizeLinear is i8; \
         convert it with .astype",
    );
    check(
        "npz:twice.npz",
        "twice.npz has value /Relu_output_0_QuantizeLinear twice with different contents, as \
         /Relu_output_0_QuantizeLinear and as /Relu_output_0_QuantizeLinear_Output; leave one out",
    );
    check(
        "npz:d.npy",
        "d.npy is a single array, which has no name; give an .npz file with an array for each value, by its name",
    );
    check("npz:none.npz", "cannot read none.npz: No such file or directory (os error 2)");
    let make = "make one with: tilewright run MODEL --dump-tensors DIR";
    check("dir:none", &format!("none does not exist; {make}"));
    check("dir:d.npy", &format!("d.npy is not a folder; {make}"));
    check("dir:empty", &format!("empty has no readable index.json (No such file or directory (os error 2)); {make}"));
    check("dir:other", &format!("other has an index.json in another format; {make}"));
    let outcome = tilewright(dir.path(), &["diff", "good.twa", "--input", "d.npy", "--b", "npz:broken.npz"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.starts_with("error: broken.npz is not a usable NumPy file: "), "{}", outcome.stderr);
    // A tensor of the file that is not a value of the compiled model is ignored. If it is the only one, that is an
    // error.
    refused(
        dir.path(),
        &["diff", &lenet(), "--input", "d.npy", "--b", "npz:inside.npz"],
        "none of the 1 arrays in inside.npz is a value that can be compared; `run --dump-tensors DIR` lists those \
         that can",
    );
    refused(
        dir.path(),
        &["diff", "good.twa", "--hw-b", "1x8x8"],
        "--hw-b is for an accelerator; leave it out, or give --b fsim, --b csim or --b rtl",
    );
    refused(
        dir.path(),
        &["diff", "good.twa", "--input", "d.npy"],
        "good.twa is compiled for an accelerator, so --b cpu cannot run it; give --b csim, --b rtl, --b dir:DIR, --b npz:FILE or the \
         model's file",
    );
    refused(
        dir.path(),
        &["diff", "good.twa", "--a", "cpu", "--b", "rtl"],
        "good.twa is compiled for an accelerator, so --a cpu cannot run it; give --a fsim, --a csim, --a rtl or the model's file",
    );
    let outcome = tilewright(dir.path(), &["diff", "good.twa", "--b", "gpu"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("or npz:FILE or dir:DIR for arrays"), "{}", outcome.stderr);
    let outcome = tilewright(dir.path(), &["diff", "good.twa", "--tolerance", "few"]);
    assert!(outcome.code == 2 && outcome.stderr.contains("few is not a tolerance"), "{}", outcome.stderr);
}

/// A float model of four elements from `x` to `y`: a relu, two identities and a softmax.
fn identities() -> Vec<u8> {
    let node = |op: &[u8], x: &[u8], y: &[u8]| field(1, &[field(1, x), field(2, y), field(4, op)].concat());
    let shape = [1u8, 4].map(|size| field(1, &number(1, size))).concat();
    let ty = field(2, &field(1, &[number(1, 1), field(2, &shape)].concat()));
    let value = |name: &[u8]| [field(1, name), ty.clone()].concat();
    let graph = [
        node(b"Relu", b"x", b"r"),
        node(b"Identity", b"r", b"a"),
        node(b"Identity", b"a", b"b"),
        node(b"Softmax", b"b", b"y"),
        field(2, b"g"),
        field(11, &value(b"x")),
        field(12, &value(b"y")),
    ];
    [number(1, 8), field(8, &number(2, 13)), field(7, &graph.concat())].concat()
}

#[test]
fn every_name_of_a_value_finds_it() {
    let dir = tempfile::tempdir().unwrap();
    let array = |name: &str, numbers: &[f32]| {
        let tensor = Tensor::from_f32(vec![1, 4], numbers).unwrap();
        npy::write(&dir.path().join(name), &tensor).unwrap();
        tensor
    };
    std::fs::write(dir.path().join("m.onnx"), identities()).unwrap();
    array("x.npy", &[0.5, -1.0, 2.0, 1.0]);
    let (right, wrong) = (array("right.npy", &[0.5, 0.0, 2.0, 1.0]), array("wrong.npy", &[0.5, 0.0, 2.0, 1.5]));
    let call = |arrays: &[(&str, &Tensor)]| {
        npz(&dir.path().join("r.npz"), arrays);
        tilewright(dir.path(), &["diff", "m.onnx", "--input", "x.npy", "--b", "npz:r.npz"]).code
    };
    for name in ["r", "a", "b"] {
        assert_eq!(call(&[(name, &right)]), 0, "{name}");
        assert_eq!(call(&[(name, &wrong)]), 1, "{name}");
    }
    assert_eq!(call(&[("r", &right), ("a", &right), ("b", &right)]), 0);
}

#[test]
fn a_model_compiles_to_the_same_bytes_each_time() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("m.onnx"), identities()).unwrap();
    let artifact = |_| {
        fine(dir.path(), &["compile", "m.onnx", "-o", "m.twa", "--keep-values"]);
        std::fs::read(dir.path().join("m.twa")).unwrap()
    };
    let all: Vec<Vec<u8>> = (0..6).map(artifact).collect();
    assert!(all.iter().all(|bytes| *bytes == all[0]));
}

#[test]
fn a_model_without_inputs_has_nothing_to_compare() {
    let dir = tempfile::tempdir().unwrap();
    let tensor = [number(1, 2), number(2, 1), field(8, b"c"), field(4, &[0; 8])].concat();
    let node = [field(1, b"c"), field(2, b"y"), field(4, b"Relu")].concat();
    let graph = [field(1, &node), field(2, b"g"), field(5, &tensor), field(12, &field(1, b"y"))].concat();
    let model = [number(1, 8), field(8, &number(2, 13)), field(7, &graph)].concat();
    std::fs::write(dir.path().join("m.onnx"), model).unwrap();
    let report = fine(dir.path(), &["run", "m.onnx", "--device", "cpu", "--json"]);
    let report: Json = serde_json::from_str(&report).unwrap();
    assert_eq!((&report["runs"], &report["outputs"][0]["shape"]), (&1.into(), &serde_json::json!([2])));
    refused(
        dir.path(),
        &["diff", "m.onnx"],
        "m.onnx: the two sides have no value in common; give a model that computes something from its inputs",
    );
}

#[test]
fn a_model_of_the_folder_agrees_on_both_devices() {
    let dir = tempfile::tempdir().unwrap();
    fine(dir.path(), &["diff", &carried("tflite-ops/residual_block.tflite"), "--hw", "1x8x8"]);
}
