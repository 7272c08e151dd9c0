//! Energy coefficients of the accelerator's work, from a measurement or an estimate. They are optional, have no
//! defaults, and do not change the hardware.

use super::Violation;
use serde::{Deserialize, Serialize};

/// A coefficient of `[energy]`: its key, unit and meaning.
pub struct EnergyParam {
    /// Key in the table.
    pub key: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// What it is.
    pub doc: &'static str,
    /// Reads it.
    pub get: fn(&EnergySection) -> f64,
}

/// The greatest legal coefficient; the least is 0.
pub const MOST_ENERGY: f64 = 1e9;

macro_rules! energy {
    ($($key:ident: $unit:literal, $doc:literal;)*) => {
        /// The `[energy]` table.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(deny_unknown_fields)]
        pub struct EnergySection {
            /// Where the coefficients come from.
            pub source: String,
            $(#[doc = $doc] pub $key: f64,)*
        }

        impl EnergySection {
            /// Every coefficient, in the order of the documentation.
            pub const PARAMS: &[EnergyParam] = &[$(EnergyParam {
                key: stringify!($key),
                unit: $unit,
                doc: $doc,
                get: |energy| energy.$key,
            },)*];
        }
    };
}

energy! {
    mac_pj: "pJ", "Energy per multiply-accumulate of the array, padding and scratchpad accesses included.";
    dram_pj_per_byte: "pJ", "Energy per byte on the memory bus.";
    static_mw: "mW", "Static power, counted over the accelerator's cycles.";
}

impl EnergySection {
    /// Millijoules of multiply-accumulates, bytes over the bus and milliseconds.
    pub fn millijoules(&self, macs: u64, bytes: u64, ms: f64) -> f64 {
        (self.mac_pj * macs as f64 + self.dram_pj_per_byte * bytes as f64) * 1e-9 + self.static_mw * ms * 1e-3
    }

    /// Reports coefficients outside their legal values, and an empty source.
    pub(super) fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for p in Self::PARAMS {
            let value = (p.get)(self);
            if !(0.0..=MOST_ENERGY).contains(&value) {
                let remedy = format!("use 0 to {MOST_ENERGY}");
                found.push(Violation { key: format!("energy.{}", p.key), what: format!("is {value}"), remedy });
            }
        }
        if self.source.trim().is_empty() {
            let (what, remedy) = ("is empty".into(), "say where the coefficients come from".into());
            found.push(Violation { key: "energy.source".into(), what, remedy });
        }
        found
    }
}
