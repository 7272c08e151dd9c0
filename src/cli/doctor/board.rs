//! `doctor --device`: identifies a board and checks that it works.

use anyhow::Result;
use serde_json::{Value, json};
use tilewright::device::board::check_memory;
use tilewright::device::{Board, BoardPort};
use tilewright_hw::config::HwConfig;
use tilewright_hw::link::MemorySide;

use crate::cli::{Verdict, progress, write_or_print};

/// How a board is connected to this machine: a line for people, and the same as JSON.
struct Joined {
    line: String,
    json: Value,
}

/// Opens a board, prints what it is, and checks its memory by copying some bytes.
pub fn run(port: &BoardPort, config: &HwConfig, as_json: bool) -> Result<Verdict> {
    let mut board = Board::open(port, config, &progress::tell)?;
    let joined = joined(port, &board);
    let core = board.core();
    let check = check_memory(board.device_mut())?;
    let interrupts = match &board {
        Board::Link(_) => None,
        Board::Peripheral(device) => Some(device.interrupts()),
    };
    let retries = match &board {
        Board::Link(device) => device.retries(),
        Board::Peripheral(_) => 0,
    };
    let no_interrupt = interrupts.is_some_and(|seen| seen.missed > 0);
    let fine = check.wrong == 0 && !no_interrupt;
    let text = if as_json {
        let mut report = json!({
            "fine": fine,
            "device": port.to_string(),
            "isa": core.isa_version,
            "config": format!("{:016x}", core.config_hash),
            "hw": config.name,
            "check": { "bytes": check.bytes, "wrong": check.wrong, "cycles": check.cycles, "seconds": check.seconds },
            "interrupts": interrupts.map(|seen| json!({ "came": seen.came, "missed": seen.missed })),
            "retries": retries,
        });
        if let (Value::Object(report), Value::Object(more)) = (&mut report, joined.json) {
            report.extend(more);
        }
        format!("{report}\n")
    } else {
        let cycles = check.cycles.map_or(String::new(), |cycles| format!(" in {cycles} cycles"));
        let memory_line = match check.wrong {
            0 => format!("ok       memory     {} bytes there and back{cycles}, {:.3} s", check.bytes, check.seconds),
            wrong => format!("wrong    memory     {wrong} of {} bytes came back wrong{cycles}", check.bytes),
        };
        let interrupt_line = match interrupts {
            None => "",
            Some(_) if no_interrupt => {
                "wrong    interrupt  none came; give the node of the device tree the core's interrupt (interrupts)\n"
            }
            Some(_) => "ok       interrupt  came at the command's end\n",
        };
        format!(
            "{}\nok       isa        version {}\nok       config     {:016x}, {}\n{memory_line}\n{interrupt_line}",
            joined.line, core.isa_version, core.config_hash, config.name
        )
    };
    write_or_print(None, text.as_bytes())?;
    Ok(if fine { Verdict::Fine } else { Verdict::No })
}

fn joined(port: &BoardPort, board: &Board) -> Joined {
    match board {
        Board::Link(device) => {
            let hello = device.identity().hello;
            let memory = match hello.memory {
                MemorySide::Host => "host",
                MemorySide::Board { .. } => "board",
            };
            let memory_bytes = hello.memory.bytes();
            let size = memory_bytes.map_or(String::new(), |bytes| format!(" ({} KiB)", bytes >> 10));
            let (version, beat) = (hello.version, 1u64 << hello.beat_log);
            Joined {
                line: format!(
                    "ok       link       {port}: version {version}, memory on the {memory}{size}, beats of {beat} bytes"
                ),
                json: json!({ "link": version, "memory": memory, "memory_bytes": memory_bytes, "beat_bytes": beat }),
            }
        }
        Board::Peripheral(device) => {
            let found = device.peripheral().found();
            let (registers, buffer) = (found.registers.addr, &found.buffer);
            let (addr, bytes) = (buffer.block.addr, buffer.block.bytes);
            let caches = if buffer.coherent { "coherent" } else { "not coherent" };
            Joined {
                line: format!(
                    "ok       uio        {port}: {}, registers at {registers:#x}, {} KiB of memory at {addr:#x}, {caches}",
                    found.uio,
                    bytes >> 10
                ),
                json: json!({
                    "uio": found.uio,
                    "registers": registers,
                    "memory": "processor",
                    "memory_addr": addr,
                    "memory_bytes": bytes,
                    "coherent": buffer.coherent,
                }),
            }
        }
    }
}
