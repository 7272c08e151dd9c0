use object::elf;

use super::super::LoadError;
use super::{Machine, Refused, Site};

/// The bytes at a place after its relocation, or the reason why it failed.
fn relocated(
    machine: Machine,
    (kind, here, target, addend): (elf::RelocationType, u64, u64, i64),
    before: &[u8],
) -> Result<Vec<u8>, String> {
    let mut bytes = before.to_vec();
    let symbol = || Ok(target);
    let pointer = Some(target);
    // For RISC-V, the label of the upper part identifies the distance.
    let high = |label: u64| HIGHS.iter().find(|(at, _)| *at == label).map(|(_, far)| *far);
    let mut site =
        Site { kind, addend, here, symbol: &symbol, jump: None, pointer, table: TABLE, high: &high, bytes: &mut bytes };
    machine.relocate(&mut site).map_err(|refused| match refused {
        Refused::Because(reason) => reason.to_string(),
        Refused::Symbol(error) => error.to_string(),
    })?;
    Ok(bytes)
}

/// Place, symbol (or its pointer), addend, and the word there before and after: as GNU ld 2.40 links these instructions
/// at 0x10002000.
#[rustfmt::skip]
const ARM: &[(elf::RelocationType, u64, u64, i64, u64, u64)] = &[
    (elf::R_AARCH64_ADR_PREL_PG_HI21, 0x10002000, 0x12345678, 0, 0x90000000, 0xf0011a00),
    (elf::R_AARCH64_ADR_PREL_PG_HI21, 0x10002004, 0x90001230, 0, 0x90000011, 0xf03ffff1),
    (elf::R_AARCH64_ADR_PREL_PG_HI21, 0x10002008, 0x12345678, 4096, 0x90000003, 0x90011a23),
    (elf::R_AARCH64_ADD_ABS_LO12_NC, 0x1000200c, 0x12345678, 0, 0x91000020, 0x9119e020),
    (elf::R_AARCH64_ADD_ABS_LO12_NC, 0x10002010, 0x12345678, 12, 0x9100005e, 0x911a105e),
    (elf::R_AARCH64_LDST8_ABS_LO12_NC, 0x10002014, 0x1234567f, 0, 0x39400001, 0x3959fc01),
    (elf::R_AARCH64_LDST16_ABS_LO12_NC, 0x10002018, 0x12345a7e, 0, 0x79400062, 0x7954fc62),
    (elf::R_AARCH64_LDST32_ABS_LO12_NC, 0x1000201c, 0x123459fc, 0, 0xb94000a4, 0xb949fca4),
    (elf::R_AARCH64_LDST32_ABS_LO12_NC, 0x10002020, 0x123459fc, 0, 0xbd0000a4, 0xbd09fca4),
    (elf::R_AARCH64_LDST64_ABS_LO12_NC, 0x10002024, 0x12345678, 0, 0xf94000e6, 0xf9433ce6),
    (elf::R_AARCH64_LDST128_ABS_LO12_NC, 0x10002028, 0x12345ff0, 0, 0x3dc00128, 0x3dc3fd28),
    (elf::R_AARCH64_LDST128_ABS_LO12_NC, 0x1000202c, 0x12345ff0, 0, 0x3d8003df, 0x3d83ffdf),
    (elf::R_AARCH64_CALL26, 0x10002030, 0x10001000, 0, 0x94000000, 0x97fffbf4),
    (elf::R_AARCH64_CALL26, 0x10002034, 0x17fffff0, 0, 0x94000000, 0x95fff7ef),
    (elf::R_AARCH64_JUMP26, 0x10002038, 0x10004ffc, 0, 0x14000000, 0x14000bf1),
    (elf::R_AARCH64_JUMP26, 0x1000203c, 0x10001000, 0, 0x14000000, 0x17fffbf1),
    (elf::R_AARCH64_CONDBR19, 0x10002040, 0x10004ffc, 0, 0x54000000, 0x54017de0),
    (elf::R_AARCH64_CONDBR19, 0x10002044, 0x10001000, 0, 0x54000001, 0x54ff7de1),
    (elf::R_AARCH64_CONDBR19, 0x10002048, 0x10004ffc, 0, 0xb4000009, 0xb4017da9),
    (elf::R_AARCH64_TSTBR14, 0x1000204c, 0x10004ffc, 0, 0x36180003, 0x36197d83),
    (elf::R_AARCH64_TSTBR14, 0x10002050, 0x10001000, 0, 0xb7400004, 0xb7477d84),
    (elf::R_AARCH64_ABS64, 0x10002054, 0x12345678, 8, 0x0, 0x12345680),
    (elf::R_AARCH64_PREL64, 0x1000205c, 0x10001000, 0, 0x0, 0xffffffffffffefa4),
    (elf::R_AARCH64_PREL32, 0x10002064, 0x10004ffc, 0, 0x0, 0x2f98),
    (elf::R_AARCH64_PREL32, 0x10002068, 0x10001000, 4, 0x0, 0xffffef9c),
    (elf::R_AARCH64_ADR_GOT_PAGE, 0x10002000, 0x10403778, 0, 0x90000000, 0xb0002000),
    (elf::R_AARCH64_LD64_GOT_LO12_NC, 0x10002004, 0x10403778, 0, 0xf9400000, 0xf943bc00),
    (elf::R_AARCH64_ADR_GOT_PAGE, 0x10002008, 0x10403780, 0, 0x90000015, 0xb0002015),
    (elf::R_AARCH64_LD64_GOT_LO12_NC, 0x1000200c, 0x10403780, 0, 0xf94002b6, 0xf943c2b6),
];

/// The global offset table of the 32-bit instructions below.
const TABLE: u64 = 0x1000303c;

/// The same for 32-bit Arm, whose addends are in the words before.
#[rustfmt::skip]
const ARM32: &[(elf::RelocationType, u64, u64, u32, u32)] = &[
    (elf::R_ARM_CALL, 0x10002000, 0x10001000, 0xebfffffe, 0xebfffbfe),
    (elf::R_ARM_CALL, 0x10002004, 0x11fffff0, 0xebfffffe, 0xeb7ff7f9),
    (elf::R_ARM_JUMP24, 0x10002008, 0x10001000, 0xeafffffe, 0xeafffbfc),
    (elf::R_ARM_JUMP24, 0x1000200c, 0x11fffff0, 0x0afffffe, 0x0a7ff7f7),
    (elf::R_ARM_ABS32, 0x10002010, 0x12345678, 0x8, 0x12345680),
    (elf::R_ARM_REL32, 0x10002014, 0x12345678, 0x0, 0x02343664),
    (elf::R_ARM_MOVW_ABS_NC, 0x10002018, 0x12345678, 0xe3001000, 0xe3051678),
    (elf::R_ARM_MOVT_ABS, 0x1000201c, 0x12345678, 0xe3401000, 0xe3411234),
    (elf::R_ARM_MOVW_PREL_NC, 0x10002020, 0x12345678, 0xe3002000, 0xe3032658),
    (elf::R_ARM_MOVT_PREL, 0x10002024, 0x12345678, 0xe3402000, 0xe3402234),
    (elf::R_ARM_MOVW_ABS_NC, 0x10002028, 0x10001000, 0xe3079ffe, 0xe3089ffe),
    (elf::R_ARM_GOT_PREL, 0x1000202c, 0x10003048, 0x0, 0x101c),
    (elf::R_ARM_GOT32, 0x10002030, 0x10003048, 0x0, 0xc),
    (elf::R_ARM_GOTOFF, 0x10002034, 0x12345678, 0x0, 0x0234263c),
    (elf::R_ARM_GOTPC, 0x10002038, 0, 0x0, 0x1004),
];

#[test]
fn relocations_of_32_bit_arm_are_those_of_gnu_ld() {
    for &(kind, here, target, before, want) in ARM32 {
        let found = relocated(Machine::Arm32, (kind, here, target, 0), &before.to_le_bytes()).unwrap();
        assert_eq!(found, want.to_le_bytes(), "{kind:?} at {here:#x}");
    }
}

#[test]
fn what_32_bit_arm_cannot_reach_is_refused() {
    let (here, call) = (0x1000_2000, 0xebff_fffeu32.to_le_bytes());
    for (kind, target, want) in [
        (elf::R_ARM_CALL, here + (1 << 25) + 8, "too far"),
        (elf::R_ARM_JUMP24, here - (1 << 25) + 4, "too far"),
        // A function of Thumb instructions.
        (elf::R_ARM_CALL, here + 9, "not to an instruction of 32 bits"),
        (elf::R_ARM_TLS_GD32, here, "not known"),
    ] {
        let error = relocated(Machine::Arm32, (kind, here, target, 0), &call).unwrap_err();
        assert!(error.contains(want), "{kind:?}: {error}");
        assert!(relocated(Machine::Arm32, (kind, here, here, 0), &[0; 2]).is_err(), "{kind:?} of two bytes");
    }
    for far in [(1 << 25) + 4, 8 - (1 << 25)] {
        relocated(Machine::Arm32, (elf::R_ARM_CALL, here, here.wrapping_add_signed(far), 0), &call).unwrap();
    }
}

/// Places of the RISC-V instructions below that have the upper part of a distance, with that distance.
const HIGHS: &[(u64, i64)] = &[(0x10002000, 36976248), (0x10002008, 4084), (0x10002018, -67604), (0x10002020, 4200296)];

/// The same for RISC-V, with words of 2, 4 or 8 bytes.
#[rustfmt::skip]
const RISC_V: &[(elf::RelocationType, u64, u64, i64, u64, u64)] = &[
    (elf::R_RISCV_PCREL_HI20, 0x10002000, 0x12345678, 0, 0x517, 0x2343517),
    (elf::R_RISCV_PCREL_LO12_I, 0x10002004, 0x10002000, 0, 0x50513, 0x67850513),
    (elf::R_RISCV_PCREL_HI20, 0x10002008, 0x10002ffc, 0, 0x597, 0x1597),
    (elf::R_RISCV_PCREL_LO12_I, 0x1000200c, 0x10002008, 0, 0x5b603, 0xff45b603),
    (elf::R_RISCV_PCREL_LO12_S, 0x10002010, 0x10002008, 0, 0xd5b023, 0xfed5ba23),
    (elf::R_RISCV_PCREL_LO12_S, 0x10002014, 0x10002000, 0, 0xa52027, 0x66a52c27),
    (elf::R_RISCV_PCREL_HI20, 0x10002018, 0xfff1804, 0, 0x297, 0xfffef297),
    (elf::R_RISCV_PCREL_LO12_I, 0x1000201c, 0x10002018, 0, 0x2a303, 0x7ec2a303),
    (elf::R_RISCV_GOT_HI20, 0x10002020, 0x10403788, 0, 0x497, 0x401497),
    (elf::R_RISCV_PCREL_LO12_I, 0x10002024, 0x10002020, 0, 0x4b483, 0x7684b483),
    (elf::R_RISCV_CALL_PLT, 0x10002028, 0x27fffff0, 0, 0x80e700000097, 0xfc8080e717ffe097),
    (elf::R_RISCV_CALL_PLT, 0x10002030, 0x10001800, 0, 0x3006700000317, 0x7d030067fffff317),
    (elf::R_RISCV_JAL, 0x1000203c, 0x10002ffe, 0, 0xfc5ff06f, 0x7c30006f),
    (elf::R_RISCV_JAL, 0x10002044, 0x10001800, 0, 0xfbdff06f, 0xfbcff06f),
    (elf::R_RISCV_JAL, 0x10002048, 0x10002ffe, 0, 0xfb9ff0ef, 0x7b7000ef),
    (elf::R_RISCV_JAL, 0x1000204c, 0x10001800, 0, 0xfb5ff06f, 0xfb4ff06f),
    (elf::R_RISCV_JAL, 0x10002054, 0x10002088, 0, 0xfadff06f, 0x340006f),
    (elf::R_RISCV_JAL, 0x1000205c, 0x10001ff0, 0, 0xfa5ff06f, 0xf95ff06f),
    (elf::R_RISCV_JAL, 0x10002060, 0x10002088, 0, 0xfa1ff06f, 0x280006f),
    (elf::R_RISCV_JAL, 0x10002064, 0x10001ff0, 0, 0xf9dff06f, 0xf8dff06f),
    (elf::R_RISCV_64, 0x10002068, 0x12345678, 8, 0x0, 0x12345680),
    (elf::R_RISCV_ADD32, 0x10002070, 0x10002ffe, 0, 0x0, 0x10002ffe),
    (elf::R_RISCV_SUB32, 0x10002070, 0x10001800, 0, 0x10002ffe, 0x17fe),
    (elf::R_RISCV_BRANCH, 0x10002000, 0x10002ffe, 0, 0xb50063, 0x7eb50fe3),
    (elf::R_RISCV_BRANCH, 0x10002004, 0x10001856, 0, 0x149e063, 0x8549e9e3),
    (elf::R_RISCV_RVC_BRANCH, 0x10002008, 0x100020fe, 0, 0xc101, 0xc97d),
    (elf::R_RISCV_RVC_BRANCH, 0x1000200a, 0x10001f2c, 0, 0xe081, 0xf08d),
    (elf::R_RISCV_RVC_JUMP, 0x1000200c, 0x100027fe, 0, 0xa001, 0xafcd),
    (elf::R_RISCV_RVC_JUMP, 0x1000200e, 0x10001856, 0, 0xa001, 0xb0a1),
];

#[test]
fn risc_v_relocations_are_those_of_gnu_ld() {
    for &(kind, here, target, addend, before, want) in RISC_V {
        let bytes = match kind {
            elf::R_RISCV_64 | elf::R_RISCV_CALL_PLT => 8,
            elf::R_RISCV_RVC_BRANCH | elf::R_RISCV_RVC_JUMP => 2,
            _ => 4,
        };
        let place = (kind, here, target, addend);
        let found = relocated(Machine::RiscV, place, &before.to_le_bytes()[..bytes]).unwrap();
        assert_eq!(found, want.to_le_bytes()[..bytes], "{kind:?} at {here:#x}");
    }
}

#[test]
fn what_risc_v_cannot_reach_is_refused() {
    let here = 0x1000_2000;
    for (kind, target, want) in [
        (elf::R_RISCV_JAL, here + (1 << 20), "too far"),
        (elf::R_RISCV_JAL, here + 1, "not to an instruction"),
        (elf::R_RISCV_BRANCH, here + (1 << 12), "too far"),
        (elf::R_RISCV_RVC_BRANCH, here - (1 << 8) - 2, "too far"),
        (elf::R_RISCV_RVC_JUMP, here + (1 << 11), "too far"),
        (elf::R_RISCV_PCREL_HI20, here + (1 << 31) - 0x800, "32 bits"),
        (elf::R_RISCV_CALL_PLT, here + (1 << 31), "32 bits"),
        (elf::R_RISCV_PCREL_LO12_I, here + 2, "not an instruction with the upper part"),
        (elf::R_RISCV_TLS_GD_HI20, here, "not known"),
    ] {
        let error = relocated(Machine::RiscV, (kind, here, target, 0), &[0; 8]).unwrap_err();
        assert!(error.contains(want), "{kind:?}: {error}");
        assert!(relocated(Machine::RiscV, (kind, here, here, 0), &[0; 1]).is_err(), "{kind:?} of one byte");
    }
    relocated(Machine::RiscV, (elf::R_RISCV_JAL, here, here - (1 << 20), 0), &[0; 4]).unwrap();
    relocated(Machine::RiscV, (elf::R_RISCV_PCREL_HI20, here, here + (1 << 31) - 0x801, 0), &[0; 4]).unwrap();
}

#[test]
fn arm_relocations_are_those_of_gnu_ld() {
    for &(kind, here, target, addend, before, want) in ARM {
        let bytes = if matches!(kind, elf::R_AARCH64_ABS64 | elf::R_AARCH64_PREL64) { 8 } else { 4 };
        let place = (kind, here, target, addend);
        let found = relocated(Machine::Arm, place, &before.to_le_bytes()[..bytes]).unwrap();
        assert_eq!(found, want.to_le_bytes()[..bytes], "{kind:?} at {here:#x}");
        // The previous content of the field does not matter, and the instruction around it stays.
        assert_eq!(relocated(Machine::Arm, place, &found).unwrap(), found);
    }
}

#[test]
fn what_arm_cannot_reach_is_refused() {
    let here = 0x1000_2000;
    for (kind, target, want) in [
        (elf::R_AARCH64_CALL26, here + (1 << 27), "too far"),
        (elf::R_AARCH64_JUMP26, here - (1 << 27) - 4, "too far"),
        (elf::R_AARCH64_CALL26, here + 2, "not to an instruction"),
        (elf::R_AARCH64_CONDBR19, here + (1 << 20), "too far"),
        (elf::R_AARCH64_TSTBR14, here + (1 << 15), "too far"),
        (elf::R_AARCH64_ADR_PREL_PG_HI21, here + (1 << 32), "33 bits"),
        (elf::R_AARCH64_PREL32, here + (1 << 31), "32 bits"),
        (elf::R_AARCH64_LDST64_ABS_LO12_NC, here + 4, "aligned"),
        (elf::R_AARCH64_LDST128_ABS_LO12_NC, here + 8, "aligned"),
        (elf::R_AARCH64_TLSDESC_CALL, here, "not known"),
    ] {
        let error = relocated(Machine::Arm, (kind, here, target, 0), &[0; 8]).unwrap_err();
        assert!(error.contains(want), "{kind:?}: {error}");
        assert!(relocated(Machine::Arm, (kind, here, here, 0), &[0; 2]).is_err(), "{kind:?} of two bytes");
    }
    // The farthest targets in reach.
    for (kind, far) in [(elf::R_AARCH64_CALL26, 1 << 27), (elf::R_AARCH64_CONDBR19, 1 << 20)] {
        relocated(Machine::Arm, (kind, here, here + far - 4, 0), &[0; 4]).unwrap();
        relocated(Machine::Arm, (kind, here, here - far, 0), &[0; 4]).unwrap();
    }
}

#[test]
fn a_symbol_that_is_missing_is_told() {
    let symbol = || Err(LoadError::Unresolved("puts".into()));
    for (machine, kind) in [
        (Machine::X86, elf::R_X86_64_PC32),
        (Machine::Arm, elf::R_AARCH64_CALL26),
        (Machine::Arm32, elf::R_ARM_CALL),
        (Machine::RiscV, elf::R_RISCV_JAL),
    ] {
        let mut site = Site {
            kind,
            addend: 0,
            here: 0,
            symbol: &symbol,
            jump: None,
            pointer: None,
            table: 0,
            high: &|_| None,
            bytes: &mut [0; 8],
        };
        let refused = machine.relocate(&mut site);
        assert!(matches!(refused, Err(Refused::Symbol(LoadError::Unresolved(_)))));
    }
}
