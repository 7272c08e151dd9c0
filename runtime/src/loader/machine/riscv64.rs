//! 64-bit RISC-V: bit fields in several pieces in 32-bit and 16-bit instructions, by "RISC-V ELF psABI". Nothing is
//! relaxed: what linkers can shorten keeps its length.

use object::elf;

use super::site::{Need, OUTSIDE, Refused, STUB, Site};

pub fn need(kind: elf::RelocationType) -> Need {
    match kind {
        elf::R_RISCV_GOT_HI20 => Need::Pointer,
        elf::R_RISCV_CALL | elf::R_RISCV_CALL_PLT | elf::R_RISCV_JAL => Need::Jump,
        _ => Need::Nothing,
    }
}

/// Marks a place that linkers can shorten, or padding up to a boundary that can then shrink.
pub fn passes(kind: elf::RelocationType) -> bool {
    matches!(kind, elf::R_RISCV_NONE | elf::R_RISCV_RELAX | elf::R_RISCV_ALIGN)
}

/// `auipc t3, 0; ld t3, 16(t3); jr t3`, then the address.
pub fn jump(to: u64) -> [u8; STUB] {
    let mut stub = [0u8; STUB];
    for (place, word) in stub.chunks_exact_mut(4).zip([0x0000_0e17u32, 0x010e_3e03, 0x000e_0067]) {
        place.copy_from_slice(&word.to_le_bytes());
    }
    stub[16..24].copy_from_slice(&to.to_le_bytes());
    stub
}

/// The distance whose upper part an instruction loads; `None` for other relocations.
pub fn distance(site: &Site<'_>) -> Result<Option<i64>, Refused> {
    let to = match site.kind {
        elf::R_RISCV_PCREL_HI20 => (site.symbol)()?,
        elf::R_RISCV_GOT_HI20 => site.pointer()?,
        _ => return Ok(None),
    };
    Ok(Some(to.wrapping_add_signed(site.addend).wrapping_sub(site.here).cast_signed()))
}

pub fn relocate(site: &mut Site<'_>) -> Result<(), Refused> {
    let addend = site.addend;
    let symbol = |site: &Site<'_>| -> Result<u64, Refused> { Ok((site.symbol)()?.wrapping_add_signed(addend)) };
    let far = |to: u64, site: &Site<'_>| to.wrapping_add_signed(addend).wrapping_sub(site.here).cast_signed();
    let word = match site.kind {
        elf::R_RISCV_64 => {
            let to = symbol(site)?;
            return site.put(&to.to_le_bytes());
        }
        elf::R_RISCV_ADD32 => site.word()?.wrapping_add(symbol(site)? as u32),
        elf::R_RISCV_SUB32 => site.word()?.wrapping_sub(symbol(site)? as u32),
        elf::R_RISCV_PCREL_HI20 | elf::R_RISCV_GOT_HI20 => upper(site.word()?, distance(site)?.unwrap_or_default())?,
        // The symbol is the instruction that loads the upper part.
        elf::R_RISCV_PCREL_LO12_I => lower(site.word()?, high(site)?),
        elf::R_RISCV_PCREL_LO12_S => lower_of_store(site.word()?, high(site)?),
        elf::R_RISCV_CALL | elf::R_RISCV_CALL_PLT => {
            let far = far(site.callee()?, site);
            let first = upper(site.word()?, far)?;
            let second = site.bytes.get(4..).and_then(|rest| rest.first_chunk()).ok_or(OUTSIDE)?;
            let second = lower(u32::from_le_bytes(*second), far);
            return site.put(&[first.to_le_bytes(), second.to_le_bytes()].concat());
        }
        elf::R_RISCV_JAL => {
            let pieces = [(20, 31, 1), (1, 21, 10), (11, 20, 1), (12, 12, 8)];
            pieced(site.word()?, within(far(site.callee()?, site), 21)?, &pieces)
        }
        elf::R_RISCV_BRANCH => {
            let pieces = [(12, 31, 1), (5, 25, 6), (1, 8, 4), (11, 7, 1)];
            pieced(site.word()?, within(far((site.symbol)()?, site), 13)?, &pieces)
        }
        elf::R_RISCV_RVC_BRANCH => {
            let pieces = [(8, 12, 1), (3, 10, 2), (6, 5, 2), (1, 3, 2), (5, 2, 1)];
            return short(site, within(far((site.symbol)()?, site), 9)?, &pieces);
        }
        elf::R_RISCV_RVC_JUMP => {
            let pieces = [(11, 12, 1), (4, 11, 1), (8, 9, 2), (10, 8, 1), (6, 7, 1), (7, 6, 1), (1, 3, 3), (5, 2, 1)];
            return short(site, within(far((site.symbol)()?, site), 12)?, &pieces);
        }
        _ => return Err("its type is not known".into()),
    };
    site.put(&word.to_le_bytes())
}

fn high(site: &Site<'_>) -> Result<i64, Refused> {
    let label = (site.symbol)()?;
    (site.high)(label).ok_or(Refused::Because("its symbol is not an instruction with the upper part of a distance"))
}

/// The upper 20 bits, such that the lower 12 can be added with their sign.
fn upper(word: u32, far: i64) -> Result<u32, Refused> {
    let upper = far.checked_add(0x800).and_then(|far| i32::try_from(far).ok());
    let upper = upper.ok_or("the distance does not fit 32 bits")?;
    Ok(word & 0xfff | upper as u32 & !0xfff)
}

fn lower(word: u32, far: i64) -> u32 {
    word & 0xf_ffff | (far as u32) << 20
}

fn lower_of_store(word: u32, far: i64) -> u32 {
    pieced(word, far, &[(5, 25, 7), (0, 7, 5)])
}

/// Checks that the distance of a jump fits `bits` bits with its sign.
fn within(far: i64, bits: u32) -> Result<i64, Refused> {
    let most = 1i64 << (bits - 1);
    if far & 1 != 0 || !(-most..most).contains(&far) {
        return Err("the jump is too far, or not to an instruction".into());
    }
    Ok(far)
}

/// Inserts pieces of a number into an instruction. A piece is its first bit in the number, its first bit in the
/// instruction, and its number of bits.
fn pieced(word: u32, number: i64, pieces: &[(u32, u32, u32)]) -> u32 {
    pieces.iter().fold(word, |word, &(from, at, bits)| {
        let mask = ((1u32 << bits) - 1) << at;
        word & !mask | ((number >> from) as u32) << at & mask
    })
}

/// The same for an instruction of 16 bits.
fn short(site: &mut Site<'_>, number: i64, pieces: &[(u32, u32, u32)]) -> Result<(), Refused> {
    let word = u16::from_le_bytes(*site.bytes.first_chunk::<2>().ok_or(OUTSIDE)?);
    let word = pieced(u32::from(word), number, pieces) as u16;
    site.put(&word.to_le_bytes())
}
