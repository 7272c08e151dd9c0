//! `run` of programs: inputs, results, single steps, and errors.

use std::path::Path;

use crate::{fine, refused, tilewright, with_input};

/// Copies two rows of 16 bytes from address 4096 to 8192 through out.
const COPY: &str = "load mem=out rows=2 row_bytes=16 row_stride=16 offset=4096 push=store\n\
                    store mem=out rows=2 row_bytes=16 row_stride=16 offset=8192 pop=load\n";

fn folder() -> tempfile::TempDir {
    let dir = tempfile::tempdir().unwrap();
    std::fs::write(dir.path().join("copy.tw"), COPY).unwrap();
    std::fs::write(dir.path().join("in.bin"), (0..32).collect::<Vec<u8>>()).unwrap();
    dir
}

fn bytes(dir: &Path, name: &str) -> Vec<u8> {
    std::fs::read(dir.join(name)).unwrap()
}

#[test]
fn a_program_reads_its_data_and_leaves_its_results() {
    let dir = folder();
    let run = ["--data", "4096=in.bin", "--read", "0x2000:32=out.bin", "--json"];
    let text = fine(dir.path(), &[&["run", "copy.tw"][..], &run[..]].concat());
    assert_eq!(bytes(dir.path(), "out.bin"), bytes(dir.path(), "in.bin"));
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    assert_eq!(json["device"], "fsim");
    assert_eq!(json["retired"]["load"], 1);
    assert_eq!(json["trap"], serde_json::Value::Null);
    // The same program as an assembled stream.
    fine(dir.path(), &["asm", "copy.tw", "-o", "copy.bin"]);
    std::fs::remove_file(dir.path().join("out.bin")).unwrap();
    fine(dir.path(), &[&["run", "copy.bin"][..], &run[..]].concat());
    assert_eq!(bytes(dir.path(), "out.bin"), bytes(dir.path(), "in.bin"));
}

#[test]
fn single_steps_show_what_each_instruction_did() {
    let dir = folder();
    let steps = "show out 1\n\nshow out 1\nread 8192 4\nshow nothing 1\nshow out 5000\n\nread 8192 4\n";
    let outcome = with_input(dir.path(), &["run", "copy.tw", "--step", "--data", "4096=in.bin"], steps);
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let lines: Vec<&str> = outcome.stdout.lines().collect();
    assert_eq!(lines[0], "out[1] 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0 0");
    assert_eq!(lines[1], "out[1] 16 17 18 19 20 21 22 23 24 25 26 27 28 29 30 31");
    assert_eq!(lines[2], "0x002000  00 00 00 00");
    // The stepper also stops after the last instruction.
    assert_eq!(lines[3], "0x002000  00 01 02 03");
    assert!(outcome.stderr.contains("error: nothing is not a memory; use inp, wgt, acc, out, param, guop, vuop\n"));
    assert!(outcome.stderr.contains("error: out has 2048 entries\n"));
    assert!(
        outcome.stderr.contains("    1  store mem=out offset=8192")
            || outcome.stderr.contains("    1  store offset=8192")
    );
}

#[test]
fn steps_leave_standard_output_to_the_report() {
    let dir = folder();
    std::fs::write(dir.path().join("uop.tw"), "load mem=guop row_bytes=4 offset=4096\n").unwrap();
    std::fs::write(dir.path().join("in.bin"), [5u8, 0, 0, 0]).unwrap();
    let arguments = ["run", "uop.tw", "--step", "--json", "--data", "4096=in.bin"];
    let outcome = with_input(dir.path(), &arguments, "\nshow guop 0\nquit\n");
    assert_eq!(outcome.code, 0, "{}", outcome.stderr);
    let json: serde_json::Value = serde_json::from_str(&outcome.stdout).unwrap();
    assert_eq!((&json["stepped"], &json["retired"]["load"]), (&true.into(), &1.into()));
    assert!(outcome.stderr.contains("guop[0] acc=5 inp=0 wgt=0\n"), "{}", outcome.stderr);
}

#[test]
fn a_trap_is_a_no() {
    let dir = folder();
    std::fs::write(
        dir.path().join("far.tw"),
        "load mem=out offset=4096\nload mem=out offset=1099511627775 row_bytes=8\n",
    )
    .unwrap();
    for step in [&[][..], &["--step"][..]] {
        let outcome = tilewright(dir.path(), &[&["run", "far.tw"][..], step].concat());
        assert_eq!(outcome.code, 1, "{}", outcome.stderr);
        assert!(
            outcome.stdout.ends_with(
                "trap: address outside the base's limit at instruction 1 of load\n     \
                 1  load mem=out offset=1099511627775 row_bytes=8\n      \
                 row 0 of plane 0 covers offsets 0xffffffffff to 0x10000000006 from base 0, whose limit is 0x20000000; lower \
                 offset, a stride, a count or row_bytes, or raise the base's limit\n"
            ),
            "{}",
            outcome.stdout
        );
    }
}

#[test]
fn what_cannot_run_is_refused() {
    let dir = folder();
    let dir = dir.path();
    refused(dir, &["run", "no.tw"], "cannot read no.tw: No such file or directory (os error 2)");
    refused(
        dir,
        &["run", "copy.tw", "--device", "cpu"],
        "a program runs on an accelerator; use --device fsim, csim, rtl, serial:PATH, spi:PATH, uio, remote:HOST:PORT or tracker:HOST:PORT/KIND",
    );
    refused(dir, &["run", "copy.tw", "--data", "x=in.bin"], "--data x=in.bin: x is not a number; write 4096 or 0x1000");
    refused(dir, &["run", "copy.tw", "--data", "4096"], "--data 4096 is not of the form ADDRESS=FILE");
    refused(dir, &["run", "copy.tw", "--read", "4096=x"], "--read 4096=x is not of the form ADDRESS:LEN=FILE");
    refused(
        dir,
        &["run", "copy.tw", "--data", "0xfffffffffff=in.bin"],
        "--data 0xfffffffffff=in.bin: 32 bytes at address 0xfffffffffff pass the end of device memory (0x20000000 bytes)",
    );
    refused(
        dir,
        &["run", "copy.tw", "--data", "0x1000=in.bin", "--data", "4127=in.bin"],
        "--data 4127=in.bin: bytes 0x101f to 0x103f overlap --data 0x1000=in.bin at 0x1000 to 0x1020; use another address",
    );
    refused(
        dir,
        &["run", "copy.tw", "--data", "0x1fffdff0=in.bin"],
        "--data 0x1fffdff0=in.bin: bytes 0x1fffdff0 to 0x1fffe010 overlap the program's instructions \
         at 0x1fffe000 to 0x1fffe040; use another address",
    );
    refused(
        dir,
        &["run", "copy.tw", "--read", "0x1fffffff:2=x"],
        "--read 0x1fffffff:2=x: 2 bytes at address 0x1fffffff pass the end of device memory (0x20000000 bytes)",
    );
    refused(
        dir,
        &["run", "copy.tw", "--read", "0:2=in.bin/x"],
        "--read 0:2=in.bin/x: cannot write in.bin/x: Not a directory (os error 20)",
    );
    refused(
        dir,
        &["run", "copy.tw", "--read", "0:2=nowhere/x"],
        "--read 0:2=nowhere/x: cannot write nowhere/x: No such file or directory (os error 2)",
    );
    refused(
        dir,
        &["run", "copy.tw", "--read", "0:2=/dev/stdout"],
        "--read 0:2=/dev/stdout: cannot write /dev/stdout: /dev/stdout is not a plain file",
    );
    refused(
        dir,
        &["run", "copy.tw", "--read", "0:2=x", "--read", "4:2=x"],
        "--read 4:2=x: another --read already writes x",
    );
    refused(
        dir,
        &["run", "copy.tw", "--data", "0=no.bin"],
        "--data 0=no.bin: cannot read no.bin: No such file or directory (os error 2)",
    );
    refused(dir, &["run", "copy.tw", "--waves", "w.fst"], "fsim cannot record waves; use --device rtl");
    refused(
        dir,
        &["run", "copy.tw", "--dram", "latency=x"],
        "--dram: latency=x: is not a whole number up to 1073741824",
    );
    refused(
        dir,
        &["run", "copy.tw", "--input", "in.npy"],
        "--input is for models, but copy.tw is a program; use --data and --read",
    );
    refused(
        dir,
        &["run", "copy.tw", "--explain", "--offload", "all", "-O3"],
        "--explain, --offload and -O are for models, but copy.tw is a program; leave it out",
    );
    refused(dir, &["run", "copy.tw", "--dram", "latency=1,latency=2"], "--dram: latency=2: latency is given twice");
    for (device, message) in [
        (
            "cuda",
            "a program runs on an accelerator; use --device fsim, csim, rtl, serial:PATH, spi:PATH, uio, remote:HOST:PORT or tracker:HOST:PORT/KIND",
        ),
        ("remote:host", "remote: \"host\" is not an address; give HOST:PORT, such as 127.0.0.1:7878"),
        (
            "serial:",
            "serial: is not a valid port; give serial:PATH or serial:PATH@BAUD (the bit rate of the board's \
             bitstream), spi:PATH or",
        ),
        (
            "toaster",
            "no device is named toaster; use fsim, csim, rtl, cpu, cuda, serial:PATH, spi:PATH, uio, remote:HOST:PORT or tracker:HOST:PORT/KIND",
        ),
        (
            "rtl:2",
            "no device is named rtl:2; use fsim, csim, rtl, cpu, cuda, serial:PATH, spi:PATH, uio, remote:HOST:PORT or tracker:HOST:PORT/KIND",
        ),
    ] {
        let outcome = tilewright(dir, &["run", "copy.tw", "--device", device]);
        assert_eq!(outcome.code, 2);
        assert!(outcome.stderr.contains(message), "{}", outcome.stderr);
    }
}

#[test]
fn waves_that_cannot_be_written_are_refused_before_anything_is_built() {
    let dir = folder();
    let message = "--waves nowhere/run.fst: No such file or directory (os error 2); \
                   name a file in a folder that can be written";
    refused(dir.path(), &["run", "copy.tw", "--device", "rtl", "--waves", "nowhere/run.fst"], message);
}

#[test]
fn the_worst_stalls_are_told_with_who_ended_them() {
    let dir = folder();
    let arguments = ["run", "copy.tw", "--device", "csim", "--data", "4096=in.bin", "--top-stalls"];
    let text = fine(dir.path(), &[&arguments[..], &["1"]].concat());
    let lines: Vec<&str> = text.lines().collect();
    assert!(lines[2].starts_with("stalls        ") && lines[2].ends_with("in 2 instructions"), "{text}");
    assert_eq!(
        lines[3].split_whitespace().collect::<Vec<_>>(),
        ["cycles", "share", "unit", "layer", "waits", "for", "instruction"]
    );
    // The store waits for the load's token, then for the acknowledgement of its bursts.
    assert!(lines[4].contains("store 0 at 1  copy.tw") && lines[4].contains(" token of load 0, "), "{text}");
    assert!(lines[4].ends_with("store offset=8192 row_bytes=16 rows=2 row_stride=16 pop=load"), "{text}");
    assert_eq!(lines.len(), 5, "{text}");

    let text = fine(dir.path(), &[&arguments[..], &["9", "--json", "--trace", "copy.json"]].concat());
    let json: serde_json::Value = serde_json::from_str(&text).unwrap();
    let worst = json["stalls"]["worst"].as_array().unwrap();
    assert_eq!(json["stalls"]["instructions"], 2);
    let sum: u64 = worst.iter().map(|stall| stall["cycles"].as_u64().unwrap()).sum();
    assert_eq!(json["stalls"]["cycles"], sum);
    assert_eq!(worst[0]["tokens_of"][0], serde_json::json!({ "unit": "load", "ordinal": 0, "place": 0 }));
    // The trace agrees on each instruction.
    let trace: serde_json::Value = serde_json::from_slice(&bytes(dir.path(), "copy.json")).unwrap();
    for stall in worst {
        let is_it = |row: &&serde_json::Value| {
            row["args"]["place"] == stall["place"] && row["args"]["instruction"] == stall["instruction"]
        };
        let row = trace["traceEvents"].as_array().unwrap().iter().find(is_it).unwrap();
        assert_eq!(row["args"]["stalls"], stall["stalls"]);
        assert_eq!(row["args"]["stalled"], stall["cycles"]);
    }

    refused(
        dir.path(),
        &["run", "copy.tw", "--top-stalls", "3"],
        "fsim cannot trace instructions because it is untimed; use --device csim or --device rtl",
    );
    refused(
        dir.path(),
        &["run", "copy.tw", "--device", "csim", "--step", "--top-stalls", "3", "--trace", "t.json"],
        "--trace and --top-stalls are for complete runs; leave out --step",
    );
    assert_eq!(tilewright(dir.path(), &["run", "copy.tw", "--device", "csim", "--top-stalls", "0"]).code, 2);
}

#[test]
fn a_deadlock_is_told_with_who_waits_for_whom() {
    let dir = folder();
    let text = "load mem=out row_bytes=16\nload mem=out row_bytes=16 pop=store\nstore mem=out row_bytes=16 offset=64 pop=load\n";
    std::fs::write(dir.path().join("stuck.tw"), text).unwrap();
    let outcome = |device: &str, more: &[&str]| {
        let outcome = tilewright(dir.path(), &[&["run", "stuck.tw", "--device", device][..], more].concat());
        assert_eq!((outcome.code, &outcome.stderr[..]), (1, ""), "{}", outcome.stdout);
        outcome.stdout
    };
    let csim = outcome("csim", &[]);
    let trap = &csim[csim.find("trap: ").unwrap()..];
    assert!(trap.starts_with("trap: deadlock at instruction 1 of load in cycle "), "{csim}");
    assert!(trap.contains("\n     1  load mem=out row_bytes=16 pop=store\n"), "{csim}");
    let waits = "load waits at instruction 1 for a token from store, store waits at instruction 2 for a token from load, and \
                 nothing else is running; push one of these tokens from an instruction that can start, or remove its pop";
    assert!(trap.ends_with(&format!("\n      {waits}\n")), "{csim}");
    let json: serde_json::Value = serde_json::from_str(&outcome("csim", &["--json"])).unwrap();
    assert_eq!((&json["trap_at"]["place"], &json["trap_at"]["text"]), (&1.into(), &waits.into()));
    // The design stops in the same cycle at the same instruction, and fsim at the same instruction.
    let rtl: serde_json::Value = serde_json::from_str(&outcome("rtl", &["--json"])).unwrap();
    assert_eq!((&rtl["trap"], &rtl["cycles"]), (&json["trap"], &json["cycles"]));
    // Each unit's counters sum to the cycles.
    assert_eq!(rtl["counters"], json["counters"]);
    for unit in ["load", "gemm", "vector", "store", "fetch"] {
        let counts = json["counters"][unit].as_object().unwrap();
        assert_eq!(
            counts.values().map(|n| n.as_u64().unwrap()).sum::<u64>(),
            json["cycles"].as_u64().unwrap(),
            "{unit}"
        );
    }
    assert_eq!(rtl["trap_at"]["place"], 1);
    assert!(outcome("fsim", &[]).contains("trap: deadlock at instruction 1 of load\n     1  load mem=out"));
}

#[test]
fn the_worst_stalls_of_a_deadlock_are_those_of_instructions_that_never_started() {
    let dir = folder();
    let text = "load mem=out row_bytes=16 push=vector\nload mem=out row_bytes=16 pop=store push=store\n\
                store mem=out row_bytes=16 offset=64 pop=load push=load\n";
    std::fs::write(dir.path().join("stuck.tw"), text).unwrap();
    for device in ["csim", "rtl"] {
        let run = |more: &[&str]| {
            let arguments = [&["run", "stuck.tw", "--device", device, "--top-stalls", "9"][..], more].concat();
            let outcome = tilewright(dir.path(), &arguments);
            assert_eq!((outcome.code, &outcome.stderr[..]), (1, ""), "{}", outcome.stdout);
            outcome.stdout
        };
        let table = run(&[]);
        let row = |start: &str| table.lines().find(|line| line.contains(start)).unwrap_or_else(|| panic!("{table}"));
        assert!(row("  load 1 at 1 ").contains(" token of store 0, and never started  load"), "{table}");
        assert!(row("  store 0 at 2 ").contains(" token of load 1, and never started   store"), "{table}");
        // The rows of a unit sum to its counters.
        let json: serde_json::Value = serde_json::from_str(&run(&["--json"])).unwrap();
        let rows = json["stalls"]["worst"].as_array().unwrap();
        assert_eq!(rows.iter().filter(|row| row["started"] == false).count(), 2);
        for unit in ["load", "store"] {
            let rows = rows.iter().filter(|row| row["unit"] == unit);
            let sum: u64 = rows.map(|row| row["cycles"].as_u64().unwrap()).sum();
            let counts = json["counters"][unit].as_object().unwrap();
            let stalls = counts.iter().filter(|(state, _)| !["empty", "busy"].contains(&state.as_str()));
            assert_eq!(sum, stalls.map(|(_, n)| n.as_u64().unwrap()).sum::<u64>(), "{device} {unit}");
        }
    }
    // If another trap interrupts load and store, the table says that they are missing.
    std::fs::write(dir.path().join("bad.tw"), "load mem=out entry=2047 row_bytes=64\n").unwrap();
    let outcome = tilewright(dir.path(), &["run", "bad.tw", "--device", "csim", "--top-stalls", "9"]);
    assert!(
        outcome.stdout.contains("\n              stalls of load and store are missing, since the trap"),
        "{}",
        outcome.stdout
    );
}

#[test]
fn a_trap_is_told_with_what_was_outside_and_what_to_do() {
    let dir = folder();
    let outside = |program: &str, cause: &str, why: &str| {
        std::fs::write(dir.path().join("bad.tw"), program).unwrap();
        for device in ["fsim", "csim", "rtl"] {
            let outcome = tilewright(dir.path(), &["run", "bad.tw", "--device", device]);
            assert_eq!((outcome.code, &outcome.stderr[..]), (1, ""), "{}", outcome.stdout);
            let trap = &outcome.stdout[outcome.stdout.find("trap: ").unwrap()..];
            assert!(trap.starts_with(&format!("trap: {cause} at instruction ")), "{device}: {trap}");
            assert_eq!(trap.lines().last().unwrap().trim(), why, "{device}");
        }
    };
    outside(
        "load mem=out entry=2046 rows=3 row_bytes=16 offset=4096\n",
        "index outside a memory",
        "row 2 of plane 0 needs entries 2048 to 2048 of out, which has 2048 entries; lower entry, a count, padding or row_bytes",
    );
    outside(
        "store mem=out entry=2047 row_bytes=64 offset=4096\n",
        "index outside a memory",
        "row 0 of plane 0 needs entries 2047 to 2050 of out, which has 2048 entries; lower entry, a count, padding or row_bytes",
    );
    outside(
        "load mem=inp rows=2 row_bytes=32 offset=4096 row_stride=4096 base=3\nload mem=out row_bytes=64 offset=1099511627000\n",
        "address outside the base's limit",
        "row 0 of plane 0 covers offsets 0xfffffffcf8 to 0xfffffffd37 from base 0, whose limit is 0x20000000; lower offset, a \
         stride, a count or row_bytes, or raise the base's limit",
    );
    outside(
        "gemm inp=2040 inp0=1 count0=9\n",
        "index outside a memory",
        "micro-op 0 uses entry 2048 of inp, which has 2048 entries; lower its index, the instruction's index or a loop's step",
    );
    outside(
        "gemm uop=1023 uops=2\n",
        "index outside a memory",
        "micro-op 1024 is past the 1024 entries of guop; lower uop or uops",
    );
    outside(
        "vector op=add dst=out a=acc b=out a_at=2047 a0=1 count0=2\n",
        "index outside a memory",
        "a of micro-op 0 is at 2048 of acc, which has 2048 entries; lower its index, the instruction's index or a loop's step",
    );
    outside(
        "vector op=qadd dst=out a=inp b=inp descriptor=255 b_at=3\n",
        "two accesses to one port of a bank in a cycle",
        "a and b of micro-op 0 are entries 0 and 3 of inp, both in bank 0, which reads one entry per cycle; put one of them into \
         another bank (each holds 1024 consecutive entries) or another memory",
    );
    // The trap names one of two colliding units. The other one is not known after the run.
    let program = "load mem=out rows=200 row_bytes=16 row_stride=16 offset=4096\n\
                   vector op=add dst=out a=acc b=acc b_at=1000 count0=200 dst0=1\n";
    std::fs::write(dir.path().join("bad.tw"), program).unwrap();
    for device in ["csim", "rtl"] {
        let text = tilewright(dir.path(), &["run", "bad.tw", "--device", device]).stdout;
        assert!(
            text.contains("load and another unit access the same bank in the same cycle; put the data they use"),
            "{text}"
        );
    }
}

#[test]
fn a_run_that_takes_longer_than_it_may_is_given_up() {
    let dir = folder();
    let message = |limit: u64, what| {
        let more = if what == "cycles" { "" } else { ", which counts them here" };
        format!("the run did not end within {limit} {what}; raise the limit (run --max-cycles){more}")
    };
    for (device, limit, what) in
        [("fsim", 1, "instructions, or micro-ops or rows of one unit"), ("csim", 100, "cycles"), ("rtl", 100, "cycles")]
    {
        let arguments = ["run", "copy.tw", "--device", device, "--max-cycles"];
        refused(dir.path(), &[&arguments[..], &[&limit.to_string()]].concat(), &message(limit, what));
        fine(dir.path(), &[&arguments[..], &["2000"]].concat());
    }
    // Also in the middle of an instruction; each of these takes a billion cycles or more.
    let long = [
        "gemm count0=1000 count1=1000 count2=1000",
        "vector op=add dst=out a=out b=scalar count0=1000 count1=1000 count2=1000",
        "load mem=inp pack=yes rows=2000 planes=2000 row_bytes=4096",
        "store mem=out pack=yes rows=2000 planes=2000 row_bytes=4096",
    ];
    for (device, what) in
        [("fsim", "instructions, or micro-ops or rows of one unit"), ("csim", "cycles"), ("rtl", "cycles")]
    {
        for text in long {
            std::fs::write(dir.path().join("long.tw"), text).unwrap();
            let arguments = ["run", "long.tw", "--device", device, "--max-cycles", "3000"];
            refused(dir.path(), &arguments, &message(3000, what));
        }
        // A trap before the limit is reported as a trap.
        std::fs::write(dir.path().join("long.tw"), "gemm inp1=1 count0=1000 count1=10 count2=1000 inp0=200").unwrap();
        let outcome = tilewright(dir.path(), &["run", "long.tw", "--device", device, "--max-cycles", "400000"]);
        assert_eq!(outcome.code, 1, "{}", outcome.stderr);
        assert!(outcome.stdout.contains("trap: index outside a memory at instruction 0 of gemm"), "{}", outcome.stdout);
    }
    let lenet = crate::models::lenet();
    let arguments = ["run", &lenet, "--input", &crate::models::digits(), "--device", "csim", "--max-cycles", "1000"];
    let outcome = tilewright(dir.path(), &arguments);
    assert_eq!(outcome.code, 2);
    assert!(outcome.stderr.ends_with(&format!("{}\n", message(1000, "cycles"))), "{}", outcome.stderr);
    refused(
        dir.path(),
        &["run", &lenet, "--device", "cpu", "--input", &crate::models::digits(), "--max-cycles", "9"],
        "cpu cannot limit cycles; use --device fsim, csim or rtl",
    );
}
