//! AMD Zynq UltraScale+. Synthesized as [`XC7`](super::xc7::XC7) is.

use super::definition::{Definition, Part};
use super::xc7::{ZYNQ, synthesis};

pub static XCUP: Definition =
    Definition { name: "xcup", parts: PARTS, synthesis: |_, top| synthesis("xcup", top), ..ZYNQ };

const PARTS: &[Part] = &[
    Part {
        name: "xczu3eg-sbva484-1-e",
        option: "xcup",
        packages: &[],
        luts: 70560,
        registers: 141_120,
        brams: 432,
        dsps: 360,
        sprams: 0,
    },
    Part {
        name: "xczu7ev-ffvc1156-2-e",
        option: "xcup",
        packages: &[],
        luts: 230_400,
        registers: 460_800,
        brams: 624,
        dsps: 1728,
        sprams: 0,
    },
];
