//! A profile's run as a trace for Perfetto.

use super::Profile;
use crate::examine::trace;
use tilewright_hw::config::HwConfig;

/// The trace of the run for Perfetto.
pub fn perfetto(profile: &Profile, config: &HwConfig) -> serde_json::Value {
    let reports = std::slice::from_ref(&profile.report);
    let parts = trace::parts(&profile.artifact, reports, &profile.programs);
    trace::trace(&config.name, config.host.clock_mhz, &parts)
}
