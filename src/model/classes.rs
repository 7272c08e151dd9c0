//! Class names, and the likeliest classes of an output.

use std::path::Path;

use tilewright_runtime::artifact::Edge;
use tilewright_runtime::tensor::{DType, Tensor, shape_text};

/// Tolerance of the sum of outputs that are already probabilities.
const ONE: f64 = 0.02;
/// The scale that TFLite uses for probabilities of 8 bits (quantization specification, SOFTMAX). Their sum can be far
/// from 1, since small ones are rounded to 0.
const PROBABILITY_SCALE: f32 = 1.0 / 256.0;

/// Errors in class names.
#[derive(Debug, thiserror::Error)]
pub enum ClassError {
    /// The file cannot be read.
    #[error("cannot read the names of classes in {file}: {source}")]
    Read {
        /// The file.
        file: String,
        /// The system's reason.
        source: std::io::Error,
    },
    /// The number of names differs from the number of classes.
    #[error(
        "{file} has {names} names, one per line, but the model's first output, {shape}, has {classes} classes; give a \
         file with one line per class"
    )]
    Count {
        /// The file, or another source of the names.
        file: String,
        /// Number of names.
        names: usize,
        /// Number of classes.
        classes: usize,
        /// The output's shape.
        shape: String,
    },
}

/// A class and its probability.
#[derive(Debug, Clone, Copy, PartialEq)]
pub struct Guess {
    /// Index of the class, from 0.
    pub class: usize,
    /// From 0 to 1.
    pub probability: f64,
}

/// Splits a text into names, one per line.
pub fn names(text: &str) -> Vec<String> {
    text.trim_end().lines().map(|line| line.trim().to_string()).collect()
}

/// Reads a file of names, one per line.
///
/// # Errors
/// [`ClassError::Read`].
pub fn read(path: &Path) -> Result<Vec<String>, ClassError> {
    let text = std::fs::read_to_string(path)
        .map_err(|source| ClassError::Read { file: path.display().to_string(), source })?;
    Ok(names(&text))
}

/// Number of classes in an output of one run: the last dimension that is not 1. If there are several dimensions, the
/// first is the batch and does not count.
pub fn count(shape: &[usize]) -> usize {
    let axes = if let [_, rest @ ..] = shape
        && !rest.is_empty()
    {
        rest
    } else {
        shape
    };
    axes.iter().rev().copied().find(|&size| size != 1).unwrap_or(1)
}

/// Checks that there is one name per class of an output whose shape in one run is `shape`.
///
/// # Errors
/// [`ClassError::Count`].
pub fn check(names: &[String], shape: &[usize], file: &str) -> Result<(), ClassError> {
    let classes = count(shape);
    if names.len() == classes {
        return Ok(());
    }
    Err(ClassError::Count { file: file.to_string(), names: names.len(), classes, shape: shape_text(shape) })
}

/// For each sample in `output`, which can contain several runs, returns the `most` likeliest of `classes` classes, the
/// likeliest first. Elements of 8 bits are scaled by `edge`; values that do not sum to 1 are treated as logits.
pub fn likeliest(output: &Tensor, classes: usize, edge: &Edge, most: usize) -> Vec<Vec<Guess>> {
    let classes = classes.max(1);
    let real = |index: usize| {
        let element = output.get_f64(index);
        match (output.dtype, edge.quantization) {
            (DType::I8 | DType::U8, Some((scale, zero))) => f64::from(scale) * (element - f64::from(zero)),
            _ => element,
        }
    };
    let lowest = if output.dtype == DType::I8 { -128 } else { 0 };
    let declared = edge.quantization == Some((PROBABILITY_SCALE, lowest));
    let rows = output.len() / classes;
    let row = |row: usize| {
        let values: Vec<f64> = (0..classes).map(|class| real(row * classes + class)).collect();
        let sum: f64 = values.iter().sum();
        let done = declared || (sum - 1.0).abs() < ONE && values.iter().all(|v| (-ONE..=1.0 + ONE).contains(v));
        let greatest = values.iter().copied().fold(f64::NEG_INFINITY, f64::max);
        let parts: Vec<f64> = if done { values } else { values.iter().map(|v| (v - greatest).exp()).collect() };
        let whole: f64 = if done { 1.0 } else { parts.iter().sum() };
        let mut order: Vec<usize> = (0..classes).collect();
        order.sort_by(|a, b| parts[*b].total_cmp(&parts[*a]).then(a.cmp(b)));
        order.iter().take(most).map(|&class| Guess { class, probability: parts[class] / whole }).collect()
    };
    (0..rows).map(row).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn floats(values: &[f32], shape: &[usize]) -> Tensor {
        let bytes: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        Tensor { dtype: DType::F32, shape: shape.to_vec(), bytes: bytes.into() }
    }

    #[test]
    fn logits_become_probabilities_and_probabilities_stay() {
        let rows = likeliest(&floats(&[1.0, 3.0, 2.0, 0.2, 0.1, 0.7], &[2, 3]), 3, &Edge::default(), 2);
        let classes: Vec<Vec<usize>> = rows.iter().map(|row| row.iter().map(|g| g.class).collect()).collect();
        assert_eq!(classes, [[1, 2], [2, 0]]);
        let e = std::f64::consts::E;
        assert!((rows[0][0].probability - 1.0 / (1.0 + 1.0 / e + 1.0 / (e * e))).abs() < 1e-6);
        assert!((rows[1][0].probability - 0.7).abs() < 1e-6);
    }

    #[test]
    fn elements_of_8_bits_are_scaled() {
        let tensor = Tensor { dtype: DType::U8, shape: vec![1, 2], bytes: vec![64, 192].into() };
        let edge = Edge { quantization: Some((1.0 / 256.0, 0)), ..Edge::default() };
        let row = &likeliest(&tensor, 2, &edge, 5)[0];
        assert_eq!(row.iter().map(|g| (g.class, g.probability)).collect::<Vec<_>>(), [(1, 0.75), (0, 0.25)]);
    }

    #[test]
    fn probabilities_of_8_bits_need_not_sum_to_one() {
        let tensor = Tensor { dtype: DType::I8, shape: vec![1, 3], bytes: vec![0x80, 0xc0, 0x80].into() };
        let edge = Edge { quantization: Some((1.0 / 256.0, -128)), ..Edge::default() };
        assert_eq!(likeliest(&tensor, 3, &edge, 1), [[Guess { class: 1, probability: 0.25 }]]);
    }

    #[test]
    fn a_name_for_each_class() {
        let list = names("cat\n dog \n");
        assert_eq!(list, ["cat", "dog"]);
        assert!(check(&list, &[1, 2], "names.txt").is_ok());
        assert!(check(&list, &[1, 2, 1, 1], "names.txt").is_ok(), "size-1 dimensions after pooling are not classes");
        assert!(check(&list, &[2], "names.txt").is_ok());
        assert!(check(&list, &[2, 1], "names.txt").is_err(), "two inputs with one number each");
        let error = check(&list, &[1, 3], "names.txt").unwrap_err().to_string();
        let wanted = "names.txt has 2 names, one per line, but the model's first output, 1x3, has 3 classes; give a \
                      file with one line per class";
        assert_eq!(error, wanted);
    }

    #[test]
    fn runs_of_an_output_without_a_batch_axis_are_answers_of_their_own() {
        let rows = likeliest(&floats(&[1.0, 3.0, 2.0, 5.0, 3.0, 1.0], &[6]), count(&[3]), &Edge::default(), 1);
        assert_eq!(rows.iter().map(|row| row[0].class).collect::<Vec<_>>(), [1, 0]);
    }
}
