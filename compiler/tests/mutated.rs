//! Mutated model files: an error or a graph, and never a panic, a hang, or an allocation out of proportion.

use std::alloc::{GlobalAlloc, Layout, System};
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering::Relaxed};
use std::time::{Duration, Instant};

use rand::rngs::SmallRng;
use rand::{Rng, SeedableRng};
use tilewright_compiler::frontend::{Sizes, onnx, tflite};

/// The system's allocator, with the largest request that it has seen.
struct Watched;

static LARGEST: AtomicUsize = AtomicUsize::new(0);

// SAFETY: every call goes to the system's allocator as it came.
unsafe impl GlobalAlloc for Watched {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        LARGEST.fetch_max(layout.size(), Relaxed);
        // SAFETY: the caller's promises are those that the system's allocator asks for.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, at: *mut u8, layout: Layout) {
        // SAFETY: as above.
        unsafe { System.dealloc(at, layout) }
    }

    unsafe fn realloc(&self, at: *mut u8, layout: Layout, size: usize) -> *mut u8 {
        LARGEST.fetch_max(size, Relaxed);
        // SAFETY: as above.
        unsafe { System.realloc(at, layout, size) }
    }
}

#[global_allocator]
static ALLOCATOR: Watched = Watched;

/// Bytes that any file may ask for, beside sixteen times its own: what importers may make of shapes.
const ROOM: usize = 64 << 20;

/// Seconds that an import may take.
const PATIENCE: f64 = 20.0;

fn files() -> Vec<PathBuf> {
    let carried = Path::new(env!("CARGO_MANIFEST_DIR")).join("../tests/models");
    let onnx = ["lenet-mnist/model.onnx", "lenet-mnist/model_qdq_perchannel.onnx", "onnx-runtime/recurrent.onnx"];
    let mut files: Vec<PathBuf> = onnx.iter().map(|name| carried.join(name)).collect();
    let operators = std::fs::read_dir(carried.join("tflite-ops")).unwrap().map(|f| f.unwrap().path());
    files.extend(operators.filter(|f| f.extension().is_some_and(|e| e == "tflite")));
    files.sort();
    let large = [
        "vit-tiny-mnist/model.onnx",
        "vit-tiny-mnist/model_qdq_perchannel.onnx",
        "ppocr-cls/model.onnx",
        "bert-tiny-random/model.onnx",
        "onnx-light/light_shufflenet.onnx",
        "kws-dscnn/model_int8.tflite",
        "blazeface-short/model_fp16w.tflite",
    ];
    files.extend(large.iter().filter_map(|name| tilewright_testing::model(name)));
    files
}

/// Changes bytes, mostly where structure lies: in front and behind.
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

fn fuzz(time: Duration) {
    let seed = std::env::var("TILEWRIGHT_SEED").ok().and_then(|s| s.parse().ok()).unwrap_or(1);
    println!("seed {seed}; set TILEWRIGHT_SEED for another");
    let files: Vec<(String, Vec<u8>)> =
        files().iter().map(|f| (f.display().to_string(), std::fs::read(f).unwrap())).collect();
    let (start, mut count, mut sound) = (Instant::now(), 0u64, 0u64);
    while start.elapsed() < time {
        let (name, whole) = &files[count as usize % files.len()];
        let mut rng = SmallRng::seed_from_u64(seed ^ count.wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut bytes = whole.clone();
        mutate(&mut rng, &mut bytes);
        LARGEST.store(0, Relaxed);
        let began = Instant::now();
        let made = if name.ends_with(".onnx") {
            onnx::import(&bytes, name, None, &Sizes::default())
        } else {
            tflite::import(&bytes, name)
        };
        let (largest, took) = (LARGEST.load(Relaxed), began.elapsed().as_secs_f64());
        sound += u64::from(made.is_ok());
        let most = 16 * whole.len() + ROOM;
        assert!(largest <= most, "{name}, change {count} of seed {seed}: {largest} bytes at once, {most} allowed");
        assert!(took < PATIENCE, "{name}, change {count} of seed {seed}: {took} s");
        count += 1;
    }
    println!("{count} changed files, of which {sound} still import");
    assert!(count > 50 && sound < count);
}

#[test]
fn changed_files_do_no_harm() {
    fuzz(Duration::from_secs(6));
}

#[test]
#[ignore = "long; make test-full runs it"]
fn changed_files_do_no_harm_for_ten_minutes() {
    fuzz(Duration::from_secs(600));
}
