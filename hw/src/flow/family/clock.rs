//! The Verilog module that makes the core's clock.

use super::Family;
use super::definition::CoreClock;
use crate::flow::clock;

/// The core's clock on a board.
pub struct ClockModule {
    /// The Verilog module `tw_clock`; empty if a processor makes the clock.
    pub source: String,
    /// Its frequency, MHz.
    pub mhz: f64,
}

impl Family {
    /// Makes the core's clock from the clock of the board's pin.
    ///
    /// Frequencies are in MHz. The result is the nearest to `wanted` that the part can make, and not above it.
    ///
    /// # Errors
    /// If the part cannot make a clock near the wanted one. The text says what to use instead.
    pub(in crate::flow) fn clock(self, input: f64, wanted: f64) -> Result<ClockModule, String> {
        if (wanted - input).abs() < 1e-6 {
            return Ok(ClockModule { source: module(&[], "  assign clk_o = clk_i;\n"), mhz: input });
        }
        let (limits, instance) = match &self.definition().clock {
            CoreClock::Loop { limits, instance } => (limits, instance),
            CoreClock::Processor => return Ok(ClockModule { source: String::new(), mhz: wanted }),
            CoreClock::PinOnly => {
                return Err(format!(
                    "the core of a {} board runs at the frequency of its clock pin; use {input} MHz",
                    self.name()
                ));
            }
        };
        let pll = clock::solve(limits, input, wanted).ok_or_else(|| {
            format!("the part cannot make a clock of {wanted} MHz from {input} MHz; use another (--mhz)")
        })?;
        let of = format!("{} MHz of {input} MHz, with the loop's oscillator at {} MHz.", pll.mhz, pll.oscillator_mhz);
        Ok(ClockModule { source: module(&[&of], &instance(&pll)), mhz: pll.mhz })
    }
}

fn module(comments: &[&str], body: &str) -> String {
    let comments: String = comments.iter().map(|line| format!("// {line}\n")).collect();
    format!("{comments}module tw_clock (\n  input  wire clk_i,\n  output wire clk_o\n);\n\n{body}\nendmodule\n")
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::flow::clock::{Limits, solve};

    fn limits(family: Family) -> &'static Limits {
        match &family.definition().clock {
            CoreClock::Loop { limits, .. } => limits,
            _ => panic!("{} has no loop", family.name()),
        }
    }

    #[test]
    fn loops_come_near_what_is_asked_for() {
        let (ice40, ecp5) = (limits(Family::Ice40), limits(Family::Ecp5));
        for (limits, input) in [(ice40, 12.0), (ecp5, 25.0), (ecp5, 12.0), (ecp5, 48.0)] {
            for wanted in [18.0, 42.0, 48.0, 50.0, 60.0, 80.0] {
                let pll = solve(limits, input, wanted).unwrap_or_else(|| panic!("{input} to {wanted}"));
                assert!(pll.mhz <= wanted * 1.000_001 && pll.mhz > wanted * 0.9, "{input} to {wanted}: {pll:?}");
                assert!(limits.oscillator.contains(&pll.oscillator_mhz), "{pll:?}");
            }
        }
    }

    #[test]
    fn what_no_loop_gives_is_none() {
        let (ice40, ecp5) = (limits(Family::Ice40), limits(Family::Ecp5));
        assert_eq!(solve(ice40, 12.0, 2.0), None);
        assert_eq!(solve(ice40, 2.0, 42.0), None);
        // Above the output's limit.
        assert_eq!([solve(ice40, 12.0, 500.0), solve(ecp5, 25.0, 1000.0)], [None, None]);
        // The divisors of an iCE40's loop reach it, but its output is at least 16 MHz.
        assert_eq!(solve(ice40, 12.0, 15.9), None);
        assert!(solve(ice40, 12.0, 16.5).is_some_and(|pll| pll.mhz >= 16.0));
    }
}
