//! Compiles generated kernels for this machine's CPU, with a header that emulates CUDA.

use std::path::PathBuf;
use std::process::Command;

use libloading::Library;
use tilewright_compiler::backend::{Entry, Operand};
use tilewright_compiler::graph::{DType, Graph, Tensor, ValueId};
use tilewright_compiler::te::{Array, Scalar};
use tilewright_compiler::tir::{Buffer, Function};
use tilewright_runtime::cuda::{Arg, CudaCall, CudaCode, CudaEntry, Factor, Launch, Lie, Numbers, Product};

use super::compile;
use crate::CudaBackend;
use crate::library::Least;

/// Graphs compiled into a loaded library, each with its entries.
pub struct HostLibrary {
    kernels: Kernels,
    graphs: Vec<(CudaCode, Vec<Entry>)>,
}

/// Memory aligned to 8 bytes, less than CUDA's alignment, with margins that must not be written.
struct GuardedMemory {
    words: Vec<u64>,
    bytes: usize,
}

const MARGIN: usize = 4;
const UNTOUCHED: u64 = 0xa5a5_a5a5_a5a5_a5a5;

impl GuardedMemory {
    fn of(bytes: &[u8]) -> GuardedMemory {
        let mut m = GuardedMemory::new(bytes.len());
        for (word, part) in m.words[MARGIN..].iter_mut().zip(bytes.chunks(8)) {
            let mut full = UNTOUCHED.to_le_bytes();
            full[..part.len()].copy_from_slice(part);
            *word = u64::from_le_bytes(full);
        }
        m
    }

    fn new(bytes: usize) -> GuardedMemory {
        GuardedMemory { words: vec![UNTOUCHED; bytes.div_ceil(8) + 2 * MARGIN], bytes }
    }

    fn at(&self, byte: usize) -> *mut u8 {
        self.words[MARGIN..].as_ptr().cast::<u8>().cast_mut().wrapping_add(byte)
    }

    fn bytes(&self) -> Vec<u8> {
        assert!(self.words[..MARGIN].iter().chain(&self.words[self.words.len() - MARGIN..]).all(|w| *w == UNTOUCHED));
        self.words[MARGIN..].iter().flat_map(|w| w.to_le_bytes()).take(self.bytes).collect()
    }
}

/// The kernels of several codes, compiled and loaded.
struct Kernels {
    library: Library,
    _folder: tempfile::TempDir,
}

impl Kernels {
    /// Compiles kernels. A C++ compiler must be installed, as for everything built with Verilator.
    fn new(codes: &[&CudaCode]) -> Kernels {
        let mut source = String::from(include_str!("shim.h"));
        source += crate::PRELUDE;
        for (i, code) in codes.iter().enumerate() {
            let kernels = code.source.strip_prefix(crate::PRELUDE).expect("the prelude comes first");
            source += &format!("namespace g{i} {{\n{}\n", kernels.replace("extern \"C\" ", ""));
            for launch in code.entries.iter().flat_map(launches) {
                let waits = body(kernels, &launch.kernel).contains("__syncthreads");
                source += &format!(
                    "extern \"C\" void g{i}_{0}(void *const *a, const unsigned *g, const unsigned *b) {{ tw_launch({0}, a, g, b, {waits}); }}\n",
                    launch.kernel
                );
            }
            source += "}\n";
        }
        let folder = tempfile::tempdir().unwrap();
        let (text, binary): (PathBuf, PathBuf) = (folder.path().join("kernels.cpp"), folder.path().join("kernels.so"));
        std::fs::write(&text, source).unwrap();
        let flags = ["-std=c++17", "-O1", "-fwrapv", "-ffp-contract=off", "-w", "-fPIC", "-shared", "-o"];
        let done =
            Command::new("c++").args(flags).arg(&binary).arg(&text).output().expect("a C++ compiler is installed");
        if !done.status.success() {
            let kept = std::env::temp_dir().join("tilewright-kernels.cpp");
            std::fs::copy(&text, &kept).unwrap();
            panic!("{}: {}", kept.display(), String::from_utf8_lossy(&done.stderr));
        }
        // SAFETY: the library consists of generated kernels and has no initializers of its own.
        let library = unsafe { Library::new(&binary) }.unwrap();
        Kernels { library, _folder: folder }
    }

    /// Runs a kernel. `place` returns the addresses of its arguments.
    fn launch(&self, number: usize, launch: &Launch, place: impl Fn(&Arg) -> *mut u8) {
        let args: Vec<*mut u8> = launch.args.iter().map(place).collect();
        let name = format!("g{number}_{}", launch.kernel);
        type Run = unsafe extern "C" fn(*const *mut u8, *const u32, *const u32);
        // SAFETY: the function was generated above with this type. Its arguments point to memory of the right sizes,
        // which lives until it returns.
        unsafe {
            let run = self.library.get::<Run>(name.as_bytes()).unwrap();
            run(args.as_ptr(), launch.grid.as_ptr(), launch.block.as_ptr());
        }
    }
}

/// Returns all kernels of an entry.
fn launches(entry: &CudaEntry) -> Vec<&Launch> {
    let with_library = entry.library.iter().filter_map(|call| match call {
        CudaCall::Launch(launch) => Some(launch),
        CudaCall::Product(_) => None,
    });
    entry.launches.iter().chain(with_library).collect()
}

/// Elements of a product's matrix in memory.
struct Elements {
    first: *mut u8,
    numbers: Numbers,
}

impl Elements {
    fn get(&self, i: usize) -> f32 {
        // SAFETY: the product's matrices are inside memory of the right sizes.
        unsafe {
            match self.numbers {
                Numbers::F32 => *self.first.cast::<f32>().add(i),
                Numbers::F16 => half::f16::from_bits(*self.first.cast::<u16>().add(i)).to_f32(),
                Numbers::I8 => f32::from(*self.first.cast::<i8>().add(i)),
            }
        }
    }
}

/// Computes a product the way the library is asked to.
fn multiply(p: &Product, place: &dyn Fn(&Arg) -> *mut u8) {
    let [batch, rows, columns, steps] = [p.batch, p.rows, p.columns, p.steps].map(|n| n as usize);
    let at = |f: &Factor, b: usize, i: usize, k: usize| {
        let (next, one) = match f.lie {
            Lie::Steps(next) => (next, k),
            Lie::Results(next) => (next, i),
        };
        let far = if matches!(f.lie, Lie::Steps(_)) { i } else { k };
        b * f.stride as usize + far * next as usize + one
    };
    let (x, y) = (place(&p.of_columns.at), place(&p.of_rows.at));
    let (x, y) = (Elements { first: x, numbers: p.numbers }, Elements { first: y, numbers: p.numbers });
    let result = place(&p.result);
    for b in 0..batch {
        for r in 0..rows {
            for c in 0..columns {
                let terms = (0..steps).map(|k| (x.get(at(&p.of_columns, b, c, k)), y.get(at(&p.of_rows, b, r, k))));
                let to = (b * rows + r) * columns + c;
                // SAFETY: the result is inside memory of the right size.
                unsafe {
                    match p.numbers {
                        Numbers::I8 => {
                            let sum = terms.fold(0i32, |s, (x, y)| s.wrapping_add(x as i32 * y as i32));
                            *result.cast::<i32>().add(to) = sum;
                        }
                        _ => {
                            let sum: f32 = terms.map(|(x, y)| x * y).sum();
                            match p.narrow {
                                true => *result.cast::<u16>().add(to) = half::f16::from_f32(sum).to_bits(),
                                false => *result.cast::<f32>().add(to) = sum,
                            }
                        }
                    }
                }
            }
        }
    }
}

/// Runs loop programs, scheduled for a GPU, on rows of numbers, and compares the results with the evaluator.
pub fn functions(programs: &[Function], number: &dyn Fn(usize, usize) -> i32) {
    let emitted: Vec<_> =
        programs.iter().map(|f| crate::emit("f", &crate::schedule(f.clone()), false).unwrap()).collect();
    let codes: Vec<CudaCode> = emitted
        .iter()
        .map(|u| CudaCode {
            source: format!("{}{}", crate::PRELUDE, u.source),
            half: false,
            entries: vec![CudaEntry { symbol: "f".into(), launches: u.launches.clone(), library: Vec::new() }],
        })
        .collect();
    let kernels = Kernels::new(&codes.iter().collect::<Vec<_>>());
    for (i, (f, own)) in programs.iter().zip(&emitted).enumerate() {
        let column = |(c, b): (usize, &Buffer)| {
            let mut a = Array::zeros(b.dtype, &b.shape);
            (0..b.len() as usize).for_each(|at| assert!(a.set(at, Scalar::I(number(c, at).into()))));
            a
        };
        let inputs: Vec<Array> = f.inputs().iter().enumerate().map(column).collect();
        let want = tilewright_compiler::tir::run(f, &inputs).unwrap();
        let given: Vec<GuardedMemory> = inputs.iter().map(|a| GuardedMemory::of(&a.bytes)).collect();
        let got = GuardedMemory::new(want[0].bytes.len());
        for launch in &own.launches {
            kernels.launch(i, launch, |arg| match arg {
                Arg::Input(i) => given[*i as usize].at(0),
                Arg::Output(_) => got.at(0),
                Arg::Workspace(_) => panic!("{} has no workspace", f.name),
            });
        }
        assert!(got.bytes() == want[0].bytes, "{}", f.name);
    }
}

impl HostLibrary {
    /// Compiles graphs.
    pub fn new(backend: &CudaBackend, graphs: &[&Graph], least: Least) -> HostLibrary {
        let graphs: Vec<_> = graphs.iter().map(|g| compile(backend, g, least)).collect();
        HostLibrary { kernels: Kernels::new(&graphs.iter().map(|g| &g.0).collect::<Vec<_>>()), graphs }
    }

    /// Returns how many products of a graph a library would compute.
    pub fn products(&self, number: usize) -> usize {
        let calls = self.graphs[number].0.entries.iter().flat_map(|e| &e.library);
        calls.filter(|call| matches!(call, CudaCall::Product(_))).count()
    }

    /// Returns the outputs of a graph. `library` selects the variant with library products, if there is one.
    pub fn run(&self, number: usize, graph: &Graph, inputs: &[Tensor], library: bool) -> Vec<Tensor> {
        let (code, entries) = &self.graphs[number];
        let given = |v: usize| -> Option<Vec<u8>> {
            let constant = graph.constant(ValueId(v)).map(|c| c.to_bytes());
            constant.or_else(|| inputs.get(v).map(|t| t.to_bytes()))
        };
        let values: Vec<GuardedMemory> = (0..graph.value_count())
            .map(|i| {
                let ty = graph.ty(ValueId(i));
                let half = code.half && ty.dtype == DType::F32;
                match given(i) {
                    Some(bytes) if half => GuardedMemory::of(&narrowed(&bytes)),
                    Some(bytes) => GuardedMemory::of(&bytes),
                    None => {
                        GuardedMemory::new(ty.element_count().unwrap() * if half { 2 } else { ty.dtype.size_bytes() })
                    }
                }
            })
            .collect();
        for e in entries {
            let workspace = GuardedMemory::new(e.workspace_bytes);
            let entry = code.entries.iter().find(|c| c.symbol == e.symbol).unwrap();
            let place = |arg: &Arg| match arg {
                Arg::Input(i) => match e.inputs[*i as usize] {
                    Operand::Value(v) => values[v.0].at(0),
                    Operand::Own(_) => panic!("it makes no constants"),
                },
                Arg::Output(i) => values[e.outputs[*i as usize].0].at(0),
                Arg::Workspace(at) => workspace.at(*at as usize),
            };
            if library && !entry.library.is_empty() {
                for call in &entry.library {
                    match call {
                        CudaCall::Launch(launch) => self.kernels.launch(number, launch, place),
                        CudaCall::Product(product) => multiply(product, &place),
                    }
                }
            } else {
                entry.launches.iter().for_each(|launch| self.kernels.launch(number, launch, place));
            }
            values.iter().for_each(|v| drop(v.bytes()));
            workspace.bytes();
        }
        let outputs = graph.outputs().iter().map(|(_, v)| {
            let ty = graph.ty(*v);
            let bytes = values[v.0].bytes();
            let bytes = if code.half && ty.dtype == DType::F32 { widened(&bytes) } else { bytes };
            Tensor::from_bytes(ty.dtype, &ty.shape().unwrap(), &bytes).unwrap()
        });
        outputs.collect()
    }
}

fn narrowed(bytes: &[u8]) -> Vec<u8> {
    let wide = bytes.chunks_exact(4).map(|b| f32::from_le_bytes(b.try_into().unwrap()));
    wide.flat_map(|v| half::f16::from_f32(v).to_le_bytes()).collect()
}

fn widened(bytes: &[u8]) -> Vec<u8> {
    let narrow = bytes.chunks_exact(2).map(|b| half::f16::from_le_bytes(b.try_into().unwrap()));
    narrow.flat_map(|v| v.to_f32().to_le_bytes()).collect()
}

/// Returns the text of a kernel.
fn body<'s>(source: &'s str, kernel: &str) -> &'s str {
    let from = source.find(&format!(" {kernel}(")).unwrap_or(0);
    let rest = &source[from..];
    &rest[..rest.find("\n}\n").unwrap_or(rest.len())]
}
