//! `asm` and `disasm`.

use crate::{fine, refused, tilewright};

const PROGRAM: &str = "load rows=2 push=gemm\ngemm pop=load push=vector\n\
                       vector dst=out pop=gemm push=store\nstore rows=2 pop=vector\n";

#[test]
fn a_program_survives_assembly_and_disassembly() {
    let dir = tempfile::tempdir().unwrap();
    let commented = format!("# a program\n\n{PROGRAM}");
    std::fs::write(dir.path().join("p.tw"), commented).unwrap();
    for hw in ["1x4x4", "1x16x16", "4x16x16"] {
        fine(dir.path(), &["asm", "p.tw", "-o", "p.bin", "--hw", hw]);
        assert_eq!(fine(dir.path(), &["disasm", "p.bin", "--hw", hw]), PROGRAM);
    }
    let outcome = tilewright(dir.path(), &["disasm", "p.bin", "--hw", "1x4x4"]);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.starts_with("error: p.bin: it was encoded for the configuration with hash "));
}

#[test]
fn all_errors_of_a_text_are_told_and_nothing_is_written() {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("p.tw"), "gemm uops\njump\nload rows=0\n").unwrap();
    refused(
        dir.path(),
        &["asm", "p.tw", "-o", "p.bin"],
        "p.tw:1:6: uops is not of the form field=value\n 1 | gemm uops\n   |      ^\n\
         p.tw:2:1: jump is not an instruction; use one of load, gemm, vector, store\n 2 | jump\n   | ^\n\
         p.tw:3:11: rows is 0\n 3 | load rows=0\n   |           ^",
    );
    assert!(!dir.path().join("p.bin").exists());
}

#[test]
fn files_that_cannot_be_used_are_named() {
    let dir = tempfile::tempdir().unwrap();
    refused(dir.path(), &["asm", "no.tw", "-o", "p.bin"], "cannot read no.tw: No such file or directory (os error 2)");
    std::fs::write(dir.path().join("x"), b"\xff\xfe").unwrap();
    refused(
        dir.path(),
        &["asm", "x", "-o", "p.bin"],
        "x is not a program's text: invalid utf-8 sequence of 1 bytes from index 0",
    );
    refused(
        dir.path(),
        &["disasm", "x"],
        "x: it is not an instruction stream; make one with: tilewright asm FILE -o STREAM",
    );
}
