//! The values of a compiled model that are visible after a run, in the order of the graph.

use tilewright_runtime::artifact::{Manifest, Packing, Place, Step, StepKind, ValueId, ValueInfo};

/// A value that a step writes, or an input.
#[derive(Debug, Clone, PartialEq)]
pub struct Visible {
    /// The value.
    pub id: ValueId,
    /// Name of the node that defines it, or of the input. A node's second output has the suffix `:1`, and so on.
    pub name: String,
    /// Index of its defining node in the manifest; none for inputs.
    pub node: Option<usize>,
    /// Index of the step that writes it; none for inputs.
    pub step: Option<usize>,
}

impl Visible {
    /// Its entry in the manifest: type, shape and the names in the model file.
    pub fn value<'m>(&self, manifest: &'m Manifest) -> &'m ValueInfo {
        &manifest.values[self.id.0 as usize]
    }

    /// Every name of the value: the node's, those of the outputs that it is, and the file's.
    pub fn names<'m>(&'m self, manifest: &'m Manifest) -> impl Iterator<Item = &'m str> {
        let value = self.value(manifest);
        let file = value.source.iter().flat_map(|source| source.names());
        let outputs = manifest.named_outputs().filter(|(_, id)| *id == self.id).map(|(name, _)| name);
        [self.name.as_str(), value.name.as_str()].into_iter().chain(outputs).chain(file)
    }

    /// Where its step runs; none for inputs.
    pub fn place(&self, manifest: &Manifest) -> Option<Place> {
        Some(place_of(&manifest.steps[self.step?]))
    }

    /// Its memory layout on the device that wrote it.
    pub fn packing(&self, manifest: &Manifest) -> Packing {
        let packing = self.step.and_then(|step| match &manifest.steps[step].kind {
            StepKind::Accel(accel) => {
                let place = manifest.steps[step].outputs.iter().position(|id| *id == self.id)?;
                accel.outputs.get(place).copied()
            }
            _ => None,
        });
        packing.unwrap_or(Packing::Dense)
    }
}

/// Where a step runs.
pub fn place_of(step: &Step) -> Place {
    match step.kind {
        StepKind::Accel(_) => Place::Accel,
        StepKind::Cuda { .. } => Place::Cuda,
        StepKind::Cpu { .. } | StepKind::Packed { .. } | StepKind::If { .. } | StepKind::Loop { .. } => Place::Cpu,
    }
}

/// A value that never leaves its step.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Hidden {
    /// Index of its defining node in the manifest.
    pub node: usize,
    /// Name of the step that it stays in; none if no step computes it.
    pub step: Option<String>,
}

/// The model's inputs, then the visible values of its nodes in order; and the nodes whose values stay inside a step.
pub fn values(manifest: &Manifest) -> (Vec<Visible>, Vec<Hidden>) {
    let mut step_of = vec![None; manifest.values.len()];
    for (step, written) in manifest.steps.iter().enumerate() {
        for id in &written.outputs {
            step_of[id.0 as usize] = Some(step);
        }
    }
    let mut visible = Vec::new();
    let mut hidden = Vec::new();
    let mut listed = vec![false; manifest.values.len()];
    for id in &manifest.inputs {
        listed[id.0 as usize] = true;
        let name = manifest.values[id.0 as usize].name.clone();
        visible.push(Visible { id: *id, name, node: None, step: None });
    }
    for (node, info) in manifest.nodes.iter().enumerate() {
        let mut found = false;
        for (place, id) in info.values.iter().enumerate() {
            let Some((id, step)) = id.and_then(|id| Some((id, step_of[id.0 as usize]?))) else { continue };
            let name = if place == 0 { info.name.clone() } else { format!("{}:{place}", info.name) };
            listed[id.0 as usize] = true;
            found = true;
            visible.push(Visible { id, name, node: Some(node), step: Some(step) });
        }
        if !found {
            let step = info.step.map(|step| manifest.steps[step as usize].name.clone());
            hidden.push(Hidden { node, step });
        }
    }
    // Values without a defining node, as in files of older versions.
    for (at, step) in step_of.iter().enumerate().filter(|(at, step)| step.is_some() && !listed[*at]) {
        let name = manifest.values[at].name.clone();
        visible.push(Visible { id: ValueId(at as u32), name, node: None, step: *step });
    }
    (visible, hidden)
}
