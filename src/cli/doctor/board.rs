//! What a board behind a port is, and whether it works.

use anyhow::Result;
use serde_json::json;
use tilewright::board::check_memory;
use tilewright::devices::{Port, open_port};
use tilewright_hw::config::HwConfig;
use tilewright_hw::link::Memory;

use crate::cli::{Verdict, write_or_print};

/// Opens the link, says what is there, and lets the board copy some bytes.
pub fn run(port: &Port, config: &HwConfig, as_json: bool) -> Result<Verdict> {
    let mut device = open_port(port, config)?;
    let identity = device.identity();
    let check = check_memory(&mut device)?;
    let fine = check.wrong == 0;
    let hello = identity.hello;
    let memory = match hello.memory {
        Memory::Host => "host",
        Memory::Board { .. } => "board",
    };
    let memory_bytes = hello.memory.bytes();
    let size = memory_bytes.map_or(String::new(), |bytes| format!(" ({} KiB)", bytes >> 10));
    let beat = 1u64 << hello.beat_log;
    let text = if as_json {
        let report = json!({
            "fine": fine,
            "port": port.path,
            "baud": port.baud,
            "link": hello.version,
            "memory": memory,
            "memory_bytes": memory_bytes,
            "beat_bytes": beat,
            "isa": identity.core.isa_version,
            "config": format!("{:016x}", identity.core.config_hash),
            "hw": config.name,
            "check": { "bytes": check.bytes, "wrong": check.wrong, "cycles": check.cycles, "seconds": check.seconds },
            "retries": device.retries(),
        });
        format!("{report}\n")
    } else {
        let cycles = check.cycles.map_or(String::new(), |cycles| format!(" in {cycles} cycles"));
        let memory_line = match check.wrong {
            0 => format!("ok       memory     {} bytes there and back{cycles}, {:.3} s", check.bytes, check.seconds),
            wrong => format!("wrong    memory     {wrong} of {} bytes came back wrong{cycles}", check.bytes),
        };
        format!(
            "ok       link       {port}: version {}, memory on the {memory}{size}, beats of {beat} bytes\n\
             ok       isa        version {}\n\
             ok       config     {:016x}, {}\n\
             {memory_line}\n",
            hello.version, identity.core.isa_version, identity.core.config_hash, config.name
        )
    };
    write_or_print(None, text.as_bytes())?;
    Ok(if fine { Verdict::Fine } else { Verdict::No })
}
