//! Models exported as objects and C ([`tilewright::model::export`]). For this machine's processor they are linked and
//! run. For others they are inspected, and linked and run if cross compilers and an emulator are installed
//! (`scripts/setup.sh --cross`).

#![cfg(feature = "llvm")]

mod accelerator;
mod bare;
mod command;
mod programs;

use std::path::{Path, PathBuf};

use programs::{Case, Machine, case, check, graph_of, networks, operators};
use tilewright_compiler::suite::problems;
use tilewright_runtime::loader::{HELPERS_OF_ARM32, ImportTable, needs};

/// Path of a model file in the repository.
fn repository(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models").join(path)
}

/// Processor numbers in ELF files.
const NUMBERS: [(&str, u16); 4] =
    [("x86_64-linux-gnu", 62), ("aarch64-linux-gnu", 183), ("armv7-linux-gnueabihf", 40), ("riscv64-linux-gnu", 243)];

#[test]
fn objects_are_for_their_processor_and_call_what_is_listed() {
    let file = repository("lenet-mnist/model_qdq_perchannel.onnx");
    let allowed: Vec<&str> = ImportTable::standard().names().chain(HELPERS_OF_ARM32.iter().copied()).collect();
    for (target, number) in NUMBERS {
        for features in ["", ",+avx2", ",+dotprod", ",+v", ",+zvl256b"] {
            let text = format!("{target}{features}");
            if tilewright_llvm::Processor::named(&text).is_err() {
                continue;
            }
            let Case { files, .. } = case("lenet", graph_of(&file), Vec::new(), &text);
            let (objects, others): (Vec<_>, Vec<_>) = files.iter().partition(|(name, _)| name.ends_with(".o"));
            assert_eq!(objects.len(), 2, "{text}");
            for (name, bytes) in objects {
                let needs = needs(bytes).unwrap();
                assert_eq!(needs.machine, number, "{text}: {name}");
                assert!(needs.imports.iter().all(|i| allowed.contains(&i.as_str())), "{text}: {:?}", needs.imports);
            }
            let names: Vec<&str> = others.iter().map(|(name, _)| name.as_str()).collect();
            assert_eq!(names, ["lenet.h", "lenet.c", "tilewright_imports.c"]);
            let header = String::from_utf8(others[0].1.clone()).unwrap();
            for line in [
                "#define LENET_INPUTS 1",
                "#define LENET_INPUT_0_BYTES 3136",
                "#define LENET_OUTPUT_0_BYTES 40",
                "int lenet_run(const void *const *inputs, void *const *outputs, void *workspace);",
            ] {
                assert!(header.contains(line), "{line} is not in\n{header}");
            }
        }
    }
}

/// Needs no package, only this machine's C compiler.
#[test]
fn exported_models_run_in_a_program_of_this_machine() {
    let Some(machine) = Machine::own() else {
        return tilewright_testing::skip("CPU code is not exported for this machine");
    };
    let mut cases: Vec<Case> = ["lenet-mnist/model.onnx", "lenet-mnist/model_qdq_perchannel.onnx"]
        .iter()
        .enumerate()
        .map(|(i, file)| programs::of_file(&format!("lenet{i}"), &repository(file), machine.target))
        .collect();
    let some = problems(5, 1).unwrap().into_iter().step_by(3);
    cases.extend(programs::each(some, machine.target));
    check(&machine, &cases);
}

/// Portable C99, compiled by this machine's compiler.
#[test]
fn models_in_c_run_in_a_program_of_this_machine() {
    let machine = Machine::portable("cc", &[]);
    let files = ["lenet-mnist/model.onnx", "lenet-mnist/model_qdq_perchannel.onnx"];
    let mut cases: Vec<Case> = (0..)
        .zip(files)
        .map(|(i, file)| programs::of_file(&format!("lenet{i}"), &repository(file), machine.target))
        .collect();
    cases.extend(tilewright_testing::model("resnet8-cifar10/model_int8.tflite").map(|file| {
        let case = programs::of_file("resnet8", &file, machine.target);
        let header = case.files.iter().find(|(name, _)| name == "resnet8.h").unwrap();
        let text = String::from_utf8_lossy(&header.1).into_owned();
        assert!(text.contains("no operating system and no heap"), "{text}");
        case
    }));
    cases.extend(programs::each(problems(5, 1).unwrap().into_iter().step_by(3), machine.target));
    check(&machine, &cases);
}

#[test]
#[ignore = "compiles every operator and some networks to C, for this machine and for a 32-bit one"]
fn every_operator_runs_in_c() {
    check(&Machine::portable("cc", &[]), &operators("c99"));
    check(&Machine::portable("cc", &[]), &networks("c99"));
    if Machine::emulated("armv7-linux-gnueabihf", "arm-linux-gnueabihf-gcc", &["qemu-arm-static"]).is_some() {
        check(&Machine::portable("arm-linux-gnueabihf-gcc", &["qemu-arm-static"]), &networks("c99"));
    }
}

macro_rules! emulated {
    ($($(#[$doc:meta])* $name:ident = $target:literal, $compiler:literal, $emulator:expr;)*) => {
        $($(#[$doc])*
        #[test]
        #[ignore = "compiles every operator and some networks for another processor and emulates it, a minute or two"]
        fn $name() {
            let Some(machine) = Machine::emulated($target, $compiler, &$emulator) else { return };
            check(&machine, &operators(machine.target));
            check(&machine, &networks(machine.target));
        })*
    };
}

emulated! {
    /// A processor without dot products, so that a dot product would be an illegal instruction.
    arm = "aarch64-linux-gnu", "aarch64-linux-gnu-gcc", ["qemu-aarch64-static", "-cpu", "cortex-a53"];
    arm_with_dot_products = "aarch64-linux-gnu,cpu=neoverse-n1", "aarch64-linux-gnu-gcc",
        ["qemu-aarch64-static", "-cpu", "neoverse-n1"];
    arm_of_32_bits_with_vectors = "armv7-linux-gnueabihf,+neon", "arm-linux-gnueabihf-gcc",
        ["qemu-arm-static", "-cpu", "cortex-a9"];
    /// A processor without vectors and without instructions to divide.
    arm_of_32_bits = "armv7-linux-gnueabihf", "arm-linux-gnueabihf-gcc", ["qemu-arm-static", "-cpu", "cortex-a9"];
    risc_v = "riscv64-linux-gnu", "riscv64-linux-gnu-gcc", ["qemu-riscv64-static", "-cpu", "rv64,v=false,zba=false,zbb=false"];
    risc_v_with_vectors = "riscv64-linux-gnu,+v", "riscv64-linux-gnu-gcc",
        ["qemu-riscv64-static", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=128"];
    /// Code for vectors of a known larger length, on a processor with even longer vectors.
    risc_v_with_longer_vectors = "riscv64-linux-gnu,+zvl256b,+zba,+zbb,+zbs", "riscv64-linux-gnu-gcc",
        ["qemu-riscv64-static", "-cpu", "rv64,v=true,vext_spec=v1.0,vlen=512,zba=true,zbb=true,zbs=true"];
}
