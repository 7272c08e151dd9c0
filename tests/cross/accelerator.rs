//! Exported models that use the accelerator: the C driver runs in a program of its own and reaches the Verilated
//! peripheral through a pipe, as it would reach registers and memory of a board.

use std::io::{Read, Write};
use std::path::Path;
use std::process::{Child, ChildStdin, ChildStdout, Command, Stdio};

use tilewright::model::{self, Offload, Options, build_traced, export};
use tilewright_compiler::graph::{Tensor, eval};
use tilewright_hw::config::HwConfig;
use tilewright_hw::host::Registers;
use tilewright_hw::peripheral::Peripheral;
use tilewright_hw::regs::TrapCause;
use tilewright_sim::axi::{Axi, AxiOptions};

use crate::programs::{Case, Machine, graph_of, inputs_beside};

/// The configuration that the driver's tests build, too.
fn config() -> HwConfig {
    HwConfig::parse("wide", include_str!("../../driver/tests/peripheral/wide.toml")).unwrap()
}

/// A model compiled for the accelerator and exported for a processor, or as C99.
fn exported(name: &str, file: &Path, config: &HwConfig, target: &str) -> Case {
    let graph = graph_of(file);
    let options =
        Options { offload: Offload::All, processor: Some(target), symbols: Some(name), ..Options::new(config) };
    let built = build_traced(graph, &options, &mut |_, _| {}).unwrap();
    let files =
        export::files(&built.artifact, name, &|symbol, bytes| model::data_object(target, symbol, bytes)).unwrap();
    Case { name: name.into(), graph: built.graph, inputs: inputs_beside(file), files }
}

/// What the program asks for.
enum Request {
    /// Reads or writes were served.
    Served,
    /// The function returned.
    Done(i32),
}

/// A running program.
struct Program {
    child: Child,
    to: ChildStdin,
    from: ChildStdout,
}

impl Program {
    fn bytes<const N: usize>(&mut self) -> [u8; N] {
        let mut bytes = [0; N];
        self.from.read_exact(&mut bytes).expect("the program goes on");
        bytes
    }

    /// Serves one request on the peripheral.
    fn serve(&mut self, axi: &mut Axi) -> Request {
        let [kind] = self.bytes();
        if kind == b'D' {
            return Request::Done(i32::from_le_bytes(self.bytes()));
        }
        let at = u64::from_le_bytes(self.bytes());
        let count = u32::from_le_bytes(self.bytes());
        match kind {
            b'r' => {
                let value = axi.read_reg(at as u32).unwrap();
                self.to.write_all(&value.to_le_bytes()).unwrap();
            }
            b'w' => axi.write_reg(at as u32, count).unwrap(),
            b'R' => {
                let mut bytes = vec![0; count as usize];
                axi.read_buffer(at, &mut bytes).unwrap();
                self.to.write_all(&bytes).unwrap();
            }
            b'W' => {
                let mut bytes = vec![0; count as usize];
                self.from.read_exact(&mut bytes).unwrap();
                axi.write_buffer(at, &bytes).unwrap();
            }
            _ => panic!("request {kind}"),
        }
        self.to.flush().unwrap();
        Request::Served
    }

    /// Serves requests until the function returns.
    fn result(&mut self, axi: &mut Axi) -> i32 {
        loop {
            if let Request::Done(status) = self.serve(axi) {
                return status;
            }
        }
    }

    /// Makes the program open the model with these settings.
    fn open(&mut self, axi: &mut Axi, memory_bytes: u64, cycle_limit: u64) -> i32 {
        self.to.write_all(b"O").unwrap();
        for value in [axi.buffer_addr(), memory_bytes, cycle_limit] {
            self.to.write_all(&value.to_le_bytes()).unwrap();
        }
        self.to.flush().unwrap();
        self.result(axi)
    }

    /// Makes the program run the model. Returns the status, the trap's cause and the outputs.
    fn run(&mut self, axi: &mut Axi, inputs: &[Tensor], wanted: &[Tensor]) -> (i32, u32, Vec<Vec<u8>>) {
        self.to.write_all(b"X").unwrap();
        for tensor in inputs {
            self.to.write_all(&tensor.to_bytes()).unwrap();
        }
        self.to.flush().unwrap();
        let status = self.result(axi);
        let cause = u32::from_le_bytes(self.bytes());
        let mut read = |tensor: &Tensor| {
            let mut bytes = vec![0; tensor.to_bytes().len()];
            self.from.read_exact(&mut bytes).unwrap();
            bytes
        };
        (status, cause, wanted.iter().map(&mut read).collect())
    }
}

/// Compiles a model's files with the program around them, and starts it.
fn start(case: &Case, compiler: &str, emulator: Option<&str>, folder: &Path) -> Program {
    for (name, bytes) in &case.files {
        std::fs::write(folder.join(name), bytes).unwrap();
    }
    std::fs::write(folder.join("main.c"), include_str!("accelerator.c")).unwrap();
    let upper = case.name.to_uppercase();
    let sizes = |kind: &str, n: usize| (0..n).map(|i| format!("{upper}_{kind}_{i}_BYTES,")).collect::<String>();
    let model = format!(
        "#include \"{0}.h\"\n#define MODEL_OPEN {0}_open\n#define MODEL_RUN {0}_run\n#define WORKSPACE \
         {upper}_WORKSPACE_BYTES\n#define INPUTS {upper}_INPUTS\n#define OUTPUTS {upper}_OUTPUTS\n#define SIZES {1}{2}\n",
        case.name,
        sizes("INPUT", case.inputs.len()),
        sizes("OUTPUT", case.graph.outputs().len())
    );
    std::fs::write(folder.join("model.h"), model).unwrap();
    let sources = case.files.iter().map(|(name, _)| name).filter(|name| name.ends_with(".c") || name.ends_with(".o"));
    let options =
        ["-std=c99", "-O1", "-Wall", "-Wextra", "-Wpedantic", "-Werror", "-static", "-o", "program", "main.c"];
    let done = Command::new(compiler).current_dir(folder).args(options).args(sources).arg("-lm").output().unwrap();
    assert!(done.status.success(), "{}", String::from_utf8_lossy(&done.stderr));
    let program = folder.join("program");
    let mut command = Command::new(emulator.map_or(program.as_os_str(), |emulator| emulator.as_ref()));
    command.args(emulator.map(|_| &program)).stdin(Stdio::piped()).stdout(Stdio::piped());
    let mut child = command.spawn().unwrap();
    let (to, from) = (child.stdin.take().unwrap(), child.stdout.take().unwrap());
    Program { child, to, from }
}

/// Runs a model on the Verilated core, from a program of this processor or an emulated one.
fn runs(case: &Case, config: &HwConfig, compiler: &str, emulator: Option<&str>) {
    let folder = tempfile::tempdir().unwrap();
    let header = case.files.iter().find(|(name, _)| *name == format!("{}.h", case.name)).unwrap();
    let header = String::from_utf8_lossy(&header.1).into_owned();
    let line = header.lines().find(|line| line.contains("_ACCELERATOR_BYTES ")).expect("uses the accelerator");
    let bytes: u64 = line.rsplit(' ').next().unwrap().parse().unwrap();
    let wanted = eval(&case.graph, &case.inputs).unwrap();
    let right = |found: &[Vec<u8>]| {
        for (found, wanted) in found.iter().zip(&wanted) {
            assert_eq!(*found, wanted.to_bytes(), "{}", case.name);
        }
    };
    // A buffer at an odd multiple of 64, and one whose second half answers with errors.
    let options =
        AxiOptions { buffer_addr: 0x1_3040, buffer_bytes: bytes.next_multiple_of(64), ..AxiOptions::default() };
    let mut axi = Axi::new(config, &options, &|_| {}).expect("the design builds");
    let mut program = start(case, compiler, emulator, folder.path());
    let (status, ..) = program.run(&mut axi, &case.inputs, &wanted);
    assert_eq!(status, -7, "a model that is not open");
    assert_eq!(program.open(&mut axi, bytes - 1, 0), -3, "too little memory");
    assert_eq!(program.open(&mut axi, bytes, 10), 0);
    let (status, ..) = program.run(&mut axi, &case.inputs, &wanted);
    assert_eq!(status, -6, "a limit of ten cycles");
    assert_eq!(program.open(&mut axi, bytes, 0), 0);
    // Twice: nothing of a run before may be left.
    for _ in 0..2 {
        let (status, _, found) = program.run(&mut axi, &case.inputs, &wanted);
        assert_eq!(status, 0);
        right(&found);
    }
    let half = AxiOptions { answering_bytes: Some(bytes / 2 / 64 * 64), ..options };
    let mut broken = Axi::new(config, &half, &|_| {}).unwrap();
    assert_eq!(program.open(&mut broken, bytes, 0), 0);
    let (status, cause, _) = program.run(&mut broken, &case.inputs, &wanted);
    assert_eq!((status, cause), (-5, TrapCause::Bus as u32), "a bus error");
    assert_eq!(program.open(&mut axi, bytes, 0), 0);
    let (status, _, found) = program.run(&mut axi, &case.inputs, &wanted);
    assert_eq!(status, 0);
    right(&found);
    drop(program.to);
    assert!(program.child.wait().unwrap().success());
}

fn has_verilator() -> bool {
    tilewright_testing::has_optional("verilator", "run `scripts/setup.sh`")
}

#[test]
fn an_exported_model_runs_on_the_accelerator() {
    if !has_verilator() {
        return;
    }
    let config = config();
    let file = super::repository("lenet-mnist/model_qdq_perchannel.onnx");
    for target in [Some(model::C99), Machine::own().map(|machine| machine.target)].into_iter().flatten() {
        runs(&exported("lenet", &file, &config, target), &config, "cc", None);
    }
    // An accelerator of another configuration.
    let other = HwConfig { name: "other".into(), requant_lanes: 1, ..config.clone() };
    let folder = tempfile::tempdir().unwrap();
    let other = exported("lenet", &file, &other, model::C99);
    let mut program = start(&other, "cc", None, folder.path());
    let options = AxiOptions { buffer_bytes: 1 << 20, ..AxiOptions::default() };
    let mut axi = Axi::new(&config, &options, &|_| {}).unwrap();
    assert_eq!(program.open(&mut axi, 1 << 20, 0), -2);
}

#[test]
#[ignore = "runs networks on the Verilated core, from programs of this processor and of a 32-bit Arm"]
fn networks_run_on_the_accelerator_from_c() {
    if !has_verilator() {
        return;
    }
    let config = config();
    let mut cases =
        vec![exported("lenet", &super::repository("lenet-mnist/model_qdq_perchannel.onnx"), &config, model::C99)];
    for (name, file) in [("resnet8", "resnet8-cifar10/model_int8.tflite"), ("kws", "kws-dscnn/model_int8.tflite")] {
        cases.extend(tilewright_testing::model(file).map(|file| exported(name, &file, &config, model::C99)));
    }
    for case in &cases {
        runs(case, &config, "cc", None);
        let cross = ["arm-linux-gnueabihf-gcc", "qemu-arm-static"];
        if cross.iter().all(|program| tilewright_testing::has_optional(program, "run `scripts/setup.sh --cross`")) {
            runs(case, &config, cross[0], Some(cross[1]));
        }
    }
}
