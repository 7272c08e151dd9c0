//! Attributes of a node, as import functions read them.

use super::node::NodeContext;
use super::proto::GraphProto;
use super::tensor;
use crate::frontend::reason::Reason;
use crate::graph::Tensor;

impl<'c> NodeContext<'c, '_> {
    pub fn int(&self, name: &str) -> Option<i64> {
        self.used.typed(self.proto, name, 2).map(|a| a.i)
    }

    pub fn float(&self, name: &str) -> Option<f32> {
        self.used.typed(self.proto, name, 1).map(|a| a.f)
    }

    pub fn ints(&self, name: &str) -> Option<&'c [i64]> {
        self.used.typed(self.proto, name, 7).map(|a| a.ints.as_slice())
    }

    pub fn list(&self, name: &str) -> Option<&'c [f32]> {
        self.used.typed(self.proto, name, 6).map(|a| a.floats.as_slice())
    }

    pub fn word(&self, name: &str) -> Option<String> {
        self.used.typed(self.proto, name, 3).map(|a| String::from_utf8_lossy(&a.s).into_owned())
    }

    pub fn words(&self, name: &str) -> Option<Vec<String>> {
        let strings = &self.used.typed(self.proto, name, 8)?.strings;
        Some(strings.iter().map(|s| String::from_utf8_lossy(s).into_owned()).collect())
    }

    pub fn tensor(&self, name: &str) -> Option<Result<Tensor, Reason>> {
        let t = self.used.typed(self.proto, name, 4)?.t.as_ref()?;
        Some(tensor::tensor(t, self.cx.folders).map_err(Reason))
    }

    /// A sparse tensor attribute, expanded to all of its elements.
    pub fn sparse_tensor(&mut self, name: &str) -> Option<Result<Tensor, Reason>> {
        let t = self.used.typed(self.proto, name, 11)?.sparse_tensor.as_ref()?;
        Some(tensor::dense(t, self.cx.folders, &mut self.cx.net.room).map_err(Reason))
    }

    pub fn graph(&self, name: &str) -> Option<&'c GraphProto> {
        self.used.typed(self.proto, name, 5)?.g.as_deref()
    }

    /// Fails if an attribute has another value than this one.
    pub fn only(&self, name: &str, value: i64) -> Result<(), Reason> {
        match self.int(name) {
            Some(other) if other != value => {
                Err(format!("its attribute `{name}` of {other} is not supported; it must be {value}").into())
            }
            _ => Ok(()),
        }
    }

    /// Marks an attribute as read that has no effect in this node.
    pub fn without_effect(&self, name: &str) {
        self.used.attribute(self.proto, name);
    }

    /// The attribute `axis` as a dimension; it can be negative.
    pub fn axis_attribute(&self, default: i64, rank: usize) -> Result<usize, Reason> {
        self.axis(self.int("axis").unwrap_or(default), rank)
    }

    /// An attribute of `N` sizes; all are `default` if it is absent.
    pub fn sizes<const N: usize>(&self, name: &str, default: usize) -> Result<[usize; N], Reason> {
        let Some(list) = self.ints(name) else { return Ok([default; N]) };
        let list = list.iter().map(|&v| usize::try_from(v)).collect::<Result<Vec<_>, _>>();
        let list = list.map_err(|_| format!("its {name} must not be negative"))?;
        let found = list.len();
        list.try_into().map_err(|_| format!("its {name} must have {N} values, found {found}").into())
    }
}
