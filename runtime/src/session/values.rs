//! The host's memory for a model's values. Values with disjoint lifetimes share memory, so that the processor's caches
//! more often hold what a step reads.

use super::SessionError;
use crate::artifact::{Artifact, Manifest, ValueId};
use crate::buffer::AlignedBytes;
use crate::placement::{Buffer, share};

/// Memory of the values that are not constants.
pub(super) struct Values {
    memory: Vec<AlignedBytes>,
    /// For each value, its memory and its bytes; `None` for constants.
    places: Vec<Option<ValuePlace>>,
}

#[derive(Clone, Copy)]
struct ValuePlace {
    memory: usize,
    bytes: usize,
}

/// A value that a step writes, taken out of the table meanwhile.
pub(super) struct Taken {
    memory: AlignedBytes,
    bytes: usize,
}

impl Taken {
    /// Its bytes.
    pub fn bytes(&mut self) -> &mut [u8] {
        &mut self.memory[..self.bytes]
    }
}

impl Values {
    /// Memory for the values of a model.
    ///
    /// # Errors
    /// [`SessionError::Memory`].
    pub fn new(manifest: &Manifest) -> Result<Values, SessionError> {
        let lives = lives(manifest);
        let known: Vec<Buffer> = lives.iter().flatten().copied().collect();
        let shared = share(&known);
        let mut which = shared.which.into_iter();
        let mut places = Vec::with_capacity(lives.len());
        // For each memory its largest value, which is named if the memory cannot be allocated.
        let mut largest: Vec<Option<(usize, &str)>> = vec![None; shared.bytes.len()];
        for (value, life) in manifest.values.iter().zip(&lives) {
            let memory = life.and_then(|_| which.next());
            if let Some(memory) = memory
                && largest[memory].is_none_or(|(bytes, _)| bytes < value.bytes())
            {
                largest[memory] = Some((value.bytes(), &value.name));
            }
            places.push(memory.map(|memory| ValuePlace { memory, bytes: value.bytes() }));
        }
        let memory = shared.bytes.iter().zip(&largest).map(|(bytes, largest)| {
            let memory = usize::try_from(*bytes).ok().and_then(AlignedBytes::try_zeroed);
            let what = largest.map_or_else(String::new, |(_, name)| name.to_string());
            memory.ok_or(SessionError::Memory { what, bytes: *bytes })
        });
        Ok(Values { memory: memory.collect::<Result<_, _>>()?, places })
    }

    /// Number of memories.
    #[cfg(test)]
    pub fn memories(&self) -> usize {
        self.memory.len()
    }

    /// The bytes of a value; a constant's are in the artifact.
    pub fn read<'a>(&'a self, artifact: &'a Artifact, id: ValueId) -> &'a [u8] {
        match (artifact.manifest.values[id.0 as usize].constant, self.places[id.0 as usize]) {
            (Some(blob), _) => artifact.blob(blob),
            (None, Some(place)) => &self.memory[place.memory][..place.bytes],
            (None, None) => &[],
        }
    }

    /// The bytes of a value that is not a constant, for writing.
    pub fn write(&mut self, id: ValueId) -> &mut [u8] {
        match self.places[id.0 as usize] {
            Some(place) => &mut self.memory[place.memory][..place.bytes],
            None => &mut [],
        }
    }

    /// Takes a value that a step writes out of the table, so that others can be read meanwhile; [`Values::put`] puts it
    /// back.
    pub fn take(&mut self, id: ValueId) -> Taken {
        match self.places[id.0 as usize] {
            Some(place) => Taken { memory: std::mem::take(&mut self.memory[place.memory]), bytes: place.bytes },
            None => Taken { memory: AlignedBytes::default(), bytes: 0 },
        }
    }

    /// Puts back what was taken.
    pub fn put(&mut self, id: ValueId, taken: Taken) {
        if let Some(place) = self.places[id.0 as usize] {
            self.memory[place.memory] = taken.memory;
        }
    }
}

/// Lifetime of each value that is not a constant. Step `i` is time `i + 1`, inputs exist at time 0, and outputs are
/// needed after the last step.
pub(super) fn lives(manifest: &Manifest) -> Vec<Option<Buffer>> {
    let end = manifest.steps.len() + 1;
    let mut lives: Vec<Option<Buffer>> = manifest
        .values
        .iter()
        .map(|value| value.constant.is_none().then(|| Buffer { bytes: value.bytes() as u64, first: end, last: 0 }))
        .collect();
    let mut needed = |id: &ValueId, time: usize| {
        if let Some(life) = &mut lives[id.0 as usize] {
            (life.first, life.last) = (life.first.min(time), life.last.max(time));
        }
    };
    manifest.inputs.iter().for_each(|id| needed(id, 0));
    for (number, step) in manifest.steps.iter().enumerate() {
        step.inputs.iter().chain(&step.outputs).for_each(|id| needed(id, number + 1));
    }
    manifest.outputs.iter().for_each(|id| needed(id, end));
    // A value that nothing writes or reads needs no memory.
    lives.into_iter().map(|life| life.filter(|life| life.first <= life.last)).collect()
}
