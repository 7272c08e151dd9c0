//! Reads an object and decides where each section goes. Nothing here is mapped or run.

use std::collections::{BTreeMap, BTreeSet, HashMap};

use object::read::elf::{ElfFile, FileHeader};
use object::{
    Architecture, Endianness, Object, ObjectKind, ObjectSection, ObjectSymbol, RelocationFlags, RelocationTarget,
    SectionFlags, SectionIndex, SectionKind, SymbolFlags, SymbolIndex, SymbolSection, elf,
};

use super::LoadError;
use super::machine::{Machine, Need, STUB};

/// Images stay below this size, so that 32 bits reach from every place to every other.
const MAX_IMAGE: u64 = 1 << 31;

/// A section with its place in the image.
pub struct Placed<'d> {
    pub name: String,
    pub offset: usize,
    pub size: usize,
    /// Initial content; empty for zeros.
    pub data: &'d [u8],
    pub relocations: Vec<Reloc>,
}

/// One relocation.
pub struct Reloc {
    pub offset: u64,
    pub kind: elf::RelocationType,
    pub symbol: usize,
    pub addend: i64,
}

/// What a symbol refers to.
pub enum Target {
    /// A place in the image.
    Here(usize),
    /// A name in the import table.
    Import(String),
}

/// Layout of an image.
pub struct Plan<'d> {
    pub machine: Machine,
    pub sections: Vec<Placed<'d>>,
    pub symbols: HashMap<usize, Target>,
    /// Offsets of the pointers in the global offset table, by symbol.
    pub got: BTreeMap<usize, usize>,
    /// Offset of the global offset table.
    pub table: usize,
    /// Offsets of the jumps to imports, by symbol.
    pub stubs: BTreeMap<usize, usize>,
    pub functions: HashMap<String, usize>,
    pub code_end: usize,
    pub constants_end: usize,
    pub size: usize,
}

fn format(e: impl std::fmt::Display) -> LoadError {
    LoadError::Format(e.to_string())
}

fn unsupported(what: &'static str, name: &str) -> LoadError {
    LoadError::Unsupported { what, name: name.to_string() }
}

#[derive(Clone, Copy, PartialEq)]
enum Class {
    Code,
    Constant,
    Data,
}

/// How a section is loaded and protected; `None` if the code does not need it.
fn class(name: &str, kind: SectionKind, flags: SectionFlags) -> Result<Option<Class>, LoadError> {
    let SectionFlags::Elf { sh_flags, .. } = flags else { return Err(format("no ELF section flags")) };
    let has = |flag: elf::SectionFlags| sh_flags.0 & flag.0 != 0;
    let unwinds = name == ".eh_frame" || name.starts_with(".ARM.ex");
    if !has(elf::SHF_ALLOC) || unwinds || kind == SectionKind::Note {
        return Ok(None);
    }
    if has(elf::SHF_TLS) {
        return Err(unsupported("thread-local storage", name));
    }
    let starts = [".init_array", ".fini_array", ".preinit_array", ".ctors", ".dtors", ".init", ".fini"];
    if starts.iter().any(|s| name == *s || name.starts_with(&format!("{s}."))) {
        return Err(unsupported("constructors", name));
    }
    let (write, exec) = (has(elf::SHF_WRITE), has(elf::SHF_EXECINSTR));
    match (write, exec) {
        (true, true) => Err(unsupported("memory that is writable and executable", name)),
        (false, true) => Ok(Some(Class::Code)),
        (true, false) => Ok(Some(Class::Data)),
        (false, false) => Ok(Some(Class::Constant)),
    }
}

type Header32 = elf::FileHeader32<Endianness>;
type Header64 = elf::FileHeader64<Endianness>;

/// Whether a file has addresses of 32 bits.
fn is_of_32_bits(bytes: &[u8]) -> bool {
    bytes.get(4) == Some(&elf::ELFCLASS32.0)
}

/// Parses a relocatable object for any processor.
fn parse<E: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<(ElfFile<'_, E>, Architecture), LoadError> {
    let file = ElfFile::<E>::parse(bytes).map_err(format)?;
    if file.kind() != ObjectKind::Relocatable || !file.is_little_endian() {
        return Err(format("not a relocatable object"));
    }
    let architecture = file.architecture();
    Ok((file, architecture))
}

/// What an object needs from its linker or loader.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Needs {
    /// The names that it uses but does not define, sorted.
    pub imports: Vec<String>,
    /// The processor that it is for, by ELF's number (`e_machine`).
    pub machine: u16,
}

/// Returns what an object for any processor needs.
///
/// # Errors
/// [`LoadError::Format`] if it is not a relocatable object.
pub fn needs(bytes: &[u8]) -> Result<Needs, LoadError> {
    if is_of_32_bits(bytes) { needs_of::<Header32>(bytes) } else { needs_of::<Header64>(bytes) }
}

fn needs_of<E: FileHeader<Endian = Endianness>>(bytes: &[u8]) -> Result<Needs, LoadError> {
    let (file, _) = parse::<E>(bytes)?;
    let machine = file.elf_header().e_machine(file.endian()).0;
    let names = file.symbols().filter(ObjectSymbol::is_undefined).map(|s| s.name().map(str::to_string));
    // Linkers make the table; the routines of 32-bit Arm unwind.
    let is_made = |name: &str| name == "_GLOBAL_OFFSET_TABLE_" || name.starts_with("__aeabi_unwind_cpp_pr");
    let names: Result<BTreeSet<String>, _> =
        names.filter(|name| !matches!(name, Ok(name) if name.is_empty() || is_made(name))).collect();
    Ok(Needs { imports: names.map_err(format)?.into_iter().collect(), machine })
}

/// Reads an object for a processor and lays it out.
pub fn plan(bytes: &[u8], machine: Machine) -> Result<Plan<'_>, LoadError> {
    match machine {
        Machine::Arm32 => plan_of::<Header32>(bytes, machine),
        Machine::X86 | Machine::Arm | Machine::RiscV => plan_of::<Header64>(bytes, machine),
    }
}

fn plan_of<E: FileHeader<Endian = Endianness>>(bytes: &[u8], machine: Machine) -> Result<Plan<'_>, LoadError> {
    let (file, architecture) = parse::<E>(bytes)?;
    if Machine::of(architecture) != Some(machine) {
        return Err(format(format_args!("not a relocatable object for {}", machine.name())));
    }
    let mut chosen = Vec::new();
    for section in file.sections() {
        let name = section.name().map_err(format)?.to_string();
        let Some(class) = class(&name, section.kind(), section.flags())? else { continue };
        let data: &[u8] = if section.kind().is_bss() { &[] } else { section.data().map_err(format)? };
        if !data.is_empty() && data.len() as u64 != section.size() {
            return Err(format(format!("section {name} is cut short")));
        }
        let mut relocations = Vec::new();
        for (offset, r) in section.relocations() {
            let RelocationFlags::Elf { r_type } = r.flags() else { return Err(format("no ELF relocation")) };
            if machine.passes(r_type) {
                continue;
            }
            let RelocationTarget::Symbol(SymbolIndex(symbol)) = r.target() else {
                return Err(format(format!("a relocation of {name} has no symbol")));
            };
            // 32-bit Arm has addends in the places.
            if r.has_implicit_addend() && machine != Machine::Arm32 {
                return Err(unsupported("relocations without addend", &name));
            }
            relocations.push(Reloc { offset, kind: r_type, symbol, addend: r.addend() });
        }
        chosen.push((section.index(), class, name, section.size(), section.align().max(1), data, relocations));
    }

    // Every symbol that a relocation names, once, whichever section it is in.
    let named: BTreeSet<usize> = chosen.iter().flat_map(|c| &c.6).map(|r| r.symbol).collect();
    let (mut got_users, mut call_users) = (BTreeSet::new(), BTreeSet::new());
    for r in chosen.iter().flat_map(|c| &c.6) {
        match machine.need(r.kind) {
            Need::Pointer => got_users.insert(r.symbol),
            Need::Jump => call_users.insert(r.symbol),
            Need::Nothing => false,
        };
    }
    let mut imports = HashMap::new();
    let mut defined = HashMap::new();
    for &index in &named {
        let symbol = file.symbol_by_index(SymbolIndex(index)).map_err(format)?;
        let name = symbol.name().map_err(format)?.to_string();
        if let SymbolFlags::Elf { st_info, .. } = symbol.flags()
            && st_info.st_type() == elf::STT_GNU_IFUNC
        {
            return Err(unsupported("indirect functions", &name));
        }
        match symbol.section() {
            SymbolSection::Undefined => {
                imports.insert(index, name);
            }
            SymbolSection::Section(SectionIndex(s)) => {
                defined.insert(index, (s, symbol.address(), name));
            }
            SymbolSection::Common => return Err(unsupported("common symbols", &name)),
            _ => return Err(unsupported("absolute symbols", &name)),
        }
    }

    let mut at = 0u64;
    let mut sections = Vec::new();
    let mut places: HashMap<usize, (usize, usize)> = HashMap::new();
    let mut place = |class: Class, at: &mut u64| -> Result<(), LoadError> {
        for c in &mut chosen {
            if c.1 != class {
                continue;
            }
            if !c.4.is_power_of_two() || c.4 > 1 << 16 {
                return Err(format(format!("section {} has alignment {}", c.2, c.4)));
            }
            let start = at.next_multiple_of(c.4.max(16));
            *at = start.checked_add(c.3).filter(|&e| e < MAX_IMAGE).ok_or_else(|| format("the image exceeds 2 GiB"))?;
            places.insert(c.0.0, (start as usize, c.3 as usize));
            sections.push(Placed {
                name: std::mem::take(&mut c.2),
                offset: start as usize,
                size: c.3 as usize,
                data: c.5,
                relocations: std::mem::take(&mut c.6),
            });
        }
        Ok(())
    };
    let page = |at: u64| at.next_multiple_of(machine.page() as u64);
    place(Class::Code, &mut at)?;
    let mut stubs = BTreeMap::new();
    at = at.next_multiple_of(STUB as u64);
    for &s in call_users.iter().filter(|s| imports.contains_key(s)) {
        stubs.insert(s, at as usize);
        at += STUB as u64;
    }
    at = page(at);
    let code_end = at as usize;
    place(Class::Constant, &mut at)?;
    let mut got = BTreeMap::new();
    at = at.next_multiple_of(8);
    let table = at as usize;
    for &s in &got_users {
        got.insert(s, at as usize);
        at += 8;
    }
    at = page(at);
    let constants_end = at as usize;
    place(Class::Data, &mut at)?;
    at = page(at);
    if at >= MAX_IMAGE {
        return Err(format("the image exceeds 2 GiB"));
    }

    let mut symbols = HashMap::new();
    for (index, name) in imports {
        symbols.insert(index, Target::Import(name));
    }
    for (index, (section, value, name)) in defined {
        let Some(&(start, size)) = places.get(&section) else {
            return Err(format(format!("symbol `{name}` is in a section that is not loaded")));
        };
        if value > size as u64 {
            return Err(format(format!("symbol `{name}` is outside its section")));
        }
        symbols.insert(index, Target::Here(start + value as usize));
    }
    let mut functions = HashMap::new();
    for symbol in file.symbols() {
        if symbol.is_global()
            && symbol.is_definition()
            && let SymbolFlags::Elf { st_info, .. } = symbol.flags()
            && st_info.st_type() == elf::STT_FUNC
            && let SymbolSection::Section(SectionIndex(s)) = symbol.section()
            && let Some(&(start, size)) = places.get(&s)
            && start < code_end
            && symbol.address() < size as u64
        {
            let name = symbol.name().map_err(format)?;
            if machine == Machine::Arm32 && symbol.address() & 1 == 1 {
                return Err(unsupported("Thumb instructions", name));
            }
            functions.insert(name.to_string(), start + symbol.address() as usize);
        }
    }
    Ok(Plan { machine, sections, symbols, got, table, stubs, functions, code_end, constants_end, size: at as usize })
}
