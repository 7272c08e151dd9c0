//! Steps with regions: each region is a session of its own on the same device.

use super::error::SessionError;
use super::report::StepReport;
use crate::artifact::{Manifest, Place, Step, StepKind};
use crate::buffer::AlignedBytes;

/// A region that is ready to run.
pub(super) trait Region: Send {
    /// Computes its outputs from its inputs, both in the manifest's order, and returns the accelerator's cycles.
    fn compute(&mut self, given: &[&[u8]], written: &mut [&mut [u8]]) -> Result<Option<u64>, SessionError>;

    /// The same region for another frame.
    fn for_another_frame(&self) -> Opened;
}

/// A region, or why it cannot run.
pub(super) type Opened = Result<Box<dyn Region>, SessionError>;

/// A step with regions that is ready to run.
pub(super) enum Flow {
    /// The region for a true condition, and the other.
    If([Box<dyn Region>; 2]),
    Loop(Box<Looping>),
}

/// A loop that is ready to run.
pub(super) struct Looping {
    body: Box<dyn Region>,
    /// Carried values before a step, and those that it writes.
    carried: [Vec<AlignedBytes>; 2],
    collects: u64,
    most: u64,
}

impl Flow {
    /// Prepares a step, whose regions are opened; `None` if it has none.
    ///
    /// # Errors
    /// Those of `open`.
    pub fn new(step: &Step, open: &dyn Fn(&Manifest) -> Opened) -> Result<Option<Flow>, SessionError> {
        Ok(match &step.kind {
            StepKind::If { then, otherwise } => Some(Flow::If([open(then)?, open(otherwise)?])),
            StepKind::Loop { body, carried, collects, most } => {
                let (collects, most) = (*collects, *most);
                let carried = body.input_values().into_iter().skip(1).take(*carried as usize);
                let carried = Looping::memory(carried.map(|value| value.bytes()));
                let body = open(body)?;
                Some(Flow::Loop(Box::new(Looping { body, carried, collects, most })))
            }
            _ => None,
        })
    }

    /// The same step for another frame.
    ///
    /// # Errors
    /// Those of the regions.
    pub fn for_another_frame(&self) -> Result<Flow, SessionError> {
        Ok(match self {
            Flow::If([then, otherwise]) => Flow::If([then.for_another_frame()?, otherwise.for_another_frame()?]),
            Flow::Loop(own) => {
                let body = own.body.for_another_frame()?;
                let carried = Looping::memory(own.carried[0].iter().map(|memory| memory.len()));
                Flow::Loop(Box::new(Looping { body, carried, collects: own.collects, most: own.most }))
            }
        })
    }

    /// Runs the step on what it reads, and writes its results.
    ///
    /// # Errors
    /// Those of the regions; [`SessionError::Step`] for a loop that does not end, or whose steps are not those that its
    /// collected values are for.
    pub fn run(&mut self, step: &Step, read: &[&[u8]], written: &mut [&mut [u8]]) -> Result<StepReport, SessionError> {
        let cycles = match self {
            Flow::If([then, otherwise]) => {
                let region = if is_true(read[0]) { then } else { otherwise };
                region.compute(&read[1..], written)?
            }
            Flow::Loop(own) => own.run(step, read, written)?,
        };
        // The cycles of its regions count as its own.
        let place = if cycles.is_some() { Place::Accel } else { Place::Cpu };
        Ok(StepReport { cycles, ..StepReport::on(place) })
    }
}

impl Looping {
    /// Memory for carried values of these sizes, twice.
    fn memory(bytes: impl Iterator<Item = usize>) -> [Vec<AlignedBytes>; 2] {
        let one: Vec<AlignedBytes> = bytes.map(AlignedBytes::zeroed).collect();
        [one.iter().map(|memory| AlignedBytes::zeroed(memory.len())).collect(), one]
    }

    fn run(&mut self, step: &Step, read: &[&[u8]], written: &mut [&mut [u8]]) -> Result<Option<u64>, SessionError> {
        let wrong = |reason: String| SessionError::Step { step: step.name.clone(), reason };
        let limit = read[0].try_into().map_or(0, i64::from_le_bytes);
        let limit = u64::try_from(limit).unwrap_or(0);
        let [now, next] = &mut self.carried;
        let (given, captured) = read[2..].split_at(now.len());
        now.iter_mut().zip(given).for_each(|(own, given)| own.copy_from_slice(given));
        let (mut cycles, mut condition, mut at) = (None, [u8::from(is_true(read[1]))], 0);
        let (last, collected) = written.split_at_mut(now.len());
        let steps = |found: u64| format!("its collected values are for {} steps, but it took {found}", self.collects);
        while is_true(&condition) && at < limit {
            if at >= self.most {
                return Err(wrong(format!("it did not end after {} steps", self.most)));
            }
            if !collected.is_empty() && at >= self.collects {
                return Err(wrong(steps(at + 1)));
            }
            let number = at.to_le_bytes();
            let inputs: Vec<&[u8]> = std::iter::once(&number[..])
                .chain(now.iter().map(|own| &own[..]))
                .chain(captured.iter().copied())
                .collect();
            let mut outputs: Vec<&mut [u8]> = vec![&mut condition];
            outputs.extend(next.iter_mut().map(|own| &mut own[..]));
            outputs.extend(collected.iter_mut().map(|all| {
                let row = all.len() / (self.collects as usize).max(1);
                &mut all[at as usize * row..][..row]
            }));
            let taken = self.body.compute(&inputs, &mut outputs)?;
            cycles = taken.map(|taken| taken + cycles.unwrap_or(0)).or(cycles);
            std::mem::swap(now, next);
            at += 1;
        }
        if !collected.is_empty() && at != self.collects {
            return Err(wrong(steps(at)));
        }
        last.iter_mut().zip(&*now).for_each(|(last, own)| last.copy_from_slice(own));
        Ok(cycles)
    }
}

fn is_true(condition: &[u8]) -> bool {
    condition.first().is_some_and(|byte| *byte != 0)
}
