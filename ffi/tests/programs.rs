//! Programs in C and C++ against the library: each is compiled with all warnings, linked with the library of this
//! build, and run.

#[path = "programs/fuzz.rs"]
mod fuzz;
#[path = "programs/remote.rs"]
mod remote;

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tilewright::model::library::Linker;
use tilewright::model::{self, inference, zoo};
use tilewright_hw::config::HwConfig;
use tilewright_runtime::{Artifact, Registry, Session};
use tilewright_sim::Fsim;

fn here() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// The folder of the library that cargo has built for these tests.
fn library() -> PathBuf {
    // It is next to the tests.
    let test = std::env::current_exe().expect("the test has a path");
    test.parent().expect("it is in a folder").to_path_buf()
}

fn compile(source: &Path, program: &Path) {
    compile_with(source, program, &[]);
}

/// Compiles a program with further arguments of the compiler.
fn compile_with(source: &Path, program: &Path, more: &[String]) {
    let is_cpp = source.extension().is_some_and(|e| e == "cpp");
    let (compiler, standard) = if is_cpp { ("c++", "-std=c++17") } else { ("cc", "-std=c99") };
    let library = library();
    let output = Command::new(compiler)
        .args([standard, "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-O1", "-pthread"])
        .arg("-I")
        .arg(here().join("../include"))
        .arg(source)
        .arg("-o")
        .arg(program)
        .arg("-L")
        .arg(&library)
        .args(more)
        .arg("-ltilewright_c")
        // Comes before LD_LIBRARY_PATH, in which cargo puts a folder that may have a library of an earlier build.
        .arg(format!("-Wl,--disable-new-dtags,-rpath,{}", library.display()))
        .output()
        .expect("the compiler runs");
    assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
}

fn run(command: &mut Command) -> Output {
    let output = command.output().expect("the program runs");
    let error = String::from_utf8_lossy(&output.stderr);
    assert!(output.status.success(), "{:?}: {error}", output.status);
    output
}

const RIGHT: &str = "all as it should be\n";

/// Compiles one of the programs next to this file and runs it.
fn passes(source: &str, args: &[&Path]) {
    let dir = tempfile::tempdir().expect("a folder");
    let program = dir.path().join("program");
    compile(&here().join("tests").join(source), &program);
    let output = run(Command::new(&program).args(args).current_dir(here()));
    assert_eq!(String::from_utf8_lossy(&output.stdout), RIGHT);
}

/// Every function of the header, with right and wrong arguments, from one thread and from several.
#[test]
fn the_interface_does_what_the_header_says() {
    passes("interface.c", &[]);
}

#[test]
fn the_layer_for_cpp_throws_and_frees() {
    passes("wrapper.cpp", &[]);
}

/// A network in `dir`, with an input and what the session in Rust answers, as raw elements.
fn network(dir: &Path) -> [PathBuf; 3] {
    let file = zoo::find("lenet-int8").and_then(|entry| entry.extract(dir)).expect("the zoo has it");
    let config = HwConfig::load("1x8x8").expect("a preset");
    let graph = model::import(&file, model::Sizes::default()).expect("it is read");
    let artifact = model::build(graph, &model::Options::new(&config), &mut |_, _| {}).expect("it compiles");
    let inputs = inference::made_up(&artifact.manifest.input_values());
    let device = Box::new(Fsim::new(config.clone(), config.memory_bytes()));
    let mut session = Session::new(artifact.clone(), &Registry::new(), Some(device)).expect("it opens");
    let (outputs, _) = session.run(&inputs).expect("it runs");
    let paths = ["lenet.tw", "input", "output"].map(|name| dir.join(name));
    artifact.write(&paths[0]).expect("the folder can be written");
    std::fs::write(&paths[1], &inputs[0].bytes).expect("the folder can be written");
    std::fs::write(&paths[2], &outputs[0].bytes).expect("the folder can be written");
    paths
}

/// A library with a model in it runs in an empty root that has only the program, the libraries and libc.
#[test]
fn a_model_in_a_library_runs_beside_the_runtime_library_alone() {
    let Some(models) = std::env::var_os("TILEWRIGHT_MODELS") else {
        return tilewright_testing::skip("set TILEWRIGHT_MODELS to the folder of models");
    };
    let file = Path::new(&models).join("resnet8-cifar10/model_int8.tflite");
    let target = format!("{}-linux-gnu", std::env::consts::ARCH);
    let linker = match Linker::find(&target) {
        Ok(linker) => linker,
        Err(error) => return tilewright_testing::skip(&error.to_string()),
    };
    let dir = tempfile::tempdir().expect("a folder");
    let dir = dir.path();
    let config = HwConfig::load("1x8x8").expect("a preset");
    let graph = model::import(&file, model::Sizes::default()).expect("it is read");
    let options = model::Options { offload: model::Offload::None, ..model::Options::new(&config) };
    let artifact = model::build(graph, &options, &mut |_, _| {}).expect("it compiles");
    let inputs = inference::made_up(&artifact.manifest.input_values());
    let mut session = Session::new(artifact.clone(), &Registry::new(), None).expect("it opens");
    let (outputs, _) = session.run(&inputs).expect("it runs");
    let object = |name: &str, bytes: &[u8]| model::library_object(&target, name, bytes);
    let files = model::library::files(&artifact, &dir.join("libresnet8.so"), &linker, &object).expect("it links");
    for (path, bytes) in files {
        std::fs::write(path, bytes).expect("the folder can be written");
    }
    let program = dir.join("program");
    let more = ["-I".into(), dir.display().to_string(), "-L".into(), dir.display().to_string(), "-lresnet8".into()];
    compile_with(&here().join("tests/library.c"), &program, &more);

    let root = dir.join("root");
    std::fs::create_dir(&root).expect("a new folder");
    let put = |from: &Path, to: &str| {
        let to = root.join(to);
        std::fs::create_dir_all(to.parent().expect("it has a folder")).expect("a folder");
        std::fs::copy(from, to).unwrap_or_else(|error| panic!("{}: {error}", from.display()));
    };
    put(&program, "program");
    put(&dir.join("libresnet8.so"), "lib/libresnet8.so");
    put(&library().join("libtilewright_c.so"), "lib/libtilewright_c.so");
    // What the runtime library needs: the C library in its parts, and the loader of programs.
    let needed = run(Command::new("ldd").arg(library().join("libtilewright_c.so")));
    for word in String::from_utf8_lossy(&needed.stdout).split_whitespace().filter(|word| word.starts_with('/')) {
        let name = Path::new(word).file_name().expect("a file").to_string_lossy().into_owned();
        let of_libc = ["libc.so", "libm.so", "libgcc_s.so", "ld-linux"].iter().any(|part| name.starts_with(part));
        assert!(of_libc, "the runtime library needs {word}");
        put(Path::new(word), &if name.starts_with("ld-linux") { word[1..].to_string() } else { format!("lib/{name}") });
    }
    std::fs::write(root.join("input"), &inputs[0].bytes).expect("the folder can be written");
    std::fs::write(root.join("output"), &outputs[0].bytes).expect("the folder can be written");
    let mut inside = Command::new("unshare");
    inside.args(["--user", "--map-root-user", "chroot"]).arg(&root).args(["/program", "/input", "/output"]);
    if !Command::new("unshare").args(["--user", "--map-root-user", "true"]).output().is_ok_and(|o| o.status.success()) {
        inside = Command::new("chroot");
        inside.arg(&root).args(["/program", "/input", "/output"]);
        // Only root may change the root.
        if !Command::new("chroot").arg("/").arg("true").output().is_ok_and(|o| o.status.success()) {
            return tilewright_testing::skip("this system lets no program change its root");
        }
    }
    let output = run(inside.env("LD_LIBRARY_PATH", "/lib"));
    assert_eq!(String::from_utf8_lossy(&output.stdout), RIGHT);
}

#[test]
fn a_network_answers_in_c_as_in_rust() {
    let dir = tempfile::tempdir().expect("a folder");
    let [artifact, input, output] = network(dir.path());
    let (code, parameters) = (dir.path().join("code.tw"), dir.path().join("moved"));
    Artifact::read(&artifact)
        .expect("it was written")
        .write_apart(&code, &dir.path().join("parameters"))
        .expect("room");
    std::fs::rename(dir.path().join("parameters"), &parameters).expect("it was written");
    passes("session.c", &[&artifact, &input, &output, &code, &parameters]);

    // The example of the page.
    let program = dir.path().join("infer");
    compile(&here().join("../examples/c/infer.c"), &program);
    let given = || std::fs::File::open(&input).expect("it was written");
    for device in ["fsim", "csim"] {
        let found = run(Command::new(&program).arg(&artifact).arg(device).stdin(given()));
        assert_eq!(found.stdout, std::fs::read(&output).expect("it was written"), "{device}");
    }
    let refused = Command::new(&program).arg(&artifact).arg("tpu").stdin(given()).output().expect("it runs");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert!(
        !refused.status.success()
            && text.contains("there is no device tpu here; there are: csim, fsim, remote, serial"),
        "{text}"
    );
}

/// Runs a program of another language on the network in a folder: it answers as Rust does, and tells an unknown device.
fn infers(program: &mut dyn FnMut() -> Command, [artifact, input, output]: &[PathBuf; 3]) {
    let given = || std::fs::File::open(input).expect("it was written");
    for device in ["fsim", "csim"] {
        let found = run(program().arg(artifact).arg(device).stdin(given()));
        assert_eq!(found.stdout, std::fs::read(output).expect("it was written"), "{device}");
    }
    let refused = program().arg(artifact).arg("tpu").stdin(given()).output().expect("it runs");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!((refused.status.code(), text.contains("there is no device tpu here")), (Some(1), true), "{text}");
    let half = &std::fs::read(input).expect("it was written")[..100];
    std::fs::write(artifact.with_extension("half"), half).expect("room");
    let short = std::fs::File::open(artifact.with_extension("half")).expect("it was written");
    let refused = program().arg(artifact).stdin(short).output().expect("it runs");
    let text = String::from_utf8_lossy(&refused.stderr);
    assert_eq!((refused.status.code(), text.contains("but 100 are given")), (Some(1), true), "{text}");
}

/// A folder with the library under the name of `make clib`.
fn named_library(dir: &Path) -> PathBuf {
    let folder = dir.join("lib");
    std::fs::create_dir(&folder).expect("a new folder");
    std::fs::copy(library().join("libtilewright_c.so"), folder.join("libtilewright_sim.so")).expect("room");
    folder
}

#[test]
#[ignore = "needs Go; make test-full runs it"]
fn a_network_answers_in_go_as_in_rust() {
    if !tilewright_testing::has_optional("go", "run scripts/setup.sh --languages") {
        return;
    }
    let dir = tempfile::tempdir().expect("a folder");
    let (network, library) = (network(dir.path()), named_library(dir.path()));
    let program = dir.path().join("infer");
    let go = |args: &[&str]| {
        run(Command::new("go")
            .args(args)
            .current_dir(here().join("../examples/go"))
            .env("CGO_CFLAGS", format!("-I{}", here().join("../include").display()))
            .env("CGO_LDFLAGS", format!("-L{}", library.display()))
            .env("GOCACHE", dir.path().join("cache"))
            .env("GOFLAGS", "-mod=mod"));
    };
    go(&["vet", "./..."]);
    go(&["build", "-o", &program.to_string_lossy(), "./infer"]);
    let mut command = || {
        let mut command = Command::new(&program);
        command.env("LD_LIBRARY_PATH", &library);
        command
    };
    infers(&mut command, &network);
}

/// The folder of a Java with the foreign-function API, which is final since version 22.
fn java() -> Option<PathBuf> {
    let mut homes: Vec<PathBuf> = std::env::var_os("JAVA_HOME").map(PathBuf::from).into_iter().collect();
    homes.push(PathBuf::from("/usr"));
    homes.extend(std::fs::read_dir("/usr/lib/jvm").into_iter().flatten().flatten().map(|entry| entry.path()));
    let is_new = |home: &PathBuf| {
        let output = Command::new(home.join("bin/javac")).arg("-version").output();
        let text = output.map(|output| String::from_utf8_lossy(&output.stdout).into_owned()).unwrap_or_default();
        let version = text.split_whitespace().nth(1).and_then(|v| v.split('.').next()?.parse::<u32>().ok());
        version.is_some_and(|version| version >= 22)
    };
    homes.into_iter().find(is_new)
}

#[test]
#[ignore = "needs Java 22; make test-full runs it"]
fn a_network_answers_in_java_as_in_rust() {
    let Some(home) = java() else {
        return tilewright_testing::skip("there is no Java of version 22 or later; run scripts/setup.sh --languages");
    };
    let dir = tempfile::tempdir().expect("a folder");
    let (network, library) = (network(dir.path()), named_library(dir.path()));
    let classes = dir.path().join("classes");
    let sources = ["Tilewright.java", "Infer.java"].map(|name| here().join("../examples/java").join(name));
    let lints = "-Xlint:all,-restricted";
    run(Command::new(home.join("bin/javac")).args([lints, "-Werror", "-d"]).arg(&classes).args(sources));
    let mut command = || {
        let mut command = Command::new(home.join("bin/java"));
        command.arg("--enable-native-access=ALL-UNNAMED");
        command.arg(format!("-Djava.library.path={}", library.display())).arg("-cp").arg(&classes).arg("Infer");
        command
    };
    infers(&mut command, &network);
}
