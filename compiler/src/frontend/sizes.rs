//! Sizes for the dimensions that a file leaves open.

use super::ImportError;
use crate::graph::op::{Cast, Op};
use crate::graph::{Dim, Graph, Tensor, TensorType};
use std::collections::BTreeMap;
use tilewright_runtime::{self as runtime, session::TensorRef};

/// Most elements of a value that a [`Datum`] keeps.
const MOST_ELEMENTS: usize = 64;

/// What is known of the data for an input.
#[derive(Debug, Clone, PartialEq)]
pub struct Datum {
    /// The name of the input; without one, the data are for the next input.
    pub name: Option<String>,
    /// Their shape.
    pub shape: Vec<usize>,
    /// The number or the list of at most 64 numbers that they are, if they are one.
    pub value: Option<Tensor>,
}

impl Datum {
    /// What is known of an array, whose elements can be missing.
    pub fn of<'a>(name: Option<String>, array: impl Into<TensorRef<'a>>) -> Datum {
        let TensorRef { dtype, shape, bytes } = array.into();
        let count: usize = shape.iter().product();
        let is_known = shape.len() < 2 && count <= MOST_ELEMENTS && bytes.len() == count * dtype.size();
        let value = is_known.then(|| {
            let array = runtime::Tensor { dtype, shape: shape.to_vec(), bytes: bytes.to_vec().into() };
            // Inputs of 16-bit floats are those of 32 bits in the graph.
            let wide = if dtype == runtime::DType::F16 { array.to_floats(runtime::DType::F32) } else { None };
            Tensor::try_from(wide.as_ref().unwrap_or(&array)).ok()
        });
        Datum { name, shape: shape.to_vec(), value: value.flatten() }
    }

    /// The value of an input of this type, if it is this array.
    fn value_as(&self, ty: &TensorType) -> Option<&Tensor> {
        self.value.as_ref().filter(|value| value.dtype() == ty.dtype && suits(ty, value.shape()))
    }
}

impl From<(Option<String>, Vec<usize>)> for Datum {
    fn from((name, shape): (Option<String>, Vec<usize>)) -> Datum {
        Datum { name, shape, value: None }
    }
}

/// Sizes for the dimensions that a file leaves open: by symbol, by input, and from data at hand.
#[derive(Debug, Clone, Default, PartialEq)]
pub struct Sizes {
    /// Sizes of symbols.
    pub symbols: BTreeMap<String, usize>,
    /// Whole shapes of inputs by their names.
    pub inputs: BTreeMap<String, Vec<usize>>,
    /// Data, by the name of the input that they are for, or in the order of the inputs. Of their sizes the outermost is
    /// left alone: data may hold several runs.
    pub data: Vec<Datum>,
}

impl Sizes {
    /// A graph with its open dimensions given sizes.
    pub(super) fn bind(&self, graph: Graph, file: &str) -> Result<Graph, ImportError> {
        let types: Vec<(&str, &TensorType)> = graph.inputs().map(|(n, v)| (n, graph.ty(v))).collect();
        let bound = self.bound(&types).map_err(|reason| ImportError::Sizes { file: file.into(), reason })?;
        if bound.is_empty() {
            return Ok(graph);
        }
        graph.bind(&bound).map_err(|source| ImportError::Graph { file: file.into(), source: Box::new(source) })
    }

    /// A size for each symbol of these inputs that has one; outermost sizes left open become 1.
    ///
    /// # Errors
    /// As [`Sizes::given`].
    pub(super) fn bound(&self, inputs: &[(&str, &TensorType)]) -> Result<BTreeMap<String, usize>, String> {
        Ok(or_one(self.given(inputs)?, inputs))
    }

    /// The same for models whose outermost size is any: data with as many dimensions as their input give it too.
    ///
    /// # Errors
    /// As [`Sizes::given`].
    pub(super) fn bound_by_data(&self, inputs: &[(&str, &TensorType)]) -> Result<BTreeMap<String, usize>, String> {
        let mut bound = self.given(inputs)?;
        let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        for ((_, ty), data) in inputs.iter().zip(self.data_of(&names)) {
            let Some(Dim::Symbol(s)) = ty.dims.first() else { continue };
            if let Some(data) = data.filter(|data| data.shape.len() == ty.rank()) {
                bound.entry(s.clone()).or_insert(data.shape[0]);
            }
        }
        Ok(or_one(bound, inputs))
    }

    /// A size for each symbol of these inputs that is given one.
    ///
    /// # Errors
    /// A symbol or an input that is not there, and shapes that do not suit.
    pub fn given(&self, inputs: &[(&str, &TensorType)]) -> Result<BTreeMap<String, usize>, String> {
        let symbols = |ty: &&TensorType| -> Vec<String> {
            let open = ty.dims.iter().filter(|d| d.known().is_none());
            open.map(ToString::to_string).collect()
        };
        let all: Vec<String> = inputs.iter().flat_map(|(_, ty)| symbols(ty)).collect();
        let list = |names: &[String]| if names.is_empty() { "none".into() } else { names.join(", ") };
        if let Some(s) = self.symbols.keys().find(|s| !all.contains(s)) {
            return Err(format!("has no open dimension {s}; it has {}", list(&all)));
        }
        let mut bound = self.symbols.clone();
        for (name, shape) in &self.inputs {
            let Some((_, ty)) = inputs.iter().find(|(n, _)| n == name) else {
                let names: Vec<String> = inputs.iter().map(|(n, _)| n.to_string()).collect();
                return Err(format!("has no input {name}; it has {}", list(&names)));
            };
            let same = |(d, &n): (&Dim, &usize)| match d {
                Dim::Fixed(k) => *k == n,
                Dim::Symbol(s) => *bound.entry(s.clone()).or_insert(n) == n,
            };
            if ty.rank() != shape.len() || !ty.dims.iter().zip(shape).all(same) {
                return Err(format!("has an input {name} of {ty}, which the shape {shape:?} does not suit"));
            }
        }
        let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        for ((name, ty), data) in inputs.iter().zip(self.data_of(&names)) {
            let Some(Datum { shape: data, .. }) = data else { continue };
            let Some(shape) = of_one_run(ty, data) else {
                let open = |d: &Dim| matches!(d, Dim::Symbol(s) if !bound.contains_key(s));
                if ty.dims.iter().skip(1).any(open) {
                    return Err(format!("has an input {name} of {ty}, which data of shape {data:?} do not suit"));
                }
                continue;
            };
            for (d, n) in ty.dims.iter().zip(shape).skip(1) {
                if let Dim::Symbol(s) = d {
                    bound.entry(s.clone()).or_insert(n);
                }
            }
        }
        Ok(bound)
    }

    /// Whether they have a shape or data for an input of this name.
    pub(super) fn names(&self, input: &str) -> bool {
        self.inputs.contains_key(input) || self.data.iter().any(|data| data.name.as_deref() == Some(input))
    }

    /// How many dimensions inputs have by what is given for them, where the file does not say it.
    pub(super) fn ranks(&self, inputs: &[&str]) -> Vec<Option<usize>> {
        let data = self.data_of(inputs);
        let rank = |(name, data): (&&str, Option<&Datum>)| {
            Some(self.inputs.get(*name).or(data.map(|data| &data.shape))?.len())
        };
        inputs.iter().zip(data).map(rank).collect()
    }

    /// The values of those inputs for which data of their types are at hand, by name.
    pub(super) fn values(&self, inputs: &[(&str, &TensorType)]) -> BTreeMap<String, Tensor> {
        let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        let known = |((name, ty), data): (&(&str, &TensorType), Option<&Datum>)| {
            Some((name.to_string(), data?.value_as(ty)?.clone()))
        };
        inputs.iter().zip(self.data_of(&names)).filter_map(known).collect()
    }

    /// Values of inputs in the inputs' types, and the sizes, to which the values add their shapes.
    pub(super) fn with_values(
        &self,
        values: &BTreeMap<String, Tensor>,
        inputs: &[(&str, &TensorType)],
        file: &str,
    ) -> Result<(Sizes, BTreeMap<String, Tensor>), ImportError> {
        let (mut sizes, mut all) = (self.clone(), BTreeMap::new());
        let wrong = |reason| ImportError::Value { file: file.into(), reason };
        for (name, value) in values {
            let names = || inputs.iter().map(|(name, _)| *name).collect::<Vec<_>>().join(", ");
            let input = inputs.iter().find(|(input, _)| input == name);
            let (_, ty) = input.ok_or_else(|| wrong(format!("has no input {name}; it has {}", names())))?;
            let found = || {
                wrong(format!(
                    "has an input {name} of {ty}, which the value given for it, {}, does not suit",
                    value.ty()
                ))
            };
            let value = fitted(value, ty).ok_or_else(found)?;
            if ty.shape().is_none() {
                sizes.inputs.insert(name.clone(), value.shape().to_vec());
            }
            all.insert(name.clone(), value);
        }
        Ok((sizes, all))
    }

    /// The data that inputs of these names get.
    fn data_of(&self, inputs: &[&str]) -> Vec<Option<&Datum>> {
        if let ([data], [_]) = (self.data.as_slice(), inputs) {
            // The only array of a model of one input may have whatever name.
            return vec![Some(data)];
        }
        let mut unnamed = self.data.iter().filter(|data| data.name.is_none());
        let named = |name: &str| self.data.iter().find(|data| data.name.as_deref() == Some(name));
        inputs.iter().map(|name| named(name).or_else(|| unnamed.next())).collect()
    }
}

/// Sizes of symbols, and 1 for outermost sizes that have none.
fn or_one(mut bound: BTreeMap<String, usize>, inputs: &[(&str, &TensorType)]) -> BTreeMap<String, usize> {
    for (_, ty) in inputs {
        if let Some(Dim::Symbol(s)) = ty.dims.first() {
            bound.entry(s.clone()).or_insert(1);
        }
    }
    bound
}

/// Whether a shape is one of this type's.
fn suits(ty: &TensorType, shape: &[usize]) -> bool {
    let mut sizes = ty.dims.iter().zip(shape);
    ty.rank() == shape.len() && sizes.all(|(dim, size)| dim.known().is_none_or(|known| known == *size))
}

/// A value with the type of an input; a list of one number and a number are the same.
fn fitted(value: &Tensor, ty: &TensorType) -> Option<Tensor> {
    let as_type = |value: &Tensor, dtype| Op::from(Cast { dtype }).eval(&[value]).ok()?.pop();
    let found = as_type(value, ty.dtype)?;
    if as_type(&found, value.dtype()).as_ref() != Some(value) {
        return None;
    }
    let mut shapes = [value.shape().to_vec(), Vec::new(), vec![value.len()]].into_iter();
    found.reshaped(&shapes.find(|shape| suits(ty, shape) && shape.iter().product::<usize>() == value.len())?)
}

/// The sizes of an input's dimensions by data for it, in the forms that a run takes data in: as they are, with a first
/// axis left out or added, or images `[N, H, W, C]` where the model takes `[N, C, H, W]`. Nothing where none suits.
fn of_one_run(ty: &TensorType, data: &[usize]) -> Option<Vec<usize>> {
    let suits = |shape: &[usize]| {
        let sizes = ty.dims.iter().zip(shape).skip(1);
        shape.len() == ty.rank() && sizes.into_iter().all(|(d, n)| d.known().is_none_or(|k| k == *n))
    };
    let mut forms = vec![data.to_vec(), [&[1], data].concat()];
    if let [1, inner @ ..] = data {
        forms.push(inner.to_vec());
    }
    if let &[n, h, w, c] = data {
        forms.push(vec![n, c, h, w]);
    }
    forms.into_iter().find(|shape| suits(shape))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::graph::DType;

    #[test]
    fn data_give_sizes_in_every_form_that_a_run_takes() {
        let given = |dims: &[&str], data: &[(Option<&str>, &[usize])]| -> Result<String, String> {
            let dim = |d: &&str| d.parse().map_or_else(|_| Dim::Symbol(d.to_string()), Dim::Fixed);
            let ty = TensorType { dtype: DType::F32, dims: dims.iter().map(dim).collect() };
            let data = data.iter().map(|(name, shape)| (name.map(str::to_owned), shape.to_vec()).into()).collect();
            let sizes = Sizes { data, ..Sizes::default() };
            let found = sizes.given(&[("x", &ty)])?;
            Ok(found.into_iter().map(|(s, n)| format!("{s}={n}")).collect::<Vec<_>>().join(" "))
        };
        let found = |dims: &[&str], data: &[(Option<&str>, &[usize])]| given(dims, data).unwrap();
        let words = ["n", "words", "8"];
        assert_eq!(found(&words, &[(None, &[3, 5, 8])]), "words=5");
        assert_eq!(found(&words, &[(Some("x"), &[3, 5, 8])]), "words=5");
        assert_eq!(found(&words, &[(Some("arr_0"), &[3, 5, 8])]), "words=5");
        assert_eq!(found(&words, &[(None, &[5, 8])]), "words=5");
        assert_eq!(found(&["words", "8"], &[(None, &[1, 1, 8])]), "");
        let e = given(&words, &[(None, &[3, 5, 7])]).unwrap_err();
        assert_eq!(e, "has an input x of f32[n,words,8], which data of shape [3, 5, 7] do not suit");
        let image = ["n", "3", "h", "w"];
        assert_eq!(found(&image, &[(None, &[2, 3, 20, 30])]), "h=20 w=30");
        assert_eq!(found(&image, &[(None, &[2, 20, 30, 3])]), "h=20 w=30");
        assert_eq!(found(&["n", "h", "w", "3"], &[(None, &[2, 20, 30, 3])]), "h=20 w=30");
    }
}
