use std::process::Command;

use super::{CpuModule, ImportTable, LoadError};

/// Compiles C source to a relocatable object; tests of the loader need what compilers really emit.
fn compile(source: &str, flags: &[&str]) -> Vec<u8> {
    let dir = tempfile::tempdir().unwrap();
    let (c, o) = (dir.path().join("a.c"), dir.path().join("a.o"));
    std::fs::write(&c, source).unwrap();
    // Under an emulator `cc` would be the host machine's.
    let cc = match std::env::consts::ARCH {
        "aarch64" => "aarch64-linux-gnu-gcc",
        "riscv64" => "riscv64-linux-gnu-gcc",
        "arm" => "arm-linux-gnueabihf-gcc",
        _ => "cc",
    };
    // Debian's compiler for 32-bit Arm makes Thumb instructions by default.
    let arm: &[&str] = if cfg!(target_arch = "arm") { &["-marm"] } else { &[] };
    let run = Command::new(cc).args(arm).args(["-c", "-O2", "-o"]).arg(&o).args(flags).arg(&c).status();
    assert!(run.expect("a C compiler").success());
    std::fs::read(o).unwrap()
}

const SOURCE: &str = r#"
#include <string.h>
extern float expf(float);
extern void tw_parallel_for(void (*)(void *, long long), void *, long long);
static const int primes[8] = {2, 3, 5, 7, 11, 13, 17, 19};
static int counter = 40;
int shared[4];
const char *const words[3] = {"one", "three", "fifteen"};
int add(void **a) { int *x = a[0], *y = a[1]; *y = x[0] + primes[x[1] & 7]; return 0; }
int count(void **a) { counter++; shared[1] = counter; *(int *)a[0] = shared[1]; return 7; }
int exponent(void **a) { float *x = a[0]; x[1] = expf(x[0]); memset(x + 2, 0, 64); return 0; }
int length(void **a) { int *x = a[0]; x[0] = (int)strlen(words[x[0]]); return 0; }
int pick(void **a) {
    int *x = a[0];
    switch (x[0]) {
    case 0: x[1] = add(a); break;
    case 1: x[1] = 17; break;
    case 2: x[1] = x[2] * 3; break;
    case 3: x[1] = counter; break;
    case 4: x[1] = x[2] / 3; break;
    case 5: x[1] = x[2] ^ 3; break;
    default: x[1] = -1;
    }
    return 0;
}
static void square(void *c, long long i) { ((long long *)c)[i] = i * i; }
int squares(void **a) { tw_parallel_for(square, a[0], 100); return 0; }
"#;

fn call(m: &CpuModule, name: &str, args: &[*mut u8]) -> i32 {
    let f = m.function(name).unwrap_or_else(|| panic!("{name} is not there"));
    // SAFETY: the functions above take this many pointers to arrays of at least the sizes that the tests give.
    unsafe { f.call(args) }
}

#[test]
fn compiled_functions_run() {
    let plain: &[&str] = if cfg!(target_arch = "x86_64") { &["-fPIE", "-fcf-protection=none"] } else { &["-fPIE"] };
    for flags in [&["-fPIC"][..], &["-fPIC", "-fno-plt"], plain, &["-fPIC", "-O0"]] {
        let mut source = SOURCE.replace("strlen(words[x[0]])", "(words[x[0]][3] ? 5 : 3)");
        source.push_str("int twice(void **a) { count(a); return count(a) * 2; }\n");
        let m = CpuModule::load(&compile(&source, flags), &ImportTable::standard()).unwrap();
        let mut x = [100i32, 3];
        let mut y = 0i32;
        assert_eq!(call(&m, "add", &[x.as_mut_ptr().cast(), (&raw mut y).cast()]), 0);
        assert_eq!(y, 107);
        assert_eq!((call(&m, "count", &[(&raw mut y).cast()]), y), (7, 41));
        assert_eq!((call(&m, "twice", &[(&raw mut y).cast()]), y), (14, 43));
        let mut f = [1.5f32; 32];
        call(&m, "exponent", &[f.as_mut_ptr().cast()]);
        assert_eq!((f[1], f[2], f[17], f[18]), (1.5f32.exp(), 0.0, 0.0, 1.5));
        for (choice, want) in [(1, 17), (2, 30), (3, 43), (4, 3), (5, 9), (9, -1)] {
            let mut v = [choice, 0, 10];
            call(&m, "pick", &[v.as_mut_ptr().cast()]);
            assert_eq!(v[1], want);
        }
        let mut word = [1i32];
        call(&m, "length", &[word.as_mut_ptr().cast()]);
        assert_eq!(word[0], 5);
        let mut squares = [0i64; 100];
        call(&m, "squares", &[squares.as_mut_ptr().cast()]);
        assert!(squares.iter().enumerate().all(|(i, &v)| v == (i * i) as i64));
        assert!(m.function("square").is_none() && m.function("shared").is_none());
    }
}

#[test]
fn what_cannot_be_loaded_is_refused_by_name() {
    let refuse = |source: &str, flags: &[&str], want: &str| {
        let e = CpuModule::load(&compile(source, flags), &ImportTable::standard()).unwrap_err().to_string();
        assert!(e.contains(want), "{e}");
    };
    refuse("int puts(const char *); int f(void) { return puts(\"x\"); }", &["-fPIC"], "`puts`");
    refuse("__thread int x = 3; int f(void) { return x++; }", &["-fPIC"], "thread-local storage");
    refuse("int x; int f(void) { return x++; }", &["-fPIC", "-fcommon"], "common symbols (x)");
    refuse("__attribute__((constructor)) void f(void) {}", &["-fPIC"], "constructors (.init_array)");
    let load = |b: &[u8]| CpuModule::load(b, &ImportTable::standard()).unwrap_err();
    assert!(matches!(load(b""), LoadError::Format(_)));
    assert!(matches!(load(b"#!/bin/sh\necho hello\n"), LoadError::Format(_)));
}

#[test]
fn mutated_files_are_errors_not_panics() {
    let good = compile(&SOURCE.replace("strlen(words[x[0]])", "words[x[0]][0]"), &["-fPIC"]);
    let imports = ImportTable::standard();
    CpuModule::load(&good, &imports).unwrap();
    let mut state = 1u64;
    let mut next = || {
        state = state.wrapping_mul(6_364_136_223_846_793_005).wrapping_add(1_442_695_040_888_963_407);
        (state >> 33) as usize
    };
    let mut refused = 0;
    for round in 0..20_000 {
        let mut bytes = good.clone();
        for _ in 0..=next() % 4 {
            // Headers, which are at both ends, get most of the damage.
            let near = [next() % 64, good.len() - 1 - next() % (good.len() / 2), next() % good.len()];
            let at = near[next() % 3];
            bytes[at] = [0, 0xff, 0x80, next() as u8, bytes[at] ^ (1 << (next() % 8))][next() % 5];
        }
        if round % 16 == 0 {
            bytes.truncate(next() % good.len());
        }
        refused += CpuModule::load(&bytes, &imports).is_err() as usize;
    }
    assert!(refused > 2_000, "{refused} of 20000 were refused");
}
