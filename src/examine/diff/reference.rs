//! Arrays to compare a run with: a `.npz` file, or the folder of a dump.

use std::path::{Path, PathBuf};

use tilewright_runtime::artifact::{Manifest, ValueInfo};
use tilewright_runtime::npy::{self, NpyError};
use tilewright_runtime::tensor::{DType, Tensor, shape_text};

use crate::examine::dump::{FORMAT, INDEX, stacked};
use crate::model::values::{Visible, values};

/// Why arrays cannot be used for a comparison.
#[derive(Debug, thiserror::Error)]
pub enum ReferenceError {
    /// A file cannot be read, or is not an array.
    #[error(transparent)]
    Npy(#[from] NpyError),
    /// The folder is missing, or not a dump.
    #[error("{path} {what}; make one with: tilewright run MODEL --dump-tensors DIR")]
    Folder {
        /// The folder.
        path: PathBuf,
        /// What is wrong with it.
        what: String,
    },
    /// An array without a name.
    #[error("{path} is a single array, which has no name; give an .npz file with an array for each value, by its name")]
    Unnamed {
        /// The file.
        path: PathBuf,
    },
    /// Array names that the model does not have.
    #[error(
        "{path} has arrays that the model does not have: {}; its values have names like {}",
        names.join(", "), known.join(", ")
    )]
    Unknown {
        /// The file.
        path: PathBuf,
        /// The first of these names.
        names: Vec<String>,
        /// Some names of the model's values.
        known: Vec<String>,
    },
    /// No array belongs to a visible value.
    #[error(
        "none of the {arrays} arrays in {path} is a value that can be compared; `run --dump-tensors DIR` lists those \
         that can"
    )]
    Nothing {
        /// The file.
        path: PathBuf,
        /// Number of arrays in it.
        arrays: usize,
    },
    /// A value occurs twice with different contents.
    #[error(
        "{path} has value {value} twice with different contents, as {} and as {}; leave one out",
        arrays[0], arrays[1]
    )]
    Twice {
        /// The file.
        path: PathBuf,
        /// The value.
        value: String,
        /// Names of the arrays.
        arrays: [String; 2],
    },
    /// The shape does not match.
    #[error(
        "array {name} of {path} has shape {found}, but value {value} has {wanted}; \
         save it in the model's own layout, with the inputs of the same runs"
    )]
    Shape {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The value.
        value: String,
        /// Its shape.
        found: String,
        /// The value's shape, over all runs.
        wanted: String,
    },
    /// The element type cannot be converted to the value's.
    #[error("array {name} of {path} is {found}, but value {value} is {wanted}; convert it with .astype")]
    Type {
        /// The file.
        path: PathBuf,
        /// The array.
        name: String,
        /// The value.
        value: String,
        /// Its type.
        found: DType,
        /// The value's.
        wanted: DType,
    },
}

/// Arrays by name.
#[derive(Debug, Clone)]
pub struct Reference {
    path: PathBuf,
    arrays: Vec<(String, Tensor)>,
    runs: usize,
}

impl Reference {
    /// Reads a `.npz` file with `runs` runs, concatenated.
    ///
    /// # Errors
    /// [`ReferenceError::Npy`] or [`ReferenceError::Unnamed`].
    pub fn from_npz(path: &Path, runs: usize) -> Result<Reference, ReferenceError> {
        let unnamed = || ReferenceError::Unnamed { path: path.to_path_buf() };
        let named = |(name, tensor): (Option<String>, _)| name.map(|name| (name, tensor)).ok_or_else(unnamed);
        let arrays = npy::read_any(path)?.into_iter().map(named).collect::<Result<_, _>>()?;
        Ok(Reference { path: path.to_path_buf(), arrays, runs })
    }

    /// Reads the folder of a dump.
    ///
    /// # Errors
    /// [`ReferenceError::Folder`] or [`ReferenceError::Npy`].
    pub fn from_folder(path: &Path, runs: usize) -> Result<Reference, ReferenceError> {
        let folder = |what: String| ReferenceError::Folder { path: path.to_path_buf(), what };
        if !path.is_dir() {
            return Err(folder(if path.exists() { "is not a folder" } else { "does not exist" }.into()));
        }
        let index = std::fs::read(path.join(INDEX));
        let index = index.map_err(|e| folder(format!("has no readable {INDEX} ({e})")))?;
        let index: serde_json::Value =
            serde_json::from_slice(&index).map_err(|e| folder(format!("has a damaged {INDEX} ({e})")))?;
        let values = index["values"].as_array().filter(|_| index["format"] == FORMAT);
        let values = values.ok_or_else(|| folder(format!("has an {INDEX} in another format")))?;
        let mut arrays = Vec::new();
        for value in values {
            let (Some(name), Some(file)) = (value["name"].as_str(), value["file"].as_str()) else {
                return Err(folder(format!("has an {INDEX} with a value without name or file")));
            };
            if Path::new(file).components().count() != 1 || file == ".." {
                return Err(folder(format!("has an {INDEX} that names {file}, which is not a file in it")));
            }
            arrays.push((name.to_string(), npy::read(&path.join(file))?));
        }
        Ok(Reference { path: path.to_path_buf(), arrays, runs })
    }

    /// Checks every array against a model before anything runs. Arrays of other names that `knows` finds in the model
    /// file are ignored.
    ///
    /// # Errors
    /// [`ReferenceError::Unknown`], [`ReferenceError::Shape`], [`ReferenceError::Type`], [`ReferenceError::Twice`] or
    /// [`ReferenceError::Nothing`].
    pub fn check(&self, manifest: &Manifest, knows: &dyn Fn(&str) -> bool) -> Result<(), ReferenceError> {
        let (visible, hidden) = values(manifest);
        let (mut unknown, mut used) = (Vec::new(), vec![None::<&str>; manifest.values.len()]);
        for (name, _) in &self.arrays {
            if let Some(value) = find(manifest, &visible, name) {
                let other = used[value.id.0 as usize].replace(name).and_then(|other| self.array(other));
                if let (Some((other, a)), Some((_, b))) = (other, self.array(name))
                    && a.dtype == b.dtype
                    && a != b
                {
                    let arrays = [other.clone(), name.clone()];
                    return Err(ReferenceError::Twice { path: self.path.clone(), value: value.name.clone(), arrays });
                }
                self.of_run(manifest, value, 0)?;
            } else if !knows(name) && !hidden.iter().any(|h| manifest.nodes[h.node].name == *name) {
                unknown.push(name.clone());
            }
        }
        if !unknown.is_empty() {
            unknown.truncate(5);
            let known = visible.iter().take(3).map(|v| v.name.clone()).collect();
            return Err(ReferenceError::Unknown { path: self.path.clone(), names: unknown, known });
        }
        if used.iter().all(Option::is_none) {
            return Err(ReferenceError::Nothing { path: self.path.clone(), arrays: self.arrays.len() });
        }
        Ok(())
    }

    fn array(&self, name: &str) -> Option<&(String, Tensor)> {
        self.arrays.iter().find(|(known, _)| known == name)
    }

    /// The array of a value in one run, converted to the value's type; none if there is no array. If several arrays
    /// match the value's names, one with the value's own type is preferred.
    ///
    /// # Errors
    /// [`ReferenceError::Shape`] or [`ReferenceError::Type`].
    pub fn of_run(&self, manifest: &Manifest, value: &Visible, run: usize) -> Result<Option<Tensor>, ReferenceError> {
        let of = value.value(manifest);
        let unsigned = of.source.as_ref().is_some_and(|s| s.unsigned) && of.dtype == DType::I8;
        let own = |dtype| dtype == of.dtype || unsigned && dtype == DType::U8;
        // If a quantized value has both reals and integers, the integers say more.
        let found = value.names(manifest).filter_map(|name| self.array(name));
        let Some((name, array)) = found.min_by_key(|(_, array)| !own(array.dtype)) else { return Ok(None) };
        let wanted = stacked(&of.shape, self.runs);
        if array.shape != wanted {
            return Err(ReferenceError::Shape {
                path: self.path.clone(),
                name: name.clone(),
                value: value.name.clone(),
                found: shape_text(&array.shape),
                wanted: format!("{} in {} run(s)", shape_text(&wanted), self.runs),
            });
        }
        let bytes = array.bytes.len() / self.runs.max(1);
        let piece = array.bytes.slice(run * bytes..(run + 1) * bytes);
        let piece = Tensor { dtype: array.dtype, shape: of.shape.clone(), bytes: piece };
        let converted = convert(piece, of);
        converted.map(Some).ok_or_else(|| ReferenceError::Type {
            path: self.path.clone(),
            name: name.clone(),
            value: value.name.clone(),
            found: array.dtype,
            wanted: of.dtype,
        })
    }
}

fn find<'v>(manifest: &Manifest, visible: &'v [Visible], name: &str) -> Option<&'v Visible> {
    visible.iter().find(|value| value.names(manifest).any(|known| known == name))
}

/// Converts an array to a value's type: floats of another width; uint8 minus 128 to int8; reals to their quantized
/// integers, saturated to the range, and NaN to the zero point.
fn convert(array: Tensor, value: &ValueInfo) -> Option<Tensor> {
    let source = value.source.clone().unwrap_or_default();
    match (array.dtype, value.dtype) {
        (from, to) if from == to => Some(array),
        (DType::U8, DType::I8) if source.unsigned => {
            let bytes = array.bytes.iter().map(|byte| byte ^ 0x80).collect();
            Some(Tensor { dtype: DType::I8, bytes, ..array })
        }
        (from, to) if from.is_float() && to.is_float() => array.to_floats(to),
        (from, DType::I8) if from.is_float() => {
            let (scale, zero_point) = source.quantization?;
            let step =
                |x: &f64| ((x / f64::from(scale)).round_ties_even() as i64).saturating_add(i64::from(zero_point));
            let bytes = array.to_f64().iter().map(|x| step(x).clamp(-128, 127) as i8 as u8).collect();
            Some(Tensor { dtype: DType::I8, bytes, ..array })
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_runtime::artifact::Source;

    #[test]
    fn reals_out_of_range_become_the_nearest_integer() {
        for zero_point in [-128, -7, 0, 5, 127] {
            let source = Source { quantization: Some((0.5, zero_point)), ..Source::default() };
            let value = ValueInfo { source: Some(source), ..ValueInfo::new("v", DType::I8, vec![6]) };
            let reals = [f32::INFINITY, f32::NEG_INFINITY, f32::NAN, f32::MAX, f32::MIN, 1.0];
            let found = convert(Tensor::from_f32(vec![6], &reals).unwrap(), &value).unwrap();
            let one = f64::from(zero_point + 2).min(127.0);
            assert_eq!(found.to_f64(), [127.0, -128.0, f64::from(zero_point), 127.0, -128.0, one]);
        }
    }
}
