//! A shell with the real core in Verilator: the link starts, registers are written and read, a stream is fetched.

use std::io::Write;
use std::path::Path;
use std::process::{Command, Stdio};

use tilewright_hw::config::HwConfig;
use tilewright_hw::link::{self, ToBoard, ToHost, addr_bytes, frame, hello, resync_bytes};
use tilewright_hw::regs;
use tilewright_shell::{ShellConfig, ShellLink, ShellMemory, TOP};

mod design;

fn write_reg(addr: u32, value: u32) -> Vec<u8> {
    frame(ToBoard::WriteReg as u8, &[&(addr as u16).to_le_bytes()[..], &value.to_le_bytes()].concat())
}

fn read_reg(addr: u32) -> Vec<u8> {
    frame(ToBoard::ReadReg as u8, &(addr as u16).to_le_bytes())
}

/// Builds the Verilated shell with its bench, and returns the board's answer to `bytes`.
fn answer(config: &HwConfig, clocks_per_bit: u32, bytes: &[u8]) -> Vec<u8> {
    let shell = ShellConfig { host: ShellLink::Uart { clocks_per_bit }, memory: ShellMemory::Host, leds: 0 };
    let dir = tempfile::tempdir().expect("a folder");
    let files = design::write(config, &shell, dir.path());
    let built = Command::new("verilator")
        .args(["--cc", "--exe", "--build", "--assert", "-Wall", "--top-module", TOP, "-CFLAGS", "-O1", "-Mdir"])
        .arg(dir.path().join("build"))
        .arg(format!("-I{}", dir.path().display()))
        .args([design::here().join("../rtl/waivers.vlt"), design::here().join("waivers.vlt")])
        .args(&files)
        .arg(design::here().join("tests/uart_bench.cpp"))
        .output()
        .expect("Verilator runs");
    assert!(built.status.success(), "{}", String::from_utf8_lossy(&built.stderr));
    run(&dir.path().join("build/Vtw_shell"), clocks_per_bit, bytes)
}

fn run(program: &Path, clocks_per_bit: u32, bytes: &[u8]) -> Vec<u8> {
    let mut child = Command::new(program)
        .arg(clocks_per_bit.to_string())
        .stdin(Stdio::piped())
        .stdout(Stdio::piped())
        .spawn()
        .expect("the bench runs");
    child.stdin.take().expect("a pipe").write_all(bytes).expect("the bench reads");
    let output = child.wait_with_output().expect("the bench ends");
    assert!(output.status.success());
    output.stdout
}

#[test]
fn the_core_answers_over_the_link() {
    let config = design::small();
    let hello = frame(ToHost::Hello as u8, &hello(&config, link::MemorySide::Host));
    let value = |value: u32| frame(ToHost::Value as u8, &value.to_le_bytes());
    let done = frame(ToHost::Done as u8, &[]);
    // Answers come while the next request is sent. Zeros follow a read, because its request is shorter than its answer.
    let sent = [
        vec![0; resync_bytes(&config)],
        read_reg(regs::ID),
        vec![0; 8],
        write_reg(regs::STREAM_ADDR_LO, 0x4560),
        write_reg(regs::STREAM_INSNS, 3),
        read_reg(regs::STREAM_ADDR_LO),
        vec![0; 8],
        write_reg(regs::DOORBELL, 0),
        vec![0; 40],
    ];
    let fetch = |addr: u64, beats: u32| {
        frame(ToHost::ReadRequest as u8, &[&[0][..], &addr_bytes(addr), &[beats as u8 - 1]].concat())
    };
    // Three instructions of 32 bytes in bursts of at most 16 beats of two bytes; the buffer holds four instructions.
    let expected =
        [hello.clone(), hello, value(regs::ID_VALUE), done.clone(), done.clone(), value(0x4560), done].concat();
    let got = answer(&config, 4, &sent.concat());
    assert!(got.starts_with(&expected), "{got:02x?}\n{expected:02x?}");
    assert_eq!(got[expected.len()..], [fetch(0x4560, 16), fetch(0x4580, 16), fetch(0x45a0, 16)].concat());
}
