//! The functions that object code may call: memory, mathematics and the thread pool, by fixed names.

use std::collections::BTreeMap;

use crate::threads;

/// Addresses by name.
#[derive(Debug, Clone, Default)]
pub struct ImportTable {
    addresses: BTreeMap<&'static str, u64>,
}

macro_rules! functions {
    ($t:ident: $($name:ident = $($arg:ident),* => $value:expr;)*) => {
        $(extern "C" fn $name($($arg: $t),*) -> $t {
            $value
        })*
    };
}

// The evaluators compute with the same functions, so that compiled code and reference agree.
functions! {
    f32:
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

functions! {
    f64:
    exp_double = x => x.exp();
    log_double = x => x.ln();
    sqrt_double = x => x.sqrt();
    sin_double = x => x.sin();
    cos_double = x => x.cos();
    tanh_double = x => x.tanh();
    erf_double = x => libm::erf(x);
    pow_double = x, y => x.powf(y);
    floor_double = x => x.floor();
    ceil_double = x => x.ceil();
    trunc_double = x => x.trunc();
    round_double = x => x.round();
    round_even_double = x => x.round_ties_even();
    remainder_double = x, y => x % y;
}

/// A loop body of compiled code: context and index.
type Body = extern "C" fn(*mut u8, i64);

/// Runs `body(context, i)` for each `i` from 0 to `count` on the caller's thread and the others of its [`threads`], and
/// returns when all calls have returned.
extern "C" fn parallel_for(body: Body, context: *mut u8, count: i64) {
    // SAFETY: the code generator shares the context between iterations read-only, and iterations write to separate
    // places.
    unsafe { threads::each(body, context, count) };
}

macro_rules! helpers {
    ($($name:ident)*) => {
        /// Functions of the run-time ABI of 32-bit Arm, which every compiler for it brings along: its code calls them for
        /// arithmetic that it has no instructions for.
        pub const HELPERS_OF_ARM32: &[&str] = &[$(stringify!($name)),*];

        #[cfg(target_arch = "arm")]
        fn add_helpers(to: &mut BTreeMap<&'static str, u64>) {
            unsafe extern "C" {
                $(fn $name();)*
            }
            $(to.insert(stringify!($name), $name as unsafe extern "C" fn() as usize as u64);)*
        }
    };
}

helpers! {
    __aeabi_idiv __aeabi_uidiv __aeabi_idivmod __aeabi_uidivmod __aeabi_ldivmod __aeabi_uldivmod
    __aeabi_lmul __aeabi_llsl __aeabi_llsr __aeabi_lasr
    __aeabi_l2f __aeabi_ul2f __aeabi_f2lz __aeabi_f2ulz __aeabi_l2d __aeabi_ul2d __aeabi_d2lz __aeabi_d2ulz
}

impl ImportTable {
    /// No imports.
    pub fn empty() -> ImportTable {
        ImportTable::default()
    }

    /// The functions that compiled models can call: `memcpy`, `memmove`, `memset`, functions of `libm` on floats (some
    /// of them under names of their own), and `tw_parallel_for(body, context, count)`.
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
        let unary: [(&'static str, extern "C" fn(f64) -> f64); 13] = [
            ("tw_exp", exp_double),
            ("tw_log", log_double),
            ("tw_sin", sin_double),
            ("tw_cos", cos_double),
            ("tw_tanh", tanh_double),
            ("tw_erf", erf_double),
            ("sqrt", sqrt_double),
            ("floor", floor_double),
            ("ceil", ceil_double),
            ("trunc", trunc_double),
            ("round", round_double),
            ("roundeven", round_even_double),
            ("rint", round_even_double),
        ];
        for (name, f) in unary {
            t.addresses.insert(name, f as usize as u64);
        }
        let binary: [(&'static str, extern "C" fn(f64, f64) -> f64); 2] =
            [("tw_pow", pow_double), ("fmod", remainder_double)];
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
        #[cfg(target_arch = "arm")]
        add_helpers(&mut t.addresses);
        t
    }

    /// The names.
    pub fn names(&self) -> impl Iterator<Item = &'static str> + '_ {
        self.addresses.keys().copied()
    }

    /// Address of a function; in WebAssembly, its index in the module's table.
    pub fn function(&self, name: &str) -> Option<usize> {
        self.address(name).and_then(|address| usize::try_from(address).ok())
    }

    pub(super) fn address(&self, name: &str) -> Option<u64> {
        self.addresses.get(name).copied()
    }
}
