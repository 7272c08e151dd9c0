//! Sizes for the dimensions that a file leaves open.

use super::ImportError;
use crate::graph::{Dim, Graph, TensorType};
use std::collections::BTreeMap;

/// Sizes for the dimensions that a file leaves open: by symbol, by input, and from data at hand.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Sizes {
    /// Sizes of symbols.
    pub symbols: BTreeMap<String, usize>,
    /// Whole shapes of inputs by their names.
    pub inputs: BTreeMap<String, Vec<usize>>,
    /// Shapes of data, by the name of the input that they are for, or in the order of the inputs. Of these the
    /// outermost size is left alone: data may hold several runs.
    pub data: Vec<(Option<String>, Vec<usize>)>,
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
        let mut bound = self.given(inputs)?;
        for (_, ty) in inputs {
            if let Some(Dim::Symbol(s)) = ty.dims.first() {
                bound.entry(s.clone()).or_insert(1);
            }
        }
        Ok(bound)
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
            let suits = ty.rank() == shape.len()
                && ty.dims.iter().zip(shape).all(|(d, &n)| match d {
                    Dim::Fixed(k) => *k == n,
                    Dim::Symbol(s) => *bound.entry(s.clone()).or_insert(n) == n,
                });
            if !suits {
                return Err(format!("has an input {name} of {ty}, which the shape {shape:?} does not suit"));
            }
        }
        let names: Vec<&str> = inputs.iter().map(|(name, _)| *name).collect();
        for ((name, ty), data) in inputs.iter().zip(self.data_of(&names)) {
            let Some(data) = data else { continue };
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

    /// How many dimensions inputs have by what is given for them, where the file does not say it.
    pub(super) fn ranks(&self, inputs: &[&str]) -> Vec<Option<usize>> {
        let data = self.data_of(inputs);
        inputs.iter().zip(data).map(|(name, data)| Some(self.inputs.get(*name).or(data)?.len())).collect()
    }

    /// The shapes of the data that inputs of these names get.
    fn data_of(&self, inputs: &[&str]) -> Vec<Option<&Vec<usize>>> {
        if let ([(_, shape)], [_]) = (self.data.as_slice(), inputs) {
            // The only array of a model of one input may have whatever name.
            return vec![Some(shape)];
        }
        let mut unnamed = self.data.iter().filter(|(n, _)| n.is_none()).map(|(_, s)| s);
        let named = |name: &str| self.data.iter().find(|(n, _)| n.as_deref() == Some(name)).map(|(_, s)| s);
        inputs.iter().map(|name| named(name).or_else(|| unnamed.next())).collect()
    }
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
            let data = data.iter().map(|(name, shape)| (name.map(str::to_owned), shape.to_vec())).collect();
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
