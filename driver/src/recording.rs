//! A program whose instructions are known, but not their order.

use crate::conflicts::Conflicts;
use crate::error::DriverError;
use crate::order::{Order, Search, Work};
use crate::program::AccelProgram;
use crate::tokens::Analysis;
use tilewright_hw::config::HwConfig;
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
    /// The program, without its stream.
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
    /// [`DriverError::Encode`] if a value is wider than its field; [`DriverError::Order`] if the order lacks an
    /// instruction, or an instruction comes before one that it must come after.
    pub fn program(&self, order: &Order) -> Result<AccelProgram, DriverError> {
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
        let mut stream = Vec::with_capacity(self.len() * isa::INSN_BYTES);
        for (insn, &place) in insns.iter().zip(&order.places) {
            let index = place as usize;
            let bytes = isa::encode(insn, &self.config).map_err(|source| DriverError::Encode { index, source })?;
            stream.extend_from_slice(&bytes);
        }
        Ok(AccelProgram { stream, ..self.program.clone() })
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
