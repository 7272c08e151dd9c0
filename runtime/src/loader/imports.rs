//! The functions that object code may call: memory, mathematics and the thread pool, by fixed names.

use std::collections::BTreeMap;

use crate::threads;

/// Addresses by name.
#[derive(Debug, Clone, Default)]
pub struct ImportTable {
    addresses: BTreeMap<&'static str, u64>,
}

/// The functions for a float type. The evaluators compute with the same ones, so that compiled code and reference agree.
macro_rules! functions {
    ($module:ident, $t:ident, $erf:path) => {
        mod $module {
            functions! { $t:
                exp = x => x.exp();
                log = x => x.ln();
                sqrt = x => x.sqrt();
                sin = x => x.sin();
                cos = x => x.cos();
                tanh = x => x.tanh();
                erf = x => $erf(x);
                pow = x, y => x.powf(y);
                floor = x => x.floor();
                ceil = x => x.ceil();
                trunc = x => x.trunc();
                round = x => x.round();
                round_even = x => x.round_ties_even();
                remainder = x, y => x % y;
            }
        }
    };
    ($t:ident: $($name:ident = $($arg:ident),* => $value:expr;)*) => {
        $(pub extern "C" fn $name($($arg: $t),*) -> $t {
            $value
        })*
    };
}
functions!(single, f32, libm::erff);
functions!(double, f64, libm::erf);

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
        macro_rules! add {
            ($f:ident, 1: $single:literal $double:literal) => {
                t.addresses.insert($single, single::$f as extern "C" fn(f32) -> f32 as usize as u64);
                t.addresses.insert($double, double::$f as extern "C" fn(f64) -> f64 as usize as u64);
            };
            ($f:ident, 2: $single:literal $double:literal) => {
                t.addresses.insert($single, single::$f as extern "C" fn(f32, f32) -> f32 as usize as u64);
                t.addresses.insert($double, double::$f as extern "C" fn(f64, f64) -> f64 as usize as u64);
            };
        }
        add!(exp, 1: "expf" "tw_exp");
        add!(log, 1: "logf" "tw_log");
        add!(sqrt, 1: "sqrtf" "sqrt");
        add!(sin, 1: "tw_sinf" "tw_sin");
        add!(cos, 1: "tw_cosf" "tw_cos");
        add!(tanh, 1: "tanhf" "tw_tanh");
        add!(erf, 1: "erff" "tw_erf");
        add!(floor, 1: "floorf" "floor");
        add!(ceil, 1: "ceilf" "ceil");
        add!(trunc, 1: "truncf" "trunc");
        add!(round, 1: "roundf" "round");
        add!(round_even, 1: "roundevenf" "roundeven");
        add!(round_even, 1: "rintf" "rint");
        add!(pow, 2: "tw_powf" "tw_pow");
        add!(remainder, 2: "fmodf" "fmod");
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
