//! Fills an image with its sections and carries out the relocations.

use object::elf;

use super::layout::{Placed, Plan, Reloc, STUB, Target};
use super::{ImportTable, LoadError};

/// Writes sections, jumps to imports and pointers into the image that will stand at `base`.
pub fn fill(plan: &Plan<'_>, image: &mut [u8], base: u64, imports: &ImportTable) -> Result<(), LoadError> {
    for s in &plan.sections {
        put(image, s.offset, s.data)?;
    }
    for (symbol, &at) in &plan.stubs {
        // jmp *[rip+0], then the address.
        let mut stub = [0u8; STUB];
        stub[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
        stub[6..14].copy_from_slice(&address(plan, *symbol, base, imports)?.to_le_bytes());
        put(image, at, &stub)?;
    }
    for (symbol, &at) in &plan.got {
        put(image, at, &address(plan, *symbol, base, imports)?.to_le_bytes())?;
    }
    for s in &plan.sections {
        for r in &s.relocations {
            relocate(plan, s, r, image, base, imports)?;
        }
    }
    Ok(())
}

fn put(image: &mut [u8], at: usize, bytes: &[u8]) -> Result<(), LoadError> {
    match at.checked_add(bytes.len()).and_then(|end| image.get_mut(at..end)) {
        Some(place) => {
            place.copy_from_slice(bytes);
            Ok(())
        }
        None => Err(LoadError::Format("a place outside of the image".into())),
    }
}

/// Where a symbol is.
fn address(plan: &Plan<'_>, symbol: usize, base: u64, imports: &ImportTable) -> Result<u64, LoadError> {
    match plan.symbols.get(&symbol) {
        Some(Target::Here(offset)) => Ok(base + *offset as u64),
        Some(Target::Import(name)) => imports.address(name).ok_or_else(|| LoadError::Unresolved(name.clone())),
        None => Err(LoadError::Format(format!("symbol {symbol} is not there"))),
    }
}

fn relocate(
    plan: &Plan<'_>,
    section: &Placed<'_>,
    r: &Reloc,
    image: &mut [u8],
    base: u64,
    imports: &ImportTable,
) -> Result<(), LoadError> {
    let fail = |reason: &str| LoadError::Relocation {
        section: section.name.clone(),
        offset: r.offset,
        kind: r.kind.0,
        reason: reason.into(),
    };
    let width = match r.kind {
        elf::R_X86_64_64 | elf::R_X86_64_PC64 => 8,
        _ => 4,
    };
    if r.offset.checked_add(width).is_none_or(|end| end > section.size as u64) {
        return Err(fail("it lies outside of the section"));
    }
    let at = section.offset + r.offset as usize;
    let here = base + at as u64;
    let target = |imports: &ImportTable| address(plan, r.symbol, base, imports);
    let value: i128 = match r.kind {
        elf::R_X86_64_64 => target(imports)? as i128 + r.addend as i128,
        elf::R_X86_64_PC64 => target(imports)? as i128 + r.addend as i128 - here as i128,
        elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => {
            // An import may be out of reach, its stub is not.
            let to = match plan.stubs.get(&r.symbol) {
                Some(&stub) => base + stub as u64,
                None => target(imports)?,
            };
            to as i128 + r.addend as i128 - here as i128
        }
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
            let Some(&entry) = plan.got.get(&r.symbol) else { return Err(fail("its pointer is missing")) };
            (base + entry as u64) as i128 + r.addend as i128 - here as i128
        }
        elf::R_X86_64_32 | elf::R_X86_64_32S => target(imports)? as i128 + r.addend as i128,
        elf::R_X86_64_NONE => return Ok(()),
        _ => return Err(fail("its type is not known")),
    };
    match r.kind {
        elf::R_X86_64_64 => put(image, at, &(value as u64).to_le_bytes()),
        elf::R_X86_64_PC64 => put(image, at, &(value as i64).to_le_bytes()),
        elf::R_X86_64_32 => match u32::try_from(value) {
            Ok(v) => put(image, at, &v.to_le_bytes()),
            Err(_) => Err(fail("the address does not fit 32 bits; compile position-independent code")),
        },
        _ => match i32::try_from(value) {
            Ok(v) => put(image, at, &v.to_le_bytes()),
            Err(_) => Err(fail("the distance does not fit 32 bits")),
        },
    }
}
