//! Builds tensor expressions in Rust.

use super::{Axis, Combiner, DType, Definition, Expr, Name, NameSet, Program, Tensor};

/// A handle to a tensor, for reading it in later expressions.
#[derive(Debug, Clone)]
pub struct TensorRef {
    /// Its name.
    pub name: Name,
    /// Element type.
    pub dtype: DType,
    /// Extents.
    pub shape: Vec<i64>,
}

impl TensorRef {
    /// Returns an expression that reads the element at `indices`.
    pub fn at(&self, indices: &[Expr]) -> Expr {
        Expr::Load { buffer: self.name.clone(), dtype: self.dtype, indices: indices.to_vec() }
    }
}

/// Collects the tensors of a [`Program`].
///
/// ```
/// use tilewright_tensor::te::{Builder, Combiner, DType};
/// let mut b = Builder::new("row_sum");
/// let x = b.input("x", DType::F32, &[4, 8]);
/// let y = b.reduce("y", DType::F32, &[4], &[("k", 8)], Combiner::Sum, |i, k| x.at(&[i[0].clone(), k[0].clone()]));
/// let program = b.finish(&[y]);
/// assert_eq!(program.tensors.len(), 2);
/// ```
#[derive(Debug)]
pub struct Builder {
    name: Name,
    tensors: Vec<Tensor>,
    /// Names in use.
    names: NameSet,
}

impl Builder {
    /// Creates an empty program called `name`.
    pub fn new(name: impl Into<Name>) -> Builder {
        Builder { name: name.into(), tensors: Vec::new(), names: NameSet::default() }
    }

    /// Returns the name, with a number appended if it is already in use.
    pub fn unique(&self, name: &str) -> Name {
        let numbered = (2..).map(|i| Name::from(format!("{name}_{i}")));
        let free = std::iter::once(name.into()).chain(numbered).find(|n| !self.names.contains(n));
        free.unwrap_or_else(|| name.into())
    }

    fn add(
        &mut self,
        name: Name,
        dtype: DType,
        shape: &[i64],
        define: impl FnOnce(&[Expr]) -> Definition,
    ) -> TensorRef {
        let axes: Vec<Axis> =
            shape.iter().enumerate().map(|(i, &extent)| Axis { var: format!("{name}.i{i}").into(), extent }).collect();
        let vars: Vec<Expr> = axes.iter().map(|a| Expr::Var(a.var.clone())).collect();
        let definition = define(&vars);
        self.names.insert(name.clone());
        self.tensors.push(Tensor { name: name.clone(), dtype, axes, definition });
        TensorRef { name, dtype, shape: shape.to_vec() }
    }

    /// Adds tensors that read tensors of this program. Returns the last one.
    pub fn append(&mut self, tensors: Vec<Tensor>) -> Option<TensorRef> {
        self.names.extend(tensors.iter().map(|t| t.name.clone()));
        self.tensors.extend(tensors);
        self.tensors.last().map(Tensor::reference)
    }

    /// Adds an input tensor.
    pub fn input(&mut self, name: &str, dtype: DType, shape: &[i64]) -> TensorRef {
        let name = self.unique(name);
        self.add(name, dtype, shape, |_| Definition::Input)
    }

    /// Adds a tensor whose element at the given axes is `value`. Its element type is the expression's.
    pub fn compute(&mut self, name: &str, shape: &[i64], value: impl FnOnce(&[Expr]) -> Expr) -> TensorRef {
        let name = self.unique(name);
        let mut dtype = DType::F32;
        let t = self.add(name, dtype, shape, |axes| {
            let e = value(axes);
            dtype = e.dtype();
            Definition::Compute(e)
        });
        if let Some(last) = self.tensors.last_mut() {
            last.dtype = dtype;
        }
        TensorRef { dtype, ..t }
    }

    /// Adds a sum that starts from `init`, an expression over the tensor's axes.
    pub fn sum_from(
        &mut self,
        name: &str,
        shape: &[i64],
        reduce: &[(&str, i64)],
        init: impl FnOnce(&[Expr]) -> Expr,
        value: impl FnOnce(&[Expr], &[Expr]) -> Expr,
    ) -> TensorRef {
        let mut first = None;
        let mut dtype = DType::F32;
        let t = self.reduce(name, dtype, shape, reduce, Combiner::Sum, |i, r| {
            let e = init(i);
            dtype = e.dtype();
            first = Some(e);
            value(i, r)
        });
        if let (Some(last), Some(e)) = (self.tensors.last_mut(), first) {
            last.dtype = dtype;
            if let Definition::Reduce { init, .. } = &mut last.definition {
                *init = e;
            }
        }
        TensorRef { dtype, ..t }
    }

    /// Adds a reduction that starts from the combiner's identity. `value` gets the tensor's axes and the reduction
    /// axes.
    pub fn reduce(
        &mut self,
        name: &str,
        dtype: DType,
        shape: &[i64],
        reduce: &[(&str, i64)],
        combiner: Combiner,
        value: impl FnOnce(&[Expr], &[Expr]) -> Expr,
    ) -> TensorRef {
        let name = self.unique(name);
        let axes: Vec<Axis> =
            reduce.iter().map(|(n, extent)| Axis { var: format!("{name}.{n}").into(), extent: *extent }).collect();
        let vars: Vec<Expr> = axes.iter().map(|a| Expr::Var(a.var.clone())).collect();
        self.add(name, dtype, shape, |spatial| Definition::Reduce {
            axes,
            combiner,
            init: combiner.identity(dtype),
            value: value(spatial, &vars),
        })
    }

    /// Returns the program with these outputs.
    pub fn finish(self, outputs: &[TensorRef]) -> Program {
        Program { name: self.name, tensors: self.tensors, outputs: outputs.iter().map(|t| t.name.clone()).collect() }
    }
}
