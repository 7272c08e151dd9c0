//! 64-bit Arm: bit fields in 32-bit instructions, by "ELF for the Arm 64-bit Architecture".

use object::elf;

use super::site::{Need, Refused, STUB, Site};

pub fn need(kind: elf::RelocationType) -> Need {
    match kind {
        elf::R_AARCH64_ADR_GOT_PAGE | elf::R_AARCH64_LD64_GOT_LO12_NC => Need::Pointer,
        elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26 => Need::Jump,
        _ => Need::Nothing,
    }
}

/// `ldr x16, 8; br x16`, then the address.
pub fn jump(to: u64) -> [u8; STUB] {
    let mut stub = [0u8; STUB];
    stub[..4].copy_from_slice(&0x5800_0050u32.to_le_bytes());
    stub[4..8].copy_from_slice(&0xd61f_0200u32.to_le_bytes());
    stub[8..16].copy_from_slice(&to.to_le_bytes());
    stub
}

pub fn relocate(site: &mut Site<'_>) -> Result<(), Refused> {
    let addend = site.addend;
    let symbol = |site: &Site<'_>| -> Result<u64, Refused> { Ok((site.symbol)()?.wrapping_add_signed(addend)) };
    let distance = |to: u64, site: &Site<'_>| to.wrapping_sub(site.here).cast_signed();
    let word = match site.kind {
        elf::R_AARCH64_NONE => return Ok(()),
        elf::R_AARCH64_ABS64 => {
            let to = symbol(site)?;
            return site.put(&to.to_le_bytes());
        }
        elf::R_AARCH64_PREL64 => {
            let far = distance(symbol(site)?, site);
            return site.put(&far.to_le_bytes());
        }
        elf::R_AARCH64_PREL32 => {
            let far = distance(symbol(site)?, site);
            let far = i32::try_from(far).map_err(|_| "the distance does not fit 32 bits")?;
            return site.put(&far.to_le_bytes());
        }
        elf::R_AARCH64_ADR_PREL_PG_HI21 => pages(site, symbol(site)?)?,
        elf::R_AARCH64_ADR_GOT_PAGE => pages(site, site.pointer()?.wrapping_add_signed(addend))?,
        elf::R_AARCH64_ADD_ABS_LO12_NC | elf::R_AARCH64_LDST8_ABS_LO12_NC => low(site, symbol(site)?, 0)?,
        elf::R_AARCH64_LDST16_ABS_LO12_NC => low(site, symbol(site)?, 1)?,
        elf::R_AARCH64_LDST32_ABS_LO12_NC => low(site, symbol(site)?, 2)?,
        elf::R_AARCH64_LDST64_ABS_LO12_NC => low(site, symbol(site)?, 3)?,
        elf::R_AARCH64_LDST128_ABS_LO12_NC => low(site, symbol(site)?, 4)?,
        elf::R_AARCH64_LD64_GOT_LO12_NC => low(site, site.pointer()?.wrapping_add_signed(addend), 3)?,
        elf::R_AARCH64_CALL26 | elf::R_AARCH64_JUMP26 => {
            branch(site, site.callee()?.wrapping_add_signed(addend), 26, 0)?
        }
        elf::R_AARCH64_CONDBR19 => branch(site, symbol(site)?, 19, 5)?,
        elf::R_AARCH64_TSTBR14 => branch(site, symbol(site)?, 14, 5)?,
        _ => return Err("its type is not known".into()),
    };
    site.put(&word.to_le_bytes())
}

/// `adrp`: the distance between the instruction and the place in pages of 4 KiB, in 21 bits of two fields.
fn pages(site: &Site<'_>, to: u64) -> Result<u32, Refused> {
    let page = |address: u64| (address & !0xfff).cast_signed();
    let far = page(to).wrapping_sub(page(site.here)) >> 12;
    if !(-(1 << 20)..1 << 20).contains(&far) {
        return Err("the distance does not fit 33 bits".into());
    }
    let far = far as u32;
    Ok(site.word()? & !0x60ff_ffe0 | (far & 3) << 29 | (far >> 2 & 0x7_ffff) << 5)
}

/// The low twelve bits of an address, in units of what the instruction loads or stores: 2 to the `scale` bytes.
fn low(site: &Site<'_>, to: u64, scale: u32) -> Result<u32, Refused> {
    let offset = to as u32 & 0xfff;
    if offset & ((1 << scale) - 1) != 0 {
        return Err("the address is not aligned as its instruction requires".into());
    }
    Ok(site.word()? & !(0xfff << 10) | offset >> scale << 10)
}

/// The distance of a branch in instructions, in `bits` bits from bit `at` on.
fn branch(site: &Site<'_>, to: u64, bits: u32, at: u32) -> Result<u32, Refused> {
    let far = to.wrapping_sub(site.here).cast_signed();
    let most = 1i64 << (bits + 1);
    if far & 3 != 0 || !(-most..most).contains(&far) {
        return Err("the jump is too far, or not to an instruction".into());
    }
    let mask = ((1u32 << bits) - 1) << at;
    Ok(site.word()? & !mask | ((far >> 2) as u32) << at & mask)
}
