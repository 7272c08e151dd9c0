//! Settings of phase-locked loops.

/// The settings of a phase-locked loop.
///
/// Its oscillator runs at `oscillator_mhz`. Without feedback from the output, `mhz` is `input * feedback / reference /
/// output`; with it, `input * feedback / reference`.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Pll {
    /// Divisor of the input.
    pub reference: u32,
    /// Multiplier.
    pub feedback: u32,
    /// Divisor of the oscillator.
    pub output: u32,
    /// Frequency of the output, MHz.
    pub mhz: f64,
    /// Frequency of the oscillator, MHz.
    pub oscillator_mhz: f64,
    /// Frequency at the phase detector, MHz.
    pub detector_mhz: f64,
}

/// The limits of a part's phase-locked loop. Frequencies are in MHz.
pub(super) struct Limits {
    pub reference: std::ops::RangeInclusive<u32>,
    pub feedback: std::ops::RangeInclusive<u32>,
    pub outputs: &'static [u32],
    pub oscillator: std::ops::RangeInclusive<f64>,
    pub detector: std::ops::RangeInclusive<f64>,
    /// The output.
    pub result: std::ops::RangeInclusive<f64>,
    /// Whether the feedback comes from the output, after the output divisor.
    pub feedback_from_output: bool,
}

/// The least result, as a fraction of the wanted clock.
const LEAST: f64 = 0.9;

/// Finds the settings whose output is nearest to `wanted` MHz and not above it; `None` if the nearest is below nine
/// tenths of it.
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
