//! The text form of a report.

use super::{Cells, NetlistCheck, Report};
use std::fmt::Write as _;

/// A path begins and ends at registers or memories of the sources. The look-up tables between were made, and named, by
/// synthesis.
const PATH: &str = "slowest path, with logic named after signals nearby";

impl Report {
    /// Returns the report as text for people.
    pub fn summary(&self) -> String {
        let mut s = format!("{} on {} ({})\n\n", self.config, self.board, self.device);
        if let Some(reason) = &self.refused {
            let _ = writeln!(s, "REFUSED: {reason}\n");
        } else if self.slow {
            let _ = writeln!(s, "SLOW: {}\n", self.clocks());
        }
        let resources = if self.resources.is_empty() { &self.estimate.resources } else { &self.resources };
        for resource in resources {
            let percent = 100.0 * resource.used as f64 / resource.available.max(1) as f64;
            let _ =
                writeln!(s, "{:<18} {:>7} of {:>7}  {percent:5.1} %", resource.name, resource.used, resource.available);
        }
        let _ = writeln!(s, "\n{:<44} {:>7} {:>9} {:>9} {:>5}", "module", "LUTs", "registers", "block RAM", "DSP");
        for row in &self.modules {
            let name = if row.module.is_empty() { "(top)" } else { &row.module };
            let Cells { luts, registers, brams, dsps, .. } = row.cells;
            let _ = writeln!(s, "{name:<44} {luts:>7} {registers:>9} {brams:>9} {dsps:>5}");
        }
        let Cells { luts, registers, brams, dsps, .. } = self.cells;
        let _ = writeln!(s, "{:<44} {luts:>7} {registers:>9} {brams:>9} {dsps:>5}", "all");
        let _ = writeln!(s, "\nclock {:.2} MHz, {:.2} GOPS; --device {}", self.clock_mhz, self.gops, self.link);
        if let Some(wiring) = &self.wiring {
            let _ = writeln!(s, "connection: {wiring}");
        }
        let path = match (self.fmax_mhz, self.estimate.fmax_mhz) {
            (Some(fmax), estimate) => {
                let _ = write!(s, "fastest clock {fmax:.2} MHz (seed {}", self.seed);
                if let Some(estimate) = estimate {
                    let _ = write!(s, "; {estimate:.1} MHz estimated before routing");
                }
                let _ = writeln!(s, "); {PATH}:");
                &self.critical_path
            }
            (None, Some(estimate)) => {
                let _ = writeln!(s, "fastest clock {estimate:.1} MHz expected after routing; {PATH}:");
                &self.estimate.critical_path
            }
            (None, None) => &self.critical_path,
        };
        for step in path {
            let _ = writeln!(s, "  {:6.2} ns  {}", step.ns, step.signal);
        }
        if let Some(bitstream) = &self.bitstream {
            let _ = writeln!(s, "\n{}: {} bytes", bitstream.file, bitstream.bytes);
        }
        for check in &self.checks {
            let NetlistCheck { netlist, layer, programs, cycles, seed, .. } = check;
            let layer = layer.as_ref().map_or(String::new(), |layer| format!("{layer} and "));
            let _ = match (&check.unchecked, &check.difference) {
                (Some(why), _) => writeln!(s, "{netlist}: not checked: {why}"),
                (None, None) => writeln!(
                    s,
                    "{netlist}: equals the sources in {layer}{programs} programs from seed {seed}, {cycles} cycles in {:.0} s",
                    check.seconds
                ),
                (None, Some(difference)) => {
                    writeln!(s, "{netlist}: DIFFERS from the sources after {programs} programs: {difference}")
                }
            };
        }
        for reason in &self.not_done {
            let _ = writeln!(s, "{reason}");
        }
        s
    }
}
