//! Images with padding around them in a tensor expression, as the windows of the next operator read them.

use super::padded_range::{inside, less, within};
use crate::te::{Builder, DType, Expr, TensorRef};

/// Padding around images whose dimensions are `[images, blocks, rows, columns, ...]`.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Border {
    /// Rows and columns of an image.
    pub image: [usize; 2],
    /// Rows and columns with padding.
    pub size: [usize; 2],
    /// Padding above and to the left of the image.
    pub before: [usize; 2],
    /// Value of padding.
    pub value: i8,
}

impl Border {
    /// Returns the number of sides of the image that have padding.
    pub fn sides(&self) -> usize {
        (0..2).map(|k| self.conditions(k, &Expr::int(0)).len()).sum()
    }

    /// Conditions for a row (`k` = 0) or a column to be inside the image.
    fn conditions(&self, k: usize, at: &Expr) -> Vec<Expr> {
        let [size, before, image] = [self.size[k], self.before[k], self.image[k]].map(|n| n as i64);
        inside(at, size, before, image)
    }

    /// Adds images with padding to an expression. `value` gives an element from its indices in the images without
    /// padding, whose dimensions are `shape`.
    pub fn compute(&self, b: &mut Builder, name: &str, shape: &[i64], value: impl Fn(&[Expr]) -> Expr) -> TensorRef {
        let [rows, columns] = self.size.map(|n| n as i64);
        b.compute(name, &[&shape[..2], &[rows, columns], &shape[4..]].concat(), |i| {
            let conditions = [self.conditions(0, &i[2]), self.conditions(1, &i[3])].concat();
            let [row, column] = [0, 1].map(|k| less(&i[2 + k], self.before[k] as i64));
            let element = value(&[&i[..2], &[row, column], &i[4..]].concat());
            within(conditions, element, Expr::Int(self.value.into(), DType::I8))
        })
    }
}

/// Adds a tensor to an expression, with padding around its images if there is a border.
pub fn computed(
    b: &mut Builder,
    border: Option<&Border>,
    name: &str,
    shape: &[i64],
    value: impl Fn(&[Expr]) -> Expr,
) -> TensorRef {
    match border {
        Some(border) => border.compute(b, name, shape, value),
        None => b.compute(name, shape, value),
    }
}
