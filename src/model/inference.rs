//! Runs a session once per sample of the inputs, and returns outputs and figures.

use bytes::Bytes;
use tilewright_compiler::frontend::Datum;
use tilewright_runtime::artifact::{About, Artifact, Edge, Place, ValueId, ValueInfo};
use tilewright_runtime::session::{RunReport, Session, SessionError};
use tilewright_runtime::tensor::{DType, NarrowFloat, Number, Tensor, shape_text};

/// Errors in the inputs or labels given for a model.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
pub enum InputError {
    /// A name that is not an input of the model.
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
        /// How to give it.
        remedy: String,
    },
    /// More arrays than inputs.
    #[error("{given} arrays given, but the model has {known} inputs; give each once")]
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
    /// Element type or shape does not match.
    #[error("input {name} is {found}, but the model needs {wanted}, or a multiple of its first dimension")]
    Type {
        /// The input.
        name: String,
        /// Type and shape given.
        found: String,
        /// Type and shape needed.
        wanted: String,
    },
    /// Inputs have data for different numbers of runs.
    #[error("input {name} has data for {found} runs, but input {first} for {wanted}")]
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
    /// The number of labels differs from the number of answers.
    #[error("{labels} labels given for {answers} answers; the label file must have one integer for each")]
    Labels {
        /// Number of labels.
        labels: usize,
        /// Number of answers.
        answers: usize,
    },
    /// The labels are not integers.
    #[error("the labels are {dtype}; the label file must have integers, of type i8 to i64 or u8 to u64")]
    LabelType {
        /// Their type.
        dtype: DType,
    },
    /// A label outside the range of classes.
    #[error("label {index} is {label}, but the model's first output has {classes} classes; use 0 to {}", classes - 1)]
    LabelRange {
        /// Its index, from 0.
        index: usize,
        /// The label.
        label: i128,
        /// Elements of the output's last axis.
        classes: usize,
    },
    /// Labels for a model without classes.
    #[error("labels have no effect: the model has {what}; leave --labels out")]
    NoClasses {
        /// What its output is instead.
        what: &'static str,
    },
}

/// Normalization of u8 arrays for a float input: `(byte - mean) / scale`. Float arrays are not changed.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Scaling {
    /// Subtracted.
    pub mean: f32,
    /// Divisor.
    pub scale: f32,
}

impl Scaling {
    /// Leaves numbers unchanged.
    pub const NONE: Scaling = Scaling { mean: 0.0, scale: 1.0 };
}

/// What a model is imported for by arrays; see [`crate::model::Sizes::data`].
pub fn data(arrays: &[(Option<String>, Tensor)]) -> Vec<Datum> {
    arrays.iter().map(|(name, tensor)| Datum::of(name.clone(), tensor)).collect()
}

/// Assigns arrays to the model's inputs and splits them into runs. Named arrays are assigned by name, then the others
/// in order; a single array for a model with one input can have any name. Inputs without an array get theirs from
/// `rest`, if given.
///
/// An array must have the input's type; for a float input it can also be u8, floats of any width, or the bits of the
/// model file's type, if `edges` say that it is one that NumPy does not have. Its first dimension
/// is a multiple of the input's. Dimensions of size 1 can be omitted or added, and integer arrays can be `[N, H, W, C]`
/// for an input `[N, C, H, W]`.
///
/// # Errors
/// [`InputError`], which names the input.
pub fn arrange(
    model: &[&ValueInfo],
    given: Vec<(Option<String>, Tensor)>,
    rest: Option<Vec<Tensor>>,
    (scaling, edges): (Scaling, &[Edge]),
) -> Result<Vec<Vec<Tensor>>, InputError> {
    split_scaled(model, &ordered(model, given, rest)?, (scaling, edges))
}

/// Sorts the arrays into the order of the model's inputs.
pub(super) fn ordered(
    model: &[&ValueInfo],
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
    let missing = |value: &ValueInfo| InputError::Missing {
        name: value.name.clone(),
        ty: format!("{} {}", value.dtype, shape_text(&value.shape)),
        remedy: format!("give it with --input {}=FILE, or use --input random", value.name),
    };
    slots.into_iter().zip(model).map(|(slot, value)| slot.ok_or_else(|| missing(value))).collect()
}

/// Rounds outputs to the float type that the model file declares. Types that NumPy does not have stay f32.
pub fn to_file_floats(about: &About, outputs: &mut [Tensor]) {
    for (edge, tensor) in about.outputs.iter().zip(outputs) {
        let Some(floats) = edge.floats.filter(|_| tensor.dtype == DType::F32) else { continue };
        let converted = match floats {
            NarrowFloat::F16 => tensor.to_floats(DType::F16),
            other => {
                let values: Vec<f32> = tensor.to_f64().iter().map(|x| other.round(*x as f32, false)).collect();
                Tensor::from_f32(tensor.shape.clone(), &values)
            }
        };
        if let Some(converted) = converted {
            *tensor = converted;
        }
    }
}

/// The floats of an array of the bits of a narrow type.
fn widened(bits: &Tensor, floats: NarrowFloat) -> Option<Tensor> {
    let whole = matches!((bits.dtype, floats.size()), (DType::U8, 1) | (DType::U16, 2));
    let widen = |bits: &f64| floats.widen(*bits as u16);
    let values = || bits.to_f64().iter().map(widen).collect::<Vec<_>>();
    whole.then(|| Tensor::from_f32(bits.shape.clone(), &values())).flatten()
}

/// Splits every input into runs.
///
/// # Errors
/// [`InputError::Type`] or [`InputError::Runs`].
pub fn split(model: &[&ValueInfo], inputs: &[Tensor]) -> Result<Vec<Vec<Tensor>>, InputError> {
    split_scaled(model, inputs, (Scaling::NONE, &[]))
}

fn split_scaled(
    model: &[&ValueInfo],
    inputs: &[Tensor],
    (scaling, edges): (Scaling, &[Edge]),
) -> Result<Vec<Vec<Tensor>>, InputError> {
    let mut counted: Option<(usize, &ValueInfo)> = None;
    let mut all = Vec::with_capacity(inputs.len());
    for (index, (value, tensor)) in model.iter().copied().zip(inputs).enumerate() {
        let floats = edges.get(index).and_then(|edge| edge.floats).filter(|_| value.dtype == DType::F32);
        let bits = floats.and_then(|floats| widened(tensor, floats));
        let data = fitted(value, bits.as_ref().unwrap_or(tensor), scaling)?;
        // An input without elements is that of each run.
        if let Some(found) = data.len().checked_div(value.bytes()) {
            let (wanted, first) = *counted.get_or_insert((found, value));
            if found != wanted {
                let (name, first) = (value.name.clone(), first.name.clone());
                return Err(InputError::Runs { name, found, first, wanted });
            }
        }
        all.push((value, data));
    }
    // A model without elements of inputs runs once.
    let run = |run: usize| {
        let part = |(value, data): &(&ValueInfo, Bytes)| {
            let size = value.bytes();
            let bytes = data.slice(run * size..(run + 1) * size);
            Tensor { dtype: value.dtype, shape: value.shape.clone(), bytes }
        };
        all.iter().map(part).collect()
    };
    Ok((0..counted.map_or(1, |(count, _)| count)).map(run).collect())
}

/// Converts an array to the bytes of an input, one run after another.
fn fitted(value: &ValueInfo, given: &Tensor, scaling: Scaling) -> Result<Bytes, InputError> {
    if value.bytes() == 0 && given.shape == value.shape && given.dtype.is_float() == value.dtype.is_float() {
        return Ok(Bytes::new());
    }
    let floats = if value.dtype.is_float() { given.to_floats(value.dtype) } else { None };
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
    let bytes = if same { array.bytes.clone() } else { channels_first(array).into() };
    let real = |byte: &u8| ((f32::from(*byte) - scaling.mean) / scaling.scale).to_le_bytes();
    Ok(if scaled { bytes.iter().flat_map(real).collect::<Vec<u8>>().into() } else { bytes })
}

/// Transposes images from `[N, H, W, C]` to `[N, C, H, W]`.
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

/// Pseudo-random inputs for one run, the same each time: 8-bit integers over their whole range, floats from -1 to 1;
/// wider integers are 0 or 1, because they can be indices. Inputs of f16 are 0.
pub fn made_up(model: &[&ValueInfo]) -> Vec<Tensor> {
    let mut state = 0x9e37_79b9_7f4a_7c15u64;
    let mut next = move || {
        state ^= state << 13;
        state ^= state >> 7;
        state ^= state << 17;
        state >> 11
    };
    let tensor = |value: &&ValueInfo| {
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
        Tensor { dtype: value.dtype, shape: value.shape.clone(), bytes: bytes.into() }
    };
    model.iter().map(tensor).collect()
}

/// Results of all runs.
#[derive(Debug, Clone)]
pub struct Results {
    /// The model's outputs, concatenated over all runs along the first dimension.
    pub outputs: Vec<Tensor>,
    /// Report of each run.
    pub reports: Vec<RunReport>,
}

impl Results {
    /// Number of runs.
    pub fn runs(&self) -> usize {
        self.reports.len()
    }

    /// Seconds inside devices.
    pub fn wall_s(&self) -> f64 {
        self.reports.iter().map(RunReport::wall_s).sum()
    }

    /// Cycles of all runs; none if the device is untimed.
    pub fn cycles(&self) -> Option<u64> {
        self.reports.iter().map(RunReport::cycles).sum::<Option<u64>>().filter(|_| !self.reports.is_empty())
    }

    /// The accelerator's useful MACs divided by the MACs possible in its cycles; none if the network has no MACs.
    pub fn utilization(&self, artifact: &Artifact, macs_per_cycle: u64) -> Option<f64> {
        let macs = artifact.manifest.offloaded_macs() * self.runs() as u64;
        self.cycles()
            .filter(|_| artifact.manifest.macs() > 0)
            .map(|cycles| macs as f64 / (cycles * macs_per_cycle) as f64)
    }

    /// Seconds in steps of one place.
    pub fn seconds_on(&self, place: Place) -> f64 {
        let steps = self.reports.iter().flat_map(|report| &report.steps).filter(|step| step.place == place);
        // sum() of nothing would be -0.0.
        steps.fold(0.0, |sum, step| sum + step.wall_s)
    }
}

/// Runs the session on every run's inputs; `progress` receives the number of runs done.
///
/// # Errors
/// Errors of the session.
pub fn run(session: &mut Session, runs: &[Vec<Tensor>], progress: impl FnMut(usize)) -> Result<Results, SessionError> {
    collect(runs, |inputs| session.run(inputs), progress)
}

/// Like [`run`]; `watch` also receives each value of each run as soon as it is computed.
///
/// # Errors
/// Errors of the session.
pub fn run_watched(
    session: &mut Session,
    runs: &[Vec<Tensor>],
    watch: &mut dyn FnMut(ValueId, &[u8]),
    progress: impl FnMut(usize),
) -> Result<Results, SessionError> {
    collect(runs, |inputs| session.run_watched(inputs, watch), progress)
}

/// Runs `run` on every run's inputs, concatenates the outputs and collects the reports; `progress` receives the number of
/// runs done. The outputs of `run` always have the same types and shapes.
///
/// # Errors
/// Errors of `run`.
pub fn collect<E>(
    runs: &[Vec<Tensor>],
    mut run: impl FnMut(&[Tensor]) -> Result<(Vec<Tensor>, RunReport), E>,
    mut progress: impl FnMut(usize),
) -> Result<Results, E> {
    // For each output, its value in each run.
    let mut parts: Vec<Vec<Tensor>> = Vec::new();
    let mut reports = Vec::with_capacity(runs.len());
    for (index, inputs) in runs.iter().enumerate() {
        let (results, report) = run(inputs)?;
        reports.push(report);
        parts.resize_with(results.len(), Vec::new);
        parts.iter_mut().zip(results).for_each(|(all, one)| all.push(one));
        progress(index + 1);
    }
    let outputs = parts.iter().map(|all| Tensor::concat(all).expect("a model's outputs have one type and shape"));
    let outputs = outputs.collect();
    Ok(Results { outputs, reports })
}

/// The correct classes for a model whose first output has one element per class in its last dimension.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Labels {
    classes: usize,
    right: Vec<usize>,
}

impl Labels {
    /// Checks labels for `runs` runs of a model with this output, before anything runs: number, type and values.
    ///
    /// # Errors
    /// [`InputError::Labels`], [`InputError::LabelType`], [`InputError::LabelRange`] or [`InputError::NoClasses`].
    pub fn check(labels: &Tensor, output: Option<&ValueInfo>, runs: usize) -> Result<Labels, InputError> {
        let output = output.ok_or(InputError::NoClasses { what: "no output" })?;
        Labels::of(labels, &output.shape, runs)
    }

    pub(crate) fn of(labels: &Tensor, output: &[usize], runs: usize) -> Result<Labels, InputError> {
        let classes = crate::model::classes::count(output);
        if classes < 2 {
            return Err(InputError::NoClasses { what: "one number per answer" });
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

    /// The fraction of answers that equal their labels. The answer is the first greatest element of each row of
    /// `output`.
    pub fn accuracy(&self, output: &Tensor) -> f64 {
        let rows = Tensor { shape: vec![self.right.len(), self.classes], ..output.clone() };
        let answers = rows.argmax_last();
        let right = answers.iter().zip(&self.right).filter(|(answer, label)| answer == label).count();
        right as f64 / self.right.len() as f64
    }
}

/// The fraction of answers that equal their labels, for existing outputs.
///
/// # Errors
/// Same as [`Labels::check`].
pub fn accuracy(output: &Tensor, labels: &Tensor) -> Result<f64, InputError> {
    Ok(Labels::of(labels, &output.shape, 1)?.accuracy(output))
}

#[cfg(test)]
mod tests;
