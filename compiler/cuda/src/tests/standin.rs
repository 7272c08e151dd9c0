//! Tests that the stand-in for CUDA's libraries rejects misuse like the real ones. Each misuse runs in its own process,
//! which must fail.

use std::path::Path;
use std::process::Command;

use libloading::Library;
use tilewright_testing::standin::{self, StandIn};

/// Environment variable that names the misuse for the child process.
const CASE: &str = "TILEWRIGHT_STANDIN_CASE";
const FILE: &str = "TILEWRIGHT_STANDIN_FILE";

const KERNEL: &std::ffi::CStr = c"
extern \"C\" __global__ void __launch_bounds__(32) k(const int *__restrict__ v_x, int *__restrict__ v_y) {
  v_y[threadIdx.x + 32 * blockIdx.x] = v_x[threadIdx.x] + 1;
}
";

/// The misuses. Each has the result of the call that matters, and a part of the message.
const CASES: [(&str, i32, &str); 19] = [
    ("all is well", 0, ""),
    ("no context", 201, "no context"),
    ("no stream", 400, "not a valid stream"),
    ("a copy that is too long", 1, "pass the end of 100 bytes"),
    ("a copy from the GPU's memory as the host's", 1, "not host memory"),
    ("memory after it was freed", 1, "the memory has been freed"),
    ("memory freed twice", 1, "it was freed"),
    ("memory left", 0, "1 of memory not destroyed"),
    ("a copy that nobody waits for", 0, "cuMemcpyDtoHAsync was never waited for"),
    ("an option that is not known", 5, "--nonsense"),
    ("a block that is too large", 1, "a block that no GPU supports"),
    ("more threads than were promised", 701, "more threads than __launch_bounds__"),
    ("a kernel that is not there", 500, "no kernel is named"),
    ("an argument that is not memory", 1, "is not memory of the GPU"),
    ("a kernel that writes too far", 0, "was written"),
    ("a product of bytes that is not transposed", 15, "A not transposed"),
    ("a product with rows that are too near", 7, "leading dimension below"),
    ("a product without workspace", 7, "less workspace"),
    ("a product of other matrices", 7, "the algorithm belongs to another problem"),
];

/// Calls functions by name. Every argument of these functions is a pointer or an integer, which fits a register.
struct Calls(Library);

impl Calls {
    fn call(&self, name: &str, args: &[u64]) -> i32 {
        type F =
            unsafe extern "C" fn(u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64, u64) -> i32;
        let a = |i: usize| args.get(i).copied().unwrap_or(0);
        // SAFETY: the stand-in's functions take at most this many arguments of at most 64 bits, and the caller knows
        // the pointers.
        unsafe {
            let f = self.0.get::<F>(name.as_bytes()).unwrap();
            f(a(0), a(1), a(2), a(3), a(4), a(5), a(6), a(7), a(8), a(9), a(10), a(11), a(12), a(13), a(14), a(15))
        }
    }

    fn fine(&self, name: &str, args: &[u64]) {
        assert_eq!(self.call(name, args), 0, "{name}");
    }

    /// Returns what a call writes to its first argument.
    fn get(&self, name: &str, args: &[u64]) -> u64 {
        let mut made = 0u64;
        self.fine(name, &[&[at(&mut made)], args].concat());
        made
    }
}

fn at<T: ?Sized>(value: &mut T) -> u64 {
    std::ptr::from_mut(value).cast::<u8>() as u64
}

/// Runs a case and returns the result of the call that matters.
fn play(c: &Calls, case: &str) -> i32 {
    c.fine("cuInit", &[0]);
    if case == "no context" {
        return c.call("cuStreamCreate", &[at(&mut 0u64), 1]);
    }
    let context = c.get("cuDevicePrimaryCtxRetain", &[0]);
    c.fine("cuCtxSetCurrent", &[context]);
    let stream = c.get("cuStreamCreate", &[1]);
    let memory = c.get("cuMemAllocAsync", &[100, stream]);
    let mut host = [0u8; 200];
    let result = match case {
        "no stream" => c.call("cuStreamSynchronize", &[memory]),
        "a copy that is too long" => c.call("cuMemcpyHtoDAsync_v2", &[memory, at(&mut host), 101, stream]),
        "a copy from the GPU's memory as the host's" => c.call("cuMemcpyHtoDAsync_v2", &[memory, memory, 8, stream]),
        "memory after it was freed" => {
            let other = c.get("cuMemAllocAsync", &[8, stream]);
            c.fine("cuMemFreeAsync", &[other, stream]);
            c.call("cuMemsetD8Async", &[other, 0, 8, stream])
        }
        "memory freed twice" => {
            let other = c.get("cuMemAllocAsync", &[8, stream]);
            c.fine("cuMemFreeAsync", &[other, stream]);
            c.call("cuMemFreeAsync", &[other, stream])
        }
        "memory left" => i32::from(c.get("cuMemAllocAsync", &[8, stream]) == 0),
        "a copy that nobody waits for" => return c.call("cuMemcpyDtoHAsync_v2", &[at(&mut host), memory, 8, stream]),
        _ if case.contains("product") => product(c, case, stream),
        _ => kernel(c, case, stream, memory),
    };
    c.fine("cuMemFreeAsync", &[memory, stream]);
    c.fine("cuStreamSynchronize", &[stream]);
    c.fine("cuStreamDestroy_v2", &[stream]);
    c.fine("cuDevicePrimaryCtxRelease_v2", &[0]);
    result
}

fn kernel(c: &Calls, case: &str, stream: u64, memory: u64) -> i32 {
    let mut program = c.get("nvrtcCreateProgram", &[KERNEL.as_ptr() as u64]);
    let options = [c"--gpu-architecture=sm_90", c"--fmad=false", c"--nonsense"].map(|o| o.as_ptr() as u64);
    let unknown = case == "an option that is not known";
    let done = c.call("nvrtcCompileProgram", &[program, if unknown { 3 } else { 2 }, options.as_ptr() as u64]);
    if unknown {
        c.fine("nvrtcDestroyProgram", &[at(&mut program)]);
        return done;
    }
    assert_eq!(done, 0);
    let mut size = 0u64;
    c.fine("nvrtcGetCUBINSize", &[program, at(&mut size)]);
    let mut image = vec![0u8; size as usize];
    c.fine("nvrtcGetCUBIN", &[program, image.as_mut_ptr() as u64]);
    c.fine("nvrtcDestroyProgram", &[at(&mut program)]);
    let module = c.get("cuModuleLoadData", &[image.as_ptr() as u64]);
    let mut function = 0u64;
    let name = if case == "a kernel that is not there" { c"other" } else { c"k" };
    let found = c.call("cuModuleGetFunction", &[at(&mut function), module, name.as_ptr() as u64]);
    let target = c.get("cuMemAllocAsync", &[128, stream]);
    let mut result = found;
    if found == 0 {
        c.fine("cuMemsetD8Async", &[memory, 1, 100, stream]);
        let (mut from, mut to) = (memory, if case == "an argument that is not memory" { 64 } else { target });
        let args = [at(&mut from), at(&mut to)];
        let threads = match case {
            "a block that is too large" => 2048,
            "more threads than were promised" => 64,
            _ => 25,
        };
        let blocks = if case == "a kernel that writes too far" { 2 } else { 1 };
        let launch = [function, blocks, 1, 1, threads, 1, 1, 0, stream, args.as_ptr() as u64, 0];
        result = c.call("cuLaunchKernel", &launch);
        let mut got = [0i32; 25];
        if result == 0 {
            c.fine("cuMemcpyDtoHAsync_v2", &[at(&mut got), target, 100, stream]);
            c.fine("cuStreamSynchronize", &[stream]);
            assert_eq!(got, [0x0101_0102; 25]);
        }
    }
    c.fine("cuMemFreeAsync", &[target, stream]);
    c.fine("cuModuleUnload", &[module]);
    result
}

/// Runs a product of bytes with 8 columns, 4 rows and 16 steps.
fn product(c: &Calls, case: &str, stream: u64) -> i32 {
    const COLUMNS: u64 = 8;
    const ROWS: u64 = 4;
    const STEPS: u64 = 16;
    let library = c.get("cublasLtCreate", &[]);
    let description = c.get("cublasLtMatmulDescCreate", &[72, 10]);
    let mut turned = i32::from(case != "a product of bytes that is not transposed");
    c.fine("cublasLtMatmulDescSetAttribute", &[description, 3, at(&mut turned), 4]);
    let near = case == "a product with rows that are too near";
    let a = match turned {
        0 => c.get("cublasLtMatrixLayoutCreate", &[3, COLUMNS, STEPS, COLUMNS]),
        _ => c.get("cublasLtMatrixLayoutCreate", &[3, STEPS, COLUMNS, if near { 12 } else { STEPS }]),
    };
    let b = c.get("cublasLtMatrixLayoutCreate", &[3, STEPS, ROWS, STEPS]);
    let d = c.get("cublasLtMatrixLayoutCreate", &[10, COLUMNS, ROWS, COLUMNS]);
    let other = c.get("cublasLtMatrixLayoutCreate", &[3, STEPS, ROWS, STEPS + 4]);
    let preference = c.get("cublasLtMatmulPreferenceCreate", &[]);
    let mut most = 1u64 << 20;
    c.fine("cublasLtMatmulPreferenceSetAttribute", &[preference, 1, at(&mut most), 8]);
    let mut chosen = [0u64; 16];
    let mut count = 0i32;
    let ask = [library, description, a, b, d, d, preference, 1, at(&mut chosen), at(&mut count)];
    let mut result = c.call("cublasLtMatmulAlgoGetHeuristic", &ask);
    if result == 0 {
        let mut memory = Vec::new();
        for bytes in [COLUMNS * STEPS, ROWS * (STEPS + 4), COLUMNS * ROWS * 4, 4096] {
            let made = c.get("cuMemAllocAsync", &[bytes, stream]);
            c.fine("cuMemsetD8Async", &[made, 3, bytes, stream]);
            memory.push(made);
        }
        let mut factors = [1i32, 0];
        let (one, zero) = (at(&mut factors), at(&mut factors) + 4);
        let room = if case == "a product without workspace" { 0 } else { 4096 };
        let rows = if case == "a product of other matrices" { other } else { b };
        let [x, y, z, scratch] = memory[..] else { panic!("four pieces") };
        result = c.call(
            "cublasLtMatmul",
            &[library, description, one, x, a, y, rows, zero, z, d, z, d, at(&mut chosen), scratch, room, stream],
        );
        if result == 0 {
            let mut got = [0i32; 32];
            c.fine("cuMemcpyDtoHAsync_v2", &[at(&mut got), z, 128, stream]);
            c.fine("cuStreamSynchronize", &[stream]);
            assert_eq!(got, [9 * 16; 32]);
        }
        memory.iter().for_each(|m| c.fine("cuMemFreeAsync", &[*m, stream]));
    }
    c.fine("cublasLtMatmulPreferenceDestroy", &[preference]);
    [a, b, d, other].iter().for_each(|l| c.fine("cublasLtMatrixLayoutDestroy", &[*l]));
    c.fine("cublasLtMatmulDescDestroy", &[description]);
    c.fine("cublasLtDestroy", &[library]);
    result
}

#[test]
#[ignore = "a part of misuse_is_refused_and_ends_badly, which starts it"]
fn a_case() {
    let (Ok(case), Ok(file)) = (std::env::var(CASE), std::env::var(FILE)) else { return };
    // SAFETY: the stand-in's initializers have no requirements.
    let calls = Calls(unsafe { Library::new(Path::new(&file)) }.unwrap());
    println!("result {}", play(&calls, &case));
    std::mem::forget(calls);
}

#[test]
fn misuse_is_refused_and_ends_badly() {
    let stand_in = StandIn::new(&[]);
    let child = |case: &str| {
        let mut command = Command::new(std::env::current_exe().unwrap());
        command.args(["--exact", "tests::standin::a_case", "--ignored", "--nocapture"]);
        let output = command.env(CASE, case).env(FILE, stand_in.file()).output().unwrap();
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (output.status.code(), text(&output.stdout), text(&output.stderr))
    };
    let (code, out, err) = child("a product, all well");
    assert!(code == Some(0) && out.contains("result 0") && !err.contains("stand-in"), "{out}{err}");
    for (case, result, said) in CASES {
        let (code, out, err) = child(case);
        let ends = if said.is_empty() { 0 } else { standin::WRONG };
        assert!(code == Some(ends) && out.contains(&format!("result {result}\n")), "{case}: {code:?} {out}{err}");
        assert!(err.contains(said), "{case}: {err}");
    }
}
