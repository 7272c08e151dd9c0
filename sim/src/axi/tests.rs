//! Checks that the bench detects faulty peripherals.

use super::*;
use crate::random::{FaultKind, MEMORY_BYTES, Program, generate, plant, sample_config};
use rand::SeedableRng;
use rand::rngs::SmallRng;
use tilewright_hw::device::Base;
use tilewright_hw::host::BaseRegisters;
use tilewright_hw::isa::Unit;
use tilewright_hw::regs;

fn config() -> HwConfig {
    sample_config(&mut SmallRng::seed_from_u64(1000))
}

/// A bug planted in the peripheral's own source, and what the bench reports.
struct Mutant {
    name: &'static str,
    /// Texts that occur once in the source, where ports are not aligned, and their replacements.
    edits: &'static [(&'static str, &'static str)],
    said: &'static str,
}

const MUTANTS: &[Mutant] = &[
    Mutant {
        name: "a read's request is not kept",
        edits: &[(".pop_i(m_axi_arvalid && m_axi_arready)", ".pop_i(m_axi_arvalid)")],
        said: "AR",
    },
    Mutant {
        name: "reads bypass the queue, so they are dropped at a trap",
        edits: &[
            (".ar_ready_i(!ar_full)", ".ar_ready_i(m_axi_arready)"),
            (".push_i(ar_valid && !ar_full)", ".push_i(1'b0)"),
            (".pop_i(m_axi_arvalid && m_axi_arready)", ".pop_i(1'b0)"),
            (".data_o({m_axi_arid[0], m_axi_arlen, m_axi_araddr})", ".data_o()"),
            (
                "assign m_axi_arvalid = !ar_empty;",
                "assign {m_axi_arvalid, m_axi_arid, m_axi_arlen, m_axi_araddr} = {ar_valid, ar_id, ar_len, ar_addr};",
            ),
        ],
        said: "ARVALID falls before READY",
    },
    Mutant {
        name: "a write's request drops for a cycle",
        edits: &[("assign m_axi_awvalid = !aw_empty;", "assign m_axi_awvalid = !aw_empty && !m_axi_rvalid;")],
        said: "AWVALID falls before READY",
    },
    Mutant {
        name: "data wait until their address is taken",
        edits: &[
            (
                "  logic [7:0]       ar_len, aw_len;\n",
                "  logic [7:0]       ar_len, aw_len;\n  logic w_valid;\n  assign m_axi_wvalid = w_valid && aw_empty;\n",
            ),
            (".w_valid_o(m_axi_wvalid)", ".w_valid_o(w_valid)"),
            (".w_ready_i(m_axi_wready)", ".w_ready_i(m_axi_wready && aw_empty)"),
        ],
        said: "does not end",
    },
    Mutant {
        name: "beats are announced at half their size",
        edits: &[("m_axi_arsize  = 3'($clog2(BusBytes))", "m_axi_arsize  = 3'($clog2(BusBytes) - 1)")],
        said: "AR: beats do not have the full bus width",
    },
    Mutant {
        name: "addresses lack a bit",
        edits: &[(".data_i({aw_len, aw_addr})", ".data_i({aw_len, 1'b0, aw_addr[AddrW-2:0]})")],
        said: "AW: the burst is outside the buffer",
    },
    Mutant {
        name: "a bus error is not reported",
        edits: &[(".r_resp_i(m_axi_rresp)", ".r_resp_i(2'd0)")],
        said: "no trap",
    },
];

/// Returns a source without the spaces that align the ports of instances: `.data_i  (x)` becomes `.data_i(x)`.
fn unaligned(text: &str) -> String {
    let line = |line: &str| match line.split_once('(') {
        Some((port, rest)) if port.trim_start().starts_with('.') => format!("{}({rest}\n", port.trim_end()),
        _ => format!("{line}\n"),
    };
    text.lines().map(line).collect()
}

/// Returns the sources with a bug planted in one of them.
fn sources(mutant: &Mutant) -> Vec<(&'static str, String)> {
    let changed = |name: &str, text: &str| {
        let mut text = unaligned(text);
        for (before, after) in mutant.edits.iter().filter(|_| name == "tw_axi.sv") {
            assert_eq!(text.matches(before).count(), 1, "{}: {before}", mutant.name);
            text = text.replace(before, after);
        }
        text
    };
    SOURCES.iter().map(|(name, text)| (*name, changed(name, text))).collect()
}

/// Runs a program by hand. Returns whether it trapped.
fn run(axi: &mut Axi, program: &Program, config: &HwConfig) -> Result<bool, String> {
    let told = |error: io::Error| error.to_string();
    let from = axi.buffer_addr();
    axi.write_buffer(0, &program.image).map_err(told)?;
    axi.write_buffer(program.stream_addr, &program.stream).map_err(told)?;
    let bases: Vec<Base> =
        program.bases.iter().map(|base| Base { addr: from + base.addr, limit: base.limit }).collect();
    let mut command = program.command();
    command.stream_addr += from;
    BaseRegisters::new(config).set(axi, &bases).map_err(told)?;
    axi.write_reg(regs::CONTROL, regs::CONTROL_IRQ_ENABLE).map_err(told)?;
    axi.enable_interrupt().map_err(told)?;
    axi.start(&command).map_err(told)?;
    if !axi.wait_for_interrupt(Duration::from_millis(5)).map_err(told)? {
        return Err("the command does not end".into());
    }
    let trapped = axi.trap().map_err(told)?.is_some();
    axi.write_reg(regs::IRQ_CLEAR, 1).map_err(told)?;
    axi.soft_reset(1000).map_err(told)?;
    if axi.is_idle() { Ok(trapped) } else { Err("the bus is not idle after the end".into()) }
}

/// Runs random programs, and then programs with planted faults (bus errors among them), which must all trap. Returns
/// the first problem found.
fn found(sources: &[(&str, &str)], config: &HwConfig) -> Option<String> {
    let half = 1 << (config.offset_bits - 1);
    let options = AxiOptions {
        buffer_addr: half,
        buffer_bytes: 2 * MEMORY_BYTES,
        answering_bytes: Some(MEMORY_BYTES),
        pressure: 9,
        seed: 1,
        ..AxiOptions::default()
    };
    let mut axi = match Axi::of_sources(config, sources, &options, &|_| {}) {
        Ok(axi) => axi,
        Err(error) => return Some(error.to_string()),
    };
    for seed in 0..6 {
        if let Err(text) = run(&mut axi, &generate(config, seed, 20), config) {
            return Some(text);
        }
    }
    let kinds = [
        FaultKind::Bus(Unit::Load),
        FaultKind::Opcode,
        FaultKind::Scratchpad(Unit::Gemm),
        FaultKind::Limit(Unit::Load),
    ];
    for fault in (0..32).filter_map(|seed| plant(config, kinds[seed as usize % kinds.len()], seed)) {
        match run(&mut axi, &fault.program, config) {
            Ok(true) => {}
            Ok(false) => return Some("no trap".into()),
            Err(text) => return Some(text),
        }
    }
    None
}

#[test]
fn every_mistake_finds_its_place() {
    MUTANTS.iter().for_each(|mutant| drop(sources(mutant)));
}

#[test]
#[ignore = "builds the design eight times; make test-full runs it"]
fn planted_mistakes_are_found() {
    if !tilewright_testing::has_program("verilator") {
        return;
    }
    assert_eq!(found(SOURCES, &config()), None);
    for mutant in MUTANTS {
        let sources = sources(mutant);
        let sources: Vec<(&str, &str)> = sources.iter().map(|(name, text)| (*name, text.as_str())).collect();
        let said = found(&sources, &config()).unwrap_or_else(|| panic!("{}: no error is reported", mutant.name));
        assert!(said.contains(mutant.said), "{}: {said}", mutant.name);
    }
}
