//! The units that execute instructions, and sets of units.

/// A unit that executes instructions from its own queue; the discriminant is its bit in a mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[repr(u8)]
pub enum Unit {
    /// DRAM to scratchpads.
    Load = 0,
    /// Matrix products.
    Gemm = 1,
    /// Element-wise work and requantization.
    Vector = 2,
    /// Scratchpads to DRAM.
    Store = 3,
}

impl Unit {
    /// All units in order.
    pub const ALL: [Unit; 4] = [Unit::Load, Unit::Gemm, Unit::Vector, Unit::Store];

    /// The name in assembly text.
    pub fn name(self) -> &'static str {
        ["load", "gemm", "vector", "store"][self as usize]
    }
}

/// A set of units: a pop or push mask.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, Default)]
pub struct UnitSet(pub u8);

impl UnitSet {
    /// No unit.
    pub const NONE: UnitSet = UnitSet(0);

    /// Whether `unit` is in the set.
    pub fn contains(self, unit: Unit) -> bool {
        self.0 >> unit as u8 & 1 == 1
    }

    /// Adds `unit`.
    pub fn insert(&mut self, unit: Unit) {
        self.0 |= 1 << unit as u8;
    }

    /// Removes `unit`.
    pub fn remove(&mut self, unit: Unit) {
        self.0 &= !(1 << unit as u8);
    }

    /// Whether no unit is in the set.
    pub fn is_empty(self) -> bool {
        self.0 == 0
    }

    /// The units in the set, in order.
    pub fn iter(self) -> impl Iterator<Item = Unit> {
        Unit::ALL.into_iter().filter(move |&u| self.contains(u))
    }
}

impl FromIterator<Unit> for UnitSet {
    fn from_iter<I: IntoIterator<Item = Unit>>(iter: I) -> Self {
        let mut set = UnitSet::NONE;
        iter.into_iter().for_each(|u| set.insert(u));
        set
    }
}
