//! Inputs in, outputs and figures out: runs a session as often as the inputs ask for.

use tilewright_runtime::artifact::{About, Artifact, Place, Value, ValueId};
use tilewright_runtime::session::{RunReport, Session, SessionError};
use tilewright_runtime::tensor::{DType, Tensor, shape_text};

/// What is wrong with the inputs or labels given for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A name that the model has not.
    #[error("the model has no input {name}; it has {}", known.join(", "))]
    Unknown {
        /// The name given.
        name: String,
        /// The model's.
        known: Vec<String>,
    },
    /// An input without data.
    #[error("input {name} ({ty}) is missing; give it with --input {name}=FILE")]
    Missing {
        /// The input.
        name: String,
        /// Its type and shape.
        ty: String,
    },
    /// More data than inputs.
    #[error("{given} arrays given, the model has {known} inputs; give each once")]
    TooMany {
        /// Arrays given.
        given: usize,
        /// Inputs of the model.
        known: usize,
    },
    /// An input given twice.
    #[error("input {name} is given twice")]
    Twice {
        /// The input.
        name: String,
    },
    /// Element type or shape do not fit.
    #[error("input {name} is {found}, the model takes {wanted}, or a multiple of its first axis")]
    Type {
        /// The input.
        name: String,
        /// Type and shape given.
        found: String,
        /// Type and shape taken.
        wanted: String,
    },
    /// Inputs ask for different numbers of runs.
    #[error("input {name} has data for {found} runs, input {first} for {wanted}")]
    Runs {
        /// The input.
        name: String,
        /// Its runs.
        found: usize,
        /// The first input.
        first: String,
        /// Its runs.
        wanted: usize,
    },
    /// Labels of another number than the answers.
    #[error("{labels} labels given for {answers} answers; the labels' file must have one whole number for each")]
    Labels {
        /// Labels.
        labels: usize,
        /// Answers.
        answers: usize,
    },
    /// Labels that are no whole numbers.
    #[error("the labels are {dtype}; the labels' file must have whole numbers, of type i8 to i64 or u8 to u64")]
    LabelType {
        /// Their type.
        dtype: DType,
    },
    /// A label that no answer can equal.
    #[error("label {index} is {label}, but the model's first output tells {classes} classes apart; use 0 to {}", classes - 1)]
    LabelRange {
        /// Its place, from 0.
        index: usize,
        /// The label.
        label: i128,
        /// Elements of the output's last axis.
        classes: usize,
    },
    /// Labels for a model that tells nothing apart.
    #[error("labels are of no use here: the model has {what}; leave --labels out")]
    NoClasses {
        /// What its outputs are.
        what: &'static str,
    },
}

/// Puts arrays into the order of the model's inputs: named ones by name, then the others in order.
///
/// # Errors
/// The naming variants of [`InputError`].
pub fn arrange(model: &[&Value], given: Vec<(Option<String>, Tensor)>) -> Result<Vec<Tensor>, InputError> {
    let names = || model.iter().map(|value| value.name.clone()).collect::<Vec<_>>();
    if given.len() > model.len() {
        return Err(InputError::TooMany { given: given.len(), known: model.len() });
    }
    let mut slots: Vec<Option<Tensor>> = vec![None; model.len()];
    let (named, unnamed): (Vec<_>, Vec<_>) = given.into_iter().partition(|(name, _)| name.is_some());
    for (name, tensor) in named {
        let name = name.unwrap_or_default();
        let Some(slot) = model.iter().position(|value| value.name == name) else {
            return Err(InputError::Unknown { name, known: names() });
        };
        if slots[slot].replace(tensor).is_some() {
            return Err(InputError::Twice { name });
        }
    }
    let mut unnamed = unnamed.into_iter();
    for slot in &mut slots {
        if slot.is_none() {
            *slot = unnamed.next().map(|(_, tensor)| tensor);
        }
    }
    let missing = |value: &Value| InputError::Missing {
        name: value.name.clone(),
        ty: format!("{} {}", value.dtype, shape_text(&value.shape)),
    };
    slots.into_iter().zip(model).map(|(slot, value)| slot.ok_or_else(|| missing(value))).collect()
}

/// Arrays of floats as the compiled model takes them, where they have the width that the model's file names.
pub fn from_file_floats(model: &[&Value], about: &About, inputs: &mut [Tensor]) {
    for ((value, edge), tensor) in model.iter().zip(&about.inputs).zip(inputs) {
        if edge.floats == Some(tensor.dtype)
            && let Some(converted) = tensor.to_floats(value.dtype)
        {
            *tensor = converted;
        }
    }
}

/// Outputs in the width of floats that the model's file names.
pub fn to_file_floats(about: &About, outputs: &mut [Tensor]) {
    for (edge, tensor) in about.outputs.iter().zip(outputs) {
        if let Some(converted) = edge.floats.and_then(|floats| tensor.to_floats(floats)) {
            *tensor = converted;
        }
    }
}

/// Cuts every input into the pieces of single runs.
///
/// # Errors
/// [`InputError::Type`] or [`InputError::Runs`].
pub fn split(model: &[&Value], inputs: &[Tensor]) -> Result<Vec<Vec<Tensor>>, InputError> {
    // A model without inputs computes what it has to once.
    let mut runs: Vec<Vec<Tensor>> = if model.is_empty() { vec![Vec::new()] } else { Vec::new() };
    for (index, (value, tensor)) in model.iter().zip(inputs).enumerate() {
        let batch = value.shape.first().copied().unwrap_or(1).max(1);
        let times = tensor.shape.first().copied().unwrap_or(1) / batch;
        let mut whole = value.shape.clone();
        if let Some(first) = whole.first_mut() {
            *first = batch * times;
        }
        if tensor.dtype != value.dtype || tensor.shape != whole || times == 0 {
            return Err(InputError::Type {
                name: value.name.clone(),
                found: format!("{} {}", tensor.dtype, shape_text(&tensor.shape)),
                wanted: format!("{} {}", value.dtype, shape_text(&value.shape)),
            });
        }
        if index == 0 {
            runs = vec![Vec::new(); times];
        } else if runs.len() != times {
            let (name, first) = (value.name.clone(), model[0].name.clone());
            return Err(InputError::Runs { name, found: times, first, wanted: runs.len() });
        }
        let bytes = value.bytes();
        for (run, list) in runs.iter_mut().enumerate() {
            let piece = tensor.bytes[run * bytes..(run + 1) * bytes].to_vec();
            list.push(Tensor { dtype: value.dtype, shape: value.shape.clone(), bytes: piece });
        }
    }
    Ok(runs)
}

/// Inputs for one run where nobody has given any, the same each time: integers over their whole range, floats from -1 to 1,
/// and zeros and ones for numbers of 32 bits and more, which may be indices.
pub fn made_up(model: &[&Value]) -> Vec<Tensor> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let tensor = |value: &&Value| {
        let elements = value.bytes() / value.dtype.size();
        let mut bytes = Vec::with_capacity(value.bytes());
        for _ in 0..elements {
            let word = next();
            let real = word as f64 / (1u64 << 52) as f64 - 1.0;
            match value.dtype {
                DType::I8 | DType::U8 => bytes.push((word >> 40) as u8),
                DType::F32 => bytes.extend((real as f32).to_le_bytes()),
                DType::F64 => bytes.extend(real.to_le_bytes()),
                dtype => {
                    bytes.push((word >> 40) as u8 & u8::from(dtype != DType::F16) & 1);
                    bytes.resize(bytes.len() + dtype.size() - 1, 0);
                }
            }
        }
        Tensor { dtype: value.dtype, shape: value.shape.clone(), bytes }
    };
    model.iter().map(tensor).collect()
}

/// All runs together.
#[derive(Debug, Clone)]
pub struct Results {
    /// The model's outputs, those of all runs behind each other along the first axis.
    pub outputs: Vec<Tensor>,
    /// Steps of each run.
    pub reports: Vec<RunReport>,
}

impl Results {
    /// Runs.
    pub fn runs(&self) -> usize {
        self.reports.len()
    }

    /// Seconds inside devices.
    pub fn wall_s(&self) -> f64 {
        self.reports.iter().map(RunReport::wall_s).sum()
    }

    /// Cycles of all runs, where the device knows time.
    pub fn cycles(&self) -> Option<u64> {
        self.reports.iter().map(RunReport::cycles).sum::<Option<u64>>().filter(|_| !self.reports.is_empty())
    }

    /// The accelerator's true MACs over what it could have done in its cycles.
    pub fn utilization(&self, artifact: &Artifact, macs_per_cycle: u64) -> Option<f64> {
        let macs = artifact.manifest.offloaded_macs() * self.runs() as u64;
        self.cycles().map(|cycles| macs as f64 / (cycles * macs_per_cycle) as f64)
    }

    /// Seconds in steps of one place.
    pub fn seconds_on(&self, place: Place) -> f64 {
        let steps = self.reports.iter().flat_map(|report| &report.steps).filter(|step| step.place == place);
        // The sum of nothing would be minus zero.
        steps.fold(0.0, |sum, step| sum + step.wall_s)
    }
}

/// Runs every piece; `progress` is told the number of runs done.
///
/// # Errors
/// The session's.
pub fn run(session: &mut Session, runs: &[Vec<Tensor>], progress: impl FnMut(usize)) -> Result<Results, SessionError> {
    run_watched(session, runs, &mut |_, _| {}, progress)
}

/// The same; `watch` is handed each value of each run as soon as it is there.
///
/// # Errors
/// The session's.
pub fn run_watched(
    session: &mut Session,
    runs: &[Vec<Tensor>],
    watch: &mut dyn FnMut(ValueId, &[u8]),
    mut progress: impl FnMut(usize),
) -> Result<Results, SessionError> {
    let mut outputs: Vec<Tensor> = Vec::new();
    let mut reports = Vec::with_capacity(runs.len());
    for (index, inputs) in runs.iter().enumerate() {
        let (results, report) = session.run_watched(inputs, watch)?;
        reports.push(report);
        if outputs.is_empty() {
            outputs = results;
        } else {
            for (all, one) in outputs.iter_mut().zip(results) {
                all.bytes.extend_from_slice(&one.bytes);
            }
        }
        progress(index + 1);
    }
    for output in &mut outputs {
        if let Some(first) = output.shape.first_mut() {
            *first *= runs.len();
        } else if runs.len() > 1 {
            output.shape = vec![runs.len()];
        }
    }
    Ok(Results { outputs, reports })
}

/// The right answers of a model whose first output's last axis has an element for each class.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    classes: usize,
    right: Vec<usize>,
}

impl Labels {
    /// Labels for `runs` runs of a model with this output: their number, type and values are checked before anything runs.
    ///
    /// # Errors
    /// [`InputError::Labels`], [`InputError::LabelType`], [`InputError::LabelRange`] or [`InputError::NoClasses`].
    pub fn check(labels: &Tensor, output: Option<&Value>, runs: usize) -> Result<Labels, InputError> {
        let output = output.ok_or(InputError::NoClasses { what: "no output" })?;
        Labels::of(labels, &output.shape, runs)
    }

    pub(crate) fn of(labels: &Tensor, output: &[usize], runs: usize) -> Result<Labels, InputError> {
        let classes = crate::classes::count(output);
        if classes < 2 {
            return Err(InputError::NoClasses { what: "one number for an answer" });
        }
        let answers = runs * output.iter().product::<usize>() / classes;
        if labels.len() != answers || answers == 0 {
            return Err(InputError::Labels { labels: labels.len(), answers });
        }
        if matches!(labels.dtype, DType::Bool | DType::F16 | DType::F32 | DType::F64) {
            return Err(InputError::LabelType { dtype: labels.dtype });
        }
        let values = (0..labels.len()).map(|index| whole(labels, index)).enumerate();
        let right = values.map(|(index, label)| {
            let class = usize::try_from(label).ok().filter(|class| *class < classes);
            class.ok_or(InputError::LabelRange { index, label, classes })
        });
        Ok(Labels { classes, right: right.collect::<Result<_, _>>()? })
    }

    /// The share of answers that equal their labels: the first greatest element of each row of `output`.
    pub fn accuracy(&self, output: &Tensor) -> f64 {
        let rows = Tensor { shape: vec![self.right.len(), self.classes], ..output.clone() };
        let answers = rows.argmax_last();
        let right = answers.iter().zip(&self.right).filter(|(answer, label)| answer == label).count();
        right as f64 / self.right.len() as f64
    }
}

/// Element `index` of a tensor of whole numbers.
fn whole(tensor: &Tensor, index: usize) -> i128 {
    let size = tensor.dtype.size();
    let mut bytes = [0; 16];
    bytes[..size].copy_from_slice(&tensor.bytes[index * size..][..size]);
    let value = i128::from_le_bytes(bytes);
    let negative =
        matches!(tensor.dtype, DType::I8 | DType::I16 | DType::I32 | DType::I64) && value >> (8 * size - 1) == 1;
    if negative { value - (1 << (8 * size)) } else { value }
}

/// The share of answers that equal their labels, of outputs that are there already.
///
/// # Errors
/// As [`Labels::check`].
pub fn accuracy(output: &Tensor, labels: &Tensor) -> Result<f64, InputError> {
    Ok(Labels::of(labels, &output.shape, 1)?.accuracy(output))
}

#[cfg(test)]
mod tests;
