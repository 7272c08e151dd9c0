//! Checks SDRAM chips.

use super::{Pins, Sdram};

impl Sdram {
    /// Checks a chip, and reports all mistakes by their keys.
    pub(in crate::flow) fn check(&self) -> Result<(), String> {
        let mut wrong = Vec::new();
        let mut must = |right: bool, what: String| {
            if !right {
                wrong.push(what);
            }
        };
        let power_of_two = |n: u32, least: u32, most: u32| n.is_power_of_two() && (least..=most).contains(&n);
        must(power_of_two(self.rows, 2048, 8192), format!("rows is {}; a bank has 2048, 4096 or 8192", self.rows));
        must(power_of_two(self.columns, 256, 1024), format!("columns is {}; a row has 256, 512 or 1024", self.columns));
        must(power_of_two(self.banks, 2, 4), format!("banks is {}; a chip has 2 or 4", self.banks));
        let Pins { a, ba, dqm, dq, .. } = &self.pins;
        let (rows, banks) = (self.rows.max(1).ilog2(), self.banks.max(1).ilog2());
        must(a.len() as u32 == rows, format!("pins.a has {} pins, but {} rows need {rows}", a.len(), self.rows));
        must(ba.len() as u32 == banks, format!("pins.ba has {} pins, but {} banks need {banks}", ba.len(), self.banks));
        must(matches!(dq.len(), 8 | 16 | 32), format!("pins.dq has {} pins; a chip has 8, 16 or 32", dq.len()));
        must(
            dqm.is_empty() || dqm.len() == dq.len() / 8,
            format!("pins.dqm has {} pins; give one for each of the {} bytes, or none", dqm.len(), dq.len() / 8),
        );
        let t = &self.timing;
        must(matches!(t.cas_latency, 2 | 3), format!("timing.cas_latency is {}; use 2 or 3", t.cas_latency));
        must((1.0..=200.0).contains(&t.most_mhz), format!("timing.most_mhz is {}; use 1 to 200", t.most_mhz));
        for (key, value, most) in [
            ("rcd_ns", t.rcd_ns, 1000.0),
            ("rp_ns", t.rp_ns, 1000.0),
            ("ras_ns", t.ras_ns, 1000.0),
            ("rc_ns", t.rc_ns, 1000.0),
            ("rfc_ns", t.rfc_ns, 1000.0),
            ("wr_ns", t.wr_ns, 1000.0),
            ("refresh_us", t.refresh_us, 100.0),
            ("power_up_us", t.power_up_us, 1000.0),
        ] {
            must(value > 0.0 && value <= most, format!("timing.{key} is {value}; use more than 0, at most {most}"));
        }
        must(
            t.rc_ns >= t.ras_ns,
            format!("timing.rc_ns is {}, below ras_ns = {}, which it includes", t.rc_ns, t.ras_ns),
        );
        if wrong.is_empty() { Ok(()) } else { Err(format!("memory: {}", wrong.join("; "))) }
    }
}
