//! How much accelerator memory an artifact needs.

use super::{Artifact, StepKind};
use tilewright_driver::ALIGN;

/// Bytes of accelerator memory that an artifact's steps need.
#[derive(Debug, Clone, PartialEq, Eq, Default)]
pub struct DeviceNeed {
    /// Weights, parameters and micro-ops of all steps.
    pub constants: u64,
    /// Instructions of all steps.
    pub streams: u64,
    /// Tensors: steps use the same memory in turn, and within a step dead tensors make room. Each region has memory of its
    /// own.
    pub tensors: u64,
    /// What the tensors would need if each had its own memory.
    pub apart: u64,
    /// Each part with its bytes, largest first.
    pub parts: Vec<(String, u64)>,
}

impl DeviceNeed {
    /// Total bytes.
    pub fn total(&self) -> u64 {
        self.constants + self.streams + self.tensors
    }
}

impl Artifact {
    /// The accelerator memory that the artifact needs.
    pub fn device_need(&self) -> DeviceNeed {
        let mut need = DeviceNeed::default();
        let parts = self.manifest.with_regions().into_iter().enumerate();
        let mut tensors = Vec::new();
        for (part, step) in parts.flat_map(|(part, manifest)| manifest.steps.iter().map(move |step| (part, step))) {
            tensors.resize(part + 1, 0);
            let StepKind::Accel(accel) = &step.kind else { continue };
            let bytes = |what: usize| accel.program.regions.get(what).map_or(0, |r| r.bytes);
            need.constants += bytes(0).next_multiple_of(ALIGN);
            let stream = (self.blob(accel.stream).len() as u64).next_multiple_of(ALIGN);
            need.streams += stream;
            let rest: u64 = (1..accel.program.regions.len()).map(bytes).sum();
            tensors[part] = tensors[part].max(rest.next_multiple_of(ALIGN));
            need.apart += accel.tensors.iter().map(|t| t.buffer.bytes).sum::<u64>();
            need.parts.push((format!("instructions of {}", step.name), stream));
            need.parts.extend(accel.program.sections.iter().map(|s| (s.name.clone(), s.bytes)));
            need.parts.extend(accel.tensors.iter().map(|t| (format!("tensor {}", t.name), t.buffer.bytes)));
        }
        need.tensors = tensors.iter().sum();
        need.parts.sort_by_key(|part| std::cmp::Reverse(part.1));
        need
    }
}
