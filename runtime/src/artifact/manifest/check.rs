//! Checks of a manifest that was read: nothing refers to what does not exist, and no size is out of bounds.

use super::{AccelStep, BlobId, MOST_STEPS, Manifest, Step, StepKind, ValueId};
use crate::tensor::{DType, byte_len, shape_text};
use tilewright_hw::isa::INSN_BYTES;

/// More scratch memory than any step needs; a larger number means that the manifest is damaged.
const MAX_WORKSPACE: u64 = 1 << 36;

impl Manifest {
    /// Checks that every reference is valid, that constants have the bytes of their shape, and that every value is
    /// written before it is read. `blob_lens` are the sizes of the blobs.
    ///
    /// # Errors
    /// The first broken rule, as text.
    pub fn check(&self, blob_lens: &[usize]) -> Result<(), String> {
        let blob = |id: BlobId, what: &str| -> Result<usize, String> {
            blob_lens
                .get(id.0 as usize)
                .copied()
                .ok_or_else(|| format!("{what} refers to blob {}, which does not exist", id.0))
        };
        let mut ready = Vec::with_capacity(self.values.len());
        for value in &self.values {
            let Some(bytes) = byte_len(value.dtype, &value.shape) else {
                return Err(format!("value {} of shape {} is too large", value.name, shape_text(&value.shape)));
            };
            if let Some(id) = value.constant
                && blob(id, &format!("constant {}", value.name))? != bytes
            {
                return Err(format!("constant {} does not have the {bytes} bytes of its shape", value.name));
            }
            ready.push(value.constant.is_some());
        }
        let missing = |id: ValueId, what: &str| format!("{what} refers to value {}, which does not exist", id.0);
        for id in &self.inputs {
            let known = ready.get_mut(id.0 as usize).ok_or_else(|| missing(*id, "the list of inputs"))?;
            if *known {
                return Err(format!("input {} is a constant, or listed twice", self.values[id.0 as usize].name));
            }
            *known = true;
            let value = &self.values[id.0 as usize];
            if value.fixed.as_ref().is_some_and(|fixed| fixed.len() != value.bytes()) {
                return Err(format!("the elements of input {} are not those of its shape", value.name));
            }
        }
        for step in &self.steps {
            for id in &step.inputs {
                match ready.get(id.0 as usize) {
                    Some(true) => {}
                    Some(false) => {
                        let name = &self.values[id.0 as usize].name;
                        return Err(format!("step {} reads {name} before anything wrote it", step.name));
                    }
                    None => return Err(missing(*id, &format!("step {}", step.name))),
                }
            }
            for (index, id) in step.outputs.iter().enumerate() {
                let Some(value) = self.values.get(id.0 as usize) else {
                    return Err(missing(*id, &format!("step {}", step.name)));
                };
                if value.constant.is_some() || step.inputs.contains(id) || step.outputs[..index].contains(id) {
                    return Err(format!("step {} must not write {}", step.name, value.name));
                }
                ready[id.0 as usize] = true;
            }
            match &step.kind {
                StepKind::Accel(accel) => {
                    let stream = blob(accel.stream, &format!("step {}", step.name))?;
                    accel.check_layers(stream / INSN_BYTES).map_err(|what| format!("step {}: {what}", step.name))?;
                    blob(accel.constants, &format!("step {}", step.name))?;
                    self.check_accel(step, accel)?;
                }
                StepKind::Cpu { object, workspace_bytes, .. } => {
                    let objects = self.cpu.as_ref().map_or(0, |cpu| cpu.objects.len());
                    if *object as usize >= objects {
                        return Err(format!("step {} refers to object code {object}, which does not exist", step.name));
                    }
                    if *workspace_bytes > MAX_WORKSPACE {
                        return Err(format!(
                            "step {} needs {workspace_bytes} bytes of scratch memory, too many",
                            step.name
                        ));
                    }
                }
                StepKind::Cuda { code, workspace_bytes, .. } => {
                    if *code as usize >= self.cuda.len() {
                        return Err(format!("step {} refers to CUDA code {code}, which does not exist", step.name));
                    }
                    if *workspace_bytes > MAX_WORKSPACE {
                        return Err(format!(
                            "step {} needs {workspace_bytes} bytes of scratch memory, too many",
                            step.name
                        ));
                    }
                }
                StepKind::Packed { .. } => {}
                StepKind::If { .. } | StepKind::Loop { .. } => {
                    let wrong = |what| format!("step {}: {what}", step.name);
                    step.kind.regions().iter().try_for_each(|region| region.check(blob_lens)).map_err(wrong)?;
                    self.check_flow(step).map_err(wrong)?;
                }
            }
        }
        if !self.output_names.is_empty() && self.output_names.len() != self.outputs.len() {
            let (names, outputs) = (self.output_names.len(), self.outputs.len());
            return Err(format!("{names} names are given for {outputs} outputs"));
        }
        for id in &self.outputs {
            match ready.get(id.0 as usize) {
                Some(true) => {}
                Some(false) => {
                    return Err(format!("nothing writes the output {}", self.values[id.0 as usize].name));
                }
                None => return Err(missing(*id, "the list of outputs")),
            }
        }
        for counted in &self.counted {
            let value = |place: usize| self.outputs.get(place).map(|id| &self.values[id.0 as usize]);
            let rows = value(counted.output).and_then(|value| value.shape.get(counted.axis));
            let number = value(counted.count).filter(|value| value.dtype == DType::I64 && value.shape.is_empty());
            if number.is_none() || rows.is_none_or(|rows| counted.each == 0 || rows % counted.each != 0) {
                return Err(format!(
                    "the rows of output {} are not counted by output {}",
                    counted.output, counted.count
                ));
            }
        }
        for node in &self.nodes {
            if node.step.is_some_and(|step| step as usize >= self.steps.len()) {
                return Err(format!("node {} refers to a step that does not exist", node.name));
            }
            if let Some(id) = node.values.iter().flatten().find(|id| id.0 as usize >= self.values.len()) {
                return Err(missing(*id, &format!("node {}", node.name)));
            }
        }
        for code in &self.cuda {
            blob(*code, "the list of CUDA code")?;
        }
        if let Some(cpu) = &self.cpu {
            for object in &cpu.objects {
                blob(*object, "the object code")?;
            }
        }
        Ok(())
    }

    /// Checks that regions take and return what their step reads and writes.
    fn check_flow(&self, step: &Step) -> Result<(), String> {
        type Type<'m> = (DType, &'m [usize]);
        fn types<'m>(manifest: &'m Manifest, ids: &'m [ValueId]) -> Vec<Type<'m>> {
            ids.iter().map(|id| &manifest.values[id.0 as usize]).map(|v| (v.dtype, v.shape.as_slice())).collect()
        }
        let (given, made) = (types(self, &step.inputs), types(self, &step.outputs));
        let (truth, number) = ((DType::Bool, &[][..]), (DType::I64, &[][..]));
        let suits = match &step.kind {
            StepKind::If { then, otherwise } => [then, otherwise].iter().all(|region| {
                let captured = given.split_first().filter(|(condition, _)| **condition == truth);
                captured.is_some_and(|(_, captured)| types(region, &region.inputs) == captured)
                    && types(region, &region.outputs) == made
            }),
            StepKind::Loop { most, .. } if *most > MOST_STEPS => {
                return Err(format!("it takes up to {most} steps; at most {MOST_STEPS} are supported"));
            }
            StepKind::Loop { body, carried, collects, .. } => {
                let carried = usize::try_from(*carried).unwrap_or(usize::MAX);
                let (takes, returns) = (types(body, &body.inputs), types(body, &body.outputs));
                let ends = given.len() >= carried.saturating_add(2) && given[..2] == [number, truth];
                let starts = takes.first() == Some(&number) && returns.first() == Some(&truth);
                let row = |(own, all): (&Type, &Type)| {
                    own.0 == all.0 && all.1.split_first() == Some((&(*collects as usize), own.1))
                };
                let (last, rows) = made.split_at(carried.min(made.len()));
                ends && starts
                    && takes[1..] == given[2..]
                    && returns.len() == made.len() + 1
                    && last.len() == carried
                    && returns[1..=carried] == *last
                    && given[2..2 + carried] == *last
                    && returns[1 + carried..].iter().zip(rows).all(row)
            }
            _ => true,
        };
        if suits { Ok(()) } else { Err("its regions take or return other values than it does".into()) }
    }

    fn check_accel(&self, step: &Step, accel: &AccelStep) -> Result<(), String> {
        let name = &step.name;
        if self.hardware.is_none() {
            return Err(format!("step {name} runs on an accelerator, but the artifact names no configuration"));
        }
        let regions = accel.program.regions.len();
        for (values, packings, bindings) in [
            (&step.inputs, &accel.inputs, &accel.program.inputs),
            (&step.outputs, &accel.outputs, &accel.program.outputs),
        ] {
            if values.len() != packings.len() || values.len() != bindings.len() {
                return Err(format!("step {name} and its program differ in their numbers of tensors"));
            }
            for ((id, packing), binding) in values.iter().zip(packings).zip(bindings) {
                let value = &self.values[id.0 as usize];
                let (host, device) =
                    packing.bytes(value.bytes()).ok_or_else(|| format!("step {name} has sizes that overflow"))?;
                if host != value.bytes() || device as u64 != binding.bytes || binding.region.0 as usize >= regions {
                    return Err(format!("step {name} and its program disagree about {}", value.name));
                }
            }
        }
        if regions == 0 {
            return Err(format!("the program of step {name} has no constants"));
        }
        Ok(())
    }
}

impl AccelStep {
    /// Checks that its layers have no more instructions than its stream, and that the runs have all of them.
    fn check_layers(&self, insns: usize) -> Result<(), String> {
        let ends = self.layers.iter().map(|layer| layer.end);
        if !ends.clone().is_sorted() || ends.clone().next_back().is_some_and(|end| end > insns) {
            return Err(format!("its layers do not divide its {insns} instructions"));
        }
        let in_runs: u64 = self.runs.iter().map(|run| u64::from(run.insns)).sum();
        if !self.runs.is_empty() && in_runs != insns as u64 {
            return Err(format!("the runs of its layers have {in_runs} instructions instead of {insns}"));
        }
        Ok(())
    }
}
