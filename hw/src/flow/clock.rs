//! Clocks: the settings that make a part's phase-locked loop give the core's clock.

/// A loop's divisors: its output is `input x feedback / reference / output`, MHz, and its oscillator runs at `oscillator_mhz`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pll {
    /// Divides the input.
    pub reference: u32,
    /// Multiplies.
    pub feedback: u32,
    /// Divides the oscillator.
    pub output: u32,
    /// What comes out, MHz.
    pub mhz: f64,
    /// The oscillator between, MHz.
    pub oscillator_mhz: f64,
    /// What the phase detector sees, MHz.
    pub detector_mhz: f64,
}

/// What a part's loop can do, MHz.
pub(super) struct Limits {
    pub(super) reference: std::ops::RangeInclusive<u32>,
    pub(super) feedback: std::ops::RangeInclusive<u32>,
    pub(super) outputs: &'static [u32],
    pub(super) oscillator: std::ops::RangeInclusive<f64>,
    pub(super) detector: std::ops::RangeInclusive<f64>,
    /// What comes out.
    pub(super) result: std::ops::RangeInclusive<f64>,
    /// The feedback is taken behind the output divisor.
    pub(super) feedback_from_output: bool,
}

/// iCE40: SB_PLL40_CORE, simple feedback. Lattice FPGA-TN-02052 and the data sheet's limits.
pub(super) const ICE40: Limits = Limits {
    reference: 1..=16,
    feedback: 1..=128,
    outputs: &[2, 4, 8, 16, 32, 64],
    oscillator: 533.0..=1066.0,
    detector: 10.0..=133.0,
    result: 16.0..=275.0,
    feedback_from_output: false,
};

/// ECP5: EHXPLLL with feedback from its primary output. Lattice FPGA-TN-02200 and the data sheet's limits.
pub(super) const ECP5: Limits = Limits {
    reference: 1..=128,
    feedback: 1..=80,
    outputs: &[
        4, 5, 6, 7, 8, 9, 10, 11, 12, 13, 14, 15, 16, 18, 20, 22, 24, 26, 28, 30, 32, 36, 40, 44, 48, 52, 56, 60, 64,
        72, 80, 96, 112, 128,
    ],
    oscillator: 400.0..=800.0,
    detector: 3.125..=400.0,
    result: 3.125..=400.0,
    feedback_from_output: true,
};

/// The part of a wanted clock that is still that clock.
const LEAST: f64 = 0.9;

/// The settings whose output is nearest to `wanted` MHz and not above it, or none where that is less than nine tenths of it.
pub(super) fn solve(limits: &Limits, input: f64, wanted: f64) -> Option<Pll> {
    let mut best: Option<Pll> = None;
    for reference in limits.reference.clone() {
        let detector_mhz = input / f64::from(reference);
        if !limits.detector.contains(&detector_mhz) {
            continue;
        }
        for feedback in limits.feedback.clone() {
            for &output in limits.outputs {
                let (oscillator_mhz, mhz) = if limits.feedback_from_output {
                    let mhz = detector_mhz * f64::from(feedback);
                    (mhz * f64::from(output), mhz)
                } else {
                    let oscillator = detector_mhz * f64::from(feedback);
                    (oscillator, oscillator / f64::from(output))
                };
                let legal = limits.oscillator.contains(&oscillator_mhz)
                    && limits.result.contains(&mhz)
                    && mhz <= wanted * (1.0 + 1e-9);
                if legal && best.is_none_or(|best| mhz > best.mhz + 1e-9) {
                    best = Some(Pll { reference, feedback, output, mhz, oscillator_mhz, detector_mhz });
                }
            }
        }
    }
    best.filter(|best| best.mhz >= LEAST * wanted)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn loops_come_near_what_is_asked_for() {
        for (limits, input) in [(&ICE40, 12.0), (&ECP5, 25.0), (&ECP5, 12.0), (&ECP5, 48.0)] {
            for wanted in [18.0, 42.0, 48.0, 50.0, 60.0, 80.0] {
                let pll = solve(limits, input, wanted).unwrap_or_else(|| panic!("{input} to {wanted}"));
                assert!(pll.mhz <= wanted * 1.000_001 && pll.mhz > wanted * 0.9, "{input} to {wanted}: {pll:?}");
                assert!(limits.oscillator.contains(&pll.oscillator_mhz), "{pll:?}");
            }
        }
    }

    #[test]
    fn what_no_loop_gives_is_none() {
        assert_eq!(solve(&ICE40, 12.0, 2.0), None);
        assert_eq!(solve(&ICE40, 2.0, 42.0), None);
        // Above what the loop gives.
        assert_eq!([solve(&ICE40, 12.0, 500.0), solve(&ECP5, 25.0, 1000.0)], [None, None]);
        // An iCE40's oscillator could be divided down to it, and its loop does not give less than 16 MHz.
        assert_eq!(solve(&ICE40, 12.0, 15.9), None);
        assert!(solve(&ICE40, 12.0, 16.5).is_some_and(|pll| pll.mhz >= 16.0));
    }
}
