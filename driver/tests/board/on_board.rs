//! Memory on the board.

use super::{LINE, OPTIONS, config, with_memory};
use tilewright_driver::link::{LinkDevice, LinkOptions};
use tilewright_hw::Mem;
use tilewright_hw::device::{Base, Command, Device, DeviceError};
use tilewright_hw::isa::{encode, parse_program};
use tilewright_hw::regs::{TrapCause, TrapUnit};
use tilewright_shell::ShellMemory;

const KIB: u32 = 16;

#[test]
fn memory_on_the_board_is_written_read_and_used() {
    let config = config();
    let Some(board) = with_memory(&config, LINE, ShellMemory::BlockRam { kib: KIB }) else { return };
    let options = LinkOptions { memory_bytes: Some(u64::from(KIB) << 10), ..OPTIONS };
    let mut device = LinkDevice::open(board, config.clone(), options).expect("the board answers");
    // Ends inside beats keep the bytes next to the range.
    device.write(0, &[0xee; 256]).expect("inside memory");
    let bytes: Vec<u8> = (0..201).collect();
    device.write(7, &bytes).expect("inside memory");
    let mut found = vec![0; 256];
    device.read(0, &mut found).expect("inside memory");
    assert_eq!(found, [&[0xee; 7][..], &bytes, &[0xee; 48]].concat());
    assert!(matches!(device.read(16 << 10, &mut [0]), Err(DeviceError::OutOfMemory { .. })));

    let row = config.entry_bytes(Mem::Out) * 32;
    let text =
        format!("load mem=out row_bytes={row} offset=7 push=store\nstore mem=out row_bytes={row} offset=1001 pop=load");
    let insns = parse_program(&text).expect("a program");
    let stream: Vec<u8> = insns.iter().flat_map(|insn| encode(insn, &config).expect("fits")).collect();
    device.write(0x2000, &stream).expect("inside memory");
    let mut command =
        Command { stream_addr: 0x2000, insns: 2, bases: vec![Base { addr: 0, limit: 0x2000 }], cycle_limit: None };
    let report = device.run(&command).expect("a report");
    assert_eq!((report.trap, report.retired), (None, [1, 0, 0, 1]));
    let mut copy = vec![0; row as usize];
    device.read(1001, &mut copy).expect("inside memory");
    assert_eq!(copy, bytes[..row as usize]);

    // An access past the end of the board's memory traps.
    command.bases = vec![Base { addr: 0x1_0000, limit: 0x2000 }];
    let trap = device.run(&command).expect("a report").trap.expect("a trap");
    assert_eq!((trap.unit, trap.cause), (TrapUnit::Load, TrapCause::Bus));
    command.bases = vec![Base { addr: 0, limit: 0x2000 }];
    assert_eq!(device.run(&command).expect("a report").trap, None);
}
