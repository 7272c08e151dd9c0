//! x86-64: fields of whole bytes.

use object::elf;

use super::site::{Need, Refused, STUB, Site};

pub fn need(kind: elf::RelocationType) -> Need {
    match kind {
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => Need::Pointer,
        elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => Need::Jump,
        _ => Need::Nothing,
    }
}

/// `jmp *[rip+0]`, then the address.
pub fn jump(to: u64) -> [u8; STUB] {
    let mut stub = [0u8; STUB];
    stub[..6].copy_from_slice(&[0xff, 0x25, 0, 0, 0, 0]);
    stub[6..14].copy_from_slice(&to.to_le_bytes());
    stub
}

pub fn relocate(site: &mut Site<'_>) -> Result<(), Refused> {
    let (here, addend) = (i128::from(site.here), i128::from(site.addend));
    let value: i128 = match site.kind {
        elf::R_X86_64_64 | elf::R_X86_64_32 | elf::R_X86_64_32S => i128::from((site.symbol)()?) + addend,
        elf::R_X86_64_PC64 => i128::from((site.symbol)()?) + addend - here,
        elf::R_X86_64_PC32 | elf::R_X86_64_PLT32 => i128::from(site.callee()?) + addend - here,
        elf::R_X86_64_GOTPCREL | elf::R_X86_64_GOTPCRELX | elf::R_X86_64_REX_GOTPCRELX => {
            i128::from(site.pointer()?) + addend - here
        }
        elf::R_X86_64_NONE => return Ok(()),
        _ => return Err("its type is not known".into()),
    };
    match site.kind {
        elf::R_X86_64_64 => site.put(&(value as u64).to_le_bytes()),
        elf::R_X86_64_PC64 => site.put(&(value as i64).to_le_bytes()),
        elf::R_X86_64_32 => match u32::try_from(value) {
            Ok(v) => site.put(&v.to_le_bytes()),
            Err(_) => Err("the address does not fit 32 bits; compile position-independent code".into()),
        },
        _ => match i32::try_from(value) {
            Ok(v) => site.put(&v.to_le_bytes()),
            Err(_) => Err("the distance does not fit 32 bits".into()),
        },
    }
}
