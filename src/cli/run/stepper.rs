//! Runs programs on a device, as a whole or one instruction at a time.

use std::io::{BufRead, IsTerminal, Write};
use std::time::Instant;

use anyhow::{Context, Result, anyhow, bail};
use serde_json::json;
use tilewright::device::names;
use tilewright::device::stream;
use tilewright::examine::parts::Part;
use tilewright::examine::stalls::{self, Stalls};
use tilewright::examine::trace;
use tilewright::message::in_one_line;
use tilewright_hw::config::{HwConfig, Mem};
use tilewright_hw::device::{Base, Command, Device, RunReport, Trap};
use tilewright_hw::isa::{GemmUop, INSN_BYTES, Insn, UnitSet, VectorUop, print_insn};
use tilewright_hw::regs::{TrapCause, TrapUnit};
use tilewright_runtime::artifact::InsnLayers;

use super::arguments::{Run, counters};
use super::memory::{RunMemory, number};
use crate::cli::program::text_program;
use crate::cli::{Verdict, write_or_print};

/// Runs a program's text or stream. Every base register covers all of device memory, so that offsets are addresses.
pub fn run(args: &Run, bytes: &[u8]) -> Result<Verdict> {
    let config = args.config()?;
    let file = args.file.display().to_string();
    let program = if stream::is_one(bytes) {
        stream::from_file(&file, bytes, &config)?
    } else {
        text_program(&file, bytes, &config)?
    };
    let code = stream::encode_all(&file, &program, &config)?;
    if !args.device.is_accelerator() {
        bail!("a program runs on an accelerator; use --device {}", names(|spec| spec.is_accelerator()));
    }
    // A board reports the size of its memory.
    let board = if args.device.port().is_some() { args.open(&config)? } else { None };
    let bytes = board.as_ref().map_or(config.memory_bytes(), |board| board.memory_bytes());
    let memory = RunMemory::plan(args, &config, bytes, code)?;
    let opened = if board.is_some() { board } else { args.open(&config)? };
    let Some(mut device) = opened else {
        bail!("device {} cannot run programs; use --device {}", args.device, names(|spec| spec.is_accelerator()));
    };
    let device = device.as_mut();
    memory.install(device)?;
    let (stream_addr, bases) = (memory.stream_addr, memory.bases(&config));
    let started = Instant::now();
    let report = if args.step {
        step(device, &program, &config, stream_addr, &bases, args.json)?
    } else {
        device.run(&Command { stream_addr, insns: program.len() as u32, bases: bases.clone(), cycle_limit: None })?
    };
    let wall_s = started.elapsed().as_secs_f64();
    memory.save(device)?;
    let never_started = stalls::never_started(&report);
    let part = |cycles| Part {
        name: file,
        number: 0,
        program: &program,
        layers: &[],
        insn_layers: InsnLayers::default(),
        spans: &report.spans,
        never_started: &never_started,
        cycles,
    };
    let parts: Vec<Part> = report.cycles.map(part).into_iter().collect();
    if let Some(path) = &args.trace {
        trace::write(path, &config, &parts).with_context(|| format!("--trace {}", path.display()))?;
    }
    let stalls = args.top_stalls.map(|most| stalls::worst(&parts, most as usize));
    let trap = report.trap.map(|trap| Trapped::new(trap, &program, report.trap_text.clone(), device, &bases));
    show(args, &config, device, &report, trap, stalls.as_ref(), wall_s)?;
    Ok(if report.trap.is_none() { Verdict::Fine } else { Verdict::No })
}

/// A trap, the instruction that caused it, and an explanation.
struct Trapped {
    trap: Trap,
    insn: Option<(usize, String)>,
    text: Option<String>,
}

impl Trapped {
    fn new(trap: Trap, program: &[Insn], text: Option<String>, device: &mut dyn Device, bases: &[Base]) -> Trapped {
        let of_unit = |(_, insn): &(usize, &Insn)| trap.unit == TrapUnit::Fetch || trap.unit == insn.unit().into();
        let insn = program.iter().enumerate().filter(of_unit).nth(trap.ordinal as usize);
        let explained = || {
            let (_, insn) = insn.filter(|_| trap.unit != TrapUnit::Fetch)?;
            tilewright_sim::explain(device, &insn.op, bases, trap.cause)
        };
        let text = text.or_else(explained);
        Trapped { trap, insn: insn.map(|(place, insn)| (place, print_insn(insn))), text }
    }

    fn lines(&self) -> String {
        let insn = self.insn.as_ref().map_or(String::new(), |(place, insn)| format!("{place:>6}  {insn}\n"));
        let text = self.text.as_ref().map_or(String::new(), |text| format!("      {text}\n"));
        format!("trap: {}\n{insn}{text}", self.trap)
    }
}

/// Says which stalls are missing from the table after a trap.
fn left_out(report: &RunReport) -> &'static str {
    match report.trap {
        Some(trap) if trap.cause != TrapCause::Deadlock => {
            "              stalls of load and store are missing, since the trap ended the run\n"
        }
        _ => "",
    }
}

fn show(
    args: &Run,
    config: &HwConfig,
    device: &dyn Device,
    report: &RunReport,
    trap: Option<Trapped>,
    stalls: Option<&Stalls>,
    wall_s: f64,
) -> Result<()> {
    let dram = args.memory(config);
    let text = if args.json {
        let mut json = json!({
            "device": device.name(),
            "hw": config.name,
            "cycles": report.cycles,
            "macs": report.macs,
            "utilization": report.cycles.map(|c| report.macs as f64 / (c.max(1) * config.macs_per_cycle()) as f64),
            "wall_s": wall_s,
            "dram": dram,
            "stepped": args.step,
            "retired": { "load": report.retired[0], "gemm": report.retired[1], "vector": report.retired[2],
                         "store": report.retired[3] },
            "trap": trap.as_ref().map(|t| t.trap.to_string()),
            "counters": counters(&report.counters),
        });
        if let Some(trap) = trap {
            let insn = trap.insn.unzip();
            json["trap_at"] = json!({ "place": insn.0, "instruction": insn.1, "text": trap.text });
        }
        if let Some(stalls) = stalls {
            json["stalls"] = stalls.json();
        }
        format!("{json}\n")
    } else {
        let none = if args.step && report.retired == [0; 4] { "nothing ran" } else { "this device is untimed" };
        let cycles = report.cycles.map_or(format!("no cycles: {none}"), |c| format!("{c} cycles"));
        let alone = if args.step && report.cycles.is_some() { ", each instruction by itself" } else { "" };
        let [load, gemm, vector, store] = report.retired;
        format!(
            "{} on {}: {cycles}{alone}, {} MACs, retired {load} load, {gemm} gemm, {vector} vector, {store} store\n\
             dram {dram}\n{}{}",
            device.name(),
            config.name,
            report.macs,
            stalls.map_or(String::new(), |stalls| stalls.table() + left_out(report)),
            trap.map_or(String::new(), |trap| trap.lines())
        )
    };
    write_or_print(None, text.as_bytes())
}

/// Reads commands from standard input, typed or from a script.
struct Console {
    interactive: bool,
    lines: std::io::Lines<std::io::StdinLock<'static>>,
    /// Whether to ask before the next instruction.
    asks: bool,
    /// With `--json`, standard output is for the report, so memory is shown on standard error.
    json: bool,
}

impl Console {
    fn new(json: bool) -> Console {
        let lines = std::io::stdin().lock().lines();
        Console { interactive: std::io::stdin().is_terminal(), lines, asks: true, json }
    }

    /// Handles commands until the run continues; returns false to quit. `enter` says what an empty line does.
    fn ask(&mut self, device: &mut dyn Device, config: &HwConfig, enter: &str) -> Result<bool> {
        while self.asks {
            if self.interactive {
                eprint!("enter: {enter}, show MEM ENTRY [COUNT], read ADDRESS LEN, continue, quit > ");
                std::io::stderr().flush()?;
            }
            let Some(line) = self.lines.next().transpose()? else {
                self.asks = false;
                break;
            };
            match line.split_whitespace().collect::<Vec<_>>().as_slice() {
                [] | ["next" | "n"] => break,
                ["continue" | "c"] => self.asks = false,
                ["quit" | "q"] => return Ok(false),
                words => match look(device, config, words) {
                    Ok(text) if self.json => eprint!("{text}"),
                    Ok(text) => write_or_print(None, text.as_bytes())?,
                    Err(error) => eprintln!("error: {}", in_one_line(&error)),
                },
            }
        }
        Ok(true)
    }
}

/// Runs the program one instruction at a time, and asks for commands before each and at the end. Each instruction runs
/// alone and needs no dependency tokens, so they are removed.
fn step(
    device: &mut dyn Device,
    program: &[Insn],
    config: &HwConfig,
    stream_addr: u64,
    bases: &[Base],
    json: bool,
) -> Result<RunReport> {
    let mut total = RunReport::default();
    let mut console = Console::new(json);
    for (place, insn) in program.iter().enumerate() {
        eprintln!("{place:>5}  {}", print_insn(insn));
        if !console.ask(device, config, "next")? {
            return Ok(total);
        }
        let alone = Insn { pop: UnitSet::NONE, push: UnitSet::NONE, op: insn.op };
        let code = stream::encode_all("program", &[alone], config)?;
        debug_assert_eq!(code.len(), INSN_BYTES);
        device.write(stream_addr, &code)?;
        let command = Command { stream_addr, insns: 1, bases: bases.to_vec(), cycle_limit: None };
        let report = device.run(&command)?;
        if let Some(cycles) = report.cycles {
            eprintln!("       {cycles} cycles");
        }
        total.macs += report.macs;
        total.cycles = report.cycles.map(|cycles| cycles + total.cycles.unwrap_or(0));
        for (sum, count) in total.retired.iter_mut().zip(report.retired) {
            *sum += count;
        }
        if let Some(mut trap) = report.trap {
            // The device counts from this instruction; add the earlier instructions of its unit.
            let unit = insn.unit();
            let before = program[..place].iter().filter(|other| other.unit() == unit).count();
            trap.ordinal = if trap.unit == unit.into() { before as u32 } else { place as u32 };
            total.trap = Some(trap);
            eprintln!("       trap: {trap}");
            break;
        }
    }
    eprintln!("  end");
    console.ask(device, config, "finish")?;
    Ok(total)
}

/// Handles `show MEM ENTRY [COUNT]` and `read ADDRESS LEN`.
fn look(device: &mut dyn Device, config: &HwConfig, words: &[&str]) -> Result<String> {
    match words {
        ["show", mem, entry, rest @ ..] => {
            let mem = Mem::ALL
                .into_iter()
                .find(|m| m.name() == *mem)
                .ok_or_else(|| anyhow!("{mem} is not a memory; use {}", Mem::ALL.map(Mem::name).join(", ")))?;
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
                    Mem::GemmUop => {
                        let GemmUop { acc, inp, wgt } = GemmUop::from_bytes(row, config);
                        vec![format!("acc={acc} inp={inp} wgt={wgt}")]
                    }
                    Mem::VectorUop => {
                        let VectorUop { dst, a, b } = VectorUop::from_bytes(row, config);
                        vec![format!("dst={dst} a={a} b={b}")]
                    }
                    _ => row.iter().map(|v| (*v as i8).to_string()).collect(),
                };
                format!("{}[{}] {}\n", mem.name(), entry as usize + i, values.join(" "))
            });
            Ok(rows.collect())
        }
        ["read", address, len] => {
            let (address, len) = (number(address)?, usize::try_from(number(len)?)?);
            if len > 1 << 16 {
                bail!("{len} bytes are too many to show (limit {}); use --read", 1 << 16);
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
