//! The target host: the processor that runs what is not offloaded, and the figures of its speed that decide where an
//! operator runs.

use super::Violation;
use serde::{Deserialize, Serialize};

/// A figure of `[host]`: its key, unit, legal values and meaning.
pub struct HostParam {
    /// Key in the table.
    pub key: &'static str,
    /// Unit.
    pub unit: &'static str,
    /// Least and greatest legal value.
    pub legal: (f64, f64),
    /// What it is.
    pub doc: &'static str,
    /// Reads it.
    pub get: fn(&HostSection) -> f64,
}

impl HostParam {
    /// The legal values as text.
    pub fn legal_text(&self) -> String {
        format!("{} to {}", self.legal.0, self.legal.1)
    }
}

macro_rules! host {
    ($($key:ident: $ty:ty = $default:expr, $unit:literal, ($lo:expr, $hi:expr), $doc:literal;)*) => {
        /// The `[host]` table: the machine around the accelerator.
        #[derive(Debug, Clone, PartialEq, Serialize, Deserialize)]
        #[serde(default, deny_unknown_fields)]
        pub struct HostSection {
            /// Name of the target host that runs what is not offloaded.
            pub target: String,
            $(#[doc = $doc] pub $key: $ty,)*
        }

        impl Default for HostSection {
            fn default() -> Self {
                HostSection { target: "cortex-a9".into(), $($key: $default,)* }
            }
        }

        impl HostSection {
            /// Every figure, in the order of the documentation.
            pub const PARAMS: &[HostParam] = &[$(HostParam {
                key: stringify!($key),
                unit: $unit,
                legal: ($lo as f64, $hi as f64),
                doc: $doc,
                get: |host| host.$key as f64,
            },)*];
        }
    };
}

host! {
    clock_mhz: f64 = 100.0, "MHz", (0.001, 100000),
        "Clock of the accelerator; converts cycles to time.";
    memory_mib: u32 = 512, "MiB", (1, 1 << 20),
        "Size of the memory that the accelerator can access, for weights, programs and tensors.";
    cores: u32 = 2, "cores", (1, 1024),
        "Host cores that share the work of an operator.";
    cpu_clock_mhz: f64 = 650.0, "MHz", (0.001, 100000),
        "Clock of the host cores.";
    int8_macs_per_cycle: f64 = 4.0, "multiply-accumulates", (0.001, 65536),
        "int8 multiply-accumulates per cycle of a core.";
    f32_macs_per_cycle: f64 = 2.0, "multiply-accumulates", (0.001, 65536),
        "32-bit float multiply-accumulates per cycle of a core.";
    ops_per_cycle: f64 = 1.0, "operations", (0.001, 65536),
        "Scalar operations per cycle of a core, for all other operators.";
    bytes_per_cycle: f64 = 3.2, "bytes", (0.001, 65536),
        "Bytes that all cores together read and write in memory, per cycle of a core.";
    convert_bytes_per_cycle: f64 = 0.25, "bytes", (0.001, 65536),
        "Bytes per cycle that one core converts to or from the accelerator's layout.";
    transfer_mb_per_s: f64 = 1000.0, "MB/s", (0.001, 1000000),
        "Rate of copying tensors to and from the accelerator's memory.";
    launch_us: f64 = 10.0, "us", (0, 1000000),
        "Time to start an accelerator program and to notice its end.";
    call_us: f64 = 1.0, "us", (0, 1000000),
        "Time to call a function of the host's code.";
}

impl HostSection {
    /// Reports figures outside their legal values, and an empty target.
    pub(super) fn violations(&self) -> Vec<Violation> {
        let mut found = Vec::new();
        for p in Self::PARAMS {
            let value = (p.get)(self);
            if !(p.legal.0..=p.legal.1).contains(&value) {
                let remedy = format!("use {}", p.legal_text());
                found.push(Violation { key: format!("host.{}", p.key), what: format!("is {value}"), remedy });
            }
        }
        if self.target.is_empty() {
            let (what, remedy) = ("is empty".into(), "name the processor".into());
            found.push(Violation { key: "host.target".into(), what, remedy });
        }
        found
    }
}
