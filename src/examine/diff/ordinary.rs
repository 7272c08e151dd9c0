//! Compares the ordinary program of a model with the one that keeps its values. Their memory and tiles differ, because
//! a kept value can neither be fused into tiles nor share its memory with other tensors.

use tilewright_runtime::session::SessionError;
use tilewright_runtime::tensor::Tensor;

use super::{Difference, Side, Tolerance, compare};

/// Outputs of a run, by name, in the model's order.
pub type Outputs = Vec<(String, Tensor)>;

/// A difference between the ordinary program and the one that keeps its values.
#[derive(Debug, Clone, PartialEq)]
pub struct Departure {
    /// Index of the run, from 0.
    pub run: usize,
    /// The output.
    pub output: String,
    /// The difference; the first value is from the program that keeps its values.
    pub difference: Difference,
}

impl Side {
    /// The model's outputs in the last run.
    pub fn outputs(&self) -> Outputs {
        let manifest = &self.artifact().manifest;
        let output = |(name, id): (&str, tilewright_runtime::artifact::ValueId)| {
            Some((name.to_string(), self.found.get(id.0 as usize)?.clone()?))
        };
        manifest.named_outputs().filter_map(output).collect()
    }
}

/// Runs the ordinary program on the inputs of `runs`, up to the first run whose outputs differ from `kept`, the outputs
/// of the program that keeps its values.
///
/// # Errors
/// Errors of the session.
pub fn departure(
    ordinary: &mut Side,
    runs: &[Vec<Tensor>],
    kept: &[Outputs],
    tolerance: &Tolerance,
) -> Result<Option<Departure>, SessionError> {
    for (run, (inputs, kept)) in runs.iter().zip(kept).enumerate() {
        ordinary.run(inputs)?;
        for ((output, a), (_, b)) in kept.iter().zip(&ordinary.outputs()) {
            if let Some(difference) = compare(a, b, tolerance) {
                return Ok(Some(Departure { run, output: output.clone(), difference }));
            }
        }
    }
    Ok(None)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{model, model::inference};
    use std::path::Path;
    use tilewright_driver::Role;
    use tilewright_hw::config::HwConfig;
    use tilewright_runtime::artifact::{Artifact, StepKind};
    use tilewright_sim::Fsim;

    fn side(artifact: Artifact, config: &HwConfig) -> Side {
        Side::new(artifact, config, Some(Box::new(Fsim::new(config.clone(), 64 << 20)))).unwrap()
    }

    #[test]
    fn a_fault_of_the_ordinary_program_alone_is_named() {
        let config = HwConfig::default();
        let compiled = |keep_values| {
            let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/models/lenet-mnist/model_qdq_perchannel.onnx");
            let graph = model::import(&path, model::Sizes::default()).unwrap();
            let options = model::Options { level: 3, keep_values, ..model::Options::new(&config) };
            model::build(graph, &options, &mut |_, _| {}).unwrap()
        };
        let (kept, ordinary) = (compiled(true), compiled(false));
        let runs = vec![inference::made_up(&kept.manifest.input_values()); 2];
        let mut a = side(kept.clone(), &config);
        let mut outputs = Vec::new();
        for inputs in &runs {
            a.run(inputs).unwrap();
            outputs.push(a.outputs());
        }
        assert_eq!(outputs[0].iter().map(|o| o.0.as_str()).collect::<Vec<_>>(), ["logits"]);
        let exact = Tolerance::default();
        let found = departure(&mut side(ordinary.clone(), &config), &runs, &outputs, &exact).unwrap();
        assert_eq!(found, None);
        // Corrupts weights of the ordinary program.
        let step = ordinary.manifest.steps.iter().find_map(|step| match &step.kind {
            StepKind::Accel(accel) => Some(accel.clone()),
            _ => None,
        });
        let step = step.unwrap();
        let mut constants = ordinary.blob(step.constants).to_vec();
        for section in step.program.sections.iter().filter(|section| section.role == Role::Weights) {
            for byte in &mut constants[section.offset as usize..(section.offset + section.bytes) as usize] {
                *byte ^= 0x40;
            }
        }
        let bad = ordinary.with_blob(step.constants, constants).unwrap();
        let found = departure(&mut side(bad, &config), &runs, &outputs, &exact).unwrap().unwrap();
        assert_eq!((found.run, found.output.as_str()), (0, "logits"));
        assert_eq!(found.difference.values[0], outputs[0][0].1.number(found.difference.first));
    }
}
