//! Writes files from the tables: SystemVerilog packages, C header, manual pages.

use super::{
    DESCRIPTOR_FIELDS, FieldValue, HEADER_BITS, INSN_BITS, ISA_VERSION, Opcode, Unit, VecDst, VecOp, VecSrc, Width,
    insn_bits,
};
use crate::config::{HwConfig, Mem, PAGE_BYTES, PARAMS};
use crate::num::Rounding;
use crate::regs::{self, Access, REGS, TrapCause, TrapUnit, UnitState};
use std::fmt::Write;

/// A generated file: its path from the repository's root, and the function that writes its text.
type Generated = (&'static str, fn() -> String);

/// The generated files that the repository carries.
pub const GENERATED: &[Generated] = &[
    ("hw/rtl/gen/tw_isa_pkg.sv", isa_package),
    ("hw/include/tilewright_hw.h", c_header),
    ("docs/isa.md", manual),
    ("docs/configuration.md", configuration_page),
];

/// The text of the generated file at `path`, or `None` for a path that is not generated.
pub fn generated(path: &str) -> Option<String> {
    GENERATED.iter().find(|(p, _)| *p == path).map(|(_, write)| write())
}

fn upper(name: &str) -> String {
    name.to_uppercase()
}

/// `snake_case` to `UpperCamelCase`.
fn camel(name: &str) -> String {
    name.split('_')
        .map(|w| {
            let mut c = w.chars();
            c.next().map(|f| f.to_uppercase().collect::<String>() + &c.as_str().to_lowercase()).unwrap_or_default()
        })
        .collect()
}

/// Codes that do not depend on the configuration.
fn isa_package() -> String {
    let mut s = String::from(
        "// Codes of the instruction set and the host registers. Written from the tables in hw/src; do not edit.\n\
         package tw_isa_pkg;\n",
    );
    let mut constant = |width: u32, name: String, value: u64| {
        let _ = writeln!(s, "  localparam logic [{}:0] {name} = {width}'d{value};", width - 1);
    };
    for op in Opcode::ALL {
        constant(4, format!("Op{}", camel(op.name())), op as u64);
    }
    for mem in Mem::ALL {
        constant(3, format!("Mem{}", camel(mem.name())), mem as u64);
    }
    for op in VecOp::ALL {
        constant(5, format!("Vec{}", camel(op.name())), *op as u64);
    }
    for source in VecSrc::ALL {
        constant(3, format!("Src{}", camel(&source.to_text())), source as u64);
    }
    for unit in TrapUnit::ALL {
        constant(3, format!("Unit{}", camel(unit.name())), unit as u64);
    }
    for cause in TrapCause::ALL {
        constant(4, format!("Cause{cause:?}"), *cause as u64);
    }
    for state in UnitState::ALL {
        constant(4, format!("State{state:?}"), *state as u64);
    }
    for reg in REGS {
        constant(crate::regs::ADDR_BITS, format!("Reg{}", camel(reg.name)), reg.addr.into());
    }
    for (name, at, bits, _) in DESCRIPTOR_FIELDS {
        constant(9, format!("Desc{}Lsb", camel(name)), *at as u64 * 8);
        constant(7, format!("Desc{}W", camel(name)), (*bits).into());
    }
    let mut mask = |name: &str, holds: fn(VecOp) -> bool| constant(32, name.into(), VecOp::mask(holds).into());
    mask("VecsDeep", VecOp::is_deep);
    mask("VecsWithConstants", |op| op.needs_descriptor(VecSrc::None));
    mask("VecsWithB", VecOp::has_b);
    mask("VecsWithMode", VecOp::has_mode);
    constant(32, "IdValue".into(), crate::regs::ID_VALUE.into());
    constant(32, "IsaVersion".into(), ISA_VERSION.into());
    constant(32, "States".into(), UnitState::ALL.len() as u64);
    constant(32, "DescriptorBytes".into(), super::DESCRIPTOR_BYTES as u64);
    constant(32, "TableBytes".into(), super::TABLE_BYTES as u64);
    constant(32, "TapStride".into(), super::TAP_STRIDE.into());
    constant(32, "ParamRows".into(), super::PARAM_ROWS.into());
    constant(32, "ParamBiasRow".into(), super::PARAM_BIAS_ROW.into());
    constant(32, "ParamMultiplierRow".into(), super::PARAM_MULTIPLIER_ROW.into());
    constant(32, "ParamShiftRow".into(), super::PARAM_SHIFT_ROW.into());
    constant(32, "PageBytes".into(), PAGE_BYTES.into());
    s.push_str("endpackage\n");
    s
}

/// The package of one configuration, which every RTL module reads: its parameters, the sizes derived from them, and the
/// place of each instruction field. It is written to the build folder, not into the repository.
pub fn config_package(config: &HwConfig) -> String {
    let mut s = format!(
        "// Configuration {} (hash {:016x}). Written by HwConfig; do not edit.\npackage tw_cfg_pkg;\n",
        config.name,
        config.hash()
    );
    for p in PARAMS {
        let _ = writeln!(s, "  // {}{}{}", p.doc, if p.unit.is_empty() { "" } else { " Unit: " }, p.unit);
        let _ = writeln!(s, "  localparam int unsigned {} = {};", p.sv, p.value(config));
    }
    let _ = writeln!(s, "  localparam logic [63:0] ConfigHash = 64'h{:016x};", config.hash());
    let mut int = |name: &str, value: u32| {
        let _ = writeln!(s, "  localparam int unsigned {name} = {value};");
    };
    int("BusBytes", config.bus_bytes());
    int("FetchBufferBeats", config.fetch_buffer_beats());
    int("FetchBurstBeats", config.fetch_burst_beats());
    int("LoadRows", config.load_rows());
    int("StoreRows", config.store_rows());
    int("LoadsUnderWay", config.loads_under_way());
    int("StoresUnderWay", config.stores_under_way());
    int("PosW", config.place_bits());
    int("CountW", config.count_bits());
    int("CycleW", config.cycle_bits());
    int("FlightW", config.flight_bits());
    int("RowBytesW", config.row_bytes_bits());
    int("LoadRequests", config.load_requests());
    int("StoreReads", config.store_reads());
    int("FrontWords", config.front_words());
    int("BeatWords", config.beat_words());
    int("RingEntries", config.ring_entries());
    int("InsnWordBits", config.insn_word_bits());
    int("NarrowEntries", Mem::ALL.iter().any(|&m| config.entry_bytes(m) < config.bus_bytes()).into());
    int("ChunkW", config.chunk_index_bits());
    int("RowElements", config.row_elements());
    int("VectorReachesInp", config.vector_reaches_inp().into());
    int("DescriptorEntries", config.descriptor_entries());
    int("TableEntries", config.table_entries());
    int("PassCycles", config.pass_cycles());
    int("VectorSerial", config.vector_serial().into());
    int("VecsBuilt", VecOp::mask(|op| op.is_built(config)));
    for mem in Mem::ALL {
        let name = camel(mem.name());
        int(&format!("{name}EntryBytes"), config.entry_bytes(mem));
        int(&format!("{name}Entries"), config.entries(mem));
        int(&format!("{name}ChunkBytes"), config.chunk_bytes(mem));
    }
    for name in super::WidthName::ALL {
        int(name.sv(), config.width(*name));
    }
    for op in Opcode::ALL {
        int(&format!("{}BodyW", camel(op.name())), insn_bits(op, config) - HEADER_BITS);
    }
    let longest = Opcode::ALL.map(|op| insn_bits(op, config) - HEADER_BITS).into_iter().max().unwrap_or(0);
    int("LongestBodyW", longest);
    // Base-2 logarithms of entry bytes, five bits for each memory, by its code.
    let logs: u64 = Mem::ALL.iter().map(|&m| u64::from(config.entry_bytes(m).ilog2()) << (5 * m as u32)).sum();
    let _ = writeln!(s, "  localparam logic [39:0] EntryLogs = 40'd{logs};");
    for op in Opcode::ALL {
        let mut at = 0;
        for field in op.fields() {
            let name = format!("{}_{}", op.name(), field.name);
            let width = config.field_width(field.width);
            let nominal = match field.width {
                Width::Bits(n) | Width::Pad(n) | Width::WgtZp(n) => n,
                Width::Pack(None) => 1,
                Width::Named(w) | Width::Pack(Some(w)) | Width::Loop3(w) => config.width(w),
            };
            let lsb = if width == 0 { 0 } else { at };
            let _ = writeln!(s, "  localparam bit {name}_has = 1'b{};", u32::from(width != 0));
            let _ = writeln!(s, "  localparam int unsigned {name}_lsb = {lsb};");
            let _ = writeln!(s, "  localparam int unsigned {name}_w = {nominal};");
            let _ =
                writeln!(s, "  localparam logic [{}:0] {name}_default = {nominal}'d{};", nominal - 1, field.default);
            at += width;
        }
    }
    s.push_str("endpackage\n");
    s
}

/// The C header with registers and codes, `hw/include/tilewright_hw.h`.
pub fn c_header() -> String {
    let mut s = String::from(
        "/* Registers and codes of the accelerator. Written from the tables in hw/src; do not edit. */\n\
         #ifndef TILEWRIGHT_HW_H\n#define TILEWRIGHT_HW_H\n\n",
    );
    let mut define = |name: String, value: u64, doc: &str| {
        let _ = writeln!(
            s,
            "#define TW_{name} 0x{value:x}u{}",
            if doc.is_empty() { String::new() } else { format!(" /* {doc} */") }
        );
    };
    define("ISA_VERSION_VALUE".into(), ISA_VERSION.into(), "");
    define("ID_VALUE".into(), crate::regs::ID_VALUE.into(), "");
    define("INSN_BYTES".into(), super::INSN_BYTES as u64, "");
    for reg in REGS {
        define(format!("REG_{}", reg.name), reg.addr.into(), reg.doc);
    }
    for (name, bit) in [
        ("CONTROL_RESET", regs::CONTROL_RESET),
        ("CONTROL_IRQ_ENABLE", regs::CONTROL_IRQ_ENABLE),
        ("STATUS_BUSY", regs::STATUS_BUSY),
        ("STATUS_TRAPPED", regs::STATUS_TRAPPED),
    ] {
        define(name.into(), bit.into(), "");
    }
    for op in Opcode::ALL {
        define(format!("OP_{}", upper(op.name())), op as u64, op.doc().trim());
    }
    for unit in Unit::ALL {
        define(format!("UNIT_{}", upper(unit.name())), unit as u64, "");
    }
    for mem in Mem::ALL {
        define(format!("MEM_{}", upper(mem.name())), mem as u64, "");
    }
    for op in VecOp::ALL {
        define(format!("VEC_{}", upper(op.name())), *op as u64, op.doc().trim());
    }
    for cause in TrapCause::ALL {
        define(format!("TRAP_{}", upper(&format!("{cause:?}"))), *cause as u64, cause.text());
    }
    for state in UnitState::ALL {
        define(format!("STATE_{}", upper(&format!("{state:?}"))), *state as u64, state.doc());
    }
    for (name, at, bits, doc) in DESCRIPTOR_FIELDS {
        define(format!("DESC_{}_OFFSET", upper(name)), *at as u64, &format!("{bits} bits: {doc}"));
    }
    s.push_str("\n#endif\n");
    s
}

fn width_text(width: Width) -> String {
    match width {
        Width::Bits(n) => format!("{n}"),
        Width::Named(w) => w.sv().to_string(),
        Width::Pad(n) => format!("{n} with dma_pad"),
        Width::WgtZp(n) => format!("{n} with wgt_zp"),
        Width::Pack(None) => "1 with dma_pack".into(),
        Width::Pack(Some(w)) => format!("{} with dma_pack", w.sv()),
        Width::Loop3(w) => format!("{} with three loops", w.sv()),
    }
}

/// The codes of a field whose values have names, such as "0 acc, 1 out".
fn codes<V: FieldValue>() -> String {
    let values: Vec<String> =
        (0..).map_while(|raw| V::from_raw(raw).map(|value| format!("{raw} {}", value.to_text()))).collect();
    values.join(", ")
}

fn manual() -> String {
    let mut s = format!(
        "# Instruction set, version {ISA_VERSION}\n\n\
         Generated from the tables in `hw/src/isa` and `hw/src/regs.rs`; do not edit. This page has the encoding.\n\
         [reference/accelerator.md](reference/accelerator.md) says what the instructions do, `hw/TIMING.md` how many cycles\n\
         they take.\n\n\
         An instruction has {INSN_BITS} bits, little-endian:\n\n\
         | bits | content |\n|---|---|\n\
         | 3 to 0 | opcode; 0 traps |\n\
         | 7 to 4 | pop mask: bit 0 load, 1 gemm, 2 vector, 3 store |\n\
         | 11 to 8 | push mask, with the same bits |\n\
         | 15 to 12 | type code: element types of inp, wgt and acc; only 0 (int8, int8, int32) is legal |\n\
         | from {HEADER_BITS} on | the fields in the order of the tables below, without gaps; the rest is zero |\n\n\
         In the tables, a name such as BaseW is a width that depends on the configuration ([widths](#widths)). \"8 with dma_pad\"\n\
         means 8 bits if the configuration has that parameter, otherwise none; the field then has its default.\n\n\
         | field | codes |\n|---|---|\n"
    );
    for (field, codes) in [
        ("`mem`", codes::<Mem>()),
        ("`dst`", codes::<VecDst>()),
        ("`a`, `b`", codes::<VecSrc>()),
        ("`mode`", codes::<Rounding>()),
    ] {
        let _ = writeln!(s, "| {field} | {codes} |");
    }
    s.push('\n');
    for op in Opcode::ALL {
        let _ = writeln!(s, "## {} (opcode {})\n\n{}\n", op.name(), op as u8, op.doc().trim());
        s.push_str("| field | bits | default | meaning |\n|---|---|---|---|\n");
        for f in op.fields() {
            let _ = writeln!(s, "| `{}` | {} | {} | {} |", f.name, width_text(f.width), f.default, f.doc);
        }
        s.push('\n');
    }
    s.push_str("## Vector operations\n\n| code | name | lanes | meaning |\n|---|---|---|---|\n");
    for op in VecOp::ALL {
        let lanes = if op.is_deep() { "requantize" } else { "vector" };
        let _ = writeln!(s, "| {} | `{}` | {lanes} | {} |", *op as u8, op.name(), op.doc().trim());
    }
    let _ = write!(
        s,
        "\nThe second operand is one of:\n\n\
         | name | value |\n|---|---|\n\
         | `acc`, `out` | a row of that memory |\n\
         | `inp` | a row of inp; only if block_in equals block_out |\n\
         | `param` | the bias of each channel; for `requant` the whole entry; for `mac` row r of entry e, at index {} e + r |\n\
         | `scalar` | the descriptor's scalar |\n\
         | `none` | no second operand |\n\n\
         ## Descriptor\n\n| byte | bits | name | meaning |\n|---|---|---|---|\n",
        super::TAP_STRIDE
    );
    for (name, at, bits, doc) in DESCRIPTOR_FIELDS {
        let _ = writeln!(s, "| {at} | {bits} | `{name}` | {doc} |");
    }
    s.push_str("\n## Widths\n\n| width |");
    for (name, _) in crate::config::PRESETS {
        let _ = write!(s, " {name} |");
    }
    s.push_str(" holds |\n|---|");
    s.push_str(&"---|".repeat(crate::config::PRESETS.len() + 1));
    s.push('\n');
    let presets: Vec<HwConfig> =
        crate::config::PRESETS.iter().filter_map(|(name, text)| HwConfig::parse(name, text).ok()).collect();
    for w in super::WidthName::ALL {
        let _ = write!(s, "| {} |", w.sv());
        for c in &presets {
            let _ = write!(s, " {} |", c.width(*w));
        }
        let _ = writeln!(s, " {} |", w.doc());
    }
    for op in Opcode::ALL {
        let _ = write!(s, "| bits of `{}` |", op.name());
        for c in &presets {
            let _ = write!(s, " {} |", insn_bits(op, c));
        }
        let _ = writeln!(s, " of {INSN_BITS} |");
    }
    s.push_str("\n## Host registers\n\n");
    s.push_str(&registers_table());
    s.push_str("\n## Traps\n\n| code | cause |\n|---|---|\n");
    for c in TrapCause::ALL {
        let _ = writeln!(s, "| {} | {} |", *c as u8, c.text());
    }
    s.push_str("\n## States of a unit\n\n| code | state |\n|---|---|\n");
    for st in UnitState::ALL {
        let _ = writeln!(s, "| {} | {} |", *st as u8, st.doc());
    }
    s
}

/// The host registers as a table in Markdown.
pub fn registers_table() -> String {
    let mut s = String::from("| address | name | access | meaning |\n|---|---|---|---|\n");
    for r in REGS {
        let access = match r.access {
            Access::Read => "read",
            Access::ReadWrite => "read, write",
            Access::Write => "write",
        };
        let _ = writeln!(s, "| 0x{:03x} | `{}` | {access} | {} |", r.addr, r.name, r.doc);
    }
    s
}

fn configuration_page() -> String {
    let mut s = String::from(
        "# Configuration\n\n\
         Generated from the tables in `hw/src/config`; do not edit.\n\n\
         A configuration is a TOML file. The keys of this table are at its top level; keys that you leave out have their\n\
         defaults. The tables `[host]`, `[dram]` and `[energy]` below describe what surrounds the accelerator and do not\n\
         change the hardware.\n\n\
         | key | unit | legal | default | meaning |\n|---|---|---|---|---|\n",
    );
    let default = HwConfig::default();
    for p in PARAMS {
        let value = p.value(&default);
        let shown = match p.legal {
            crate::config::Legal::Flag => (value == 1).to_string(),
            crate::config::Legal::Words(words) => {
                words.get(value as usize).map_or(String::new(), |w| format!("\"{w}\""))
            }
            _ => value.to_string(),
        };
        let _ = writeln!(s, "| `{}` | {} | {} | {shown} | {} |", p.key, p.unit, p.legal, p.doc);
    }
    s += "\n## `[host]`: the host's processor and memory\n\n\
          `target` names the processor. The other keys are a model of its speed, which `--offload auto` uses\n\
          ([offload.md](offload.md)). The presets say where their figures come from.\n\n\
          | key | unit | legal | default | meaning |\n|---|---|---|---|---|\n";
    for p in crate::config::HostSection::PARAMS {
        let _ =
            writeln!(s, "| `{}` | {} | {} | {} | {} |", p.key, p.unit, p.legal_text(), (p.get)(&default.host), p.doc);
    }
    let dram = default.dram;
    let rows = [
        ("latency", "cycles", dram.latency.to_string(), "From a request's turn at the memory to its first beat."),
        ("beat_sixteenths", "1/16 cycle", dram.beat_sixteenths.to_string(), "Time per beat; 16 is a beat per cycle."),
        ("shared", "", dram.shared.to_string(), "Reads and writes share the bandwidth."),
        (
            "row_open_sixteenths",
            "1/16 cycle",
            dram.row_open_sixteenths.to_string(),
            "Time to open another row of 2 KiB.",
        ),
        (
            "burst_sixteenths",
            "1/16 cycle",
            dram.burst_sixteenths.to_string(),
            "Extra time per burst, before its beats.",
        ),
    ];
    s += "\n## `[dram]`: the simulators' memory\n\n\
          `--dram` overrides these values; its keys are `latency`, `bandwidth` (bytes per cycle), `shared`, `row` and `burst`.\n\n\
          | key | unit | default | meaning |\n|---|---|---|---|\n";
    for (key, unit, value, doc) in rows {
        let _ = writeln!(s, "| `{key}` | {unit} | {value} | {doc} |");
    }
    s += "\n## `[energy]`: energy coefficients\n\n\
          This table is optional. If you give it, give all of its keys: there are no defaults. With it, `bench` and `profile`\n\
          print energy ([compare.md](compare.md)).\n\n\
          | key | unit | legal | meaning |\n|---|---|---|---|\n| `source` | | text | Where the coefficients come from. |\n";
    for p in crate::config::EnergySection::PARAMS {
        let _ = writeln!(s, "| `{}` | {} | 0 to {} | {} |", p.key, p.unit, crate::config::MOST_ENERGY, p.doc);
    }
    s
}
