//! Inputs in, outputs and figures out: runs a session as often as the inputs ask for.

use tilewright_runtime::artifact::{About, Artifact, Place, Value, ValueId};
use tilewright_runtime::session::{RunReport, Session, SessionError};
use tilewright_runtime::tensor::{DType, Number, Tensor, shape_text};

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
    #[error("input {name} ({ty}) is missing; {remedy}")]
    Missing {
        /// The input.
        name: String,
        /// Its type and shape.
        ty: String,
        /// How it is given.
        remedy: String,
    },
    /// An input that no data fill.
    #[error("input {name} ({ty}) has no elements: its dimension {axis} is 0")]
    Empty {
        /// The input.
        name: String,
        /// Its type and shape.
        ty: String,
        /// The first dimension without elements.
        axis: usize,
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

/// How whole numbers of 8 bits become values of an input of floats: less the mean, over the scale. Floats are taken as they
/// are.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Taken off.
    pub mean: f32,
    /// Divided by.
    pub scale: f32,
}

impl Scaling {
    /// Numbers stay what they are.
    pub const NONE: Scaling = Scaling { mean: 0.0, scale: 1.0 };
}

/// Shapes of arrays, which give the dimensions that a model leaves open their sizes; see [`crate::model::Sizes::data`].
pub fn shapes(arrays: &[(Option<String>, Tensor)]) -> Vec<(Option<String>, Vec<usize>)> {
    arrays.iter().map(|(name, tensor)| (name.clone(), tensor.shape.clone())).collect()
}

/// The inputs of each run from arrays: those with names by name, then the others in order; the only array of a model of one
/// input may have whatever name. What is not given comes from `rest`, an array for each input, where there is one.
///
/// Arrays are of an input's own type, or whole numbers of 8 bits or floats of any width that become floats. The first axis
/// runs over runs; axes of size 1 may be left out or added, and whole numbers may be `[N, H, W, C]` where the model takes
/// `[N, C, H, W]`.
///
/// # Errors
/// [`InputError`], naming the input.
pub fn arrange(
    model: &[&Value],
    given: Vec<(Option<String>, Tensor)>,
    rest: Option<Vec<Tensor>>,
    scaling: Scaling,
) -> Result<Vec<Vec<Tensor>>, InputError> {
    split_scaled(model, &ordered(model, given, rest)?, scaling)
}

/// The arrays in the order of the model's inputs.
fn ordered(
    model: &[&Value],
    given: Vec<(Option<String>, Tensor)>,
    rest: Option<Vec<Tensor>>,
) -> Result<Vec<Tensor>, InputError> {
    let names = || model.iter().map(|value| value.name.clone()).collect::<Vec<_>>();
    if given.len() > model.len() {
        return Err(InputError::TooMany { given: given.len(), known: model.len() });
    }
    let mut slots: Vec<Option<Tensor>> = vec![None; model.len()];
    let one = given.len() == 1 && model.len() == 1;
    let (named, unnamed): (Vec<_>, Vec<_>) = given.into_iter().partition(|(name, _)| name.is_some() && !one);
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
    if let Some(rest) = rest {
        for (slot, tensor) in slots.iter_mut().zip(rest) {
            slot.get_or_insert(tensor);
        }
    }
    let missing = |value: &Value| InputError::Missing {
        name: value.name.clone(),
        ty: format!("{} {}", value.dtype, shape_text(&value.shape)),
        remedy: format!("give it with --input {}=FILE, or --input random for made-up data", value.name),
    };
    slots.into_iter().zip(model).map(|(slot, value)| slot.ok_or_else(|| missing(value))).collect()
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
/// [`InputError::Empty`], [`InputError::Type`] or [`InputError::Runs`].
pub fn split(model: &[&Value], inputs: &[Tensor]) -> Result<Vec<Vec<Tensor>>, InputError> {
    split_scaled(model, inputs, Scaling::NONE)
}

fn split_scaled(model: &[&Value], inputs: &[Tensor], scaling: Scaling) -> Result<Vec<Vec<Tensor>>, InputError> {
    // A model without inputs computes what it has to once.
    let mut runs: Vec<Vec<Tensor>> = if model.is_empty() { vec![Vec::new()] } else { Vec::new() };
    for (index, (value, tensor)) in model.iter().zip(inputs).enumerate() {
        if let Some(axis) = value.shape.iter().position(|&n| n == 0) {
            let ty = format!("{} {}", value.dtype, shape_text(&value.shape));
            return Err(InputError::Empty { name: value.name.clone(), ty, axis });
        }
        let data = fitted(value, tensor, scaling)?;
        let size = value.bytes();
        let times = data.len() / size;
        if index == 0 {
            runs = vec![Vec::new(); times];
        } else if runs.len() != times {
            let (name, first) = (value.name.clone(), model[0].name.clone());
            return Err(InputError::Runs { name, found: times, first, wanted: runs.len() });
        }
        for (list, bytes) in runs.iter_mut().zip(data.chunks(size)) {
            list.push(Tensor { dtype: value.dtype, shape: value.shape.clone(), bytes: bytes.to_vec() });
        }
    }
    Ok(runs)
}

/// The bytes of an array as an input takes them, of one run behind the other.
fn fitted(value: &Value, given: &Tensor, scaling: Scaling) -> Result<Vec<u8>, InputError> {
    let floats = if value.dtype == DType::F32 { given.to_floats(DType::F32) } else { None };
    let array = floats.as_ref().unwrap_or(given);
    let inner = |shape: &[usize]| shape.iter().skip(1).copied().filter(|&n| n != 1).collect::<Vec<_>>();
    let same = inner(&array.shape) == inner(&value.shape);
    let turned = match (array.shape.as_slice(), value.shape.as_slice()) {
        ([_, h, w, c], [_, c2, h2, w2]) => [h, w, c] == [h2, w2, c2] && !array.dtype.is_float(),
        _ => false,
    };
    let scaled = value.dtype == DType::F32 && array.dtype == DType::U8;
    let first = |shape: &[usize]| shape.first().copied().unwrap_or(1);
    let (all, batch) = (first(&array.shape), first(&value.shape).max(1));
    if !(array.dtype == value.dtype || scaled) || all == 0 || all % batch != 0 || !(same || turned) {
        return Err(InputError::Type {
            name: value.name.clone(),
            found: format!("{} {}", given.dtype, shape_text(&given.shape)),
            wanted: format!("{} {}", value.dtype, shape_text(&value.shape)),
        });
    }
    let bytes = if same { array.bytes.clone() } else { channels_first(array) };
    let real = |byte: &u8| ((f32::from(*byte) - scaling.mean) / scaling.scale).to_le_bytes();
    Ok(if scaled { bytes.iter().flat_map(real).collect() } else { bytes })
}

/// The bytes of images `[N, H, W, C]` as `[N, C, H, W]`.
fn channels_first(images: &Tensor) -> Vec<u8> {
    let (size, channels) = (images.dtype.size(), images.shape[3]);
    let pixels = images.shape[1] * images.shape[2];
    let mut bytes = Vec::with_capacity(images.bytes.len());
    for image in images.bytes.chunks_exact(pixels * channels * size) {
        for channel in 0..channels {
            let of_pixel = |pixel: usize| &image[(pixel * channels + channel) * size..][..size];
            (0..pixels).for_each(|pixel| bytes.extend_from_slice(of_pixel(pixel)));
        }
    }
    bytes
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

    /// The accelerator's true MACs over what it could have done in its cycles, where the network has any.
    pub fn utilization(&self, artifact: &Artifact, macs_per_cycle: u64) -> Option<f64> {
        let macs = artifact.manifest.offloaded_macs() * self.runs() as u64;
        self.cycles()
            .filter(|_| artifact.manifest.macs() > 0)
            .map(|cycles| macs as f64 / (cycles * macs_per_cycle) as f64)
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
    collect(runs, |inputs| session.run(inputs), progress)
}

/// The same; `watch` is handed each value of each run as soon as it is there.
///
/// # Errors
/// The session's.
pub fn run_watched(
    session: &mut Session,
    runs: &[Vec<Tensor>],
    watch: &mut dyn FnMut(ValueId, &[u8]),
    progress: impl FnMut(usize),
) -> Result<Results, SessionError> {
    collect(runs, |inputs| session.run_watched(inputs, watch), progress)
}

/// The outputs of all runs one behind the other, with their reports.
fn collect(
    runs: &[Vec<Tensor>],
    mut run: impl FnMut(&[Tensor]) -> Result<(Vec<Tensor>, RunReport), SessionError>,
    mut progress: impl FnMut(usize),
) -> Result<Results, SessionError> {
    let mut outputs: Vec<Tensor> = Vec::new();
    let mut reports = Vec::with_capacity(runs.len());
    for (index, inputs) in runs.iter().enumerate() {
        let (results, report) = run(inputs)?;
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
        let classes = crate::model::classes::count(output);
        if classes < 2 {
            return Err(InputError::NoClasses { what: "one number for an answer" });
        }
        let answers = runs * output.iter().product::<usize>() / classes;
        if labels.len() != answers || answers == 0 {
            return Err(InputError::Labels { labels: labels.len(), answers });
        }
        let wrong_type = InputError::LabelType { dtype: labels.dtype };
        if labels.dtype == DType::Bool {
            return Err(wrong_type);
        }
        let right = (0..labels.len()).map(|index| {
            let Number::Whole(label) = labels.number(index) else { return Err(wrong_type.clone()) };
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

/// The share of answers that equal their labels, of outputs that are there already.
///
/// # Errors
/// As [`Labels::check`].
pub fn accuracy(output: &Tensor, labels: &Tensor) -> Result<f64, InputError> {
    Ok(Labels::of(labels, &output.shape, 1)?.accuracy(output))
}

#[cfg(test)]
mod tests;
