//! 32-bit Arm, in its instruction set of 32-bit words (A32): bit fields in these words, by "ELF for the Arm
//! Architecture". A place holds its own addend.

use object::elf;

use super::site::{Need, Refused, STUB, Site};

pub fn need(kind: elf::RelocationType) -> Need {
    match kind {
        elf::R_ARM_GOT_PREL | elf::R_ARM_GOT32 => Need::Pointer,
        elf::R_ARM_CALL | elf::R_ARM_JUMP24 | elf::R_ARM_PLT32 | elf::R_ARM_PC24 => Need::Jump,
        _ => Need::Nothing,
    }
}

/// Marks a return that processors before Armv4T need replaced.
pub fn passes(kind: elf::RelocationType) -> bool {
    matches!(kind, elf::R_ARM_NONE | elf::R_ARM_V4BX)
}

/// `ldr pc, [pc, #-4]`, then the address. It also jumps to Thumb instructions, as functions of the C library can be.
pub fn jump(to: u64) -> [u8; STUB] {
    let mut stub = [0u8; STUB];
    stub[..4].copy_from_slice(&0xe51f_f004u32.to_le_bytes());
    stub[4..8].copy_from_slice(&(to as u32).to_le_bytes());
    stub
}

pub fn relocate(site: &mut Site<'_>) -> Result<(), Refused> {
    let word = site.word()?;
    let here = site.here as u32;
    let symbol = |site: &Site<'_>| -> Result<u32, Refused> { Ok((site.symbol)()? as u32) };
    let word = match site.kind {
        elf::R_ARM_ABS32 | elf::R_ARM_TARGET1 => symbol(site)?.wrapping_add(word),
        elf::R_ARM_REL32 => symbol(site)?.wrapping_add(word).wrapping_sub(here),
        elf::R_ARM_GOT_PREL => (site.pointer()? as u32).wrapping_add(word).wrapping_sub(here),
        elf::R_ARM_GOT32 => (site.pointer()? as u32).wrapping_add(word).wrapping_sub(site.table as u32),
        elf::R_ARM_GOTOFF => symbol(site)?.wrapping_add(word).wrapping_sub(site.table as u32),
        elf::R_ARM_GOTPC => (site.table as u32).wrapping_add(word).wrapping_sub(here),
        elf::R_ARM_CALL | elf::R_ARM_JUMP24 | elf::R_ARM_PLT32 | elf::R_ARM_PC24 => {
            let addend = (word << 8).cast_signed() >> 6;
            let far = i64::from(site.callee()? as u32) + i64::from(addend) - i64::from(here);
            branch(word, far)?
        }
        elf::R_ARM_MOVW_ABS_NC => half(word, symbol(site)?.wrapping_add(immediate(word))),
        elf::R_ARM_MOVT_ABS => half(word, symbol(site)?.wrapping_add(immediate(word)) >> 16),
        elf::R_ARM_MOVW_PREL_NC => half(word, symbol(site)?.wrapping_add(immediate(word)).wrapping_sub(here)),
        elf::R_ARM_MOVT_PREL => half(word, symbol(site)?.wrapping_add(immediate(word)).wrapping_sub(here) >> 16),
        _ => return Err("its type is not known".into()),
    };
    site.put(&word.to_le_bytes())
}

/// A branch over a distance from the place, whose addend has the eight bytes that the processor is ahead.
fn branch(word: u32, far: i64) -> Result<u32, Refused> {
    if far & 3 != 0 || !(-(1i64 << 25)..1 << 25).contains(&far) {
        return Err("the jump is too far, or not to an instruction of 32 bits".into());
    }
    Ok(word & 0xff00_0000 | (far >> 2) as u32 & 0x00ff_ffff)
}

/// The 16 bits of `movw` or `movt`, with their sign.
fn immediate(word: u32) -> u32 {
    let bits = (word >> 4 & 0xf000 | word & 0xfff) as u16;
    i32::from(bits.cast_signed()).cast_unsigned()
}

/// `movw` or `movt` of the low 16 bits of a number.
fn half(word: u32, number: u32) -> u32 {
    word & 0xfff0_f000 | (number & 0xf000) << 4 | number & 0xfff
}
