//! Clocks: the settings that make a part's phase-locked loop give the core's clock.

/// A loop's divisors: its output is `input x feedback / reference / output`, MHz, and its oscillator runs at
/// `oscillator_mhz`.
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
    pub reference: std::ops::RangeInclusive<u32>,
    pub feedback: std::ops::RangeInclusive<u32>,
    pub outputs: &'static [u32],
    pub oscillator: std::ops::RangeInclusive<f64>,
    pub detector: std::ops::RangeInclusive<f64>,
    /// What comes out.
    pub result: std::ops::RangeInclusive<f64>,
    /// The feedback is taken behind the output divisor.
    pub feedback_from_output: bool,
}

/// The part of a wanted clock that is still that clock.
const LEAST: f64 = 0.9;

/// The settings whose output is nearest to `wanted` MHz and not above it, or none where that is less than nine tenths
/// of it.
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
