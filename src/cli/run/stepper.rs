//! Programs on a device, whole or one instruction at a time.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Instant;

use anyhow::{Result, anyhow, bail};
use serde_json::json;
use tilewright::devices::DeviceKind;
use tilewright::{dram, stream};
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Base, Command, Device, RunReport};
use tilewright_hw::isa::{INSN_BYTES, Insn, UnitSet, print_insn};

use super::Run;
use super::memory::{Memory, number};
use crate::cli::program::text_program;
use crate::cli::{Verdict, in_one_line, write_or_print};

/// Runs a program's text or stream. Every base register covers the whole of device memory, so that offsets are addresses.
pub fn run(args: &Run, bytes: &[u8]) -> Result<Verdict> {
    let config = args.config()?;
    let file = args.file.display().to_string();
    let program = if stream::is_one(bytes) {
        stream::from_file(&file, bytes, &config)?
    } else {
        text_program(&file, bytes, &config)?
    };
    let code = stream::encode_all(&file, &program, &config)?;
    if args.device == DeviceKind::Cpu {
        bail!("a program runs on an accelerator; use --device fsim or --device rtl");
    }
    let memory = Memory::plan(args, &config, code)?;
    let Some(mut device) = args.open(&config)? else {
        bail!("device {} runs no programs; use --device fsim or --device rtl", args.device);
    };
    let device = device.as_mut();
    memory.install(device)?;
    let (stream_addr, bases) = (memory.stream_addr, memory.bases(&config));
    let started = Instant::now();
    let report = if args.step {
        step(device, &program, &config, stream_addr, &bases)?
    } else {
        device.run(&Command { stream_addr, insns: program.len() as u32, bases, cycle_limit: None })?
    };
    let wall_s = started.elapsed().as_secs_f64();
    memory.save(device)?;
    show(args, &config, device, &report, wall_s)?;
    Ok(if report.trap.is_none() { Verdict::Fine } else { Verdict::No })
}

fn show(args: &Run, config: &HwConfig, device: &dyn Device, report: &RunReport, wall_s: f64) -> Result<()> {
    let dram = dram::text(&config.dram, config.bus_bytes());
    let trap = report.trap.map(|trap| trap.to_string());
    let text = if args.json {
        let json = json!({
            "device": device.name(),
            "hw": config.name,
            "cycles": report.cycles,
            "macs": report.macs,
            "utilization": report.cycles.map(|c| report.macs as f64 / (c.max(1) * config.macs_per_cycle()) as f64),
            "wall_s": wall_s,
            "dram": dram,
            "retired": { "load": report.retired[0], "gemm": report.retired[1], "vector": report.retired[2],
                         "store": report.retired[3] },
            "trap": trap,
        });
        format!("{json}\n")
    } else {
        let cycles =
            report.cycles.map_or("no cycles: this device knows no time".to_string(), |c| format!("{c} cycles"));
        let [load, gemm, vector, store] = report.retired;
        format!(
            "{} on {}: {cycles}, {} MACs, retired {load} load, {gemm} gemm, {vector} vector, {store} store\n\
             dram {dram}\n{}",
            device.name(),
            config.name,
            report.macs,
            trap.map_or(String::new(), |trap| format!("trap: {trap}\n"))
        )
    };
    write_or_print(None, text.as_bytes())
}

/// Runs the program instruction by instruction. Alone on the device each needs no tokens, so they are left out.
fn step(
    device: &mut dyn Device,
    program: &[Insn],
    config: &HwConfig,
    stream_addr: u64,
    bases: &[Base],
) -> Result<RunReport> {
    let mut total = RunReport { cycles: Some(0), ..RunReport::default() };
    let interactive = std::io::stdin().is_terminal();
    let mut lines = std::io::stdin().lock().lines();
    let mut ask = true;
    for (place, insn) in program.iter().enumerate() {
        eprintln!("{place:>5}  {}", print_insn(insn));
        while ask {
            if interactive {
                eprint!("enter: next, show MEM ENTRY [COUNT], read ADDRESS LEN, continue, quit > ");
                std::io::stderr().flush()?;
            }
            let Some(line) = lines.next().transpose()? else {
                ask = false;
                break;
            };
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                [] | ["next" | "n"] => break,
                ["continue" | "c"] => ask = false,
                ["quit" | "q"] => return Ok(total),
                words => match look(device, config, words) {
                    Ok(text) => write_or_print(None, text.as_bytes())?,
                    Err(error) => eprintln!("error: {}", in_one_line(&error)),
                },
            }
        }
        let alone = Insn { pop: UnitSet::NONE, push: UnitSet::NONE, op: insn.op };
        let code = stream::encode_all("program", &[alone], config)?;
        debug_assert_eq!(code.len(), INSN_BYTES);
        device.write(stream_addr, &code)?;
        let command = Command { stream_addr, insns: 1, bases: bases.to_vec(), cycle_limit: None };
        let report = device.run(&command)?;
        total.macs += report.macs;
        total.cycles = total.cycles.zip(report.cycles).map(|(a, b)| a + b);
        for (sum, count) in total.retired.iter_mut().zip(report.retired) {
            *sum += count;
        }
        if let Some(mut trap) = report.trap {
            // The device counted from this instruction; the program's count is that of the instructions before.
            let unit = insn.unit();
            let before = program[..place].iter().filter(|other| other.unit() == unit).count();
            trap.ordinal = if trap.unit == unit.into() { before as u32 } else { place as u32 };
            total.trap = Some(trap);
            return Ok(total);
        }
    }
    Ok(total)
}

/// `show MEM ENTRY [COUNT]` or `read ADDRESS LEN`.
fn look(device: &mut dyn Device, config: &HwConfig, words: &[&str]) -> Result<String> {
    match words {
        ["show", mem, entry, rest @ ..] => {
            let mem = Mem::ALL
                .into_iter()
                .find(|m| m.name() == *mem)
                .ok_or_else(|| anyhow!("{mem} is no memory; use {}", Mem::ALL.map(Mem::name).join(", ")))?;
            let entry = u32::try_from(number(entry)?)?;
            let count = u32::try_from(number(rest.first().copied().unwrap_or("1"))?)?;
            if entry.checked_add(count).is_none_or(|end| end > config.entries(mem)) {
                bail!("{} has {} entries", mem.name(), config.entries(mem));
            }
            let bytes = device.scratchpad(mem, entry, count)?;
            let width = config.entry_bytes(mem) as usize;
            let rows = bytes.chunks(width).enumerate().map(|(i, row)| {
                let values: Vec<String> = match mem {
                    Mem::Acc => row.as_chunks().0.iter().map(|v| i32::from_le_bytes(*v).to_string()).collect(),
                    Mem::GemmUop | Mem::VectorUop => row.iter().map(|v| format!("{v:02x}")).collect(),
                    _ => row.iter().map(|v| (*v as i8).to_string()).collect(),
                };
                format!("{}[{}] {}\n", mem.name(), entry as usize + i, values.join(" "))
            });
            Ok(rows.collect())
        }
        ["read", address, len] => {
            let (address, len) = (number(address)?, usize::try_from(number(len)?)?);
            if len > 1 << 16 {
                bail!("{len} bytes are too many to show; use --read");
            }
            let mut bytes = vec![0; len];
            device.read(address, &mut bytes)?;
            let rows = bytes.chunks(16).enumerate().map(|(i, row)| {
                let hex: Vec<String> = row.iter().map(|v| format!("{v:02x}")).collect();
                format!("{:#08x}  {}\n", address + 16 * i as u64, hex.join(" "))
            });
            Ok(rows.collect())
        }
        _ => bail!(
            "use an empty line for the next instruction, show MEM ENTRY [COUNT], read ADDRESS LEN, continue or quit"
        ),
    }
}
