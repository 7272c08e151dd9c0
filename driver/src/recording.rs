//! A program whose instructions are known, but not their order.

use crate::conflicts::Conflicts;
use crate::error::DriverError;
use crate::memory::{ALIGN, DeviceMemory};
use crate::order::{Order, Search, Work};
use crate::program::AccelProgram;
use crate::run::{command, place};
use crate::tokens::Analysis;
use tilewright_hw::config::HwConfig;
use tilewright_hw::device::Command;
use tilewright_hw::isa::{self, Insn};

/// A program whose instructions are known, but not their order.
///
/// ```
/// use tilewright_driver::{Builder, Order, Role, Search};
/// use tilewright_hw::{HwConfig, Mem, isa::{Load, Store}};
/// # fn main() -> Result<(), tilewright_driver::DriverError> {
/// let config = HwConfig::default();
/// let mut b = Builder::new(&config)?;
/// let data = b.region("data", Role::Input, 256)?;
/// for half in [0, 64] {
///     b.load(Load { mem: Mem::Out, base: data.0, offset: half, row_bytes: 64, ..Load::default() })?;
///     b.store(Store { base: data.0, offset: 128 + half, row_bytes: 64, ..Store::default() })?;
/// }
/// let recording = b.record();
/// let program = recording.program(&Order::of_program(recording.len()))?;
/// let other = recording.program(&recording.search(Search::FIRST))?;
/// assert_eq!(program.insn_count(), other.insn_count());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, PartialEq)]
pub struct Recording {
    pub(crate) config: HwConfig,
    /// The program, without its stream and the configuration's hash.
    pub(crate) program: AccelProgram,
    /// The instructions in program order, without tokens.
    pub(crate) insns: Vec<Insn>,
    pub(crate) conflicts: Vec<Conflicts>,
    /// The most tokens of a pair of units that can be in flight.
    pub(crate) token_limit: usize,
}

impl Recording {
    /// Number of instructions.
    pub fn len(&self) -> usize {
        self.insns.len()
    }

    /// Whether there is no instruction.
    pub fn is_empty(&self) -> bool {
        self.insns.is_empty()
    }

    /// Looks for an order in which units wait less. The program computes the same in it. Whether it takes fewer cycles
    /// must be measured, because the search knows only approximate times.
    pub fn search(&self, search: Search) -> Order {
        let works: Vec<Work> = self.insns.iter().map(|insn| Work::of(&insn.op, &self.config)).collect();
        Order::search(&self.conflicts, &works, search)
    }

    /// The program with its instructions in an order, and with the tokens of that order.
    ///
    /// # Errors
    /// [`DriverError::Encode`] if a value is wider than its field; otherwise as [`Recording::stream`].
    pub fn program(&self, order: &Order) -> Result<AccelProgram, DriverError> {
        let insns = self.stream(order)?;
        let mut stream = Vec::with_capacity(self.len() * isa::INSN_BYTES);
        for (insn, &place) in insns.iter().zip(&order.places) {
            let index = place as usize;
            let bytes = isa::encode(insn, &self.config).map_err(|source| DriverError::Encode { index, source })?;
            stream.extend_from_slice(&bytes);
        }
        Ok(AccelProgram { stream, config_hash: self.config.hash(), ..self.program.clone() })
    }

    /// The command that runs the program, with its regions and its stream at the addresses that
    /// [`Loaded::new`](crate::Loaded::new) chooses in an empty memory, and the size of that memory. For devices that take
    /// their instructions from elsewhere.
    ///
    /// # Errors
    /// [`DriverError::DoesNotFit`] if the configuration's addresses do not reach all of it.
    pub fn command(&self) -> Result<(Command, u64), DriverError> {
        let stream_bytes = (self.len() * isa::INSN_BYTES) as u64;
        let blocks = self.program.regions.iter().map(|r| r.bytes).chain([stream_bytes]);
        let bytes = blocks.map(|bytes| bytes.next_multiple_of(ALIGN) + ALIGN).sum();
        let mut memory = DeviceMemory::new(bytes, &self.config);
        let (blocks, stream) = place(&mut memory, &self.program.regions, stream_bytes, None)?;
        Ok((command(&self.program.regions, &blocks, stream, self.len() as u32), bytes))
    }

    /// The instructions in an order, with the tokens of that order.
    ///
    /// # Errors
    /// [`DriverError::Order`] if the order lacks an instruction, or an instruction comes before one that it must come
    /// after.
    pub fn stream(&self, order: &Order) -> Result<Vec<Insn>, DriverError> {
        self.check(order)?;
        let mut more: Vec<Vec<u32>> = vec![Vec::new(); if order.waits.is_empty() { 0 } else { self.len() }];
        for &(later, first) in &order.waits {
            more[later as usize].push(first);
        }
        let mut analysis = Analysis::new(self.token_limit, self.len());
        for &place in &order.places {
            let place = place as usize;
            analysis.add(place, &self.conflicts[place], more.get(place).map_or(&[], Vec::as_slice));
        }
        let mut insns: Vec<Insn> = order.places.iter().map(|&place| self.insns[place as usize]).collect();
        analysis.finish(&mut insns);
        Ok(insns)
    }

    /// Checks that each instruction occurs once, and after those that it must come after.
    fn check(&self, order: &Order) -> Result<(), DriverError> {
        let missing = self.len().abs_diff(order.places.len());
        if missing > 0 {
            let what = format!("it has {} instructions, the program has {}", order.places.len(), self.len());
            return Err(DriverError::Order { what });
        }
        let mut at = vec![usize::MAX; self.len()];
        for (index, &place) in order.places.iter().enumerate() {
            match at.get_mut(place as usize) {
                Some(at) if *at == usize::MAX => *at = index,
                _ => {
                    return Err(DriverError::Order {
                        what: format!("instruction {place} occurs twice or is not one of the program's"),
                    });
                }
            }
        }
        let data = self.conflicts.iter().zip(0..).flat_map(|(own, place)| own.after.iter().map(move |&b| (place, b)));
        for (later, first) in data.chain(order.waits.iter().copied()) {
            let before = at.get(first as usize).zip(at.get(later as usize)).is_some_and(|(first, later)| first < later);
            if !before {
                return Err(DriverError::Order { what: format!("instruction {later} does not come after {first}") });
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{Builder, Loaded, Role};
    use tilewright_hw::config::Mem;
    use tilewright_hw::device::Device;
    use tilewright_hw::isa::{Load, Store};
    use tilewright_sim::{Csim, CsimOptions};

    #[test]
    fn a_program_takes_the_same_cycles_without_being_loaded() {
        let config = HwConfig::default();
        let mut b = Builder::new(&config).unwrap();
        let (x, y) = (b.region("x", Role::Input, 5000).unwrap(), b.region("y", Role::Output, 9000).unwrap());
        b.constant("c", Role::Weights, &[7; 6000]);
        for part in 0..40u64 {
            let at = part * 64;
            b.load(Load { mem: Mem::Out, base: x.0, offset: at, row_bytes: 64, ..Load::default() }).unwrap();
            b.store(Store { base: y.0, offset: 2 * at, row_bytes: 64, ..Store::default() }).unwrap();
        }
        let recording = b.record();
        for order in [Order::of_program(recording.len()), recording.search(Search::FIRST)] {
            let program = recording.program(&order).unwrap();
            let (command, bytes) = recording.command().unwrap();
            let mut memory = DeviceMemory::new(bytes, &config);
            let mut device = Csim::new(config.clone(), bytes, CsimOptions::default());
            let loaded = Loaded::new(&mut device, &mut memory, &program).unwrap();
            assert_eq!(loaded.command(), &command);
            let report = device.run(loaded.command()).unwrap();
            let mut other = Csim::new(config.clone(), bytes, CsimOptions::default());
            let timed = other.time(&command, &recording.stream(&order).unwrap()).unwrap();
            assert_eq!(timed.cycles, report.cycles);
            assert!(report.cycles.is_some() && report.trap.is_none());
        }
    }
}
