//! The report of nextpnr.

use super::{PathStep, Resource};
use crate::flow::FlowError;
use crate::flow::files::read_json;
use crate::flow::netlist::signal;
use serde::Deserialize;
use std::collections::BTreeMap;
use std::path::Path;

/// The report of nextpnr.
#[derive(Debug, Clone, Deserialize)]
pub struct Routed {
    #[serde(default)]
    critical_paths: Vec<Path_>,
    #[serde(default)]
    fmax: BTreeMap<String, Fmax>,
    #[serde(default)]
    utilization: BTreeMap<String, Utilization>,
}

#[derive(Debug, Clone, Deserialize)]
struct Path_ {
    #[serde(default)]
    from: String,
    #[serde(default)]
    to: String,
    path: Vec<Hop>,
}

#[derive(Debug, Clone, Deserialize)]
struct Hop {
    delay: f64,
    to: PathEnd,
    #[serde(default)]
    net: Option<String>,
}

#[derive(Debug, Clone, Deserialize)]
struct PathEnd {
    cell: String,
}

#[derive(Debug, Clone, Deserialize)]
struct Fmax {
    achieved: f64,
}

#[derive(Debug, Clone, Copy, Deserialize)]
struct Utilization {
    available: u64,
    used: u64,
}

impl Routed {
    /// Reads the router's report.
    ///
    /// # Errors
    /// [`FlowError::Io`], [`FlowError::Output`].
    pub fn read(path: &Path) -> Result<Routed, FlowError> {
        read_json(path, "a report of nextpnr")
    }

    /// The fastest clock of the slowest clock domain, MHz.
    pub(super) fn fmax(&self) -> Option<f64> {
        self.fmax.values().map(|fmax| fmax.achieved).reduce(f64::min)
    }

    /// Use of the part's resources. Leaves out kinds that the part has none of: they are the router's own helpers.
    pub(super) fn resources(&self) -> Vec<Resource> {
        let used = self.utilization.iter().filter(|(_, usage)| usage.used > 0 && usage.available > 0);
        used.map(|(name, usage)| Resource { name: name.clone(), used: usage.used, available: usage.available })
            .collect()
    }

    /// The slowest path from register to register, as signals of the sources.
    pub(super) fn critical_path(&self) -> Vec<PathStep> {
        let delay = |path: &Path_| path.path.iter().map(|hop| hop.delay).sum::<f64>();
        let inside = self.critical_paths.iter().filter(|path| path.from == path.to);
        let Some(slowest) = inside.max_by(|a, b| delay(a).total_cmp(&delay(b))) else { return Vec::new() };
        let mut steps: Vec<PathStep> = Vec::new();
        for hop in &slowest.path {
            let signal = signal(hop.net.as_deref().unwrap_or(&hop.to.cell)).to_string();
            match steps.last_mut() {
                Some(last) if last.signal == signal || signal.is_empty() => last.ns += hop.delay,
                _ => steps.push(PathStep { signal, ns: hop.delay }),
            }
        }
        steps
    }
}
