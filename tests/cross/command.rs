//! Messages of the command line.

use std::process::Command;

/// Runs the program, and returns its exit code and standard error.
fn tilewright(arguments: &[&str]) -> (i32, String) {
    let done = Command::new(env!("CARGO_BIN_EXE_tilewright")).args(arguments).output().unwrap();
    (done.status.code().unwrap_or(-1), String::from_utf8_lossy(&done.stderr).into_owned())
}

#[test]
fn an_artifact_for_another_processor_is_refused_by_name() {
    let folder = tempfile::tempdir().unwrap();
    let other = if cfg!(target_arch = "aarch64") { "riscv64-linux-gnu" } else { "aarch64-linux-gnu,+dotprod" };
    let file = folder.path().join("lenet.tw");
    let file = file.to_str().unwrap();
    let (code, text) = tilewright(&["compile", "zoo:lenet", "--offload", "none", "--cpu-target", other, "-o", file]);
    assert_eq!(code, 0, "{text}");
    let (code, text) = tilewright(&["run", file, "--device", "cpu", "--input", "random"]);
    assert_eq!(code, 2, "{text}");
    let architecture = other.split('-').next().unwrap();
    for part in [&format!("lacks the instructions of {architecture}")[..], "without --cpu-target"] {
        assert!(text.contains(part), "{part} is not in {text}");
    }
}

#[test]
fn what_cannot_be_is_told_with_what_can() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("lenet");
    let out = out.to_str().unwrap();
    let all = ["compile", "zoo:lenet", "-o", out];
    for (more, want) in [
        (
            &["--cpu-target", "mips"][..],
            "CPU target `mips` is not supported; use one of x86_64-linux-gnu, aarch64-linux-gnu, armv7-linux-gnueabihf, riscv64-linux-gnu, \
             wasm32",
        ),
        (&["--cpu-target", "aarch64-linux-gnu,+v"], "no `+v`; use cpu=NAME, or +FEATURE with one of dotprod"),
        (&["--cpu-target", "riscv64-linux-gnu,cpu=z80"], "no processor `z80`; use one of generic-rv64"),
        (&["--cpu-target", "riscv64-linux-gnu", "--measure"], "--measure measures this machine's CPU"),
        (&["--cpu-target", "wasm32"], "--cpu-target wasm32 is for WebAssembly modules; add --emit wasm"),
        (&["--emit", "wasm", "--cpu-target", "aarch64-linux-gnu"], "--emit wasm writes code for wasm32"),
        (&["--emit", "wasm", "--measure"], "leave out --measure"),
        (&["--emit", "wasm", "--params", "p"], "leave out --params"),
        (&["--emit", "object", "--measure"], "leave out --measure"),
        (&["--emit", "object", "--fallback", "cuda"], "leave out --fallback cuda"),
    ] {
        let (code, text) = tilewright(&[&all[..], more].concat());
        assert_eq!(code, 2, "{more:?}: {text}");
        assert!(text.contains(want), "{want} is not in {text}");
        assert!(!folder.path().join("lenet").exists(), "{more:?} wrote something");
    }
}

#[test]
fn a_folder_of_objects_has_what_its_header_says() {
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("le-net");
    let target = ["--emit", "object", "--cpu-target", "riscv64-linux-gnu"];
    let (code, text) = tilewright(&[&["compile", "zoo:lenet", "-o", out.to_str().unwrap()][..], &target].concat());
    assert_eq!(code, 0, "{text}");
    let mut names: Vec<String> =
        std::fs::read_dir(&out).unwrap().map(|e| e.unwrap().file_name().to_string_lossy().into_owned()).collect();
    names.sort();
    assert_eq!(names, ["le_net.c", "le_net.h", "le_net_code0.o", "le_net_constants.o", "tilewright_imports.c"]);
    let header = std::fs::read_to_string(out.join("le_net.h")).unwrap();
    assert!(header.contains("for riscv64-unknown-linux-gnu generic-rv64 +m,+a,+f,+d,+c"), "{header}");
}

/// The module has the artifact in it, and imports only what the runtime provides. Node says whether it is valid.
#[test]
fn a_webassembly_module_is_one() {
    if let Err(error) = tilewright::model::wasm::WasmLinker::find() {
        return tilewright_testing::skip(&error.to_string());
    }
    let folder = tempfile::tempdir().unwrap();
    let out = folder.path().join("lenet.wasm");
    let (code, text) = tilewright(&["compile", "zoo:lenet-int8", "--emit", "wasm", "-o", out.to_str().unwrap()]);
    assert_eq!(code, 0, "{text}");
    let module = std::fs::read(&out).unwrap();
    let has = |text: &[u8]| module.windows(text.len()).any(|part| part == text);
    assert!(module.starts_with(b"\0asm") && has(b"tilewright.artifact") && has(b"TILEWRGT"));
    if !tilewright_testing::has_optional("node", "run scripts/setup.sh --wasm") {
        return;
    }
    let script = "const module = new WebAssembly.Module(require('fs').readFileSync(process.argv[1])); \
                  const names = (list) => list.map((entry) => entry.name).join(' '); \
                  console.log(names(WebAssembly.Module.imports(module)), '|', names(WebAssembly.Module.exports(module)))";
    let found = Command::new("node").args(["-e", script]).arg(&out).output().unwrap();
    assert_eq!(
        String::from_utf8_lossy(&found.stdout),
        "memory __memory_base __table_base | __wasm_call_ctors tw_0_quantize tw_r1_0_dequantize\n",
        "{}",
        String::from_utf8_lossy(&found.stderr)
    );
}
