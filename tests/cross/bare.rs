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

/// Fills the stack below the caller with a pattern, and counts the bytes of it that were written since.
const STACK: &str = "enum { STACK = 32768 };
static uintptr_t painted;

__attribute__((noinline)) static void paint(void)
{
    volatile unsigned char area[STACK];
    for (int i = 0; i < STACK; i++) area[i] = 0xa5;
    painted = (uintptr_t)area;
}

static unsigned stack_bytes(void)
{
    const volatile unsigned char *area = (const volatile unsigned char *)painted;
    unsigned same = 0;
    while (same < STACK && area[same] == 0xa5) same++;
    return STACK - same;
}

";

/// A program that runs a model twice on its own inputs, compares the outputs, and prints how much stack the model used.
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
        "static uint64_t workspace[({upper}_WORKSPACE_BYTES + 7) / 8];\n\n{STACK}int main(void)\n{{\n    const void *inputs[] = \
         {{{}}};\n    void *outputs[] = {{{}}};\n    paint();\n    for (int run = 0; run < 2; run++) {{\n        memset(workspace, 0xa5, \
         sizeof workspace);\n        if ({name}_run(inputs, outputs, workspace) != 0) return 1;\n",
        list("input", inputs.len()),
        list("found", wanted.len())
    );
    for i in 0..wanted.len() {
        let _ = writeln!(text, "        if (memcmp(found{i}.bytes, wanted{i}.bytes, sizeof found{i}.bytes)) return 2;");
    }
    text + "    }\n    printf(\"stack %u\\n\", stack_bytes());\n    puts(\"all as it should be\");\n    return 0;\n}\n"
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
    let printed = run(folder, emulator, &options);
    assert!(printed.contains("all as it should be"), "{}: {printed}", bare.name);
    let stack = printed.lines().find_map(|line| line.trim().strip_prefix("stack ")?.parse().ok());
    let stack: u64 = stack.unwrap_or_else(|| panic!("{}: {printed}", bare.name));
    // A header line, then text, data and bss of each object.
    let sizes = run(folder, bare.size, &objects);
    let of_object = |line: &str| {
        let mut columns = line.split_whitespace().map(|word| word.parse::<u64>().ok());
        let [text, data, bss] = [columns.next()??, columns.next()??, columns.next()??];
        Some([text, data, bss])
    };
    let sizes: Vec<[u64; 3]> = sizes.lines().skip(1).filter_map(of_object).collect();
    assert_eq!(sizes.len(), objects.len(), "{}", bare.name);
    let code: u64 =
        objects.iter().zip(&sizes).filter(|(name, _)| !name.contains("_constants")).map(|(_, s)| s[0]).sum();
    let variables: u64 = sizes.iter().map(|[_, data, bss]| data + bss).sum();
    let header =
        String::from_utf8_lossy(&case.files.iter().find(|(name, _)| name.ends_with(".h")).unwrap().1).into_owned();
    let workspace = header.lines().find_map(|line| line.split_once("WORKSPACE_BYTES ")?.1.trim().parse().ok());
    let workspace: u64 = workspace.expect("the header has the size of the workspace");
    let ram = workspace + variables + stack;
    println!(
        "{} on {}: {ram} bytes of RAM (workspace {workspace}, variables {variables}, stack {stack}), {code} of code",
        case.name, bare.name
    );
    assert!(10 * ram <= 13 * workspace, "{} on {}: {ram} bytes of RAM for {workspace}", case.name, bare.name);
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
