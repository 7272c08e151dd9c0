//! Checks the memory of a connected board.

use std::time::Instant;

use tilewright_hw::Mem;
use tilewright_hw::device::{Base, Command, Device, DeviceError};
use tilewright_hw::isa::{Insn, Load, Store, Unit, UnitSet, encode};

/// Most bytes that the memory check moves.
const CHECKED_BYTES: u32 = 1024;
/// Addresses of the check's copy and program, after the pattern. They fit into 4 KiB, the smallest memory of a board.
const COPY: u64 = CHECKED_BYTES as u64;
const STREAM: u64 = 2 * COPY;

/// Result of the memory check.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct MemoryCheck {
    /// Bytes that were loaded and stored.
    pub bytes: u32,
    /// Bytes that came back wrong.
    pub wrong: u32,
    /// Cycles of the command.
    pub cycles: Option<u64>,
    /// Duration of the whole command.
    pub seconds: f64,
}

/// Checks a device's memory: loads bytes into a scratchpad, stores them elsewhere and compares them.
///
/// # Errors
/// The device's own errors; also a trap, because a working device does not trap here.
pub fn check_memory(device: &mut dyn Device) -> Result<MemoryCheck, DeviceError> {
    let config = device.config().clone();
    let name = device.name().to_string();
    let failed = |reason: String| DeviceError::Tool {
        tool: name.clone(),
        reason,
        remedy: "run it again; if it happens again, synthesize and flash the board with a lower clock".into(),
    };
    let bytes = (config.entries(Mem::Out) * config.entry_bytes(Mem::Out)).min(CHECKED_BYTES);
    let pattern: Vec<u8> = (0..bytes).map(|at| (at.wrapping_mul(167) >> 3 ^ at) as u8).collect();
    let load = Insn::new(Load { mem: Mem::Out, row_bytes: bytes, ..Load::default() });
    let store = Insn::new(Store { mem: Mem::Out, row_bytes: bytes, offset: COPY, ..Store::default() });
    let insns = [
        Insn { push: UnitSet::from_iter([Unit::Store]), ..load },
        Insn { pop: UnitSet::from_iter([Unit::Load]), ..store },
    ];
    let stream = insns.iter().map(|insn| encode(insn, &config)).collect::<Result<Vec<_>, _>>();
    let stream = stream.map_err(|error| failed(error.to_string()))?;
    device.write(0, &pattern)?;
    device.write(COPY, &vec![0; bytes as usize])?;
    device.write(STREAM, &stream.concat())?;
    let bases = vec![Base { addr: 0, limit: STREAM }];
    let begun = Instant::now();
    let report = device.run(&Command { stream_addr: STREAM, insns: insns.len() as u32, bases, cycle_limit: None })?;
    let seconds = begun.elapsed().as_secs_f64();
    if let Some(trap) = report.trap {
        return Err(failed(format!("a copy of {bytes} bytes trapped: {trap}")));
    }
    let mut copy = vec![0; bytes as usize];
    device.read(COPY, &mut copy)?;
    let wrong = copy.iter().zip(&pattern).filter(|(a, b)| a != b).count() as u32;
    Ok(MemoryCheck { bytes, wrong, cycles: report.cycles, seconds })
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::time::Duration;
    use tilewright_driver::peripheral::{Interrupts, PeripheralDevice, PeripheralOptions};
    use tilewright_hw::HwConfig;
    use tilewright_sim::axi::{Axi, AxiOptions};

    #[test]
    fn memory_beside_a_processor_is_checked_as_that_of_a_board() {
        if !tilewright_testing::has_program("verilator") {
            return;
        }
        let text = include_str!("../../driver/tests/peripheral/wide.toml");
        let config = HwConfig::parse("wide", text).expect("is a configuration");
        let options = AxiOptions { buffer_addr: 0x1_3000, buffer_bytes: 0x1_0000, ..AxiOptions::default() };
        let axi = Axi::new(&config, &options, &|_| {}).expect("the design builds");
        let times = PeripheralOptions { poll: Duration::from_millis(1), ..PeripheralOptions::default() };
        let mut device = PeripheralDevice::open(axi, config, times).expect("the core answers");
        let check = check_memory(&mut device).expect("a report");
        assert!(check.wrong == 0 && check.bytes > 0 && check.cycles > Some(0), "{check:?}");
        assert_eq!(device.interrupts(), Interrupts { came: 1, missed: 0 });
    }
}
