//! Models in C99 on emulated processors without an operating system: a Cortex-M3 and a 64-bit RISC-V core.

use std::fmt::Write;
use std::path::Path;
use std::process::Command;

use tilewright::model;
use tilewright_compiler::graph::{Tensor, eval};

use crate::programs::{Case, of_file};

/// A processor with its compiler, and how QEMU emulates it.
struct Bare {
    name: &'static str,
    compiler: &'static str,
    size: &'static str,
    options: &'static [&'static str],
    /// Where flash and RAM begin.
    memory: [u32; 2],
    emulator: &'static [&'static str],
}

const PROCESSORS: [Bare; 2] = [
    Bare {
        name: "Cortex-M3",
        compiler: "arm-none-eabi-gcc",
        size: "arm-none-eabi-size",
        options: &["-mcpu=cortex-m3", "-mthumb"],
        memory: [0, 0x2000_0000],
        emulator: &["qemu-system-arm", "-M", "mps2-an385"],
    },
    Bare {
        name: "RISC-V (rv64imac)",
        compiler: "riscv64-unknown-elf-gcc",
        size: "riscv64-unknown-elf-size",
        options: &["-march=rv64imac", "-mabi=lp64", "-mcmodel=medany"],
        memory: [0x8000_0000, 0x8040_0000],
        emulator: &["qemu-system-riscv64", "-M", "virt", "-bios", "none"],
    },
];

/// A program that runs a model twice on its own inputs and compares the outputs.
fn main_of(case: &Case) -> String {
    let Case { name, graph, inputs, .. } = case;
    let upper = name.to_uppercase();
    let mut text = format!("#include <stdio.h>\n#include <string.h>\n#include <stdint.h>\n#include \"{name}.h\"\n");
    let mut array = |what: &str, tensors: &[Tensor]| {
        for (i, tensor) in tensors.iter().enumerate() {
            let bytes: Vec<String> = tensor.to_bytes().iter().map(u8::to_string).collect();
            // Aligned for every element, as the header asks.
            let _ = writeln!(
                text,
                "static const union {{ unsigned char bytes[{}]; uint64_t word; }} {what}{i} = {{{{{}}}}};",
                bytes.len(),
                bytes.join(",")
            );
        }
    };
    let wanted = eval(graph, inputs).unwrap();
    array("input", inputs);
    array("wanted", &wanted);
    let list = |what: &str, n: usize| (0..n).map(|i| format!("{what}{i}.bytes")).collect::<Vec<_>>().join(", ");
    for (i, tensor) in wanted.iter().enumerate() {
        let bytes = tensor.to_bytes().len();
        let _ = writeln!(text, "static union {{ unsigned char bytes[{bytes}]; uint64_t word; }} found{i};");
    }
    let _ = write!(
        text,
        "static uint64_t workspace[({upper}_WORKSPACE_BYTES + 7) / 8];\n\nint main(void)\n{{\n    const void *inputs[] = \
         {{{}}};\n    void *outputs[] = {{{}}};\n    for (int run = 0; run < 2; run++) {{\n        memset(workspace, 0xa5, \
         sizeof workspace);\n        if ({name}_run(inputs, outputs, workspace) != 0) return 1;\n",
        list("input", inputs.len()),
        list("found", wanted.len())
    );
    for i in 0..wanted.len() {
        let _ = writeln!(text, "        if (memcmp(found{i}.bytes, wanted{i}.bytes, sizeof found{i}.bytes)) return 2;");
    }
    text + "    }\n    puts(\"all as it should be\");\n    return 0;\n}\n"
}

/// Runs a command in a folder, and returns what it prints.
fn run(folder: &Path, program: &str, arguments: &[String]) -> String {
    let done = Command::new(program).current_dir(folder).args(arguments).output();
    let done = done.unwrap_or_else(|e| panic!("{program}: {e}"));
    let said = String::from_utf8_lossy(&done.stderr);
    assert!(done.status.success(), "{program} {arguments:?}: {:?} {said}", done.status);
    // QEMU prints what programs print on standard error.
    String::from_utf8_lossy(&done.stdout).into_owned() + &said
}

fn runs(bare: &Bare, case: &Case) {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    for (name, bytes) in &case.files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    std::fs::write(folder.join("main.c"), main_of(case)).unwrap();
    let own = |words: &[&str]| words.iter().map(ToString::to_string).collect::<Vec<_>>();
    let sources = case.files.iter().map(|(name, _)| name.clone()).filter(|name| name.ends_with(".c"));
    let sources: Vec<String> = sources.collect();
    let mut compile = own(&["--specs=picolibc.specs", "-std=c99", "-Os", "-Wall", "-Wextra", "-Wpedantic", "-Werror"]);
    compile.extend(own(bare.options));
    let mut objects = Vec::new();
    for source in &sources {
        let object = source.replace(".c", ".o");
        run(
            folder,
            bare.compiler,
            &[&compile[..], &["-c".into(), source.clone(), "-o".into(), object.clone()]].concat(),
        );
        objects.push(object);
    }
    let mut link = compile.clone();
    link.extend(own(&["--oslib=semihost", "--crt0=hosted", "-Tpicolibc.ld"]));
    for (symbol, value) in [("flash", bare.memory[0]), ("ram", bare.memory[1])] {
        link.push(format!("-Wl,--defsym=__{symbol}={value:#x}"));
        link.push(format!("-Wl,--defsym=__{symbol}_size=0x400000"));
    }
    link.extend(own(&["-o", "program", "main.c"]));
    link.extend(objects.iter().cloned());
    link.push("-lm".into());
    run(folder, bare.compiler, &link);
    let (emulator, options) = bare.emulator.split_first().unwrap();
    let mut options = own(options);
    options.extend(own(&["-nographic", "-semihosting-config", "enable=on,target=native", "-kernel", "program"]));
    assert!(run(folder, emulator, &options).contains("all as it should be"), "{}", bare.name);
    // Sizes: text, data and bss of each object.
    let code: Vec<String> = objects.iter().filter(|name| !name.contains("_constants")).cloned().collect();
    let header =
        String::from_utf8_lossy(&case.files.iter().find(|(name, _)| name.ends_with(".h")).unwrap().1).into_owned();
    let workspace = header.lines().find(|line| line.contains("WORKSPACE_BYTES ")).unwrap_or_default();
    println!("{}: {}\n{}", bare.name, workspace, run(folder, bare.size, &code));
}

#[test]
#[ignore = "emulates two processors without an operating system, a minute"]
fn models_in_c_run_without_an_operating_system() {
    let lenet = of_file("lenet", &super::repository("lenet-mnist/model_qdq_perchannel.onnx"), model::C99);
    let resnet = tilewright_testing::model("resnet8-cifar10/model_int8.tflite");
    let resnet = resnet.map(|file| of_file("resnet8", &file, model::C99));
    for bare in &PROCESSORS {
        let programs = [bare.compiler, bare.emulator[0]];
        if !programs.iter().all(|p| tilewright_testing::has_optional(p, "run `scripts/setup.sh --cross`")) {
            continue;
        }
        // The outputs of lenet are floats, which a library's functions may round differently; resnet's are integers.
        if let Some(resnet) = &resnet {
            runs(bare, resnet);
        }
        runs(bare, &lenet);
    }
}
