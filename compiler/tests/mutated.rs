//! Imports mutated model files: the result must be an error or a graph, never a panic, a hang, or a huge allocation.

use std::alloc::{GlobalAlloc, Layout, System};
use std::cell::Cell;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_compiler::frontend::{Sizes, onnx, tflite};
use tilewright_testing::flat::{self, Field};
use tilewright_testing::proto::{field, number};

/// The system's allocator, with statistics of each thread's requests.
struct Watched;

thread_local! {
    // Importers run on the calling thread. None of these cells allocates or needs to be dropped.
    static LARGEST: Cell<usize> = const { Cell::new(0) };
    static LIVE: Cell<isize> = const { Cell::new(0) };
    static PEAK: Cell<isize> = const { Cell::new(0) };
}

fn grow(request: usize, by: isize) {
    // A thread that is ending has no cells any more, and need not be watched.
    let _ = LARGEST.try_with(|largest| largest.set(largest.get().max(request)));
    let live = LIVE.try_with(|live| {
        live.set(live.get() + by);
        live.get()
    });
    let _ = PEAK.try_with(|peak| peak.set(peak.get().max(live.unwrap_or(0))));
}

// SAFETY: every call is forwarded unchanged to the system's allocator.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        grow(layout.size(), layout.size() as isize);
        // SAFETY: the caller guarantees what the system's allocator requires.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        grow(0, -(layout.size() as isize));
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        grow(size, size as isize - layout.size() as isize);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Memory that a call requested on its thread: the largest request, and the maximum number of bytes in use.
fn watched<T>(call: impl FnOnce() -> T) -> (T, usize, usize) {
    LARGEST.set(0);
    let before = LIVE.get();
    PEAK.set(before);
    let made = call();
    (made, LARGEST.get(), (PEAK.get() - before) as usize)
}

/// Bytes that an import can request at once in addition to 16 times the file's size, for data that follow from shapes.
const ROOM: usize = 64 << 20;

/// Limit for all memory in use, as a multiple of that: for a constant, data made from it, and the graph around both.
const HELD: usize = 3;

/// Maximum seconds for an import.
const PATIENCE: f64 = 20.0;

/// A model file under test.
struct Sample {
    name: String,
    bytes: Vec<u8>,
    /// Path and bytes of external data next to it.
    beside: Option<(PathBuf, usize)>,
}

impl Sample {
    fn read(path: &Path) -> Sample {
        Sample { name: path.display().to_string(), bytes: std::fs::read(path).unwrap(), beside: None }
    }

    /// Imports other bytes instead of the file and checks time and memory. Returns whether they still are a model.
    fn import(&self, bytes: &[u8], of: &str) -> bool {
        let began = Instant::now();
        let (made, largest, held) = watched(|| match self.name.ends_with(".tflite") {
            true => tflite::import(bytes, &self.name).is_ok(),
            false => {
                let folder = self.beside.as_ref().map(|(folder, _)| folder.as_path());
                onnx::import(bytes, &self.name, folder, Sizes::default()).is_ok()
            }
        });
        let took = began.elapsed().as_secs_f64();
        let most = 16 * (bytes.len() + self.beside.as_ref().map_or(0, |(_, len)| *len)) + ROOM;
        assert!(largest <= most, "{}{of}: {largest} bytes at once, {most} allowed", self.name);
        assert!(held <= HELD * most, "{}{of}: {held} bytes held, {} allowed", self.name, HELD * most);
        assert!(took < PATIENCE, "{}{of}: {took} s", self.name);
        made
    }
}

fn carried(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models").join(name)
}

/// A network that adds 100 floats to its input. They are in another file of `folder`, after four other bytes.
fn external(folder: &Path) -> Sample {
    const LEN: u8 = 100;
    let entry = |key: &[u8], value: &[u8]| field(13, &[field(1, key), field(2, value)].concat());
    let constant = [
        number(1, LEN),
        number(2, 1),
        field(8, b"c"),
        entry(b"location", b"weights.bin"),
        entry(b"offset", b"4"),
        entry(b"length", b"400"),
        number(14, 1),
    ];
    let ty = field(2, &field(1, &[number(1, 1), field(2, &field(1, &number(1, LEN)))].concat()));
    let value = |name: &[u8]| [field(1, name), ty.clone()].concat();
    let graph = [
        field(1, &[field(1, b"x"), field(1, b"c"), field(2, b"y"), field(4, b"Add")].concat()),
        field(2, b"g"),
        field(5, &constant.concat()),
        field(11, &value(b"x")),
        field(12, &value(b"y")),
    ];
    let bytes = [number(1, 8), field(8, &number(2, 17)), field(7, &graph.concat())].concat();
    let data = vec![0x3f; 4 + 4 * usize::from(LEN)];
    std::fs::write(folder.join("weights.bin"), &data).unwrap();
    let sample = Sample { name: "external.onnx".into(), bytes, beside: Some((folder.to_path_buf(), data.len())) };
    assert!(sample.import(&sample.bytes, ""), "it is sound as it is");
    sample
}

/// A network that calls a function, which calls another one twice, with a branch inside, and a sparse constant.
fn inlined() -> Sample {
    const OWN: &[u8] = b"f";
    let node = |operator: &[u8], inputs: &[&[u8]], output: &[u8], more: &[Vec<u8>]| {
        let inputs: Vec<u8> = inputs.iter().flat_map(|name| field(1, name)).collect();
        [inputs, field(2, output), field(4, operator), more.concat()].concat()
    };
    let call = |operator: &[u8], input: &[u8], output: &[u8]| node(operator, &[input], output, &[field(7, OWN)]);
    let attribute = |name: &[u8], tag: u8, ty: u8, value: &[u8]| {
        field(5, &[field(1, name), field(tag, value), number(20, ty)].concat())
    };
    let opset = |tag: u8| field(tag, &number(2, 18));
    let function = |name: &[u8], nodes: &[Vec<u8>]| {
        let nodes: Vec<u8> = nodes.iter().flat_map(|n| field(7, n)).collect();
        let signature = [field(1, name), field(4, b"a"), field(5, b"b"), opset(9), field(10, OWN)];
        field(25, &[signature.concat(), nodes].concat())
    };
    let branch = |name: &[u8], operator: &[u8]| {
        let graph = [field(1, &node(operator, &[b"a"], b"t", &[])), field(12, &field(1, b"t"))];
        attribute(name, 6, 5, &graph.concat())
    };
    let truth = attribute(b"value", 5, 4, &[number(2, 9), field(9, &[1])].concat());
    let inner = [
        node(b"Constant", &[], b"yes", &[truth]),
        node(b"If", &[b"yes"], b"b", &[branch(b"then_branch", b"Relu"), branch(b"else_branch", b"Neg")]),
    ];
    let functions = [function(b"G", &inner), function(b"F", &[call(b"G", b"a", b"c"), call(b"G", b"c", b"b")])];
    let ty = field(2, &field(1, &[number(1, 1), field(2, &field(1, &number(1, 3)))].concat()));
    let values = [number(1, 1), number(2, 1), field(8, b"s"), field(9, &1f32.to_le_bytes())].concat();
    let indices = [number(1, 1), number(2, 7), field(9, &2i64.to_le_bytes())].concat();
    let graph = [
        field(1, &call(b"F", b"x", b"u")),
        field(1, &node(b"Add", &[b"u", b"s"], b"y", &[])),
        field(11, &[field(1, b"x"), ty.clone()].concat()),
        field(12, &[field(1, b"y"), ty].concat()),
        field(15, &[field(1, &values), field(2, &indices), number(3, 3)].concat()),
    ];
    let bytes = [number(1, 10), opset(8), field(7, &graph.concat()), functions.concat()].concat();
    let sample = Sample { name: "inlined.onnx".into(), bytes, beside: None };
    assert!(sample.import(&sample.bytes, ""), "it is sound as it is");
    sample
}

/// ONNX files. One with external data is written to `folder`.
fn onnx_files(folder: &Path) -> Vec<Sample> {
    let own = ["lenet-mnist/model.onnx", "lenet-mnist/model_qdq_perchannel.onnx", "onnx-runtime/recurrent.onnx"];
    let large = [
        "vit-tiny-mnist/model.onnx",
        "vit-tiny-mnist/model_qdq_perchannel.onnx",
        "ppocr-cls/model.onnx",
        "bert-tiny-random/model.onnx",
        "onnx-light/light_shufflenet.onnx",
    ];
    let files = own.map(carried).into_iter().chain(large.iter().filter_map(|name| tilewright_testing::model(name)));
    files.map(|path| Sample::read(&path)).chain([external(folder), inlined()]).collect()
}

fn tflite_files() -> Vec<Sample> {
    let operators = std::fs::read_dir(carried("tflite-ops")).unwrap().map(|f| f.unwrap().path());
    let mut files: Vec<PathBuf> = operators.filter(|f| f.extension().is_some_and(|e| e == "tflite")).collect();
    files.sort();
    let large = ["kws-dscnn/model_int8.tflite", "blazeface-short/model_fp16w.tflite"];
    files.extend(large.iter().filter_map(|name| tilewright_testing::model(name)));
    files.iter().map(|path| Sample::read(path)).collect()
}

/// Changes bytes, mostly at the beginning and end, where the structure is.
fn mutate(rng: &mut SmallRng, bytes: &mut Vec<u8>) {
    for _ in 0..rng.random_range(1..10) {
        let near = rng.random_range(0..bytes.len().min(4000));
        let at = match rng.random_range(0..3) {
            0 => near,
            1 => bytes.len() - 1 - near,
            _ => rng.random_range(0..bytes.len()),
        };
        match rng.random_range(0..6) {
            0 => bytes[at] = 0,
            1 => bytes[at] = 0xff,
            2 => bytes[at] = bytes[at].wrapping_add(1),
            3 => bytes[at] ^= 1 << rng.random_range(0..8),
            4 if at + 9 < bytes.len() => {
                // A large number in the format's variable length.
                bytes[at..at + 8].fill(0xff);
                bytes[at + 8] = 0x7f;
            }
            _ => bytes[at] = rng.random(),
        }
    }
    if rng.random_bool(0.05) {
        bytes.truncate(rng.random_range(0..bytes.len()));
    }
}

fn fuzz(files: &[Sample], time: Duration) {
    let seed = tilewright_testing::asked("TILEWRIGHT_SEED").unwrap_or(1);
    println!("seed {seed}; set TILEWRIGHT_SEED for another");
    let (start, mut count, mut sound) = (Instant::now(), 0u64, 0u64);
    while start.elapsed() < time {
        let sample = &files[count as usize % files.len()];
        let mut rng = SmallRng::seed_from_u64(seed ^ count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bytes = sample.bytes.clone();
        mutate(&mut rng, &mut bytes);
        sound += u64::from(sample.import(&bytes, &format!(", change {count} of seed {seed}")));
        count += 1;
    }
    println!("{count} changed files, of which {sound} still import");
    assert!(count > 50 && sound < count);
}

/// Runs for ten minutes, or for `TILEWRIGHT_MUTATED_S` seconds.
fn long() -> Duration {
    Duration::from_secs(tilewright_testing::asked("TILEWRIGHT_MUTATED_S").unwrap_or(600))
}

#[test]
fn changed_onnx_files_do_no_harm() {
    let folder = tempfile::tempdir().unwrap();
    fuzz(&onnx_files(folder.path()), Duration::from_secs(4));
}

#[test]
fn changed_tflite_files_do_no_harm() {
    fuzz(&tflite_files(), Duration::from_secs(4));
}

#[test]
#[ignore = "long; make test-full runs it"]
fn changed_onnx_files_do_no_harm_for_long() {
    let folder = tempfile::tempdir().unwrap();
    fuzz(&onnx_files(folder.path()), long());
}

#[test]
#[ignore = "long; make test-full runs it"]
fn changed_tflite_files_do_no_harm_for_long() {
    fuzz(&tflite_files(), long());
}

/// A TFLite file that lists one tensor, whose name has `name_len` bytes, `places` times.
fn one_tensor_in_many_places(places: usize, name_len: usize) -> Vec<u8> {
    let tensor = vec![(3, Field::Bytes(vec![b'n'; name_len]))];
    let subgraph = vec![(0, Field::Same(tensor, places))];
    flat::file(&vec![(2, Field::Tables(vec![subgraph])), (4, Field::Tables(vec![Vec::new()]))], b"TFL3")
}

#[test]
fn one_table_in_many_places_takes_no_more_than_its_file_may() {
    let small = one_tensor_in_many_places(3, 5);
    let error = tflite::import(&small, "small.tflite").unwrap_err().to_string();
    assert!(error.contains("the graph has no output"), "{error}");
    let large = one_tensor_in_many_places(1 << 14, 1 << 16);
    let sample = Sample { name: "large.tflite".into(), bytes: large, beside: None };
    assert!(!sample.import(&sample.bytes, ""));
    let error = tflite::import(&sample.bytes, &sample.name).unwrap_err().to_string();
    assert!(error.contains("`tensors` needs 65536 bytes, which is too much for a file of this size"), "{error}");
}
