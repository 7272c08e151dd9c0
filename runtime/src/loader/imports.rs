//! The functions that object code may call: memory, mathematics and the thread pool, by fixed names.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicI64, Ordering};

/// Addresses by name.
#[derive(Debug, Clone, Default)]
pub struct ImportTable {
    addresses: BTreeMap<&'static str, u64>,
}

macro_rules! float {
    ($($name:ident = $($arg:ident),* => $value:expr;)*) => {
        $(extern "C" fn $name($($arg: f32),*) -> f32 {
            $value
        })*
    };
}

// The evaluators compute with the same functions, so that compiled code and reference agree.
float! {
    exp = x => x.exp();
    log = x => x.ln();
    sqrt = x => x.sqrt();
    sin = x => x.sin();
    cos = x => x.cos();
    tanh = x => x.tanh();
    erf = x => libm::erff(x);
    pow = x, y => x.powf(y);
    floor = x => x.floor();
    ceil = x => x.ceil();
    trunc = x => x.trunc();
    round = x => x.round();
    round_even = x => x.round_ties_even();
    remainder = x, y => x % y;
}

/// A loop body of compiled code: context and index.
type Body = extern "C" fn(*mut u8, i64);

#[derive(Clone, Copy)]
struct Context(*mut u8);
// SAFETY: the code generator shares the context between iterations only to read it, and iterations write apart.
unsafe impl Send for Context {}
// SAFETY: as above.
unsafe impl Sync for Context {}

impl Context {
    fn pointer(self) -> *mut u8 {
        self.0
    }
}

/// Runs `body(context, i)` for each `i` from 0 to `count` on the caller's thread and the thread pool's, and returns when all have.
///
/// Whoever is free takes the next few, so the caller never waits for a thread to wake before it begins, nor for one that is late.
extern "C" fn parallel_for(body: Body, context: *mut u8, count: i64) {
    let context = Context(context);
    let threads = rayon::current_num_threads().min(usize::try_from(count).unwrap_or(0));
    if threads <= 1 {
        (0..count).for_each(|i| body(context.pointer(), i));
        return;
    }
    // Small enough that the last ones end together, large enough that neighbours share what they read.
    let few = (count / (threads as i64 * 8)).max(1);
    let next = AtomicI64::new(0);
    let work = || loop {
        let first = next.fetch_add(few, Ordering::Relaxed);
        if first >= count {
            break;
        }
        (first..(first + few).min(count)).for_each(|i| body(context.pointer(), i));
    };
    rayon::in_place_scope(|scope| {
        for _ in 1..threads {
            scope.spawn(|_| work());
        }
        work();
    });
}

impl ImportTable {
    /// No imports.
    pub fn empty() -> ImportTable {
        ImportTable::default()
    }

    /// What compiled models may call: `memcpy`, `memmove`, `memset`, functions of `libm` on floats (three of them under
    /// names of their own), and
    /// `tw_parallel_for(body, context, count)`.
    pub fn standard() -> ImportTable {
        let mut t = ImportTable::default();
        let unary: [(&'static str, extern "C" fn(f32) -> f32); 13] = [
            ("expf", exp),
            ("logf", log),
            ("sqrtf", sqrt),
            ("tw_sinf", sin),
            ("tw_cosf", cos),
            ("tanhf", tanh),
            ("erff", erf),
            ("floorf", floor),
            ("ceilf", ceil),
            ("truncf", trunc),
            ("roundf", round),
            ("roundevenf", round_even),
            ("rintf", round_even),
        ];
        for (name, f) in unary {
            t.addresses.insert(name, f as usize as u64);
        }
        let binary: [(&'static str, extern "C" fn(f32, f32) -> f32); 2] = [("tw_powf", pow), ("fmodf", remainder)];
        for (name, f) in binary {
            t.addresses.insert(name, f as usize as u64);
        }
        t.addresses.insert("tw_parallel_for", parallel_for as extern "C" fn(Body, *mut u8, i64) as usize as u64);
        #[cfg(unix)]
        {
            type Copy = unsafe extern "C" fn(*mut libc::c_void, *const libc::c_void, usize) -> *mut libc::c_void;
            type Set = unsafe extern "C" fn(*mut libc::c_void, i32, usize) -> *mut libc::c_void;
            t.addresses.insert("memcpy", libc::memcpy as Copy as usize as u64);
            t.addresses.insert("memmove", libc::memmove as Copy as usize as u64);
            t.addresses.insert("memset", libc::memset as Set as usize as u64);
        }
        t
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.addresses.keys().copied()
    }

    pub(super) fn address(&self, name: &str) -> Option<u64> {
        self.addresses.get(name).copied()
    }
}
